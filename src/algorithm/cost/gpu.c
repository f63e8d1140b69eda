/* SPDX-License-Identifier: Apache-2.0 */
/* Costs on GPUs. */
#include "algorithm/cost/gpu.h"

#include "algorithm/any/folded.h"
#include "base/checked.h"

/* OpenCL counts vector engines of Intel's GPUs as compute units. A core has as many matrix engines
 * (dpas) as vector engines, or none. Those of Xe-HPG are 4 deep, those of Xe-HPC 8. */
double tconv_gpu_registers(const struct tconv_machine *m, const tconv_device_info *device,
                           bool large, double needed)
{
    if (device->subgroup_least == 0) return needed;
    const int shared = large && tconv_has_large_registers(device) ? 2 : 1;
    return m->unit_registers * shared /
           (m->core_engines * m->engine_threads * device->subgroup_least);
}

double tconv_gpu_units(const struct tconv_machine *m, const tconv_device_info *device)
{
    return device->subgroup_least > 0 && m->units >= m->core_engines
               ? (double)((int64_t)m->units / (int64_t)m->core_engines)
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
