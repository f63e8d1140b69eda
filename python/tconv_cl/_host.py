# SPDX-License-Identifier: Apache-2.0
"""Computes NumPy arrays on devices of the library's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from ctypes import byref, c_void_p, cast
from typing import Any

import numpy as np

from . import _library as c
from ._arrays import Arrays, check, check_places, element_steps, numpy_array, of_type
from ._callbacks import Listening, callback, is_kept
from ._device import Device, Layer, Layers, Request, Resolved
from ._library import Error, RequestError, RequestTypeError, call

LINE = 64  # bytes that processors store at once
TOO_HARD: Any = getattr(np, "exceptions", np).TooHardError  # NumPy 1.24 has it in its main module


def in_place(arrays: Arrays) -> Arrays:
    """The arrays as the library takes them: data, residual and out with steps, all others dense, by copies if needed.
    `out` may be a copy, too."""
    if isinstance(arrays.out, (list, tuple)):
        raise RequestTypeError(f"out is a {type(arrays.out).__name__}: it must be an array")
    given = arrays.out
    arrays = _of_lists(arrays)
    out = arrays.out
    if out is not None:
        if not out.flags.writeable:
            by_dlpack = hasattr(given, "__dlpack__") and not hasattr(given, "__array_interface__")
            reason = ": NumPy writes to arrays by DLPack only since 2.1" if by_dlpack else ""
            raise RequestError(f"out must be writeable{reason}")
        check_places(out)
        for name, array in arrays._asdict().items():
            if name != "out" and array is not None and _share(array, out):
                raise RequestError(f"out shares memory with {name}: give it memory of its own")
    copies = {
        name: np.array(array, order="C") if name == "out" else np.ascontiguousarray(array)
        for name, array in arrays._asdict().items()
        if array is not None and not usable(name, array)
    }
    return arrays._replace(**copies)


def _of_lists(arrays: Arrays) -> Arrays:
    """NumPy arrays of all objects. Lists take the element type that the other arrays ask for."""
    data, filter = numpy_array("data", arrays.data), numpy_array("filter", arrays.filter)
    if isinstance(arrays.filter, (list, tuple)):
        filter = of_type(arrays.filter, filter, data.dtype)
    else:
        data = of_type(arrays.data, data, filter.dtype)
    named = zip(Arrays._fields[2:], arrays[2:])
    return Arrays(data, filter, *(other_array(name, value, data.dtype) for name, value in named))


def other_array(name: str, value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """The NumPy array of an argument beside the data, which have this type."""
    array = None if value is None else numpy_array(name, value)
    factors = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    wanted = factors if name in ("scale", "slope") else dtype
    return array if array is None or wanted.kind != "f" else of_type(value, array, wanted)


def usable(name: str, array: np.ndarray[Any, Any]) -> bool:
    """Whether the library takes an array where it lies."""
    if array.flags.c_contiguous:
        return True
    if name not in ("data", "filter", "residual", "out") or not array.flags.aligned:
        return False
    return element_steps(array, least=0 if name == "residual" else 1) is not None


def _share(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays share an element; True if that takes too long to tell."""
    if not np.may_share_memory(one, other):
        return False
    most: Any = 10000  # NumPy's types know only its names for all and nothing
    try:
        return np.shares_memory(one, other, max_work=most)
    except TOO_HARD:
        return True


def run(
    arrays: Arrays,
    request: Request,
    devices: list[Device],
    memory_limit: int | None,
    layers: Layers | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Any:
    """Computes arrays; `layers` have the packed filter. `memory_limit` None: the library's."""
    first = devices[0]
    resolved = first.resolved(request)
    dtype = check(resolved, arrays)
    if arrays.out is None:
        arrays = arrays._replace(out=_empty(resolved.output.shape, dtype))
    if resolved.empty:
        return arrays.out
    if layers is not None:
        layer = layers.on(devices)
    else:
        layer = first.layer if len(devices) == 1 else Layer(devices, c.FILTER_VARIES)
    compute(layer, resolved, _tensors(arrays), memory_limit, progress)
    return arrays.out


def _empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An empty array that begins at a cache line. NumPy's arrays begin 16 bytes later, so every stored vector would
    cross a line."""
    memory = np.empty(math.prod(shape) * dtype.itemsize + LINE, np.uint8)
    begin = -memory.ctypes.data % LINE
    return memory[begin : begin + memory.size - LINE].view(dtype).reshape(shape)


def compute(
    layer: Layer,
    resolved: Resolved,
    tensors: bytes,
    memory_limit: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
    run: c.Run | None = None,
) -> None:
    """Computes checked arrays of c.host_tensors. `run`: how, if neither limit nor progress are given."""
    if memory_limit is None and progress is None and not resolved.is_long:
        with resolved.listening():
            call("tconv_layer_run", layer.handle, byref(resolved.problem), byref(resolved.options), tensors, run)
    else:
        _run_slowly(layer, resolved, tensors, memory_limit or 0, progress, run)


def _tensors(arrays: Arrays) -> bytes:
    pointers = [0 if array is None else array.__array_interface__["data"][0] for array in arrays]
    data, filter_, bias, scale, slope, residual, out = pointers
    return c.host_tensors(data, filter_, out, bias, scale, slope, residual)


def _run_slowly(
    layer: Layer,
    resolved: Resolved,
    tensors: bytes,
    memory_limit: int,
    progress: Callable[[int, int], Any] | None,
    given: c.Run | None,
) -> None:
    """Computes what may be divided into slabs, between which Python handles signals and tells of the progress."""
    raised: list[BaseException] = []

    def told(user: int, slab: int, count: int, total: int) -> bool:
        """Between slabs, Python handles signals: in the main thread, in which it begins."""
        if is_kept():
            return False
        if progress is None:
            return True
        try:
            answer = progress(count, total)
            return total == 1 or not isinstance(answer, (bool, np.bool_)) or bool(answer)
        except BaseException as error:
            raised.append(error)  # perhaps in another thread than the caller's
            return False

    told_in_c = callback(c.Progress, told)
    run = c.Run() if given is None else c.Run.from_buffer_copy(given)
    run.memory_limit, run.progress = memory_limit, cast(told_in_c, c_void_p)
    try:
        with Listening():
            call("tconv_layer_run", layer.handle, byref(resolved.problem), byref(resolved.options), tensors, byref(run))
    except Error:
        if not raised:
            raise
    if raised:
        raise raised[0]
