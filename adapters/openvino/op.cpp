// SPDX-License-Identifier: Apache-2.0
// The operator that replaces OpenVINO's (Group)ConvolutionBackpropData in models.
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

// Says on stderr, and to those who trace the device if there is one, that OpenVINO computes an
// operator itself.
static void tell(const std::string &name, const char *why, tconv_device *device)
{
    std::fprintf(stderr, "tconv_cl: OpenVINO's own operator computes %s: %s\n", name.c_str(), why);
    tconv_device_trace_fallback(device, "OpenVINO", name.c_str(), why);
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
    visitor.on_attribute("concat_before", attributes_.concat_before);
    visitor.on_attribute("concat_after", attributes_.concat_after);
    return true;
}

bool TransposedConvolution::has_slope() const
{
    return tconv_activation_has_slope(epilogue_of(attributes_).activation);
}

size_t TransposedConvolution::neighbours() const
{
    return static_cast<size_t>(attributes_.concat_before) +
           static_cast<size_t>(attributes_.concat_after);
}

size_t TransposedConvolution::required_inputs() const
{
    return size_t{2} + attributes_.scale + attributes_.bias + attributes_.residual + has_slope() +
           neighbours();
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

// Finds the constant of an input, also behind a conversion of its type.
static std::shared_ptr<const ov::op::v0::Constant> constant_of(const ov::Output<ov::Node> &input)
{
    auto node = input.get_node_shared_ptr();
    if (ov::is_type<ov::op::v0::Convert>(node)) node = node->get_input_node_shared_ptr(0);
    return ov::as_type_ptr<ov::op::v0::Constant>(node);
}

// Resolves the extents of data, filter and output_shape, which is the input after the `required`
// ones. Empty if they are not all known. Throws Failure if the library refuses them.
static std::optional<tconv_geometry> geometry_of(const Attributes &attributes, const ov::Node &node,
                                                 size_t required)
{
    const bool given = node.get_input_size() > required;
    const auto output_shape = given ? constant_of(node.input_value(required)) : nullptr;
    if (node.get_input_partial_shape(0).is_dynamic() ||
        node.get_input_partial_shape(1).is_dynamic() || (given && output_shape == nullptr))
        return std::nullopt;
    std::vector<int64_t> extents;
    if (given) extents = output_shape->cast_vector<int64_t>();
    const tconv_problem problem =
        problem_of(attributes, node.get_input_element_type(0), node.get_input_element_type(1),
                   node.get_input_shape(0), node.get_input_shape(1), extents);
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_error error;
    check(tconv_resolve(&problem, &geometry, &error), error);
    return geometry;
}

// OpenVINO's own operators treat an extent of 0 as 1: the output may have fewer elements than they
// say.
static void allow_extents_of_0(const ov::PartialShape &data, ov::PartialShape &output)
{
    if (data.rank().is_dynamic() || output.rank().is_dynamic()) return;
    for (size_t i = 2; i < output.size(); i++)
        if (data[i].is_dynamic() || data[i] == 0) output[i] = {1, output[i].get_max_length()};
}

ov::PartialShape TransposedConvolution::infer_sums(size_t required) const
{
    try {
        if (const auto geometry = geometry_of(attributes_, *this, required))
            return shape_of(geometry->output_shape);
    } catch (const Failure &failure) {
        NODE_VALIDATION_CHECK(this, !failure.is_wrong_request(), failure.what());
    }
    // As OpenVINO's own operator, which has one floating type and channels first.
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
    std::optional<ov::Output<ov::Node>> output_shape;
    if (get_input_size() > required) output_shape = input_value(required);
    const auto stock = stock_operator(attributes_, data, filter, output_shape);
    ov::PartialShape output = stock->get_output_partial_shape(0);
    if (!output_shape) allow_extents_of_0(data.get_partial_shape(), output);
    return moved ? channels_last(output) : output;
}

// The output with the shape of scale, bias or residual.
ov::PartialShape TransposedConvolution::broadcast(ov::PartialShape output, size_t input) const
{
    const bool is_residual = input == size_t{2} + attributes_.scale + attributes_.bias;
    ov::PartialShape shape = get_input_partial_shape(input);
    if (!is_residual) {
        NODE_VALIDATION_CHECK(this, shape.rank().compatible(1), "input ", input,
                              " is not one number for each output channel");
        if (output.rank().is_dynamic()) return output;
        const size_t axis = attributes_.channels_last ? output.size() - 1 : 1;
        const ov::Dimension channels = shape.rank().is_static() ? shape[0]
                                                                : ov::Dimension::dynamic();
        shape = ov::PartialShape(std::vector<ov::Dimension>(output.size(), 1));
        shape[axis] = channels;
    }
    NODE_VALIDATION_CHECK(
        this,
        ov::PartialShape::broadcast_merge_into(output, shape, ov::op::AutoBroadcastType::NUMPY),
        "input ", input,
        is_residual ? " does not have the shape of the output"
                    : " is not one number for each output channel");
    return output;
}

// The output with the inputs from number `first` on that are concatenated with it.
ov::PartialShape TransposedConvolution::concatenated(ov::PartialShape output, size_t first) const
{
    if (output.rank().is_dynamic()) return output;
    const size_t axis = attributes_.channels_last ? output.size() - 1 : 1;
    ov::Dimension channels = output[axis];
    for (size_t i = first; i < first + neighbours(); i++) {
        ov::PartialShape shape = get_input_partial_shape(i);
        const bool known = shape.rank().is_static() && shape.size() == output.size();
        channels += known ? shape[axis] : ov::Dimension::dynamic();
        if (known) shape[axis] = ov::Dimension::dynamic();
        output[axis] = ov::Dimension::dynamic();
        NODE_VALIDATION_CHECK(this, ov::PartialShape::merge_into(output, shape), "input ", i,
                              " is ", get_input_partial_shape(i), ", but the output is ", output,
                              ": only the channels may differ");
    }
    output[axis] = channels;
    return output;
}

void TransposedConvolution::validate_and_infer_types()
{
    const int64_t most = static_cast<int64_t>(get_input_size());
    for (const int64_t number : {attributes_.concat_before, attributes_.concat_after})
        NODE_VALIDATION_CHECK(this, number >= 0 && number <= most, "cannot concatenate ", number,
                              " of ", most, " inputs");
    const size_t required = required_inputs();
    NODE_VALIDATION_CHECK(this, get_input_size() == required || get_input_size() == required + 1,
                          "takes ", required, " inputs and output_shape, not ", get_input_size());
    const bool other = attributes_.requantize && attributes_.output_type != ov::element::dynamic;
    const auto output_type = other ? attributes_.output_type : get_input_element_type(0);
    const auto type = attributes_.requantize ? ov::element::f32 : get_input_element_type(0);
    const size_t first = required - neighbours();
    for (size_t i = 2; i < required; i++)
        NODE_VALIDATION_CHECK(this, get_input_element_type(i) == (i < first ? type : output_type),
                              "input ", i, " is not ", i < first ? type : output_type);
    ov::PartialShape output = infer_sums(required);
    for (size_t i = 2; i < first - has_slope(); i++) output = broadcast(output, i);
    if (has_slope()) {
        const ov::PartialShape &slope = get_input_partial_shape(first - 1);
        ov::Dimension channels = ov::Dimension::dynamic();
        if (output.rank().is_static())
            channels = output[attributes_.channels_last ? output.size() - 1 : 1];
        NODE_VALIDATION_CHECK(this, slope.compatible({channels}) || slope.compatible({1}), "input ",
                              first - 1, " is not one number for each output channel");
    }
    set_output_type(0, output_type, concatenated(output, first));
}

std::shared_ptr<ov::Node>
TransposedConvolution::clone_with_new_inputs(const ov::OutputVector &inputs) const
{
    return std::make_shared<TransposedConvolution>(inputs, attributes_);
}

// The elements, of any integer type.
static std::vector<int64_t> integers_of(const ov::Tensor &tensor)
{
    return ov::op::v0::Constant(tensor).cast_vector<int64_t>();
}

// True if outputs are sums of no products. OpenVINO's own operator then computes other shapes.
static bool has_no_terms(const ov::Shape &data)
{
    return std::find(data.begin() + 1, data.end(), size_t{0}) != data.end();
}

bool TransposedConvolution::evaluate(ov::TensorVector &outputs,
                                     const ov::TensorVector &inputs) const
{
    size_t next = 2;
    const ov::Tensor *scale = attributes_.scale ? &inputs[next++] : nullptr;
    const ov::Tensor *bias = attributes_.bias ? &inputs[next++] : nullptr;
    const ov::Tensor *residual = attributes_.residual ? &inputs[next++] : nullptr;
    const ov::Tensor *slope = has_slope() ? &inputs[next++] : nullptr;
    const auto neighbour = inputs.begin() + static_cast<std::ptrdiff_t>(next);
    next += neighbours();
    std::vector<ov::Tensor> concatenated(neighbour,
                                         inputs.begin() + static_cast<std::ptrdiff_t>(next));
    std::vector<int64_t> output_shape;
    if (inputs.size() > next) output_shape = integers_of(inputs[next]);
    const Request request{attributes_,
                          inputs[0],
                          inputs[1],
                          scale,
                          bias,
                          residual,
                          slope,
                          std::move(concatenated),
                          std::move(output_shape),
                          constant_of(input_value(1)) != nullptr,
                          outputs[0]};
    try {
        state_.layer.run(request);
    } catch (const Failure &failure) {
        if (failure.is_wrong_request() || has_no_terms(request.data.get_shape()))
            throw Failure(failure.status(),
                          "tconv_cl: " + get_friendly_name() + ": " + failure.what());
        if (!state_.told.exchange(true)) {
            tconv_device *device = nullptr;
            tconv_error error;
            open_device(attributes_.device.c_str(), &device, &error);
            tell(get_friendly_name(), failure.what(), device);
        }
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

// Opens the device. If there is none, and none is named, returns null and writes a line. Throws
// Failure if a named device does not exist, or if an environment variable has a wrong value.
static tconv_device *find_device(const std::string &device, const ov::Node &stock)
{
    try {
        return open_device(device);
    } catch (const Failure &failure) {
        if (!device.empty() || failure.is_wrong_request()) throw;
        tell(stock.get_type_name(), failure.what(), nullptr);
        return nullptr;
    }
}

// True if the operator has enough to do. Throws Failure for errors that are known before there are
// tensors.
static bool accept(const tconv_device *device, const Attributes &attributes, const ov::Node &stock,
                   int64_t least_macs)
{
    const auto geometry = geometry_of(attributes, stock, 2);
    if (!geometry) { // check what does not depend on extents, with any extents
        const size_t rank = attributes.strides.size() + 2;
        const tconv_problem problem =
            problem_of(attributes, stock.get_input_element_type(0), stock.get_input_element_type(1),
                       ov::Shape(rank, 1), ov::Shape(rank + attributes.grouped, 1), {});
        tconv_geometry any = TCONV_GEOMETRY_INIT;
        tconv_error error;
        const tconv_status status = tconv_resolve(&problem, &any, &error);
        if (status != TCONV_ERROR_SHAPE) check(status, error);
        return true;
    }
    // OpenVINO's own operator computes another shape if data have no elements.
    const bool no_terms = geometry->data_bytes == 0 && geometry->batch != 0;
    return no_terms || geometry->macs >= (least_macs < 0 ? tconv_device_least_macs(device)
                                                         : static_cast<uint64_t>(least_macs));
}

std::shared_ptr<ov::Node>
replacement(const std::shared_ptr<ov::op::util::ConvolutionBackPropBase> &stock,
            const std::string &device, const std::string &search, int64_t least_macs,
            const std::optional<ov::Output<ov::Node>> &bias)
{
    Attributes attributes = attributes_of(*stock, device, search);
    search_of(search);
    tconv_device *opened = find_device(device, *stock);
    bool accepted = false;
    try {
        accepted = opened != nullptr && accept(opened, attributes, *stock, least_macs);
    } catch (const Failure &failure) {
        tell(stock->get_type_name(), failure.what(), opened);
    }
    if (!accepted) return bias ? by_channel<ov::op::v1::Add>(stock, *bias) : stock;
    ov::OutputVector inputs = stock->input_values();
    if (bias) inputs.insert(inputs.begin() + 2, *bias);
    attributes.bias = bias.has_value();
    return std::make_shared<TransposedConvolution>(inputs, attributes);
}

} // namespace tconv_openvino
