// SPDX-License-Identifier: Apache-2.0
// A fused Concat along the channels: where the operator's output lies in the whole, and copies of
// the tensors beside it.
#pragma once

#include "layer.hpp"

namespace tconv_openvino
{

class Concatenation
{
  public:
    // `output` is the shape of the operator's output. Throws Failure if a neighbour does not fit.
    Concatenation(const Request &request, const ov::Shape &output);

    // The shape of the whole.
    const ov::Shape &shape() const
    {
        return shape_;
    }

    // The steps of the output in the whole. Absent if there are no neighbours.
    tconv_steps steps() const;

    // The first element of the output in the whole.
    void *output() const;

    // Copies the neighbours beside the output, with OpenVINO's threads.
    void copy_neighbours() const;

  private:
    const Request &request_;
    ov::Shape shape_;
    size_t axis_;                 // the channels
    size_t before_ = 0, own_ = 0; // the output's channels, and those before them
    size_t inner_ = 1;            // bytes of a channel that are adjacent
    size_t outer_ = 1;            // how often all channels are repeated
};

} // namespace tconv_openvino
