/* SPDX-License-Identifier: Apache-2.0 */
/* Data and packed filters as OpenCL's images, which some GPUs read through a cache of their own:
 * one dimension of pixels of four elements, over the tensor's buffer, without a copy. An execution
 * makes them, and they are released when its launches have ended: with PoCL 3.1 kernels read images
 * that a release has freed, though OpenCL says that commands keep what they use.
 *
 * Kernels that read images can also read the buffers themselves, and do so where an image is
 * impossible or would not be defined:
 *
 *   - the tensor is a pointer into shared memory, or begins inside a pixel
 *   - its buffer is a sub-buffer, was made over memory of the host, or also has the output
 *   - the image would have more pixels than the device allows, or a format that it lacks
 *   - the execution is recorded: a recording's tensors may be replaced, and their images would have
 *     to live as long as the command buffer
 *   - threads share its launches: that is on processors, where images gain nothing */
#include "plan/plan_internal.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { PIXEL = 4 }; /* elements */

static cl_mem make_image(const tconv_plan *plan, cl_mem memory, size_t element, uint64_t pixels,
                         cl_int *code)
{
    const cl_image_format format = {CL_RGBA, element == 4 ? CL_FLOAT : CL_HALF_FLOAT};
    cl_image_desc shape = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
                           .image_width = (size_t)pixels};
    shape.buffer = memory; /* of an anonymous union in some headers */
    return clCreateImage(plan->device->context, CL_MEM_READ_ONLY, &format, &shape, NULL, code);
}

/* Makes the image of one tensor, if it can have one. */
static tconv_status add_image(const tconv_plan *plan, const struct tconv_bindings *bindings,
                              enum tconv_arg arg, struct tconv_image *image, tconv_error *error)
{
    const struct tconv_place *place = &bindings->place[arg];
    const size_t element = tconv_arg_unit(&plan->request, plan->candidate.algorithm->packing, arg),
                 pixel = PIXEL * element;
    const uint64_t first = place->offset / pixel,
                   pixels = first + (place->end - place->begin) / pixel;
    if (place->memory == NULL || place->whole != place->memory || place->offset % pixel != 0 ||
        place->memory == bindings->place[TCONV_ARG_OUTPUT].whole ||
        pixels > plan->info.image_pixels || pixels > INT32_MAX)
        return TCONV_OK;
    cl_int code;
    image->first = (cl_int)first;
    image->memory = make_image(plan, place->memory, element, pixels, &code);
    if (code == CL_SUCCESS) return TCONV_OK;
    image->memory = NULL;
    if (code == CL_IMAGE_FORMAT_NOT_SUPPORTED) return TCONV_OK;
    return tconv_fail_opencl(error, code, "clCreateImage",
                             "making an image of %llu pixels over a buffer",
                             (unsigned long long)pixels);
}

static bool reads_images(const tconv_plan *plan)
{
    for (int i = 0; i < plan->kernel_plan.run_count; i++)
        for (int j = 0; j < plan->kernel_plan.run[i].arg_count; j++)
            if (plan->kernel_plan.run[i].args[j] >= TCONV_ARG_DATA_IMAGE) return true;
    return false;
}

/* Those of one execution. Its plan may be released before the launches have ended. */
struct tconv_images {
    struct tconv_image image[2]; /* as in its bindings */
    cl_mem none;                 /* the plan's no_image */
};

static void release(struct tconv_images *images)
{
    for (int i = 0; i < 2; i++)
        if (images->image[i].memory != NULL) clReleaseMemObject(images->image[i].memory);
    if (images->none != NULL) clReleaseMemObject(images->none);
    free(images);
}

static void CL_CALLBACK on_end(cl_event event, cl_int state, void *images)
{
    (void)event, (void)state;
    release(images);
}

/* Without a callback they are released at once, which OpenCL allows. Nothing is waited for:
 * commands may wait for an event that this thread sets later. */
void tconv_images_release_after(struct tconv_images *images, cl_event event)
{
    if (event == NULL || clSetEventCallback(event, CL_COMPLETE, on_end, images) != CL_SUCCESS)
        release(images);
}

tconv_status tconv_images_make(const tconv_plan *plan, struct tconv_bindings *bindings,
                               struct tconv_images **out, tconv_error *error)
{
    struct tconv_images *images = calloc(1, sizeof *images);
    if (images == NULL) return tconv_fail_memory(error, sizeof *images, "making images");
    const cl_int code = clRetainMemObject(plan->no_image);
    if (code == CL_SUCCESS) images->none = plan->no_image;
    tconv_status status =
        code == CL_SUCCESS
            ? add_image(plan, bindings, TCONV_ARG_DATA, &images->image[0], error)
            : tconv_fail_opencl(error, code, "clRetainMemObject", "keeping an image of one pixel");
    if (status == TCONV_OK && images->image[0].memory != NULL) /* kernels read both, or none */
        status = add_image(plan, bindings, TCONV_ARG_FILTER, &images->image[1], error);
    if (status != TCONV_OK) {
        release(images);
        return status;
    }
    memcpy(bindings->image, images->image, sizeof images->image);
    *out = images;
    return TCONV_OK;
}

tconv_status tconv_image_make_none(tconv_plan *plan, tconv_error *error)
{
    cl_int code;
    if (!reads_images(plan)) return TCONV_OK;
    plan->no_image = make_image(plan, plan->table, sizeof(cl_float), 1, &code);
    if (code == CL_SUCCESS) return TCONV_OK;
    plan->no_image = NULL;
    return tconv_fail_opencl(error, code, "clCreateImage", "making an image of one pixel");
}
