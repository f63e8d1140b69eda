/* SPDX-License-Identifier: Apache-2.0 */
/* What runs on host arrays share. */
#ifndef TCONV_HOST_HOST_H
#define TCONV_HOST_HOST_H

#include "tconv_cl/host.h"

/* Which tensors the epilogue has, from which arrays there are. */
void tconv_host_take_arrays(const tconv_arrays *arrays, tconv_epilogue *epilogue);

/* An error where an array is missing. */
tconv_status tconv_host_check_arrays(const tconv_arrays *arrays, const tconv_epilogue *epilogue,
                                     tconv_error *error);

#endif
