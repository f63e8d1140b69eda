# SPDX-License-Identifier: Apache-2.0
"""`prepare` and `prepare_model`: compile what later calls need, for all extents of a range."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import byref, c_int, cast
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np

from . import _library as c
from ._callbacks import Listening, callback
from ._convolution import Options, devices_of, tensors_of
from ._device import Device, opened
from ._library import RequestError, call
from ._names import suggesting
from ._request import DEFAULTS, NXC, ONEAPI_CONV_BACKPROP, attributes_of, called, flag, integer, shape_of
from ._trace import TraceEvent, trace

if TYPE_CHECKING:
    from typing_extensions import Unpack  # typing has it since 3.11

Extent = Union[int, tuple[int, int]]
Progress = Callable[[int, int], Any]


def _prepare(
    device: Device, problem: c.Problem, most: c.Shape | None, options: c.PlanOptions, progress: Progress | None
) -> int:
    """Calls tconv_device_prepare."""

    def told(_: Any, __: Any, index: int, count: int, ___: float) -> bool:
        if progress is not None:
            progress(index, count)
        return True

    tell = callback(c.SearchProgress, told)  # also without `progress`: an interrupt ends the call
    options.search_progress = cast(tell, ctypes.c_void_p)
    programs = c_int()
    with Listening():
        call(
            "tconv_device_prepare",
            device.handle,
            byref(problem),
            None if most is None else byref(most),
            byref(options),
            byref(programs),
        )
    return programs.value


def _range(data: Sequence[Extent]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The least and the largest extents."""
    least, most = [], []
    for axis, extent in enumerate(data):
        pair = extent if isinstance(extent, (tuple, list)) else (extent, extent)
        if len(pair) != 2:
            raise RequestError(
                f"data[{axis}] is {extent!r}: it must be an extent, or a pair of the least and the largest"
            )
        least.append(integer(f"data[{axis}]", pair[0], 0))
        most.append(integer(f"data[{axis}]", pair[1], 0))
        if most[-1] < least[-1]:
            raise RequestError(f"data[{axis}] is {extent!r}: the range is empty, give the least extent first")
    return tuple(least), tuple(most)


@suggesting(DEFAULTS)
def prepare(
    data: Sequence[Extent],
    filter: Sequence[int],
    *,
    dtype: Any = np.float32,
    filter_dtype: Any = None,
    bias: bool = False,
    scale: bool = False,
    residual: bool = False,
    device: int | str | Sequence[int | str] | None = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> int:
    """Compiles what conv_transpose needs for all shapes of a range, so that no later call compiles.

    Few programs serve a range, and later calls prefer them. Of a range of more than 4096 shapes, only some are looked
    at: another may still compile if no prepared program is nearly as fast as its best one. The list of programs is
    stored in the folder of tuning results, and they themselves in the cache: later processes find both. docs/serving.md
    says how a server uses this.

    Args:
        data: the data's shape; batch and spatial extents may be pairs of the least and the largest.
        filter: the filter's shape.
        dtype, filter_dtype: the types of data and filter: NumPy's, or names, which are the library's ("i8" is int8)
            before they are NumPy's. filter_dtype None: as data.
        bias, scale, residual: whether calls have them.
        device: as for conv_transpose.
        progress: is called with the number of programs that are made and the number of all, before each group of
            programs, and once at the end.
        options: as for conv_transpose.

    Returns:
        How many programs the range takes, on all devices together.

    Raises:
        RequestError: a ValueError: the request cannot be carried out; the sentence says why.
        Error: no device, no memory, or the programs cannot be stored.

    Examples:
        >>> prepare((1, 5, (3, 9)), (5, 7, 4), strides=2) >= 1
        True
    """
    attributes = attributes_of(**options)
    arrays = {"bias": flag("bias", bias), "scale": flag("scale", scale), "residual": flag("residual", residual)}
    if progress is not None:
        called("progress", progress)
    least, most = _range(shape_of("data", data))
    tensors = tensors_of(least, filter, dtype, filter_dtype)
    problem = attributes.problem(*tensors)
    channels = _channels_at(problem)
    if channels < len(most) and most[channels] != least[channels]:
        raise RequestError(f"data[{channels}] is {data[channels]!r}: channels are no range, give one number")
    last = c.Shape(len(most), most) if most != least else None
    programs = 0
    for number in devices_of(device):
        programs += _prepare(opened(number), problem, last, attributes.options(**arrays), progress)
    return programs


class _Layer(NamedTuple):
    """A layer that a model ran: what it is apart from its extents, and the extents of its data."""

    problem: c.Problem
    options: c.PlanOptions
    algorithm: str | None  # the one that the caller named
    extents: tuple[int, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """Everything but batch and spatial extents; of the steps, which depend on them, their order."""
        without = c.Problem.from_buffer_copy(self.problem)
        channels = _channels_at(without)
        for axis in range(without.data.rank):
            if axis != channels:
                without.data.dim[axis] = 0
        without.data_steps = without.output_steps = without.residual_steps = c.Steps()
        steps = self.problem.data_steps, self.problem.output_steps, self.problem.residual_steps
        return bytes(without), bytes(self.options), self.algorithm, *map(_order, steps)


def _order(steps: c.Steps) -> tuple[int, ...]:
    """The axes as they lie in memory, those with small steps first; () for a dense tensor."""
    return tuple(sorted(range(steps.count), key=lambda axis: steps.value[axis]))


def _channels_at(problem: c.Problem) -> int:
    last = problem.data_format == NXC or (problem.data_format == 0 and problem.operation == ONEAPI_CONV_BACKPROP)
    return int(problem.data.rank) - 1 if last else 1


def _observe(run: Callable[[], Any]) -> tuple[list[_Layer], bool]:
    """The layers that run while `run` is called, and whether windows of larger ones ran, too."""
    layers: list[_Layer] = []
    windows = False

    def hear(event: TraceEvent) -> None:
        nonlocal windows
        if event.kind not in ("plan", "launch") or event.given is None:
            return
        problem = c.Problem.from_buffer_copy(event.given[0])
        options = c.PlanOptions.from_buffer_copy(event.given[1])
        algorithm = None
        if options.algorithm is not None:
            algorithm, options.algorithm = event.algorithm, None  # its text is no longer valid
        if options.output_begin == options.output_end == 0:
            layers.append(_Layer(problem, options, algorithm, tuple(problem.data.dim[: problem.data.rank])))
        else:
            windows = True

    with trace(hear):
        run()
    return layers, windows


def _largest(layers: list[_Layer]) -> list[_Layer]:
    """Those whose extents no other one reaches. Their steps are those of the largest shape of a range."""
    seen = {layer.extents: layer for layer in layers}
    return [
        layer
        for extents, layer in seen.items()
        if not any(other != extents and all(a >= b for a, b in zip(other, extents)) for other in seen)
    ]


def prepare_model(
    least: Callable[[], Any],
    most: Callable[[], Any],
    *,
    device: int | str | None = None,
    progress: Progress | None = None,
) -> int:
    """Prepares all layers that tconv_cl computes in a model, for all inputs between two.

    `least` runs the model on its smallest inputs, `most` on its largest ones: by PyTorch, ONNX Runtime, OpenVINO or
    NumPy, on `device`. A layer that only `most` runs with tconv_cl, because smaller ones are left to the runtime, is
    prepared from extent 1. Views are prepared for tensors that lie in memory like the largest ones: with the axes in
    the same order, and as many elements between rows.

    Args:
        least, most: functions without arguments.
        device: the device that the model uses, as for conv_transpose.
        progress: as for prepare, for each layer.

    Returns:
        How many programs the layers take.

    Raises:
        RequestError: a ValueError: tconv_cl computed no layer, or computed one in slabs or windows.
        Error: no device, no memory, or the programs cannot be stored.

    Examples:
        >>> layer = ConvTranspose(np.ones((5, 7, 4), np.float32), strides=2)
        >>> run = lambda extent: layer(np.ones((1, 5, extent), np.float32))
        >>> prepare_model(lambda: run(3), lambda: run(9)) >= 1
        True
    """
    called("least", least)
    called("most", most)
    if progress is not None:
        called("progress", progress)
    if device is not None:
        devices_of(device)  # one that there is not is told before the model runs
    (small, windows), (large, more_windows) = _observe(least), _observe(most)
    if windows or more_windows:
        raise RequestError(
            "a layer of the model computes in slabs or windows (memory_limit, output_rows, several devices, or too "
            "little device memory), which cannot be prepared: let the model compute whole layers on one device"
        )
    if not small and not large:
        raise RequestError(
            "tconv_cl computed no layer of the model: the runtime's own operators did, or none was called"
        )
    ranges: dict[tuple[Any, ...], list[_Layer]] = {}
    for layer in small + large:
        ranges.setdefault(layer.key, []).append(layer)
    on, keys = opened(devices_of(device)[0]), {layer.key for layer in small}
    programs = 0
    for key, layers in ranges.items():
        channels = _channels_at(layers[0].problem)
        low = [min(extents) for extents in zip(*(layer.extents for layer in layers))]
        if key not in keys:
            low = [extent if axis == channels else 1 for axis, extent in enumerate(low)]
        for problem, options, algorithm, high in _largest(layers):
            problem.data = c.Shape(len(low), tuple(low))
            options.algorithm = None if algorithm is None else algorithm.encode()
            programs += _prepare(on, problem, c.Shape(len(high), high), options, progress)
    return programs
