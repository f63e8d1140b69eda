/* SPDX-License-Identifier: Apache-2.0 */
/* A layer for cv::dnn that computes 'Deconvolution' by tconv-cl: what OpenCV's importers make of
 * ConvTranspose, Deconvolution and their like, with one to three spatial axes, in f32 and in f16.
 * Registered, it takes the place of OpenCV's own layer in every net that is made afterwards. */
#ifndef DNN_LAYER_HPP
#define DNN_LAYER_HPP

#include "umat_layer.hpp"

#include <algorithm>
#include <memory>
#include <opencv2/dnn.hpp>
#include <opencv2/dnn/layer.details.hpp>
#include <string>
#include <vector>

/* MatShape is in cv::dnn in OpenCV 4, and in cv in OpenCV 5. */
namespace tconv_opencv
{
using namespace cv;
using namespace cv::dnn;
typedef MatShape shape;
} // namespace tconv_opencv

/* The parameters are those that OpenCV's own layer reads. Others that importers leave behind have
 * no effect, or are refused by name. */
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
        check_names(params);
        check_blobs(params);
        problem_.operation = TCONV_ONEAPI_CONV_BACKPROP;
        problem_.data_format = TCONV_NCX;
        problem_.filter_format = TCONV_OIX; /* as cv::dnn: input channels, outputs of a group */
        problem_.filter.rank = blobs[0].dims;
        for (int a = 0; a < blobs[0].dims; a++) problem_.filter.dim[a] = blobs[0].size[a];
        problem_.groups = groups_of(params);
        check_kernel(params);
        problem_.strides = as_list(numbers(params, "stride", "stride", 1));
        problem_.dilations = as_list(numbers(params, "dilation", "dilation", 1));
        problem_.output_padding = as_list(numbers(params, "adj", "adj", 0));
        read_pads(params);
        if (params.has("output_shape")) {
            const cv::dnn::DictValue &shape = params.get("output_shape");
            for (int i = 0; i < shape.size(); i++) output_shape_.push_back(shape.get<int>(i));
        }
    }

    bool supportBackend(int backend) override
    {
        return backend == cv::dnn::DNN_BACKEND_OPENCV;
    }

    /* The shape of the output for that of the input. */
    bool getMemoryShapes(const std::vector<tconv_opencv::shape> &inputs, int,
                         std::vector<tconv_opencv::shape> &outputs,
                         std::vector<tconv_opencv::shape> &) const override
    {
        if (inputs.size() != 1) refuse("it has several inputs, but takes weights as blobs only");
        std::vector<int> data, output;
        for (size_t a = 0; a < inputs[0].size(); a++)
            data.push_back(inputs[0][static_cast<int>(a)]);
        const tconv_problem problem = problem_for(data);
        tconv_geometry geometry = TCONV_GEOMETRY_INIT;
        tconv_error error;
        if (tconv_resolve(&problem, &geometry, &error) != TCONV_OK) refuse(error.message);
        for (int a = 0; a < geometry.output_shape.rank; a++)
            output.push_back(static_cast<int>(geometry.output_shape.dim[a]));
        if (output_shape_.size() > output.size() ||
            !std::equal(output_shape_.rbegin(), output_shape_.rend(), output.rbegin()))
            refuse("output_shape is not the shape that the other parameters give");
        outputs.assign(1, tconv_opencv::shape(output));
        return false;
    }

    /* Shapes and type are known: plans for them, and packs the weights. f16 is computed with
     * weights of f16 and added up in f32. */
    void finalize(cv::InputArrayOfArrays inputs, cv::OutputArrayOfArrays) override
    {
        int size[32]; /* the most axes that OpenCV has */
        const int dims = inputs.sizend(size, 0), depth = inputs.depth(0);
        if (depth != CV_32F && depth != CV_16F && depth != CV_16S)
            refuse(std::string("its data are ") + cv::depthToString(depth) +
                   ", but it takes CV_32F, and f16 in CV_16F or CV_16S");
        tconv_problem problem = problem_for(std::vector<int>(size, size + dims));
        problem.data_type = problem.filter_type = depth == CV_32F ? TCONV_F32 : TCONV_F16;
        cv::UMat weights, bias;
        upload(blobs[0], depth, weights);
        if (blobs.size() > 1) upload(blobs[1], depth, bias);
        layer_.reset(new umat_layer(device(), problem, weights, bias));
    }

    /* With the target OpenCL the tensors are UMats, and stay on the device. With the target CPU
     * they are Mats, which OpenCV maps into its device and back. */
    void forward(cv::InputArrayOfArrays inputs, cv::OutputArrayOfArrays outputs,
                 cv::OutputArrayOfArrays) override
    {
        std::vector<cv::UMat> in, out;
        inputs.getUMatVector(in);
        outputs.getUMatVector(out);
        if (!layer_) refuse("forward() comes before finalize()");
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

    void refuse(const std::string &why) const
    {
        CV_Error(cv::Error::StsNotImplemented,
                 "tconv-cl: Deconvolution '" + std::string(name) + "': " + why);
    }

    static tconv_list as_list(const std::vector<int> &values)
    {
        tconv_list list = {static_cast<int>(values.size()), {0}};
        std::copy(values.begin(), values.end(), list.value);
        return list;
    }

    static void upload(const cv::Mat &blob, int depth, cv::UMat &umat)
    {
        cv::Mat typed;
        blob.convertTo(typed, depth == CV_32F ? CV_32F : CV_16F);
        typed.copyTo(umat);
    }

    size_t axes() const
    {
        return static_cast<size_t>(problem_.filter.rank) - 2;
    }

    /* ---- parameters ---- */

    static bool is_one_of(const std::string &name, const std::vector<const char *> &names)
    {
        return std::find(names.begin(), names.end(), name) != names.end();
    }

    void check_names(const cv::dnn::LayerParams &params) const
    {
        /* The last row is read here and in getMemoryShapes(). */
        const std::vector<const char *> read = {
            "kernel_size", "kernel_h",   "kernel_w",   "stride",       "stride_h",
            "stride_w",    "dilation",   "dilation_h", "dilation_w",   "adj",
            "adj_h",       "adj_w",      "pad",        "pad_h",        "pad_w",
            "pad_t",       "pad_l",      "pad_b",      "pad_r",        "pad_mode",
            "group",       "num_output", "bias_term",  "output_shape", "axis"};
        /* Of ONNX: output_padding is for output_shape, which is compared with the result; the
         * depth of the data is finalize()'s. Then how to compute, and how Caffe filled the weights
         * before the training. */
        const std::vector<const char *> idle = {"output_padding",
                                                "depth",
                                                "has_dynamic_shapes",
                                                "use_winograd",
                                                "engine",
                                                "force_nd_im2col",
                                                "type",
                                                "value",
                                                "min",
                                                "max",
                                                "mean",
                                                "std",
                                                "sparse",
                                                "variance_norm"};
        for (auto entry = params.begin(); entry != params.end(); ++entry)
            if (!is_one_of(entry->first, read) && !is_one_of(entry->first, idle))
                refuse("it does not know the parameter " + entry->first);
        if (params.has("output_padding") && !params.has("output_shape"))
            refuse("output_padding is given without output_shape: give adj");
        if (params.get<int>("axis", 1) != 1) refuse("axis must be 1, that of the channels");
    }

    void check_blobs(const cv::dnn::LayerParams &params) const
    {
        if (blobs.empty() || blobs.size() > 2)
            refuse("it has " + std::to_string(blobs.size()) +
                   " blobs, but takes weights, or weights and bias");
        for (const cv::Mat &blob : blobs)
            if (blob.depth() != CV_32F || blob.channels() != 1)
                refuse("its blobs are " + cv::typeToString(blob.type()) + ", but must be CV_32FC1");
        if (blobs[0].dims < 3 || blobs[0].dims > 5)
            refuse("its weights have " + std::to_string(blobs[0].dims) +
                   " axes, but must have 3 to 5: inputs, outputs of a group, kernel");
        if (params.has("bias_term") && params.get<bool>("bias_term") != (blobs.size() == 2))
            refuse(blobs.size() == 2 ? "bias_term is false, but there is a bias"
                                     : "bias_term is true, but there is no bias");
    }

    /* Of num_output and group each may be left out. */
    int groups_of(const cv::dnn::LayerParams &params) const
    {
        const int outputs = blobs[0].size[1]; /* of a group */
        if (!params.has("num_output")) return params.get<int>("group", 1);
        const int all = params.get<int>("num_output");
        const int groups = outputs == 0 ? 0 : all / outputs;
        if (groups * outputs != all || params.get<int>("group", groups) != groups)
            refuse("num_output is " + std::to_string(all) + " in " +
                   std::to_string(params.get<int>("group", 1)) + " groups, but the weights have " +
                   std::to_string(outputs) + " outputs of a group");
        return groups;
    }

    /* A parameter for all axes: NAME_h and NAME_w, or a list, or one number. */
    std::vector<int> numbers(const cv::dnn::LayerParams &params, const std::string &name,
                             const std::string &list, int otherwise, size_t most = 1) const
    {
        const std::string rows = name + "_h", columns = name + "_w";
        if (params.has(rows) != params.has(columns))
            refuse(params.has(rows) ? rows + " is given without " + columns
                                    : columns + " is given without " + rows);
        if (params.has(rows) && axes() != 2)
            refuse(rows + " and " + columns + " are for 2 spatial axes, but the weights have " +
                   std::to_string(axes()));
        if (params.has(rows)) return {params.get<int>(rows), params.get<int>(columns)};
        if (!params.has(list)) return std::vector<int>(axes(), otherwise);
        const cv::dnn::DictValue &given = params.get(list);
        const size_t count = static_cast<size_t>(given.size());
        if (count != 1 && count != axes() && count != most * axes())
            refuse(list + " has " + std::to_string(count) + " numbers, but the weights have " +
                   std::to_string(axes()) + " spatial axes");
        std::vector<int> values(count == 1 ? axes() : count);
        for (size_t i = 0; i < values.size(); i++)
            values[i] = given.get<int>(count == 1 ? 0 : static_cast<int>(i));
        return values;
    }

    void check_kernel(const cv::dnn::LayerParams &params) const
    {
        if (!params.has("kernel_size") && !params.has("kernel_h") && !params.has("kernel_w"))
            return;
        const std::vector<int> kernel = numbers(params, "kernel", "kernel_size", 0);
        for (size_t a = 0; a < axes(); a++)
            if (kernel[a] != problem_.filter.dim[2 + a])
                refuse("kernel_size is " + std::to_string(kernel[a]) + " along spatial axis " +
                       std::to_string(a) + ", but the weights have " +
                       std::to_string(problem_.filter.dim[2 + a]));
    }

    /* Of a list, the pads before all axes come first. A pad_mode is in place of pads. */
    void read_pads(const cv::dnn::LayerParams &params)
    {
        const std::vector<const char *> sides = {"pad_t", "pad_l", "pad_b", "pad_r"};
        size_t given = 0;
        for (const char *side : sides) given += params.has(side) ? 1 : 0;
        if (given != 0 && given != sides.size())
            refuse("of pad_t, pad_l, pad_b and pad_r, all must be given, or none");
        if (given != 0 && axes() != 2)
            refuse("pad_t, pad_l, pad_b and pad_r are for 2 spatial axes, but the weights have " +
                   std::to_string(axes()));
        std::vector<int> pads = numbers(params, "pad", "pad", 0, 2);
        if (given != 0) pads.clear();
        for (size_t i = 0; i < given; i++) pads.push_back(params.get<int>(sides[i]));
        if (pads.size() == axes()) pads.insert(pads.end(), pads.begin(), pads.end());
        const cv::String mode = params.get<cv::String>("pad_mode", "");
        if (!mode.empty() && mode != "VALID" && mode != "SAME")
            refuse("pad_mode is " + mode + ", but must be SAME or VALID, in capital letters");
        for (size_t a = 0; a < axes() && !mode.empty(); a++) {
            pads[a] = pads[axes() + a] = 0;
            if (mode == "SAME") set_same(a, pads);
        }
        problem_.pads_begin = as_list(std::vector<int>(pads.begin(), pads.begin() + axes()));
        problem_.pads_end = as_list(std::vector<int>(pads.begin() + axes(), pads.end()));
    }

    /* With SAME an axis with X inputs and stride s has s * (X - 1) + 1 outputs before `adj`, and
     * OpenCV's pad before it. */
    void set_same(size_t axis, std::vector<int> &pads) const
    {
        const int64_t s = problem_.strides.value[axis], adj = problem_.output_padding.value[axis];
        const int64_t kernel = problem_.filter.dim[2 + axis];
        if (problem_.dilations.value[axis] != 1)
            refuse("pad_mode is SAME, which OpenCV defines without dilation only");
        pads[axis] = s >= 1 && s <= kernel ? static_cast<int>((kernel - 1 - adj % s) / 2) : 0;
        pads[axes() + axis] = static_cast<int>(kernel) - 1 - pads[axis];
    }

    tconv_problem problem_for(const std::vector<int> &data) const
    {
        if (data.size() != axes() + 2)
            refuse("its data have " + std::to_string(data.size()) + " axes, but its weights " +
                   std::to_string(axes() + 2));
        tconv_problem problem = problem_;
        problem.data.rank = static_cast<int>(data.size());
        std::copy(data.begin(), data.end(), problem.data.dim);
        return problem;
    }

    tconv_problem problem_;
    std::vector<int> output_shape_; /* what a model says of it: at most the whole shape */
    std::unique_ptr<umat_layer> layer_;
    bool on_device_ = false;
};

#endif
