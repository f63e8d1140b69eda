/* SPDX-License-Identifier: Apache-2.0 */
/* A transposed convolution from UMat to UMat, on OpenCV's own OpenCL context, device and queue.
 * Nothing is copied to the host, and nothing waits: OpenCV's queue keeps the order. */
#ifndef UMAT_LAYER_HPP
#define UMAT_LAYER_HPP

#include <tconv_cl/tconv_cl.hpp>

#include <opencv2/core.hpp>
#include <opencv2/core/ocl.hpp>
#include <string>
#include <vector>

/* The device that OpenCV computes on, for tconv-cl. Make it once: it keeps compiled programs. */
inline tconv::device opencv_device()
{
    if (!cv::ocl::useOpenCL())
        CV_Error(cv::Error::OpenCLInitError, "OpenCV has no OpenCL device: OPENCV_OPENCL_DEVICE");
    return tconv::device(static_cast<cl_context>(cv::ocl::Context::getDefault().ptr()),
                         static_cast<cl_device_id>(cv::ocl::Device::getDefault().ptr()));
}

inline cl_command_queue opencv_queue()
{
    return static_cast<cl_command_queue>(cv::ocl::Queue::getDefault().ptr());
}

inline tconv_list list_of(int64_t y, int64_t x)
{
    tconv_list list = {2, {y, x}};
    return list;
}

inline tconv_shape shape_of(int64_t a, int64_t b, int64_t c, int64_t d)
{
    tconv_shape shape = {4, {a, b, c, d}};
    return shape;
}

/* A picture with several channels is a tensor [1, rows, columns, channels]. Rows may be further
 * apart than their pixels take: the UMat may be a part of a larger one. */
inline tconv_shape picture_shape(const cv::UMat &picture)
{
    return shape_of(1, picture.rows, picture.cols, picture.channels());
}

inline tconv_steps picture_steps(const cv::UMat &picture)
{
    const int64_t row = static_cast<int64_t>(picture.step[0] / picture.elemSize1());
    tconv_steps steps = {4, {row * picture.rows, row, picture.channels(), 1}};
    return steps;
}

/* ---- whether a UMat is the tensor that a plan reads or writes ---- */

/* OpenCV's depth of an element type; -1: OpenCV 4 has none. */
inline int depth_of(tconv_type type)
{
    switch (type) {
    case TCONV_F32: return CV_32F;
    case TCONV_F16: return CV_16F;
    case TCONV_F64: return CV_64F;
    case TCONV_I8: return CV_8S;
    case TCONV_U8: return CV_8U;
    case TCONV_I16: return CV_16S;
    case TCONV_U16: return CV_16U;
    case TCONV_I32: return CV_32S;
    default: return -1;
    }
}

/* Halves are CV_16F, or CV_16S, which cv::dnn of OpenCV 4 uses for them. */
inline void check_type(const char *name, const cv::UMat &umat, tconv_type type)
{
    const int depth = umat.depth();
    if (depth == depth_of(type) || (type == TCONV_F16 && depth == CV_16S)) return;
    CV_Error(cv::Error::StsUnmatchedFormats,
             cv::format("tconv-cl: %s has elements of %s, but the problem's are %s", name,
                        cv::depthToString(depth), tconv_type_name(type)));
}

/* Extents and element steps of a UMat. Channels of its elements are the last axis. A UMat with two
 * axes is a picture if the tensor has four. */
struct umat_axes {
    std::vector<int64_t> extent, step;
};

inline umat_axes axes_of(const cv::UMat &umat, int rank)
{
    umat_axes axes;
    if (umat.dims == 2 && rank == 4) axes = {{1}, {0}};
    for (int a = 0; a < umat.dims; a++) {
        axes.extent.push_back(umat.size[a]);
        axes.step.push_back(static_cast<int64_t>(umat.step[a] / umat.elemSize1()));
    }
    if (umat.channels() > 1 || static_cast<int>(axes.extent.size()) == rank - 1) {
        axes.extent.push_back(umat.channels());
        axes.step.push_back(1);
    }
    return axes;
}

/* "1 x 2 x 3" */
inline std::string text_of(const std::vector<int64_t> &extents)
{
    std::string text;
    for (const int64_t extent : extents)
        text += (text.empty() ? "" : " x ") + std::to_string(extent);
    return text.empty() ? "empty" : text;
}

/* Without `steps` the tensor is dense. Steps along axes with one element do not matter. */
inline void check_axes(const char *name, const cv::UMat &umat, const tconv_shape &shape,
                       const tconv_steps &steps)
{
    const umat_axes own = axes_of(umat, shape.rank);
    const std::vector<int64_t> wanted(shape.dim, shape.dim + shape.rank);
    if (own.extent != wanted)
        CV_Error(cv::Error::StsUnmatchedSizes,
                 cv::format("tconv-cl: %s is %s, but the problem's is %s", name,
                            text_of(own.extent).c_str(), text_of(wanted).c_str()));
    int64_t dense = 1;
    for (int a = shape.rank - 1; a >= 0; dense *= shape.dim[a--]) {
        const int64_t step = steps.count == 0 ? dense : steps.value[a];
        if (shape.dim[a] > 1 && own.step[a] != step)
            CV_Error(cv::Error::StsUnmatchedSizes,
                     cv::format("tconv-cl: %s has a step of %lld elements along axis %d, but the "
                                "problem's is %lld: plan with the UMat's steps, or copy the UMat",
                                name, static_cast<long long>(own.step[a]), a,
                                static_cast<long long>(step)));
    }
}

/* For weights, whose axes do not matter. */
inline void check_dense(const char *name, const cv::UMat &umat, tconv_type type, int64_t elements)
{
    check_type(name, umat, type);
    const int64_t own = static_cast<int64_t>(umat.total()) * umat.channels();
    if (own == elements && umat.isContinuous()) return;
    CV_Error(cv::Error::StsUnmatchedSizes,
             cv::format("tconv-cl: %s has %lld elements%s, but the problem's has %lld in a row",
                        name, static_cast<long long>(own),
                        umat.isContinuous() ? "" : " with gaps between rows",
                        static_cast<long long>(elements)));
}

/* For one thread, which makes and runs it: OpenCV has a queue for each thread, and the queue keeps
 * the packing and the executions in order. */
class umat_layer
{
  public:
    /* `weights`, and `bias` if there is one, are dense UMats of the problem's types. */
    umat_layer(const tconv::device &device, const tconv_problem &problem, const cv::UMat &weights,
               const cv::UMat &bias = cv::UMat())
        : problem_(problem), layer_(device), bias_(bias)
    {
        tconv_error error;
        tconv::check(tconv_resolve(&problem, &geometry_, &error), error);
        int64_t elements = 1;
        for (int a = 0; a < problem.filter.rank; a++) elements *= problem.filter.dim[a];
        check_dense("the filter", weights, problem.filter_type, elements);
        options_.epilogue.bias = !bias.empty();
        tconv_tensors given = TCONV_TENSORS_INIT;
        given.filter = place(weights, cv::ACCESS_READ);
        if (!bias.empty()) {
            check_dense("the bias", bias,
                        tconv_bias_type(&options_.epilogue, geometry_.output_type),
                        geometry_.groups * geometry_.group_out_channels);
            given.bias = place(bias, cv::ACCESS_READ);
        }
        const tconv_run run = on_opencv_queue();
        layer_.set(problem, given, &options_, &run);
    }

    /* The UMats have the types, shapes and steps of the problem, or it throws; they may lie
     * anywhere in larger ones, apart from each other. */
    void run(const cv::UMat &data, cv::UMat &output)
    {
        check("data", data, problem_.data_type, problem_.data, problem_.data_steps);
        check("the output", output, geometry_.output_type, geometry_.output_shape,
              problem_.output_steps);
        tconv_tensors tensors = TCONV_TENSORS_INIT;
        tensors.data = place(data, cv::ACCESS_READ);
        tensors.output = place(output, cv::ACCESS_WRITE);
        const tconv_run run = on_opencv_queue();
        layer_.run(problem_, tensors, &options_, &run);
    }

    std::string algorithm()
    {
        return layer_.make_plan(problem_, &options_).algorithm();
    }

  private:
    static void check(const char *name, const cv::UMat &umat, tconv_type type,
                      const tconv_shape &shape, const tconv_steps &steps)
    {
        check_axes(name, umat, shape, steps);
        check_type(name, umat, type);
    }

    static tconv_tensor place(const cv::UMat &umat, cv::AccessFlag access)
    {
        tconv_tensor tensor = TCONV_TENSOR_INIT;
        tensor.memory = static_cast<cl_mem>(umat.handle(access));
        tensor.offset = umat.offset;
        return tensor;
    }

    static tconv_run on_opencv_queue()
    {
        tconv_run run = TCONV_RUN_INIT;
        run.queue = opencv_queue();
        return run;
    }

    tconv_problem problem_;
    tconv_plan_options options_ = TCONV_PLAN_OPTIONS_INIT;
    tconv_geometry geometry_ = TCONV_GEOMETRY_INIT;
    tconv::layer layer_;
    cv::UMat bias_; /* which executions read */
};

#endif
