/* SPDX-License-Identifier: Apache-2.0 */
/* The tool's readers and writers: .npy, suites in CSV, OpenVINO models; sound files and damaged
 * ones. */
#include "portable.h"
#include "tool/io/model.h"
#include "tool/io/npy.h"
#include "tool/io/suite.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if !defined(_WIN32)
#include <sys/wait.h>
#endif

#include <cmocka.h>

static char folder[200]; /* where the tests write */

static const char *in_folder(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static const char *write_file(const char *name, const void *bytes, size_t size)
{
    const char *path = in_folder(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    return path;
}

static const char *write_text(const char *name, const char *text)
{
    return write_file(name, text, strlen(text));
}

/* ---- .npy ---- */

static void arrays_survive_the_way_to_a_file_and_back(void **state)
{
    (void)state;
    const float values[24] = {1, -2, 3.5F, 0, 1e-40F, -0.0F};
    const tconv_shape shapes[] = {
        {3, {2, 3, 4}}, {1, {24}}, {0, {0}}, {2, {0, 7}}, {9, {1, 1, 1, 1, 1, 2, 3, 4, 1}}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        assert_int_equal(npy_write(in_folder("a.npy"), TCONV_F32, &shapes[i], values), EXIT_DONE);
        struct npy npy;
        assert_int_equal(npy_read("--data", in_folder("a.npy"), &npy), EXIT_DONE);
        assert_int_equal(npy.type, TCONV_F32);
        assert_int_equal(npy.shape.rank, shapes[i].rank);
        size_t count = 1;
        for (int d = 0; d < shapes[i].rank; d++) {
            assert_int_equal(npy.shape.dim[d], shapes[i].dim[d]);
            count *= (size_t)shapes[i].dim[d];
        }
        assert_memory_equal(npy.values, values, count * sizeof *values);
        npy_free(&npy);
    }
    assert_int_equal(npy_write(in_folder("none/a.npy"), TCONV_F32, &shapes[0], values),
                     EXIT_WORK_FAILED);
}

/* A file with that header text and `count` bytes of values behind it. */
static const char *npy_with_values(const char *header, const void *values, size_t count)
{
    unsigned char bytes[1000] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    const size_t length = strlen(header);
    bytes[8] = (unsigned char)(length & 255);
    bytes[9] = (unsigned char)(length >> 8);
    memcpy(bytes + 10, header, length);
    memcpy(bytes + 10 + length, values, count);
    return write_file("h.npy", bytes, 10 + length + count);
}

static const char *npy_with_header(const char *header, size_t count)
{
    static const char zeros[64];
    assert_true(count <= sizeof zeros);
    return npy_with_values(header, zeros, count);
}

static void headers_of_other_writers_are_read(void **state)
{
    (void)state;
    struct npy npy;
    const char *path =
        npy_with_header("{'shape': (2,3), 'fortran_order': False, 'descr': '<i2'}", 12);
    assert_int_equal(npy_read("--data", path, &npy), EXIT_DONE);
    assert_int_equal(npy.type, TCONV_I16);
    assert_int_equal(npy.shape.rank, 2);
    npy_free(&npy);
    path = npy_with_header("{'descr': '|u1', 'fortran_order': False, 'shape': (5,), }  \n", 5);
    assert_int_equal(npy_read("--data", path, &npy), EXIT_DONE);
    assert_int_equal(npy.type, TCONV_U8);
    npy_free(&npy);
}

/* Values of other orders of bytes and of axes. */
static void other_orders_are_read(void **state)
{
    (void)state;
    struct npy npy;
    const unsigned char big[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const char *path =
        npy_with_values("{'descr': '>u4', 'fortran_order': False, 'shape': (2,), }", big, 8);
    assert_int_equal(npy_read("--data", path, &npy), EXIT_DONE);
    assert_int_equal(npy.type, TCONV_U32);
    assert_int_equal(((const uint32_t *)npy.values)[0], 0x01020304);
    assert_int_equal(((const uint32_t *)npy.values)[1], 0x05060708);
    npy_free(&npy);
    const unsigned char columns[] = {0, 12, 4, 16, 8,  20, 1, 13, 5, 17, 9,  21,
                                     2, 14, 6, 18, 10, 22, 3, 15, 7, 19, 11, 23};
    path = npy_with_values("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }", columns,
                           sizeof columns);
    assert_int_equal(npy_read("--data", path, &npy), EXIT_DONE);
    for (int i = 0; i < 24; i++) assert_int_equal(((const unsigned char *)npy.values)[i], i);
    npy_free(&npy);
    const unsigned char both[] = {0, 0, 0, 2, 0, 1, 0, 3};
    path = npy_with_values("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 2), }", both, 8);
    assert_int_equal(npy_read("--data", path, &npy), EXIT_DONE);
    for (int i = 0; i < 4; i++) assert_int_equal(((const int16_t *)npy.values)[i], i);
    npy_free(&npy);
    path = npy_with_values("{'descr': '>f8', 'fortran_order': True, 'shape': (2, 0), }", both, 0);
    assert_int_equal(npy_read("--data", path, &npy), EXIT_DONE);
    npy_free(&npy);
}

static void damaged_arrays_are_refused(void **state)
{
    (void)state;
    static const struct {
        enum exit_code code;
        const char *header;
    } rows[] = {
        {EXIT_WORK_FAILED,
         "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"}, /* 24 bytes promised, 8
                                                                            there */
        {EXIT_WORK_FAILED, "{'descr': '>f4', 'fortran_order': Maybe, 'shape': (2,), }"},
        {EXIT_REQUEST_WRONG, "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }"},
        {EXIT_REQUEST_WRONG, "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }"},
        {EXIT_REQUEST_WRONG,
         "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }"},
        {EXIT_REQUEST_WRONG,
         "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4), }"},
        {EXIT_REQUEST_WRONG,
         "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1), }"},
        {EXIT_REQUEST_WRONG, "{'descr': '<f4', 'fortran_order': False, 'shape': (2"},
        {EXIT_WORK_FAILED, "{'descr': '<f4', 'shape': (2,)}"},
        {EXIT_WORK_FAILED, ""},
        {EXIT_WORK_FAILED, "{'descr': <f4}"},
        {EXIT_REQUEST_WRONG, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }"},
        {EXIT_REQUEST_WRONG, "{'fortran_order': False, 'shape': (2,), 'descr': '"}, /* ends there */
    };
    struct npy npy;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(npy_read("--data", npy_with_header(rows[i].header, 8), &npy),
                         rows[i].code);
        assert_null(npy.values);
    }
    assert_int_equal(npy_read("--data", write_text("t.npy", "not an array"), &npy),
                     EXIT_WORK_FAILED);
    assert_int_equal(npy_read("--data", write_text("t.npy", ""), &npy), EXIT_WORK_FAILED);
    assert_int_equal(npy_read("--data", write_file("t.npy", "\x93NUMPY\x09\x00", 8), &npy),
                     EXIT_WORK_FAILED);
    assert_int_equal(
        npy_read("--data", write_file("t.npy", "\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12), &npy),
        EXIT_WORK_FAILED);
    assert_int_equal(npy_read("--data", in_folder("none.npy"), &npy), EXIT_WORK_FAILED);
}

#if !defined(_WIN32) /* pipes with names, links and permissions are other things there */
/* An array from a pipe, which has no size: what its header claims is believed as far as bytes
 * come. */
static void pipes_are_read_as_far_as_they_go(void **state)
{
    (void)state;
    static const struct {
        enum exit_code code;
        const char *shape;
    } rows[] = {{EXIT_DONE, "(5,)"}, {EXIT_WORK_FAILED, "(1024, 1024, 1024, 1024, 1024)"}};
    for (size_t i = 0; i < 2; i++) {
        char bytes[200] = "\x93NUMPY\x01", path[40];
        snprintf(bytes + 10, sizeof bytes - 10,
                 "{'descr': '|u1', 'fortran_order': False, 'shape': %s}", rows[i].shape);
        const size_t length = strlen(bytes + 10);
        bytes[8] = (char)length;
        memcpy(bytes + 10 + length, "hello", 5);
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], bytes, length + 15), length + 15);
        close(ends[1]);
        snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
        struct npy npy;
        assert_int_equal(npy_read("--data", path, &npy), rows[i].code);
        if (rows[i].code == EXIT_DONE) assert_memory_equal(npy.values, "hello", 5);
        npy_free(&npy);
        close(ends[0]);
    }
}

static void outputs_keep_what_they_replace(void **state)
{
    (void)state;
    const float value = 1;
    const tconv_shape shape = {1, {1}};
    char target[300], link[300], pipe_name[300];
    snprintf(target, sizeof target, "%s", write_text("a.npy", "old"));
    snprintf(link, sizeof link, "%s", in_folder("t.npy"));
    unlink(link);
    assert_int_equal(chmod(target, 0600), 0);
    assert_int_equal(symlink("a.npy", link), 0);
    assert_int_equal(npy_write(link, TCONV_F32, &shape, &value), EXIT_DONE);
    struct stat status;
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode)); /* the link stays, */
    assert_int_equal(stat(target, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600); /* and so do the permissions */
    assert_int_equal(status.st_size, 132);
    assert_int_equal(unlink(target), 0); /* a link to nothing stays, too */
    assert_int_equal(npy_write(link, TCONV_F32, &shape, &value), EXIT_WORK_FAILED);
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    snprintf(pipe_name, sizeof pipe_name, "%s", in_folder("h.npy"));
    unlink(pipe_name);
    assert_int_equal(mkfifo(pipe_name, 0600), 0);
    const int reader = open(pipe_name, O_RDONLY | O_NONBLOCK);
    assert_int_equal(npy_write(pipe_name, TCONV_F32, &shape, &value), EXIT_DONE);
    char bytes[200];
    assert_int_equal(read(reader, bytes, sizeof bytes), 132); /* a pipe is written, not replaced */
    close(reader);
    assert_int_equal(lstat(pipe_name, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    unlink(pipe_name);
}

/* A file that its owner has write-protected is not replaced, although its folder would let that
 * happen. */
static void write_protected_files_are_not_replaced(void **state)
{
    (void)state;
    const float value = 1;
    const tconv_shape shape = {1, {1}};
    char path[300];
    snprintf(path, sizeof path, "%s", write_text("a.npy", "keep"));
    assert_int_equal(chmod(path, 0444), 0);
    const bool root = geteuid() == 0; /* who may write every file */
    if (root) {
        assert_int_equal(chown(folder, 65534, (gid_t)-1), 0);
        assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
        assert_int_equal(seteuid(65534), 0);
    }
    struct npy_out out;
    const enum exit_code whole = npy_write(path, TCONV_F32, &shape, &value),
                         pieces = npy_write_begin(path, TCONV_F32, &shape, &out),
                         early = out_file_check("--json", path);
    if (root) {
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(chown(folder, 0, (gid_t)-1), 0);
    }
    assert_int_equal(whole, EXIT_WORK_FAILED);
    assert_int_equal(pieces, EXIT_WORK_FAILED);
    assert_int_equal(early, EXIT_WORK_FAILED);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 4);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(npy_write(path, TCONV_F32, &shape, &value), EXIT_DONE);
}

/* The name of the temporary file is not longer than the file system takes. */
static void names_and_paths_may_be_as_long_as_the_system_lets_them(void **state)
{
    (void)state;
    enum { NAME = 255, PATH = 4095 };
    static const int lengths[] = {1, 5, 248, 249, 250, 255};
    const float value = 1;
    const tconv_shape shape = {1, {1}};
    char path[PATH + 1];
    const size_t start = (size_t)snprintf(path, sizeof path, "%s/", folder);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memset(path + start, 'n', (size_t)lengths[i]);
        path[start + (size_t)lengths[i]] = '\0';
        for (int twice = 0; twice < 2; twice++) /* a new file, and one that is replaced */
            assert_int_equal(npy_write(path, TCONV_F32, &shape, &value), EXIT_DONE);
        assert_int_equal(unlink(path), 0); /* the folder is empty at the end: nothing else stayed */
    }
    size_t length = start;
    while (length + NAME + 3 < PATH) { /* folders, so that a path of the longest has a short name */
        const size_t room = PATH - 3 - length, part = room > NAME + 4 ? NAME - 4 : room;
        memset(path + length, 'd', part);
        length += part;
        path[length] = '\0';
        assert_int_equal(mkdir(path, 0700), 0);
        path[length++] = '/';
    }
    memset(path + length, 'n', PATH - length);
    path[PATH] = '\0';
    assert_int_equal(npy_write(path, TCONV_F32, &shape, &value), EXIT_DONE);
    assert_int_equal(npy_write(path, TCONV_F32, &shape, &value), EXIT_DONE);
    assert_int_equal(unlink(path), 0);
    for (char *slash; (slash = strrchr(path, '/')) >= path + start;) {
        *slash = '\0';
        assert_int_equal(rmdir(path), 0);
    }
}

/* In a folder whose path is longer than the system takes, names without a path work. */
static void outputs_may_lie_deeper_than_paths_reach(void **state)
{
    (void)state;
    enum { DEPTH = 20 };
    const float value = 1;
    const tconv_shape shape = {1, {1}};
    char name[251];
    memset(name, 'd', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const int before = open(".", O_RDONLY);
    assert_int_equal(chdir(folder), 0);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(mkdir(name, 0700), 0);
        assert_int_equal(chdir(name), 0);
    }
    for (int twice = 0; twice < 2; twice++)
        assert_int_equal(npy_write("a.npy", TCONV_F32, &shape, &value), EXIT_DONE);
    assert_int_equal(unlink("a.npy"), 0);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(chdir(".."), 0);
        assert_int_equal(rmdir(name), 0);
    }
    assert_int_equal(fchdir(before), 0);
    close(before);
}

/* A file of 64 MiB of zeros, without blocks on the disk; large files are mapped. */
static const char *large_npy(const char *name)
{
    char header[128];
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(header + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (16777216,), }", 64);
    const char *path = write_file(name, header, sizeof header);
    assert_int_equal(truncate(path, (off_t)sizeof header + (64 << 20)), 0);
    return path;
}

/* In a child: reads a file, begins an output, cuts one of them off and reads on. */
static void lose(const char *in, const char *out_path, const char *lost)
{
    struct npy npy;
    struct npy_out out;
    const tconv_shape shape = {1, {1 << 20}};
    if (npy_read("--data", in, &npy) != EXIT_DONE || npy.mapping.begin == NULL ||
        npy_write_begin(out_path, TCONV_F32, &shape, &out) != EXIT_DONE ||
        truncate(lost != NULL ? lost : out.file.temporary, 4096) != 0)
        _exit(9);
    volatile const char *const values = lost != NULL ? npy.values : out.values;
    _exit(values[(1 << 22) - 1] == 0 ? 8 : 7);
}

static void files_that_are_cut_off_end_the_program_with_a_sentence(void **state)
{
    (void)state;
    char in[300], out[300], text[600] = "";
    snprintf(out, sizeof out, "%s", in_folder("t.npy"));
    unlink(out);
    for (int of_output = 0; of_output < 2; of_output++) {
        snprintf(in, sizeof in, "%s", large_npy("a.npy"));
        int ends[2], status;
        assert_int_equal(pipe(ends), 0);
        const pid_t child = fork();
        if (child == 0) {
            dup2(ends[1], STDERR_FILENO);
            lose(in, out, of_output ? NULL : in);
        }
        close(ends[1]);
        assert_int_equal(waitpid(child, &status, 0), child);
        const ssize_t n = read(ends[0], text, sizeof text - 1);
        close(ends[0]);
        text[n < 0 ? 0 : n] = '\0';
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), EXIT_WORK_FAILED);
        const char *const begin = of_output ? "tconv-cl: --output " : "tconv-cl: --data ";
        assert_memory_equal(text, begin, strlen(begin));
        assert_non_null(strstr(text, of_output ? out : in));
        assert_ptr_equal(strchr(text, '\n'), text + n - 1); /* one line */
    }
    unlink(in); /* the folder is empty at the end: no temporary file stayed */
}

static void files_that_are_written_while_they_are_read_are_noticed(void **state)
{
    (void)state;
    char path[300];
    struct npy npy;
    snprintf(path, sizeof path, "%s", large_npy("a.npy"));
    assert_int_equal(npy_read("--data", path, &npy), EXIT_DONE);
    assert_int_equal(npy_unchanged("--data", path, &npy), EXIT_DONE);
    /* Less than a page is cut off: the mapping has zeros there, and no signal tells it. */
    assert_int_equal(truncate(path, 128 + (64 << 20) - 4), 0);
    assert_int_equal(npy_unchanged("--data", path, &npy), EXIT_WORK_FAILED);
    npy_free(&npy);
    snprintf(path, sizeof path, "%s", large_npy("a.npy"));
    assert_int_equal(npy_read("--data", path, &npy), EXIT_DONE);
    const struct timespec times[2] = {{1, 0}, {1, 0}}; /* written later, the size is the same */
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    assert_int_equal(npy_unchanged("--data", path, &npy), EXIT_WORK_FAILED);
    npy_free(&npy);
    unlink(path);
}
#endif

/* Mapped outputs: nothing smaller is made instead. */
static void outputs_have_all_their_bytes_or_none(void **state)
{
    (void)state;
    const tconv_shape shape = {2, {INT64_C(1) << 31, INT64_C(1) << 31}};
    char path[300];
    snprintf(path, sizeof path, "%s", in_folder("large.npy"));
    struct npy_out out;
    assert_int_equal(npy_write_begin(path, TCONV_U8, &shape, &out), EXIT_WORK_FAILED);
    assert_int_equal(access(path, F_OK), -1);
}

/* ---- suites ---- */

static void the_built_in_suite_is_complete(void **state)
{
    (void)state;
    struct suite suite;
    assert_int_equal(suite_read(NULL, &suite), EXIT_DONE);
    assert_int_equal(suite.count, 77);
    for (size_t i = 0; i < suite.count; i++) {
        tconv_geometry g = TCONV_GEOMETRY_INIT;
        assert_int_equal(tconv_resolve(&suite.entries[i].problem, &g, NULL), TCONV_OK);
    }
    assert_string_equal(suite.entries[54].id, "B55"); /* a quoted field with a comma */
    assert_string_equal(suite.entries[76].id, "S10");
    assert_int_equal(suite_select(&suite, "S10,B07"), EXIT_DONE);
    assert_int_equal(suite.count, 2);
    assert_string_equal(suite.entries[0].id, "B07");
    assert_int_equal(suite_select(&suite, "B07,B0"), EXIT_REQUEST_WRONG);
    suite_free(&suite);
}

/* Layers of the other built-in suite are convolutions; a file may have its columns. */
static void suites_have_convolutions(void **state)
{
    (void)state;
    struct suite suite;
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    assert_int_equal(suite_read("upsampling", &suite), EXIT_DONE);
    assert_int_equal(suite.count, 20);
    for (size_t i = 0; i < suite.count; i++)
        assert_int_equal(suite.entries[i].problem.operation,
                         i < 15 ? TCONV_UPSAMPLE_CONV : TCONV_CONV_PIXEL_SHUFFLE);
    assert_int_equal(tconv_resolve(&suite.entries[19].problem, &g, NULL), TCONV_OK);
    assert_int_equal(suite.entries[19].problem.filter.dim[0], 4096);
    assert_int_equal(g.output[2], 48);
    suite_channels_last(&suite.entries[19].problem);
    assert_int_equal(suite.entries[19].problem.operation, TCONV_CONV_PIXEL_SHUFFLE);
    assert_int_equal(tconv_resolve(&suite.entries[19].problem, &g, NULL), TCONV_OK);
    assert_int_equal(g.output_shape.dim[4], 512);
    suite_free(&suite);
    assert_int_equal(suite_read("convolutions", &suite), EXIT_DONE); /* ordinary ones */
    assert_int_equal(suite.count, 14);
    for (size_t i = 0; i < suite.count; i++) {
        const tconv_problem *own = &suite.entries[i].problem;
        assert_int_equal(own->operation, TCONV_UPSAMPLE_CONV);
        assert_int_equal(tconv_resolve(own, &g, NULL), TCONV_OK);
        assert_int_equal(own->strides.value[0], 1);
        assert_int_equal(g.output[0], own->data.dim[2]); /* their pads keep the extents */
    }
    assert_int_equal(suite.entries[2].problem.dilations.value[0], 5);
    suite_free(&suite);
    const char *text = "id,in_channels,out_channels,groups,input,kernel,strides,upsample,"
                       "pixel_shuffle\nX,6,4,2,5x7,1x1,,,3x2\nY,6,4,1,5,3,,2,\n";
    assert_int_equal(suite_read(write_text("s.csv", text), &suite), EXIT_DONE);
    const tconv_problem *p = &suite.entries[0].problem;
    assert_int_equal(p->groups, 2);
    assert_int_equal(p->filter.rank, 4);
    assert_int_equal(p->filter.dim[0], 24);
    assert_int_equal(p->filter.dim[1], 3);
    assert_int_equal(tconv_resolve(p, &g, NULL), TCONV_OK);
    assert_int_equal(g.output_shape.dim[1], 4);
    assert_int_equal(g.output[0], 15);
    assert_int_equal(suite.entries[1].problem.operation, TCONV_UPSAMPLE_CONV);
    suite_free(&suite);
    text = "id,in_channels,out_channels,input,kernel,strides,upsample\nX,6,4,5,3,2,2\n";
    assert_int_equal(suite_read(write_text("s.csv", text), &suite), EXIT_REQUEST_WRONG);
}

static void suites_say_what_is_wrong_with_them(void **state)
{
    (void)state;
    struct suite suite;
    assert_int_equal(
        suite_read(write_text("s.csv", "id,in_channels,out_channels,input,kernel\nX,3,4,5x6,2x2\n"),
                   &suite),
        EXIT_DONE);
    assert_int_equal(suite.count, 1);
    assert_int_equal(suite.entries[0].problem.data.dim[3], 6);
    suite_free(&suite);
    static const char *const wrong[] = {
        "",
        "id,in_channels,out_channels,input\nX,3,4,5x6\n",             /* a column is missing */
        "id,in_channels,out_channels,input,kernel\nX,3,4,5x6,2xx2\n", /* no list */
        "id,in_channels,out_channels,input,kernel\nX,3,4,5x6,2x\n",   /* no list */
        "id,in_channels,out_channels,input,kernel\nX,,4,5x6,2x2\n",   /* no number */
        "id,in_channels,out_channels,input,kernel\n\"X \",3,4,5,2\n", /* --ids cannot name it */
        "id,in_channels,out_channels,input,kernel\n\" \",3,4,5,2\n",  /* nor this one */
        "id,in_channels,out_channels,input,kernel\nX,3,4,1x1x1x1x1x1x1,2\n",
        "id,in_channels,out_channels,input,kernel,groups\nX,3,4,5,2,2\n", /* groups do not divide */
        "id,in_channels,out_channels,input,kernel\nX,3,4,5x6,99999999999999999999\n",
        "id,in_channels,out_channels,input,kernel\n",                      /* no layers */
        "id,in_channels,out_channels,input,kernel,strides\nX,3,4,5,2,0\n", /* a problem refused */
        "id,in_channels,out_channels,input,kernel,type\nX,3,4,5,2,f8\n",
        "id,layer,in_channels,out_channels,input,kernel\nX,caf\xe9,3,4,5,2\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(suite_read(write_text("s.csv", wrong[i]), &suite), EXIT_REQUEST_WRONG);
        assert_int_equal(suite.count, 0);
    }
    assert_int_equal(suite_read(in_folder("none.csv"), &suite), EXIT_WORK_FAILED);
    assert_int_equal(suite_read(folder, &suite), EXIT_WORK_FAILED); /* nothing that can be read */
    static char large[(4 << 20) + 1];
    memset(large, '\n', sizeof large); /* only empty lines */
    assert_int_equal(suite_read(write_file("s.csv", large, sizeof large), &suite),
                     EXIT_WORK_FAILED);
    static const char zero[] = "id,in_channels,out_channels,input,kernel\nX,3\0,4,5,2\n";
    assert_int_equal(suite_read(write_file("s.csv", zero, sizeof zero - 1), &suite),
                     EXIT_REQUEST_WRONG);
    const char *open_quote = "id,in_channels,out_channels,input,kernel\n\"X,3,4,5,2\n";
    assert_int_equal(suite_read(write_text("s.csv", open_quote), &suite), EXIT_WORK_FAILED);
    const char *marked = "\xef\xbb\xbfid,in_channels,out_channels,input,kernel\nX,3,4,5,2\n";
    assert_int_equal(suite_read(write_text("s.csv", marked), &suite), EXIT_DONE);
    suite_free(&suite);
}

/* As many as a file may have: to look for each name in all layers would take minutes. */
static void many_layers_are_found_by_their_ids(void **state)
{
    (void)state;
    enum { LAYERS = 100000, LENGTH = 8 };
    struct suite suite = {NULL, 0};
    static char ids[LAYERS * LENGTH + 1];
    char id[LENGTH];
    for (int i = 0; i < LAYERS; i++) {
        snprintf(id, sizeof id, "L%06d", i / 2 * 2); /* two layers have each id */
        assert_non_null(suite_add(&suite, id, "layer"));
        snprintf(ids + (size_t)i * LENGTH, LENGTH + 1, "l%06d,", (LAYERS - 1 - i) / 2 * 2);
    }
    ids[LAYERS * LENGTH - 1] = '\0';
    assert_int_equal(suite_select(&suite, ids + (size_t)LAYERS / 2 * LENGTH), EXIT_DONE);
    assert_int_equal(suite.count, LAYERS / 2); /* those in front, in the suite's order */
    for (int i = 0; i < LAYERS / 2; i++) {
        snprintf(id, sizeof id, "L%06d", i / 2 * 2);
        assert_string_equal(suite.entries[i].id, id);
    }
    assert_int_equal(suite_select(&suite, ids), EXIT_REQUEST_WRONG);
    assert_int_equal(suite_select(&suite, " L000002 , l000000"), EXIT_DONE);
    assert_int_equal(suite.count, 4);
    suite_free(&suite);
}

/* ---- models ---- */

#define NET(inside)                                                                                \
    "<?xml version=\"1.0\"?><net name=\"m\" version=\"11\"><layers>" inside                        \
    "</layers><edges>" EDGES "</edges></net>"
#define EDGES                                                                                      \
    "<edge from-layer=\"0\" from-port=\"0\" to-layer=\"9\" to-port=\"0\"/>"                        \
    "<edge from-layer=\"1\" from-port=\"0\" to-layer=\"9\" to-port=\"1\"/>"                        \
    "<edge from-layer=\"2\" from-port=\"0\" to-layer=\"9\" to-port=\"2\"/>"
#define LAYER(data, third)                                                                         \
    "<layer id=\"9\" name=\"up, &lt;first&gt;\" type=\"ConvolutionBackpropData\" "                 \
    "version=\"opset1\"><data " data "/><input>"                                                   \
    "<port id=\"0\" precision=\"FP32\"><dim>1</dim><dim>2</dim><dim>-1</dim></port>"               \
    "<port id=\"1\" precision=\"FP32\"><dim>2</dim><dim>1</dim><dim>2</dim></port>" third          \
    "</input><output><port id=\"2\" "                                                              \
    "precision=\"FP32\"><dim>1</dim><dim>1</dim><dim>-1</dim></port></output></layer>"
#define FILTER(attributes)                                                                         \
    "<layer id=\"1\" name=\"w\" type=\"Const\" version=\"opset1\"><data " attributes "/></layer>"
#define F32_FILTER FILTER("element_type=\"f32\" shape=\"2, 1, 2\" offset=\"3\" size=\"16\"")

static enum exit_code read_model(const char *xml, struct suite *suite)
{
    unsigned char bin[64] = {0};
    const float weights[4] = {1, 2, 3, 4};
    const int64_t output = 7;
    memcpy(bin + 3, weights, sizeof weights); /* nothing is aligned in such a file */
    memcpy(bin + 21, &output, sizeof output);
    write_file("m.bin", bin, sizeof bin);
    return model_read(write_text("m.xml", xml), suite);
}

static void a_model_gives_attributes_weights_and_output_shape(void **state)
{
    (void)state;
    struct suite suite;
    assert_int_equal(read_model(NET(F32_FILTER LAYER(
                                    "strides=\"3\" pads_begin=\"1\" pads_end=\" 0 \" "
                                    "dilations=\"\" auto_pad=\"SAME_LOWER\"",
                                    "") "<layer id=\"2\" name=\"s\" type=\"Const\" "
                                        "version=\"opset1\"><data element_type=\"i64\" shape=\"1\" "
                                        "offset=\"21\" size=\"8\"/></layer>"),
                                &suite),
                     EXIT_DONE);
    assert_int_equal(suite.count, 1);
    struct entry *e = &suite.entries[0];
    assert_null(e->error);
    assert_string_equal(e->layer, "up, <first>");
    assert_int_equal(e->problem.rules, TCONV_RULES_OPENVINO);
    assert_int_equal(e->problem.strides.value[0], 3);
    assert_int_equal(e->problem.pads_begin.value[0], 1);
    assert_int_equal(e->problem.dilations.count, 0);
    assert_int_equal(e->problem.auto_pad, TCONV_SAME_LOWER);
    assert_int_equal(e->problem.output_shape.value[0], 7);
    assert_int_equal(e->problem.data.dim[2], -1);
    assert_true(((const float *)e->weights)[3] == 4.0F);
    assert_ptr_equal(model_layer("m", &suite, NULL), e);
    assert_ptr_equal(model_layer("m", &suite, "up, <first>"), e);
    assert_null(model_layer("m", &suite, "down"));
    const tconv_shape wrong = {3, {1, 3, 5}}, right = {3, {1, 2, 5}};
    assert_true(model_set_data(e, &right));
    assert_int_equal(e->problem.data.dim[2], 5);
    assert_false(model_set_data(e, &wrong));
    assert_non_null(strstr(e->error, "1,2,5"));
    suite_free(&suite);
}

static void layers_that_cannot_be_read_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *xml, *words;
    } rows[] = {
        {NET(LAYER("strides=\"1\"", "")), "comes from nothing"},
        {NET(FILTER("element_type=\"f32\" shape=\"2,1,2\" offset=\"60\" size=\"16\"")
                 LAYER("", "")),
         "bytes 60 to 76"},
        {NET(FILTER("element_type=\"f32\" shape=\"2,1,2\" offset=\"-4\" size=\"16\"")
                 LAYER("", "")),
         "no valid offset"},
        {NET(FILTER(
             "element_type=\"f32\" shape=\"2,1,2\" offset=\"9223372036854775807\" size=\"16\"")
                 LAYER("", "")),
         "bytes"},
        {NET(FILTER("element_type=\"f32\" shape=\"2,1,2\" offset=\"0\" size=\"17\"") LAYER("", "")),
         "17 bytes"},
        {NET(FILTER(
             "element_type=\"f32\" shape=\"4294967296,4294967296,4\" offset=\"0\" size=\"16\"")
                 LAYER("", "")),
         "16 bytes"},
        {NET(FILTER("element_type=\"u4\" shape=\"2,1,2\" offset=\"0\" size=\"2\"") LAYER("", "")),
         "type u4"},
        {NET(FILTER("element_type=\"i8\" shape=\"2,1,2\" offset=\"0\" size=\"4\"") LAYER("", "")),
         "type i8"},
        {NET(FILTER("element_type=\"f32\" shape=\"2,x\" offset=\"0\" size=\"4\"") LAYER("", "")),
         "shape that cannot be read"},
        {NET(F32_FILTER LAYER("strides=\"2;2\"", "")), "strides is \"2;2\""},
        {NET(F32_FILTER LAYER("pads_end=\"99999999999999999999\"", "")), "pads_end"},
        {NET(F32_FILTER LAYER("auto_pad=\"auto\"", "")), "auto_pad is \"auto\""},
        {NET("<layer id=\"1\" name=\"q\" type=\"FakeQuantize\" version=\"opset1\"/>" LAYER("", "")),
         "FakeQuantize"},
        {NET(F32_FILTER LAYER(
             "", "") "<layer id=\"2\" name=\"s\" type=\"ShapeOf\" version=\"opset3\"/>"),
         "ShapeOf"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct suite suite;
        assert_int_equal(read_model(rows[i].xml, &suite), EXIT_DONE);
        assert_int_equal(suite.count, 1);
        if (suite.entries[0].error == NULL || strstr(suite.entries[0].error, rows[i].words) == NULL)
            fail_msg("row %zu: %s", i,
                     suite.entries[0].error == NULL ? "no error" : suite.entries[0].error);
        suite_free(&suite);
    }
}

static void what_is_no_model_is_refused(void **state)
{
    (void)state;
    struct suite suite;
    assert_int_equal(read_model("", &suite), EXIT_WORK_FAILED);
    assert_int_equal(read_model("<net><layers>", &suite), EXIT_WORK_FAILED);
    assert_int_equal(read_model("<net/>", &suite), EXIT_REQUEST_WRONG); /* no layer of ours */
    assert_int_equal(read_model(NET("<layer id=\"x\" name=\"\" type=\"Const\"/>"), &suite),
                     EXIT_WORK_FAILED);
    assert_int_equal(read_model("<?xml version=\"1.0\"?><!DOCTYPE net [<!ENTITY a "
                                "\"aaaa\"><!ENTITY b \"&a;&a;\">]><net>&b;</net>",
                                &suite),
                     EXIT_WORK_FAILED);
    char deep[4000] = "";
    for (int i = 0; i < 200; i++) strcat(deep, "<net>");
    assert_int_equal(read_model(deep, &suite), EXIT_WORK_FAILED);
    assert_int_equal(model_read(in_folder("none.xml"), &suite), EXIT_WORK_FAILED);
    assert_int_equal(
        read_model(NET("<layer id=\"1\" name=\"\" type=\"Const\"><input><port id=\"0\">"
                       "<dim>00000000000000000000000000000005</dim></port></input>"
                       "</layer>"),
                   &suite),
        EXIT_WORK_FAILED);
}

static void weights_are_copied_so_many_times_only(void **state)
{
    (void)state;
    enum { LAYERS = 80 }; /* each takes 16 of the file's 64 bytes; 64 layers may */
    static char xml[100000];
    int length = snprintf(xml, sizeof xml, "<net><layers>%s", F32_FILTER);
    for (int i = 0; i < LAYERS; i++)
        length += snprintf(xml + length, sizeof xml - (size_t)length,
                           "<layer id=\"%d\" name=\"up\" type=\"ConvolutionBackpropData\"><input>"
                           "<port id=\"0\"/></input></layer>",
                           i + 9);
    length += snprintf(xml + length, sizeof xml - (size_t)length, "</layers><edges>");
    for (int i = 0; i < LAYERS; i++)
        length += snprintf(xml + length, sizeof xml - (size_t)length,
                           "<edge from-layer=\"1\" from-port=\"0\" to-layer=\"%d\" to-port=\"1\"/>",
                           i + 9);
    snprintf(xml + length, sizeof xml - (size_t)length, "</edges></net>");
    struct suite suite;
    assert_int_equal(read_model(xml, &suite), EXIT_DONE);
    assert_int_equal(suite.count, LAYERS);
    for (size_t i = 0; i < LAYERS; i++) assert_true((suite.entries[i].error == NULL) == (i < 64));
    suite_free(&suite);
    unlink(in_folder("m.bin"));
    assert_true(make_folder(in_folder("m.bin"))); /* a folder's size means nothing */
    write_text("m.xml", xml);
    assert_int_equal(model_read(in_folder("m.xml"), &suite), EXIT_DONE);
    assert_non_null(strstr(suite.entries[0].error, "cannot be opened"));
    suite_free(&suite);
    rmdir(in_folder("m.bin"));
}

static void bodies_of_loops_have_layers_of_their_own(void **state)
{
    (void)state;
    struct suite
        suite; /* the same ids inside and outside; each filter must come from its own side */
    assert_int_equal(
        read_model("<net name=\"m\" version=\"11\"><layers><layer id=\"1\" name=\"w\" "
                   "type=\"Const\" version=\"opset1\"><data "
                   "element_type=\"i32\" shape=\"4\" offset=\"0\" size=\"16\"/></layer>"
                   "<layer id=\"3\" name=\"if\" type=\"If\" "
                   "version=\"opset8\"><then_body><layers>" F32_FILTER LAYER(
                       "", "") "</layers><edges>" EDGES
                               "</edges></then_body></layer></layers><edges/></net>",
                   &suite),
        EXIT_DONE);
    assert_int_equal(suite.count, 1);
    assert_null(suite.entries[0].error);
    assert_true(((const float *)suite.entries[0].weights)[0] == 1.0F);
    suite_free(&suite);
}

/* A model of `layers` layers, each with its own filter, or all with one and the same id; in front
 * of the edges that count are as many from no layer. To search all edges, and all layers for each,
 * would take hours. */
static void read_many(int layers, bool same)
{
    enum { LINE = 300 };
    char *xml = malloc((size_t)layers * LINE), *at = xml;
    assert_non_null(xml);
    at += sprintf(at, "<net><layers>");
    for (int i = 0; i < layers; i++)
        at += sprintf(at,
                      "<layer id=\"%d\" name=\"up\" type=\"ConvolutionBackpropData\"><input>"
                      "<port id=\"0\"/></input></layer><layer id=\"%d\" name=\"w%d\" "
                      "type=\"Const\"/>",
                      same ? 0 : i, layers + i, i);
    at += sprintf(at, "</layers><edges>");
    for (int i = 0; i < layers; i++)
        at += sprintf(at, "<edge from-layer=\"-1\" from-port=\"0\" to-layer=\"0\" to-port=\"1\"/>");
    for (int i = layers - 1; i >= 0; i--)
        at += sprintf(at, "<edge from-layer=\"%d\" from-port=\"0\" to-layer=\"%d\" to-port=\"1\"/>",
                      layers + i, i);
    sprintf(at, "</edges></net>");
    struct suite suite;
    assert_int_equal(read_model(xml, &suite), EXIT_DONE);
    free(xml);
    assert_int_equal(suite.count, layers);
    for (int i = 0; i < layers; i++) {
        char words[40];
        snprintf(words, sizeof words, "its constant w%d has", same ? 0 : i);
        assert_non_null(strstr(suite.entries[i].error, words));
    }
    suite_free(&suite);
}

static void many_layers_find_their_filters(void **state)
{
    (void)state;
    read_many(20000, false);
    read_many(20000, true);
}

/* A name that lies in several of the pieces in which a file is read. */
static void a_name_may_be_longer_than_a_piece(void **state)
{
    (void)state;
    enum { LENGTH = 1000000 };
    char *xml = malloc(LENGTH + 200);
    assert_non_null(xml);
    const int begin =
        sprintf(xml, "<net><layers><layer id=\"9\" type=\"ConvolutionBackpropData\" name=\"");
    for (int i = 0; i < LENGTH; i++) xml[begin + i] = (char)('a' + i % 26);
    sprintf(xml + begin + LENGTH, "\"/></layers></net>");
    struct suite suite;
    assert_int_equal(read_model(xml, &suite), EXIT_DONE);
    assert_int_equal(strlen(suite.entries[0].layer), LENGTH);
    assert_memory_equal(suite.entries[0].layer, xml + begin, LENGTH);
    suite_free(&suite);
    free(xml);
}

/* Where a file has two layers of an id, or two edges to an input, the first counts; an edge from no
 * layer does not. */
static void the_first_of_two_counts(void **state)
{
    (void)state;
    struct suite suite;
    assert_int_equal(
        read_model("<net><layers>" LAYER("", "") "<layer id=\"1\" name=\"first\" type=\"Const\"/>"
                                                 "<layer id=\"1\" name=\"second\" type=\"Const\"/>"
                                                 "<layer id=\"2\" name=\"other\" type=\"Const\"/>"
                                                 "</layers><edges>"
                                                 "<edge from-layer=\"7\" from-port=\"0\" "
                                                 "to-layer=\"9\" to-port=\"1\"/>"
                                                 "<edge from-layer=\"1\" from-port=\"0\" "
                                                 "to-layer=\"9\" to-port=\"1\"/>"
                                                 "<edge from-layer=\"2\" from-port=\"0\" "
                                                 "to-layer=\"9\" to-port=\"1\"/>"
                                                 "</edges></net>",
                   &suite),
        EXIT_DONE);
    assert_non_null(strstr(suite.entries[0].error, "its constant first has"));
    suite_free(&suite);
}

static int make_own_folder(void **state)
{
    (void)state;
    return !make_temporary_folder("tconv-files", folder, sizeof folder);
}

static int remove_own_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"a.npy", "h.npy", "t.npy", "s.csv", "m.xml", "m.bin"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in_folder(names[i]));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_survive_the_way_to_a_file_and_back),
        cmocka_unit_test(headers_of_other_writers_are_read),
        cmocka_unit_test(other_orders_are_read),
        cmocka_unit_test(damaged_arrays_are_refused),
#if !defined(_WIN32)
        cmocka_unit_test(pipes_are_read_as_far_as_they_go),
        cmocka_unit_test(outputs_keep_what_they_replace),
        cmocka_unit_test(write_protected_files_are_not_replaced),
        cmocka_unit_test(names_and_paths_may_be_as_long_as_the_system_lets_them),
        cmocka_unit_test(outputs_may_lie_deeper_than_paths_reach),
        cmocka_unit_test(files_that_are_cut_off_end_the_program_with_a_sentence),
        cmocka_unit_test(files_that_are_written_while_they_are_read_are_noticed),
#endif
        cmocka_unit_test(outputs_have_all_their_bytes_or_none),
        cmocka_unit_test(the_built_in_suite_is_complete),
        cmocka_unit_test(suites_have_convolutions),
        cmocka_unit_test(suites_say_what_is_wrong_with_them),
        cmocka_unit_test(many_layers_are_found_by_their_ids),
        cmocka_unit_test(a_model_gives_attributes_weights_and_output_shape),
        cmocka_unit_test(layers_that_cannot_be_read_say_why),
        cmocka_unit_test(what_is_no_model_is_refused),
        cmocka_unit_test(weights_are_copied_so_many_times_only),
        cmocka_unit_test(bodies_of_loops_have_layers_of_their_own),
        cmocka_unit_test(many_layers_find_their_filters),
        cmocka_unit_test(a_name_may_be_longer_than_a_piece),
        cmocka_unit_test(the_first_of_two_counts),
    };
    return cmocka_run_group_tests_name("files", tests, make_own_folder, remove_own_folder);
}
