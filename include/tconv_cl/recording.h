/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: executions that are appended to a command buffer of cl_khr_command_buffer once, and
 * run with it as often as the application enqueues it.
 *
 * THREADS. Every function here may be called from any thread. Two threads must not record into one
 * command buffer, or update its recordings, at the same time, and a release must not run beside
 * another use of the recording. */
#ifndef TCONV_CL_RECORDING_H
#define TCONV_CL_RECORDING_H

#include "layer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct _cl_command_buffer_khr; /* of CL/cl_ext.h, where it is a provisional extension */

/* Appends one execution to a command buffer of cl_khr_command_buffer, which the application then
 * finalises and enqueues as often as it likes. Executions of several plans in one command buffer
 * make a chain of layers. `command_buffer` is a cl_command_buffer_khr that was made for `queue`
 * alone, a queue of the plan's device or of a sub-device of it. `tensors` are checked
 * as tconv_plan_enqueue does, now and not when the command buffer is enqueued; the buffers stay the
 * same in every run, their contents may change. `wait` has sync points (cl_sync_point_khr) of the
 * same command buffer: the library cannot check them, and PoCL 3.1 crashes on others. If `done` is
 * not NULL, it receives the sync point of the execution. A plan with a batch of 0 records nothing;
 * `done` must then be NULL, else the error is TCONV_ERROR_UNSUPPORTED.
 *
 * The packing of the filter is enqueued before the recording, and ends before the first run. The
 * application keeps the plan, the filter and the tensors until the command buffer is released. Runs
 * that may overlap in time need command buffers and workspaces of their own. Two threads must not
 * record into one command buffer at the same time. If the device refuses a command
 * (TCONV_ERROR_OPENCL, _DEVICE_MEMORY, _HOST_MEMORY), the commands before it stay recorded: release
 * the command buffer.
 *
 * Returns TCONV_ERROR_ARGUMENT, _BUFFER, _MISMATCH, _UNSUPPORTED, _DEVICE (the device has no
 * cl_khr_command_buffer), _OPENCL, _DEVICE_MEMORY, _HOST_MEMORY. */
TCONV_API tconv_status tconv_plan_record(const tconv_plan *plan,
                                         struct _cl_command_buffer_khr *command_buffer,
                                         cl_command_queue queue, const tconv_tensors *tensors,
                                         uint32_t wait_count, const uint32_t *wait, uint32_t *done,
                                         tconv_error *error);

/* A recorded execution whose tensors can be replaced. Opaque. */
typedef struct tconv_recording tconv_recording;

/* Appends one execution to a command buffer as tconv_plan_record does, so that
 * tconv_recording_update can replace its tensors. The device needs
 * cl_khr_command_buffer_mutable_dispatch 0.9.2 or later with
 * CL_MUTABLE_DISPATCH_ARGUMENTS_KHR (else TCONV_ERROR_DEVICE), and the command buffer the flag
 * CL_COMMAND_BUFFER_MUTABLE_KHR (else TCONV_ERROR_ARGUMENT). Tensors are buffers or pointers of
 * SVM; pointers of cl_intel_unified_shared_memory are refused with TCONV_ERROR_UNSUPPORTED. Returns
 * what tconv_plan_record returns. Ownership: the caller's, until tconv_recording_release; the
 * recording keeps `plan` alive. `*out` is written only on success. */
TCONV_API tconv_status tconv_recording_create(tconv_plan *plan,
                                              struct _cl_command_buffer_khr *command_buffer,
                                              cl_command_queue queue, const tconv_tensors *tensors,
                                              uint32_t wait_count, const uint32_t *wait,
                                              uint32_t *done, tconv_recording **out,
                                              tconv_error *error);

/* Replaces all tensors of a recorded execution, the filter and the workspace too, in the runs of
 * the command buffer that are enqueued from now on. `tensors` is checked as tconv_plan_enqueue
 * does; it may name the same tensors as before. The command buffer must have been finalised, must
 * still exist, and no run of it may be pending. One thread at a time may update the recordings of a
 * command buffer. On an error the tensors are those of before.
 *
 * Returns TCONV_ERROR_ARGUMENT, _BUFFER, _MISMATCH, _UNSUPPORTED, _DEVICE, _OPENCL, _DEVICE_MEMORY,
 * _HOST_MEMORY. */
TCONV_API tconv_status tconv_recording_update(tconv_recording *recording,
                                              const tconv_tensors *tensors, tconv_error *error);

/* Releases the recording, before or after its command buffer, which it does not change. NULL is a
 * no-op. */
TCONV_API void tconv_recording_release(tconv_recording *recording);

/* A recorded run of a layer. Opaque. */
typedef struct tconv_layer_recording tconv_layer_recording;

/* Appends one execution of a layer to a command buffer, as tconv_plan_record does. Problem, options
 * and `tensors` are as those of tconv_layer_run with a queue; filter, bias, scale and slope may be
 * absent if tconv_layer_set gave them. If there is no plan, one is made, which compiles kernels. A
 * run of the command buffer takes no workspace of the pool, since the library does not see it: if
 * tensors.workspace is absent and the plan needs one, the recording owns one. Layers of one command
 * buffer whose runs do not overlap may share one of the application's, of the most bytes that their
 * plans need (tconv_plan_workspace_bytes).
 *
 * The recorded execution uses the weights of this moment, also if the layer gets others. The call
 * waits on the host until they are packed. With `replaceable`, tconv_layer_recording_update
 * replaces tensors and weights; device and command buffer then need what tconv_recording_create
 * says.
 *
 * Returns what tconv_layer_run, tconv_plan_record and tconv_recording_create return. Ownership: the
 * caller's, until tconv_layer_recording_release, which must come after the release of the command
 * buffer: the recording keeps plan, weights and its workspace. The layer may be released before.
 * `*out` is written only on success. */
TCONV_API tconv_status tconv_layer_record(tconv_layer *layer, const tconv_problem *problem,
                                          const tconv_plan_options *options,
                                          struct _cl_command_buffer_khr *command_buffer,
                                          cl_command_queue queue, const tconv_tensors *tensors,
                                          bool replaceable, uint32_t wait_count,
                                          const uint32_t *wait, uint32_t *done,
                                          tconv_layer_recording **out, tconv_error *error);

/* Replaces the tensors of a recorded execution, as tconv_recording_update does and when it may.
 * `tensors` has data and output, and the residual if the epilogue has it. Without a workspace, that
 * of before stays, and so do bias, scale and slope. With `layer`, the execution also takes the
 * weights that this layer has now, after waiting until they are packed: the recorded layer or
 * another one whose weights fit its plan, else TCONV_ERROR_MISMATCH. They are those of
 * tconv_layer_set, or else a filter that a run gave; of bias, scale and slope that are absent in
 * `tensors`, the layer's come first, then those that the application gave before. NULL: the weights
 * of before stay. Returns also TCONV_ERROR_ARGUMENT if it was recorded without `replaceable`. */
TCONV_API tconv_status tconv_layer_recording_update(tconv_layer_recording *recording,
                                                    tconv_layer *layer,
                                                    const tconv_tensors *tensors,
                                                    tconv_error *error);

/* Releases the recording, after its command buffer. NULL is a no-op. */
TCONV_API void tconv_layer_recording_release(tconv_layer_recording *recording);

#ifdef __cplusplus
}
#endif

#endif
