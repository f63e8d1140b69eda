// SPDX-License-Identifier: Apache-2.0
// The interface of the shared library. OpenVINO gets the operator and readers for IR and ONNX
// files. Callers get functions that check the device and count what was computed.
#include "onnx.hpp"
#include "op.hpp"

#include <openvino/core/op_extension.hpp>
#include <openvino/frontend/extension/conversion.hpp>
#include <openvino/op/convolution.hpp>
#include <openvino/op/group_conv.hpp>

namespace tconv_openvino
{

static Attributes attributes_of(const ov::op::util::ConvolutionBackPropBase &stock)
{
    Attributes a;
    a.grouped = ov::is_type<ov::op::v1::GroupConvolutionBackpropData>(&stock);
    a.strides = stock.get_strides();
    a.dilations = stock.get_dilations();
    a.pads_begin = stock.get_pads_begin();
    a.pads_end = stock.get_pads_end();
    a.output_padding = stock.get_output_padding();
    a.auto_pad = stock.get_auto_pad();
    return a;
}

// The choices of tconv_cl.openvino.convert, which gives them beside an operator's own attributes.
static int64_t read_choices(ov::AttributeVisitor &visitor, Attributes &attributes)
{
    int64_t least_macs = 0;
    visitor.on_attribute("device", attributes.device);
    visitor.on_attribute("search", attributes.search);
    visitor.on_attribute("math", attributes.math);
    visitor.on_attribute("least_macs", least_macs);
    return least_macs;
}

// Makes our operator wherever OpenVINO makes its own from a description: when it reads IR, and in a
// NodeFactory with this extension.
template <typename Stock> class Replacement : public ov::BaseOpExtension
{
  public:
    const ov::DiscreteTypeInfo &get_type_info() const override
    {
        return Stock::get_type_info_static();
    }

    ov::OutputVector create(const ov::OutputVector &inputs,
                            ov::AttributeVisitor &visitor) const override
    {
        const auto stock = std::make_shared<Stock>();
        stock->set_arguments(inputs);
        stock->visit_attributes(visitor);
        stock->constructor_validate_and_infer_types();
        Attributes attributes = attributes_of(*stock);
        const int64_t least_macs = read_choices(visitor, attributes);
        return replacement(attributes, inputs, stock, least_macs)->outputs();
    }

    std::vector<ov::Extension::Ptr> get_attached_extensions() const override
    {
        return {};
    }
};

// For tconv_cl.openvino.convert, which finds pairs of OpenVINO's operators: makes ours with the
// attributes and inputs that are given, or the pair if ours cannot compute it or has too little to
// do.
class Pair : public ov::BaseOpExtension
{
  public:
    const ov::DiscreteTypeInfo &get_type_info() const override
    {
        static const ov::DiscreteTypeInfo info{"TransposedConvolutionOrPair", "tconv_cl"};
        return info;
    }

    ov::OutputVector create(const ov::OutputVector &inputs,
                            ov::AttributeVisitor &visitor) const override
    {
        Attributes attributes;
        TransposedConvolution::visit(visitor, attributes);
        const int64_t least_macs = read_choices(visitor, attributes);
        std::optional<ov::Output<ov::Node>> extents;
        const size_t required = required_inputs(attributes);
        if (inputs.size() > required) extents = inputs[required];
        const auto stock = stock_operator(attributes, inputs.at(0), inputs.at(1), extents);
        return replacement(attributes, inputs, stock, least_macs)->outputs();
    }

    std::vector<ov::Extension::Ptr> get_attached_extensions() const override
    {
        return {};
    }
};

} // namespace tconv_openvino

// Opens a device as operators with the property `device` do, which also reads the environment. For
// callers who want its error before they read a model.
extern "C" __attribute__((visibility("default"))) tconv_status
tconv_cl_openvino_open(const char *device, tconv_error *error)
{
    tconv_device *opened;
    return tconv_openvino::open_device(device, &opened, error);
}

// tconv_device_set_trace for all devices that operators have opened and will open: OpenVINO has no
// log that extensions may write to. One thread at a time, and not from a callback.
extern "C" __attribute__((visibility("default"))) tconv_status
tconv_cl_openvino_trace(uint32_t kinds, tconv_trace_callback callback, void *context,
                        tconv_error *error)
{
    return tconv_openvino::trace_devices(kinds, callback, context, error);
}

// The name of an event's device.
extern "C" __attribute__((visibility("default"))) const char *
tconv_cl_openvino_device_name(const tconv_device *device)
{
    return tconv_device_properties(device)->name;
}

// Writes the first `count` of these counts: evaluations by the library, evaluations by OpenVINO's
// own operators, plans made, filters packed.
extern "C" __attribute__((visibility("default"))) void tconv_cl_openvino_statistics(uint64_t *out,
                                                                                    size_t count)
{
    std::unique_lock<std::mutex> lock;
    const tconv_openvino::Statistics &s = tconv_openvino::statistics_of(lock);
    const uint64_t values[] = {s.evaluations, s.fallbacks, s.plans, s.packs};
    for (size_t i = 0; i < count; i++) out[i] = i < std::size(values) ? values[i] : 0;
}

// What OpenVINO gets when it loads the library, before anything here uses OpenCL.
static std::vector<ov::Extension::Ptr> extensions()
{
    tconv_threads_enable();
    return {
        std::make_shared<ov::OpExtension<tconv_openvino::TransposedConvolution>>(),
        std::make_shared<tconv_openvino::Replacement<ov::op::v1::ConvolutionBackpropData>>(),
        std::make_shared<tconv_openvino::Replacement<ov::op::v1::GroupConvolutionBackpropData>>(),
        std::make_shared<tconv_openvino::Pair>(),
        std::make_shared<ov::frontend::ConversionExtension>("ConvTranspose",
                                                            tconv_openvino::conv_transpose),
    };
}

OPENVINO_CREATE_EXTENSIONS(extensions());
