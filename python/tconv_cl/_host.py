# SPDX-License-Identifier: Apache-2.0
"""Computes NumPy arrays on devices of the library's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from ctypes import addressof, byref, c_void_p, cast
from typing import Any, NamedTuple

import numpy as np

from . import _device
from . import _library as c
from ._arrays import Arrays, address_of, check, check_places, element_steps, numpy_array, of_type
from ._callbacks import Listening, callback, is_kept, raise_kept
from ._device import REQUESTS, Device, Layer, Layers, Request, Resolved
from ._library import Error, RequestError, RequestTypeError, call
from ._request import Attributes

LINE = 64  # bytes that processors store at once
TOO_HARD: Any = getattr(np, "exceptions", np).TooHardError  # NumPy 1.24 has it in its main module


def in_place(arrays: Arrays) -> Arrays:
    """The arrays as the library takes them: data, residual and out with steps, all others dense, by copies if needed.
    `out` may be a copy, too."""
    others = _of_lists(arrays._replace(out=None))
    arrays = others._replace(out=out_array(arrays.out, others._asdict()))
    copies = {
        name: np.array(array, order="C") if name == "out" else np.ascontiguousarray(array)
        for name, array in arrays._asdict().items()
        if array is not None and not usable(name, array)
    }
    return arrays._replace(**copies)


def out_array(given: Any, others: Mapping[str, np.ndarray[Any, Any] | None]) -> np.ndarray[Any, Any] | None:
    """The NumPy array of `out`. Refuses one that cannot be stored to, whose elements share places, or that shares
    memory with others."""
    if given is None:
        return None
    if isinstance(given, (list, tuple)):
        raise RequestTypeError(f"out is a {type(given).__name__}: it must be an array")
    out = numpy_array("out", given)
    if not out.flags.writeable:
        by_dlpack = hasattr(given, "__dlpack__") and not hasattr(given, "__array_interface__")
        reason = ": NumPy writes to arrays by DLPack only since 2.1" if by_dlpack else ""
        raise RequestError(f"out must be writeable{reason}")
    check_places(out)
    for name, array in others.items():
        if array is not None and _share(array, out):
            raise RequestError(f"out shares memory with {name}: give it memory of its own")
    return out


def _of_lists(arrays: Arrays) -> Arrays:
    """NumPy arrays of all objects. Lists take the element type that the other arrays ask for."""
    data, filter = numpy_array("data", arrays.data), numpy_array("filter", arrays.filter)
    if isinstance(arrays.filter, (list, tuple)):
        filter = of_type(arrays.filter, filter, data.dtype)
    else:
        data = of_type(arrays.data, data, filter.dtype)
    named = zip(Arrays._fields[2:], arrays[2:])
    return Arrays(data, filter, *(other_array(name, value, data.dtype) for name, value in named))


def weights_of(arrays: Arrays) -> Arrays:
    """NumPy arrays of a layer's objects, without data. A list of weights is float32, or of NumPy's integers."""
    filter = numpy_array("filter", arrays.filter)
    if filter.dtype.kind == "f":
        filter = of_type(arrays.filter, filter, np.dtype(np.float32))
    named = zip(Arrays._fields[2:], arrays[2:])
    return Arrays(None, filter, *(other_array(name, value, filter.dtype) for name, value in named))


def other_array(name: str, value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """The NumPy array of an argument beside the data, which have this type."""
    array = None if value is None else numpy_array(name, value)
    factors = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    wanted = factors if name in ("scale", "slope", "slope2") else dtype
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
    key: tuple[Any, ...] | None = None,
) -> Any:
    """Computes arrays; `layers` have the packed filter. `memory_limit` None: the library's. `key`: of `key_of`, for
    `again`."""
    first = devices[0]
    resolved = first.resolved(request)
    dtype = check(resolved, arrays)
    if arrays.out is None:
        arrays = arrays._replace(out=empty(resolved.output.shape, dtype))
    if resolved.empty:
        return arrays.out
    if layers is not None:
        layer = layers.on(devices)
    else:
        layer = first.layer_of(resolved) if len(devices) == 1 else Layer(devices, c.FILTER_VARIES)
    compute(layer, resolved, tensors_of(arrays), memory_limit, progress)
    dense = all(array is None or array.flags.c_contiguous for array in arrays)
    if key is not None and dense and len(devices) == 1 and resolved.is_simple:
        references = (layer.handle, addressof(resolved.problem), addressof(resolved.options))
        output = (arrays.out.nbytes, resolved.output.shape, dtype)
        asked = _Asked(request.attributes, first, layer, resolved, references, output)
        calls = _calls(layers)
        if len(calls) >= REQUESTS:
            calls.clear()
        calls[key] = asked
    return arrays.out


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An empty array that begins at a cache line. NumPy's arrays begin 16 bytes later, so every stored vector would
    cross a line."""
    return _empty_of(math.prod(shape) * dtype.itemsize, shape, dtype)


def _empty_of(size: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The same; its size in bytes is known."""
    memory = np.empty(size + LINE, np.uint8)
    array: np.ndarray[Any, Any] = np.ndarray(shape, dtype, memory, -address_of(memory) % LINE)
    return array


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


def tensors_of(arrays: Arrays, filter_version: int = 0) -> bytes:
    """The tconv_tensors of checked arrays."""
    *places, out = [0 if array is None else address_of(array) for array in arrays]
    return _tensors_at(places, out, filter_version)


def _tensors_at(places: list[int], out: int, filter_version: int = 0) -> bytes:
    """The same of the addresses of all arrays but `out`, in the order of Arrays, and of that one."""
    data, filter_, bias, scale, slope, slope2, residual = places
    return c.host_tensors(
        data,
        filter_,
        out,
        bias=bias,
        scale=scale,
        slope=slope,
        slope2=slope2,
        residual=residual,
        filter_version=filter_version,
    )


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


# ---- calls like earlier ones ----


class _Asked(NamedTuple):
    """A call for dense arrays of these shapes and types, which was carried out: what runs the next one."""

    attributes: Attributes  # by whose id it is kept
    device: Device
    layer: Layer
    resolved: Resolved
    references: tuple[int, int, int]  # what tconv_layer_run takes: layer, problem, options
    output: tuple[int, tuple[int, ...], np.dtype[Any]]  # its bytes, shape and type


_run_layer = c.by_addresses("tconv_layer_run")
_ndarray = np.ndarray
_DEVICES = (type(None), int, str)
_ALONE = 9  # members of a key of data and filter alone


def key_of(arrays: Arrays, attributes: Attributes, device: Any) -> tuple[Any, ...] | None:
    """What `again` knows a call by: shape, strides and type of an array decide all that is checked of it but its place.
    None: it is no call of a kind that is kept."""
    data, filter_, bias, scale, slope, slope2, residual, out = arrays
    if type(data) is not _ndarray or type(filter_) is not _ndarray or type(device) not in _DEVICES:
        return None
    own = (id(attributes), device, _device.clearings)
    key: tuple[Any, ...] = (*own, data.shape, data.strides, data.dtype, filter_.shape, filter_.strides, filter_.dtype)
    if bias is None and scale is None and slope is None and slope2 is None and residual is None and out is None:
        return key
    for array in (bias, scale, slope, slope2, residual, out):
        if array is None:
            key += (None,)
        elif type(array) is _ndarray:
            key += (array.shape, array.strides, array.dtype)
        else:
            return None
    return key


def _calls(layers: Layers | None) -> dict[Hashable, Any]:
    return _device.calls if layers is None else layers.calls


def again(key: tuple[Any, ...], arrays: Arrays, layers: Layers | None) -> Any:
    """The output of a call like an earlier one, with other elements, in a third of the time. None: there was none, or
    it needs a closer look; then nothing has been done."""
    asked: _Asked | None = _calls(layers).get(key)
    if asked is None:
        return None
    out = arrays[-1]
    if out is None:
        out = _empty_of(*asked.output)
    elif not out.flags.writeable:
        return None
    begin = address_of(out)
    if len(key) == _ALONE:
        tensors = c.host_tensors(address_of(arrays[0]), address_of(arrays[1]), begin)
    else:
        places = [0 if array is None else address_of(array) for array in arrays[:-1]]
        for array, place in zip(arrays, places):
            if array is not None and begin - array.nbytes < place < begin + out.nbytes:  # so `out` was given
                return None
        tensors = _tensors_at(places, begin)
    failed = _run_layer(*asked.references, tensors, None, None)
    raise_kept()
    if failed:
        return None
    asked.device.requests.count_hit()
    return out
