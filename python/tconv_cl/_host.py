# SPDX-License-Identifier: Apache-2.0
"""Computes NumPy arrays on a device of the library's own: in place if both share memory, large arrays in slabs."""

from __future__ import annotations

import math
from collections.abc import Callable
from ctypes import byref, c_void_p, cast
from typing import Any

import numpy as np

from . import _library as c
from ._arrays import Arrays, check, check_places, element_steps, numpy_array, of_type
from ._callbacks import Listening, callback, is_kept
from ._device import Session, SessionLayer, Request, Resolved
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
        if array is not None and not array.flags.c_contiguous and not _usable(name, array)
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


def _usable(name: str, array: np.ndarray[Any, Any]) -> bool:
    """Whether the library takes an array that is not dense where it lies."""
    if name not in ("data", "residual", "out") or not array.flags.aligned:
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
    sessions: list[Session],
    memory_limit: int | None,
    layer: Callable[[Session], SessionLayer] | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Any:
    """Computes arrays; `layer` gives the layer with the packed filter. `memory_limit` None: slabs if needed."""
    session = sessions[0]
    resolved = session.resolved(request)
    dtype = check(resolved, arrays)
    if arrays.out is None:
        arrays = arrays._replace(out=_empty(resolved.output.shape, dtype))
    if resolved.empty:
        return arrays.out
    pointers = _pointers(arrays)
    if len(sessions) > 1 or memory_limit is not None:
        _run_in_slabs(resolved, pointers, sessions, memory_limit or 0, progress)
    else:
        compute(session, session.layer if layer is None else layer(session), resolved, pointers, progress)
    return arrays.out


def _empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An empty array that begins at a cache line. NumPy's arrays begin 16 bytes later, so every stored vector would
    cross a line."""
    memory = np.empty(math.prod(shape) * dtype.itemsize + LINE, np.uint8)
    begin = -memory.ctypes.data % LINE
    return memory[begin : begin + memory.size - LINE].view(dtype).reshape(shape)


def compute(
    session: Session,
    layer: SessionLayer,
    resolved: Resolved,
    arrays: c.Arrays,
    progress: Callable[[int, int], Any] | None = None,
    threads: tuple[Any, Any] = (None, None),
) -> None:
    """Computes checked arrays by their addresses: in one piece, or in slabs if needed. `threads`: a tconv_on_threads of
    session.h, and its pool."""
    if session.needs_slabs(resolved):
        _run_in_slabs(resolved, arrays, [session], 0, progress)
        return
    with resolved.listening():
        call(
            "tconv_session_layer_run_beside",
            layer.handle,
            *threads,
            byref(resolved.problem),
            byref(resolved.options),
            byref(arrays),
        )
    if progress is not None:
        progress(1, 1)


def _pointers(arrays: Arrays) -> c.Arrays:
    pointers = [None if array is None else array.__array_interface__["data"][0] for array in arrays]
    data, filter_, bias, scale, slope, residual, out = pointers
    return c.Arrays(c.ARRAYS_SIZE, data, filter_, out, bias, scale, slope, residual)


def _run_in_slabs(
    resolved: Resolved,
    arrays: c.Arrays,
    sessions: list[Session],
    memory_limit: int,
    progress: Callable[[int, int], Any] | None,
) -> None:
    handles = (c_void_p * len(sessions))(*(session.session for session in sessions))
    raised: list[BaseException] = []

    def done(user: int, slab: int, count: int, total: int) -> bool:
        """Between slabs, Python handles signals: in the main thread, in which it begins."""
        if is_kept():
            return False
        if progress is None:
            return True
        try:
            answer = progress(count, total)
            return not isinstance(answer, (bool, np.bool_)) or bool(answer)
        except BaseException as error:
            raised.append(error)  # perhaps in another thread than the caller's
            return False

    done_in_c = callback(c.Done, done)
    options = c.SlabsOptions(memory_limit=memory_limit, done=cast(done_in_c, c_void_p))
    try:
        with Listening():
            call(
                "tconv_slabs_run",
                handles,
                len(sessions),
                byref(resolved.problem),
                byref(resolved.options),
                byref(options),
                byref(arrays),
            )
    except Error:
        if not raised:
            raise
    if raised:
        raise raised[0]
