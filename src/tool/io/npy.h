/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files: versions 1 to 3. Read in any order of bytes and axes, and written
 * little-endian in C order. Format: numpy.lib.format in NumPy's
 * documentation. */
#ifndef TCONV_TOOL_NPY_H
#define TCONV_TOOL_NPY_H

#include "tool/io/out_file.h"
#include "tool/system/system.h"
#include "tool/tool.h"

/* A mapped file. */
struct npy_mapping {
    void *begin; /* NULL: there is none */
    size_t size;
    char *lost; /* from malloc: what is printed if the file is cut off */
};

struct npy {
    tconv_type type;
    tconv_shape shape;
    void *values;               /* in the mapping if there is one, else from malloc */
    struct npy_mapping mapping; /* of a large file */
    FILE *file;                 /* the mapped one, still open */
    struct system_stamp stamp;  /* of the file when it was mapped */
};

/* An output file whose values are mapped and written in place. */
struct npy_out {
    struct out_file file;
    void *values;
    struct npy_mapping mapping;
};

/* Reads a whole file; a large one in the tool's own order is mapped instead, read-only. `option` is
 * for messages. With --type bf16, or --filter-type bf16 for the filter, uint16 is read as
 * bf16. An unreadable or damaged file is failed
 * work; a sound file that cannot be used is a wrong request. */
enum exit_code npy_read(const char *option, const char *path, struct npy *npy);

/* Failed work if a mapped file has been written since npy_read: the result would mix old and new
 * data. (The program ends when it reads what was cut off: system_map.) */
enum exit_code npy_unchanged(const char *option, const char *path, const struct npy *npy);

/* Writes a file that appears whole or not at all. bf16 is written as uint16. */
enum exit_code npy_write(const char *path, tconv_type type, const tconv_shape *shape,
                         const void *values);

/* Writes a file whose values come in pieces. npy_write_begin reserves space on the disk and maps
 * it. npy_write_end gives the file its name; npy_write_discard removes it. */
enum exit_code npy_write_begin(const char *path, tconv_type type, const tconv_shape *shape,
                               struct npy_out *out);
enum exit_code npy_write_end(struct npy_out *out);
void npy_write_discard(struct npy_out *out);

/* Lets the system reclaim the memory of a mapped file; it is read again on the next access. */
void npy_drop(const struct npy_mapping *mapping);

void npy_free(struct npy *npy);

#endif
