/* SPDX-License-Identifier: Apache-2.0 */
/* A layer for cv::dnn that computes 'Deconvolution' by tconv-cl: what the importers of ONNX and
 * Caffe models make of ConvTranspose and Deconvolution with two spatial axes, in f32. Registered,
 * it takes the place of OpenCV's own layer in every net that is made afterwards. */
#ifndef DNN_LAYER_HPP
#define DNN_LAYER_HPP

#include "umat_layer.hpp"

#include <memory>
#include <opencv2/dnn.hpp>
#include <opencv2/dnn/layer.details.hpp>
#include <vector>

class tconv_deconvolution : public cv::dnn::Layer
{
  public:
    static cv::Ptr<cv::dnn::Layer> create(cv::dnn::LayerParams &params)
    {
        return cv::Ptr<cv::dnn::Layer>(new tconv_deconvolution(params));
    }

    explicit tconv_deconvolution(const cv::dnn::LayerParams &params)
        : cv::dnn::Layer(params), problem_(TCONV_PROBLEM_INIT)
    {
        const cv::Mat &weights = blobs.at(0);
        if (weights.dims != 4 || weights.type() != CV_32F)
            CV_Error(cv::Error::StsNotImplemented,
                     "tconv-cl: weights that are not f32 with 4 axes");
        const int64_t groups = params.get<int>("group", 1);
        problem_.operation = TCONV_ONEAPI_CONV_BACKPROP;
        problem_.data_format = TCONV_NCX;
        problem_.filter_format = TCONV_OIX; /* as cv::dnn: input channels, outputs of a group */
        problem_.groups = groups;
        problem_.filter =
            shape_of(weights.size[0], weights.size[1], weights.size[2], weights.size[3]);
        problem_.strides = pair(params, "stride", "stride_h", "stride_w", 1);
        problem_.dilations = pair(params, "dilation", "dilation_h", "dilation_w", 1);
        problem_.output_padding = pair(params, "adj", "adj_h", "adj_w", 0);
        const cv::String mode = params.get<cv::String>("pad_mode", "");
        if (mode == "SAME") CV_Error(cv::Error::StsNotImplemented, "tconv-cl: pad_mode SAME");
        if (mode != "VALID") read_pads(params);
    }

    bool supportBackend(int backend) override
    {
        return backend == cv::dnn::DNN_BACKEND_OPENCV;
    }

    /* The shape of the output for that of the input. */
    bool getMemoryShapes(const std::vector<cv::dnn::MatShape> &inputs, int,
                         std::vector<cv::dnn::MatShape> &outputs,
                         std::vector<cv::dnn::MatShape> &) const override
    {
        CV_Assert(inputs.size() == 1 && inputs[0].size() == 4);
        tconv_problem problem = problem_;
        problem.data = shape_of(inputs[0][0], inputs[0][1], inputs[0][2], inputs[0][3]);
        tconv_geometry geometry = TCONV_GEOMETRY_INIT;
        tconv_error error;
        tconv::check(tconv_resolve(&problem, &geometry, &error), error);
        outputs.assign(
            1, cv::dnn::MatShape{
                   inputs[0][0], static_cast<int>(geometry.groups * geometry.group_out_channels),
                   static_cast<int>(geometry.output[0]), static_cast<int>(geometry.output[1])});
        return false;
    }

    /* The shapes are known: plans for them, and packs the weights. */
    void finalize(cv::InputArrayOfArrays inputs, cv::OutputArrayOfArrays) override
    {
        int size[32]; /* the most axes that OpenCV has */
        CV_Assert(inputs.sizend(size, 0) == 4);
        problem_.data = shape_of(size[0], size[1], size[2], size[3]);
        cv::UMat weights, bias;
        blobs[0].copyTo(weights);
        if (blobs.size() > 1) blobs[1].copyTo(bias);
        layer_.reset(new umat_layer(device(), problem_, weights, bias));
    }

    /* With the target OpenCL the tensors are UMats, and stay on the device. With the target CPU
     * they are Mats, which OpenCV maps into its device and back. */
    void forward(cv::InputArrayOfArrays inputs, cv::OutputArrayOfArrays outputs,
                 cv::OutputArrayOfArrays) override
    {
        std::vector<cv::UMat> in, out;
        inputs.getUMatVector(in);
        outputs.getUMatVector(out);
        layer_->run(in.at(0), out.at(0));
        on_device_ = inputs.isUMatVector();
    }

    /* Whether the last forward() had UMats. */
    bool on_device() const
    {
        return on_device_;
    }

  private:
    /* One device object for all layers: it keeps the compiled programs. */
    static const tconv::device &device()
    {
        static const tconv::device own = opencv_device();
        return own;
    }

    /* A parameter for rows and columns: a list, one number, or two parameters. */
    static tconv_list pair(const cv::dnn::LayerParams &params, const char *both, const char *rows,
                           const char *columns, int otherwise)
    {
        if (params.has(rows)) return list_of(params.get<int>(rows), params.get<int>(columns));
        if (!params.has(both)) return list_of(otherwise, otherwise);
        const cv::dnn::DictValue &value = params.get(both);
        return list_of(value.get<int>(0), value.get<int>(value.size() == 1 ? 0 : 1));
    }

    /* Of a list, the pads before all axes come first. */
    void read_pads(const cv::dnn::LayerParams &params)
    {
        problem_.pads_begin = problem_.pads_end = pair(params, "pad", "pad_h", "pad_w", 0);
        if (params.has("pad") && params.get("pad").size() == 4)
            problem_.pads_end =
                list_of(params.get("pad").get<int>(2), params.get("pad").get<int>(3));
    }

    tconv_problem problem_;
    std::unique_ptr<umat_layer> layer_;
    bool on_device_ = false;
};

#endif
