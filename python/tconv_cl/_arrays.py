# SPDX-License-Identifier: Apache-2.0
"""The arrays of a call, of either kind: finds them, and checks that they fit the plan."""

from __future__ import annotations

import sys
from collections.abc import Callable
from ctypes import c_size_t
from typing import Any, NamedTuple

import numpy as np

from ._device import Resolved
from ._library import RequestError, RequestTypeError
from ._types import BF16, dtype_of, type_of


class Arrays(NamedTuple):
    """The arrays of a call, all NumPy's or all pyopencl's. None: absent."""

    data: Any
    filter: Any
    bias: Any = None
    scale: Any = None
    slope: Any = None
    slope2: Any = None
    residual: Any = None
    out: Any = None


def _address_in_interface(array: Any) -> int:
    """Where an array of NumPy's begins."""
    return int(array.__array_interface__["data"][0])


def _address_in_header(array: Any) -> int:
    """The same in a tenth of the time: the first member of a PyArrayObject, which NumPy's headers compile into every
    extension, so that no version moves it."""
    return _word_at(id(array) + _HEADER).value


def _choose_address() -> Callable[[Any], int]:
    if sys.implementation.name != "cpython" or hasattr(sys, "getobjects"):  # those begin with more members
        return _address_in_interface
    tried = [np.zeros(3), np.zeros((4, 5), np.int8)[1:, 2:]]
    same = all(_address_in_header(one) == _address_in_interface(one) for one in tried)
    return _address_in_header if same else _address_in_interface


_HEADER = object.__basicsize__
_word_at = c_size_t.from_address
address_of = _choose_address()


def element_steps(array: Any, least: int = 1) -> tuple[int, ...] | None:
    """The elements between neighbours along each axis of an array; () if it is dense. None if the library does not
    take them: bytes that are not whole elements, or steps below `least`."""
    if array.flags.c_contiguous:
        return ()
    size, steps = array.dtype.itemsize, []
    for extent, stride in zip(array.shape, array.strides):
        if extent > 1 and (stride < least * size or stride % size != 0):
            return None
        steps.append(stride // size if extent > 1 else 1)
    return tuple(steps)


def check_places(out: np.ndarray) -> None:
    """Refuses an `out` whose elements share places, where the library does not see its strides."""
    if out.size == 0 or element_steps(out) is not None:
        return
    reach = out.itemsize
    for stride, extent, axis in sorted((abs(out.strides[a]), out.shape[a], a) for a in range(out.ndim)):
        if extent > 1 and stride < reach:
            raise RequestError(
                f"out has a stride of {out.strides[axis]} bytes at axis {axis}: its elements share places"
            )
        reach += stride * (extent - 1)


def of_type(value: Any, array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The array that was made of `value`, if that is a list with its numbers in a type that has them: a list says
    nothing about its type. Else the array as it is."""
    if not isinstance(value, (list, tuple)) or array.dtype == dtype or array.dtype.kind not in "iuf":
        return array
    if dtype.kind == "f":
        return array.astype(dtype)
    if dtype.kind in "iu" and array.dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if array.size == 0 or (array.min() >= limits.min and array.max() <= limits.max):
            return array.astype(dtype)
    return array


def _from_dlpack(value: Any) -> np.ndarray:
    """np.from_dlpack, also for PyTorch's bf16, which NumPy does not know. PyTorch does not tell NumPy that a tensor's
    numbers are the negative of what lies in memory."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if value.is_neg():
            raise BufferError("its numbers are stored with the opposite sign, use tensor.resolve_neg()")
        if value.dtype == torch.bfloat16 and not value.requires_grad:
            return np.from_dlpack(value.view(torch.int16)).view(dtype_of(BF16))
    return np.from_dlpack(value)


def numpy_array(name: str, value: Any) -> np.ndarray:
    """The NumPy array of an object: over the object's memory if it tells its address; of a list a copy."""
    if type(value) is np.ndarray:
        return value
    kind = type(value).__name__
    if isinstance(value, np.ma.MaskedArray):
        raise RequestTypeError(f"{name} is a masked array: say what stands for masked elements with its filled()")
    try:
        if isinstance(value, (np.ndarray, list, tuple)) or hasattr(value, "__array_interface__"):
            return np.asarray(value)
        if hasattr(value, "__dlpack__"):
            return _from_dlpack(value)
        if hasattr(value, "__array__") and not isinstance(value, type) and name != "out":  # that may give a copy
            return np.asarray(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise RequestTypeError(f"{name}, a {kind}, gives no array that NumPy can read: {error}") from error
    lists = "" if name == "out" else "a list, "
    raise RequestTypeError(
        f"{name} is a {kind}: it must be an array: NumPy's, pyopencl's (then all are), {lists}or an object with "
        "__array_interface__ or __dlpack__"
    )


def check(plan: Resolved, arrays: Arrays) -> np.dtype[Any]:
    """Checks shapes and types against the plan, because C's pointers have neither. Returns the output's type."""
    check_channels(plan, arrays)
    return check_output(plan, arrays.residual, arrays.out, plan.output.shape)


def check_output(plan: Resolved, residual: Any, out: Any, shape: tuple[int, ...]) -> np.dtype[Any]:
    """The part of `check` that is about the output, which has this shape. Returns its type."""
    epilogue = plan.options.epilogue
    _expect("residual", residual, shape, plan.output.type)
    _expect("out", out, shape, plan.output.type)
    if epilogue.beta != 0 and out is None:
        raise RequestError(f"beta is {epilogue.beta}, but there is no out to read")
    return dtype_of(plan.output.type)


def check_channels(plan: Resolved, arrays: Arrays) -> None:
    """The part of `check` that does not depend on the data's extents."""
    channels = (plan.channels,)
    _expect("bias", arrays.bias, channels, plan.bias_type)
    _expect("scale", arrays.scale, channels, plan.scale_type)
    for count, name, slope in ((1, "slope", arrays.slope), (2, "slope2", arrays.slope2)):
        _expect(name, slope, channels, plan.scale_type)
        if (plan.slopes >= count) == (slope is not None):
            continue
        raise RequestError(
            f"{name} is given, but the activation takes {'none' if plan.slopes == 0 else 'one slope'}"
            if plan.slopes < count
            else "the activation needs a slope for each output channel"
            if count == 1
            else "the activation needs a second slope for each output channel: slope2"
        )


def _expect(name: str, array: Any, shape: tuple[int, ...], number: int) -> None:
    if array is None:
        return
    if array.shape != shape:
        raise RequestError(f"{name} has shape {array.shape}: it must be {shape}")
    if type_of(name, array.dtype) != number:
        raise RequestError(f"{name} has elements of type {array.dtype}: it must have {dtype_of(number)}")
