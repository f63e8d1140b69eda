// SPDX-License-Identifier: Apache-2.0
// Computes one operator of a model on a device.
#pragma once

#include "device.hpp"

#include <openvino/core/coordinate_diff.hpp>
#include <openvino/core/strides.hpp>
#include <openvino/op/util/attr_types.hpp>
#include <openvino/op/util/interpolate_base.hpp>
#include <openvino/runtime/tensor.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tconv_openvino
{

// What a layer stands for in a model.
enum class Form {
    TRANSPOSED, // ConvolutionBackpropData, or with groups GroupConvolutionBackpropData
    // Interpolate, which repeats neighbours `strides` times, then Convolution or GroupConvolution
    // of stride 1. The filter is the convolution's.
    UPSAMPLE,
    // Convolution or GroupConvolution of stride 1, then a pixel shuffle by `strides`, in the order
    // CRD (DepthToSpace's depth_first) or DCR (blocks_first). Scale, bias and slopes have numbers
    // for the convolution's channels.
    SHUFFLE,
    SHUFFLE_DCR,
};

// The operator's attributes: those of OpenVINO's operators, and those of fused parts.
struct Attributes {
    std::string form = "transposed"; // see form_of
    bool grouped = false;            // the filter has an axis of groups
    ov::Strides strides, dilations;
    ov::CoordinateDiff pads_begin, pads_end, output_padding;
    ov::op::PadType auto_pad = ov::op::PadType::EXPLICIT;
    bool scale = false, bias = false, residual = false;
    std::string activation = "none"; // as tconv_activation_name spells it
    double a = 0, b = 0;             // its numbers
    std::string device;              // see open_device
    std::string search;              // how the algorithm is chosen, see search_of
    std::string math;                // see math_of
    bool channels_last = false;      // data and output are [N, X..., C], else [N, C, X...]
    // Data u8 or i8, filter i8, output u8 or i8: see tconv_epilogue. Scale and bias are then f32.
    bool requantize = false;
    ov::element::Type output_type = ov::element::dynamic; // dynamic: as the data
    int64_t data_zero_point = 0, filter_zero_point = 0, output_zero_point = 0;
    // How many tensors are concatenated with the output along the channels, before and after it.
    int64_t concat_before = 0, concat_after = 0;
    // How Interpolate takes neighbours. It matters only where sizes are no multiples of the data's
    // extents, and OpenVINO's own operators compute.
    ov::op::util::InterpolateBase::CoordinateTransformMode coordinate_transformation_mode =
        ov::op::util::InterpolateBase::CoordinateTransformMode::ASYMMETRIC;
    ov::op::util::InterpolateBase::NearestMode nearest_mode =
        ov::op::util::InterpolateBase::NearestMode::FLOOR;
};

// Throws Failure if there is no such form: "transposed", "upsample", "shuffle", "shuffle_dcr".
Form form_of(const Attributes &attributes);
bool is_shuffle(const Attributes &attributes);

// How many of the convolution's channels become one of the output's.
size_t phases_of(const Attributes &attributes);

// The extents of the input behind the required ones: output_shape, which has the spatial axes; for
// an upsampling the sizes of the enlarged data, of the spatial axes or of all. Empty if there is no
// such input.
using Extents = std::vector<int64_t>;

// Makes the library's problem. Throws Failure if the library has no such problem.
tconv_problem problem_of(const Attributes &attributes, ov::element::Type type,
                         ov::element::Type filter_type, const ov::Shape &data,
                         const ov::Shape &filter, const Extents &extents);

ov::Shape shape_of(const tconv_shape &shape);

tconv_epilogue epilogue_of(const Attributes &attributes);

// How the algorithm is chosen; empty: as TCONV_CL_SEARCH says. Throws Failure for other names than
// those of tconv_search_name.
tconv_search search_of(const std::string &name);

// The arithmetic; empty: exact. Throws Failure for other names than those of tconv_math_name.
tconv_math math_of(const std::string &name);

// The counts of this process so far.
struct Statistics {
    uint64_t evaluations; // by the library
    uint64_t fallbacks;   // by OpenVINO's own operators
    uint64_t plans, packs;
};

// Locked as long as `lock` lives.
Statistics &statistics_of(std::unique_lock<std::mutex> &lock);
void count(uint64_t Statistics::*what, uint64_t how_often = 1);

struct Request {
    const Attributes &attributes;
    ov::Tensor data, filter;
    const ov::Tensor *scale, *bias, *residual, *slope; // null: absent
    std::vector<ov::Tensor> neighbours;                // concatenated, those before come first
    Extents extents;
    bool constant_filter; // the same in all calls
    ov::Tensor &output;   // the call sets its shape
};

// Any number of threads may run it at once.
class Layer
{
  public:
    // Throws Failure; the output is then untouched or complete.
    void run(const Request &request);

  private:
    tconv_layer *layer(const Request &request);
    void count_made();

    std::mutex mutex_; // guards all members below
    std::unique_ptr<tconv_layer, decltype(&tconv_layer_release)> layer_{nullptr,
                                                                        tconv_layer_release};
    tconv_layer_counts counted_ =
        TCONV_LAYER_COUNTS_INIT; // the part already added to the statistics
};

} // namespace tconv_openvino
