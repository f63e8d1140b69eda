/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the values of options: numbers and lists of numbers. */
#include "tool/tool.h"

#include <errno.h>
#include <stdlib.h>

bool read_numbers(const char *option, const char *text, int64_t *numbers, int most, int *count)
{
    *count = 0;
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        const long long number = strtoll(at, &end, 10);
        if (end == at || (*end != ',' && *end != '\0') || (*end == ',' && most == 1)) {
            wrong_request(
                most == 1
                    ? "%s is \"%s\": it must be a number"
                    : "%s is \"%s\": it must be numbers with commas between them, for example 2,2",
                option, text);
            return false;
        }
        if (errno == ERANGE) {
            wrong_request("%s is \"%s\": a number does not fit into 64 bits", option, text);
            return false;
        }
        if (*count == most) {
            wrong_request("%s is \"%s\": more than %d numbers", option, text, most);
            return false;
        }
        numbers[(*count)++] = number;
        if (*end == '\0') return true;
        at = end;
    }
}

int read_reals(const char *option, const char *text, double *numbers, int most)
{
    int count = 0;
    for (const char *at = text;; at++) {
        char *end;
        const double number = strtod(at, &end);
        if (end == at || (*end != ',' && *end != '\0') || count == most) {
            wrong_request("%s is \"%s\": %s needed", option, text,
                          most == 1 ? "a number is" : "two numbers with a comma between them are");
            return -1;
        }
        numbers[count++] = number;
        if (*end == '\0') return count;
        at = end;
    }
}
