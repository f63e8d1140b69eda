/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL device, and lanes on it: each is a queue with buffers, used by one call at a time. */
#ifndef TCONV_ONNXRUNTIME_DEVICE_H
#define TCONV_ONNXRUNTIME_DEVICE_H

#include <tconv_cl/tconv_cl.h>

/* Fills `error`, which is not NULL, as printf would, and returns `status`. */
__attribute__((format(printf, 3, 4))) tconv_status fail(tconv_error *error, tconv_status status,
                                                        const char *format, ...);

struct device;
struct lane;
enum role { DATA, WEIGHTS, BIAS, SLOPE, OUTPUT, WORKSPACE, ROLES };

/* The device with that number, or the library's default where it is negative. Opened once, never
 * closed: when a process ends, OpenCL runtimes may be gone before this library is. */
tconv_status device_open(int number, struct device **out, tconv_error *error);
tconv_host *device_host(const struct device *device);

/* A lane for one call. Giving it back waits for all of its commands and forgets the caller's
 * memory. */
tconv_status lane_take(struct device *device, struct lane **out, tconv_error *error);
void lane_give_back(struct lane *lane);

/* Commands run in order. */
cl_command_queue lane_queue(const struct lane *lane);
tconv_status lane_wait(struct lane *lane, tconv_error *error);

/* A buffer of at least that size; it grows to what calls need and then stays. */
tconv_status lane_space(struct lane *lane, enum role role, size_t bytes, cl_mem *out,
                        tconv_error *error);

/* A buffer with the elements at `source`. */
tconv_status lane_upload(struct lane *lane, enum role role, const void *source, size_t bytes,
                         cl_mem *out, tconv_error *error);

/* A buffer whose contents lane_download brings to `target`, and waits for that. */
tconv_status lane_output(struct lane *lane, void *target, size_t bytes, cl_mem *out,
                         tconv_error *error);
tconv_status lane_download(struct lane *lane, void *target, size_t bytes, tconv_error *error);

#endif
