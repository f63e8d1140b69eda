/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files: versions 1 to 3, little-endian, C order. Format: numpy.lib.format in NumPy's
 * documentation. */
#ifndef TCONV_TOOL_NPY_H
#define TCONV_TOOL_NPY_H

#include "tool/io/out_file.h"
#include "tool/tool.h"

struct npy {
    tconv_type type;
    tconv_shape shape;
    void *values;
    void *mapping; /* not NULL: values are in a mapped file; else from malloc */
    size_t mapped; /* bytes of it */
};

/* A file that is written in place, where its values are mapped. */
struct npy_out {
    struct out_file file;
    void *values;
    void *mapping;
    size_t mapped;
};

/* Reads a whole file; a large one is mapped instead, read-only. `option` is named in messages.
 * uint16 is read as bf16 where --type says so. A file that cannot be read or is damaged is failed
 * work; a sound one with something that cannot be used is a wrong request. */
enum exit_code npy_read(const char *option, const char *path, struct npy *npy);

/* Writes a file that appears whole or not at all. bf16 is written as uint16. */
enum exit_code npy_write(const char *path, tconv_type type, const tconv_shape *shape,
                         const void *values);

/* The same for values that come bit by bit: space for them on the disk, and then the end, which
 * gives the file its name, or nothing. */
enum exit_code npy_write_begin(const char *path, tconv_type type, const tconv_shape *shape,
                               struct npy_out *out);
enum exit_code npy_write_end(struct npy_out *out);
void npy_write_discard(struct npy_out *out);

/* Gives the memory of a mapped file back to the system, which reads it again where it is needed. */
void npy_drop(void *mapping, size_t mapped);

void npy_free(struct npy *npy);

#endif
