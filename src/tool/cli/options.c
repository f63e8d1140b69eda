/* SPDX-License-Identifier: Apache-2.0 */
/* Reading options: tables and lists that follow from option_list.h. */
#include "tool/io/model.h"
#include "tool/io/out_file.h"
#include "tool/system/system.h"
#include "tool/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options options;

/* A row as an entry of popt's tables. */
enum { ANY, TIMES, LAYERS, LAYER, LAYER_OR_SUITE, LAYER_OR_MODEL };
enum { TEXT, FLAG, READ, WRITTEN };
#define ENTRY(scope, kind, member, name, letter, value, help)                                      \
    {name, letter, (kind) == FLAG ? POPT_ARG_NONE : POPT_ARG_STRING, &options.member, 0,           \
     help, value},
#define HIDDEN_ENTRY(scope, kind, member, name, letter, value, help)                               \
    {name, letter, POPT_ARG_STRING | POPT_ARGFLAG_DOC_HIDDEN, &options.member, 0, help, value},
#define TABLE(name, rows) const struct poptOption name[] = {rows(ENTRY) POPT_TABLEEND};

TABLE(device_table, DEVICE_OPTIONS)
TABLE(common_table, COMMON_OPTIONS)
TABLE(shape_table, SHAPE_OPTIONS)
TABLE(attribute_table, ATTRIBUTE_OPTIONS)
TABLE(epilogue_table, EPILOGUE_OPTIONS)
TABLE(check_table, CHECK_OPTIONS)
TABLE(math_table, MATH_OPTIONS)
TABLE(algorithm_table, ALGORITHM_OPTIONS)
TABLE(suite_table, SUITE_OPTIONS)
TABLE(model_table, MODEL_OPTIONS)
TABLE(file_table, FILE_OPTIONS)
TABLE(bench_table, BENCH_OPTIONS)
TABLE(report_table, REPORT_OPTIONS)
TABLE(trace_table, TRACE_OPTIONS)
TABLE(compare_table, COMPARE_OPTIONS)
TABLE(tune_table, TUNE_OPTIONS)
TABLE(prepare_table, PREPARE_OPTIONS)
const struct poptOption refused_table[] = {DEVICE_OPTIONS(HIDDEN_ENTRY) POPT_TABLEEND};

/* popt's own --help leaves the process, so that nobody sees whether stdout took it. */
enum { HELP = 1, USAGE, VERSION };
const struct poptOption help_table[] = {
    {"help", 'h', POPT_ARG_NONE, NULL, HELP, "print this text", NULL},
    {NULL, '?', POPT_ARG_NONE | POPT_ARGFLAG_DOC_HIDDEN, NULL, HELP, NULL, NULL},
    {"version", 'V', POPT_ARG_NONE, NULL, VERSION, "print the tool's version", NULL},
    {"usage", 0, POPT_ARG_NONE, NULL, USAGE, "print the options in short", NULL},
    POPT_TABLEEND,
};

/* The rows themselves. */
struct row {
    const char *option; /* with its dashes */
    char letter;
    int scope, kind;
    void *member; /* char **, of a FLAG int * */
};

static const struct row rows[] = {
#define ROW(scope, kind, member, name, letter, value, help)                                        \
    {"--" name, letter, scope, kind, &options.member},
    ALL_OPTIONS(ROW)
#undef ROW
};
enum { ROWS = sizeof rows / sizeof *rows };

static char **text_of(const struct row *row)
{
    return row->kind == FLAG ? NULL : row->member;
}

static bool is_given(const struct row *row)
{
    return row->kind == FLAG ? *(const int *)row->member != 0 : *text_of(row) != NULL;
}

/* The row of an option; NULL: no command has it. */
static const struct row *find_row(const char *name, size_t length, char letter)
{
    for (int i = 0; i < ROWS; i++) {
        const char *own = rows[i].option + 2;
        const bool same = name == NULL ? rows[i].letter == letter && letter != '\0'
                                       : strlen(own) == length && strncmp(own, name, length) == 0;
        if (same) return &rows[i];
    }
    return NULL;
}

bool option_takes_value(const char *name, size_t length, char letter)
{
    const struct row *row = find_row(name, length, letter);
    return row != NULL && row->kind != FLAG;
}

/* A tile may follow the name: it is checked where the plan is made. */
static bool algorithm_exists(const char *text)
{
    char name[64];
    const size_t length = strcspn(text, " ,");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), text);
    return strcmp(text, "auto") == 0 || tconv_algorithm_summary(name) != NULL;
}

static enum exit_code list_algorithms(void)
{
    printf("auto             chosen by the cost model, or by a stored result of tconv-cl tune\n");
    print_algorithms();
    return EXIT_DONE;
}

/* A file that is read or written; the path may be NULL. */
struct named_file {
    const char *option;
    char **path;
    bool written;
};
enum { MOST_FILES = ROWS + 3 };

/* Lists all files, those that are written first. `weights` are those of the model. */
static int list_files(struct named_file *files, char **weights)
{
    int count = 0;
    for (int written = 1; written >= 0; written--)
        for (int i = 0; i < ROWS; i++)
            if (rows[i].kind == (written ? WRITTEN : READ))
                files[count++] = (struct named_file){rows[i].option, text_of(&rows[i]), written};
    files[count++] = (struct named_file){"the model's weights", weights, false};
    files[count++] = (struct named_file){"the old report", &options.arguments[0], false};
    files[count++] = (struct named_file){"the new report", &options.arguments[1], false};
    return count;
}

/* Names stdout and stdin "-" where an option names them by a path, such as /dev/stdout, or by the
 * file that the shell sent stdout to. A file that is stdin can also be read by its name. False
 * without memory. */
static bool name_streams(void)
{
    char *none = NULL;
    struct named_file files[MOST_FILES];
    const int count = list_files(files, &none);
    for (int i = 0; i < count; i++) {
        char *const path = *files[i].path;
        if (path == NULL || !system_leads_to(path, files[i].written ? stdout : stdin)) continue;
        if (!files[i].written && system_kind(path) == SYSTEM_REGULAR) continue;
        if ((*files[i].path = strdup("-")) == NULL) {
            *files[i].path = path;
            return false;
        }
        free(path);
    }
    return true;
}

static bool is_file_of(const char *path, FILE *stream)
{
    return system_kind(path) == SYSTEM_REGULAR && system_leads_to(path, stream);
}

/* True if a file that is written and another one are one. "-" is a name of stdout, and stdin's of a
 * file that is read. */
static bool are_one(const char *written, const char *other, bool other_written)
{
    const bool to_stdout = strcmp(written, "-") == 0, stream = strcmp(other, "-") == 0;
    if (other_written && (to_stdout || stream)) return to_stdout && stream;
    if (to_stdout) return !stream && is_file_of(other, stdout);
    return stream ? is_file_of(written, stdin) : system_same_file(written, other);
}

/* No file that is written takes another one's place, and stdin and stdout are of one file each;
 * false after a message. */
static bool files_apart(void)
{
    char *weights = options.model == NULL ? NULL : model_weights_path(options.model);
    struct named_file files[MOST_FILES];
    const int count = list_files(files, &weights);
    bool apart = true;
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count && apart; j++) {
            const char *one = *files[i].path, *other = *files[j].path;
            if (one == NULL || other == NULL) continue;
            const bool written = files[i].written;
            if (!written && strcmp(one, "-") != 0) continue;
            apart = written ? !are_one(one, other, files[j].written) : strcmp(other, "-") != 0;
            if (!apart)
                wrong_request("%s and %s are both %s: %s", files[i].option, files[j].option, other,
                              written ? "the results need a file of their own"
                                      : "stdin can be read once");
        }
    if (apart && options.model != NULL && strcmp(options.model, "-") == 0) {
        wrong_request("--model is -: a model needs a name, since its weights are in a file beside "
                      "it");
        apart = false;
    }
    free(weights);
    return apart;
}

void print_file_options(void)
{
    const char *between = "";
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].kind != READ && rows[i].kind != WRITTEN) continue;
        printf("%s%s", between, rows[i].option);
        between = "|";
        if (rows[i].letter != '\0') printf("|-%c", rows[i].letter);
    }
}

static void try_name(const char *name, void *guess)
{
    guess_try(guess, name);
}

static enum exit_code bad_option(const struct poptOption *table, const char *option, int error,
                                 int argc, const char **argv)
{
    const char *command = argv[0], *word = option + strspn(option, "-");
    const size_t length = strcspn(word, "=");
    char write[300];
    if (error == POPT_ERROR_BADOPT && foreign_option(word, length, argc, argv, write, sizeof write))
        return wrong_request("%s: %s; write %s. See %s --help", option, poptStrerror(error), write,
                             command);
    struct guess guess = guess_begin(word, length);
    if (error == POPT_ERROR_BADOPT && find_row(word, length, '\0') == NULL)
        visit_option_names(table, try_name, &guess);
    if (guess.best != NULL)
        return wrong_request("%s: %s; did you mean --%s? See %s --help", option,
                             poptStrerror(error), guess.best, command);
    return wrong_request("%s: %s; see %s --help", option, poptStrerror(error), command);
}

static enum exit_code unknown_algorithm(void)
{
    if (options.algorithm[0] == '\0')
        return wrong_request("--algorithm is empty; tconv-cl algorithms prints the names");
    struct guess guess = guess_begin(options.algorithm, strcspn(options.algorithm, " ,"));
    for (int i = 0; tconv_algorithm_name(i) != NULL; i++)
        guess_try(&guess, tconv_algorithm_name(i));
    return guess.best != NULL
               ? wrong_request("--algorithm %s does not exist; did you mean %s? tconv-cl "
                               "algorithms prints the names",
                               options.algorithm, guess.best)
               : wrong_request(
                     "--algorithm %s does not exist; tconv-cl algorithms prints the names",
                     options.algorithm);
}

/* Takes the arguments that are not options. False after a message. */
static bool take_arguments(poptContext context, int most, const char *command)
{
    for (int i = 0; poptPeekArg(context) != NULL; i++) {
        if (i == most) {
            wrong_request("%s is not an option; see %s --help", poptPeekArg(context), command);
            return false;
        }
        options.arguments[i] = strdup(poptGetArg(context));
        if (options.arguments[i] == NULL) {
            failed_work("the options cannot be read: no memory");
            return false;
        }
    }
    return true;
}

/* Checks that the output files can be begun, before long work. */
static enum exit_code check_results(void)
{
    enum exit_code code = EXIT_DONE;
    for (int i = 0; i < ROWS && code == EXIT_DONE; i++)
        if (rows[i].kind == WRITTEN && is_given(&rows[i]))
            code = out_file_check(rows[i].option, *text_of(&rows[i]));
    return code;
}

static void print_help(poptContext context, const char *command)
{
    poptPrintHelp(context, stdout, 0);
    if (note_of(command)[0] != '\0') printf("\n%s\n", note_of(command));
}

enum exit_code read_options(const struct poptOption *table, const char *synopsis, int argc,
                            const char **argv, bool *leave)
{
    return read_arguments(table, synopsis, argc, argv, 0, leave);
}

enum exit_code read_arguments(const struct poptOption *table, const char *synopsis, int argc,
                              const char **argv, int most, bool *leave)
{
    *leave = true;
    if (argc == 2 && strcmp(argv[1], PRINT_MANUAL) == 0) {
        print_manual(argv[0], synopsis, table);
        return EXIT_DONE;
    }
    if (argc == 2 && strcmp(argv[1], PRINT_OPTION_NAMES) == 0) {
        visit_option_names(table, print_option_name, NULL);
        return EXIT_DONE;
    }
    poptContext context = poptGetContext("tconv-cl", argc, argv, table, 0);
    if (context == NULL) return failed_work("the options cannot be read: no memory");
    poptSetOtherOptionHelp(context, synopsis);
    enum exit_code code = EXIT_DONE;
    tconv_math math;
    tconv_epilogue epilogue;
    const int result = poptGetNextOpt(context);
    if (result == HELP)
        print_help(context, argv[0]);
    else if (result == USAGE)
        poptPrintUsage(context, stdout, 0);
    else if (result == VERSION)
        printf("tconv-cl %s\n", TCONV_VERSION_STRING);
    else if (result < -1)
        code =
            bad_option(table, poptBadOption(context, POPT_BADOPTION_NOALIAS), result, argc, argv);
    else if (!take_arguments(context, most, argv[0]))
        code = EXIT_REQUEST_WRONG;
    else if (options.algorithm != NULL && strcmp(options.algorithm, "list") == 0)
        list_algorithms();
    else if (options.algorithm != NULL && !algorithm_exists(options.algorithm))
        code = unknown_algorithm();
    else if (options.math != NULL && !tconv_math_from_name(options.math, &math))
        code = wrong_request("--math is \"%s\": it must be exact or fast", options.math);
    else if (!read_epilogue(&epilogue))
        code = EXIT_REQUEST_WRONG;
    else if (!name_streams())
        code = failed_work("the options cannot be read: no memory");
    else if (!files_apart())
        code = EXIT_REQUEST_WRONG;
    else if ((code = check_results()) == EXIT_DONE)
        *leave = false;
    poptFreeContext(context);
    return code;
}

tconv_math chosen_math(void)
{
    tconv_math math = TCONV_MATH_EXACT;
    if (options.math != NULL) tconv_math_from_name(options.math, &math);
    return math;
}

/* A wrong request if an option is given whose scope is in `scopes` (1 << scope). */
static enum exit_code refuse(unsigned scopes, const char *why)
{
    for (int i = 0; i < ROWS; i++)
        if ((scopes >> rows[i].scope & 1) != 0 && is_given(&rows[i]))
            return wrong_request("%s is given, but %s", rows[i].option, why);
    return EXIT_DONE;
}

enum exit_code refuse_attributes(const char *why, bool of_suite)
{
    return refuse(1u << LAYER | 1u << (of_suite ? LAYER_OR_MODEL : LAYER_OR_SUITE), why);
}

enum exit_code refuse_layers(const char *why)
{
    return refuse(~(1u << ANY | 1u << TIMES), why);
}

enum exit_code refuse_times(const char *why)
{
    return refuse(1u << TIMES, why);
}

void free_options(void)
{
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].kind == FLAG) continue;
        free(*text_of(&rows[i]));
        *text_of(&rows[i]) = NULL;
    }
    for (size_t i = 0; i < sizeof options.arguments / sizeof *options.arguments; i++) {
        free(options.arguments[i]);
        options.arguments[i] = NULL;
    }
}
