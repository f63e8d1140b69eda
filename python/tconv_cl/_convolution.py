# SPDX-License-Identifier: Apache-2.0
"""The public functions on arrays and shapes, and ConvTranspose for filters that are used often."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Union

import numpy as np

from . import _host, _opencl
from ._arrays import Arrays, address_of, check_channels, element_steps, numpy_array
from ._device import Layers, Request, Resolved, check_device, number_of, opened
from ._library import RequestError, RequestTypeError, shown
from ._request import NXC, UPSAMPLE_CONV, XIO, Attributes, Tensor, Window, integer
from ._names import FORWARD, suggesting
from ._request import DEFAULTS, attributes_among, attributes_of, called, extents, flag, forward, is_list, resolve
from ._request import shape_of, shuffle_of
from ._request import window_input as _window_input
from ._request import window_of
from ._types import BF16, F16, F32, element_type, type_of

if TYPE_CHECKING:
    import pyopencl.array
    from typing_extensions import Unpack  # typing has it since 3.11

Axes = Union[int, Sequence[int]]
"""One number for each spatial axis, in axis order, or one that stands for all."""

Array = TypeVar("Array", np.ndarray, "pyopencl.array.Array")


class Options(TypedDict, total=False):
    """The attributes of ConvTranspose, as conv_transpose documents them."""

    strides: Axes
    dilations: Axes
    pads_begin: Axes
    pads_end: Axes
    auto_pad: str
    output_padding: Axes
    output_shape: Axes | None
    groups: int | None
    data_format: str
    filter_format: str
    rules: str
    algorithm: str
    math: str
    search: str | None
    workspace_limit: int
    output_type: Any
    alpha: float
    beta: float
    activation: str | tuple[Any, ...]
    requantize: bool
    data_zero_point: int
    filter_zero_point: int
    output_zero_point: int


@suggesting()
def conv_transpose(
    data: Array,
    filter: Array,
    bias: Array | None = None,
    *,
    strides: Axes = 1,
    dilations: Axes = 1,
    pads_begin: Axes = 0,
    pads_end: Axes = 0,
    auto_pad: str = "explicit",
    output_padding: Axes = 0,
    output_shape: Axes | None = None,
    groups: int | None = None,
    data_format: str = "NCX",
    filter_format: str = "OIX",
    rules: str = "spec",
    algorithm: str = "auto",
    device: int | str | Sequence[int | str] | None = None,
    scale: Array | None = None,
    slope: Array | None = None,
    slope2: Array | None = None,
    residual: Array | None = None,
    out: Array | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    activation: str | tuple[Any, ...] = "none",
    output_type: Any = None,
    requantize: bool = False,
    data_zero_point: int = 0,
    filter_zero_point: int = 0,
    output_zero_point: int = 0,
    math: str = "exact",
    search: str | None = None,
    workspace_limit: int = 0,
    memory_limit: int | None = None,
    output_rows: tuple[int, int] | None = None,
    data_rows: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Array:
    """Transposed convolution (ConvolutionBackpropData-1, GroupConvolutionBackpropData-1, and the oneAPI form).

    With X input, K kernel, s stride, d dilation and Y output extent per spatial axis, N batch, G groups,
    CI and CO channels of a group:

        ====================================  ===============  ==================  ===============
        which operator                        data             filter              output
        ====================================  ===============  ==================  ===============
        filter of the data's rank             [N, CI, X...]    [CI, CO, K...]      [N, CO, Y...]
        filter of one rank more               [N, G*CI, X...]  [G, CI, CO, K...]   [N, G*CO, Y...]
        with groups, or a format that is not  NCX, NXC         OIX [CI, CO/G, K]   as data
        the default: the oneAPI form                           XIO [K, CO/G, CI]
        ====================================  ===============  ==================  ===============

        output[n, g*CO+co, y] += data[n, g*CI+ci, x] * filter[g, ci, co, k]   for all y = x*s + k*d - pad_begin

    and then ``activation(alpha * sum * scale[c] + bias[c] + beta * out + residual)``, rounded once.
    Without output_shape, `Y = s*(X-1) + d*(K-1) + 1 - pad_begin - pad_end + output_padding`.

    Sources: OpenVINO's pages of the two operators and the oneAPI form of the first; docs/semantics.md has the formulas.

    Args:
        data: NumPy array, list, or object with `__array_interface__` or `__dlpack__` in the processor's memory, such
            as PyTorch's tensors; or pyopencl array with a queue. Views, such as slices and transposed arrays, are used
            where they lie; NumPy's with negative strides are copied. Element types: float16/32/64, integers,
            ml_dtypes.bfloat16.
        filter: the weights, an array of the same kind; beside data of float32 also float16 or bfloat16, each weight
            counting as the float32 that it equals.
        bias: [G*CO], of the output's type; float32 with requantize.
        strides, dilations, pads_begin, pads_end, output_padding: one number, or one for each spatial axis.
        auto_pad: "explicit" (or "notset"), "valid", "same_upper" or "same_lower".
        output_shape: spatial extents of the output; how pads follow from them is up to `rules`.
        groups: the oneAPI form's; None: decided by the filter's rank.
        data_format: "NCX" or "NXC". Here the defaults of both formats do not depend on groups; the tool's and the C
            library's are "NXC" and "XIO" in the oneAPI form.
        filter_format: "OIX" or "XIO".
        rules: "spec" (the published formulas), "openvino" or "onnx" (what these systems compute).
        algorithm: the name of an algorithm; one that does not take the problem is an error.
        device: NumPy only: a number as `devices` lists them, "gpu", "cpu", "accelerator" or a part of a name, or
            several of these, which then compute slabs side by side. None: the one that the environment variable
            TCONV_CL_DEVICE names, else the first GPU, else the first accelerator, else the first device.
        scale, slope, slope2: [G*CO], float32; float64 for float64 data. slope is for the activations prelu, snake
            and snakebeta, slope2 for snakebeta.
        residual: like the output; may be a view, also one that repeats elements (`numpy.broadcast_to`).
        out: receives the output: an array or a view, such as a slice of the channels of a larger array, of the output's
            shape and type, sharing no element with another array. Read before if beta is not 0. After an exception
            each of its elements has its old value or the result.
        alpha, beta: factors of the sum and of the old contents of out.
        activation: "relu", "relu6", "prelu", "sigmoid", "tanh", "gelu", "gelu_tanh", "silu", "snake", "snakebeta",
            "hardswish", "mish", or a tuple with numbers: ("leaky_relu", a), ("elu", a), ("clamp", a, b).
        output_type: a NumPy type, or the library's name for one ("f32", "i32"); None: the data's type.
        requantize: 8-bit data and output: the formula in float32 from the exact sum, rounded and saturated.
        data_zero_point, filter_zero_point, output_zero_point: the elements that mean 0 in 8-bit arrays.
        math: "exact", or "fast": also algorithms with fewer multiplications and a larger error.
        search: how the algorithm is chosen: "model": by the cost model; "records": by a stored tuning result, else an
            imported one, else by prepared programs, else by the model; "measure": by a stored or imported result, else
            by timing, which stores it; "renew": by timing. If a result cannot be stored, its "plan" event of `trace`
            has a message that says why. None: what the environment variable TCONV_CL_SEARCH says, else "records".
        workspace_limit: bytes; kernels that need more are not used. 0: no limit.
        memory_limit: NumPy only: bytes of device memory for tensors; larger ones are computed in slabs. None: 512 MiB.
            None: slabs are used only for tensors that are large or exceed the device, or with several devices.
        output_rows: (begin, end): only these rows of the output's outermost spatial axis; `out` and `residual` hold
            these, and `data` holds the input rows that `window_input` tells.
        data_rows: with output_rows: how many rows the outermost spatial axis of all data has.
        progress: NumPy only: called with how many slabs are done and how many there are, after each; with (1, 1) where
            all is computed at once. By one thread at a time, not always the caller's. What it raises ends the call,
            and so does False, with tconv_cl.Error. Ctrl-C ends a call after the current slab, also without it.

    Returns:
        `out`, or a NumPy array; or a pyopencl array where data is one. That is on the queue of `data` and may still be
        being computed, as with pyopencl's own functions: it carries the event; nothing was copied to the host.

    Raises:
        RequestError: a ValueError: the request cannot be carried out; the sentence says why. Where an argument is of a
            wrong type, RequestTypeError, which is a TypeError as well.
        Error: no device, no memory, or an OpenCL call failed.

    Examples:
        >>> conv_transpose(np.ones((1, 1, 2), np.float32), np.ones((1, 1, 3), np.float32), strides=2)
        array([[[1., 1., 2., 1., 1.]]], dtype=float32)
    """
    attributes = attributes_among(locals())
    arrays = Arrays(data, filter, bias, scale, slope, slope2, residual, out)
    output: Array = run(arrays, attributes, device, memory_limit, window_of(output_rows, data_rows), progress)
    return output


@suggesting(
    table=FORWARD,
    factors="leave it out: the stride is 1, and there are no factors, which upsample_conv and conv_pixel_shuffle have",
)
def conv(
    data: Array,
    filter: Array,
    bias: Array | None = None,
    *,
    dilations: Axes = 1,
    pads_begin: Axes = 0,
    pads_end: Axes = 0,
    auto_pad: str = "explicit",
    groups: int | None = None,
    data_format: str = "NCX",
    filter_format: str = "OIX",
    algorithm: str = "auto",
    device: int | str | Sequence[int | str] | None = None,
    scale: Array | None = None,
    slope: Array | None = None,
    slope2: Array | None = None,
    residual: Array | None = None,
    out: Array | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    activation: str | tuple[Any, ...] = "none",
    output_type: Any = None,
    requantize: bool = False,
    data_zero_point: int = 0,
    filter_zero_point: int = 0,
    output_zero_point: int = 0,
    math: str = "exact",
    search: str | None = None,
    workspace_limit: int = 0,
    memory_limit: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Array:
    """An ordinary convolution of stride 1, as PyTorch's conv2d(data, filter, bias, padding=pads).

    It is upsample_conv with scale=1: the layer is computed as a transposed convolution with the filter reversed. Every
    element type, 1 to 6 spatial axes. Here `scale` is the epilogue's, a number for each output channel.

        ===========  ===============  =========================  ===============
        format       data             filter                     output
        ===========  ===============  =========================  ===============
        NCX and OIX  [N, G*CI, X...]  [G*CO, CI, K...]           [N, G*CO, Y...]
        NXC and XIO  [N, X..., G*CI]  [K..., CI, G*CO]           [N, Y..., G*CO]
        ===========  ===============  =========================  ===============

    with `Y = X + pad_begin + pad_end - dilation*(K-1)`. The kernel is not flipped. No other strides than 1 are taken;
    conv_input_gradient, the gradient with respect to the data, takes any.

    Args:
        data, filter: arrays, as for conv_transpose; the filter is the convolution's.
        bias, scale, slope, slope2: [G*CO].
        dilations, pads_begin, pads_end: of the convolution; pads are zeros (zero points) around the data.
        auto_pad: "explicit", "valid", or "same_upper" and "same_lower", which keep the extents of the data.
        groups: None: 1.
        The others: as for conv_transpose.

    Returns and raises: as conv_transpose. `output_shape` and `explain` take upsample=1 for it.

    Examples:
        >>> x, w = np.array([[[1, 2, 3, 4]]], np.int8), np.array([[[1, 10, 100]]], np.int8)
        >>> conv(x, w, pads_begin=1, pads_end=1, output_type="i32")
        array([[[210, 321, 432,  43]]], dtype=int32)
    """
    given = {**DEFAULTS, **locals(), "strides": 1, "operation": UPSAMPLE_CONV}
    arrays = Arrays(data, filter, bias, scale, slope, slope2, residual, out)
    output: Array = run(arrays, attributes_among(given), device, memory_limit, None, progress)
    return output


@suggesting(table=FORWARD, factors="scale")
def upsample_conv(
    data: Array,
    filter: Array,
    bias: Array | None = None,
    *,
    scale: Axes = 2,
    dilations: Axes = 1,
    pads_begin: Axes = 0,
    pads_end: Axes = 0,
    auto_pad: str = "explicit",
    groups: int | None = None,
    data_format: str = "NCX",
    filter_format: str = "OIX",
    algorithm: str = "auto",
    device: int | str | Sequence[int | str] | None = None,
    slope: Array | None = None,
    slope2: Array | None = None,
    residual: Array | None = None,
    out: Array | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    activation: str | tuple[Any, ...] = "none",
    output_type: Any = None,
    requantize: bool = False,
    data_zero_point: int = 0,
    filter_zero_point: int = 0,
    output_zero_point: int = 0,
    math: str = "exact",
    search: str | None = None,
    workspace_limit: int = 0,
    memory_limit: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Array:
    """Nearest upsampling by integer factors, then a convolution of stride 1, as one layer.

    As PyTorch's conv2d(interpolate(data, scale_factor=scale, mode="nearest"), filter, bias, padding=pads), but the
    enlarged data never exist: the layer is computed as a transposed convolution whose weights are sums of the filter's.
    With factor 2 and 3 x 3 taps it takes 4 multiply-adds for an output instead of 9.

        ===========  ===============  =========================  ===============
        format       data             filter                     output
        ===========  ===============  =========================  ===============
        NCX and OIX  [N, G*CI, X...]  [G*CO, CI, K...]           [N, G*CO, Y...]
        NXC and XIO  [N, X..., G*CI]  [K..., CI, G*CO]           [N, Y..., G*CO]
        ===========  ===============  =========================  ===============

    with `Y = scale*X + pad_begin + pad_end - dilation*(K-1)`. Floating-point types only, because sums of integer
    weights may not fit their type. The sums are rounded once to the data's type: with data of float16 and bfloat16
    the rms error is about 1.4 times that of the two steps. With scale=1 there are no sums: it is an ordinary
    convolution of stride 1, `conv`, for every element type.

    Args:
        data, filter, bias: arrays, as for conv_transpose; the filter is the convolution's. bias: [G*CO].
        scale: the factors: one number, or one for each spatial axis. 1 along all axes: an ordinary convolution.
        dilations, pads_begin, pads_end: of the convolution; pads are zeros around the enlarged data. Negative pads,
            down to 1 minus the factor, cut elements off the enlarged data.
        auto_pad: "explicit", "valid", or "same_upper" and "same_lower", with which the convolution keeps the extents
            of the enlarged data.
        groups: of the convolution; None: 1.
        The others: as for conv_transpose.

    Returns and raises: as conv_transpose.

    Examples:
        >>> x, w = np.array([[[1.0, 2.0]]], np.float32), np.array([[[1.0, 10.0, 100.0]]], np.float32)
        >>> upsample_conv(x, w, scale=2, pads_begin=1, pads_end=1)
        array([[[110., 211., 221.,  22.]]], dtype=float32)
    """
    given = {**DEFAULTS, **locals(), "strides": scale, "operation": UPSAMPLE_CONV}
    arrays = Arrays(data, filter, bias, None, slope, slope2, residual, out)
    output: Array = run(arrays, attributes_among(given), device, memory_limit, None, progress)
    return output


@suggesting(table=FORWARD, factors="upscale_factor")
def conv_pixel_shuffle(
    data: Array,
    filter: Array,
    bias: Array | None = None,
    *,
    upscale_factor: Axes = 2,
    order: str = "CRD",
    dilations: Axes = 1,
    pads_begin: Axes = 0,
    pads_end: Axes = 0,
    auto_pad: str = "explicit",
    groups: int | None = None,
    data_format: str = "NCX",
    filter_format: str = "OIX",
    algorithm: str = "auto",
    device: int | str | Sequence[int | str] | None = None,
    scale: Array | None = None,
    slope: Array | None = None,
    slope2: Array | None = None,
    residual: Array | None = None,
    out: Array | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    activation: str | tuple[Any, ...] = "none",
    output_type: Any = None,
    requantize: bool = False,
    data_zero_point: int = 0,
    filter_zero_point: int = 0,
    output_zero_point: int = 0,
    math: str = "exact",
    search: str | None = None,
    workspace_limit: int = 0,
    memory_limit: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Array:
    """A convolution of stride 1, then pixel shuffle, as one layer: a sub-pixel convolution.

    As PyTorch's pixel_shuffle(conv2d(data, filter, bias, padding=pads), upscale_factor), but for 1 to 6 spatial axes,
    and with a factor for each axis. The layer is computed as a transposed convolution whose weights are the filter's in
    another order. So nothing more is rounded, every element type is taken, and no tensor is between the two.

        ===========  ===============  =========================  ===============
        format       data             filter                     output
        ===========  ===============  =========================  ===============
        NCX and OIX  [N, G*CI, X...]  [G*CO*R, CI, K...]         [N, G*CO, Y...]
        NXC and XIO  [N, X..., G*CI]  [K..., CI, G*CO*R]         [N, Y..., G*CO]
        ===========  ===============  =========================  ===============

    with R the product of the factors of all axes, and `Y = factor * (X + pad_begin + pad_end - (K-1))`.

    Args:
        data, filter: arrays, as for conv_transpose; the filter is the convolution's.
        bias, scale, slope, slope2: [G*CO*R]: a number for each channel of the convolution, before the shuffle.
        upscale_factor: one number, or one for each spatial axis. With 1 it is an ordinary convolution.
        order: of the convolution's channels: "CRD", PyTorch's, `co*R + phase`; or "DCR", the default of ONNX's
            DepthToSpace, `phase*CO + co`, without groups.
        dilations: of the convolution; 1 along axes whose factor is not 1.
        pads_begin, pads_end: of the convolution.
        auto_pad: "explicit", "valid", or "same_upper" and "same_lower", with which the convolution keeps the extents
            of the data.
        groups: of the convolution; None: 1.
        residual: like the output.
        The others: as for conv_transpose.

    Returns and raises: as conv_transpose.

    Examples:
        >>> x = np.array([[[1.0, 2.0]]], np.float32)
        >>> w = np.array([[[1.0]], [[10.0]]], np.float32)
        >>> conv_pixel_shuffle(x, w, np.array([0.5, 0.25], np.float32))
        array([[[ 1.5 , 10.25,  2.5 , 20.25]]], dtype=float32)
    """
    given = {**DEFAULTS, **locals(), "strides": upscale_factor, "operation": shuffle_of("order", order)}
    arrays = Arrays(data, filter, bias, scale, slope, slope2, residual, out)
    output: Array = run(arrays, attributes_among(given), device, memory_limit, None, progress)
    return output


class ConvTranspose:
    """A layer: its filter is packed once for each device and algorithm, and used for data of any extents.

    Args: those of conv_transpose, except data, residual, out, output_rows, data_rows and progress. Errors that data of
    any extents would have are raised here.

    A filter in host memory is not copied: every call hashes it, and packs it again if it has changed. Arrays with
    negative strides are copied here, and so are lists: a list of weights is float32, or of NumPy's integers if
    all its numbers are integers. A pyopencl filter must not change. Layers can be copied and pickled; each packs its
    filter itself. Any number of threads may call one layer at once.

    Examples:
        >>> layer = ConvTranspose(np.ones((1, 1, 3), np.float32), strides=2, activation="relu")
        >>> layer(np.ones((1, 1, 2), np.float32))
        array([[[1., 1., 2., 1., 1.]]], dtype=float32)
    """

    @suggesting(DEFAULTS, name="ConvTranspose")
    def __init__(
        self,
        filter: Array,
        bias: Array | None = None,
        *,
        scale: Array | None = None,
        slope: Array | None = None,
        slope2: Array | None = None,
        device: int | str | Sequence[int | str] | None = None,
        memory_limit: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        arrays = Arrays(None, filter, bias, scale, slope, slope2)
        if not _opencl.is_array(filter):
            arrays = _host.weights_of(arrays)
            if not _host.usable("filter", arrays.filter):
                arrays = arrays._replace(filter=np.ascontiguousarray(arrays.filter))
        self._arrays = arrays
        self._attributes = attributes_of(**options)
        self._options = options
        self._device = device
        self._memory_limit = None if memory_limit is None else integer("memory_limit", memory_limit, 0)
        if device is not None:
            for number in devices_of(device):
                check_device(number)
        self._check()
        self._layers = Layers()

    @suggesting(maker="ConvTranspose")
    def __call__(
        self,
        data: Array,
        *,
        bias: Array | None = None,
        residual: Array | None = None,
        out: Array | None = None,
        output_rows: tuple[int, int] | None = None,
        data_rows: int | None = None,
        progress: Callable[[int, int], Any] | None = None,
    ) -> Array:
        """Computes conv_transpose(data, filter, ...), with the same shapes and errors. `bias` replaces the layer's."""
        arrays = self._arrays._replace(data=data, residual=residual, out=out)
        if bias is not None:
            arrays = arrays._replace(bias=bias)
        window = window_of(output_rows, data_rows)
        output: Array = run(arrays, self._attributes, self._device, self._memory_limit, window, progress, self._layers)
        return output

    def __repr__(self) -> str:
        arrays = [
            f"{name}={array.dtype}{list(array.shape)}"
            for name, array in self._arrays._asdict().items()
            if array is not None
        ]
        options = [f"{name}={value!r}" for name, value in self._options.items()]
        for name in ("device", "memory_limit"):
            value = getattr(self, f"_{name}")
            if value is not None:
                options.append(f"{name}={value!r}")
        return f"ConvTranspose({', '.join(arrays + options)})"

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = {name: array for name, array in self._arrays._asdict().items() if array is not None}
        return _made_again, (arrays, {"device": self._device, "memory_limit": self._memory_limit, **self._options})

    def _check(self) -> None:
        """Raises errors that data of any extents would have, for both ranks if the filter's rank leaves them open."""
        filter, attributes = self._arrays.filter, self._attributes
        weights = Tensor(filter.shape, type_of("filter", filter.dtype), element_steps(filter) or ())
        types = (weights.type, F32) if weights.type in (F16, BF16) else (weights.type,)
        refusal: RequestError | None = None
        for shape, number in itertools.product(_possible_data(attributes, filter.shape), types):
            tensors = (Tensor(shape, number), weights)
            request = Request(
                attributes, *tensors, self._arrays.bias is not None, self._arrays.scale is not None, False
            )
            try:
                check_channels(Resolved(request), self._arrays)
                return
            except RequestError as error:
                refusal = refusal or error
        if refusal is not None:
            raise refusal


def _made_again(arrays: dict[str, Any], options: dict[str, Any]) -> ConvTranspose:
    return ConvTranspose(**arrays, **options)


def _possible_data(attributes: Attributes, filter: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Shapes of data that may fit a filter: of all possible ranks, small and large."""
    if attributes.is_oneapi:
        kinds = [(filter[-1] if attributes.filter_format == XIO else filter[0], len(filter))] if filter else []
    else:
        kinds = [(filter[0], len(filter))] if filter else []
        if len(filter) > 3:
            kinds.append((filter[0] * filter[1], len(filter) - 1))
    shapes = []
    for channels, rank in kinds:
        axes = max(rank - 2, 0)
        outputs, strides, begin, end = (
            (value,) * axes if isinstance(value, int) else value
            for value in (attributes.output_shape, attributes.strides, attributes.pads_begin, attributes.pads_end)
        )
        spatial = [(extent,) * axes for extent in (16, 1)]
        if len(strides) == axes and all(stride > 0 for stride in strides):
            # Extents from which all pads can be cut off, and extents that give the requested output.
            spatial += [tuple(abs(b) + abs(e) + 16 for b, e in zip(begin, end))]
            spatial += [tuple(max(1, -(-y // s)) for y, s in zip(outputs, strides))]
        for extents_ in spatial:
            if len(extents_) == axes:
                shapes.append((1, *extents_, channels) if attributes.data_format == NXC else (1, channels, *extents_))
    return shapes


@suggesting()
def output_shape(
    data: Sequence[int],
    filter: Sequence[int],
    bias: Sequence[int] | None = None,
    *,
    strides: Axes = 1,
    dilations: Axes = 1,
    pads_begin: Axes = 0,
    pads_end: Axes = 0,
    auto_pad: str = "explicit",
    output_padding: Axes = 0,
    output_shape: Axes | None = None,
    groups: int | None = None,
    data_format: str = "NCX",
    filter_format: str = "OIX",
    rules: str = "spec",
    upsample: Axes | None = None,
    pixel_shuffle: Axes | None = None,
    shuffle_order: str = "CRD",
    algorithm: str = "auto",
    device: int | str | Sequence[int | str] | None = None,
) -> tuple[int, ...]:
    """The shape that conv_transpose would return for arrays of these shapes; needs no device.

    With upsample=factors the shape that upsample_conv returns (1: conv), with pixel_shuffle=factors that of
    conv_pixel_shuffle. bias, algorithm and device change nothing: they are taken so that the arguments of a call fit.

    Examples:
        >>> output_shape((1, 20, 224, 224), (20, 10, 3, 3), strides=2, pads_begin=1, pads_end=1)
        (1, 10, 447, 447)
        >>> output_shape((1, 20, 224, 224), (40, 20, 3, 3), pixel_shuffle=2, pads_begin=1, pads_end=1)
        (1, 10, 448, 448)

    Raises:
        RequestError: a ValueError: the request cannot be carried out; the sentence says why.
    """
    attributes = attributes_among(forward({**DEFAULTS, **locals()}))
    return extents(resolve(_problem(attributes, data, filter)).output_shape)


@suggesting(DEFAULTS)
def window_input(
    data: Sequence[int], filter: Sequence[int], output_rows: tuple[int, int], **options: Unpack[Options]
) -> tuple[int, int]:
    """The input rows (begin, end) of the outermost spatial axis that these output rows take; needs no device.

    At least one row, even if none reaches the output rows. conv_transpose(..., output_rows=) needs exactly these rows.

    Args:
        data, filter: shapes of the whole arrays, as for output_shape.
        output_rows: (begin, end), of the output's outermost spatial axis.
        options: as for conv_transpose.

    Examples:
        >>> data, filter = np.arange(8, dtype=np.float32).reshape(1, 1, 8), np.ones((1, 1, 3), np.float32)
        >>> begin, end = window_input(data.shape, filter.shape, (4, 7), strides=2)
        >>> begin, end
        (1, 4)
        >>> conv_transpose(data[:, :, begin:end], filter, strides=2, output_rows=(4, 7), data_rows=8)
        array([[[3., 2., 5.]]], dtype=float32)

    Raises:
        RequestError: a ValueError: the request cannot be carried out, or the output does not have these rows.
    """
    window = window_of(output_rows, 1) if output_rows is not None else None
    if window is None:
        raise RequestTypeError("output_rows is None: it must be (begin, end)")
    return _window_input(resolve(_problem(attributes_of(**options), data, filter)), window.begin, window.end)


@suggesting(DEFAULTS)
def explain(
    data: Sequence[int],
    filter: Sequence[int],
    *,
    dtype: Any = np.float32,
    filter_dtype: Any = None,
    bias: bool = False,
    device: int | str | None = None,
    upsample: Axes | None = None,
    pixel_shuffle: Axes | None = None,
    shuffle_order: str = "CRD",
    **options: Unpack[Options],
) -> str:
    """Explains conv_transpose's choice for shapes of data and filter: a line for each algorithm.

    With upsample=factors it explains upsample_conv's, with pixel_shuffle=factors that of conv_pixel_shuffle.

    This explains the plan that NumPy calls of these shapes use. A layer, pyopencl arrays and tensors that are computed
    in slabs have plans of their own: `trace` tells of these.

    Args:
        data, filter: shapes, as for output_shape.
        dtype: the data's type: NumPy's, or a name, which is the library's ("i8" is int8) before it is NumPy's.
        filter_dtype: the filter's type, if it differs.
        bias: whether there is one.
        device: one device, as for conv_transpose.
        options: as for conv_transpose.

    Raises:
        RequestError: a ValueError: the request cannot be carried out; the sentence says why.
        Error: no device, no memory, or an OpenCL call failed.
    """
    tensors = tensors_of(data, filter, dtype, filter_dtype)
    factors = {"upsample": upsample, "pixel_shuffle": pixel_shuffle, "shuffle_order": shuffle_order}
    attributes = attributes_among(forward({**DEFAULTS, **options, **factors}))
    request = Request(attributes, *tensors, flag("bias", bias), scale=False, residual=False)
    on = opened(devices_of(device)[0])
    resolved = on.resolved(request)
    return on.layer_of(resolved).explain(resolved)


def _problem(attributes: Attributes, data: Sequence[int], filter: Sequence[int]) -> Any:
    """A problem of these shapes; the element types do not matter."""
    return attributes.problem(*tensors_of(data, filter, np.float32, None))


def tensors_of(data: Sequence[Any], filter: Sequence[int], dtype: Any, filter_dtype: Any) -> tuple[Tensor, Tensor]:
    """Data and filter of shapes and types; without a type, the filter has the data's."""
    number = element_type("dtype", dtype)
    other = number if filter_dtype is None else element_type("filter_dtype", filter_dtype)
    return Tensor(shape_of("data", data), number), Tensor(shape_of("filter", filter), other)


def run(
    arrays: Arrays,
    attributes: Attributes,
    device: int | str | Sequence[int | str] | None,
    memory_limit: int | None,
    window: Window | None,
    progress: Callable[[int, int], Any] | None,
    layers: Layers | None = None,
) -> Any:
    """Computes by _opencl or _host, by the kind of `data`."""
    if progress is not None:
        called("progress", progress)
    key = None
    if window is None and progress is None and memory_limit is None:
        key = _host.key_of(arrays, attributes, device)
    if key is not None:
        known = _host.again(key, arrays, layers)
        if known is not None:
            return known
    opencl = _opencl.is_array(arrays.data)
    if opencl:
        _opencl.check_arrays(arrays)
    else:
        given = arrays.out
        taken = _host.in_place(arrays)
        if any(own is not other for own, other in zip(taken, arrays)):
            key = None  # a copy was computed: the next call needs one, too
        arrays = taken
    request = Request(
        attributes,
        Tensor(arrays.data.shape, type_of("data", arrays.data.dtype), element_steps(arrays.data) or ()),
        Tensor(arrays.filter.shape, type_of("filter", arrays.filter.dtype), element_steps(arrays.filter) or ()),
        arrays.bias is not None,
        arrays.scale is not None,
        arrays.residual is not None,
        window=window,
        output_steps=() if arrays.out is None else element_steps(arrays.out) or (),
        residual_steps=() if arrays.residual is None else element_steps(arrays.residual, least=0) or (),
    )
    if opencl:
        if device is not None or memory_limit is not None or progress is not None:
            raise RequestError(
                "device, memory_limit and progress are for NumPy arrays: a pyopencl array stays where its queue is"
            )
        return _opencl.run(arrays, request, layers)
    devices = [opened(number) for number in devices_of(device)]
    limit = None if memory_limit is None else integer("memory_limit", memory_limit, 0)
    output = _host.run(arrays, request, devices, limit, layers, progress, key)
    if given is None:
        return output
    whole = numpy_array("out", given)
    if address_of(whole) != address_of(output):
        whole[...] = output
    return given


def devices_of(device: int | str | Sequence[int | str] | None) -> list[int]:
    if device is None:
        return [number_of(None)]
    numbers = list(device) if isinstance(device, Sequence) and is_list(device) else [device]
    if not numbers:
        raise RequestError("device is an empty list")
    devices = [number_of(one) if isinstance(one, str) else _device_number(one) for one in numbers]
    for i, number in enumerate(devices):
        if number in devices[:i]:
            raise RequestError(f"device names {number} twice")
    return devices


def _device_number(value: Any) -> int:
    if not hasattr(value, "__index__"):
        raise RequestTypeError(f"device is {shown(value)}: it must be an integer, a name, or a list of these")
    return integer("device", value, 0, 2**31 - 1)
