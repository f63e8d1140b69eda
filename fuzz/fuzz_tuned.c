/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of results that tune --share wrote. The input is the file. */
#include "fuzz.h"

#include "tool/bench/tuned.h"

#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    fuzz_prepare(*argc, *argv);
    return 0;
}

static void expect_line(const char *text, size_t least)
{
    if (strlen(text) < least || strlen(text) > 2000) fuzz_fail("a text of a wrong length");
    for (const char *at = text; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20) fuzz_fail("a control character is accepted");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    fuzz_file("r.json", bytes, size);
    struct tuned_file file;
    const enum exit_code code = tuned_read("r.json", &file);
    fuzz_check_messages(code != EXIT_DONE);
    if (options.data_shape != NULL || options.math != NULL) fuzz_fail("options stay behind");
    if (code != EXIT_DONE) {
        if (file.results != NULL || file.json != NULL) fuzz_fail("a refused file has results");
        return 0;
    }
    if (file.count == 0) fuzz_fail("a file without results is accepted");
    expect_line(file.origin, 1);
    json_t *origin = json_string(file.origin);
    if (origin == NULL) fuzz_fail("the origin is no UTF-8");
    json_decref(origin);
    for (size_t i = 0; i < file.count; i++) {
        const tconv_stored_search *f = &file.results[i].found;
        tconv_geometry geometry = TCONV_GEOMETRY_INIT;
        if (tconv_resolve(&file.results[i].problem, &geometry, NULL) != TCONV_OK)
            fuzz_fail("the layer of result %zu is accepted, but no valid one", i);
        if (!(f->best_ms > 0 && f->model_ms > 0 && f->median_ms > 0) || f->candidates < 1)
            fuzz_fail("result %zu has impossible numbers", i);
        expect_line(f->algorithm, 1);
        expect_line(f->layer, 1);
    }
    tuned_free(&file);
    return 0;
}
