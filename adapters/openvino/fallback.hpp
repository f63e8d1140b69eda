// SPDX-License-Identifier: Apache-2.0
// Computes an operator by OpenVINO's own operators, if the library cannot.
#pragma once

#include "layer.hpp"

#include <openvino/op/constant.hpp>
#include <openvino/op/interpolate.hpp>
#include <openvino/op/reshape.hpp>
#include <openvino/runtime/compiled_model.hpp>

#include <optional>

namespace tconv_openvino
{

// Makes OpenVINO's operator with these attributes, without fused parts: for an upsampling the
// convolution behind it, for a shuffle the one before it. `extents` may be absent.
std::shared_ptr<ov::Node> stock_operator(const Attributes &attributes,
                                         const ov::Output<ov::Node> &data,
                                         const ov::Output<ov::Node> &filter,
                                         const std::optional<ov::Output<ov::Node>> &extents);

// Makes OpenVINO's operator that enlarges the data.
std::shared_ptr<ov::Node> stock_upsampling(const Attributes &attributes,
                                           const ov::Output<ov::Node> &data,
                                           const std::optional<ov::Output<ov::Node>> &sizes);

// Makes the sum or product of both. `numbers` has one axis, the channels.
template <typename Operator>
std::shared_ptr<ov::Node> by_channel(const ov::Output<ov::Node> &data,
                                     const ov::Output<ov::Node> &numbers)
{
    std::vector<int64_t> shape(static_cast<size_t>(data.get_partial_shape().rank().get_length()),
                               1);
    shape[1] = -1;
    const auto target = ov::op::v0::Constant::create(ov::element::i64, {shape.size()}, shape);
    return std::make_shared<Operator>(
        data, std::make_shared<ov::op::v1::Reshape>(numbers, target, false));
}

// Computes with the inputs of our operator. Any number of threads may run it at once.
class Fallback
{
  public:
    void run(const Request &request);

  private:
    std::mutex mutex_;
    std::vector<ov::Shape> shapes_; // the shapes for which compiled_ is compiled
    Extents extents_;
    ov::element::Type type_;
    bool forked_ = false; // compiled_ was compiled in a forked child
    ov::CompiledModel compiled_;
};

} // namespace tconv_openvino
