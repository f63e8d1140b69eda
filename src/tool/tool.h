/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all commands of the tool: exit codes, messages, options, and reading a problem from
 * options. */
#ifndef TCONV_TOOL_TOOL_H
#define TCONV_TOOL_TOOL_H

#include "base/format.h"
#include "tconv_cl/tconv_cl.h"
#include "tool/option_list.h"

#include <jansson.h>
#include <popt.h>

enum { MOST_DEVICES = 16 }; /* devices of one run */

enum exit_code { EXIT_DONE = 0, EXIT_WORK_FAILED = 1, EXIT_REQUEST_WRONG = 2 };

/* ---- messages.c: one sentence on stderr, "tconv-cl: ..." ---- */

enum exit_code wrong_request(const char *format, ...) TCONV_PRINTF(1, 2);
enum exit_code failed_work(const char *format, ...) TCONV_PRINTF(1, 2);
enum exit_code
failed_call(const tconv_error *error); /* a call of the library failed; prints its sentence */
/* Prints a notice; silent with --quiet. */
void notice(const char *format, ...) TCONV_PRINTF(1, 2);

/* Puts words and a colon before the messages that follow, behind those of calls that have not
 * ended. Returns what ends it. */
size_t messages_within(const char *words);
void messages_end(size_t outside);

/* Shows a progress bar on stderr if that is a terminal, and not with --quiet. A total of 0 removes
 * the bar. */
void progress(int done, int total, const char *what);

/* Prints the first columns of a row: an id, which is not cut off, and a layer's name. */
void print_names(const char *id, const char *layer, int width);

/* The next line of a text and its length, without the line break; moves *text behind it. NULL
 * behind the last one, and if *text is NULL. */
const char *next_line(const char **text, int *length);

/* Names for a sentence: "explicit, valid and same_upper". Begin with {"", 0}; "?" is no name. */
struct names {
    char text[1000];
    size_t last; /* where the last name begins */
};
void add_name(struct names *names, const char *name);
void end_names(struct names *names, const char *conjunction);

/* "s" for a number that is not one. */
const char *plural(int64_t count);

/* Prints a line for each algorithm. */
void print_algorithms(void);

/* The width of the longest name of an algorithm, and so of a table's column of them. */
enum { ALGORITHM_WIDTH = 17 };

/* Writes a text that begins in column `column`, and ends the line. Words beyond column `width` (0:
 * any) go on in the next line in column `below`. */
void write_lines(FILE *stream, const char *text, int column, int below, int width);

/* The same; the width is a terminal's, 100 at most. */
void write_wrapped(FILE *stream, const char *text, int column, int below);

/* The same on stdout; `below` is `column`. */
void print_wrapped(const char *text, int column);

/* Prints a line, wrapped likewise. */
void print_line(const char *format, ...) TCONV_PRINTF(1, 2);

/* Prints the blank between two parts of a row, the second of which begins in column `column`. On a
 * terminal of less than 100 columns, begins a line for that part instead. Returns the column in
 * which it begins. */
int next_part(int column);

/* True if a table is printed: stdout is not a file of results (--json -), and --quiet is not
 * combined with --json or --csv. */
bool table_wanted(void);

/* Begins coloured text on stdout, or ends it (COLOUR_NONE). Does nothing if stdout is not a
 * terminal or NO_COLOR is set. */
enum colour { COLOUR_NONE, COLOUR_SLOW, COLOUR_FAST };
void paint(enum colour colour);

/* ---- foreign.c ---- */

/* Writes what to write in place of an option of a command line that only other systems have, with
 * its value there. False if there is no such option. */
bool foreign_option(const char *name, size_t length, int argc, const char **argv, char *text,
                    size_t size);

/* What to write in place of another system's value of an option; NULL if there is no such value. */
const char *foreign_value(const char *option, const char *value);

/* ---- guess.c ---- */

/* Finds the candidate closest to a misspelt word, if one is close enough. */
struct guess {
    const char *word;
    size_t length;
    const char *best; /* NULL: none is close */
    int distance;
    int begins; /* how many candidates begin with the word */
};

struct guess guess_begin(const char *word, size_t length);
void guess_try(struct guess *guess, const char *candidate);

/* ---- system/signals.c ---- */

/* From now on the first SIGINT or SIGTERM makes `interrupted` true; a second one ends the program.
 * Ignored signals stay ignored. */
void watch_interrupts(void);
bool interrupted(void);

/* ---- json.c ---- */

/* The version of the members of all reports. A member that is added does not change it; one that is
 * renamed, removed or means something else does. */
enum { JSON_SCHEMA = 1 };

/* Writes JSON and a line break, with jansson's flags, to a file; "-" is stdout. */
enum exit_code write_json_file(const char *option, const char *path, const json_t *json,
                               size_t flags);

/* Writes JSON to the file that --json names, "-" being stdout; does nothing without --json. Takes
 * the reference. */
enum exit_code write_json(json_t *json);

/* Adds to a report what its figures depend on besides the device: the tool's version, the time in
 * UTC, the CPU's threads, and environment variables of this library and of PoCL. Takes the
 * reference. NULL if memory is missing. */
json_t *with_origin(json_t *report);

/* Makes a JSON number, or null of what is not finite. */
json_t *real_json(double value);

/* The same of what may not be known: then null. */
json_t *known_json(bool known, double value);

/* Makes a JSON array. */
json_t *numbers_json(const int64_t *numbers, int count);

/* Makes a JSON string, or null of NULL; bytes that are not UTF-8 become question marks. */
json_t *text_json(const char *text);

/* ---- numbers.c ---- */

/* Reads 1 to `most` numbers with a separator between them, and blanks around. */
enum flaw { FLAW_NONE, FLAW_TEXT, FLAW_RANGE /* of 64 bits */, FLAW_COUNT };
enum flaw parse_numbers(const char *text, char separator, int64_t *numbers, int most, int *count);

/* Writes numbers as "2,2"; "" if there are none. */
enum { NUMBERS_TEXT = 200 }; /* bytes of TCONV_MAX_RANK numbers */
void write_numbers(const int64_t *numbers, int count, char *text, size_t size);

/* Reads "2,2" as numbers. False after a message. */
bool read_numbers(const char *option, const char *text, int64_t *numbers, int most, int *count);

/* Reads a number of a range, which stays as it is if `text` is NULL. `unit` follows the range in
 * the message. False after a message. */
bool read_number(const char *option, const char *text, int64_t least, int64_t most,
                 const char *unit, int64_t *number);

/* Reads "0.5,2" as up to `most` numbers. Returns how many, or -1 after a message. */
int read_reals(const char *option, const char *text, double *numbers, int most);

/* ---- epilogue_options.c ---- */

/* Reads the epilogue from the options, without its tensors. False after a message. */
bool read_epilogue(tconv_epilogue *epilogue);

/* The activations with at least so many slopes; 0: all. */
struct names activation_names(int slopes);

/* ---- options.c: options that several commands take ---- */

struct options {
#define MEMBER_TEXT char *
#define MEMBER_FLAG int
#define MEMBER_READ char *
#define MEMBER_WRITTEN char *
#define MEMBER(scope, kind, member, name, letter, value, help) MEMBER_##kind member;
    ALL_OPTIONS(MEMBER)
#undef MEMBER
    char *arguments[2]; /* arguments that are not options: reports to compare */
};

extern struct options options; /* global, because popt's tables point to its members */

/* Every option stands in one of these tables. A command includes the tables that it takes, and
 * `refused_table` for a sentence about other options. */
extern const struct poptOption device_table[], refused_table[], common_table[], shape_table[],
    attribute_table[], algorithm_table[], math_table[], suite_table[], model_table[], file_table[],
    bench_table[], report_table[], trace_table[], compare_table[], tune_table[], prepare_table[],
    check_table[], epilogue_table[], help_table[];

/* A part of a command's table, with its title in --help, and the parts that several commands have:
 * where layers come from, and the end of a command with --device or without. */
/* clang-format off */
#define PART(table, title) {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(table), 0, title, NULL}
#define LAYER_PARTS                                                                                \
    PART(suite_table, "A suite of layers:"),                                                       \
    PART(model_table, "Or a model (--data-shape for extents that it leaves open):"),               \
    PART(shape_table, "Or one layer, by its shapes:")
#define END_WITH_DEVICE                                                                            \
    PART(device_table, "Options:"), PART(common_table, NULL), PART(help_table, "Help options:"),   \
    POPT_TABLEEND
#define END_WITHOUT_DEVICE                                                                         \
    PART(common_table, "Options:"), PART(refused_table, NULL),                                     \
    PART(help_table, "Help options:"), POPT_TABLEEND
/* clang-format on */

/* True if an option has a value. It is named by its long name of `length` characters, or if `name`
 * is NULL by its letter. */
bool option_takes_value(const char *name, size_t length, char letter);

/* Prints the options whose values are files, with | between them. */
void print_file_options(void);

/* Reads the arguments of a command with its `table`. Left-over arguments and unknown options are
 * wrong requests. Returns EXIT_DONE, or the code to leave with; *leave is also set after --help and
 * --usage. */
enum exit_code read_options(const struct poptOption *table, const char *synopsis, int argc,
                            const char **argv, bool *leave);

/* The same for a command with up to `most` arguments that are not options: options.arguments. */
enum exit_code read_arguments(const struct poptOption *table, const char *synopsis, int argc,
                              const char **argv, int most, bool *leave);
void free_options(void);

/* The value of --math. */
tconv_math chosen_math(void);

/* Refuses options that give attributes of a layer, if the layer comes from a model or a suite. A
 * model leaves --data-shape, --output-shape and --rules open, a suite --data-format. */
enum exit_code refuse_attributes(const char *why, bool of_suite);

/* Refuses all options about layers, types and epilogues. */
enum exit_code refuse_layers(const char *why);

/* Refuses all options about times. */
enum exit_code refuse_times(const char *why);

/* ---- device_options.c ---- */

/* The number of the default device. */
enum exit_code default_device(int *number);

/* The device number that --device names, or the default one. */
enum exit_code choose_device(int *number);

/* The same for a command that takes several, with commas between them, at most `most`. */
enum exit_code choose_devices(int *numbers, int most, int *count);

/* Prints the device that a table is about. */
void print_device(int number, const tconv_device *device);

/* ---- problem_options.c ---- */

/* Reads rules, pads, groups, formats and types from the options. False after a message. */
bool read_scalars(tconv_problem *problem);

/* Reads an attribute's list, if `text` is not NULL. One number stands for every axis. False after a
 * message. */
bool read_attribute(const char *option, const char *text, int axes, tconv_list *list);

/* Reads the attributes from the options, for data and filter of the given shapes (from --data-shape
 * or from files). */
enum exit_code read_problem(const tconv_shape *data, const tconv_shape *filter,
                            tconv_problem *problem);

/* The same with the shapes from --data-shape and --filter-shape. */
enum exit_code read_problem_with_shapes(tconv_problem *problem);

/* Prints the problem's notes (tconv_problem_notes). */
void tell_notes(const char *layer, const tconv_problem *problem);

/* ---- devices.c ---- */

/* A device's properties, for the JSON of several commands. `threads`: tconv_device_threads, or
 * negative if the device cannot be opened. */
json_t *device_json(int number, const tconv_device_info *device, int threads);
json_t *device_object_json(int number, const tconv_device *device);

/* Tells what the library uses of a device, line by line. */
void describe_device(const tconv_device_info *device, void (*tell)(const char *line));

/* The folder of a device's search results; NULL, after a notice, if there is none. */
const char *results_folder(const tconv_device *device);

/* Tells how many threads compute on a processor, and how: a line, or nothing. */
void describe_threads(const tconv_device_info *device, int threads, void (*tell)(const char *line));

/* ---- records.c ---- */

/* Lists what tune stored for the device that the options name. */
enum exit_code list_records(void);

/* ---- share.c ---- */

/* Writes what tune stored for the device that the options name to the file of --share, or stores
 * the results that the file of --import has. */
enum exit_code share_results(void);
enum exit_code import_results(void);

/* ---- tune_machine.c ---- */

/* Measures the fields of the cost model, or takes --fields, and stores them for the device that the
 * options name. */
enum exit_code tune_machine(void);

/* ---- the commands ---- */

/* The commands by index, in the order of --help; NULL past the last one. What each does, in a few
 * words; whether it has options of its own; and running one, which exists, with an option. */
const char *command_name(int index);
const char *command_summary(const char *name);
bool command_has_options(const char *name);
enum exit_code run_command(const char *name, const char *option);

/* The variables of the environment that users of the tool need; the last one has no name. */
struct variable {
    const char *name, *meaning;
};
extern const struct variable known_variables[];

/* True if the tool, and not its user, set POCL_DEVICES (tconv_threads_enable). */
bool sets_pocl_devices(void);

/* Hidden arguments with which a command prints synopsis and options for its manual page, or the
 * names of its options. print_roff escapes a text for roff. */
#define PRINT_MANUAL "--print-manual"
#define PRINT_OPTION_NAMES "--print-option-names"
void print_manual(const char *command, const char *synopsis, const struct poptOption *table);

/* What --help and the manual page say behind the options of "tconv-cl COMMAND"; "" for most. */
const char *note_of(const char *command);
void print_roff(const char *text);
void print_option_name(const char *name, void *context);

/* Calls `visit` with each long name that --help prints. */
void visit_option_names(const struct poptOption *table, void (*visit)(const char *name, void *),
                        void *context);

enum exit_code command_algorithms(int argc, const char **argv);
enum exit_code command_manual(int argc, const char **argv);
enum exit_code command_completion(int argc, const char **argv);
enum exit_code command_bench(int argc, const char **argv);
enum exit_code command_compare(int argc, const char **argv);
enum exit_code command_run(int argc, const char **argv);
enum exit_code command_shape(int argc, const char **argv);
enum exit_code command_devices(int argc, const char **argv);
enum exit_code command_check(int argc, const char **argv);
enum exit_code command_report(int argc, const char **argv);
enum exit_code command_tune(int argc, const char **argv);
enum exit_code command_prepare(int argc, const char **argv);

#endif
