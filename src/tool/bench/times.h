/* SPDX-License-Identifier: Apache-2.0 */
/* The clock, and what several measured times say together. */
#ifndef TCONV_TOOL_TIMES_H
#define TCONV_TOOL_TIMES_H

/* Seconds since some fixed moment. */
double now(void);

/* The median of times, which it sorts. */
double median(double *seconds, int count);

#endif
