/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files: versions 1 to 3, little-endian, C order. Format: numpy.lib.format in NumPy's
 * documentation. */
#ifndef TCONV_TOOL_NPY_H
#define TCONV_TOOL_NPY_H

#include "tool.h"

struct npy {
    tconv_type type;
    tconv_shape shape;
    void *values; /* from malloc */
};

/* Reads a whole file; `option` is named in messages. uint16 is read as bf16 where --type says so. A file that cannot be read or
 * is damaged is failed work; a sound one with something that cannot be used is a wrong request. */
enum exit_code npy_read(const char *option, const char *path, struct npy *npy);

/* Writes a file that appears whole or not at all. bf16 is written as uint16. */
enum exit_code npy_write(const char *path, tconv_type type, const tconv_shape *shape,
                         const void *values);

void npy_free(struct npy *npy);

#endif
