# SPDX-License-Identifier: Apache-2.0
"""tconv-cl inside ONNX Runtime: an execution provider for its ConvTranspose, on any OpenCL device.

    session = onnxruntime.InferenceSession("model.onnx", tconv_cl.onnxruntime.session_options())
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import NamedTuple

import onnxruntime

__all__ = ["Statistics", "library", "register", "session_options", "statistics"]


class Statistics(NamedTuple):
    """What all sessions of this process did so far.

    `computed`: layers that ran; `in_slabs`: those of them that the device could only do in parts; `plans`: plans made
    for shapes; `packs`: filters packed.
    """

    computed: int
    in_slabs: int
    plans: int
    packs: int


def library() -> str:
    """The path of the provider's shared library, for programs in other languages."""
    return str(Path(__file__).with_name("libtconv_cl_onnxruntime.so"))


def _is_registered(name: str) -> bool:
    return any(device.ep_name == name for device in onnxruntime.get_ep_devices())


def register(name: str = "tconv_cl") -> str:
    """Registers the provider with ONNX Runtime under a name, which is returned, unless it is registered already.

    `onnxruntime.unregister_execution_provider_library(name)` undoes it, when no session uses it any more.
    """
    if not hasattr(onnxruntime, "register_execution_provider_library"):
        raise RuntimeError(f"ONNX Runtime 1.24 or later is needed, this is {onnxruntime.__version__}")
    if not _is_registered(name):
        onnxruntime.register_execution_provider_library(name, library())
        if not _is_registered(name):
            onnxruntime.unregister_execution_provider_library(name)
            raise RuntimeError(f"ONNX Runtime 1.24 or later is needed, this is {onnxruntime.__version__}")
    return name


def session_options(
    options: onnxruntime.SessionOptions | None = None, *, device: int | None = None
) -> onnxruntime.SessionOptions:
    """Registers the provider and adds it to `options`, or to new ones: ONNX Runtime's own computes all other operators.

    `device`: the number of an OpenCL device as `tconv_cl.devices()` has them, without it the library's default.
    """
    options = options or onnxruntime.SessionOptions()
    name = register()
    devices = [found for found in onnxruntime.get_ep_devices() if found.ep_name == name]
    options.add_provider_for_devices(devices, {} if device is None else {"device": str(device)})
    return options


def statistics() -> Statistics:
    """How to see that it is used."""
    values = (ctypes.c_uint64 * len(Statistics._fields))()
    ctypes.CDLL(library()).tconv_cl_onnxruntime_statistics(values, ctypes.c_size_t(len(values)))
    return Statistics(*values)
