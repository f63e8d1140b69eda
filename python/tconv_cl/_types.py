# SPDX-License-Identifier: Apache-2.0
"""Converts NumPy's element types to the library's: float32 is f32, and so on; ml_dtypes' bfloat16 is bf16."""

from __future__ import annotations

from ctypes import byref, c_int
from typing import Any

import numpy as np

from ._library import RequestError, RequestTypeError, library, shown

# tconv_type of problem.h.
_TYPES: dict[np.dtype[Any], int] = {
    np.dtype(np.float32): 1,
    np.dtype(np.float16): 2,
    np.dtype(np.float64): 4,
    np.dtype(np.int8): 5,
    np.dtype(np.int16): 6,
    np.dtype(np.int32): 7,
    np.dtype(np.int64): 8,
    np.dtype(np.uint8): 9,
    np.dtype(np.uint16): 10,
    np.dtype(np.uint32): 11,
    np.dtype(np.uint64): 12,
}
F32, F16, BF16 = 1, 2, 3

try:
    import ml_dtypes

    _TYPES[np.dtype(ml_dtypes.bfloat16)] = BF16
except ImportError:
    pass

_DTYPES = {number: dtype for dtype, number in _TYPES.items()}


def type_of(what: str, dtype: np.dtype[Any], verb: str = "has elements of type") -> int:
    """The tconv_type of an array's elements; `what` and `verb` begin the error's sentence."""
    number = _TYPES.get(dtype)
    if number is None:
        known = ", ".join(dtype.name for dtype in _TYPES)
        raise RequestTypeError(f"{what} {verb} {dtype}: it must be one of {known}, in this machine's byte order")
    return number


def dtype_of(number: int) -> np.dtype[Any]:
    """The NumPy type of a tconv_type."""
    if number not in _DTYPES:
        raise RequestError(f"arrays of {library.tconv_type_name(number).decode()} need the package ml_dtypes")
    return _DTYPES[number]


def element_type(argument: str, wanted: Any) -> int:
    """The tconv_type for an argument that names a type. "i8" is an integer of 8 bits, and of 8 bytes in NumPy: names
    are the library's before they are NumPy's."""
    number = c_int()
    if isinstance(wanted, str) and library.tconv_type_from_name(for_c(wanted), byref(number)):
        return number.value
    try:
        if wanted is None:  # NumPy takes it for float64
            raise TypeError
        dtype = np.dtype(wanted)
    except (TypeError, ValueError, SyntaxError):
        kind = RequestError if isinstance(wanted, str) else RequestTypeError
        raise kind(
            f"{argument} is {shown(wanted)}: it must be a NumPy type, or a name: {', '.join(names_of('type'))}"
        ) from None
    return type_of(argument, dtype, "is")


def for_c(name: str) -> bytes:
    """A name for C; "" if none of the library's can be equal to it."""
    return name.encode() if name.isascii() and "\0" not in name else b""


def names_of(kind: str) -> list[str]:
    """The names of an enumeration."""
    name_of = getattr(library, f"tconv_{kind}_name")
    return [name for number in range(64) if (name := name_of(number).decode()) != "?"]
