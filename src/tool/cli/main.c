/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl: the command-line tool. Finds the command in the arguments and runs it. */
#include "tool/system/system.h"
#include "tool/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum exit_code command_help(int argc, const char **argv);
static enum exit_code command_version(int argc, const char **argv);

static const struct command {
    const char *name;
    const char *summary;
    enum exit_code (*run)(int argc, const char **argv);
} commands[] = {
    {"bench", "time layers and verify their results; runs if only options are given",
     command_bench},
    {"compare", "compare two reports of bench, layer by layer, with the noise of both",
     command_compare},
    {"run", "compute one layer from .npy files, or a layer of an OpenVINO model", command_run},
    {"shape", "resolve pads and output shape, without a device", command_shape},
    {"devices", "list OpenCL devices with what the library uses of each", command_devices},
    {"tune", "find the fastest algorithm for layers and store it for later plans", command_tune},
    {"prepare",
     "compile what layers need, for a range of extents, and store it for later processes",
     command_prepare},
    {"check", "compare every algorithm that accepts a problem with an f64 computation",
     command_check},
    {"report", "print what a bug report needs: versions, devices, environment, a short check",
     command_report},
    {"algorithms", "list the algorithms, and what each is", command_algorithms},
    {"manual", "print the manual page of the tool, or of a command, in roff", command_manual},
    {"completion", "print the completion of commands and options for bash or zsh",
     command_completion},
    {"help", "print this text, or the options of a command", command_help},
    {"version", "print the tool's version", command_version},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

const struct variable known_variables[] = {
    {"TCONV_CL_DEVICE", "the default of --device"},
    {"TCONV_CL_THREADS", "how many threads compute on PoCL's processor; off: PoCL's own"},
    {"TCONV_CL_CACHE_DIR", "where compiled programs and tuning results are kept"},
    {"TCONV_CL_CACHE", "off: they are not kept"},
    {"TCONV_CL_SEARCH", "how algorithms are chosen: model, records, measure or renew"},
    {"NO_COLOR", "not empty: no colours"},
    {"COLUMNS", "the width of the terminal"},
    {"OCL_ICD_VENDORS", "which OpenCL implementations the loader uses"},
    {"POCL_DEVICES", "which devices PoCL offers; not set: pthread basic"},
    {"POCL_AFFINITY", "1: PoCL's threads stay on the processors from 0 on, one on each"},
    {"POCL_MAX_PTHREAD_COUNT", "the number of PoCL's threads"},
    {NULL, NULL},
};

static bool sets_devices;

bool sets_pocl_devices(void)
{
    return sets_devices;
}

static enum exit_code help(void)
{
    printf("Transposed convolution on any OpenCL device.\n\n"
           "usage: tconv-cl [COMMAND] [OPTIONS]\n\n");
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    printf("\nRun 'tconv-cl COMMAND --help' or 'tconv-cl help COMMAND' for the options of a "
           "command. Examples:\n\n"
           "  tconv-cl devices\n"
           "  tconv-cl bench --ids B07,B43\n"
           "  tconv-cl compare old.json new.json\n"
           "  tconv-cl shape --data-shape 1,20,224,224 --filter-shape 20,10,3,3 --strides 2 "
           "--pads-begin 1 --pads-end 1\n"
           "  tconv-cl run --data x.npy --filter w.npy --strides 2 --output y.npy\n"
           "  tconv-cl run --model decoder.xml --layer up1 --data x.npy --output y.npy\n\n"
           "Exit code: 0 done; 1 the work failed (device, memory, a file, a comparison); 2 the "
           "request is wrong.\n\n"
           "Environment:\n");
    for (int i = 0; known_variables[i].name != NULL; i++)
        printf("  %-22s %s\n", known_variables[i].name, known_variables[i].meaning);
    return EXIT_DONE;
}

static const struct command *find(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

const char *command_name(int index)
{
    return index < COMMANDS ? commands[index].name : NULL;
}

const char *command_summary(const char *name)
{
    const struct command *command = find(name);
    return command == NULL ? "" : command->summary;
}

bool command_has_options(const char *name)
{
    const struct command *command = find(name);
    return command != NULL && command->run != command_help && command->run != command_manual &&
           command->run != command_completion;
}

enum exit_code run_command(const char *name, const char *option)
{
    char whole[40];
    snprintf(whole, sizeof whole, "tconv-cl %s", name);
    const char *arguments[] = {whole, option, NULL};
    return find(name)->run(2, arguments);
}

static enum exit_code unknown_command(const char *name)
{
    struct guess guess = guess_begin(name, strlen(name));
    for (int i = 0; i < COMMANDS; i++) guess_try(&guess, commands[i].name);
    return guess.best != NULL
               ? wrong_request("%s is not a command; did you mean %s? See tconv-cl --help", name,
                               guess.best)
               : wrong_request("%s is not a command; see tconv-cl --help", name);
}

static enum exit_code command_help(int argc, const char **argv)
{
    if (argc == 1 || argv[1][0] == '-') return help();
    if (argc > 2)
        return wrong_request("help takes one command, but %s follows %s", argv[2], argv[1]);
    const struct command *command = find(argv[1]);
    if (command == NULL) return unknown_command(argv[1]);
    if (!command_has_options(command->name)) return help();
    return run_command(command->name, "--help");
}

static enum exit_code command_version(int argc, const char **argv)
{
    bool leave;
    const enum exit_code code = read_options(help_table, "", argc, argv, &leave);
    if (!leave) printf("tconv-cl %s\n", TCONV_VERSION_STRING);
    return code;
}

/* How many arguments an option takes: one, or two if its value is an argument of its own. */
static int width_of(const char *argument)
{
    if (argument[1] == '-')
        return 1 + (strchr(argument, '=') == NULL &&
                    option_takes_value(argument + 2, strlen(argument + 2), '\0'));
    for (const char *letter = argument + 1; *letter != '\0'; letter++)
        if (option_takes_value(NULL, 0, *letter)) return letter[1] == '\0' ? 2 : 1;
    return 1;
}

static enum exit_code dispatch(int argc, char **argv)
{
    if (argc < 2) {
        const enum exit_code code = help();
        printf("\nTo start the benchmark: tconv-cl bench\n");
        return code;
    }
    /* The command is the first argument that is neither an option nor an option's value; it may
     * stand anywhere. */
    int at = 1;
    while (at < argc && argv[at][0] == '-' && argv[at][1] != '\0') at += width_of(argv[at]);
    const struct command *command = at < argc ? find(argv[at]) : NULL;
    if (command == NULL && at < argc) return unknown_command(argv[at]);
    const bool has_options = command != NULL && command_has_options(command->name);
    for (int i = 1; i < argc && !has_options; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0 ||
            strcmp(argv[i], "-?") == 0)
            return help();
        if (strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0) {
            printf("tconv-cl %s\n", TCONV_VERSION_STRING);
            return EXIT_DONE;
        }
    }
    const char **arguments = malloc(((size_t)argc + 1) * sizeof *arguments);
    if (arguments == NULL) return failed_work("the arguments cannot be read: no memory");
    char name[40];
    snprintf(name, sizeof name, "tconv-cl %s", command == NULL ? "bench" : command->name);
    int count = 0;
    arguments[count++] = name;
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
    argv = system_begin(&argc, argv);
    if (argv == NULL) return (int)failed_work("the arguments cannot be read: no memory");
    sets_devices = tconv_threads_enable(); /* before OpenCL reads the environment */
    const enum exit_code code = dispatch(argc, argv);
    if (fflush(stdout) != 0)
        return (int)failed_work("the results cannot be written to stdout: %s", strerror(errno));
    if (ferror(stdout) != 0) /* an earlier write failed; its errno is lost */
        return (int)failed_work("the results cannot be written to stdout");
    return (int)code;
}
