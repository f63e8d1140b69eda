# SPDX-License-Identifier: Apache-2.0
"""The arrays of a call, whatever their kind: which are there, and whether they are what the plan wants."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._device import Resolved
from ._library import RequestError
from ._types import dtype_of, type_of


class Arrays(NamedTuple):
    """All of one kind: NumPy's or pyopencl's. None: not there."""

    data: Any
    filter: Any
    bias: Any = None
    scale: Any = None
    slope: Any = None
    residual: Any = None
    out: Any = None


def check(plan: Resolved, arrays: Arrays) -> np.dtype:
    """Compares shapes and types with what the plan wants; returns the output's type. C's pointers tell neither."""
    epilogue = plan.options.epilogue
    channels = (plan.channels,)
    _expect("bias", arrays.bias, channels, plan.bias_type)
    _expect("scale", arrays.scale, channels, plan.scale_type)
    _expect("slope", arrays.slope, channels, plan.scale_type)
    _expect("residual", arrays.residual, *plan.output)
    _expect("out", arrays.out, *plan.output)
    if plan.slopes != (arrays.slope is not None):
        raise RequestError(
            "the activation needs a slope for each output channel"
            if plan.slopes
            else "slope is given, but the activation is neither prelu nor snake"
        )
    if epilogue.beta != 0 and arrays.out is None:
        raise RequestError(f"beta is {epilogue.beta}, but there is no out to read")
    return dtype_of(plan.output.type)


def _expect(name: str, array: Any, shape: tuple[int, ...], number: int) -> None:
    if array is None:
        return
    if array.shape != shape:
        raise RequestError(f"{name} has shape {array.shape}: {shape} is needed")
    if type_of(name, array.dtype) != number:
        raise RequestError(f"{name} has elements of type {array.dtype}: {dtype_of(number)} is needed")
