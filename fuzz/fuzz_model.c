/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an OpenVINO model: what stands before the first line "=====" is the .xml, what
 * stands behind it the .bin, which is missing where there is no such line. Each layer that can be
 * read is completed and resolved, and its weights are touched. */
#include "fuzz.h"

#include "tool/io/model.h"

#include <stdlib.h>
#include <string.h>

static void check_weights(const struct entry *entry, const tconv_geometry *geometry)
{
    const unsigned char *weights = entry->weights;
    unsigned sum = 0;
    if (weights == NULL || entry->weights_type != entry->problem.filter_type)
        fuzz_fail("layer %s has no weights of its type", entry->id);
    for (uint64_t i = 0; i < geometry->filter_bytes; i++) sum += weights[i];
    static volatile unsigned result; /* so that the loop stays */
    result = sum;
    (void)result;
}

static void check_entry(struct entry *entry)
{
    tconv_shape data = entry->problem.data;
    if (entry->error == NULL && data.rank >= 0 && data.rank <= TCONV_MAX_RANK) {
        for (int i = 0; i < data.rank; i++)
            if (data.dim[i] == -1) data.dim[i] = 3;
        if (!model_set_data(entry, &data)) fuzz_fail("a fitting shape of the data is refused");
    }
    if (entry->error != NULL) {
        model_failure("m.xml", entry);
        fuzz_check_messages(true);
        return;
    }
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    if (tconv_resolve(&entry->problem, &geometry, NULL) == TCONV_OK)
        check_weights(entry, &geometry);
    data.rank = 2;
    model_set_data(entry, &data);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    fuzz_prepare(*argc, *argv);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char line[] = "\n=====\n";
    const uint8_t *at = memmem(bytes, size, line, sizeof line - 1);
    const size_t xml = at == NULL ? size : (size_t)(at - bytes);
    const size_t front = xml + sizeof line - 1;
    fuzz_file("m.xml", bytes, xml);
    fuzz_file("m.bin", at == NULL ? NULL : bytes + front, at == NULL ? 0 : size - front);
    struct suite suite;
    const enum exit_code code = model_read("m.xml", &suite);
    fuzz_check_messages(code != EXIT_DONE);
    if (code != EXIT_DONE) {
        if (suite.count != 0) fuzz_fail("a refused model has layers");
        return 0;
    }
    if (suite.count == 0) fuzz_fail("a model without layers is accepted");
    for (size_t i = 0; i < suite.count; i++) {
        const struct entry *found = model_layer("m.xml", &suite, suite.entries[i].layer);
        fuzz_check_messages(found == NULL); /* two layers may have one name */
        check_entry(&suite.entries[i]);
    }
    fuzz_check_messages(model_layer("m.xml", &suite, NULL) == NULL);
    fuzz_check_messages(model_layer("m.xml", &suite, "no such layer") == NULL);
    suite_free(&suite);
    return 0;
}
