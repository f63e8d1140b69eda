/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes .npy files. A header's sizes are checked against the file's size before memory
 * is allocated. */
#include "tool/io/npy.h"

#include "base/element_types.h"
#include "tool/io/in_file.h"
#include "tool/io/out_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 6, LONGEST_HEADER = 1 << 16, LARGE = 64 << 20 };

/* Kind and bytes of an element: "f4". bf16 has none of its own, and is written as u2. */
static void write_descr(tconv_type type, char descr[3])
{
    descr[0] = type == TCONV_BF16 || !(tconv_type_is_floating(type) || tconv_type_is_signed(type))
                   ? 'u'
               : tconv_type_is_floating(type) ? 'f'
                                              : 'i';
    descr[1] = (char)('0' + (int)tconv_type_size(type));
    descr[2] = '\0';
}

/* Keeps the line that a lost mapping ends the program with. False without memory. */
static bool set_lost(struct npy_mapping *mapping, const char *option, const char *path,
                     const char *what)
{
    static const char format[] = "tconv-cl: %s %s %s\n";
    const size_t size = sizeof format + strlen(option) + strlen(path) + strlen(what);
    mapping->lost = malloc(size);
    if (mapping->lost == NULL) return false;
    snprintf(mapping->lost, size, format, option, path, what);
    return true;
}

static void unmap(struct npy_mapping *mapping)
{
    if (mapping->begin != NULL) system_unmap(mapping->begin, mapping->size);
    free(mapping->lost);
    *mapping = (struct npy_mapping){NULL, 0, NULL};
}

static void close_file(struct npy *npy)
{
    if (npy->file != NULL) in_file_close(npy->file);
    npy->file = NULL;
}

void npy_free(struct npy *npy)
{
    if (npy->mapping.begin == NULL) free(npy->values);
    unmap(&npy->mapping);
    close_file(npy);
    npy->values = NULL;
}

/* The value of a key in the header's dictionary: the text after its colon. */
static const char *value_of(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (at == NULL) return NULL;
    at += strlen(key);
    at += strspn(at, " ");
    return *at == ':' ? at + 1 + strspn(at + 1, " ") : NULL;
}

/* How the values of a file lie, where it is not how the tool has them. */
struct order {
    bool fortran; /* the first axis is the densest one */
    bool swapped; /* the bytes of an element: big-endian */
};

static bool read_type(const char *at, tconv_type *type, bool *swapped)
{
    if (at == NULL || (*at != '\'' && *at != '"')) return false;
    const char order = at[1];
    for (int i = TCONV_F32; i <= TCONV_U64; i++) {
        char descr[3];
        write_descr((tconv_type)i, descr);
        const bool one_byte = descr[1] == '1';
        /* Check the byte order first: the header may end here. */
        if (i != TCONV_BF16 &&
            (order == '<' || order == '>' || order == '=' || (order == '|' && one_byte)) &&
            strncmp(at + 2, descr, 2) == 0 && at[4] == at[0]) {
            *type = (tconv_type)i;
            *swapped = order == '>' && !one_byte;
            return true;
        }
    }
    return false;
}

_Static_assert(TCONV_MAX_RANK == 9, "a sentence of read_shape says so");

/* Returns NULL, or why a shape cannot be read. */
static const char *read_shape(const char *at, tconv_shape *shape)
{
    if (at == NULL || *at != '(') return "it must be a tuple, such as (1, 20)";
    shape->rank = 0;
    for (at++;;) {
        at += strspn(at, " ,");
        if (*at == ')') return NULL;
        char *end;
        errno = 0;
        const long long extent = strtoll(at, &end, 10);
        if (end == at) return "its extents must be whole numbers";
        if (errno == ERANGE) return "an extent does not fit into 64 bits";
        if (extent < 0) return "an extent is negative";
        if (shape->rank == TCONV_MAX_RANK) return "it has too many extents: up to 9 can be read";
        shape->dim[shape->rank++] = extent;
        at = end;
        at += strspn(at, " ");
        if (*at != ',' && *at != ')') return "its extents must be whole numbers";
    }
}

/* Reads the header. Sets `bytes` to the size of the values, and `order` to how they lie. */
static enum exit_code read_header(const char *option, const char *path, FILE *file, struct npy *npy,
                                  uint64_t *bytes, struct order *order)
{
    unsigned char start[MAGIC + 2], length_bytes[4] = {0};
    if (fread(start, 1, sizeof start, file) != sizeof start ||
        memcmp(start, "\x93NUMPY", MAGIC) != 0)
        return failed_work("%s %s is not a .npy file", option, path);
    const int version = start[MAGIC];
    const size_t width = version == 1 ? 2 : 4;
    if (version < 1 || version > 3)
        return failed_work("%s %s has version %d of the .npy format; 1 to 3 can be read", option,
                           path, version);
    if (fread(length_bytes, 1, width, file) != width)
        return failed_work("%s %s is cut off: it ends before its header", option, path);
    const size_t length = length_bytes[0] | (size_t)length_bytes[1] << 8 |
                          (size_t)length_bytes[2] << 16 | (size_t)length_bytes[3] << 24;
    if (length > LONGEST_HEADER)
        return failed_work("%s %s has a header of %zu bytes, which no .npy file needs", option,
                           path, length);
    char *header = malloc(length + 1);
    if (header == NULL) return failed_work("%s %s cannot be read: no memory", option, path);
    const bool read = fread(header, 1, length, file) == length;
    header[length] = '\0';
    const char *fortran = value_of(header, "'fortran_order'");
    const bool typed = read && read_type(value_of(header, "'descr'"), &npy->type, &order->swapped);
    const char *const misshapen =
        read_shape(read ? value_of(header, "'shape'") : NULL, &npy->shape);
    order->fortran = fortran != NULL && strncmp(fortran, "True", 4) == 0;
    enum exit_code code = EXIT_DONE;
    if (!read || fortran == NULL || (!order->fortran && strncmp(fortran, "False", 5) != 0) ||
        value_of(header, "'descr'") == NULL || value_of(header, "'shape'") == NULL)
        code = failed_work("%s %s has a damaged header", option, path);
    else if (!typed)
        code = wrong_request("%s %s has elements of the type %.*s: it must be f2, f4, f8, i1 to i8 "
                             "or u1 to u8",
                             option, path, (int)strcspn(value_of(header, "'descr'"), ",}"),
                             value_of(header, "'descr'"));
    else if (misshapen != NULL)
        code = wrong_request("%s %s has the shape %.*s: %s", option, path,
                             (int)strcspn(value_of(header, "'shape'"), "'}"),
                             value_of(header, "'shape'"), misshapen);
    free(header);
    *bytes = tconv_type_size(npy->type);
    for (int i = 0; code == EXIT_DONE && i < npy->shape.rank; i++)
        if (__builtin_mul_overflow(*bytes, (uint64_t)npy->shape.dim[i], bytes))
            code =
                wrong_request("%s %s has a shape whose bytes overflow at axis %d, extent %" PRId64,
                              option, path, i, npy->shape.dim[i]);
    return code;
}

/* Maps the values, which begin at byte `from`. False if the file cannot be mapped. */
static bool map_values(const char *option, const char *path, FILE *file, struct npy *npy,
                       size_t from, size_t bytes)
{
    struct npy_mapping *m = &npy->mapping;
    npy->stamp = system_stamp(file);
    m->size = from + bytes;
    if (set_lost(m, option, path,
                 "was cut off, or its disk failed, while it was read: nothing is written; give a "
                 "file that stays as it is"))
        m->begin = system_map(file, m->size, m->lost);
    if (m->begin == NULL) {
        unmap(m);
        return false;
    }
    npy->values = (char *)m->begin + from;
    return true;
}

enum exit_code npy_unchanged(const char *option, const char *path, const struct npy *npy)
{
    if (npy->mapping.begin == NULL) return EXIT_DONE;
    const struct system_stamp now = system_stamp(npy->file);
    if (now.size == npy->stamp.size && now.changed == npy->stamp.changed) return EXIT_DONE;
    return failed_work("%s %s was changed while it was read: nothing is written; give a file that "
                       "stays as it is",
                       option, path);
}

static enum exit_code read_values(const char *option, const char *path, FILE *file, struct npy *npy,
                                  uint64_t bytes)
{
    uint64_t size = 0;
    const off_t here = ftello(file); /* -1 for a pipe */
    const bool regular = here >= 0 && system_file_size(file, &size);
    if (regular && size - (uint64_t)here < bytes)
        return failed_work("%s %s is cut off: its header promises %" PRIu64
                           " bytes of values, but %" PRIu64 " are there",
                           option, path, bytes, size - (uint64_t)here);
    /* Values are mapped with the header. */
    if (bytes > (uint64_t)(PTRDIFF_MAX - LONGEST_HEADER - MAGIC - 6))
        return failed_work("%s %s has %" PRIu64
                           " bytes of values, more than a process of %d bits can address",
                           option, path, bytes, (int)sizeof(void *) * 8);
    if (regular && bytes >= LARGE &&
        map_values(option, path, file, npy, (size_t)here, (size_t)bytes))
        return EXIT_DONE;
    size_t got;
    npy->values = in_file_read(file, (size_t)bytes, regular ? (size_t)bytes : 0, &got);
    if (npy->values != NULL && got == bytes) return EXIT_DONE;
    return failed_work("%s %s cannot be read: %s", option, path,
                       npy->values == NULL ? strerror(errno) : "it ends too early");
}

/* Where element number `index` of a file in Fortran order lies, counted in C order. */
static size_t fortran_place(const tconv_shape *shape, size_t index)
{
    size_t place = 0, step = 1, all = 1;
    for (int a = 0; a < shape->rank; a++) all *= (size_t)shape->dim[a];
    for (int a = 0; a < shape->rank; a++) {
        all /= (size_t)shape->dim[a];
        place += index / all % (size_t)shape->dim[a] * step;
        step *= (size_t)shape->dim[a];
    }
    return place;
}

/* Puts values that were read into C order and little-endian, in new memory. */
static enum exit_code put_in_order(const char *option, const char *path, struct order order,
                                   size_t bytes, struct npy *npy)
{
    if ((!order.fortran && !order.swapped) || bytes == 0) return EXIT_DONE;
    const size_t size = tconv_type_size(npy->type);
    char *values = malloc(bytes);
    if (values == NULL)
        return failed_work("%s %s cannot be put in order: no memory for %zu bytes", option, path,
                           bytes);
    for (size_t i = 0; i < bytes / size; i++) {
        const char *from = (const char *)npy->values +
                           (order.fortran ? fortran_place(&npy->shape, i) : i) * size;
        for (size_t b = 0; b < size; b++)
            values[i * size + b] = from[order.swapped ? size - 1 - b : b];
    }
    const enum exit_code code = npy_unchanged(option, path, npy);
    npy_free(npy);
    npy->values = values;
    return code;
}

enum exit_code npy_read(const char *option, const char *path, struct npy *npy)
{
    *npy = (struct npy){0};
    FILE *file = npy->file = in_file_open(path);
    if (file == NULL)
        return failed_work("%s %s cannot be opened: %s", option, path, strerror(errno));
    uint64_t bytes = 0;
    struct order order = {false, false};
    enum exit_code code = read_header(option, path, file, npy, &bytes, &order);
    if (code == EXIT_DONE) code = read_values(option, path, file, npy, bytes);
    if (code == EXIT_DONE) code = put_in_order(option, path, order, (size_t)bytes, npy);
    if (code != EXIT_DONE) npy_free(npy);
    if (npy->mapping.begin == NULL) close_file(npy);
    tconv_type wanted;
    const bool filters = strcmp(option, "--filter") == 0 && options.filter_type != NULL;
    const char *const type = filters ? options.filter_type : options.data_type;
    if (code == EXIT_DONE && npy->type == TCONV_U16 && type != NULL &&
        tconv_type_from_name(type, &wanted) && wanted == TCONV_BF16)
        npy->type = TCONV_BF16;
    return code;
}

/* Writes the header, padded so that the values begin at a multiple of 64 bytes. Sets `bytes` to the
 * size of the values. False with ENOMEM if a process cannot address so many. */
static bool write_header(FILE *file, tconv_type type, const tconv_shape *shape, size_t *bytes)
{
    char header[512], descr[3];
    write_descr(type, descr);
    int length = snprintf(header, sizeof header,
                          "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                          descr[1] == '1' ? '|' : '<', descr);
    uint64_t size = tconv_type_size(type);
    bool counted = true;
    for (int i = 0; i < shape->rank; i++) {
        length += snprintf(header + length, sizeof header - (size_t)length,
                           i + 1 < shape->rank ? "%" PRId64 ", " : "%" PRId64 "%s", shape->dim[i],
                           shape->rank == 1 ? "," : "");
        counted = counted && !__builtin_mul_overflow(size, (uint64_t)shape->dim[i], &size);
    }
    if (!counted || size > PTRDIFF_MAX - sizeof header) {
        errno = ENOMEM;
        return false;
    }
    *bytes = (size_t)size;
    length += snprintf(header + length, sizeof header - (size_t)length, "), }");
    const int start = MAGIC + 4;
    while ((start + length + 1) % 64 != 0) header[length++] = ' ';
    header[length++] = '\n';
    unsigned char front[MAGIC + 4] = "\x93NUMPY\x01";
    front[MAGIC + 2] = (unsigned char)(length & 255);
    front[MAGIC + 3] = (unsigned char)(length >> 8);
    return fwrite(front, 1, sizeof front, file) == sizeof front &&
           fwrite(header, 1, (size_t)length, file) == (size_t)length;
}

static bool write_file(FILE *file, tconv_type type, const tconv_shape *shape, const void *values)
{
    size_t bytes;
    return write_header(file, type, shape, &bytes) && fwrite(values, 1, bytes, file) == bytes;
}

enum exit_code npy_write(const char *path, tconv_type type, const tconv_shape *shape,
                         const void *values)
{
    struct out_file file;
    const enum exit_code code = out_file_begin("--output", path, &file);
    return code != EXIT_DONE ? code
                             : out_file_end(&file, write_file(file.stream, type, shape, values));
}

enum exit_code npy_write_begin(const char *path, tconv_type type, const tconv_shape *shape,
                               struct npy_out *out)
{
    *out = (struct npy_out){0};
    const enum exit_code code = out_file_begin("--output", path, &out->file);
    if (code != EXIT_DONE) return code;
    FILE *file = out->file.stream;
    struct npy_mapping *m = &out->mapping;
    size_t bytes;
    const bool good = write_header(file, type, shape, &bytes) && fflush(file) == 0;
    const off_t header = good ? ftello(file) : -1;
    if (header > 0 && set_lost(m, "--output", path,
                               "cannot be written: its temporary file was cut off, or its disk "
                               "failed")) {
        m->size = (size_t)header + bytes;
        m->begin = system_map_output(file, m->size, m->lost);
    }
    if (m->begin == NULL) {
        const int reason = errno;
        unmap(m);
        errno = reason;
        return out_file_end(&out->file, false);
    }
    out->values = (char *)m->begin + header;
    return EXIT_DONE;
}

enum exit_code npy_write_end(struct npy_out *out)
{
    unmap(&out->mapping);
    return out_file_end(&out->file, true);
}

void npy_write_discard(struct npy_out *out)
{
    unmap(&out->mapping);
    out_file_discard(&out->file);
}

void npy_drop(const struct npy_mapping *mapping)
{
    if (mapping->begin != NULL) system_drop(mapping->begin, mapping->size);
}
