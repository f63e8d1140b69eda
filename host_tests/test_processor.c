/* SPDX-License-Identifier: Apache-2.0 */
/* Which dot products a processor has, by what invented ones say of themselves: an instruction
 * counts only with all that it needs, and only where the operating system keeps its registers. */
#include "device/recognise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { OSXSAVE = 1 << 27, FIRST = 1 << 16, VNNI = 1 << 11, AVX_VNNI = 1 << 4, BF16 = 1 << 5 };
#define VL 0x80000000u
#define ALL_REGISTERS 0xe7u

static const struct {
    const char *name;
    struct tconv_processor processor;
    bool wide, narrow, brain; /* AVX-512 VNNI, AVX-VNNI, AVX-512 BF16 */
} processors[] = {
    {"one that does not answer", {0, 0, 0, 0, 0}, false, false, false},
    {"AVX-512 without VNNI", {OSXSAVE, FIRST | VL, 0, 0, ALL_REGISTERS}, false, false, false},
    {"AVX-512 VNNI", {OSXSAVE, FIRST | VL, VNNI, 0, ALL_REGISTERS}, true, false, false},
    {"without VL", {OSXSAVE, FIRST, VNNI, 0, ALL_REGISTERS}, false, false, false},
    {"AVX-VNNI alone", {OSXSAVE, 0, 0, AVX_VNNI, 7}, false, true, false},
    {"both", {OSXSAVE, FIRST | VL, VNNI, AVX_VNNI, ALL_REGISTERS}, true, true, false},
    {"AVX-512 BF16", {OSXSAVE, FIRST | VL, VNNI, BF16, ALL_REGISTERS}, true, false, true},
    {"BF16 without VNNI", {OSXSAVE, FIRST | VL, 0, BF16, ALL_REGISTERS}, false, false, false},
    {"BF16, zmm not kept", {OSXSAVE, FIRST | VL, VNNI, BF16, 7}, false, false, false},
    {"both, zmm not kept", {OSXSAVE, FIRST | VL, VNNI, AVX_VNNI, 7}, false, true, false},
    {"both, ymm not kept", {OSXSAVE, FIRST | VL, VNNI, AVX_VNNI, 3}, false, false, false},
    {"both, nothing kept", {0, FIRST | VL, VNNI, AVX_VNNI, ALL_REGISTERS}, false, false, false},
};

static void invented_processors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof processors / sizeof *processors; i++) {
        const struct tconv_processor *p = &processors[i].processor;
        const tconv_matrix_unit best = processors[i].brain    ? TCONV_MATRIX_X86_AVX512_BF16
                                       : processors[i].wide   ? TCONV_MATRIX_X86_AVX512_VNNI
                                       : processors[i].narrow ? TCONV_MATRIX_X86_AVX_VNNI
                                                              : TCONV_MATRIX_NONE;
        if (tconv_processor_has(p, TCONV_MATRIX_X86_AVX512_BF16) != processors[i].brain ||
            tconv_processor_has(p, TCONV_MATRIX_X86_AVX512_VNNI) != processors[i].wide ||
            tconv_processor_has(p, TCONV_MATRIX_X86_AVX_VNNI) != processors[i].narrow ||
            tconv_processor_unit(p) != best || tconv_processor_has(p, TCONV_MATRIX_PLAIN_QUADS))
            fail_msg("%s", processors[i].name);
    }
}

/* PoCL 4 to 6 end the process where kernels have assembly. */
static void compilers_that_take_assembly(void **state)
{
    (void)state;
    static const struct {
        const char *platform, *driver;
        bool takes;
    } devices[] = {
        {TCONV_POCL, "3.1+debian", true},  {TCONV_POCL, "4.0", false},
        {TCONV_POCL, "5.0+debian", false}, {TCONV_POCL, "6.0", false},
        {TCONV_POCL, "7.1", true},         {"NVIDIA CUDA", "580.159.04", true},
        {"rusticl", "5.0", true},
    };
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        tconv_device_info d = {.struct_size = sizeof d};
        strcpy(d.platform, devices[i].platform);
        strcpy(d.driver, devices[i].driver);
        if (tconv_takes_assembly(&d) != devices[i].takes)
            fail_msg("%s %s", devices[i].platform, devices[i].driver);
    }
}

static void the_unit_of_the_processor_here_is_one_that_it_has(void **state)
{
    (void)state;
    const struct tconv_processor p = tconv_processor_read();
    const tconv_matrix_unit unit = tconv_processor_unit(&p);
    printf("matrix unit %d\n", (int)unit);
    assert_true(unit == TCONV_MATRIX_NONE || tconv_processor_has(&p, unit));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invented_processors),
        cmocka_unit_test(compilers_that_take_assembly),
        cmocka_unit_test(the_unit_of_the_processor_here_is_one_that_it_has),
    };
    return cmocka_run_group_tests_name("processor", tests, NULL, NULL);
}
