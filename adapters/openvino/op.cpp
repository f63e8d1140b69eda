// SPDX-License-Identifier: Apache-2.0
// The operator that replaces OpenVINO's (Group)ConvolutionBackpropData in models, and convolutions
// with the upsampling before them or the shuffle behind them.
#include "op.hpp"

#include <openvino/op/add.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
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
    visit(visitor, attributes_);
    return true;
}

void TransposedConvolution::visit(ov::AttributeVisitor &visitor, Attributes &attributes)
{
    visitor.on_attribute("form", attributes.form);
    visitor.on_attribute("grouped", attributes.grouped);
    visitor.on_attribute("strides", attributes.strides);
    visitor.on_attribute("dilations", attributes.dilations);
    visitor.on_attribute("pads_begin", attributes.pads_begin);
    visitor.on_attribute("pads_end", attributes.pads_end);
    visitor.on_attribute("output_padding", attributes.output_padding);
    visitor.on_attribute("auto_pad", attributes.auto_pad);
    visitor.on_attribute("scale", attributes.scale);
    visitor.on_attribute("bias", attributes.bias);
    visitor.on_attribute("residual", attributes.residual);
    visitor.on_attribute("activation", attributes.activation);
    visitor.on_attribute("a", attributes.a);
    visitor.on_attribute("b", attributes.b);
    visitor.on_attribute("device", attributes.device);
    visitor.on_attribute("search", attributes.search);
    visitor.on_attribute("channels_last", attributes.channels_last);
    visitor.on_attribute("requantize", attributes.requantize);
    visitor.on_attribute("output_type", attributes.output_type);
    visitor.on_attribute("data_zero_point", attributes.data_zero_point);
    visitor.on_attribute("filter_zero_point", attributes.filter_zero_point);
    visitor.on_attribute("output_zero_point", attributes.output_zero_point);
    visitor.on_attribute("concat_before", attributes.concat_before);
    visitor.on_attribute("concat_after", attributes.concat_after);
    visitor.on_attribute("math", attributes.math);
    visitor.on_attribute("coordinate_transformation_mode",
                         attributes.coordinate_transformation_mode);
    visitor.on_attribute("nearest_mode", attributes.nearest_mode);
}

static bool has_slope(const Attributes &a)
{
    return tconv_activation_has_slope(epilogue_of(a).activation);
}

// How many tensors are concatenated with the output.
static size_t neighbours(const Attributes &a)
{
    return static_cast<size_t>(a.concat_before) + static_cast<size_t>(a.concat_after);
}

size_t required_inputs(const Attributes &a)
{
    return size_t{2} + a.scale + a.bias + a.residual + has_slope(a) + neighbours(a);
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

// Finds the constant of an input, also behind conversions of its type and of its shape.
static std::shared_ptr<const ov::op::v0::Constant> constant_of(const ov::Output<ov::Node> &input)
{
    auto node = input.get_node_shared_ptr();
    while (ov::is_type<ov::op::v0::Convert>(node) || ov::is_type<ov::op::v1::Reshape>(node))
        node = node->get_input_node_shared_ptr(0);
    return ov::as_type_ptr<ov::op::v0::Constant>(node);
}

// The shape of the enlarged data, as OpenVINO infers it.
static ov::PartialShape enlarged(const Attributes &attributes, const ov::Output<ov::Node> &data,
                                 const ov::Output<ov::Node> &sizes)
{
    const ov::PartialShape &shape = data.get_partial_shape();
    const auto stand_in = std::make_shared<ov::op::v0::Parameter>(
        data.get_element_type(), attributes.channels_last ? channels_first(shape) : shape);
    return stock_upsampling(attributes, stand_in, sizes)->get_output_partial_shape(0);
}

// The extents that the last input says, or no value if they are not known.
static std::optional<Extents> extents_of(const Attributes &attributes,
                                         const ov::OutputVector &inputs, size_t required)
{
    if (inputs.size() <= required) return Extents{};
    if (form_of(attributes) == Form::UPSAMPLE) {
        const ov::PartialShape shape = enlarged(attributes, inputs[0], inputs[required]);
        if (shape.is_dynamic()) return std::nullopt;
        const ov::Shape known = shape.to_shape();
        return Extents(known.begin(), known.end());
    }
    const auto constant = constant_of(inputs[required]);
    if (constant == nullptr) return std::nullopt;
    return constant->cast_vector<int64_t>();
}

// Resolves the extents of data, filter and the input after the required ones. Empty if they are not
// all known. Throws Failure if the library refuses them.
static std::optional<tconv_geometry> geometry_of(const Attributes &attributes,
                                                 const ov::OutputVector &inputs)
{
    const ov::Output<ov::Node> &data = inputs[0], &filter = inputs[1];
    if (data.get_partial_shape().is_dynamic() || filter.get_partial_shape().is_dynamic())
        return std::nullopt;
    const std::optional<Extents> extents =
        extents_of(attributes, inputs, required_inputs(attributes));
    if (!extents) return std::nullopt;
    const tconv_problem problem = problem_of(attributes, data.get_element_type(),
                                             filter.get_element_type(), data.get_shape(),
                                             filter.get_shape(), *extents);
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

// The shape behind the shuffle, if there is one.
static ov::PartialShape shuffled(const Attributes &attributes, ov::PartialShape shape)
{
    if (!is_shuffle(attributes) || shape.rank().is_dynamic()) return shape;
    const auto phases = static_cast<int64_t>(phases_of(attributes));
    shape[1] = shape[1].is_static() ? ov::Dimension(shape[1].get_length() / phases)
                                    : ov::Dimension::dynamic();
    for (size_t i = 0; i < attributes.strides.size() && i + 2 < shape.size(); i++)
        shape[i + 2] = shape[i + 2] * ov::Dimension(static_cast<int64_t>(attributes.strides[i]));
    return shape;
}

ov::PartialShape TransposedConvolution::infer_sums(size_t required)
{
    try {
        if (const auto geometry = geometry_of(attributes_, input_values())) {
            if (form_of(attributes_) == Form::UPSAMPLE) // the factors may follow from sizes
                attributes_.strides.assign(geometry->stride, geometry->stride + geometry->axes);
            return shape_of(geometry->output_shape);
        }
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
    std::optional<ov::Output<ov::Node>> extents;
    if (get_input_size() > required) extents = input_value(required);
    const auto stock = stock_operator(attributes_, data, filter, extents);
    ov::PartialShape output = shuffled(attributes_, stock->get_output_partial_shape(0));
    if (!extents) allow_extents_of_0(data.get_partial_shape(), output);
    return moved ? channels_last(output) : output;
}

// How many numbers scale, bias and slopes have.
ov::Dimension TransposedConvolution::channels_before_shuffle(const ov::PartialShape &output) const
{
    if (output.rank().is_dynamic()) return ov::Dimension::dynamic();
    const ov::Dimension channels = output[attributes_.channels_last ? output.size() - 1 : 1];
    return channels * ov::Dimension(static_cast<int64_t>(phases_of(attributes_)));
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
        if (is_shuffle(attributes_)) {
            NODE_VALIDATION_CHECK(
                this, shape.compatible({channels_before_shuffle(output)}) || shape.compatible({1}),
                "input ", input, " is not one number for each channel");
            return output;
        }
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
    for (size_t i = first; i < first + neighbours(attributes_); i++) {
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
    const size_t required = required_inputs(attributes_);
    NODE_VALIDATION_CHECK(this, get_input_size() == required || get_input_size() == required + 1,
                          "takes ", required, " inputs and ",
                          attributes_.form == "upsample" ? "sizes" : "output_shape", ", not ",
                          get_input_size());
    const bool other = attributes_.requantize && attributes_.output_type != ov::element::dynamic;
    const auto output_type = other ? attributes_.output_type : get_input_element_type(0);
    const auto type = attributes_.requantize ? ov::element::f32 : get_input_element_type(0);
    const size_t first = required - neighbours(attributes_);
    for (size_t i = 2; i < required; i++)
        NODE_VALIDATION_CHECK(this, get_input_element_type(i) == (i < first ? type : output_type),
                              "input ", i, " is not ", i < first ? type : output_type);
    ov::PartialShape output = infer_sums(required);
    for (size_t i = 2; i < first - has_slope(attributes_); i++) output = broadcast(output, i);
    if (has_slope(attributes_)) {
        const ov::PartialShape &slope = get_input_partial_shape(first - 1);
        const ov::Dimension channels = channels_before_shuffle(output);
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
    const ov::Tensor *slope = has_slope(attributes_) ? &inputs[next++] : nullptr;
    const auto neighbour = inputs.begin() + static_cast<std::ptrdiff_t>(next);
    next += neighbours(attributes_);
    std::vector<ov::Tensor> concatenated(neighbour,
                                         inputs.begin() + static_cast<std::ptrdiff_t>(next));
    Extents extents;
    if (inputs.size() > next) extents = integers_of(inputs[next]);
    const Request request{attributes_,
                          inputs[0],
                          inputs[1],
                          scale,
                          bias,
                          residual,
                          slope,
                          std::move(concatenated),
                          std::move(extents),
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

// The multiply-adds below which an operator stays OpenVINO's if nobody says how many. Between two
// convolutions OpenVINO's own operators of 0.7 and 1.0 million take 0.81 of the time.
static uint64_t usual_least_macs(const tconv_device *device)
{
    constexpr uint64_t LEAST_MACS = 4000000;
    const uint64_t pays = tconv_device_least_macs(device); // 0: not on a processor
    return pays == 0 ? 0 : std::max(pays, LEAST_MACS);
}

// True if the operator has enough to do. Throws Failure for errors that are known before there are
// tensors.
static bool accept(const tconv_device *device, const Attributes &attributes,
                   const ov::OutputVector &inputs, int64_t least_macs)
{
    const auto geometry = geometry_of(attributes, inputs);
    if (!geometry) { // check what does not depend on extents, with any extents
        const size_t rank = attributes.strides.size() + 2;
        const tconv_problem problem = problem_of(attributes, inputs[0].get_element_type(),
                                                 inputs[1].get_element_type(), ov::Shape(rank, 1),
                                                 ov::Shape(rank + attributes.grouped, 1), {});
        tconv_geometry any = TCONV_GEOMETRY_INIT;
        tconv_error error;
        const tconv_status status = tconv_resolve(&problem, &any, &error);
        if (status != TCONV_ERROR_SHAPE) check(status, error);
        return true;
    }
    // OpenVINO's own operator computes another shape if data have no elements.
    const bool no_terms = geometry->data_bytes == 0 && geometry->batch != 0;
    return no_terms || geometry->macs >= (least_macs < 0 ? usual_least_macs(device)
                                                         : static_cast<uint64_t>(least_macs));
}

std::shared_ptr<ov::Node> replacement(Attributes attributes, ov::OutputVector inputs,
                                      const std::shared_ptr<ov::Node> &stock, int64_t least_macs,
                                      const std::optional<ov::Output<ov::Node>> &bias)
{
    search_of(attributes.search);
    math_of(attributes.math);
    tconv_device *opened = find_device(attributes.device, *stock);
    bool accepted = false;
    try {
        accepted = opened != nullptr && accept(opened, attributes, inputs, least_macs);
    } catch (const Failure &failure) {
        tell(stock->get_type_name(), failure.what(), opened);
    }
    if (!accepted) return bias ? by_channel<ov::op::v1::Add>(stock, *bias) : stock;
    if (bias) {
        inputs.insert(inputs.begin() + 2, *bias);
        attributes.bias = true;
    }
    return std::make_shared<TransposedConvolution>(inputs, attributes);
}

} // namespace tconv_openvino
