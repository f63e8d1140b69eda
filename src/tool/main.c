/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl: the command-line tool. This file finds the command and hands over. */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command {
    const char *name;
    const char *summary;
    enum exit_code (*run)(int argc, const char **argv);
} commands[] = {
    {"bench", "time layers and verify their results; without a command, this one", command_bench},
    {"run", "compute one layer from .npy files, or a layer of an OpenVINO model", command_run},
    {"shape", "resolve pads and output shape; no device is needed", command_shape},
    {"devices", "list OpenCL devices with what the library uses of each", command_devices},
    {"check", "compare every kernel that accepts a problem with an f64 computation", command_check},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static enum exit_code help(void)
{
    printf("Transposed convolution on any OpenCL device.\n\n"
           "usage: tconv-cl [COMMAND] [OPTIONS]\n\n");
    for (int i = 0; i < COMMANDS; i++) printf("  %-9s %s\n", commands[i].name, commands[i].summary);
    printf("\ntconv-cl COMMAND --help tells the options of a command. Some to begin with:\n\n"
           "  tconv-cl devices\n"
           "  tconv-cl bench --ids B07,B43\n"
           "  tconv-cl shape --data-shape 1,20,224,224 --filter-shape 20,10,3,3 --strides 2 "
           "--pads-begin 1 --pads-end 1\n"
           "  tconv-cl run --data x.npy --filter w.npy --strides 2 --output y.npy\n"
           "  tconv-cl run --model decoder.xml --layer up1 --data x.npy --output y.npy\n\n"
           "Exit code: 0 done; 1 the work failed (device, memory, a file, a comparison); 2 the "
           "request is wrong.\n");
    return EXIT_DONE;
}

static const struct command *find(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

/* How many arguments an option takes that may stand before the command; 0 where it may not. */
static int leading_option(const char *argument)
{
    static const char *const with_value[] = {"--device", "-d", "--json", "-j"};
    if (strcmp(argument, "--quiet") == 0 || strcmp(argument, "-q") == 0) return 1;
    for (size_t i = 0; i < sizeof with_value / sizeof *with_value; i++) {
        const size_t length = strlen(with_value[i]);
        if (strcmp(argument, with_value[i]) == 0) return 2;
        if (length > 2 && strncmp(argument, with_value[i], length) == 0 && argument[length] == '=')
            return 1;
    }
    return 0;
}

static enum exit_code dispatch(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0) return help();
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("tconv-cl %s\n", TCONV_VERSION_STRING);
        return EXIT_DONE;
    }
    /* The command is the first argument but for a few options; the rest, without it, is the
     * command's. */
    int at = 1;
    while (at < argc && leading_option(argv[at]) > 0) at += leading_option(argv[at]);
    const struct command *command = at < argc ? find(argv[at]) : NULL;
    if (command == NULL && at < argc && argv[at][0] != '-')
        return wrong_request("%s is not a command; see tconv-cl --help", argv[at]);
    const char **arguments = malloc(((size_t)argc + 1) * sizeof *arguments);
    if (arguments == NULL) return failed_work("the arguments cannot be read: no memory");
    int count = 0;
    arguments[count++] = command == NULL ? "bench" : command->name;
    for (int i = 1; i < argc; i++)
        if (command == NULL || i != at) arguments[count++] = argv[i];
    arguments[count] = NULL;
    const enum exit_code code = command == NULL ? command_bench(count, arguments)
                                                : command->run(count, arguments);
    free(arguments);
    free_options();
    return code;
}

int main(int argc, char **argv)
{
    return (int)dispatch(argc, argv);
}
