# SPDX-License-Identifier: Apache-2.0
"""Converts NumPy's element types to the library's: float32 is f32, and so on; ml_dtypes' bfloat16 is bf16."""

from __future__ import annotations

from ctypes import byref, c_int
from typing import Any

import numpy as np

from ._library import RequestError, RequestTypeError, library, shown
from ._names import instead_of_value

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
BF16 = 3

try:
    import ml_dtypes

    _TYPES[np.dtype(ml_dtypes.bfloat16)] = BF16
except ImportError:
    pass

_DTYPES = {number: dtype for dtype, number in _TYPES.items()}


def type_of(what: str, dtype: np.dtype[Any]) -> int:
    """The tconv_type of an array's elements; `what` names the array in the error."""
    number = _TYPES.get(dtype)
    if number is None:
        raise RequestTypeError(
            f"{what} has elements of type {dtype}: it must be one of {_known()}, in this machine's byte order"
        )
    return number


def _known() -> str:
    return ", ".join(dtype.name for dtype in _TYPES)


def dtype_of(number: int) -> np.dtype[Any]:
    """The NumPy type of a tconv_type."""
    if number not in _DTYPES:
        raise RequestError(f"arrays of {library.tconv_type_name(number).decode()} need the package ml_dtypes")
    return _DTYPES[number]


def output_type_of(wanted: Any) -> int:
    """The tconv_type for the argument output_type: None (as the data), a name of the library, or a NumPy type."""
    if wanted is None:
        return 0
    if isinstance(wanted, str):
        return number_of("output_type", "type", wanted)
    return element_type("output_type", wanted)


def element_type(argument: str, wanted: Any) -> int:
    """The tconv_type for an argument that names a type. "i8" is an integer of 8 bits, and of 8 bytes in NumPy: names
    are the library's before they are NumPy's."""
    number = c_int()
    if isinstance(wanted, str) and library.tconv_type_from_name(_ascii(wanted), byref(number)):
        return number.value
    try:
        if wanted is None:  # NumPy takes it for float64
            raise TypeError
        dtype = np.dtype(wanted)
    except (TypeError, ValueError, SyntaxError):
        kind = RequestError if isinstance(wanted, str) else RequestTypeError
        raise kind(
            f"{argument} is {shown(wanted)}: it must be a NumPy type, or a name: {', '.join(_names('type'))}"
        ) from None
    if dtype not in _TYPES:
        raise RequestTypeError(f"{argument} is {dtype}: it must be one of {_known()}, in this machine's byte order")
    return _TYPES[dtype]


def _ascii(name: str) -> bytes:
    """A name for C; "" if none of the library's can be equal to it."""
    return name.encode() if name.isascii() and "\0" not in name else b""


def _names(kind: str) -> list[str]:
    """The names of an enumeration."""
    name_of = getattr(library, f"tconv_{kind}_name")
    return [name for number in range(64) if (name := name_of(number).decode()) != "?"]


def number_of(argument: str, kind: str, name: Any) -> int:
    """The number behind one of the library's names, in any letter case."""
    number = c_int()
    if not isinstance(name, str) or not getattr(library, f"tconv_{kind}_from_name")(_ascii(name), byref(number)):
        names = _names(kind)
        error = RequestError if isinstance(name, str) else RequestTypeError
        hint = instead_of_value(argument, name, names)
        raise error(f"{argument} is {shown(name)}: it must be {', '.join(names[:-1])} or {names[-1]}{hint}")
    return number.value
