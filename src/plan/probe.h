/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a device's matrix unit computes what it should: asked once for each pair of element types
 * and tile, by running the algorithm that uses it on small problems whose results are known. CPUs
 * add up products in one instruction, which is asked by a kernel of its own. */
#ifndef TCONV_PLAN_PROBE_H
#define TCONV_PLAN_PROBE_H

#include "plan/plan_internal.h"

/* `*right`: whether a plan of these types may use the matrix unit of `device` by `tile`, an
 * algorithm and tile parameters as text. The first question compiles and runs kernels, later ones
 * are answered from memory. It is false after a wrong result, and where the device does not build
 * or run a kernel. Every other error is returned; then the next question tries again. Any thread;
 * of two that ask at once both may run the problems. */
tconv_status tconv_probe_matrix(tconv_device *device, tconv_type data_type, tconv_type filter_type,
                                const char *tile, bool *right, tconv_error *error);

/* The same for the instructions of CPUs that multiply words of `word` channels of bytes
 * (`type` is any of theirs) or bf16: cl/cpu/parts/words.clh. Only for units that the processor
 * itself says it has, since what it does not know ends the process. */
tconv_status tconv_probe_words(tconv_device *device, tconv_type type, int word, bool *right,
                               tconv_error *error);

/* Runs the small problems in these types with an algorithm, or one of its tiles but for the
 * division of input channels, for which they have too few, with whatever unit the device is said to
 * have. A problem that the tile does not take is left out; an error where none takes it. */
tconv_status tconv_probe_run(tconv_device *device, tconv_type data_type, tconv_type filter_type,
                             const char *tile, bool *right, tconv_error *error);

#endif
