/* SPDX-License-Identifier: Apache-2.0 */
/* What cl/cpu/parts/words_probe.cl multiplies. Read by the host (C) and by the kernel (OpenCL
 * C). */
#ifndef TCONV_WORDS_PROBE_H
#define TCONV_WORDS_PROBE_H

enum { PROBE_WORDS = 4 }; /* words of data */

#endif
