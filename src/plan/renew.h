/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a plan anew that is stale (tconv_plan_is_stale), for src/device_layer. */
#ifndef TCONV_PLAN_RENEW_H
#define TCONV_PLAN_RENEW_H

#include "tconv_cl/plan.h"

/* Makes another plan of the same problem, device and options. It looks for a stored result if the
 * old plan did, but does not measure. */
tconv_status tconv_plan_renew(const tconv_plan *plan, tconv_plan **out, tconv_error *error);

#endif
