/* SPDX-License-Identifier: Apache-2.0 */
/* The cost model's machine of a device, with the fields that were stored for the device. */
#ifndef TCONV_PLAN_MACHINE_RECORD_H
#define TCONV_PLAN_MACHINE_RECORD_H

#include "algorithm/cost/machine.h"
#include "device/device.h"

/* The machine of `info` with the stored fields. A stored text that cannot be read is ignored. */
struct tconv_machine tconv_machine_for(tconv_device *device, const tconv_device_info *info,
                                       size_t acc_bytes);

#endif
