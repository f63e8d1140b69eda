# SPDX-License-Identifier: Apache-2.0
"""The gradient of an ordinary convolution with respect to its data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _opencl
from ._arrays import Arrays, numpy_array
from ._convolution import Array, Axes, run
from ._library import RequestError
from ._names import FORWARD, suggesting
from ._request import DEFAULTS, NXC, XIO, Attributes, attributes_among, integer, shape_of

SAME = ("same_upper", "same_lower")


@suggesting(table=FORWARD)
def conv_input_gradient(
    input_shape: Sequence[int],
    filter: Array,
    grad_output: Array,
    *,
    strides: Axes = 1,
    dilations: Axes = 1,
    pads_begin: Axes = 0,
    pads_end: Axes = 0,
    auto_pad: str = "explicit",
    groups: int | None = None,
    data_format: str = "NCX",
    filter_format: str = "OIX",
    algorithm: str = "auto",
    device: int | str | Sequence[int | str] | None = None,
    residual: Array | None = None,
    out: Array | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    output_type: Any = None,
    math: str = "exact",
    search: str | None = None,
    workspace_limit: int = 0,
    memory_limit: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Array:
    """The gradient of an ordinary convolution with respect to its data: ConvolutionBackpropData by its own name.

    As PyTorch's torch.nn.grad.conv2d_input(input_shape, filter, grad_output, strides, pads, dilations, groups), but for
    1 to 6 spatial axes, with pads that may differ at begin and end, and with channels first or last. Others call it
    convolution backward-data, or conv2d_backprop_input. It is deterministic: each element is added up by one work-item
    in a fixed order, without atomics, for any strides, dilations and groups.

        ===========  ===================  ================  =============================
        format       input_shape, output  filter            grad_output
        ===========  ===================  ================  =============================
        NCX and OIX  [N, G*CI, X...]      [G*CO, CI, K...]  [N, G*CO, Y...]
        NXC and XIO  [N, X..., G*CI]      [K..., CI, G*CO]  [N, Y..., G*CO]
        ===========  ===================  ================  =============================

    with `Y = floor((X + pad_begin + pad_end - dilation*(K-1) - 1) / stride) + 1`. Several extents of the data give the
    same Y: input_shape says which it was. Data that no output took have the gradient 0.

        output[n, ci, y*stride + k*dilation - pad_begin] += grad_output[n, co, y] * filter[co, ci, k]

    Args:
        input_shape: the shape of the convolution's data, in the order of data_format.
        filter: the convolution's own, an array as for conv_transpose.
        grad_output: the gradient with respect to the convolution's output, an array of the same kind. Element types:
            those of conv_transpose.
        strides, dilations, pads_begin, pads_end, groups: the convolution's own.
        auto_pad: of the convolution: "explicit", "valid", or "same_upper" and "same_lower", as in ONNX and TensorFlow:
            pads with which `Y = ceil(X / stride)`.
        residual: like the output: another gradient of the same data, which is added.
        out, alpha, beta: out becomes `alpha * gradient + beta * out`; beta=1 accumulates.
        The others: as for conv_transpose.

    Returns and raises: as conv_transpose. RequestError if grad_output is not what a convolution of input_shape gives.

    Examples:
        Data of 6 and of 7 give 3 outputs with stride 2 and two taps:

        >>> w, dy = np.array([[[1.0, 10.0]]], np.float32), np.array([[[1.0, 2.0, 3.0]]], np.float32)
        >>> conv_input_gradient((1, 1, 6), w, dy, strides=2)
        array([[[ 1., 10.,  2., 20.,  3., 30.]]], dtype=float32)
        >>> conv_input_gradient((1, 1, 7), w, dy, strides=2)
        array([[[ 1., 10.,  2., 20.,  3., 30.,  0.]]], dtype=float32)
    """
    given = {**DEFAULTS, **locals()}
    shape = tuple(integer("input_shape", extent, 0) for extent in shape_of("input_shape", input_shape))
    attributes = attributes_among(given)
    shapes = [
        tuple(array.shape if _opencl.is_array(array) else numpy_array(name, array).shape)
        for name, array in (("filter", filter), ("grad_output", grad_output))
    ]
    begin, spatial = _resolved(attributes, auto_pad, shape, *shapes)
    # With the rules `openvino` and explicit pads, an output shape moves nothing: only the first pad places the data.
    given |= {"auto_pad": "explicit", "rules": "openvino", "output_shape": spatial, "groups": groups or 1}
    given |= {"pads_begin": begin, "pads_end": 0}
    arrays = Arrays(grad_output, filter, residual=residual, out=out)
    output: Array = run(arrays, attributes_among(given), device, memory_limit, None, progress)
    return output


def _resolved(
    attributes: Attributes, auto_pad: str, shape: tuple[int, ...], filter: tuple[int, ...], grad: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The pads in front of the data, and its spatial extents. Raises an error for shapes that do not fit."""
    if not len(shape) == len(filter) == len(grad) or len(shape) < 3:
        raise RequestError(
            f"input_shape has rank {len(shape)}, filter {len(filter)} and grad_output {len(grad)}: all must have the "
            "same, 3 or more (batch, channels and spatial axes)"
        )
    last, xio, axes = attributes.data_format == NXC, attributes.filter_format == XIO, len(shape) - 2
    extents = shape[1:-1] if last else shape[2:]
    channels = shape[-1 if last else 1]
    kernel, (outer, inner) = (filter[:-2], (filter[-1], filter[-2])) if xio else (filter[2:], filter[:2])
    groups = attributes.groups or 1
    if channels != inner * groups:
        raise RequestError(
            f"input_shape has {channels} channels (axis {axes + 1 if last else 1}), but the filter has {inner} input "
            f"channels (axis {axes if xio else 1}){f' for each of {groups} groups' if groups > 1 else ''}"
        )
    strides, dilations, begin, end = (
        _each(name, getattr(attributes, name), axes) for name in ("strides", "dilations", "pads_begin", "pads_end")
    )
    mode, wanted = auto_pad.lower(), []
    for a, (x, k, s, d) in enumerate(zip(extents, kernel, strides, dilations)):
        for name, value, least in (
            ("strides", s, 1), ("dilations", d, 1), ("pads_begin", begin[a], 0), ("pads_end", end[a], 0)
        ):  # fmt: skip
            if value < least:
                raise RequestError(f"{name} is {value} at spatial axis {a}: it must be at least {least}")
        span = d * (k - 1) + 1
        if mode in SAME:
            total = max((-(-x // s) - 1) * s + span - x, 0)
            begin[a] = total // 2 if mode == SAME[0] else total - total // 2
            end[a] = total - begin[a]
        elif mode == "valid":
            begin[a] = end[a] = 0
        wanted.append((x + begin[a] + end[a] - span) // s + 1)
    expected = (shape[0], *wanted, outer) if last else (shape[0], outer, *wanted)
    if grad != expected:
        axis = next(a for a, (one, other) in enumerate(zip(grad, expected)) if one != other)
        raise RequestError(
            f"grad_output has shape {list(grad)}, but a convolution of input_shape {list(shape)} gives "
            f"{list(expected)}: they differ at axis {axis}"
        )
    return tuple(begin), extents


def _each(name: str, value: Any, axes: int) -> list[int]:
    """One number for each spatial axis."""
    numbers = [value] * axes if isinstance(value, int) else list(value)
    if len(numbers) != axes:
        raise RequestError(f"{name} has {len(numbers)} values: it must have one for each of the {axes} spatial axes")
    return numbers
