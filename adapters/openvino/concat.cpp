// SPDX-License-Identifier: Apache-2.0
// Puts the operator's output and its neighbours side by side into one tensor.
#include "concat.hpp"

#include <openvino/core/parallel.hpp>

#include <algorithm>
#include <cstring>

namespace tconv_openvino
{

Concatenation::Concatenation(const Request &request, const ov::Shape &output)
    : request_(request), shape_(output),
      axis_(request.attributes.channels_last ? output.size() - 1 : 1), own_(output[axis_])
{
    size_t number = 0;
    for (const ov::Tensor &neighbour : request.neighbours) {
        ov::Shape shape = neighbour.get_shape();
        const size_t channels = shape.size() == output.size() ? shape[axis_] : 0;
        if (shape.size() == output.size()) shape[axis_] = own_;
        if (shape != output)
            throw Failure(TCONV_ERROR_SHAPE, "concatenated tensor " + std::to_string(number) +
                                                 " is " + neighbour.get_shape().to_string() +
                                                 ", but the output is " + output.to_string() +
                                                 ": only the channels may differ");
        if (number++ < static_cast<size_t>(request.attributes.concat_before)) before_ += channels;
        shape_[axis_] += channels;
    }
    inner_ = request.output.get_element_type().size();
    for (size_t i = axis_ + 1; i < shape_.size(); i++) inner_ *= shape_[i];
    for (size_t i = 0; i < axis_; i++) outer_ *= shape_[i];
}

tconv_steps Concatenation::steps() const
{
    tconv_steps steps{};
    if (request_.neighbours.empty()) return steps;
    steps.count = static_cast<int>(shape_.size());
    int64_t step = 1;
    for (size_t i = shape_.size(); i-- > 0; step *= static_cast<int64_t>(shape_[i]))
        steps.value[i] = step;
    return steps;
}

void *Concatenation::output() const
{
    return static_cast<std::byte *>(request_.output.data()) + before_ * inner_;
}

// Copies `rows` of `bytes` each, in parts that keep several threads busy.
static void copy(const std::byte *source, std::byte *target, size_t rows, size_t bytes, size_t step)
{
    constexpr size_t PART = 64 << 10; // bytes: takes longer than giving it to a thread
    const size_t pieces = (bytes + PART - 1) / PART;                            // of a row
    const size_t together = bytes == 0 ? 1 : std::max(PART / bytes, size_t{1}); // rows
    const size_t groups = (rows + together - 1) / together;
    ov::parallel_for(groups * pieces, [&](size_t part) {
        const size_t first = part / pieces * together, begin = part % pieces * PART;
        const size_t size = std::min(bytes - begin, PART);
        for (size_t row = first; row < std::min(first + together, rows); row++)
            std::memcpy(target + row * step + begin, source + row * bytes + begin, size);
    });
}

void Concatenation::copy_neighbours() const
{
    auto *target = static_cast<std::byte *>(request_.output.data());
    const size_t step = shape_[axis_] * inner_;
    int64_t number = 0;
    for (const ov::Tensor &neighbour : request_.neighbours) {
        if (number++ == request_.attributes.concat_before) target += own_ * inner_;
        const size_t bytes = neighbour.get_shape()[axis_] * inner_;
        copy(static_cast<const std::byte *>(neighbour.data()), target, outer_, bytes, step);
        target += bytes;
    }
}

} // namespace tconv_openvino
