/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a suite in CSV. The input is the file. */
#include "fuzz.h"

#include "tool/io/suite.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    fuzz_prepare(*argc, *argv);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    fuzz_file("s.csv", bytes, size);
    struct suite suite;
    const enum exit_code code = suite_read("s.csv", &suite);
    fuzz_check_messages(code != EXIT_DONE);
    if (code != EXIT_DONE) {
        if (suite.count != 0 || suite.entries != NULL) fuzz_fail("a refused suite has layers");
        return 0;
    }
    if (memchr(bytes, '\0', size) != NULL) fuzz_fail("a zero byte is accepted");
    if (suite.count == 0) fuzz_fail("a suite without layers is accepted");
    for (size_t i = 0; i < suite.count; i++) {
        tconv_geometry geometry = TCONV_GEOMETRY_INIT;
        if (tconv_resolve(&suite.entries[i].problem, &geometry, NULL) != TCONV_OK)
            fuzz_fail("layer %zu is accepted, but no valid one", i);
    }
    const bool selected = strchr(suite.entries[0].id, ',') == NULL;
    char *id = strdup(suite.entries[0].id);
    if (id == NULL) fuzz_fail("no memory");
    const enum exit_code choice = suite_select(&suite, id);
    fuzz_check_messages(choice != EXIT_DONE);
    if (selected && (choice != EXIT_DONE || strcmp(suite.entries[0].id, id) != 0))
        fuzz_fail("a layer is not found by its id");
    free(id);
    suite_free(&suite);
    return 0;
}
