# SPDX-License-Identifier: Apache-2.0
"""What tconv_cl.fold_onnx needs to know of an ONNX model, and the weights that it computes. Without the library."""
