/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a plan may use the unit that a candidate needs: only if the unit passed its probe
 * for the problem's types and the candidate's tile. */
#ifndef TCONV_PLAN_UNIT_H
#define TCONV_PLAN_UNIT_H

#include "plan/plan_internal.h"

/* Probes the unit that a candidate would use. `*right` is also true if it uses no unit. */
tconv_status tconv_plan_test_unit(tconv_plan *plan, const struct tconv_candidate *candidate,
                                  bool *right, tconv_error *error);

/* The same. If the probe fails, the plan stops using the unit and `*lost` is true. Candidates must
 * then be enumerated again: algorithms with portable code have other candidates, the others are
 * passed over. A unit that has a trial (algorithm/gpu/units.h) only loses the tile; if the trial
 * failed, the unit behind it is used instead. */
tconv_status tconv_plan_settle_unit(tconv_plan *plan, const struct tconv_candidate *candidate,
                                    bool *lost, tconv_error *error);

/* After the kernels of a candidate turned out to be unfit: leaves its tile out if its unit has a
 * trial, which passed. True: candidates must be enumerated again. */
bool tconv_plan_refuse_tile(tconv_plan *plan, const struct tconv_candidate *candidate);

/* Settles the unit for all tiles that a search may time. */
tconv_status tconv_plan_settle_units(tconv_plan *plan, tconv_error *error);

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

/* The verdict of the probe that is called so: above 0 right, below 0 wrong, 0 not asked yet. It
 * lives as long as the device. NULL without memory. Any thread. */
atomic_int *tconv_device_verdict(tconv_device *device, const char *probe);

#endif
