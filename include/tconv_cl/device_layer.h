/* SPDX-License-Identifier: Apache-2.0 */
/* Layers for applications with OpenCL queues and buffers of their own: a layer is made once, with
 * its weights and its epilogue, and runs often, with data and output alone.
 *
 *     tconv_weights weights = TCONV_WEIGHTS_INIT;
 *     weights.filter = filter;                                   // a host array
 *     tconv_buffer data = {in, 0, NULL}, output = {out, 0, NULL}; // cl_mem in, out
 *     tconv_device_layer_create(dev, queue, &problem, NULL, &weights, &layer, &err);
 *     tconv_device_layer_enqueue(layer, queue, &data, &output, NULL, 0, NULL, &done, &err);
 *
 * A layer is a plan (plan.h) with its packed filter. Its workspace comes from a pool that all
 * layers of a tconv_device share.
 *
 * THREADS. Every function here may be called from any thread, also on the same layer at the same
 * time, with one exception: the release must not run beside another use of the layer.
 *
 * THE POOL. A workspace is used again when the last execution in it has ended, or by a later
 * execution on the same in-order queue. Otherwise the device gets another one, up to 4. If all are
 * in use, an execution waits, on the device, for the least recently used one. So it may wait for
 * any execution that was enqueued before it on the same tconv_device. Do not let an earlier
 * execution wait for a user event that you set only after a later one has ended: neither would end.
 * If the earlier one fails, so may the one that waits. Layers whose algorithm needs no workspace
 * are unaffected.
 *
 * SENTENCES of errors call the arguments of an execution as tconv_args does: args.data,
 * args.output, args.residual. */
#ifndef TCONV_CL_DEVICE_LAYER_H
#define TCONV_CL_DEVICE_LAYER_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One problem on one device, with its weights. Opaque. */
typedef struct tconv_device_layer tconv_device_layer;

/* The weights of a layer: the filter, and what the epilogue has of bias, scale and slope; types as
 * tconv_epilogue says. Each is given either as a host array, which the call copies, or as a buffer.
 * The filter's buffer is read by the packing. The other buffers are retained and used in place, so
 * their contents must stay as long as executions read them; nothing retains memory behind a
 * pointer. Its struct_size (see tconv_cl.h) reaches at least up to `slope`. */
typedef struct tconv_weights {
    size_t struct_size;
    const void *filter;         /* a host array, as the next three; NULL: absent, or a buffer */
    const void *bias;           /* one number for each output channel */
    const void *scale;          /* one number for each output channel */
    const void *slope;          /* one number for each output channel */
    tconv_buffer filter_buffer; /* instead of `filter`; without memory: absent */
    tconv_buffer bias_buffer;   /* instead of `bias` */
    tconv_buffer scale_buffer;  /* instead of `scale` */
    tconv_buffer slope_buffer;  /* instead of `slope` */
} tconv_weights;

#define TCONV_WEIGHTS_INIT                                                                         \
    {                                                                                              \
        sizeof(tconv_weights), NULL, NULL, NULL, NULL, {NULL, 0, NULL}, {NULL, 0, NULL},           \
            {NULL, 0, NULL},                                                                       \
        {                                                                                          \
            NULL, 0, NULL                                                                          \
        }                                                                                          \
    }

/* Makes a layer: plans the problem as tconv_plan_create does, then packs the weights on `queue`.
 * Blocks until both are done: kernels compile, and on an in-order queue the packing runs behind the
 * commands before it. After it returns, host arrays and the filter's buffer may change, and the
 * layer may run on any queue. What writes the buffers of `weights` must have ended, or be on the
 * same in-order queue. Each layer has one problem; tconv_device_layer_share makes layers for other
 * extents. `options` may be NULL: all defaults. Returns what tconv_plan_create and
 * tconv_packed_filter_enqueue_pack return. Ownership: the caller's, until
 * tconv_device_layer_release; the layer keeps `device` alive. `*out` is written only on success. */
TCONV_API tconv_status tconv_device_layer_create(tconv_device *device, cl_command_queue queue,
                                                 const tconv_problem *problem,
                                                 const tconv_plan_options *options,
                                                 const tconv_weights *weights,
                                                 tconv_device_layer **out, tconv_error *error);

/* Makes a layer for another problem with the weights of `layer`, which both then share: batch,
 * extents and pads may differ, and the epilogue in what has no tensor, but for the zero points of
 * data and filter. If the library chooses an algorithm that reads another packed layout, the
 * algorithm of `layer` is taken instead. Returns also TCONV_ERROR_MISMATCH: the weights do not fit
 * the problem (an extent of 1 may need another layout, and so may pads and gaps along an axis with
 * a kernel of 1), the epilogue, or the algorithm that `options` name. */
TCONV_API tconv_status tconv_device_layer_share(tconv_device_layer *layer,
                                                const tconv_problem *problem,
                                                const tconv_plan_options *options,
                                                tconv_device_layer **out, tconv_error *error);

/* Releases the layer. NULL is a no-op. Pending commands run to completion; OpenCL keeps what they
 * use until then. */
TCONV_API void tconv_device_layer_release(tconv_device_layer *layer);

/* Enqueues one execution of the layer on a queue of its device, or of a sub-device:
 * output = epilogue(operation(data, weights)). Wait list, `done` and errors are as those of
 * tconv_plan_enqueue. `residual` must be given if and only if the epilogue has it; else NULL. The
 * structures are read during the call. The output must not overlap data, residual, bias, scale or
 * slope (TCONV_ERROR_BUFFER); data, residual and output may be slices of one tensor. Executions
 * that may overlap in time need their own outputs, and nothing else. */
TCONV_API tconv_status tconv_device_layer_enqueue(tconv_device_layer *layer, cl_command_queue queue,
                                                  const tconv_buffer *data,
                                                  const tconv_buffer *output,
                                                  const tconv_buffer *residual, cl_uint wait_count,
                                                  const cl_event *wait, cl_event *done,
                                                  tconv_error *error);

/* Replaces the weights, for example after a step of training. Executions that were enqueued before
 * use the old weights; those enqueued after it the new ones, on any queue: they wait for the
 * packing. Does not block: host arrays are copied during the call, and the packing, which reads the
 * filter's buffer, starts after the wait list. But if the layer's plan is stale
 * (tconv_plan_is_stale), a new one is made first, which compiles kernels. If `done` is not NULL, it
 * receives the packing's event, which the caller releases. Layers that share the old weights keep
 * them. On an error, the layer keeps the old weights. Returns what tconv_packed_filter_enqueue_pack
 * returns. */
TCONV_API tconv_status tconv_device_layer_set_weights(tconv_device_layer *layer,
                                                      cl_command_queue queue,
                                                      const tconv_weights *weights,
                                                      cl_uint wait_count, const cl_event *wait,
                                                      cl_event *done, tconv_error *error);

/* A recorded execution of a layer. Opaque. */
typedef struct tconv_layer_recording tconv_layer_recording;

/* Appends one execution of the layer to a command buffer, as tconv_plan_record does. `args` has
 * data and output, and the residual if the epilogue has it; filter, bias, scale and slope must be
 * absent, because the layer has them. A run of the command buffer takes no workspace of the pool,
 * since the library does not see it: if args.workspace is absent and the plan needs one, the
 * recording owns one. Layers of one command buffer whose runs do not overlap may share one of the
 * application's, of the most bytes that their plans need (tconv_plan_workspace_bytes).
 *
 * The recorded execution uses the weights that the layer has now, also if the layer gets others. It
 * waits on the host until they are packed. With `replaceable`, tconv_layer_recording_update
 * replaces tensors and weights; device and command buffer then need what tconv_recording_create
 * says.
 *
 * Returns what tconv_plan_record and tconv_recording_create return. Ownership: the caller's, until
 * tconv_layer_recording_release, which must come after the release of the command buffer: the
 * recording keeps plan, weights and its workspace. The layer may be released before. `*out` is
 * written only on success. */
TCONV_API tconv_status tconv_device_layer_record(tconv_device_layer *layer,
                                                 struct _cl_command_buffer_khr *command_buffer,
                                                 cl_command_queue queue, const tconv_args *args,
                                                 bool replaceable, uint32_t wait_count,
                                                 const uint32_t *wait, uint32_t *done,
                                                 tconv_layer_recording **out, tconv_error *error);

/* Replaces the tensors of a recorded execution, as tconv_recording_update does and when it may.
 * `args` is as that of tconv_device_layer_record; without a workspace, that of before stays. With
 * `layer`, the execution also takes the weights that this layer has now, after waiting until they
 * are packed: the recorded layer or another one whose weights fit its plan, else
 * TCONV_ERROR_MISMATCH. NULL: the weights of before stay. Returns also TCONV_ERROR_ARGUMENT if it
 * was recorded without `replaceable`. */
TCONV_API tconv_status tconv_layer_recording_update(tconv_layer_recording *recording,
                                                    tconv_device_layer *layer,
                                                    const tconv_args *args, tconv_error *error);

/* Releases the recording, after its command buffer. NULL is a no-op. */
TCONV_API void tconv_layer_recording_release(tconv_layer_recording *recording);

/* The layer's plan, for questions: geometry, algorithm, bytes of workspace, whether it is stale.
 * Borrowed: valid as long as the layer. NULL if `layer` is NULL. */
TCONV_API const tconv_plan *tconv_device_layer_plan(const tconv_device_layer *layer);

/* Bytes of device memory of the layer's weights: the packed filter, and copies of host arrays.
 * Layers that share weights tell the same bytes. NULL: 0. */
TCONV_API uint64_t tconv_device_layer_bytes(const tconv_device_layer *layer);

/* Bytes of device memory of the pool of workspaces. NULL: 0. */
TCONV_API uint64_t tconv_device_workspace_bytes(tconv_device *device);

/* Releases the workspaces of the pool; later executions make new ones. Pending executions run to
 * completion, and OpenCL keeps their workspaces until then. NULL is a no-op. PoCL never ends an
 * execution that waits for an event which fails: this is how the pool forgets its workspace. */
TCONV_API void tconv_device_trim_workspaces(tconv_device *device);

#ifdef __cplusplus
}
#endif

#endif
