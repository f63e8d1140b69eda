# SPDX-License-Identifier: Apache-2.0
"""Transposed convolution on any OpenCL device, for NumPy and pyopencl arrays."""

from importlib.metadata import version

from ._convolution import ConvTranspose, conv, conv_pixel_shuffle, conv_transpose, explain, output_shape, upsample_conv
from ._convolution import window_input
from ._device import CacheInfo, DeviceInfo, cache_info, clear_cache, devices
from ._gradient import conv_input_gradient
from ._library import Error, RequestError, RequestTypeError
from ._prepare import prepare, prepare_model
from ._stream import Stream
from ._trace import TraceEvent, trace

__version__ = version("tconv_cl")
__all__ = [
    "CacheInfo",
    "ConvTranspose",
    "DeviceInfo",
    "Error",
    "RequestError",
    "RequestTypeError",
    "Stream",
    "TraceEvent",
    "cache_info",
    "clear_cache",
    "conv",
    "conv_input_gradient",
    "conv_pixel_shuffle",
    "conv_transpose",
    "devices",
    "explain",
    "output_shape",
    "prepare",
    "prepare_model",
    "trace",
    "upsample_conv",
    "window_input",
]
