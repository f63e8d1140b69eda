/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the data that a work-group of cl/gpu/copy.clh copies. Read by the host (C) and by the
 * kernel (OpenCL C). */
#ifndef TCONV_COPY_TABLE_H
#define TCONV_COPY_TABLE_H

enum { COPIED_POINTS = 64, COPIED_BYTES = 128 /* of the channels of a point */ };

#endif
