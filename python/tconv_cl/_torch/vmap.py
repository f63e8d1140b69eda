# SPDX-License-Identifier: Apache-2.0
"""torch.vmap's rule for the operator: a batch of weights is computed by one transposed convolution, as groups or as
more output channels."""

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
    channels = weight.shape[2]  # of a group
    if in_dims[0] is None and weight.numel() < data.numel():  # copies all weights, but not the data for each of them
        wide = weight.movedim(0, 1).flatten(1, 2)  # [CI, size*CO/G, K...]
        if bias is not None:
            bias = bias.unflatten(1, (groups, channels)).movedim(0, 1).flatten()
        output = operator(data[0], wide, bias, *lists, groups, *rest)
        return output.unflatten(1, (groups, size, channels)).movedim(2, 0).flatten(2, 3)
    merged = data.movedim(0, 1).flatten(1, 2)  # [N, size*CI, X...]
    bias = None if bias is None else bias.flatten()
    output = operator(merged, weight.flatten(0, 1), bias, *lists, size * groups, *rest)
    return output.unflatten(1, (size, groups * channels)).movedim(1, 0)
