/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: an in-order queue with buffers for the arrays of one call, kept by their device object for
 * later calls. A lane uploads, downloads, or uses the caller's arrays in place. */
#ifndef TCONV_DEVICE_LANE_H
#define TCONV_DEVICE_LANE_H

#include "base/view.h"
#include "tconv_cl/device.h"

#include <CL/cl.h>

/* The arrays of a call that have a buffer. */
enum tconv_role {
    TCONV_ROLE_DATA,
    TCONV_ROLE_FILTER,
    TCONV_ROLE_BIAS,
    TCONV_ROLE_SCALE,
    TCONV_ROLE_SLOPE,
    TCONV_ROLE_SLOPE2,
    TCONV_ROLE_RESIDUAL,
    TCONV_ROLE_OUTPUT,
    TCONV_ROLE_PACKED, /* the packed filter of one call */
    TCONV_ROLE_WORKSPACE,
    TCONV_ROLES
};

struct tconv_lane;

/* Takes a lane of the device for one call alone, until tconv_lane_give_back. Any thread. */
tconv_status tconv_lane_take(tconv_device *device, struct tconv_lane **out, tconv_error *error);

/* Waits for the lane's commands and releases the buffers over the caller's arrays. The lane's own
 * buffers stay for the next call. */
void tconv_lane_give_back(struct tconv_lane *lane);

cl_command_queue tconv_lane_queue(const struct tconv_lane *lane);

/* Waits for all commands. */
tconv_status tconv_lane_finish(struct tconv_lane *lane, tconv_error *error);

/* A buffer of the lane's own of at least `bytes`; its contents are undefined. */
tconv_status tconv_lane_space(struct tconv_lane *lane, enum tconv_role role, uint64_t bytes,
                              cl_mem *out, tconv_error *error);

/* Makes a buffer with the `bytes` at `source`, which must stay valid until the lane has finished;
 * an element has `element` bytes. The buffer is in place if the device allows it, `source` is
 * aligned to its elements, and `alone` is true: no other array of the call overlaps `source`. */
tconv_status tconv_lane_upload(struct tconv_lane *lane, enum tconv_role role, const void *source,
                               uint64_t bytes, size_t element, bool alone, cl_mem *out,
                               tconv_error *error);

/* Makes a buffer for the output at `target`, in place if the device allows it and `target` is
 * aligned to its elements. If `read` is true, the buffer has the contents of `target`. */
tconv_status tconv_lane_output(struct tconv_lane *lane, void *target, uint64_t bytes,
                               size_t element, bool read, cl_mem *out, tconv_error *error);

/* Waits for all commands. Then `target` holds what they wrote into the buffer of
 * tconv_lane_output. What lies between the elements of the view, of `element` bytes each, is not
 * written. */
tconv_status tconv_lane_download(struct tconv_lane *lane, void *target, uint64_t bytes,
                                 const struct tconv_view *view, size_t element, tconv_error *error);

/* Releases the lanes that no call uses. Any thread. */
void tconv_lanes_release(tconv_device *device);

#endif
