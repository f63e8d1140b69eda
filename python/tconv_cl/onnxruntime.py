# SPDX-License-Identifier: Apache-2.0
"""tconv-cl inside ONNX Runtime: an execution provider for its ConvTranspose, and for a Conv with the Resize in front of
it or the DepthToSpace behind it, on any OpenCL device.

session = onnxruntime.InferenceSession("model.onnx", tconv_cl.onnxruntime.session_options())
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import onnxruntime

from ._adapter import check_device, check_options, follow_devices
from ._library import RequestError
from ._names import RUNTIME, suggesting

ADDED = "tconv_cl.added"  # an entry of session options with the provider

__all__ = ["Statistics", "library", "register", "session_options", "statistics"]


class Statistics(NamedTuple):
    """Counts of all sessions of this process so far.

    `computed`: layers that ran; `in_slabs`: those of them that the device computed in parts; `plans`: plans made
    for shapes; `packs`: filters packed.
    """

    computed: int
    in_slabs: int
    plans: int
    packs: int


def library() -> str:
    """The path of the provider's shared library, for programs in other languages."""
    return str(Path(__file__).with_name("libtconv_cl_onnxruntime.so"))


@cache
def _load() -> ctypes.CDLL:
    try:
        loaded = ctypes.CDLL(library())
    except OSError as error:
        raise ImportError(f"tconv_cl cannot load its provider for ONNX Runtime ({error}): install it again") from error
    follow_devices(loaded, "tconv_cl_onnxruntime")
    return loaded


def _is_registered(name: str) -> bool:
    return any(device.ep_name == name for device in onnxruntime.get_ep_devices())


def register(name: str = "tconv_cl") -> str:
    """Registers the provider with ONNX Runtime under a name, which is returned, unless it is registered already.

    `onnxruntime.unregister_execution_provider_library(name)` undoes it, when no session uses it any more.
    """
    if not hasattr(onnxruntime, "register_execution_provider_library"):
        raise RuntimeError(f"ONNX Runtime is {onnxruntime.__version__}: it must be 1.24 or later")
    if not _is_registered(name):
        _load()
        onnxruntime.register_execution_provider_library(name, library())
        if not _is_registered(name):
            onnxruntime.unregister_execution_provider_library(name)
            raise RuntimeError(f"ONNX Runtime is {onnxruntime.__version__}: it must be 1.24 or later")
    return name


@suggesting(maker="", table=RUNTIME)
def session_options(
    options: onnxruntime.SessionOptions | None = None,
    *,
    device: int | str | None = None,
    fallback: Literal["warn", "error"] = "warn",
    search: Literal["model", "records", "measure", "renew"] | None = None,
    math: Literal["exact", "fast"] = "exact",
    least_macs: int | None = None,
    fuse_concat: bool = True,
) -> onnxruntime.SessionOptions:
    """Registers the provider and adds it to `options`, or to new ones: ONNX Runtime's own computes all other operators.

    Options that have it already get the new values of all arguments.

    Args:
        device: a number as `tconv_cl.devices()` lists them, "gpu", "cpu", "accelerator" or a part of a device's name;
            None: the library's default. It is opened here.
        fallback: what happens if there is no device or a ConvTranspose is refused: "warn": ONNX Runtime's own
            provider computes, and a line of the session's log says why; "error": the session raises.
        search: how the algorithm of each shape is chosen, as that of tconv_cl.conv_transpose; None: as TCONV_CL_SEARCH
            says, else "records".
        math: "exact", or "fast": also algorithms with fewer multiplications and a larger error.
        least_macs: layers with fewer multiply-adds stay with ONNX Runtime. None: half a million on a CPU, 2 million if
            its driver's threads compute (about the time of one launch), 0 on other devices and with fallback="error".
            For a Conv with Resize, Upsample or DepthToSpace four times as many.
        fuse_concat: if a Concat along channels follows, the layer writes its output directly into the concatenated
            tensor; False: ONNX Runtime's own Concat copies the output.

    Raises:
        tconv_cl.Error: there is no such device, or with fallback="error" none at all.
        tconv_cl.RequestError, which is a ValueError: an argument or a variable of the environment has a wrong value.
        ValueError: `options` are to save an optimized model: ONNX Runtime cannot save nodes that a provider compiled.
        ImportError: the provider's library cannot be loaded.
        RuntimeError: ONNX Runtime is older than 1.24.
    """
    options = options or onnxruntime.SessionOptions()
    if options.optimized_model_filepath:
        raise ValueError(
            f"optimized_model_filepath is {options.optimized_model_filepath!r}: ONNX Runtime cannot save a model with "
            "nodes that a provider compiled; save it with a session without tconv_cl"
        )
    check_options(search, least_macs, fallback, math)
    if not isinstance(fuse_concat, bool):
        raise RequestError(f"fuse_concat is {fuse_concat!r}: it must be True or False")
    name = register()
    check_device(_load().tconv_cl_onnxruntime_open, device, needed=fallback == "error")
    settings = {
        "device": "" if device is None else str(device),
        "fallback": fallback,
        "search": search or "",
        "math": math,
        "least_macs": "" if least_macs is None else str(int(least_macs)),
        "fuse_concat": str(int(fuse_concat)),
    }
    if _is_added(options):
        for key, value in settings.items():
            options.add_session_config_entry(f"ep.{name}.{key}", value)
    else:
        devices = [found for found in onnxruntime.get_ep_devices() if found.ep_name == name]
        options.add_provider_for_devices(devices, settings)
        options.add_session_config_entry(ADDED, "1")
    return options


def _is_added(options: onnxruntime.SessionOptions) -> bool:
    try:
        return options.get_session_config_entry(ADDED) == "1"
    except RuntimeError:  # there is no such entry
        return False


def statistics() -> Statistics:
    """The counts so far; they show whether the provider is used."""
    values = (ctypes.c_uint64 * len(Statistics._fields))()
    _load().tconv_cl_onnxruntime_statistics(values, ctypes.c_size_t(len(values)))
    return Statistics(*values)
