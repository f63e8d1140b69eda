/* SPDX-License-Identifier: Apache-2.0 */
/* A lane is an in-order queue with buffers for the arrays of one call: uploads, downloads, and
 * arrays in place. */
#ifndef TCONV_SESSION_LANE_H
#define TCONV_SESSION_LANE_H

#include "tconv_cl/session.h"

/* What a call has a buffer for. */
enum tconv_role {
    TCONV_ROLE_DATA,
    TCONV_ROLE_FILTER,
    TCONV_ROLE_BIAS,
    TCONV_ROLE_SCALE,
    TCONV_ROLE_SLOPE,
    TCONV_ROLE_RESIDUAL,
    TCONV_ROLE_OUTPUT,
    TCONV_ROLE_PACKED, /* weights that one call packs */
    TCONV_ROLE_WORKSPACE,
    TCONV_ROLES
};

struct tconv_lane;

/* A lane of the session that no other call has, until tconv_lane_give_back. */
tconv_status tconv_lane_take(tconv_session *session, struct tconv_lane **out, tconv_error *error);

/* Waits for the lane's commands and lets go of the caller's arrays. Buffers of the lane's own stay
 * for the next call, where `keep` is true. */
void tconv_lane_give_back(struct tconv_lane *lane, bool keep);

cl_command_queue tconv_lane_queue(const struct tconv_lane *lane);

/* Waits for all commands. */
tconv_status tconv_lane_finish(struct tconv_lane *lane, tconv_error *error);

/* A buffer of the lane's own of at least `bytes`; its contents are undefined. */
tconv_status tconv_lane_space(struct tconv_lane *lane, enum tconv_role role, uint64_t bytes,
                              cl_mem *out, tconv_error *error);

/* A buffer with the `bytes` at `source`, which must stay until the lane has finished: in place
 * where `alone` is true, which means that no other array of the call overlaps it, and where the
 * device takes it so. */
tconv_status tconv_lane_upload(struct tconv_lane *lane, enum tconv_role role, const void *source,
                               uint64_t bytes, bool alone, cl_mem *out, tconv_error *error);

/* A buffer for the output at `target`, in place where the device takes it so; with what is there,
 * where `read` is true. */
tconv_status tconv_lane_output(struct tconv_lane *lane, void *target, uint64_t bytes, bool read,
                               cl_mem *out, tconv_error *error);

/* Waits for all commands and has `target` hold what they wrote into the buffer of
 * tconv_lane_output. */
tconv_status tconv_lane_download(struct tconv_lane *lane, void *target, uint64_t bytes,
                                 tconv_error *error);

/* Gives back the lanes of a session, while no call runs. */
void tconv_lanes_release(tconv_session *session);

#endif
