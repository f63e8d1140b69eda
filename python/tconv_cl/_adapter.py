# SPDX-License-Identifier: Apache-2.0
"""Checks options of the modules for other runtimes: the runtimes themselves would go on without tconv-cl."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref
from numbers import Integral
from typing import Any

from ._library import CError, RequestError, library, raise_error, text
from ._types import number_of


def check_options(search: str | None, least_macs: int | None) -> None:
    """Raises if the search does not exist, or if the number of multiply-adds is wrong."""
    if search is not None:
        number_of("search", "search", search)
    if least_macs is not None and not (isinstance(least_macs, Integral) and 0 <= least_macs < 1 << 63):
        raise RequestError(
            f"least_macs is {least_macs!r}: it must be a whole number of multiply-adds, 0 or more and less than 2**63"
        )


def check_device(open_device: Callable[..., Any], device: int | str | None, *, needed: bool = False) -> None:
    """Opens the device by the function of a runtime's library, as the library will; this also reads the environment.

    Raises if an environment variable has a wrong value. If there is no device, raises only if one is named or `needed`:
    otherwise the runtime computes by itself.
    """
    error = CError()
    status = open_device(b"" if device is None else text("device", str(device)), byref(error))
    if status != 0 and (needed or device is not None or library.tconv_status_is_request(status)):
        raise_error(status, error.opencl_code, error.message.decode(errors="replace"))
