/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes numbers with a decimal point, whatever the application's locale is: the only
 * place of the library whose numbers have decimals (host_tests/arrows.sh looks for others). */
#ifndef TCONV_BASE_NUMBER_H
#define TCONV_BASE_NUMBER_H

/* A number as text, as an argument of a format: "%s", tconv_number(x, 6).text. */
struct tconv_number {
    char text[40];
};

/* Writes a number with at most `digits` digits, 1 to 17. */
struct tconv_number tconv_number(double value, int digits);

/* As strtod, but only decimal numbers of at most 63 characters, and no space before them. */
double tconv_number_read(const char *text, char **end);

#endif
