/* SPDX-License-Identifier: Apache-2.0 */
/* Selection and kernel plans of one layer, checked without any device. */
#ifndef TCONV_FUZZ_KERNEL_PLANS_H
#define TCONV_FUZZ_KERNEL_PLANS_H

#include "algorithm/algorithm.h"

/* Asks algorithm number `algorithm` modulo their count + 1 for the layer, counted from 1 on, and
 * writes the kernel plan where it accepts; stops where a cost, a size or a launch is impossible. 0:
 * does so with all of them, and stops where selection does not take the cheapest one. */
void fuzz_check_kernel_plans(const struct tconv_request *request, uint64_t algorithm);

#endif
