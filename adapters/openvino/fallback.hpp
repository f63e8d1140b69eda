// SPDX-License-Identifier: Apache-2.0
// The same computation by OpenVINO's own operators.
#pragma once

#include "layer.hpp"

#include <openvino/op/util/convolution_backprop_base.hpp>
#include <openvino/runtime/compiled_model.hpp>

#include <optional>

namespace tconv_openvino
{

// OpenVINO's operator with these attributes, without what is fused. `output_shape` may be absent.
std::shared_ptr<ov::op::util::ConvolutionBackPropBase>
stock_operator(const Attributes &attributes, const ov::Output<ov::Node> &data,
               const ov::Output<ov::Node> &filter,
               const std::optional<ov::Output<ov::Node>> &output_shape);

// The sum of both; the bias has one axis, the channels.
std::shared_ptr<ov::Node> add_bias(const ov::Output<ov::Node> &data,
                                   const ov::Output<ov::Node> &bias);

// Its inputs are those of the operator that could not be computed. Any number of threads may run it
// at once.
class Fallback
{
  public:
    void run(const Request &request);

  private:
    std::mutex mutex_;
    std::vector<ov::Shape> shapes_; // of which compiled_ is
    std::vector<int64_t> output_shape_;
    ov::element::Type type_;
    ov::CompiledModel compiled_;
};

} // namespace tconv_openvino
