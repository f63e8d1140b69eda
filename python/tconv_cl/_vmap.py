# SPDX-License-Identifier: Apache-2.0
"""torch.vmap's rule for the operator: a batch of weights is computed as groups of one transposed convolution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor


def batched(
    operator: Callable[..., Tensor],
    size: int,
    in_dims: Sequence[int | None],
    tensors: Sequence[Tensor | None],
    lists: Sequence[Any],
    groups: int,
    rest: Sequence[Any],
) -> Tensor:
    """The operator's outputs for `size` calls, along a new first axis. `in_dims` has the axes along which data, weight
    and bias differ from call to call; None: all calls have the same."""
    data, weight, bias = (
        tensor if tensor is None or at is None else tensor.movedim(at, 0) for tensor, at in zip(tensors, in_dims)
    )
    if in_dims[1] is None and in_dims[2] is None:  # only the data differ: more of them
        return operator(data.flatten(0, 1), weight, bias, *lists, groups, *rest).unflatten(0, data.shape[:2])
    data, weight, bias = (
        tensor.expand(size, *tensor.shape) if tensor is not None and at is None else tensor
        for tensor, at in zip((data, weight, bias), in_dims)
    )
    merged = data.movedim(0, 1).flatten(1, 2)  # [N, size*CI, X...]
    bias = None if bias is None else bias.flatten()
    output = operator(merged, weight.flatten(0, 1), bias, *lists, size * groups, *rest)
    return output.unflatten(1, (size, groups * weight.shape[2])).movedim(1, 0)
