// SPDX-License-Identifier: Apache-2.0
#include "op.hpp"

#include <openvino/op/add.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/group_conv.hpp>
#include <openvino/op/parameter.hpp>

#include <algorithm>
#include <cstdio>

namespace tconv_openvino
{

static void tell(const std::string &name, const char *why)
{
    std::fprintf(stderr, "tconv_cl: OpenVINO's own operator computes %s: %s\n", name.c_str(), why);
}

TransposedConvolution::TransposedConvolution(const ov::OutputVector &inputs,
                                             const Attributes &attributes)
    : Op(inputs), attributes_(attributes)
{
    constructor_validate_and_infer_types();
}

bool TransposedConvolution::visit_attributes(ov::AttributeVisitor &visitor)
{
    visitor.on_attribute("grouped", attributes_.grouped);
    visitor.on_attribute("strides", attributes_.strides);
    visitor.on_attribute("dilations", attributes_.dilations);
    visitor.on_attribute("pads_begin", attributes_.pads_begin);
    visitor.on_attribute("pads_end", attributes_.pads_end);
    visitor.on_attribute("output_padding", attributes_.output_padding);
    visitor.on_attribute("auto_pad", attributes_.auto_pad);
    visitor.on_attribute("scale", attributes_.scale);
    visitor.on_attribute("bias", attributes_.bias);
    visitor.on_attribute("residual", attributes_.residual);
    visitor.on_attribute("activation", attributes_.activation);
    visitor.on_attribute("a", attributes_.a);
    visitor.on_attribute("b", attributes_.b);
    visitor.on_attribute("device", attributes_.device);
    visitor.on_attribute("search", attributes_.search);
    visitor.on_attribute("channels_last", attributes_.channels_last);
    visitor.on_attribute("requantize", attributes_.requantize);
    visitor.on_attribute("output_type", attributes_.output_type);
    visitor.on_attribute("data_zero_point", attributes_.data_zero_point);
    visitor.on_attribute("filter_zero_point", attributes_.filter_zero_point);
    visitor.on_attribute("output_zero_point", attributes_.output_zero_point);
    return true;
}

bool TransposedConvolution::has_slope() const
{
    return tconv_activation_has_slope(epilogue_of(attributes_).activation);
}

size_t TransposedConvolution::required_inputs() const
{
    return size_t{2} + attributes_.scale + attributes_.bias + attributes_.residual + has_slope();
}

static ov::PartialShape channels_first(ov::PartialShape shape)
{
    if (shape.size() > 2) std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
    return shape;
}

static ov::PartialShape channels_last(ov::PartialShape shape)
{
    if (shape.rank().is_static() && shape.size() > 2)
        std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
    return shape;
}

void TransposedConvolution::validate_and_infer_types()
{
    const size_t required = required_inputs();
    NODE_VALIDATION_CHECK(this, get_input_size() == required || get_input_size() == required + 1,
                          "takes ", required, " inputs and output_shape, not ", get_input_size());
    std::optional<ov::Output<ov::Node>> output_shape;
    if (get_input_size() > required) output_shape = input_value(required);
    // For the shapes of OpenVINO's own operator, which has one floating type and channels first.
    const bool bytes = attributes_.requantize;
    const bool moved = attributes_.channels_last && get_input_partial_shape(0).rank().is_static();
    const auto stand_in = [&](size_t input, const ov::PartialShape &shape) {
        const auto type = bytes ? ov::element::f32 : get_input_element_type(input);
        return std::make_shared<ov::op::v0::Parameter>(type, shape)->output(0);
    };
    ov::Output<ov::Node> data = input_value(0), filter = input_value(1);
    if (moved || bytes) {
        const ov::PartialShape &shape = get_input_partial_shape(0);
        data = stand_in(0, moved ? channels_first(shape) : shape);
    }
    if (bytes) filter = stand_in(1, get_input_partial_shape(1));
    const auto stock = stock_operator(attributes_, data, filter, output_shape);
    const ov::PartialShape &output = stock->get_output_partial_shape(0);
    const ov::PartialShape own = moved ? channels_last(output) : output;
    const size_t residual = size_t{2} + attributes_.scale + attributes_.bias;
    const auto type = bytes ? ov::element::f32 : get_input_element_type(0);
    for (size_t i = 2; i < required; i++) {
        NODE_VALIDATION_CHECK(this, get_input_element_type(i) == type, "input ", i, " is not ",
                              type);
        if (attributes_.residual && i == residual) {
            NODE_VALIDATION_CHECK(this, get_input_partial_shape(i).compatible(own), "input ", i,
                                  " does not have the shape of the output");
            continue;
        }
        ov::Dimension channels = ov::Dimension::dynamic();
        if (output.rank().is_static()) channels = output[1];
        NODE_VALIDATION_CHECK(this, get_input_partial_shape(i).compatible({channels}), "input ", i,
                              " is not one number for each output channel");
    }
    const bool other = bytes && attributes_.output_type != ov::element::dynamic;
    set_output_type(0, other ? attributes_.output_type : get_input_element_type(0), own);
}

std::shared_ptr<ov::Node>
TransposedConvolution::clone_with_new_inputs(const ov::OutputVector &inputs) const
{
    return std::make_shared<TransposedConvolution>(inputs, attributes_);
}

// The constant that an input holds, also behind a conversion of its type.
static std::shared_ptr<const ov::op::v0::Constant> constant_of(const ov::Output<ov::Node> &input)
{
    auto node = input.get_node_shared_ptr();
    if (ov::is_type<ov::op::v0::Convert>(node)) node = node->get_input_node_shared_ptr(0);
    return ov::as_type_ptr<ov::op::v0::Constant>(node);
}

static std::vector<int64_t> integers_of(const ov::Tensor &tensor)
{
    const size_t size = tensor.get_size();
    if (tensor.get_element_type() == ov::element::i32) {
        const int32_t *values = tensor.data<int32_t>();
        return {values, values + size};
    }
    const int64_t *values = tensor.data<int64_t>();
    return {values, values + size};
}

bool TransposedConvolution::evaluate(ov::TensorVector &outputs,
                                     const ov::TensorVector &inputs) const
{
    size_t next = 2;
    const ov::Tensor *scale = attributes_.scale ? &inputs[next++] : nullptr;
    const ov::Tensor *bias = attributes_.bias ? &inputs[next++] : nullptr;
    const ov::Tensor *residual = attributes_.residual ? &inputs[next++] : nullptr;
    const ov::Tensor *slope = has_slope() ? &inputs[next++] : nullptr;
    std::vector<int64_t> output_shape;
    if (inputs.size() > next) output_shape = integers_of(inputs[next]);
    const Request request{attributes_,
                          inputs[0],
                          inputs[1],
                          scale,
                          bias,
                          residual,
                          slope,
                          std::move(output_shape),
                          constant_of(input_value(1)) != nullptr,
                          outputs[0]};
    try {
        state_.layer.run(request);
    } catch (const Failure &failure) {
        if (!state_.told.exchange(true)) tell(get_friendly_name(), failure.what());
        state_.fallback.run(request);
    }
    return true;
}

static Attributes attributes_of(const ov::op::util::ConvolutionBackPropBase &stock,
                                const std::string &device, const std::string &search)
{
    Attributes a;
    a.grouped = ov::is_type<ov::op::v1::GroupConvolutionBackpropData>(&stock);
    a.strides = stock.get_strides();
    a.dilations = stock.get_dilations();
    a.pads_begin = stock.get_pads_begin();
    a.pads_end = stock.get_pads_end();
    a.output_padding = stock.get_output_padding();
    a.auto_pad = stock.get_auto_pad();
    a.device = device;
    a.search = search;
    return a;
}

// Whether the operator has enough to do. Throws Failure for what is known before there are tensors.
static bool accept(const Attributes &attributes, const ov::Node &stock, int64_t least_macs)
{
    const tconv_session *session = open_device(attributes.device);
    const ov::element::Type type = stock.get_input_element_type(0);
    const auto output_shape = stock.get_input_size() > 2 ? constant_of(stock.input_value(2))
                                                         : nullptr;
    const ov::element::Type filter_type = stock.get_input_element_type(1);
    const bool known = stock.get_input_partial_shape(0).is_static() &&
                       stock.get_input_partial_shape(1).is_static() &&
                       (stock.get_input_size() == 2 || output_shape != nullptr);
    if (!known) { // only the type
        problem_of(attributes, type, filter_type, {}, {}, {});
        return true;
    }
    std::vector<int64_t> extents;
    if (output_shape != nullptr) extents = output_shape->cast_vector<int64_t>();
    const tconv_problem problem = problem_of(
        attributes, type, filter_type, stock.get_input_shape(0), stock.get_input_shape(1), extents);
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_error error;
    check(tconv_resolve(&problem, &geometry, &error), error);
    return geometry.macs >=
           (least_macs < 0 ? tconv_session_least_macs(session) : static_cast<uint64_t>(least_macs));
}

std::shared_ptr<ov::Node>
replacement(const std::shared_ptr<ov::op::util::ConvolutionBackPropBase> &stock,
            const std::string &device, const std::string &search, int64_t least_macs,
            const std::optional<ov::Output<ov::Node>> &bias)
{
    Attributes attributes = attributes_of(*stock, device, search);
    if (!device.empty()) open_device(device);
    search_of(search);
    bool accepted = false;
    try {
        accepted = accept(attributes, *stock, least_macs);
    } catch (const Failure &failure) {
        tell(stock->get_type_name(), failure.what());
    }
    if (!accepted) return bias ? by_channel<ov::op::v1::Add>(stock, *bias) : stock;
    ov::OutputVector inputs = stock->input_values();
    if (bias) inputs.insert(inputs.begin() + 2, *bias);
    attributes.bias = bias.has_value();
    return std::make_shared<TransposedConvolution>(inputs, attributes);
}

} // namespace tconv_openvino
