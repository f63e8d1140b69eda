/* SPDX-License-Identifier: Apache-2.0 */
/* How the algorithms for CPUs divide a layer: what several of them choose alike. */
#ifndef TCONV_ALGORITHM_DIVISION_H
#define TCONV_ALGORITHM_DIVISION_H

#include "algorithm/any/folded.h"

enum {
    TCONV_PRODUCT_VECTORS = 4,  /* the most NX of cl/cpu/parts/products.clh */
    TCONV_BLOCK_DIVISIONS = 10, /* the most that tconv_divide_blocks lists */
};

/* Bytes of local memory for the tiles of a work-item: `share` of l2, which has the weights besides,
 * or fewer if the device has fewer. */
double tconv_local_budget(const struct tconv_folded *folded, double share,
                          const tconv_device_info *device);

/* Chooses MW, the output channels of a block, for kernels that add by cl/cpu/parts/products.clh. It
 * may depend on channels, kernel and stride, not on extents, so that packed filters are shared.
 * Each block adds `block` of a tap's cycles. Each channel of a block adds `hold` of them, once for
 * `work` multiply-adds. */
int tconv_product_channels(const struct tconv_folded *folded, double block, double hold,
                           double work);

/* Lists how many of `blocks` blocks of output channels a work-item may take: all, a half, a third
 * and so on. Returns the length of the list. */
int tconv_divide_blocks(int64_t blocks, int64_t item_blocks[TCONV_BLOCK_DIVISIONS]);

#endif
