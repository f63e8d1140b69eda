# SPDX-License-Identifier: Apache-2.0
"""What PyTorch, Keras, TensorFlow, JAX, ONNX, OpenVINO, oneDNN, OpenCV, Caffe, MXNet and TVM call what the arguments of
this package say: the errors for unknown arguments and values say what to write instead, with the value.

src/tool/foreign_list.h has the names of options; a test compares the two lists.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple, NoReturn, TypeVar, Union, cast

import numpy as np

from ._types import BF16, dtype_of, element_type

Shape = tuple[int, ...]


class Call(NamedTuple):
    """The arguments of a call, unknown ones too."""

    given: Mapping[str, Any]

    def of(self, name: str, default: Any = None) -> Any:
        """An argument under our name, or under one that means the same."""
        for own in (name, *(foreign for foreign, ours in SAME.items() if ours == name)):
            if own in self.given and self.given[own] is not None:
                return self.given[own]
        return default

    def shape(self, name: str) -> Shape | None:
        """The shape of data or filter: of an array, or itself, for functions of shapes."""
        value = self.of(name)
        if value is None or isinstance(value, str):
            return None
        shape = getattr(value, "shape", value)
        if isinstance(shape, (list, tuple)) and all(isinstance(extent, (int, np.integer)) for extent in shape):
            return tuple(int(extent) for extent in shape)
        return np.shape(value) if isinstance(value, (list, tuple)) else None

    def axes(self) -> int | None:
        data, filter = self.shape("data"), self.shape("filter")
        rank = len(data) if data is not None else None if filter is None else len(filter)
        return None if rank is None or rank < 3 else rank - 2

    def numbers(self, name: str, default: int) -> Shape | None:
        """One number for each spatial axis."""
        axes, value = self.axes(), self.of(name, default)
        return None if axes is None else _for_each_axis(value, axes)

    def kernel(self) -> Shape | None:
        """The extents of the dilated kernel."""
        filter, axes, dilations = self.shape("filter"), self.axes(), self.numbers("dilations", 1)
        if filter is None or axes is None or dilations is None:
            return None
        last = str(self.given.get("filter_format", "OIX")).upper() != "XIO"
        extents = filter[-axes:] if last else filter[:axes]
        return tuple(d * (k - 1) + 1 for d, k in zip(dilations, extents))


Written = Union[str, Callable[[Any, Call], str]]


def _for_each_axis(value: Any, axes: int) -> Shape | None:
    """A number, or one for each axis; of 1, s, s, 1 as in TensorFlow the spatial ones."""
    if isinstance(value, (int, np.integer)):
        return (int(value),) * axes
    try:
        numbers = tuple(operator.index(one) for one in value)
    except (TypeError, ValueError):
        return None
    if len(numbers) == axes + 2 and numbers[0] == 1 and 1 in (numbers[1], numbers[-1]):
        numbers = numbers[1:-1] if numbers[-1] == 1 else numbers[2:]
    return numbers * axes if len(numbers) == 1 else numbers if len(numbers) == axes else None


def _short(numbers: Sequence[int]) -> Any:
    """One number that stands for all, if they are equal."""
    return numbers[0] if len(set(numbers)) == 1 else tuple(numbers)


def _text(value: Any) -> str:
    """A value to be written; three dots for what is long, such as an array."""
    value = int(value) if isinstance(value, np.integer) else value
    text = repr(value)
    plain = isinstance(value, (int, float, str, bool, list, tuple)) or value is None
    return text if plain and len(text) <= 60 else "..."


def _translated(argument: str, value: Any) -> str:
    """A value to be written for an argument of ours: our word for that of another system."""
    word = value.lower().split(":")[0] if isinstance(value, str) else ""  # cuda:0
    return VALUES.get(argument, {}).get(word, _text(value))


# ---- pads ----


def _pads(begin: Sequence[int], end: Sequence[int]) -> str:
    if any(operator.index(pad) < 0 for pad in (*begin, *end)):
        raise ValueError
    return f"pads_begin={_short(begin)}, pads_end={_short(end)}"


def _same(call: Call) -> str:
    """Pads that make the output's extent that of the data times the stride: of Keras, TensorFlow and JAX."""
    kernel, strides = call.kernel(), call.numbers("strides", 1)
    if kernel is None or strides is None:
        return (
            'rules="onnx", auto_pad="same_upper", if no kernel is smaller than its stride; else '
            "output_padding=stride - kernel"
        )
    total = [max(k - s, 0) for k, s in zip(kernel, strides)]
    missing = [max(s - k, 0) for k, s in zip(kernel, strides)]
    text = _pads([pad // 2 for pad in total], [pad - pad // 2 for pad in total])
    return f"{text}, output_padding={_short(missing)}" if any(missing) else text


def _valid(call: Call) -> str:
    kernel, strides = call.kernel(), call.numbers("strides", 1)
    if kernel is None or strides is None or all(k >= s for k, s in zip(kernel, strides)):
        return "leave it out: there are no pads by default"
    return f"output_padding={_short([max(s - k, 0) for k, s in zip(kernel, strides)])}"


def _named_pads(name: str, call: Call) -> str:
    """Pads that have a name: of Keras, of TensorFlow and JAX, which have capitals, or of ONNX."""
    word = name.lower()
    text = _same(call) if word == "same" else _valid(call) if word == "valid" else None
    if text is not None:
        if "transpose_kernel" in call.given or not (name.isupper() or _is_jax(call)):
            return text
        return f"{text}; {'' if _is_jax(call) else 'of JAX without transpose_kernel=True: '}{REVERSED}"
    if word in ("same_upper", "same_lower"):
        return f"auto_pad={word!r}{'' if 'rules' in call.given else WITH_RULES}"
    if word in ("explicit", "notset", "none"):
        return "leave it out: pads are numbers by default, pads_begin and pads_end"
    return f"leave it out: {word!r} has no equivalent; pads are numbers, pads_begin and pads_end"


WITH_RULES = '; with rules="onnx" the output has the data\'s extent times the stride'


def _padding(value: Any, call: Call) -> str:
    if isinstance(value, str):
        return _named_pads(value, call)
    if isinstance(value, (int, np.integer)):
        return _pads([int(value)], [int(value)])
    try:
        numbers = [tuple(one) if isinstance(one, (list, tuple)) else operator.index(one) for one in value]
    except (TypeError, ValueError):
        return "pads_begin=..., pads_end=..."
    if numbers and all(isinstance(one, tuple) for one in numbers):
        return _pairs([one for one in numbers if isinstance(one, tuple)], call)
    plain, axes = [one for one in numbers if isinstance(one, int)], call.axes()
    if len(plain) == 2 * (axes or 2):  # of all begins, then of all ends
        return _pads(plain[: len(plain) // 2], plain[len(plain) // 2 :])
    if not plain or (axes is not None and len(plain) not in (1, axes)):
        return "pads_begin=..., pads_end=..., with one number for each spatial axis"
    return _pads(plain, plain)


# JAX computes a correlation: what is written here computes the same with the filter reversed.
REVERSED = "and reverse the filter along its spatial axes (numpy.flip)"


def _is_jax(call: Call) -> bool:
    return any(name in call.given for name in ("lhs_dilation", "rhs_dilation", "dimension_numbers", "lhs", "rhs"))


def _pairs(pairs: Sequence[tuple[int, ...]], call: Call) -> str:
    """JAX pads the data, and does not reverse the filter unless transpose_kernel is True, which has a sentence of its
    own. TensorFlow's pads, with those of batch and channels, are cut from the output."""
    kernel = call.kernel()
    spatial = _spatial(pairs, call.axes() or len(pairs) - 2)
    if spatial is not None:
        return _both_ends(spatial)
    reversal = "" if "transpose_kernel" in call.given else f"; {REVERSED}"
    if kernel is None or len(kernel) != len(pairs):
        formula = "dilation * (kernel - 1)"
        return f"pads_begin={formula} - begin, pads_end={formula} - end of each pair{reversal}"
    begin = [k - 1 - pair[0] for k, pair in zip(kernel, pairs)]
    end = [k - 1 - pair[-1] for k, pair in zip(kernel, pairs)]
    text = _pads([max(pad, 0) for pad in begin], [max(pad, 0) for pad in end])
    if min(end) < 0:
        text += f", output_padding={_short([max(-pad, 0) for pad in end])}"
    if min(begin) < 0:
        text += f"; and put {_short([max(-pad, 0) for pad in begin])} zeros before the output with numpy.pad"
    return text + reversal


def _spatial(pairs: Sequence[tuple[int, ...]], axes: int) -> Sequence[tuple[int, ...]] | None:
    """TensorFlow's pads without those of batch and channels; None if they are not such pads."""
    if not 2 < len(pairs) == axes + 2 or pairs[0] != (0, 0):
        return None
    return pairs[2:] if pairs[1] == (0, 0) else pairs[1:-1]


def _both_ends(pairs: Sequence[tuple[int, ...]]) -> str:
    return _pads([pair[0] for pair in pairs], [pair[-1] for pair in pairs])


def _transpose_kernel(value: Any, call: Call) -> str:
    return "leave it out" if value is True else f"leave it out, {REVERSED}"


def _lhs_dilation(value: Any, call: Call) -> str:
    """Of JAX's general convolution, which does not reverse the filter."""
    said = "transpose_kernel" in call.given or isinstance(call.given.get("padding"), (str, list, tuple))
    return f"strides={_text(value)}" + ("" if said else f"; {REVERSED}")


def _pads_of_onnx(value: Any, call: Call) -> str:
    if (
        isinstance(value, (list, tuple))
        and value
        and len(value) % 2 == 0
        and all(isinstance(one, int) for one in value)
    ):
        return _pads(value[: len(value) // 2], value[len(value) // 2 :])
    return _padding(value, call)


def _output_size(value: Any, call: Call) -> str:
    """PyTorch's and Chainer's, which may have batch and channels: the pads stay, and the output ends later."""
    data, kernel, strides = call.shape("data"), call.kernel(), call.numbers("strides", 1)
    begin, end = call.numbers("pads_begin", 0), call.numbers("pads_end", 0)
    if "padding" in call.given or "pad" in call.given:
        axes = call.axes()
        begin = None if axes is None else _for_each_axis(call.given.get("padding", call.given.get("pad")), axes)
        end = begin
    if data is None or kernel is None or strides is None or begin is None or end is None:
        return "output_padding=size - ((extent - 1) * stride + dilation * (kernel - 1) + 1 - pad_begin - pad_end)"
    extents = data[1:-1] if _is_last(call) else data[2:]
    if isinstance(value, (list, tuple)) and len(value) == len(data):
        value = value[1:-1] if _is_last(call) else value[2:]
    sizes = _for_each_axis(value, len(extents))
    if sizes is None:
        return "output_padding=..., one number for each spatial axis"
    least = [(x - 1) * s + k - b - e for x, s, k, b, e in zip(extents, strides, kernel, begin, end)]
    if any(size < possible for size, possible in zip(sizes, least)):
        return (
            f"leave it out: the size {_text(_short(sizes))} is too small, the least is {_text(_short(least))}; larger "
            "pads_end make it smaller"
        )
    return "output_padding=" + _text(_short([size - possible for size, possible in zip(sizes, least)]))


# ---- formats ----


LAST = ("nhwc", "ndhwc", "nwc", "nlc", "channels_last", "channelslast", "channel_last", "last")
FIRST = ("nchw", "ncdhw", "ncw", "ncl", "channels_first", "channelsfirst", "channel_first", "first")
KEEPS = (
    "the arrays keep their axes: data, residual and output are [N, X..., C]; the filter is [CI, CO/groups, K...], or "
    "with filter_format=\"XIO\" [K..., CO/groups, CI], as TensorFlow's and Keras'"
)


def _is_last(call: Call) -> bool:
    return str(call.given.get("data_format", "")).upper() == "NXC"


def _layout(value: Any, call: Call | None = None) -> str:
    if isinstance(value, (list, tuple)) and value:  # JAX's dimension_numbers
        return f"{_layout(value[0])}; {FILTERS}"
    text = str(value).lower()
    if text in LAST:
        return f'data_format="NXC"; {KEEPS}'
    if text in FIRST:
        return 'data_format="NCX", as is the default'
    return 'data_format="NXC" for channels last, else "NCX"'


FILTERS = 'filter_format="OIX" is [CI, CO/groups, K...], "XIO" is [K..., CO/groups, CI]'


# ---- the tables ----

# Other names of arguments that take the same value.
SAME: dict[str, str] = {
    foreign: ours
    for ours, names in {
        "data": "input inputs x X lhs src image input_tensor",
        "filter": "weight weights w W rhs kernel kernels filters wei",
        "bias": "b B",
        "strides": "stride lhs_dilation subsample upscale",
        "dilations": "dilation dilation_rate rhs_dilation dilate",
        "groups": "group num_group num_groups feature_group_count ngroups",
        "pads_begin": "padding_l padding_dims_l pad_begin pad_l",
        "pads_end": "padding_r padding_dims_r pad_end pad_r",
        "output_padding": "adj output_pads out_padding",
        "out": "output dst y Y",
        "algorithm": "algo algorithm_name",
        "device": "device_id device_name device_number",
        "data_zero_point": "x_zero_point input_zero_point src_zero_point",
        "filter_zero_point": "w_zero_point weight_zero_point weights_zero_point wei_zero_point",
        "output_zero_point": "y_zero_point dst_zero_point out_zero_point",
        "workspace_limit": "workspace workspace_size scratchpad max_workspace",
        "memory_limit": "memory max_memory",
        "progress": "callback on_progress",
        "input_shape": "input_size input_sizes",
        "grad_output": "grad_outputs grad out_backprop dy diff_dst output_gradient",
    }.items()
    for foreign in names.split()
}

# The names of all functions on arrays, so that one of another function is found.
ARGUMENTS = (
    "input_shape grad_output "
    "strides dilations pads_begin pads_end auto_pad output_padding output_shape groups data_format filter_format rules "
    "algorithm device scale slope slope2 residual out alpha beta activation output_type requantize data_zero_point "
    "filter_zero_point output_zero_point math search workspace_limit memory_limit output_rows data_rows progress"
).split()

# What systems call the factors of an upsampling or a pixel shuffle, which their functions have instead of strides.
FACTORS = frozenset(
    "strides stride factors factor scales scale_factor upscale_factor upsample blocksize block_size downscale_factor "
    "pixel_shuffle".split()
)


def _type(value: Any, call: Call) -> str:
    """A type: a name of the library, else what NumPy takes, also as PyTorch writes it."""
    name = str(value).removeprefix("torch.")
    dtype = _dtype(name if isinstance(value, str) or name != str(value) else value)
    if dtype is not None:
        return f"output_type={dtype}"
    return f'output_type=a type of NumPy\'s, or a name as "f32"; {_text(value)} is none that there is'


SHAPES = "the filter's shape says it, [CI, CO/groups, K...]"
QUEUE = "leave it out: pyopencl arrays carry their queue, data.with_queue(queue)"
EVENTS = "leave it out: the call waits for the events of its arrays, and the output carries its own"


def _extent_of_filter(value: Any, call: Call) -> str:
    shape = call.shape("filter")
    return f"leave it out: {SHAPES}" if shape is None else f"leave it out: {SHAPES}, here {list(shape)}"


def _filter(value: Any, call: Call) -> str:
    """Keras calls the number of output channels `filters`, MXNet the kernel's extents `kernel`."""
    if isinstance(value, int) or (isinstance(value, tuple) and call.shape("filter") is not None):
        return _extent_of_filter(value, call)
    return f"filter={_text(value)}"


def _clamp(value: Any, call: Call) -> str:
    low = next((call.given[name] for name in ("min_val", "min_value", "clip_min") if name in call.given), "low")
    high = next((call.given[name] for name in ("max_val", "max_value", "clip_max") if name in call.given), "high")
    return f'activation=("clamp", {low}, {high})'


def _dilates(value: Any, call: Call) -> str:
    """oneDNN's count from 0."""
    numbers = [value] if isinstance(value, int) else [operator.index(one) for one in value]
    return f"dilations={_short([number + 1 for number in numbers])}"


def _of_both(name: str, ours: str, default: int) -> dict[str, Written]:
    """One argument for each axis, as Caffe and OpenCV have them."""
    names = (f"{name}_h", f"{name}_w")

    def write(value: Any, call: Call) -> str:
        return f"{ours}={_short([operator.index(call.given.get(one, default)) for one in names])}"

    return dict.fromkeys(names, write)


def _both_sides(height: str, width: str) -> Callable[[Any, Call], str]:
    def write(value: Any, call: Call) -> str:
        numbers = [call.given.get(name, 0) for name in (height, width)]
        return _pads(numbers, numbers)

    return write


def _four_sides(value: Any, call: Call) -> str:
    sides = ("top", "left", "bottom", "right")
    top, left, bottom, right = (call.given.get(f"pad_{side}", call.given.get(f"pad_{side[0]}", 0)) for side in sides)
    return _pads([top, left], [bottom, right])


# What else stands for an argument: a text, or a function of its value and the call.
OTHERS: dict[str, Written] = {
    "padding": _padding,
    "pad": _padding,
    "pads": _pads_of_onnx,
    "pad_mode": _padding,
    "padding_mode": "leave it out: pads are zeros",
    "output_size": _output_size,
    "outsize": _output_size,
    "target_shape": lambda value, call: f"output_shape={_text(value)}",
    "layout": _layout,
    "data_layout": _layout,
    "out_layout": _layout,
    "dimension_numbers": _layout,
    "memory_format": "leave it out: views are used where they lie",
    "kernel_layout": FILTERS,
    "filter_layout": FILTERS,
    "weight_layout": FILTERS,
    "weights_layout": FILTERS,
    "kernel": _filter,
    "filters": _filter,
    **dict.fromkeys(
        ("kernel_size", "kernel_shape", "in_channels", "out_channels", "num_output", "num_filter", "channels"),
        _extent_of_filter,
    ),
    **dict.fromkeys(
        ("use_bias", "bias_term", "no_bias"), "bias=an array with a number for each output channel, or None"
    ),
    "dilates": _dilates,
    **dict.fromkeys(("dtype", "out_dtype", "output_dtype", "preferred_element_type", "dst_type"), _type),
    "transpose_kernel": _transpose_kernel,
    "lhs_dilation": _lhs_dilation,
    "negative_slope": lambda value, call: f'activation=("leaky_relu", {_text(value)})',
    **dict.fromkeys(("min_val", "max_val", "min_value", "max_value", "clip_min", "clip_max"), _clamp),
    **dict.fromkeys(("relu", "with_relu"), 'activation="relu"'),
    **dict.fromkeys(("skip", "addend", "add"), lambda value, call: f"residual={_text(value)}"),
    **dict.fromkeys(("queue", "cl_queue", "command_queue", "cq", "context", "ctx", "stream"), QUEUE),
    **dict.fromkeys(("wait_for", "wait_list", "events", "event_wait_list"), EVENTS),
    "allocator": "leave it out: the output's memory comes from the allocator of data",
    **dict.fromkeys(("precision", "allow_tf32", "fast_math", "fpmath", "winograd"), 'math="fast" or "exact"'),
    **dict.fromkeys(("tune", "autotune", "cudnn_tune", "benchmark", "exhaustive"), 'search="measure"'),
    **dict.fromkeys(("inplace", "in_place"), "out=an array that receives the output"),
    **dict.fromkeys(("threads", "num_threads", "n_threads"), "leave it out: the device uses all its compute units"),
    "batch_size": "leave it out: the data's shape says it",
    "verbose": "leave it out: make the call in a `with tconv_cl.trace() as events:`",
    **_of_both("stride", "strides", 1),
    **_of_both("strides", "strides", 1),
    **_of_both("dilation", "dilations", 1),
    **_of_both("dilations", "dilations", 1),
    **_of_both("output_padding", "output_padding", 0),
    **_of_both("pads_begin", "pads_begin", 0),
    **_of_both("pads_end", "pads_end", 0),
    **_of_both("adj", "output_padding", 0),
    "kernel_h": _extent_of_filter,
    "kernel_w": _extent_of_filter,
    **dict.fromkeys(("pad_h", "pad_w"), _both_sides("pad_h", "pad_w")),
    **dict.fromkeys(("padding_h", "padding_w"), _both_sides("padding_h", "padding_w")),
    **dict.fromkeys(("pad_top", "pad_left", "pad_bottom", "pad_right", "pad_t", "pad_b"), _four_sides),
}


def _forward_padding(value: Any, call: Call) -> str:
    """Of a convolution, whose pads are around its data, also where another system's transposed ones are not."""
    if isinstance(value, str):
        word = value.lower()
        if word in ("same", "same_upper", "same_lower"):
            return 'auto_pad="same_lower"' if word == "same_lower" else 'auto_pad="same_upper"'
        return _named_pads(word, Call({})) if word != "valid" else "leave it out: there are no pads by default"
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, (list, tuple)) for one in value):
        pairs = [tuple(pair) for pair in value if len(pair) == 2]
        return _both_ends(_spatial(pairs, call.axes() or len(value)) or pairs)
    return _padding(value, call)


_FORWARD_FILTERS = 'filter_format="OIX" is [CO, CI/groups, K...], "XIO" is [K..., CI/groups, CO]'

# The same for the functions of convolutions, whose filter has the output channels first.
FORWARD: dict[str, Written] = {
    **OTHERS,
    **dict.fromkeys(("padding", "pad", "pad_mode"), _forward_padding),
    **dict.fromkeys(("kernel_layout", "filter_layout", "weight_layout", "weights_layout"), _FORWARD_FILTERS),
    **dict.fromkeys(
        ("kernel_size", "kernel_shape", "in_channels", "out_channels", "num_output", "num_filter", "channels"),
        "leave it out: the filter's shape says it, [CO, CI/groups, K...]",
    ),
}

# Those whose False asks for nothing.
SWITCHES = frozenset(
    "relu with_relu use_bias bias_term tune autotune cudnn_tune benchmark exhaustive inplace in_place strict "
    "raise_error".split()
)

# The same for the functions that put the library under another runtime.
RUNTIME: dict[str, Written] = {
    **dict.fromkeys(
        ("device_id", "device_name", "device_number", "target"),
        lambda value, call: f"device={_translated('device', value)}",
    ),
    "device_type": lambda value, call: f"device={_translated('device', str(value).lower())}",
    **dict.fromkeys(("inplace", "in_place"), "leave it out: the model is changed in place, and returned"),
    **dict.fromkeys(("module", "net", "network", "graph"), lambda value, call: "model=..."),
    **dict.fromkeys(
        ("min_macs", "min_flops", "threshold", "least_flops"), lambda value, call: f"least_macs={_text(value)}"
    ),
    **dict.fromkeys(("tune", "autotune", "benchmark", "exhaustive"), 'search="measure"'),
    **dict.fromkeys(("allow_tf32", "fast_math", "fpmath", "winograd"), 'math="fast" or "exact"'),
    **dict.fromkeys(("strict", "on_error", "errors", "raise_error"), 'fallback="error"'),
    **dict.fromkeys(("dtype", "precision"), "leave it out: layers are computed in the type of their tensors"),
    **dict.fromkeys(("sess_options", "session"), "options=..."),
    **dict.fromkeys(
        ("providers", "provider_options"),
        "leave it out: the options that are returned have the provider; pass these arguments separately",
    ),
    **dict.fromkeys(("verbose", "debug"), "leave it out: use it in a `with tconv_cl.trace() as events:`"),
    **dict.fromkeys(("mapping", "qconfig", "backend", "mode"), "leave it out: there is no choice"),
    **dict.fromkeys(("threads", "num_threads"), "leave it out: the device uses all its compute units"),
}


def instead_of(name: str, call: Call, known: Collection[str], table: Mapping[str, Written] = OTHERS) -> str | None:
    """What to write instead of an argument of another system; None if it is not known."""
    written, value = table.get(name), call.given[name]
    arrays = table is not RUNTIME
    ours = SAME.get(name) if arrays else None
    if written is None and ours is None:
        ours = next((other for other in (f"{name}s", name.rstrip("s"), name.lower()) if other in known), None)
    if isinstance(written, str):
        return "leave it out: that is the default" if value is False and name in SWITCHES else written
    if value is None and arrays and (written is not None or ours not in (None, "data", "filter")):
        return "leave it out: None asks for the default"
    if written is not None:
        try:
            return written(value, call)
        except Exception:  # a value that no system takes: its own methods may raise anything
            return None
    return None if ours is None else f"{ours}={_translated(ours, value)}"


def refuse(
    function: str,
    options: Mapping[str, Any],
    known: frozenset[str],
    others: Mapping[str, Any] | None = None,
    maker: str = "",
    table: Mapping[str, Written] = OTHERS,
    factors: str = "",
) -> NoReturn:
    """Raises the error for unknown arguments among `options`: it says what to write instead. `others` are the
    positional arguments, and `maker` is the function that has what this one has not. `factors` is the argument that
    has what others call a stride or a factor, or a sentence about it."""
    unknown, call = [name for name in options if name not in known], Call({**(others or {}), **options})
    hints: dict[str, list[str]] = {}
    for name in unknown:
        write = f"{name}={_text(options[name])}" if name in ARGUMENTS else instead_of(name, call, known, table)
        if name in FACTORS and factors:
            write = f"{factors}={_text(options[name])}" if factors.isidentifier() else factors
        alike = None if write else close_to(name, known)
        if write is not None:
            its = re.findall(r"(\w+)=", write)
            owner = "conv_input_gradient" if {"input_shape", "grad_output"} & {*its} else maker
            elsewhere = f", an argument of {owner}()" if maker and its and known.isdisjoint(its) else ""
            verb = "" if write.startswith("leave it out") else "write "
            hints.setdefault(f"{verb}{write}{elsewhere}", []).append(repr(name))
        elif alike is not None:
            hints.setdefault(f"did you mean {alike!r}?", []).append(repr(name))
    hint = "; ".join(f"{', '.join(names)}: {text}" if len(hints) > 1 else text for text, names in hints.items())
    hint = hint or f"help({function.split('.__')[0]}) has its arguments"
    plural = "s" if len(unknown) > 1 else ""
    names = ", ".join(map(repr, unknown))
    raise TypeError(f"{function}() got {'' if plural else 'an '}unexpected keyword argument{plural} {names}; {hint}")


F = TypeVar("F", bound=Callable[..., Any])


def suggesting(
    more: Collection[str] = (),
    *,
    maker: str = "conv_transpose",
    table: Mapping[str, Written] = OTHERS,
    name: str = "",
    factors: str = "",
) -> Callable[[F], F]:
    """A decorator: the function says what to write instead of unknown keywords. `more` are those of its **options."""

    def decorate(function: F) -> F:
        parameters = inspect.signature(function).parameters
        known = frozenset([*(p.name for p in parameters.values() if p.kind is not p.VAR_KEYWORD), *more])

        @wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            if not options.keys() <= known:
                others = dict(zip(parameters, args))
                layer = getattr(others.get("self"), "_arrays", None)
                if layer is not None:
                    others["filter"] = layer.filter
                refuse(name or function.__qualname__, options, known, others, maker, table, factors)
            return function(*args, **options)

        return cast(F, checked)

    return decorate


def close_to(word: str, known: Collection[str]) -> str | None:
    """The name that a word misspells; never one that has the word in it, or the reverse, which means something else."""
    most = 1 if len(word) < 6 else 2
    apart = {name: _distance(word, name) for name in known if name not in word and word not in name}
    nearest = min(apart, key=lambda name: apart[name], default="")
    return nearest if nearest and apart[nearest] <= most else None


def _distance(one: str, other: str) -> int:
    """How many letters must be changed, removed, added or swapped with their neighbour."""
    before: list[int] = []
    above = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, its in enumerate(other, 1):
            least = min(above[j] + 1, row[-1] + 1, above[j - 1] + (letter != its))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == its:
                least = min(least, before[j - 2] + 1)
            row.append(least)
        before, above = above, row
    return above[-1]


# ---- values ----

VALUES: dict[str, dict[str, str]] = {
    "activation": {
        "swish": '"silu"',
        **dict.fromkeys(("hard_swish", "hswish", "h_swish"), '"hardswish"'),
        **dict.fromkeys(("leaky", "leakyrelu", "lrelu"), '("leaky_relu", slope)'),
        **dict.fromkeys(("hardtanh", "hard_tanh"), '("clamp", -1, 1)'),
        "clip": '("clamp", low, high)',
        **dict.fromkeys(("linear", "identity", "nonetype"), '"none"'),
        "logistic": '"sigmoid"',
        **dict.fromkeys(("gelu_new", "gelu_fast"), '"gelu_tanh"'),
    },
    "auto_pad": {
        "same": f'"same_upper"{WITH_RULES}',
        **dict.fromkeys(("none", "nonetype"), '"explicit"'),
    },
    "rules": {
        **dict.fromkeys(("pytorch", "torch", "keras", "tensorflow", "tf", "jax"), '"spec", with the pads as numbers'),
        **dict.fromkeys(("onnxruntime", "ort"), '"onnx"'),
    },
    "math": dict.fromkeys(("fp16", "f16", "tf32", "relaxed", "bool", "approximate"), '"fast"'),
    "search": {
        **dict.fromkeys(("true", "tune", "autotune", "benchmark", "exhaustive"), '"measure"'),
        **dict.fromkeys(("false", "none", "off"), '"model"'),
    },
    "device": dict.fromkeys(("cuda", "xpu", "mps", "rocm", "hip", "vulkan"), '"gpu"'),
    "filter_format": {
        **dict.fromkeys(("hwoi", "dhwoi", "woi"), f'"XIO": {FILTERS}'),
        **dict.fromkeys(("iohw", "iodhw", "iow"), f'"OIX": {FILTERS}'),
    },
}


def instead_of_value(argument: str, value: Any, names: Collection[str] = ()) -> str:
    """The end of an error's sentence about a value of another system; "" if it is not known. `names` are the values
    that there are: a class or function of such a name stands for it."""
    word = value if isinstance(value, str) else str(value) if isinstance(value, bool) else _name_of(value)
    word = word.lower()
    if argument == "data_format":
        return f"; write {_layout(word)}" if word in (*LAST, *FIRST) else ""
    if argument == "output_type":
        return _numpy_type(value)
    if argument == "filter_format" and set(word) <= set("hwdiol"):
        return f"; {VALUES['filter_format'].get(word) or FILTERS}"
    if argument == "device":
        word = word.split(":")[0]
    written = VALUES.get(argument, {}).get(word)
    if written is None and not isinstance(value, str) and word in names:
        written = repr(word)
    return "" if written is None else f"; write {written}"


def instead_of_list(argument: str, value: Shape, axes: int) -> str:
    """The same for a list of another length: with the batch and the channels, or of all begins and all ends."""
    if axes < 1:  # the rank is what is wrong
        return ""
    if argument in ("pads_begin", "pads_end") and len(value) == 2 * axes:
        return f"; write {_pads(value[:axes], value[axes:])}" if min(value) >= 0 else ""
    if argument == "output_shape" and len(value) == axes + 2:
        return f"; write the {axes} spatial extents alone"
    spatial = _for_each_axis(value, axes) if len(value) == axes + 2 else None
    return "" if spatial is None else f"; write {argument}={_short(spatial)}"


def _name_of(value: Any) -> str:
    """Of a class or function its own, of an object its class's."""
    return str(getattr(value, "__name__", type(value).__name__))


def _numpy_type(value: Any) -> str:
    dtype = _dtype(value)
    return "" if dtype is None else f"; write {dtype}"


def _dtype(value: Any) -> str | None:
    """How a type that the library has is written."""
    if value == "bfloat16":
        return '"bf16"'
    try:
        number = element_type("", value)
    except ValueError:
        return None
    return '"bf16"' if number == BF16 else f"numpy.{dtype_of(number).name}"
