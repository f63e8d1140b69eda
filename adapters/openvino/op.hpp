// SPDX-License-Identifier: Apache-2.0
// The operator that replaces OpenVINO's (Group)ConvolutionBackpropData in a model, or a
// (Group)Convolution with the Interpolate before it or the shuffle behind it.
#pragma once

#include "fallback.hpp"

#include <openvino/op/op.hpp>

#include <atomic>

namespace tconv_openvino
{

// Inputs: data; filter; scale, bias and residual, if the attributes say so; slopes, if the
// activation has them; the tensors that are concatenated before the output, then those after it;
// the extents, if there is one more input: output_shape, or the sizes of the enlarged data.
// Normally scale, bias and slopes have one axis, with one number or one for each output channel,
// and the residual is a tensor like the output without what is concatenated. With a shuffle,
// these channels are those before it. With channels_last, data, residual, concatenated tensors and
// output are [N, X..., C]; the filter is as usual. After a model was reshaped, scale, bias and
// residual may have other shapes that OpenVINO broadcasts: then OpenVINO's own operators compute.
class TransposedConvolution : public ov::op::Op
{
  public:
    OPENVINO_OP("TransposedConvolution", "tconv_cl")

    TransposedConvolution() = default;
    TransposedConvolution(const ov::OutputVector &inputs, const Attributes &attributes);

    void validate_and_infer_types() override;
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector &inputs) const override;
    bool visit_attributes(ov::AttributeVisitor &visitor) override;

    // What visit_attributes visits.
    static void visit(ov::AttributeVisitor &visitor, Attributes &attributes);

    bool has_evaluate() const override
    {
        return true;
    }
    bool evaluate(ov::TensorVector &outputs, const ov::TensorVector &inputs) const override;

  private:
    // The state of computing. It is not copied with the node: a plugin copies a model when it
    // compiles it, and the weights may have changed since the last compilation.
    struct State {
        Layer layer;
        Fallback fallback;
        std::atomic<bool> told{false};
    };

    ov::PartialShape infer_sums(size_t required); // without what is fused
    ov::PartialShape broadcast(ov::PartialShape output, size_t input) const;
    ov::Dimension channels_before_shuffle(const ov::PartialShape &output) const;
    ov::PartialShape concatenated(ov::PartialShape output, size_t first) const;

    Attributes attributes_;
    mutable State state_;
};

// How many inputs the attributes say: all but the extents.
size_t required_inputs(const Attributes &attributes);

// Replaces OpenVINO's own operator, `stock`, by ours with these attributes and inputs (data,
// filter, what the attributes say, perhaps the extents), and the bias, of one axis, if there is
// one. If the library refuses the operator, or there is no device, OpenVINO's own stays, and a line
// says why. It also stays, without a line, if shapes are known and the operator has fewer
// multiply-adds than `least_macs` (negative: tconv_device_least_macs). Throws Failure for a named
// device that does not exist, an unknown search or math, or a wrong value in the environment.
std::shared_ptr<ov::Node> replacement(Attributes attributes, ov::OutputVector inputs,
                                      const std::shared_ptr<ov::Node> &stock, int64_t least_macs,
                                      const std::optional<ov::Output<ov::Node>> &bias = {});

} // namespace tconv_openvino
