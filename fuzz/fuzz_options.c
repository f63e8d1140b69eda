/* SPDX-License-Identifier: Apache-2.0 */
/* Any command line through the whole tool, on a system without OpenCL devices. The input is the
 * command line without the program's name; a blank or the end of a line ends an argument, so that
 * two of them make an empty one. There are x.npy, w.npy, b.npy, s.csv, r.json, m.xml and m.bin to
 * be named; stdin is empty. */
#include "fuzz.h"

/* main.c is a program; its main becomes a function. */
int tool_main(int argc, char **argv);
#define main tool_main
#include "tool/cli/main.c"
#undef main

#include "tool/io/npy.h"

#include <unistd.h>

enum { MOST = 200 }; /* arguments */

static void write_files(void)
{
    static const float values[] = {1, 2, 3, 4, 5, 6};
    const tconv_shape data = {3, {1, 2, 3}}, filter = {3, {2, 1, 3}}, bias = {1, {1}};
    npy_write("x.npy", TCONV_F32, &data, values);
    npy_write("w.npy", TCONV_F32, &filter, values);
    npy_write("b.npy", TCONV_F32, &bias, values);
    static const char suite[] = "id,in_channels,out_channels,groups,input,kernel\n"
                                "A,3,4,1,5x6,2x2\nB,4,6,2,7,3\n";
    fuzz_file("s.csv", suite, strlen(suite));
    static const char report[] = "{\"layers\": [{\"id\": \"A\", \"ms_median\": 1.5, \"runs\": 5, "
                                 "\"spread\": 0.1}, {\"id\": \"B\", \"ms_median\": null}]}";
    fuzz_file("r.json", report, strlen(report));
    static const char xml[] =
        "<net><layers><layer id=\"1\" name=\"w\" type=\"Const\"><data element_type=\"f32\" "
        "shape=\"2,1,3\" offset=\"0\" size=\"24\"/></layer><layer id=\"2\" name=\"up\" "
        "type=\"ConvolutionBackpropData\"><data strides=\"2\"/><input><port id=\"0\">"
        "<dim>1</dim><dim>2</dim><dim>-1</dim></port></input></layer></layers><edges>"
        "<edge from-layer=\"1\" from-port=\"0\" to-layer=\"2\" to-port=\"1\"/></edges></net>";
    fuzz_file("m.xml", xml, strlen(xml));
    fuzz_file("m.bin", values, sizeof values);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    fuzz_prepare(*argc, *argv);
    setenv("OCL_ICD_VENDORS", "/nowhere/", 1);
    if (freopen("/dev/null", "r", stdin) == NULL) fuzz_fail("stdin cannot be closed");
    write_files();
    return 0;
}

static bool is_option(const char *argument, const char *name)
{
    return strcspn(argument, "=") == strlen(name) && strncmp(argument, name, strlen(name)) == 0;
}

/* popt forgets the first value where an option is given twice, which is a leak. */
static bool gives_each_once(int argc, char **argv)
{
    int letters[256] = {0};
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') continue;
        for (int j = 1; j < i; j++)
            if (strcspn(argv[i], "=") == strcspn(argv[j], "=") &&
                strncmp(argv[i], argv[j], strcspn(argv[i], "=")) == 0)
                return false;
        static const char *const same[] = {"--device", "--json", "--quiet", "--algorithm"};
        for (size_t j = 0; j < sizeof same / sizeof *same; j++) /* as their first letter */
            if (is_option(argv[i], same[j]) && letters[(unsigned char)same[j][2]]++ > 0)
                return false;
        for (const char *at = argv[i] + 1; *at != '\0' && argv[i][1] != '-'; at++)
            if (letters[(unsigned char)*at]++ > 0) return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1), *argv[MOST + 1] = {(char[]){"tconv-cl"}};
    if (text == NULL) fuzz_fail("no memory");
    memcpy(text, bytes, size);
    text[size] = '\0';
    if (size > 0 && text[size - 1] == '\n') text[size - 1] = '\0';
    int argc = 1;
    for (char *at = text; at != NULL && argc < MOST && size > 0;) {
        char *end = at + strcspn(at, " \n");
        argv[argc++] = at;
        at = *end == '\0' ? NULL : end + 1;
        *end = '\0';
    }
    /* Files are written, so that all of them must be in this process's folder. */
    for (size_t i = 0; i < size; i++)
        if (text[i] == '/') text[i] = '_';
    if (gives_each_once(argc, argv)) {
        fuzz_check_messages(tool_main(argc, argv) != EXIT_DONE);
        options = (struct options){0}; /* flags stay behind, which no program runs into */
    }
    free(text);
    fuzz_clear();
    write_files();
    return 0;
}
