// SPDX-License-Identifier: Apache-2.0
// The operator that stands in a model where OpenVINO's (Group)ConvolutionBackpropData stood.
#pragma once

#include "fallback.hpp"

#include <openvino/op/op.hpp>
#include <openvino/op/util/convolution_backprop_base.hpp>

#include <atomic>

namespace tconv_openvino
{

// Inputs: data; filter; scale, bias and residual, where the attributes say so; slopes, where the
// activation has such; output_shape, where there is one more. Scale, bias and slopes have one axis,
// the output channels; the residual is a tensor like the output. With channels_last, data, residual
// and output are [N, X..., C]; the filter is as ever.
class TransposedConvolution : public ov::op::Op
{
  public:
    OPENVINO_OP("TransposedConvolution", "tconv_cl")

    TransposedConvolution() = default;
    TransposedConvolution(const ov::OutputVector &inputs, const Attributes &attributes);

    void validate_and_infer_types() override;
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector &inputs) const override;
    bool visit_attributes(ov::AttributeVisitor &visitor) override;
    bool has_evaluate() const override
    {
        return true;
    }
    bool evaluate(ov::TensorVector &outputs, const ov::TensorVector &inputs) const override;

  private:
    // What computing needs. It is not copied with the node: a plugin copies a model when it
    // compiles it, and the weights may have changed since the model was last compiled.
    struct State {
        Layer layer;
        Fallback fallback;
        std::atomic<bool> told{false};
    };

    bool has_slope() const;
    size_t required_inputs() const; // all but output_shape
    ov::PartialShape infer_output(size_t required) const;

    Attributes attributes_;
    mutable State state_;
};

// The operator in the place of OpenVINO's own one, or that one itself, and a line that says why,
// where the library refuses it or there is no device. With the bias, of one axis, where there is
// one. OpenVINO's own also stays, without a line, where shapes are known and the operator has fewer
// multiply-adds than `least_macs`; negative: tconv_session_least_macs. A device that is named and
// not there, a search that does not exist, or a wrong value in the environment, throws Failure.
std::shared_ptr<ov::Node>
replacement(const std::shared_ptr<ov::op::util::ConvolutionBackPropBase> &stock,
            const std::string &device, const std::string &search, int64_t least_macs,
            const std::optional<ov::Output<ov::Node>> &bias = {});

} // namespace tconv_openvino
