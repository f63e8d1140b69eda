/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that plans on a device assume. */
#ifndef TCONV_PLAN_MACHINE_RECORD_H
#define TCONV_PLAN_MACHINE_RECORD_H

#include "algorithm/cost/machine.h"
#include "device/device.h"

/* That of `info`, with what was stored for the device. A stored text that is of no use counts as
 * none. */
struct tconv_machine tconv_machine_for(tconv_device *device, const tconv_device_info *info,
                                       size_t acc_bytes);

#endif
