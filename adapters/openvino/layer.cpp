// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

#include <openvino/core/type/bfloat16.hpp>
#include <openvino/core/type/float16.hpp>

#include <algorithm>

namespace tconv_openvino
{

Statistics &statistics_of(std::unique_lock<std::mutex> &lock)
{
    static std::mutex mutex;
    static Statistics statistics;
    lock = std::unique_lock<std::mutex>(mutex);
    return statistics;
}

void count(uint64_t Statistics::*what)
{
    std::unique_lock<std::mutex> lock;
    ++(statistics_of(lock).*what);
}

static tconv_type type_of(ov::element::Type type)
{
    switch (type) {
    case ov::element::Type_t::f32: return TCONV_F32;
    case ov::element::Type_t::f16: return TCONV_F16;
    case ov::element::Type_t::bf16: return TCONV_BF16;
    case ov::element::Type_t::f64: return TCONV_F64;
    default: throw Failure("only f32, f16, bf16 and f64 are computed, not " + type.get_type_name());
    }
}

static tconv_shape shape_of(const char *what, const ov::Shape &shape)
{
    if (shape.size() > TCONV_MAX_RANK)
        throw Failure(std::string("the rank of ") + what + " is " + std::to_string(shape.size()));
    tconv_shape result{static_cast<int>(shape.size()), {}};
    std::copy(shape.begin(), shape.end(), result.dim);
    return result;
}

template <typename List> static tconv_list list_of(const char *what, const List &list)
{
    if (list.size() > TCONV_MAX_AXES)
        throw Failure(std::string(what) + " has " + std::to_string(list.size()) + " numbers");
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

tconv_problem problem_of(const Attributes &attributes, ov::element::Type type,
                         const ov::Shape &data, const ov::Shape &filter,
                         const std::vector<int64_t> &output_shape)
{
    tconv_problem problem = TCONV_PROBLEM_INIT;
    problem.operation = attributes.grouped ? TCONV_GROUP_CONV_BACKPROP : TCONV_CONV_BACKPROP;
    problem.rules = TCONV_RULES_OPENVINO;
    problem.data_type = problem.filter_type = type_of(type);
    problem.data = shape_of("data", data);
    problem.filter = shape_of("the filter", filter);
    problem.strides = list_of("strides", attributes.strides);
    problem.dilations = list_of("dilations", attributes.dilations);
    problem.pads_begin = list_of("pads_begin", attributes.pads_begin);
    problem.pads_end = list_of("pads_end", attributes.pads_end);
    problem.output_padding = list_of("output_padding", attributes.output_padding);
    problem.output_shape = list_of("output_shape", output_shape);
    problem.auto_pad = auto_pad_of(attributes.auto_pad);
    return problem;
}

tconv_epilogue epilogue_of(const Attributes &attributes)
{
    tconv_epilogue epilogue = TCONV_EPILOGUE_INIT;
    epilogue.scale = attributes.scale;
    epilogue.bias = attributes.bias;
    if (!tconv_activation_from_name(attributes.activation.c_str(), &epilogue.activation))
        throw Failure("there is no activation " + attributes.activation);
    epilogue.a = attributes.a;
    epilogue.b = attributes.b;
    return epilogue;
}

Device &Layer::device(const Request &r)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    if (device_ == nullptr) device_ = &Device::open(r.attributes.device);
    return *device_;
}

Layer::Plan Layer::plan(Device &device, const Request &r)
{
    Key key{static_cast<int64_t>(ov::element::Type_t(r.data.get_element_type()))};
    const ov::Shape data = r.data.get_shape(), filter = r.filter.get_shape();
    key.insert(key.end(), data.begin(), data.end());
    key.insert(key.end(), filter.begin(), filter.end());
    key.insert(key.end(), r.output_shape.begin(), r.output_shape.end());

    // The lock is held while kernels are compiled: others would compile the same ones.
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = std::find_if(plans_.begin(), plans_.end(),
                                    [&](const auto &entry) { return entry.first == key; });
    if (found != plans_.end()) {
        plans_.splice(plans_.begin(), plans_, found);
        return found->second;
    }
    const tconv_problem problem =
        problem_of(r.attributes, r.data.get_element_type(), data, filter, r.output_shape);
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue = epilogue_of(r.attributes);
    tconv_plan *made;
    tconv_error error;
    check(tconv_plan_create(device.handle(), &problem, &options, &made, &error), error);
    count(&Statistics::plans);
    plans_.emplace_front(std::move(key), Plan(made, tconv_plan_release));
    if (plans_.size() > most_plans) plans_.pop_back();
    return plans_.front().second;
}

static Layer::Filter pack(Device::Lease &lane, tconv_plan *plan, const ov::Tensor &weights)
{
    tconv_filter *made;
    tconv_error error;
    check(tconv_filter_create(plan, nullptr, 0, &made, &error), error);
    Layer::Filter filter(made, tconv_filter_release);
    cl_mem buffer = lane->upload(WEIGHTS, weights.data(), weights.get_byte_size());
    check(tconv_filter_enqueue_pack(made, lane->queue(), buffer, 0, 0, nullptr, nullptr, &error),
          error);
    count(&Statistics::packs);
    return filter;
}

Layer::Filter Layer::filter(Device::Lease &lane, const Plan &plan, const Request &r)
{
    if (!r.constant_filter) return pack(lane, plan.get(), r.filter);
    // Plans of one layer differ only in extents and type, so a family has one layout for each type.
    const std::string algorithm = std::string(tconv_plan_algorithm(plan.get())) + " " +
                                  r.filter.get_element_type().get_type_name();
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = packed_.find(algorithm);
    if (found != packed_.end()) return found->second;
    Filter made = pack(lane, plan.get(), r.filter);
    check_opencl(clFinish(lane->queue()), "clFinish"); // other lanes read it
    packed_.emplace(algorithm, made);
    return made;
}

// A buffer of scales or slopes, which are f32 for all types but f64; `converted` must stay as long
// as the tensor.
static cl_mem upload_numbers(Device::Lease &lane, Role role, const ov::Tensor &tensor,
                             std::vector<float> &converted)
{
    const size_t size = tensor.get_size();
    if (tensor.get_element_type() == ov::element::f16) {
        const ov::float16 *values = tensor.data<ov::float16>();
        converted.assign(values, values + size);
    } else if (tensor.get_element_type() == ov::element::bf16) {
        const ov::bfloat16 *values = tensor.data<ov::bfloat16>();
        converted.assign(values, values + size);
    } else {
        return lane->upload(role, tensor.data(), tensor.get_byte_size());
    }
    return lane->upload(role, converted.data(), size * sizeof(float));
}

void Layer::run(const Request &r)
{
    Device &device = this->device(r);
    const Plan plan = this->plan(device, r);
    const tconv_geometry *geometry = tconv_plan_geometry(plan.get());
    const tconv_shape &shape = geometry->output_shape;
    r.output.set_shape(ov::Shape(shape.dim, shape.dim + shape.rank));
    if (geometry->output_bytes != 0) {
        std::vector<float> scales, slopes;
        Device::Lease lane(device);
        const Filter packed = filter(lane, plan, r);
        tconv_args args = TCONV_ARGS_INIT;
        args.filter = packed.get();
        args.data.memory = lane->upload(DATA, r.data.data(), r.data.get_byte_size());
        if (r.bias != nullptr)
            args.bias.memory = lane->upload(BIAS, r.bias->data(), r.bias->get_byte_size());
        if (r.scale != nullptr) args.scale.memory = upload_numbers(lane, SCALE, *r.scale, scales);
        if (r.slope != nullptr) args.slope.memory = upload_numbers(lane, SLOPE, *r.slope, slopes);
        if (const size_t bytes = tconv_plan_workspace_bytes(plan.get()))
            args.workspace.memory = lane->space(WORKSPACE, bytes);
        args.output.memory = lane->output(r.output.data(), geometry->output_bytes);
        tconv_error error;
        check(tconv_plan_enqueue(plan.get(), lane->queue(), &args, 0, nullptr, nullptr, &error),
              error);
        lane->download(r.output.data(), geometry->output_bytes);
    }
    count(&Statistics::evaluations);
}

} // namespace tconv_openvino
