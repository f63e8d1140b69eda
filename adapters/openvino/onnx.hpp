// SPDX-License-Identifier: Apache-2.0
// Reads ONNX ConvTranspose, in place of OpenVINO's own reader.
#pragma once

#include <openvino/frontend/node_context.hpp>

namespace tconv_openvino
{

ov::OutputVector conv_transpose(const ov::frontend::NodeContext &node);

} // namespace tconv_openvino
