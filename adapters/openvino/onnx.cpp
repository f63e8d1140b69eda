// SPDX-License-Identifier: Apache-2.0
// Reads ONNX ConvTranspose: resolves pads by ONNX's rules, so that OpenVINO's operator with
// explicit pads computes the same.
#include "onnx.hpp"

#include "op.hpp"

#include <openvino/op/constant.hpp>
#include <openvino/op/reshape.hpp>

#include <algorithm>
#include <cstdio>

namespace tconv_openvino
{

using Integers = std::vector<int64_t>;

static size_t axes_of(const ov::frontend::NodeContext &node)
{
    for (int input : {1, 0}) {
        const ov::Rank rank = node.get_input(input).get_partial_shape().rank();
        if (rank.is_static() && rank.get_length() > 2)
            return static_cast<size_t>(rank.get_length()) - 2;
    }
    const size_t axes = node.get_attribute<Integers>("kernel_shape", {}).size();
    FRONT_END_GENERAL_CHECK(axes != 0, "ConvTranspose ", node.get_name(), " has no known rank");
    return axes;
}

// [C, M/G, K...] as [G, C/G, M/G, K...].
static ov::Output<ov::Node> grouped(const ov::Output<ov::Node> &filter, int64_t groups)
{
    const ov::PartialShape shape = filter.get_partial_shape();
    FRONT_END_GENERAL_CHECK(shape.is_static() && shape[0].get_length() % groups == 0,
                            "ConvTranspose in ", groups, " groups has a filter ", shape);
    ov::Shape target = shape.to_shape();
    target[0] /= static_cast<size_t>(groups);
    target.insert(target.begin(), static_cast<size_t>(groups));
    if (const auto constant = ov::as_type_ptr<ov::op::v0::Constant>(filter.get_node_shared_ptr()))
        return std::make_shared<ov::op::v0::Constant>(*constant, target);
    return std::make_shared<ov::op::v1::Reshape>(
        filter, ov::op::v0::Constant::create(ov::element::i64, {target.size()}, target), false);
}

// Gives the bias the filter's channel count, if that is known; the model may leave it open.
static ov::Output<ov::Node> for_channels(const ov::Output<ov::Node> &bias,
                                         const ov::Output<ov::Node> &filter, bool grouped)
{
    const ov::PartialShape shape = filter.get_partial_shape();
    int64_t channels;
    if (shape.is_dynamic() ||
        __builtin_mul_overflow(grouped ? shape[0].get_length() : 1,
                               shape[grouped ? 2 : 1].get_length(), &channels) ||
        bias.get_partial_shape() == ov::PartialShape{channels})
        return bias;
    return std::make_shared<ov::op::v1::Reshape>(
        bias, ov::op::v0::Constant::create(ov::element::i64, {1}, {channels}), false);
}

static ov::op::PadType pad_type_of(const std::string &text)
{
    if (text == "VALID") return ov::op::PadType::VALID;
    if (text == "SAME_UPPER") return ov::op::PadType::SAME_UPPER;
    if (text == "SAME_LOWER") return ov::op::PadType::SAME_LOWER;
    FRONT_END_GENERAL_CHECK(text.empty() || text == "NOTSET", "ConvTranspose has auto_pad ", text);
    return ov::op::PadType::EXPLICIT;
}

static void tell(const ov::frontend::NodeContext &node, const char *what)
{
    std::fprintf(stderr, "tconv_cl: ConvTranspose \"%s\" %s\n", node.get_name().c_str(), what);
}

// Sets explicit pads if the extents are known; the batch may be unknown.
static void resolve(const ov::frontend::NodeContext &node, const ov::Output<ov::Node> &filter,
                    const Integers &output_shape, Attributes &attributes)
{
    const bool same = attributes.auto_pad == ov::op::PadType::SAME_UPPER ||
                      attributes.auto_pad == ov::op::PadType::SAME_LOWER;
    if (output_shape.empty() && !same) return;
    ov::PartialShape data = node.get_input(0).get_partial_shape();
    if (data.rank().is_static() && filter.get_partial_shape().is_static()) {
        const ov::Shape &f = filter.get_shape();
        data[0] = 1;
        data[1] = static_cast<int64_t>(attributes.grouped ? f[0] * f[1] : f[0]);
    }
    if (data.is_dynamic() || filter.get_partial_shape().is_dynamic()) {
        tell(node, "has pads that follow from extents, which are not known: OpenVINO's rules are "
                   "used, not ONNX's");
        return;
    }
    tconv_problem problem = problem_of(attributes, ov::element::f32, ov::element::f32,
                                       data.to_shape(), filter.get_shape(),
                                       output_shape); // of any type
    problem.rules = TCONV_RULES_ONNX;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_error error;
    const tconv_status status = tconv_resolve(&problem, &geometry, &error);
    FRONT_END_GENERAL_CHECK(status == TCONV_OK, "ConvTranspose ", node.get_name(), ": ",
                            error.message);
    // OpenVINO's own reader differs: it gives the begin the larger half, drops all pads if there
    // are groups, and uses its operator's rules if the batch is unknown.
    bool differs = node.get_input(0).get_partial_shape().is_dynamic();
    for (int i = 0; i < geometry.axes; i++) {
        const int64_t begin = geometry.pad_begin[i], end = geometry.pad_end[i];
        const int64_t total = std::max<int64_t>(0, begin + end);
        differs |= !output_shape.empty() && begin != (attributes.grouped ? 0 : total - total / 2);
        attributes.pads_begin[static_cast<size_t>(i)] = begin;
        attributes.pads_end[static_cast<size_t>(i)] = end;
    }
    attributes.auto_pad = ov::op::PadType::EXPLICIT;
    if (differs)
        tell(node, "has the pads that ONNX defines; OpenVINO's own reader may take others");
}

ov::OutputVector conv_transpose(const ov::frontend::NodeContext &node)
{
    const size_t axes = axes_of(node);
    const auto list = [&](const char *name, size_t size, int64_t absent) {
        Integers values = node.get_attribute<Integers>(name, {});
        if (values.empty()) values.assign(size, absent);
        FRONT_END_GENERAL_CHECK(values.size() == size, "ConvTranspose ", node.get_name(), ": ",
                                name, " has ", values.size(), " numbers, not ", size);
        return values;
    };
    const Integers strides = list("strides", axes, 1), dilations = list("dilations", axes, 1);
    const Integers pads = list("pads", 2 * axes, 0), padding = list("output_padding", axes, 0);
    const int64_t groups = node.get_attribute<int64_t>("group", 1);
    Integers output_shape = node.get_attribute<Integers>("output_shape", {});
    if (output_shape.size() == axes + 2) // some models also give batch and channels
        output_shape.erase(output_shape.begin(), output_shape.begin() + 2);

    const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(axes);
    Attributes attributes;
    attributes.grouped = groups > 1;
    attributes.strides.assign(strides.begin(), strides.end());
    attributes.dilations.assign(dilations.begin(), dilations.end());
    attributes.pads_begin.assign(pads.begin(), middle);
    attributes.pads_end.assign(middle, pads.end());
    attributes.output_padding.assign(padding.begin(), padding.end());
    attributes.auto_pad = pad_type_of(node.get_attribute<std::string>("auto_pad", "NOTSET"));

    const ov::Output<ov::Node> data = node.get_input(0);
    ov::Output<ov::Node> filter = node.get_input(1);
    if (attributes.grouped) filter = grouped(filter, groups);

    resolve(node, filter, output_shape, attributes);
    std::optional<ov::Output<ov::Node>> extents, bias;
    ov::OutputVector inputs{data, filter};
    if (!output_shape.empty())
        inputs.push_back(
            *(extents = ov::op::v0::Constant::create(ov::element::i64, {axes}, output_shape)));
    if (node.get_input_size() > 2)
        bias = for_channels(node.get_input(2), filter, attributes.grouped);
    const auto stock = stock_operator(attributes, data, filter, extents);
    return replacement(attributes, inputs, stock, 0, bias)->outputs();
}

} // namespace tconv_openvino
