/* SPDX-License-Identifier: Apache-2.0 */
/* A transposed convolution from UMat to UMat, on OpenCV's own OpenCL context, device and queue.
 * Nothing is copied to the host, and nothing waits: OpenCV's queue keeps the order. */
#ifndef UMAT_LAYER_HPP
#define UMAT_LAYER_HPP

#include <tconv_cl/tconv_cl.hpp>

#include <climits>
#include <opencv2/core.hpp>
#include <opencv2/core/ocl.hpp>

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

/* For one thread, which makes and runs it: OpenCV has a queue for each thread, and the queue keeps
 * the packing and the executions, which share a workspace, in order. */
class umat_layer
{
  public:
    /* `weights`, and `bias` if there is one, are dense UMats of f32. */
    umat_layer(const tconv::device &device, const tconv_problem &problem, const cv::UMat &weights,
               const cv::UMat &bias = cv::UMat())
        : bias_(bias)
    {
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.epilogue.bias = !bias.empty();
        plan_ = tconv::plan(device.get(), problem, &options);
        filter_ = tconv::packed_filter(plan_);
        filter_.enqueue_pack(opencv_queue(), place(weights, cv::ACCESS_READ));
        const uint64_t workspace = plan_.workspace_bytes();
        CV_Assert(workspace <= INT_MAX);
        if (workspace > 0) workspace_.create(1, static_cast<int>(workspace), CV_8U);
    }

    /* The UMats have the shapes and steps of the problem; they may lie anywhere in larger ones. */
    void run(const cv::UMat &data, cv::UMat &output) const
    {
        tconv_args args = TCONV_ARGS_INIT;
        args.filter = filter_.get();
        args.data = place(data, cv::ACCESS_READ);
        args.output = place(output, cv::ACCESS_WRITE);
        if (!bias_.empty()) args.bias = place(bias_, cv::ACCESS_READ);
        if (!workspace_.empty()) args.workspace = place(workspace_, cv::ACCESS_RW);
        plan_.enqueue(opencv_queue(), args);
    }

    const char *algorithm() const
    {
        return plan_.algorithm();
    }

  private:
    static tconv_buffer place(const cv::UMat &umat, cv::AccessFlag access)
    {
        tconv_buffer buffer = {static_cast<cl_mem>(umat.handle(access)), umat.offset, nullptr};
        return buffer;
    }

    tconv::plan plan_;
    tconv::packed_filter filter_;
    cv::UMat bias_, workspace_;
};

#endif
