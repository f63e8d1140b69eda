// SPDX-License-Identifier: Apache-2.0
// One operator of a model on a device: its plans, by shape, and its packed filters.
#pragma once

#include "device.hpp"

#include <openvino/core/coordinate_diff.hpp>
#include <openvino/core/strides.hpp>
#include <openvino/op/util/attr_types.hpp>
#include <openvino/runtime/tensor.hpp>

#include <list>
#include <map>
#include <string>
#include <vector>

namespace tconv_openvino
{

// The operator's attributes: those of OpenVINO's own two, and what is fused.
struct Attributes {
    bool grouped = false; // GroupConvolutionBackpropData, else ConvolutionBackpropData
    ov::Strides strides, dilations;
    ov::CoordinateDiff pads_begin, pads_end, output_padding;
    ov::op::PadType auto_pad = ov::op::PadType::EXPLICIT;
    bool scale = false, bias = false;
    std::string activation = "none"; // as tconv_activation_name spells it
    double a = 0, b = 0;             // its numbers
    int64_t device = -1;             // see Device::open
};

// What the library is asked for. `output_shape`: spatial extents, empty where they are computed.
// Throws Failure where the library has no such problem.
tconv_problem problem_of(const Attributes &attributes, ov::element::Type type,
                         const ov::Shape &data, const ov::Shape &filter,
                         const std::vector<int64_t> &output_shape);

tconv_epilogue epilogue_of(const Attributes &attributes);

// What has happened in this process so far.
struct Statistics {
    uint64_t evaluations; // by the library
    uint64_t fallbacks;   // by OpenVINO's own operators
    uint64_t plans, packs;
};

// Locked as long as `lock` lives.
Statistics &statistics_of(std::unique_lock<std::mutex> &lock);
void count(uint64_t Statistics::*what);

struct Request {
    const Attributes &attributes;
    ov::Tensor data, filter;
    const ov::Tensor *scale, *bias, *slope; // null where they are not there
    std::vector<int64_t> output_shape;
    bool constant_filter; // the same in all calls
    ov::Tensor &output;   // gets its shape
};

// Any number of threads may run it at once.
class Layer
{
  public:
    using Plan = std::shared_ptr<tconv_plan>;
    using Filter = std::shared_ptr<tconv_filter>;

    // Throws Failure; the output may then be written in part.
    void run(const Request &request);

  private:
    using Key = std::vector<int64_t>;

    Device &device(const Request &request);
    Plan plan(Device &device, const Request &request);
    Filter filter(Device::Lease &lane, const Plan &plan, const Request &request);

    static constexpr size_t most_plans = 32;
    std::mutex mutex_; // of all below
    Device *device_ = nullptr;
    std::list<std::pair<Key, Plan>> plans_; // the last used first
    std::map<std::string, Filter> packed_;  // by algorithm and type
};

} // namespace tconv_openvino
