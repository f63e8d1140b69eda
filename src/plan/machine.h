/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of the cost model for a device, with the fields that are stored for it. */
#ifndef TCONV_PLAN_MACHINE_H
#define TCONV_PLAN_MACHINE_H

#include "algorithm/cost/machine.h"
#include "device/device.h"

/* The machine of `info` with the stored fields. A stored text that cannot be read is ignored. */
struct tconv_machine tconv_machine_for(tconv_device *device, const tconv_device_info *info,
                                       size_t acc_bytes);

#endif
