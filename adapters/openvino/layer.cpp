// SPDX-License-Identifier: Apache-2.0
// Computes one operator of a model on a device by the library, and counts what was done.
#include "layer.hpp"

#include "concat.hpp"

#include <openvino/core/parallel.hpp>
#include <openvino/core/type/bfloat16.hpp>
#include <openvino/core/type/float16.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

namespace tconv_openvino
{

Statistics &statistics_of(std::unique_lock<std::mutex> &lock)
{
    static std::mutex mutex;
    static Statistics statistics;
    lock = std::unique_lock<std::mutex>(mutex);
    return statistics;
}

void count(uint64_t Statistics::*what, uint64_t how_often)
{
    std::unique_lock<std::mutex> lock;
    statistics_of(lock).*what += how_often;
}

static tconv_type type_of(ov::element::Type type)
{
    switch (type) {
    case ov::element::Type_t::f32: return TCONV_F32;
    case ov::element::Type_t::f16: return TCONV_F16;
    case ov::element::Type_t::bf16: return TCONV_BF16;
    case ov::element::Type_t::f64: return TCONV_F64;
    case ov::element::Type_t::u8: return TCONV_U8;
    case ov::element::Type_t::i8: return TCONV_I8;
    default: throw Failure(TCONV_ERROR_UNSUPPORTED, type.get_type_name() + " is not computed");
    }
}

static tconv_shape shape_of(const char *what, const ov::Shape &shape)
{
    if (shape.size() > TCONV_MAX_RANK)
        throw Failure(TCONV_ERROR_SHAPE,
                      std::string("the rank of ") + what + " is " + std::to_string(shape.size()));
    tconv_shape result{static_cast<int>(shape.size()), {}};
    std::copy(shape.begin(), shape.end(), result.dim);
    return result;
}

ov::Shape shape_of(const tconv_shape &shape)
{
    return ov::Shape(shape.dim, shape.dim + shape.rank);
}

template <typename List> static tconv_list list_of(const char *what, const List &list)
{
    if (list.size() > TCONV_MAX_AXES)
        throw Failure(TCONV_ERROR_ATTRIBUTE,
                      std::string(what) + " has " + std::to_string(list.size()) + " numbers");
    tconv_list result{static_cast<int>(list.size()), {}};
    std::copy(list.begin(), list.end(), result.value);
    return result;
}

static tconv_auto_pad auto_pad_of(ov::op::PadType type)
{
    switch (type) {
    case ov::op::PadType::VALID: return TCONV_VALID;
    case ov::op::PadType::SAME_UPPER: return TCONV_SAME_UPPER;
    case ov::op::PadType::SAME_LOWER: return TCONV_SAME_LOWER;
    default: return TCONV_EXPLICIT;
    }
}

Form form_of(const Attributes &attributes)
{
    if (attributes.form == "transposed") return Form::TRANSPOSED;
    if (attributes.form == "upsample") return Form::UPSAMPLE;
    if (attributes.form == "shuffle") return Form::SHUFFLE;
    if (attributes.form == "shuffle_dcr") return Form::SHUFFLE_DCR;
    throw Failure(TCONV_ERROR_ARGUMENT,
                  "form is \"" + attributes.form +
                      "\": it must be transposed, upsample, shuffle or shuffle_dcr");
}

bool is_shuffle(const Attributes &attributes)
{
    const Form form = form_of(attributes);
    return form == Form::SHUFFLE || form == Form::SHUFFLE_DCR;
}

size_t phases_of(const Attributes &attributes)
{
    if (!is_shuffle(attributes)) return 1;
    return std::accumulate(attributes.strides.begin(), attributes.strides.end(), size_t{1},
                           std::multiplies<>());
}

// [G, A, B, K...] as [G*A, B, K...]. Returns G.
static int64_t take_groups(tconv_shape &filter)
{
    if (filter.rank < 2) return 0;
    int64_t *const dim = filter.dim, groups = dim[0];
    dim[1] *= groups;
    std::copy(dim + 1, dim + filter.rank, dim);
    filter.rank--;
    return groups;
}

// The factors by which the sizes are multiples of the data's extents.
static ov::Strides factors_of(const Attributes &attributes, const ov::Shape &data,
                              const Extents &sizes)
{
    const size_t axes = attributes.strides.size(), rank = axes + 2;
    if (sizes.empty() || data.size() != rank) return attributes.strides;
    ov::Shape extents = data; // of the axes that have sizes
    if (attributes.channels_last)
        std::rotate(extents.begin() + 1, extents.end() - 1, extents.end());
    if (sizes.size() == axes) extents.erase(extents.begin(), extents.begin() + 2);
    ov::Strides factors;
    bool multiples = sizes.size() == extents.size();
    for (size_t i = 0; i < extents.size() && multiples; i++) {
        const auto extent = static_cast<int64_t>(extents[i]);
        multiples = extent > 0 && sizes[i] >= extent && sizes[i] % extent == 0;
        factors.push_back(multiples ? static_cast<size_t>(sizes[i] / extent) : 0);
    }
    if (multiples && sizes.size() == rank) {
        multiples = factors[0] == 1 && factors[1] == 1;
        factors.erase(factors.begin(), factors.begin() + 2);
    }
    if (!multiples)
        throw Failure(TCONV_ERROR_UNSUPPORTED,
                      "the sizes are not whole multiples of the data's extents " +
                          data.to_string());
    return factors;
}

tconv_problem problem_of(const Attributes &attributes, ov::element::Type type,
                         ov::element::Type filter_type, const ov::Shape &data,
                         const ov::Shape &filter, const Extents &extents)
{
    tconv_problem problem = TCONV_PROBLEM_INIT;
    problem.filter = shape_of("the filter", filter);
    ov::Strides strides = attributes.strides;
    const Form form = form_of(attributes);
    switch (form) {
    case Form::UPSAMPLE:
    case Form::SHUFFLE:
    case Form::SHUFFLE_DCR:
        problem.operation = form == Form::UPSAMPLE  ? TCONV_UPSAMPLE_CONV
                            : form == Form::SHUFFLE ? TCONV_CONV_PIXEL_SHUFFLE
                                                    : TCONV_CONV_PIXEL_SHUFFLE_DCR;
        if (attributes.channels_last) problem.data_format = TCONV_NXC;
        if (attributes.grouped) problem.groups = take_groups(problem.filter);
        if (form == Form::UPSAMPLE) strides = factors_of(attributes, data, extents);
        break;
    case Form::TRANSPOSED:
        problem.rules = TCONV_RULES_OPENVINO;
        problem.output_shape = list_of("output_shape", extents);
        problem.operation = attributes.grouped ? TCONV_GROUP_CONV_BACKPROP : TCONV_CONV_BACKPROP;
        if (!attributes.channels_last) break;
        // Only the oneAPI form has channels last; its groups are an attribute.
        problem.operation = TCONV_ONEAPI_CONV_BACKPROP;
        problem.data_format = TCONV_NXC;
        problem.filter_format = TCONV_OIX;
        if (attributes.grouped) problem.groups = take_groups(problem.filter);
        break;
    }
    if (!attributes.requantize && !type.is_real())
        throw Failure(TCONV_ERROR_UNSUPPORTED,
                      "only f32, f16, bf16 and f64 are computed without a scale, not " +
                          type.get_type_name());
    problem.data_type = type_of(type);
    problem.filter_type = type_of(filter_type);
    if (attributes.output_type != ov::element::dynamic)
        problem.output_type = type_of(attributes.output_type);
    problem.data = shape_of("data", data);
    problem.strides = list_of("strides", strides);
    problem.dilations = list_of("dilations", attributes.dilations);
    problem.pads_begin = list_of("pads_begin", attributes.pads_begin);
    problem.pads_end = list_of("pads_end", attributes.pads_end);
    problem.output_padding = list_of("output_padding", attributes.output_padding);
    problem.auto_pad = auto_pad_of(attributes.auto_pad);
    return problem;
}

static int32_t zero_point_of(int64_t number)
{
    if (number != static_cast<int32_t>(number))
        throw Failure(TCONV_ERROR_ATTRIBUTE,
                      "the zero point " + std::to_string(number) + " does not fit into 32 bits");
    return static_cast<int32_t>(number);
}

tconv_epilogue epilogue_of(const Attributes &attributes)
{
    tconv_epilogue epilogue = TCONV_EPILOGUE_INIT;
    epilogue.scale = attributes.scale;
    epilogue.bias = attributes.bias;
    epilogue.residual = attributes.residual;
    epilogue.requantize = attributes.requantize;
    epilogue.data_zero_point = zero_point_of(attributes.data_zero_point);
    epilogue.filter_zero_point = zero_point_of(attributes.filter_zero_point);
    epilogue.output_zero_point = zero_point_of(attributes.output_zero_point);
    if (!tconv_activation_from_name(attributes.activation.c_str(), &epilogue.activation))
        throw Failure(TCONV_ERROR_ATTRIBUTE, "there is no activation " + attributes.activation);
    epilogue.a = attributes.a;
    epilogue.b = attributes.b;
    return epilogue;
}

tconv_search search_of(const std::string &name)
{
    tconv_search search = TCONV_SEARCH_DEFAULT;
    if (!name.empty() && !tconv_search_from_name(name.c_str(), &search))
        throw Failure(TCONV_ERROR_ARGUMENT,
                      "search is \"" + name + "\": it must be model, records, measure or renew");
    return search;
}

tconv_math math_of(const std::string &name)
{
    tconv_math math = TCONV_MATH_EXACT;
    if (!name.empty() && !tconv_math_from_name(name.c_str(), &math))
        throw Failure(TCONV_ERROR_ARGUMENT, "math is \"" + name + "\": it must be exact or fast");
    return math;
}

tconv_layer *Layer::layer(const Request &r)
{
    if (tconv_process_forked()) { // it comes before the mutex, which a thread of the parent may
                                  // have held
        int count;
        tconv_error error;
        check(tconv_device_count(&count, &error), error);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (layer_ == nullptr) {
        tconv_layer *made;
        tconv_error error;
        tconv_device *const device = open_device(r.attributes.device);
        check(tconv_layer_create(&device, 1,
                                 r.constant_filter ? TCONV_FILTER_CONSTANT : TCONV_FILTER_VARIES,
                                 &made, &error),
              error);
        layer_.reset(made);
    }
    return layer_.get();
}

// Adds the plans and filters that the layer made since the last call.
void Layer::count_made()
{
    tconv_layer_counts now = TCONV_LAYER_COUNTS_INIT;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (tconv_layer_count(layer_.get(), &now, nullptr) != TCONV_OK) return;
    if (now.plans_made != counted_.plans_made)
        count(&Statistics::plans, now.plans_made - counted_.plans_made);
    if (now.filters_packed != counted_.filters_packed)
        count(&Statistics::packs, now.filters_packed - counted_.filters_packed);
    counted_ = now;
}

// Gives scales or slopes as f64 for f64, as f32 for all other types, and biases in their own type.
// One number becomes one for each channel. `made` must live as long as the result. Throws Failure
// if there are others.
static const void *numbers_of(const char *what, const ov::Tensor *tensor, bool own_type,
                              size_t channels, std::vector<std::byte> &made)
{
    if (tensor == nullptr) return nullptr;
    const size_t size = tensor->get_size();
    if (size != channels && size != 1)
        throw Failure(TCONV_ERROR_UNSUPPORTED, std::string(what) + " is " +
                                                   tensor->get_shape().to_string() + " for " +
                                                   std::to_string(channels) + " channels");
    const ov::element::Type type = tensor->get_element_type();
    const bool is_short = type == ov::element::f16 || type == ov::element::bf16;
    const bool converted = is_short && !own_type;
    if (!converted && size == channels) return tensor->data();
    const size_t step = converted ? sizeof(float) : type.size();
    made.resize(channels * step);
    for (size_t c = 0; c < channels; c++) {
        const size_t from = size == 1 ? 0 : c;
        std::byte *const to = made.data() + c * step;
        if (converted) {
            const float number = type == ov::element::f16
                                     ? static_cast<float>(tensor->data<ov::float16>()[from])
                                     : static_cast<float>(tensor->data<ov::bfloat16>()[from]);
            std::memcpy(to, &number, step);
        } else {
            std::memcpy(to, static_cast<const std::byte *>(tensor->data()) + from * step, step);
        }
    }
    return made.data();
}

// A tconv_on_threads of OpenVINO's threads: no others than those that the request may use. What an
// exception leaves out, the caller computes.
static void on_threads(void *, void (*task)(void *argument), void *argument)
{
    try {
        ov::parallel_nt_static(0, [=](int, int) { task(argument); });
    } catch (...) {
    }
}

void Layer::run(const Request &r)
{
    tconv_layer *layer = this->layer(r);
    tconv_problem problem = problem_of(r.attributes, r.data.get_element_type(),
                                       r.filter.get_element_type(), r.data.get_shape(),
                                       r.filter.get_shape(), r.extents);
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue = epilogue_of(r.attributes);
    options.search = search_of(r.attributes.search);
    options.math = math_of(r.attributes.math);
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_error error;
    check(tconv_resolve(&problem, &geometry, &error), error);
    const ov::Shape output = shape_of(geometry.output_shape);
    // Not a wrong request: OpenVINO's own operators broadcast these.
    if (r.residual != nullptr && r.residual->get_shape() != output)
        throw Failure(TCONV_ERROR_UNSUPPORTED,
                      "the tensor that is added does not have the shape of the output");
    const auto channels = static_cast<size_t>(geometry.epilogue_channels);
    std::vector<std::byte> scale, bias, slope;
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tensors.scale.host = numbers_of("the scale", r.scale, false, channels, scale);
    tensors.bias.host = numbers_of("the bias", r.bias, true, channels, bias);
    tensors.slope.host = numbers_of("the slope", r.slope, false, channels, slope);
    const Concatenation concatenation(r, output);
    r.output.set_shape(concatenation.shape());
    problem.output_steps = concatenation.steps();
    tensors.data.host = r.data.data();
    tensors.filter.host = r.filter.data();
    tensors.output.host = concatenation.output();
    tensors.residual.host = r.residual == nullptr ? nullptr : r.residual->data();
    tconv_run run = TCONV_RUN_INIT;
    run.on_threads = on_threads;
    run.threads = static_cast<uint64_t>(parallel_get_max_threads());
    const tconv_status status = tconv_layer_run(layer, &problem, &options, &tensors, &run, &error);
    if (status != TCONV_ERROR_FORKED) count_made();
    check(status, error);
    concatenation.copy_neighbours();
    count(&Statistics::evaluations);
}

} // namespace tconv_openvino
