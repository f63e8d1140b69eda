# SPDX-License-Identifier: Apache-2.0
"""What the modules for other runtimes share: options, which are checked here because the runtimes themselves would go
on without tconv-cl, and tracing."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref
from numbers import Integral
from typing import Any

from . import _library as c
from ._library import CError, RequestError, RequestTypeError, call_checked, library, raise_error, shown, text
from ._names import instead_of_value
from ._trace import callback_of, follow
from ._request import number_of


def check_options(
    search: str | None, least_macs: int | None = None, fallback: str = "warn", math: str = "exact"
) -> None:
    """Raises if the search, the fallback or the math does not exist, or if the number of multiply-adds is wrong."""
    if fallback not in ("warn", "error"):
        raise RequestError(f"fallback is {fallback!r}: it must be 'warn' or 'error'")
    if search is not None:
        number_of("search", "search", search)
    number_of("math", "math", math)
    if least_macs is not None and not (isinstance(least_macs, Integral) and 0 <= least_macs < 1 << 63):
        error = RequestError if isinstance(least_macs, Integral) else RequestTypeError
        raise error(
            f"least_macs is {shown(least_macs)}: it must be a whole number of multiply-adds, 0 or more and less than "
            "2**63"
        )


def check_device(open_device: Callable[..., Any], device: int | str | None, *, needed: bool = False) -> None:
    """Opens the device by the function of a runtime's library, as the library will; this also reads the environment.

    Raises if an environment variable has a wrong value. If there is no device, raises only if one is named or `needed`:
    otherwise the runtime computes by itself.
    """
    if device is not None and not isinstance(device, (str, Integral)):
        raise RequestTypeError(f"device is {shown(device)}: it must be an integer or a name")
    error = CError()
    status = open_device(b"" if device is None else text("device", str(device)), byref(error))
    if status != 0 and (needed or device is not None or library.tconv_status_is_request(status)):
        hint = instead_of_value("device", device)
        raise_error(status, error.opencl_code, error.message.decode(errors="replace") + hint)


class _Devices:
    """All devices of an adapter's library, for `trace`."""

    def __init__(self, adapter: ctypes.CDLL, name: str) -> None:
        self._set = getattr(adapter, f"{name}_trace")
        self._set.argtypes = (ctypes.c_uint32, c.Trace, ctypes.c_void_p, ctypes.POINTER(CError))
        name_of = getattr(adapter, f"{name}_device_name")
        name_of.argtypes, name_of.restype = (ctypes.c_void_p,), ctypes.c_char_p
        self.callback = callback_of(name_of)

    def set_trace(self, kinds: int, callback: Any, context: None) -> None:
        call_checked(self._set, kinds, callback, context)


_followed: list[_Devices] = []  # an adapter's library stays loaded


def follow_devices(adapter: ctypes.CDLL, name: str) -> None:
    """Includes the devices of an adapter's library in `trace`; `name` begins the names of its functions."""
    _followed.append(_Devices(adapter, name))
    follow(_followed[-1])
