/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises families of GPUs: what the rows of base/architectures.h ask. */
#include "device/gpu_name.h"

#include "base/architectures.h"

#include <stddef.h>
#include <string.h>

/* What stands in Mesa's names for AMD's GPUs in front of the chip: "AMD Radeon RX 7900 XTX
 * (radeonsi, navi31, ACO, DRM 3.57)". */
static const char mesa[] = "(radeonsi, ";

bool tconv_begins(const char *text, const char *words)
{
    while (*words != '\0') {
        const size_t length = strcspn(words, " ");
        if (strncmp(text, words, length) == 0) return true;
        words += length + strspn(words + length, " ");
    }
    return false;
}

/* Whether a name has one of these words in it. Mesa puts its driver in front of a product or behind
 * it. */
static bool has_word(const char *name, const char *words)
{
    while (*name != '\0' && !tconv_begins(name, words)) name++;
    return *name != '\0';
}

/* Whether Mesa's driver for AMD's GPUs names a chip that begins with one of these words; "": any
 * chip. Its newer chips have a version instead: gfx_digits. */
static bool has_chip(const char *name, const char *words)
{
    const char *chip = strstr(name, mesa);
    return chip != NULL && (*words == '\0' || tconv_begins(chip + sizeof mesa - 1, words));
}

/* AMD's names, and those of Mesa's newer chips, have "gfx" and a version: the major one, which may
 * have two digits, and two more digits, hexadecimal ones. Returns how many; 0 without a version. */
static size_t gfx_digits(const char *name)
{
    const char *chip = strstr(name, mesa);
    if (chip != NULL) name = chip + sizeof mesa - 1;
    return tconv_begins(name, "gfx") ? strspn(name + 3, "0123456789abcdef") : 0;
}

/* Freedreno's names: "FD740". */
static bool is_freedreno(const char *name)
{
    return tconv_begins(name, "FD") && name[2] >= '0' && name[2] <= '9';
}

tconv_architecture tconv_gpu_architecture(const struct tconv_gpu_facts *facts)
{
#define ROW(row, name, traits, recognised)                                                         \
    if (recognised) return TCONV_ARCHITECTURE_##row;
    ARCHITECTURES(ROW)
#undef ROW
    return TCONV_ARCHITECTURE_OTHER;
}
