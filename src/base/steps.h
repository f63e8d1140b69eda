/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the element steps that a problem gives. */
#ifndef TCONV_BASE_STEPS_H
#define TCONV_BASE_STEPS_H

#include "tconv_cl/problem.h"

/* Checks the steps' counts and least values, the bytes that they reach, and that elements of the
 * output do not overlap. The geometry is resolved, and perhaps narrowed, but for the bytes of data,
 * output, residual and filter: these are set. Returns TCONV_ERROR_ATTRIBUTE. */
tconv_status tconv_steps_resolve(const tconv_problem *problem, tconv_geometry *geometry,
                                 tconv_error *error);

/* Refuses steps of a residual that the epilogue does not have. Returns TCONV_ERROR_ARGUMENT. */
tconv_status tconv_steps_check_residual(const tconv_problem *problem, bool residual,
                                        tconv_error *error);

/* The problem with dense data, output and residual. */
tconv_problem tconv_without_steps(const tconv_problem *problem);

#endif
