/* SPDX-License-Identifier: Apache-2.0 */
/* Probes whether a device's matrix unit computes correctly. A probe runs the algorithm that uses
 * the unit on small problems with known results, once for each pair of element types and tile. The
 * dot-product instructions of CPUs have a probe of their own, by a single kernel. */
#ifndef TCONV_PLAN_PROBE_H
#define TCONV_PLAN_PROBE_H

#include "plan/plan_internal.h"

/* Sets `*right` to true if a plan of these types may use the matrix unit of `device` with `tile`,
 * an algorithm and tile parameters as text. `*right` is false after a wrong result, and if the
 * device does not build or run a kernel. The first call compiles and runs kernels; the answer is
 * kept for later calls, unless a program may build later, which `retry` then tells. Every other
 * error is returned, and the next call tries again. Any thread; two that call at once may both run
 * the problems. */
tconv_status tconv_probe_matrix(tconv_device *device, tconv_type data_type, tconv_type filter_type,
                                const char *tile, struct tconv_retry *retry, bool *right,
                                tconv_error *error);

/* The same for the instructions of CPUs that multiply words of `word` channels of bytes (`type` is
 * either type of bytes) or bf16: cl/cpu/parts/words.clh. Call it only for units that the processor
 * itself reports: an unknown instruction ends the process. */
tconv_status tconv_probe_words(tconv_device *device, tconv_type type, int word,
                               struct tconv_retry *retry, bool *right, tconv_error *error);

/* Runs the small problems in these types with an algorithm or one of its tiles, on the unit that
 * the device's properties name. The tile's division of input channels is ignored: the problems have
 * too few. A problem that the tile does not take is skipped. Returns an error if the tile takes
 * none. */
tconv_status tconv_probe_run(tconv_device *device, tconv_type data_type, tconv_type filter_type,
                             const char *tile, struct tconv_retry *retry, bool *right,
                             tconv_error *error);

#endif
