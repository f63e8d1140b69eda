/* SPDX-License-Identifier: Apache-2.0 */
/* Registers dnn_layer.hpp in cv::dnn and compares it with OpenCV's own layer, in ONNX models with
 * one ConvTranspose and a Relu. The models are made here. */
#include "dnn_layer.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

/* ---- an ONNX model: messages of protocol buffers, whose fields have numbers ---- */

static std::string varint(uint64_t number)
{
    std::string bytes;
    for (; number >= 128; number >>= 7) bytes += static_cast<char>((number & 127) | 128);
    return bytes + static_cast<char>(number);
}

static std::string field(int number, int64_t value)
{
    return varint(static_cast<uint64_t>(number) << 3) + varint(static_cast<uint64_t>(value));
}

static std::string field(int number, const std::string &bytes)
{
    return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}

static std::string list(const std::string &name, const std::vector<int64_t> &values)
{
    std::string attribute = field(1, name) + field(20, 7);
    for (const int64_t value : values) attribute += field(8, value);
    return field(5, attribute);
}

static std::string tensor(const std::string &name, const cv::Mat &values)
{
    std::string proto = field(2, 1) + field(8, name);
    for (int a = 0; a < values.dims; a++) proto += field(1, values.size[a]);
    return field(5, proto + field(9, std::string(values.ptr<char>(), values.total() * 4)));
}

static std::string value(const std::string &name, const std::vector<int> &shape)
{
    std::string dims;
    for (const int extent : shape) dims += field(1, field(1, extent));
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)));
}

/* ---- layers ---- */

struct layer {
    const char *why;
    std::vector<int> data, filter; /* as ONNX has them: filter [inputs, outputs of a group, K...] */
    std::vector<int64_t> strides, dilations, pads, output_padding;
    int groups;
};

static const layer layers[] = {
    {"doubling", {1, 8, 12, 15}, {8, 6, 4, 4}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {0, 0}, 1},
    {"batch, groups", {3, 6, 7, 9}, {6, 2, 3, 5}, {2, 3}, {1, 1}, {1, 2, 1, 2}, {1, 0}, 3},
    {"different pads", {1, 4, 10, 8}, {4, 5, 3, 3}, {1, 1}, {1, 1}, {0, 1, 1, 0}, {0, 0}, 1},
};

static cv::Mat random_tensor(const std::vector<int> &shape, cv::RNG &random)
{
    cv::Mat values(shape, CV_32F);
    random.fill(values, cv::RNG::UNIFORM, -1, 1);
    return values;
}

static std::string model_of(const layer &l)
{
    cv::RNG random(1); /* the same weights at each call */
    const std::vector<int> outputs = {l.filter[1] * l.groups};
    const cv::Mat bias = random_tensor({outputs[0], 1}, random).reshape(1, outputs);
    const std::string node =
        field(1, std::string("x")) + field(1, std::string("w")) + field(1, std::string("b")) +
        field(2, std::string("sum")) + field(3, std::string("up")) +
        field(4, std::string("ConvTranspose")) + list("kernel_shape", {l.filter[2], l.filter[3]}) +
        list("strides", l.strides) + list("dilations", l.dilations) + list("pads", l.pads) +
        list("output_padding", l.output_padding) +
        field(5, field(1, std::string("group")) + field(20, 2) + field(3, l.groups));
    const std::string relu = field(1, std::string("sum")) + field(2, std::string("y")) +
                             field(4, std::string("Relu"));
    const std::string graph = field(1, node) + field(1, relu) + field(2, std::string("g")) +
                              tensor("w", random_tensor(l.filter, random)) + tensor("b", bias) +
                              field(11, value("x", l.data)) + field(12, value("y", {}));
    return field(1, 7) + field(7, graph) + field(8, field(2, 11));
}

/* OpenCV 5 reads models with a new engine, which has another layer for ConvTranspose and only the
 * target CPU. Its classic engine has Deconvolution. */
static cv::dnn::Net net_of(const std::string &model)
{
#if CV_VERSION_MAJOR >= 5
    return cv::dnn::readNetFromONNX(model.data(), model.size(), cv::dnn::ENGINE_CLASSIC);
#else
    return cv::dnn::readNetFromONNX(model.data(), model.size());
#endif
}

static cv::Mat computed(const std::string &model, const cv::Mat &data, int target, bool *ours,
                        bool *on_device)
{
    cv::dnn::Net net = net_of(model);
    net.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
    net.setPreferableTarget(target);
    net.setInput(data);
    cv::Mat result = net.forward().clone();
    *ours = *on_device = false;
    for (const cv::String &name : net.getLayerNames()) {
        const auto layer = net.getLayer(net.getLayerId(name)).dynamicCast<tconv_deconvolution>();
        if (layer.empty()) continue;
        *ours = true;
        *on_device = layer->on_device();
    }
    return result;
}

/* What OpenCV's own layer computes. It does not take different pads before and after an axis; then
 * a layer without pads gives more rows and columns, which are cut off. */
static cv::Mat expected_of(layer l, const cv::Mat &data, bool *ours)
{
    bool on_device;
    const std::vector<int64_t> pads = l.pads;
    if (pads[0] == pads[2] && pads[1] == pads[3])
        return computed(model_of(l), data, cv::dnn::DNN_TARGET_CPU, ours, &on_device);
    l.pads.assign(4, 0);
    const cv::Mat whole = computed(model_of(l), data, cv::dnn::DNN_TARGET_CPU, ours, &on_device);
    const cv::Range ranges[4] = {
        cv::Range::all(), cv::Range::all(),
        cv::Range(static_cast<int>(pads[0]), whole.size[2] - static_cast<int>(pads[2])),
        cv::Range(static_cast<int>(pads[1]), whole.size[3] - static_cast<int>(pads[3]))};
    return whole(ranges).clone();
}

int main()
{
    try {
        bool right = true, ours, on_device;
        const int targets[] = {cv::dnn::DNN_TARGET_CPU, cv::dnn::DNN_TARGET_OPENCL};
        std::vector<std::string> models;
        std::vector<cv::Mat> data, expected;
        cv::RNG random(2);
        for (const layer &l : layers) {
            models.push_back(model_of(l));
            data.push_back(random_tensor(l.data, random));
            expected.push_back(expected_of(l, data.back(), &ours));
            right = right && !ours;
        }
        CV_DNN_REGISTER_LAYER_CLASS(Deconvolution, tconv_deconvolution)
        for (size_t i = 0; i < models.size(); i++)
            for (const int target : targets) {
                const cv::Mat result = computed(models[i], data[i], target, &ours, &on_device);
                /* Two sums of at most n products of numbers up to 1, and the bias. */
                const int n = layers[i].filter[0] * layers[i].filter[2] * layers[i].filter[3];
                const double bound = 2 * (n + 2) * std::ldexp(1, -24) * (n + 1);
                const bool same_shape = result.size == expected[i].size;
                const double error = same_shape ? cv::norm(result, expected[i], cv::NORM_INF)
                                                : INFINITY;
                std::printf("%s, target %s: %s, %s; differs from OpenCV's layer by %.2g, "
                            "bound %.2g\n",
                            layers[i].why, target == targets[0] ? "CPU" : "OpenCL",
                            ours ? "tconv-cl" : "OpenCV", on_device ? "UMat" : "Mat", error, bound);
                right = right && ours && error <= bound;
            }
        return right ? 0 : 1;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
