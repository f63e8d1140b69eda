// SPDX-License-Identifier: Apache-2.0
// Computes an operator by OpenVINO's own operators if the library cannot.
#include "fallback.hpp"

#include <openvino/core/model.hpp>
#include <openvino/opsets/opset8.hpp>
#include <openvino/runtime/core.hpp>
#include <openvino/runtime/properties.hpp>

#include <numeric>

namespace tconv_openvino
{
namespace op = ov::opset8;

template <typename Operator>
static std::shared_ptr<ov::Node> make(const Attributes &a, const ov::Output<ov::Node> &data,
                                      const ov::Output<ov::Node> &filter,
                                      const std::optional<ov::Output<ov::Node>> &output_shape)
{
    if (output_shape)
        return std::make_shared<Operator>(data, filter, *output_shape, a.strides, a.pads_begin,
                                          a.pads_end, a.dilations, a.auto_pad, a.output_padding);
    return std::make_shared<Operator>(data, filter, a.strides, a.pads_begin, a.pads_end,
                                      a.dilations, a.auto_pad, a.output_padding);
}

template <typename Operator>
static std::shared_ptr<ov::Node> make_forward(const Attributes &a, const ov::Output<ov::Node> &data,
                                              const ov::Output<ov::Node> &filter)
{
    return std::make_shared<Operator>(data, filter, ov::Strides(a.strides.size(), 1), a.pads_begin,
                                      a.pads_end, a.dilations, a.auto_pad);
}

std::shared_ptr<ov::Node> stock_upsampling(const Attributes &a, const ov::Output<ov::Node> &data,
                                           const std::optional<ov::Output<ov::Node>> &sizes)
{
    using Interpolate = ov::op::v11::Interpolate;
    const size_t axes = a.strides.size();
    const bool all = sizes && sizes->get_partial_shape().compatible(
                                  {static_cast<int64_t>(axes) + 2}); // not only the spatial ones
    std::vector<int64_t> which(all ? axes + 2 : axes);
    std::iota(which.begin(), which.end(), all ? 0 : 2);
    Interpolate::InterpolateAttrs attributes;
    attributes.mode = Interpolate::InterpolateMode::NEAREST;
    attributes.shape_calculation_mode = sizes ? Interpolate::ShapeCalcMode::SIZES
                                              : Interpolate::ShapeCalcMode::SCALES;
    attributes.coordinate_transformation_mode = a.coordinate_transformation_mode;
    attributes.nearest_mode = a.nearest_mode;
    const ov::Output<ov::Node> scales =
        sizes ? *sizes : op::Constant::create(ov::element::f32, {axes}, a.strides)->output(0);
    return std::make_shared<Interpolate>(
        data, scales, op::Constant::create(ov::element::i64, {which.size()}, which), attributes);
}

std::shared_ptr<ov::Node> stock_operator(const Attributes &a, const ov::Output<ov::Node> &data,
                                         const ov::Output<ov::Node> &filter,
                                         const std::optional<ov::Output<ov::Node>> &extents)
{
    if (form_of(a) != Form::TRANSPOSED) {
        const ov::Output<ov::Node> from = is_shuffle(a) ? data : stock_upsampling(a, data, extents);
        if (a.grouped) return make_forward<op::GroupConvolution>(a, from, filter);
        return make_forward<op::Convolution>(a, from, filter);
    }
    if (a.grouped) return make<op::GroupConvolutionBackpropData>(a, data, filter, extents);
    return make<op::ConvolutionBackpropData>(a, data, filter, extents);
}

static ov::Output<ov::Node> activate(const Attributes &a, const ov::Output<ov::Node> &x,
                                     const ov::Output<ov::Node> &slope)
{
    const tconv_epilogue epilogue = epilogue_of(a);
    switch (epilogue.activation) {
    case TCONV_ACTIVATION_NONE: return x;
    case TCONV_ACTIVATION_RELU: return std::make_shared<op::Relu>(x);
    case TCONV_ACTIVATION_RELU6: return std::make_shared<op::Clamp>(x, 0, 6);
    case TCONV_ACTIVATION_LEAKY_RELU:
        return std::make_shared<op::PRelu>(
            x, op::Constant::create(x.get_element_type(), ov::Shape{1}, {a.a}));
    case TCONV_ACTIVATION_PRELU: return std::make_shared<op::PRelu>(x, slope);
    case TCONV_ACTIVATION_CLAMP: return std::make_shared<op::Clamp>(x, a.a, a.b);
    case TCONV_ACTIVATION_SIGMOID: return std::make_shared<op::Sigmoid>(x);
    case TCONV_ACTIVATION_TANH: return std::make_shared<op::Tanh>(x);
    case TCONV_ACTIVATION_GELU: return std::make_shared<op::Gelu>(x);
    case TCONV_ACTIVATION_GELU_TANH:
        return std::make_shared<op::Gelu>(x, ov::op::GeluApproximationMode::TANH);
    case TCONV_ACTIVATION_SILU: return std::make_shared<op::Swish>(x);
    case TCONV_ACTIVATION_ELU: return std::make_shared<op::Elu>(x, a.a);
    case TCONV_ACTIVATION_HARDSWISH: return std::make_shared<op::HSwish>(x);
    case TCONV_ACTIVATION_MISH: return std::make_shared<op::Mish>(x);
    default: throw Failure(TCONV_ERROR_UNSUPPORTED, "OpenVINO has no activation " + a.activation);
    }
}

static ov::Output<ov::Node> number(double value)
{
    return op::Constant::create(ov::element::f32, {}, {value});
}

static ov::Output<ov::Node> from_integers(const ov::Output<ov::Node> &x, int64_t zero_point)
{
    const auto wide = std::make_shared<op::Convert>(x, ov::element::f32);
    return std::make_shared<op::Subtract>(wide, number(static_cast<double>(zero_point)));
}

static ov::Output<ov::Node> to_integers(const ov::Output<ov::Node> &x, int64_t zero_point,
                                        ov::element::Type type)
{
    const auto round = std::make_shared<op::Round>(x, op::Round::RoundMode::HALF_TO_EVEN);
    const auto moved = std::make_shared<op::Add>(round, number(static_cast<double>(zero_point)));
    const double least = type == ov::element::u8 ? 0 : -128;
    return std::make_shared<op::Convert>(std::make_shared<op::Clamp>(moved, least, least + 255),
                                         type);
}

// The order of axes that turns [N, X..., C] into [N, C, X...], or the other way round.
static std::vector<int64_t> axes_to_first(size_t rank)
{
    std::vector<int64_t> axes(rank);
    for (size_t i = 2; i < rank; i++) axes[i] = static_cast<int64_t>(i) - 1;
    axes[1] = static_cast<int64_t>(rank) - 1;
    return axes;
}

static std::vector<int64_t> axes_to_last(size_t rank)
{
    std::vector<int64_t> axes(rank, 1);
    axes[0] = 0;
    for (size_t i = 1; i + 1 < rank; i++) axes[i] = static_cast<int64_t>(i) + 1;
    return axes;
}

static ov::Output<ov::Node> transpose(const ov::Output<ov::Node> &x,
                                      const std::vector<int64_t> &axes)
{
    return std::make_shared<op::Transpose>(
        x, op::Constant::create(ov::element::i64, {axes.size()}, axes));
}

static ov::Output<ov::Node> reshape(const ov::Output<ov::Node> &x, const ov::Shape &shape)
{
    return std::make_shared<op::Reshape>(
        x, op::Constant::create(ov::element::i64, {shape.size()}, shape), false);
}

// The axes of a tensor before its shuffle, with those of phases apart, and their order behind it.
struct Shuffle {
    Shuffle(const Attributes &a, const ov::Shape &before)
        : whole(before), apart{before[0]}, order{0}, behind{before[0], before[1] / phases_of(a)}
    {
        const bool dcr = form_of(a) == Form::SHUFFLE_DCR;
        const auto axes = static_cast<int64_t>(a.strides.size());
        if (!dcr) apart.push_back(behind[1]);
        apart.insert(apart.end(), a.strides.begin(), a.strides.end());
        if (dcr) apart.push_back(behind[1]);
        apart.insert(apart.end(), before.begin() + 2, before.end());
        order.push_back(dcr ? axes + 1 : 1);
        for (int64_t i = 0; i < axes; i++) {
            order.insert(order.end(), {axes + 2 + i, (dcr ? 1 : 2) + i});
            const auto axis = static_cast<size_t>(i);
            behind.push_back(before[axis + 2] * a.strides[axis]);
        }
    }

    ov::Output<ov::Node> apply(const ov::Output<ov::Node> &x) const
    {
        return reshape(transpose(reshape(x, apart), order), behind);
    }

    // Broadcasts a tensor behind the shuffle, and gives it before the shuffle.
    ov::Output<ov::Node> undo(const ov::Output<ov::Node> &x) const
    {
        const auto full = std::make_shared<op::Broadcast>(
            x, op::Constant::create(ov::element::i64, {behind.size()}, behind));
        ov::Shape moved;
        std::vector<int64_t> back(order.size());
        for (size_t i = 0; i < order.size(); i++) {
            moved.push_back(apart[static_cast<size_t>(order[i])]);
            back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
        }
        return reshape(transpose(reshape(full, moved), back), whole);
    }

    ov::Shape whole, apart;
    std::vector<int64_t> order;
    ov::Shape behind;
};

// All shapes are fixed, and a constant filter is a constant: then the plugin accepts every request.
static std::shared_ptr<ov::Model> model_of(const Request &r)
{
    const auto parameter = [](const ov::Tensor &tensor) {
        return std::make_shared<op::Parameter>(tensor.get_element_type(), tensor.get_shape());
    };
    ov::ParameterVector parameters{parameter(r.data)};
    ov::Output<ov::Node> filter;
    if (r.constant_filter)
        filter = std::make_shared<op::Constant>(r.filter);
    else
        filter = parameters.emplace_back(parameter(r.filter));
    std::optional<ov::Output<ov::Node>> extents;
    if (!r.extents.empty())
        extents = op::Constant::create(ov::element::i64, {r.extents.size()}, r.extents);
    ov::Output<ov::Node> data = parameters[0];
    const Attributes &a = r.attributes;
    if (a.requantize) {
        data = from_integers(data, a.data_zero_point);
        filter = from_integers(filter, a.filter_zero_point);
    }
    const size_t rank = r.data.get_shape().size();
    if (r.attributes.channels_last) data = transpose(data, axes_to_first(rank));
    ov::Output<ov::Node> result = stock_operator(r.attributes, data, filter, extents);
    if (r.scale != nullptr)
        result = by_channel<op::Multiply>(result, parameters.emplace_back(parameter(*r.scale)));
    if (r.bias != nullptr)
        result = by_channel<op::Add>(result, parameters.emplace_back(parameter(*r.bias)));
    std::optional<Shuffle> shuffle;
    if (is_shuffle(a)) shuffle.emplace(a, result.get_shape());
    const bool shuffled_last = r.slope != nullptr; // slopes belong to the convolution's channels
    if (shuffle && !shuffled_last) result = shuffle->apply(result);
    if (r.residual != nullptr) {
        ov::Output<ov::Node> residual = parameters.emplace_back(parameter(*r.residual));
        if (r.attributes.channels_last) residual = transpose(residual, axes_to_first(rank));
        if (shuffle && shuffled_last) residual = shuffle->undo(residual);
        result = std::make_shared<op::Add>(result, residual);
    }
    ov::Output<ov::Node> slope;
    if (r.slope != nullptr) slope = parameters.emplace_back(parameter(*r.slope));
    result = activate(r.attributes, result, slope);
    if (shuffle && shuffled_last) result = shuffle->apply(result);
    if (a.requantize)
        result = to_integers(result, a.output_zero_point,
                             a.output_type == ov::element::dynamic ? r.data.get_element_type()
                                                                   : a.output_type);
    if (r.attributes.channels_last) result = transpose(result, axes_to_last(rank));
    if (!r.neighbours.empty()) {
        ov::OutputVector parts;
        for (const ov::Tensor &tensor : r.neighbours)
            parts.push_back(parameters.emplace_back(parameter(tensor)));
        parts.insert(parts.begin() + a.concat_before, result);
        result = std::make_shared<op::Concat>(parts, r.attributes.channels_last ? -1 : 1);
    }
    return std::make_shared<ov::Model>(ov::OutputVector{result}, parameters);
}

void Fallback::run(const Request &r)
{
    ov::InferRequest request;
    {
        std::vector<ov::Shape> shapes{r.data.get_shape(), r.filter.get_shape()};
        for (const ov::Tensor *tensor : {r.scale, r.bias, r.residual, r.slope})
            if (tensor != nullptr) shapes.push_back(tensor->get_shape());
        for (const ov::Tensor &tensor : r.neighbours) shapes.push_back(tensor.get_shape());
        const std::lock_guard<std::mutex> lock(mutex_);
        const bool forked = tconv_process_forked();
        if (shapes != shapes_ || r.extents != extents_ || r.data.get_element_type() != type_ ||
            forked != forked_) {
            static auto *core = new ov::Core; // never released: plugins may be gone at the end
            shapes_.clear();
            ov::AnyMap properties{ov::hint::inference_precision(ov::element::f32)};
            // A forked child does not have the parent's threads; waiting for them would never end.
            if (forked) properties.insert(ov::inference_num_threads(1));
            // Nor may it release a model of the parent's, which would wait for them.
            if (forked && !forked_) new ov::CompiledModel(std::move(compiled_));
            compiled_ = core->compile_model(model_of(r), "CPU", properties);
            shapes_ = shapes;
            extents_ = r.extents;
            type_ = r.data.get_element_type();
            forked_ = forked;
        }
        request = compiled_.create_infer_request();
    }
    size_t i = 0;
    request.set_input_tensor(i++, r.data);
    if (!r.constant_filter) request.set_input_tensor(i++, r.filter);
    for (const ov::Tensor *tensor : {r.scale, r.bias, r.residual, r.slope})
        if (tensor != nullptr) request.set_input_tensor(i++, *tensor);
    for (const ov::Tensor &tensor : r.neighbours) request.set_input_tensor(i++, tensor);
    request.infer();
    const ov::Tensor result = request.get_output_tensor();
    r.output.set_shape(result.get_shape());
    result.copy_to(r.output);
    count(&Statistics::fallbacks);
}

} // namespace tconv_openvino
