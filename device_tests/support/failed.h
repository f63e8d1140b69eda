/* SPDX-License-Identifier: Apache-2.0 */
/* How a device test fails. */
#ifndef TCONV_DEVICE_TESTS_FAILED_H
#define TCONV_DEVICE_TESTS_FAILED_H

#include "base/format.h"

/* Fails the test with printf's text. */
void failed(const char *format, ...) TCONV_PRINTF(1, 2) __attribute__((noreturn));

#endif
