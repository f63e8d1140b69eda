/* SPDX-License-Identifier: Apache-2.0 */
/* Costs on GPUs. */
#include "algorithm/cost/gpu.h"

#include "algorithm/any/folded.h"
#include "base/checked.h"

/* How many vector engines of Intel's GPUs, which OpenCL counts as compute units, share local memory
 * as a core. Xe-HP and Xe-HPG have 16 of 8 lanes; Xe-HPC and Xe2 have 8 of 16 lanes, Gen9 has 8 of
 * 8 lanes. A core has as many matrix engines (dpas) as vector engines, or none. Those of Xe-HPG
 * are 4 deep, those of Xe-HPC 8. Sources: "Introduction to the Xe-HPG Architecture" (Intel, 2022);
 * "Ponte Vecchio" (Intel, Hot Chips 2021); max_eus_per_wg and threads_per_eu in oneDNN's
 * src/gpu/intel/compute/device_info.cpp. */
static int engines_of_core(const tconv_device_info *device)
{
    const bool xe_hp = device->architecture == TCONV_ARCHITECTURE_INTEL_XE_HP;
    return xe_hp && device->subgroup_least == 8 ? 16 : 8;
}

/* How many threads an engine holds. Gen9 to Xe-LP have 7 threads. */
static int threads_of_engine(const tconv_device_info *device, bool large)
{
    if (device->architecture != TCONV_ARCHITECTURE_INTEL_XE_HP) return 7;
    return large ? 4 : 8;
}

double tconv_gpu_registers(const struct tconv_machine *m, const tconv_device_info *device,
                           bool large, double needed)
{
    if (device->subgroup_least == 0) return needed;
    const double threads = engines_of_core(device) * threads_of_engine(device, large);
    return m->unit_registers / (threads * device->subgroup_least);
}

double tconv_gpu_units(const struct tconv_machine *m, const tconv_device_info *device)
{
    const int engines = engines_of_core(device);
    return device->subgroup_least > 0 && m->units >= engines ? (double)((int64_t)m->units / engines)
                                                             : m->units;
}

double tconv_gpu_rounds(double groups, double units)
{
    enum { MANY = 1 << 20 };
    const double each = groups / units;
    return each > MANY ? each : (double)tconv_ceil_div((int64_t)groups, (int64_t)units);
}

double tconv_gpu_launch_cost(const struct tconv_machine *m, const struct tconv_gpu_launch *launch)
{
    const double l2 = launch->l2 / launch->units / m->unit_l2,
                 dram = launch->dram / launch->units / m->unit_dram;
    const double cycles = tconv_larger(launch->cycles, tconv_larger(l2, dram));
    return (cycles + m->gpu_launch) * launch->units * m->unit_lanes;
}

double tconv_gpu_portable_cost(const struct tconv_request *request, double cost, double loads,
                               double iterations)
{
    const struct tconv_machine *m = &request->machine;
    if (request->device->kind != TCONV_DEVICE_GPU) return cost;
    return cost * loads + (m->gpu_begin + m->gpu_wait * iterations) * m->units * m->unit_lanes;
}
