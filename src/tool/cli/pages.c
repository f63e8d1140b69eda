/* SPDX-License-Identifier: Apache-2.0 */
/* The commands manual and completion: write pages and scripts about all other commands. */
#include "tool/tool.h"

#include <stdio.h>
#include <string.h>

static void print_name(const char *command)
{
    printf(".TH TCONV\\-CL\\-%s 1 \"\" \"tconv\\-cl %s\"\n.SH NAME\ntconv\\-cl\\-%s \\- ", command,
           TCONV_VERSION_STRING, command);
    print_roff(command_summary(command));
    printf("\n");
}

static void print_end(void)
{
    printf(".SH EXIT STATUS\n0: done. 1: the work failed (device, memory, a file, a comparison). "
           "2: the request is wrong.\n.SH SEE ALSO\n");
}

/* The page of the tool itself. */
static void print_overview(void)
{
    printf(".TH TCONV\\-CL 1 \"\" \"tconv\\-cl %s\"\n.SH NAME\ntconv\\-cl \\- transposed "
           "convolution on any OpenCL device: times, verifies and computes layers\n.SH SYNOPSIS\n"
           ".B tconv\\-cl\n.RI [ COMMAND ]\n.RI [ OPTION ...]\n.SH COMMANDS\n",
           TCONV_VERSION_STRING);
    for (int i = 0; command_name(i) != NULL; i++) {
        printf(".TP\n.B ");
        print_roff(command_name(i));
        printf("\n");
        print_roff(command_summary(command_name(i)));
        printf("\n");
    }
    printf(".PP\nOptions without a command are those of\n.BR bench .\n.SH ENVIRONMENT\n");
    for (int i = 0; known_variables[i].name != NULL; i++) {
        printf(".TP\n.B %s\n", known_variables[i].name);
        print_roff(known_variables[i].meaning);
        printf("\n");
    }
    print_end();
    for (int i = 0; command_name(i) != NULL; i++) {
        if (!command_has_options(command_name(i))) continue;
        printf(".BR tconv\\-cl\\-%s (1)\n", command_name(i));
    }
}

enum exit_code command_manual(int argc, const char **argv)
{
    if (argc > 2) return wrong_request("manual takes one command, but %s follows", argv[2]);
    if (argc == 1) {
        print_overview();
        return EXIT_DONE;
    }
    if (!command_has_options(argv[1]))
        return wrong_request("%s is not a command with a manual page; tconv-cl --help lists the "
                             "commands",
                             argv[1]);
    print_name(argv[1]);
    const enum exit_code code = run_command(argv[1], PRINT_MANUAL);
    print_end();
    printf(".BR tconv\\-cl (1)\n");
    return code;
}

/* Writes the branch of the completion's `case` that takes an option's values: those that `name`
 * gives for `first` and the numbers behind it, until NULL. */
static void print_values(const char *names, const char *(*name)(int), int first)
{
    printf("    %s) words=\"", names);
    for (int i = first; name(i) != NULL; i++) printf("%s%s", i == first ? "" : " ", name(i));
    printf("\" ;;\n");
}

/* The names of an enumeration by number, NULL behind the last one. */
#define NAMES_OF(kind)                                                                             \
    static const char *kind##_at(int number)                                                       \
    {                                                                                              \
        const char *text = tconv_##kind##_name((tconv_##kind)number);                              \
        return strcmp(text, "?") == 0 ? NULL : text;                                               \
    }
NAMES_OF(type)
NAMES_OF(auto_pad)
NAMES_OF(rules)
NAMES_OF(math)
NAMES_OF(activation)
NAMES_OF(data_format)
NAMES_OF(filter_format)

/* Writes how the value of the option $option is completed. Nothing to choose from means files. */
static void print_all_values(void)
{
    printf("    COMPREPLY=()\n"
           "    case $option in\n"
           "    ");
    print_file_options();
    printf(") return ;;\n");
    print_values("--type|--filter-type|--output-type", type_at, TCONV_F32);
    print_values("--auto-pad", auto_pad_at, TCONV_EXPLICIT);
    print_values("--rules", rules_at, TCONV_RULES_SPEC);
    print_values("--math", math_at, TCONV_MATH_EXACT);
    print_values("--activation", activation_at, 0);
    print_values("--data-format", data_format_at, TCONV_NCX);
    print_values("--filter-format", filter_format_at, TCONV_OIX);
    print_values("--algorithm|-a", tconv_algorithm_name, 0);
    printf("    --device|-d) words=\"gpu cpu accelerator $(tconv-cl devices 2>/dev/null | "
           "sed -n 's/^\\([0-9][0-9]*\\)[* ].*/\\1/p')\" ;;\n"
           "    --ids) words=$(tconv-cl bench --list 2>/dev/null | cut -d ' ' -f 1)\n"
           "        word=$(printf %%s \"$word\" | tr a-z A-Z) ;;\n"
           "    esac\n");
}

/* Writes one completion function for both shells; zsh uses bash's by bashcompinit. */
enum exit_code command_completion(int argc, const char **argv)
{
    const bool zsh = argc == 2 && strcmp(argv[1], "zsh") == 0;
    if (argc != 2 || (!zsh && strcmp(argv[1], "bash") != 0))
        return wrong_request("completion takes the name of a shell: bash or zsh");
    if (zsh)
        printf("#compdef tconv-cl\n"
               "autoload -U +X bashcompinit && bashcompinit\n");
    printf("# Completion for tconv-cl %s; from `tconv-cl completion %s`.\n"
           "_tconv_cl() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} before= "
           "words=\n"
           "    if [ \"$word\" = = ]; then word=; # --type=f16 is three words\n"
           "    elif [ \"$option\" = = ]; then option=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
           "    case $word in *,*) before=${word%%,*}, word=${word##*,} ;; esac\n",
           TCONV_VERSION_STRING, argv[1]);
    print_all_values();
    printf("    if [ \"$COMP_CWORD\" != 1 ] && "
           "[ \"${COMP_WORDS[1]} ${word#-}\" = \"compare $word\" ]; then return; fi\n"
           "    if [ -z \"$words\" ]; then case ${COMP_WORDS[1]} in\n");
    enum exit_code code = EXIT_DONE;
    for (int i = 0; command_name(i) != NULL && code == EXIT_DONE; i++) {
        if (!command_has_options(command_name(i))) continue;
        printf("    %s) words=\"", command_name(i));
        code = run_command(command_name(i), PRINT_OPTION_NAMES);
        printf("\" ;;\n");
    }
    printf("    *) words=\"");
    for (int i = 0; command_name(i) != NULL; i++) printf(" %s", command_name(i));
    printf("\" ;;\n"
           "    esac; fi\n"
           "    if [ \"$COMP_CWORD\" = 1 ]; then words=\"");
    for (int i = 0; command_name(i) != NULL; i++) printf(" %s", command_name(i));
    printf("\"; fi\n"
           "    COMPREPLY=($(compgen -P \"$before\" -W \"$words\" -- \"$word\"))\n"
           "}\n"
           "complete -o default -F _tconv_cl tconv-cl\n");
    return code;
}
