/* SPDX-License-Identifier: Apache-2.0 */
/* The layer of examples/opencv/dnn_layer.hpp against OpenCV's own, for every parameter that it
 * takes; what it refuses, by name; halves; and UMats that are not a plan's tensors. */
#include "dnn_layer.hpp"

#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

using cv::dnn::DictValue;
using cv::dnn::LayerParams;
typedef std::vector<int> ints;

static int failures = 0;

static void fail(const std::string &what)
{
    std::printf("FAILED: %s\n", what.c_str());
    failures++;
}

/* Expects an exception whose sentence has all `words`. */
static void refused(const std::string &what, const std::vector<std::string> &words,
                    const std::function<void()> &call)
{
    try {
        call();
        fail(what + ": no exception");
    } catch (const std::exception &e) {
        for (const std::string &word : words)
            if (std::string(e.what()).find(word) == std::string::npos)
                fail(what + ": no \"" + word + "\" in " + e.what());
    }
}

static cv::Mat random_tensor(const ints &shape)
{
    cv::RNG random(5);
    cv::Mat values(shape, CV_32F);
    random.fill(values, cv::RNG::UNIFORM, -1, 1);
    return values;
}

/* ---- tensors ---- */

static cv::UMat umat_of(const ints &shape, int type)
{
    cv::UMat umat;
    umat.create(shape, type);
    umat.setTo(cv::Scalar::all(1));
    return umat;
}

/* Elements from `begin` on of a UMat with one row, in a shape. */
static cv::UMat part_of(const cv::UMat &row, int begin, const ints &shape)
{
    int count = 1;
    for (const int extent : shape) count *= extent;
    return row(cv::Rect(begin, 0, count, 1))
        .reshape(1, static_cast<int>(shape.size()), shape.data());
}

/* ---- parameters ---- */

struct layer {
    const char *why;
    ints data, filter;
    bool bias;
    std::function<void(LayerParams &)> set;
};

static LayerParams params_of(const layer &l)
{
    LayerParams params;
    params.name = "up";
    params.type = "Deconvolution";
    params.blobs.push_back(random_tensor(l.filter));
    if (l.bias) params.blobs.push_back(random_tensor({l.filter[1], 1}).reshape(1, {l.filter[1]}));
    l.set(params);
    return params;
}

static void list(LayerParams &params, const char *name, const ints &values)
{
    params.set(name, DictValue::arrayInt(values.data(), static_cast<int>(values.size())));
}

static cv::Mat computed(const layer &l, bool ours)
{
    if (ours) {
        CV_DNN_REGISTER_LAYER_CLASS(Deconvolution, tconv_deconvolution)
    }
    cv::Mat result;
    try {
        cv::dnn::Net net;
        LayerParams params = params_of(l);
        net.addLayerToPrev("up", "Deconvolution", params);
        net.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
        net.setInput(random_tensor(l.data));
        result = net.forward().clone();
    } catch (...) {
        if (ours) cv::dnn::LayerFactory::unregisterLayer("Deconvolution");
        throw;
    }
    if (ours) cv::dnn::LayerFactory::unregisterLayer("Deconvolution");
    return result;
}

static void compare(const layer &l, const cv::Mat &expected)
{
    const cv::Mat result = computed(l, true);
    int terms = l.filter[0];
    for (size_t a = 2; a < l.filter.size(); a++) terms *= l.filter[a];
    const double bound = 2 * (terms + 2) * std::ldexp(1, -24) * (terms + 1);
    if (result.size != expected.size)
        fail(std::string(l.why) + ": another shape");
    else if (!(cv::norm(result, expected, cv::NORM_INF) <= bound))
        fail(std::string(l.why) + ": other values");
}

static const ints data = {2, 6, 5, 7}, filter = {6, 4, 3, 3}; /* most layers have these */

static void names_of_parameters()
{
    const std::vector<layer> layers = {
        {"one number for both axes", data, filter, true,
         [](LayerParams &p) {
             p.set("kernel_size", 3), p.set("stride", 2), p.set("pad", 1), p.set("adj", 1);
             p.set("num_output", 4), p.set("bias_term", true), p.set("dilation", 1);
         }},
        {"rows and columns",
         data,
         {6, 4, 3, 2},
         false,
         [](LayerParams &p) {
             p.set("kernel_h", 3), p.set("kernel_w", 2), p.set("stride_h", 2);
             p.set("stride_w", 3), p.set("pad_h", 1), p.set("pad_w", 0), p.set("adj_h", 1);
             p.set("adj_w", 2), p.set("num_output", 4), p.set("bias_term", false);
             p.set("dilation_h", 1), p.set("dilation_w", 1);
         }},
        {"rows and columns before lists", data, filter, false,
         [](LayerParams &p) {
             p.set("kernel_size", 3), p.set("num_output", 4), p.set("stride", 1);
             p.set("stride_h", 2), p.set("stride_w", 3);
         }},
        {"sides", data, filter, false,
         [](LayerParams &p) {
             p.set("kernel_size", 3), p.set("num_output", 4), p.set("pad", 0);
             p.set("pad_t", 1), p.set("pad_l", 0), p.set("pad_b", 1), p.set("pad_r", 0);
         }},
        {"lists",
         data,
         {6, 4, 3, 2},
         false,
         [](LayerParams &p) {
             list(p, "kernel_size", {3, 2}), list(p, "stride", {2, 3}), list(p, "pad", {1, 0});
             list(p, "adj", {1, 2}), list(p, "dilation", {1, 1}), p.set("num_output", 4);
         }},
        {"a list of four pads", data, filter, false,
         [](LayerParams &p) {
             p.set("kernel_size", 3), list(p, "pad", {1, 0, 1, 0}), p.set("num_output", 4);
         }},
        {"VALID, in place of pads", data, filter, false,
         [](LayerParams &p) {
             p.set("kernel_size", 3), p.set("num_output", 4), p.set("pad", 1);
             p.set("pad_mode", "VALID");
         }},
        {"SAME", data, filter, false,
         [](LayerParams &p) {
             p.set("kernel_size", 3), p.set("num_output", 4), p.set("stride", 2);
             p.set("pad_mode", "SAME"), p.set("adj_h", 0), p.set("adj_w", 1), p.set("pad", 2);
         }},
        {"SAME, strides above the kernel and below",
         data,
         {6, 4, 2, 5},
         false,
         [](LayerParams &p) {
             p.set("kernel_h", 2), p.set("kernel_w", 5), p.set("num_output", 4);
             p.set("stride_h", 3), p.set("stride_w", 3), p.set("pad_mode", "SAME");
             p.set("adj_h", 2), p.set("adj_w", 2);
         }},
        {"groups",
         data,
         {6, 4, 3, 3},
         false,
         [](LayerParams &p) {
             p.set("kernel_size", 3), p.set("num_output", 12), p.set("group", 3);
         }},
        {"what Caffe models say besides", data, filter, false,
         [](LayerParams &p) {
             p.set("kernel_size", 3), p.set("num_output", 4), p.set("engine", "CAFFE");
             p.set("axis", 1), p.set("force_nd_im2col", false), p.set("type", "gaussian");
             p.set("std", 0.1), p.set("bias_term", false);
         }},
    };
    for (const layer &l : layers) compare(l, computed(l, false));
#if CV_VERSION_MAJOR == 4 /* OpenCV 5 does not read num_output */
    const layer few = {"groups, from num_output", data, filter, false,
                       [](LayerParams &p) { p.set("kernel_size", 3), p.set("num_output", 12); }};
    compare(few, computed(few, false));
#endif
}

/* The operation, in f64, with up to three spatial axes. */
static cv::Mat by_definition(const layer &l, const ints &stride, const ints &dilation,
                             const ints &begin, const ints &output)
{
    const cv::Mat x = random_tensor(l.data), w = random_tensor(l.filter);
    const size_t axes = l.data.size() - 2;
    ints shape = {l.data[0], l.filter[1]};
    shape.insert(shape.end(), output.begin(), output.end());
    cv::Mat sums(shape, CV_32F, cv::Scalar(0));
    for (size_t i = 0; i < x.total(); i++)
        for (size_t j = 0; j < w.total(); j++) {
            size_t in = i, tap = j, at = 0, step = 1;
            bool inside = true;
            for (size_t a = axes + 1; a >= 2; a--) {
                const size_t extent = static_cast<size_t>(l.data[a]);
                const size_t kernel = static_cast<size_t>(l.filter[a]);
                const int y = static_cast<int>(in % extent) * stride[a - 2] +
                              static_cast<int>(tap % kernel) * dilation[a - 2] - begin[a - 2];
                inside = inside && y >= 0 && y < output[a - 2];
                at += static_cast<size_t>(y) * step;
                step *= static_cast<size_t>(output[a - 2]);
                in /= extent, tap /= kernel;
            }
            const size_t outputs = static_cast<size_t>(l.filter[1]);
            const size_t inputs = static_cast<size_t>(l.data[1]), batch = in / inputs;
            if (inside && tap / outputs == in % inputs)
                sums.ptr<float>()[(batch * outputs + tap % outputs) * step + at] +=
                    x.ptr<float>()[i] * w.ptr<float>()[j];
        }
    return sums;
}

/* What OpenCV 4.6 has not, or computes otherwise: dilations, different pads, other axes. */
static void more_than_opencv()
{
    const layer dilated = {"dilations", data, filter, false, [](LayerParams &p) {
                               list(p, "dilation", {2, 3}), p.set("stride_h", 1);
                               p.set("stride_w", 2), list(p, "pad", {1, 2});
                           }};
    compare(dilated, by_definition(dilated, {1, 2}, {2, 3}, {1, 2}, {7, 15}));
    const layer sides = {"different pads", data, filter, false, [](LayerParams &p) {
                             p.set("pad_t", 2), p.set("pad_l", 1), p.set("pad_b", 0);
                             p.set("pad_r", 1), p.set("stride", 2);
                         }};
    compare(sides, by_definition(sides, {2, 2}, {1, 1}, {2, 1}, {9, 13}));
    const layer line = {"one axis", {2, 6, 9}, {6, 4, 5}, false, [](LayerParams &p) {
                            p.set("kernel_size", 5), p.set("stride", 3), list(p, "pad", {2, 1});
                            p.set("num_output", 4);
                        }};
    compare(line, by_definition(line, {3}, {1}, {2}, {26}));
    const layer volume = {
        "three axes", {1, 3, 3, 4, 5}, {3, 2, 2, 3, 3}, false, [](LayerParams &p) {
            list(p, "kernel_size", {2, 3, 3}), p.set("stride", 2);
            list(p, "pad", {0, 1, 1, 0, 1, 0}), list(p, "adj", {1, 0, 0});
        }};
    compare(volume, by_definition(volume, {2, 2, 2}, {1, 1, 1}, {0, 1, 1}, {7, 7, 10}));
    const layer told = {"the shape that a model says", data, filter, false, [](LayerParams &p) {
                            p.set("stride", 2), list(p, "output_shape", {11, 15});
                            p.set("pad_mode", "VALID");
                        }};
    compare(told, by_definition(told, {2, 2}, {1, 1}, {0, 0}, {11, 15}));
}

static void refusals()
{
    const struct {
        std::vector<std::string> words;
        std::function<void(LayerParams &)> set;
    } cases[] = {
        {{"'up'", "pad_mode is same", "SAME"}, [](LayerParams &p) { p.set("pad_mode", "same"); }},
        {{"pad_mode is valid"}, [](LayerParams &p) { p.set("pad_mode", "valid"); }},
        {{"does not know the parameter pads"},
         [](LayerParams &p) {
             list(p, "pads", {1, 1});
         }},
        {{"does not know the parameter strides"}, [](LayerParams &p) { p.set("strides", 2); }},
        {{"stride_h is given without stride_w"}, [](LayerParams &p) { p.set("stride_h", 2); }},
        {{"pad_w is given without pad_h"}, [](LayerParams &p) { p.set("pad_w", 1); }},
        {{"pad_t", "pad_r", "or none"}, [](LayerParams &p) { p.set("pad_t", 1); }},
        {{"stride has 3 numbers", "2 spatial axes"},
         [](LayerParams &p) {
             list(p, "stride", {1, 2, 3});
         }},
        {{"adj has 4 numbers"},
         [](LayerParams &p) {
             list(p, "adj", {1, 0, 1, 0});
         }},
        {{"kernel_size is 4", "axis 1", "have 3"},
         [](LayerParams &p) {
             list(p, "kernel_size", {3, 4});
         }},
        {{"num_output is 5", "4 outputs"}, [](LayerParams &p) { p.set("num_output", 5); }},
        {{"num_output is 4 in 2 groups", "4 outputs"},
         [](LayerParams &p) { p.set("num_output", 4), p.set("group", 2); }},
        {{"bias_term is true"}, [](LayerParams &p) { p.set("bias_term", true); }},
        {{"axis must be 1"}, [](LayerParams &p) { p.set("axis", 2); }},
        {{"output_padding", "adj"}, [](LayerParams &p) { p.set("output_padding", 1); }},
        {{"SAME", "dilation"},
         [](LayerParams &p) { p.set("dilation", 2), p.set("pad_mode", "SAME"); }},
        {{"output_shape"},
         [](LayerParams &p) {
             list(p, "output_shape", {12, 15});
         }},
        {{"strides is 0"}, [](LayerParams &p) { p.set("stride", 0); }},
        {{"pads_begin is -1"}, [](LayerParams &p) { p.set("pad", -1); }},
        {{"group"}, [](LayerParams &p) { p.set("group", 4); }},
        {{"0 blobs"}, [](LayerParams &p) { p.blobs.clear(); }},
        {{"CV_64F"}, [](LayerParams &p) { p.blobs[0].convertTo(p.blobs[0], CV_64F); }},
        {{"2 axes"}, [](LayerParams &p) { p.blobs[0] = p.blobs[0].reshape(1, 6); }},
    };
    for (const auto &one : cases) {
        const layer l = {"", data, filter, false, one.set};
        refused("a parameter", one.words, [&l] { computed(l, true); });
    }
    const layer line = {"", {2, 6, 9}, {6, 4, 5}, false, [](LayerParams &p) {
                            p.set("stride_h", 1), p.set("stride_w", 1);
                        }};
    refused("rows of one axis", {"stride_h and stride_w", "2 spatial axes"},
            [&line] { computed(line, true); });
    const layer flat = {"", {6, 9}, filter, false, [](LayerParams &) {}};
    refused("data of two axes", {"data have 2 axes", "4"}, [&flat] { computed(flat, true); });
}

/* ---- types ---- */

/* The target OPENCL_FP16 gives halves in UMats. The sums are exact in halves. */
static void halves(int depth)
{
    for (const int side : {8, 64}) { /* OpenCV rounds large buffers of its pool up */
        const ints xs = {1, 1, side, side}, ys = {1, 1, 2 * side, 2 * side};
        LayerParams params;
        cv::Mat x(xs, CV_32F), half;
        params.set("stride", 2);
        params.blobs.push_back(cv::Mat(ints{1, 1, 2, 2}, CV_32F, cv::Scalar(0.5)));
        params.blobs.push_back(cv::Mat(ints{1, 1}, CV_32F, cv::Scalar(3)));
        for (int i = 0; i < side * side; i++) x.ptr<float>()[i] = static_cast<float>(i % 50);
        x.convertTo(half, CV_16F);
        std::vector<cv::UMat> in(1), out(1), internals;
        cv::Mat(xs, CV_MAKETYPE(depth, 1), half.data).copyTo(in[0]);
        out[0].create(ys, CV_MAKETYPE(depth, 1));
        cv::Ptr<cv::dnn::Layer> layer = tconv_deconvolution::create(params);
        layer->finalize(in, out);
        layer->forward(in, out, internals);
        cv::Mat stored, y;
        out[0].copyTo(stored);
        cv::Mat(ys, CV_16F, stored.data).convertTo(y, CV_32F);
        for (int i = 0; i < side * side; i++) {
            const int row = i / side * 2, column = i % side * 2;
            const float *first = y.ptr<float>() + row * 2 * side + column;
            const float wanted = static_cast<float>(i % 50) / 2 + 3;
            if (first[0] != wanted || first[2 * side + 1] != wanted)
                return fail("halves: " + std::to_string(first[0]) + " for " +
                            std::to_string(wanted));
        }
    }
}

static void other_types()
{
    LayerParams params;
    params.blobs.push_back(cv::Mat(ints{1, 1, 2, 2}, CV_32F, cv::Scalar(0.5)));
    cv::Ptr<cv::dnn::Layer> layer = tconv_deconvolution::create(params);
    std::vector<cv::UMat> in(1), out(1), internals;
    for (const int depth : {CV_64F, CV_8S, CV_32S}) {
        in[0] = umat_of({1, 1, 4, 4}, depth);
        refused("a type", {cv::depthToString(depth), "CV_32F"}, [&] { layer->finalize(in, out); });
    }
    in[0].create(ints{1, 1, 4, 4}, CV_32F);
    out[0].create(ints{1, 1, 5, 5}, CV_32F);
    refused("forward first", {"finalize"}, [&] { layer->forward(in, out, internals); });
    layer->finalize(in, out);
    in[0].create(ints{1, 1, 4, 4}, CV_16S);
    refused("another type than finalize()'s", {"data", "CV_16S", "f32"},
            [&] { layer->forward(in, out, internals); });
}

/* ---- what a plan takes ---- */

static void other_umats()
{
    const tconv::device device = opencv_device();
    tconv_problem problem = TCONV_PROBLEM_INIT;
    problem.data = shape_of(1, 2, 4, 5);
    problem.filter = shape_of(2, 3, 2, 2);
    const cv::UMat weights = umat_of({2, 3, 2, 2}, CV_32F), bias = umat_of({1, 3}, CV_32F);
    umat_layer layer(device, problem, weights, bias);
    cv::UMat in = umat_of({1, 2, 4, 5}, CV_32F), out = umat_of({1, 3, 5, 6}, CV_32F);
    layer.run(in, out);
    const auto data_refused = [&](const ints &shape, int type,
                                  const std::vector<std::string> &words) {
        cv::UMat other = umat_of(shape, type);
        refused("data", words, [&] { layer.run(other, out); });
    };
    const auto output_refused = [&](const ints &shape, int type,
                                    const std::vector<std::string> &words) {
        cv::UMat other = umat_of(shape, type);
        refused("output", words, [&] { layer.run(in, other); });
    };
    data_refused({1, 2, 4, 5}, CV_16S, {"data", "CV_16S", "f32"});
    data_refused({1, 2, 4, 6}, CV_32F, {"data is 1 x 2 x 4 x 6", "1 x 2 x 4 x 5"});
    data_refused({1, 2, 5, 4}, CV_32F, {"data is 1 x 2 x 5 x 4", "1 x 2 x 4 x 5"});
    data_refused({1, 2, 20}, CV_32F, {"data is 1 x 2 x 20", "1 x 2 x 4 x 5"});
    data_refused({1, 2, 4, 5}, CV_32FC2, {"data is 1 x 2 x 4 x 5 x 2", "1 x 2 x 4 x 5"});
    data_refused({8, 5}, CV_32F, {"data is 1 x 8 x 5 x 1", "1 x 2 x 4 x 5"});
    output_refused({1, 3, 5, 5}, CV_32F, {"output is 1 x 3 x 5 x 5", "1 x 3 x 5 x 6"});
    output_refused({1, 3, 5, 6}, CV_64F, {"output", "CV_64F", "f32"});
    cv::UMat empty, large = umat_of({1, 2, 4, 9}, CV_32F);
    refused("data", {"data is empty"}, [&] { layer.run(empty, out); });
    const cv::Range all = cv::Range::all(), ranges[] = {all, all, all, cv::Range(0, 5)};
    refused("gaps", {"data", "step of 9 elements", "axis 2", "is 5"},
            [&] { layer.run(large(ranges), out); });

    const cv::UMat one = umat_of({1, 200}, CV_32F);
    cv::UMat first = part_of(one, 0, {1, 2, 4, 5}), second = part_of(one, 20, {1, 3, 5, 6});
    refused("overlap", {"tensors.output overlaps tensors.data"}, [&] { layer.run(first, second); });

    cv::UMat few(1, 23, CV_32F), halves(1, 24, CV_16S), gaps(4, 9, CV_32F);
    refused("weights", {"the filter has 23 elements", "has 24"},
            [&] { umat_layer other(device, problem, few); });
    refused("weights", {"the filter", "CV_16S", "f32"},
            [&] { umat_layer other(device, problem, halves); });
    refused("weights", {"the filter has 24 elements with gaps"},
            [&] { umat_layer other(device, problem, gaps(cv::Rect(0, 0, 6, 4))); });
    refused("bias", {"the bias has 24 elements", "has 3"},
            [&] { umat_layer other(device, problem, weights, weights); });

    /* A picture, whose rows may be further apart. */
    problem.operation = TCONV_ONEAPI_CONV_BACKPROP; /* channels last */
    problem.filter_format = TCONV_OIX;
    cv::UMat picture(4, 5, CV_32FC2, cv::Scalar::all(1)), doubled(5, 6, CV_32FC3);
    problem.data = picture_shape(picture);
    umat_layer last(device, problem, weights, bias);
    last.run(picture, doubled);
    cv::UMat wide(4, 9, CV_32FC2), three(4, 5, CV_32FC3);
    refused("gaps", {"data", "step of 18 elements", "axis 1", "is 10"},
            [&] { last.run(wide(cv::Rect(0, 0, 5, 4)), doubled); });
    refused("channels", {"data is 1 x 4 x 5 x 3", "1 x 4 x 5 x 2"},
            [&] { last.run(three, doubled); });
    refused("output", {"output is 1 x 4 x 5 x 3", "1 x 5 x 6 x 3"},
            [&] { last.run(picture, three); });
}

int main()
{
    try {
        names_of_parameters();
        more_than_opencv();
        refusals();
        halves(CV_16F);
        halves(CV_16S);
        other_types();
        other_umats();
    } catch (const std::exception &e) {
        fail(e.what());
    }
    cv::ocl::finish(); /* PoCL must not compile while the process ends */
    std::printf("%d failures\n", failures);
    return failures == 0 ? 0 : 1;
}
