/* SPDX-License-Identifier: Apache-2.0 */
/* Costs on GPUs. Costs are multiply-adds that all compute units could have done in the time. */
#ifndef TCONV_ALGORITHM_COST_GPU_H
#define TCONV_ALGORITHM_COST_GPU_H

#include "algorithm/algorithm.h"

/* The compute units of a device that have local memory of their own. */
double tconv_gpu_units(const struct tconv_machine *m, const tconv_device_info *device);

/* Registers of a work-item that needs `needed` of them. On Intel's GPUs a thread has 128, or
 * `large` 256, whatever it needs, and a fixed number of threads is resident. */
double tconv_gpu_registers(const struct tconv_machine *m, const tconv_device_info *device,
                           bool large, double needed);

/* The work-groups of the busiest compute unit. */
double tconv_gpu_rounds(double groups, double units);

/* What a launch does, for algorithms that count their kernels' instructions and bytes. */
struct tconv_gpu_launch {
    double units;  /* compute units that share the work */
    double cycles; /* of the busiest unit */
    double l2;     /* bytes that all units read from the second-level cache */
    double dram;   /* bytes that they read from memory and write to it */
};

/* The cost of a launch. Compute units compute while they read. */
double tconv_gpu_launch_cost(const struct tconv_machine *m, const struct tconv_gpu_launch *launch);

/* The cost of a launch of a portable algorithm, whose `cost` counts multiply-adds only. On a GPU
 * each multiply-add takes as long as `loads` of them, because each load serves few of them, and a
 * launch takes at least the latencies of the `iterations` of a work-item. On other devices the cost
 * stays as it is. */
double tconv_gpu_portable_cost(const struct tconv_request *request, double cost, double loads,
                               double iterations);

#endif
