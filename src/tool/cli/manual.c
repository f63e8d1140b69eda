/* SPDX-License-Identifier: Apache-2.0 */
/* Writes options for manual pages in roff and for completion, from the tables that --help
 * prints. */
#include "tool/tool.h"

#include <stdio.h>
#include <string.h>

/* Writes text for roff: no line begins with a dot or a quote, and hyphens stay those of the
 * keyboard. */
void print_roff(const char *text)
{
    if (*text == '.' || *text == '\'') printf("\\&");
    for (; *text != '\0'; text++)
        if (*text == '-')
            printf("\\-");
        else if (*text == '\\')
            printf("\\e");
        else if (*text == '\n')
            putchar(' ');
        else
            putchar(*text);
}

static bool is_hidden(const struct poptOption *o)
{
    return (o->argInfo & POPT_ARGFLAG_DOC_HIDDEN) != 0;
}

static bool is_end(const struct poptOption *o)
{
    return o->longName == NULL && o->shortName == '\0' && o->arg == NULL;
}

static bool is_table(const struct poptOption *o)
{
    return (o->argInfo & POPT_ARG_MASK) == POPT_ARG_INCLUDE_TABLE;
}

static void print_options(const struct poptOption *table)
{
    for (const struct poptOption *o = table; !is_end(o); o++) {
        if (is_hidden(o)) continue;
        if (is_table(o)) {
            if (o->descrip != NULL) {
                printf(".SS \"");
                print_roff(o->descrip);
                printf("\"\n");
            }
            print_options(o->arg);
            continue;
        }
        printf(".TP\n\\fB");
        if (o->shortName != '\0') printf("\\-%c\\fR, \\fB", o->shortName);
        print_roff("--");
        print_roff(o->longName);
        printf("\\fR");
        if (o->argDescrip != NULL) {
            printf("=\\fI");
            print_roff(o->argDescrip);
            printf("\\fR");
        }
        printf("\n");
        print_roff(o->descrip == NULL ? "" : o->descrip);
        printf("\n");
    }
}

const char *note_of(const char *command)
{
    static const char *const with_errors[] = {"tconv-cl bench", "tconv-cl check"};
    for (size_t i = 0; i < sizeof with_errors / sizeof *with_errors; i++)
        if (strcmp(command, with_errors[i]) == 0)
            return "max error is the largest error against the f64 reference, as a fraction of\n"
                   "the bound of rounding errors at that place (in JSON max_error, of\n"
                   "error_bound): above 1 the result is wrong.";
    return "";
}

void print_manual(const char *command, const char *synopsis, const struct poptOption *table)
{
    printf(".SH SYNOPSIS\n.B ");
    print_roff(command);
    printf("\n");
    print_roff(synopsis);
    printf("\n.SH OPTIONS\n");
    print_options(table);
    if (note_of(command)[0] == '\0') return;
    printf(".SH NOTES\n");
    print_roff(note_of(command));
    printf("\n");
}

void visit_option_names(const struct poptOption *table, void (*visit)(const char *name, void *),
                        void *context)
{
    for (const struct poptOption *o = table; !is_end(o); o++)
        if (is_table(o))
            visit_option_names(o->arg, visit, context);
        else if (!is_hidden(o) && o->longName != NULL)
            visit(o->longName, context);
}

void print_option_name(const char *name, void *context)
{
    (void)context;
    printf(" --%s", name);
}
