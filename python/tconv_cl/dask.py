# SPDX-License-Identifier: Apache-2.0
"""Computes Dask arrays: a task for each slab of output rows, from its input rows, on its worker's device."""

from __future__ import annotations

import re
import sys
import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import numpy as np
from dask.array.chunk import getitem
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from dask.utils import parse_bytes

from ._arrays import Arrays, check
from ._convolution import ConvTranspose, Options
from ._device import Request, Resolved, devices
from ._library import RequestError, RequestTypeError, shown
from ._names import suggesting
from ._request import DEFAULTS, Tensor, attributes_of, resolve, rows_at, window_input
from ._types import type_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["conv_transpose"]


@suggesting(DEFAULTS)
def conv_transpose(
    data: da.Array,
    filter: np.ndarray | da.Array,
    bias: np.ndarray | da.Array | None = None,
    *,
    chunks: str | int | Sequence[int] = "auto",
    memory_limit: int | str | None = None,
    device: int | str | Sequence[int | str] | None = None,
    scale: np.ndarray | da.Array | None = None,
    slope: np.ndarray | da.Array | None = None,
    slope2: np.ndarray | da.Array | None = None,
    residual: np.ndarray | da.Array | None = None,
    **options: Unpack[Options],
) -> da.Array:
    """tconv_cl.conv_transpose for a Dask array: lazy, in tasks that each compute some output rows of some batch items.

    A task reads only the input rows of its output rows (tconv_cl.window_input). Only batch and rows, the outermost
    spatial axis, are divided: the data's other axes are rechunked to one chunk first. Nothing is computed or opened
    here.

    Args:
        data: [N, C, X...], or with the channels last; of any chunks, which must be known.
        filter, bias, scale, slope, slope2: NumPy arrays or Dask arrays. A worker packs the filter once.
        residual: like the output.
        chunks: output rows of a task: a number, or one number for each task. "auto": as many as come from one chunk of
            the data, but no more than go with memory_limit; where not even these fit, fewer batch items, too.
        memory_limit: bytes, or text as "64 MiB", for the data and output of a task. Tasks that chunks makes larger are
            computed in slabs of this size on the device. None: Dask's array.chunk-size; no task is divided again but
            those that the device cannot hold.
        device: as for tconv_cl.conv_transpose, looked up where the task runs; None: the default there, which
            TCONV_CL_DEVICE may name. "worker": for a distributed worker whose name ends with the number i, the device i
            modulo the number of its devices.
        options: the attributes of tconv_cl.conv_transpose.

    Returns:
        A Dask array; its chunks along batch and rows are regular, for zarr, if those of the batch are.

    Raises:
        RequestError: a ValueError: the request cannot be carried out; the sentence says why. Tasks raise errors that
            only a device can find.

    Examples:
        >>> data = da.ones((1, 1, 1000), chunks=100, dtype=np.float32)
        >>> output = conv_transpose(data, np.ones((1, 1, 4), np.float32), strides=2)
        >>> output.shape, output.chunks[2][:2], float(output[0, 0, 500].compute())
        ((1, 1, 2002), (200, 200), 2.0)
    """
    if not isinstance(data, da.Array) or type(data._meta) is not np.ndarray:
        raise RequestTypeError(f"data is a {type(data).__name__}: it must be a Dask array of NumPy arrays")
    if any(np.isnan(extent) for extent in data.shape):
        raise RequestError(f"data has the shape {data.shape}: call its compute_chunk_sizes() first")
    small = {"filter": filter, "bias": bias, "scale": scale, "slope": slope, "slope2": slope2}
    small = {name: _dask_array(name, array) for name, array in small.items()}
    residual = _dask_array("residual", residual)

    attributes = attributes_of(**options)
    request = Request(
        attributes,
        Tensor(data.shape, type_of("data", data.dtype)),
        Tensor(small["filter"].shape, type_of("filter", small["filter"].dtype)),
        small["bias"] is not None,
        scale is not None,
        residual is not None,
    )
    resolved = Resolved(request)
    dtype = check(resolved, Arrays(data, **small, residual=residual))
    division = _Division(resolved, data, chunks, memory_limit)

    data = data.rechunk({axis: -1 for axis in range(1, data.ndim) if axis != division.axis})
    small = {name: array if array is None else array.rechunk(-1) for name, array in small.items()}
    if residual is not None:
        residual = residual.rechunk(division.chunks)
    layer = partial(_Layer, device=device, memory_limit=division.task_limit, options=options)
    token = tokenize(data, *small.values(), residual, division.chunks, device, division.task_limit, options)
    name = f"conv-transpose-{token}"
    graph = {f"conv-transpose-filter-{token}": (layer, *(_only_key(array) for array in small.values()))}
    graph.update(division.tasks(token, data, residual))
    sources = [array for array in (data, *small.values(), residual) if array is not None]
    graph = HighLevelGraph.from_collections(name, graph, dependencies=sources)
    return da.Array(graph, name, division.chunks, meta=np.empty((0,) * data.ndim, dtype))


class _Division:
    """The division of output rows and batch items into tasks."""

    def __init__(self, resolved: Resolved, data: da.Array, chunks: Any, memory_limit: int | str | None) -> None:
        self.geometry = geometry = resolve(resolved.problem)
        self.axis = rows_at(geometry.data_format)
        try:
            limit = parse_bytes(dask.config.get("array.chunk-size") if memory_limit is None else memory_limit)
        except (TypeError, ValueError, AttributeError) as error:
            kind = RequestError if isinstance(error, ValueError) else RequestTypeError
            raise kind(f"memory_limit is {shown(memory_limit)}: write bytes, as 67108864 or '64 MiB'") from None
        if limit < 1:
            raise RequestError(f"memory_limit is {memory_limit}: it must be at least 1")
        items = max(data.chunks[0])
        if isinstance(chunks, str) and chunks == "auto":
            stride = geometry.stride[0]
            while items > 1 and self._rows_within(limit, items) < stride:
                items = (items + 1) // 2
            rows = max(data.chunks[self.axis]) * stride or geometry.output[0]
            rows = min(rows, max(1, self._rows_within(limit, items)))
            chunks = rows // stride * stride or rows  # whole strides: inner tasks are alike and share a plan
        elif isinstance(chunks, np.ndarray):
            chunks = tuple(chunks.tolist()) if chunks.ndim else chunks.item()
        try:
            rows = da.core.normalize_chunks((chunks,), (geometry.output[0],))[0]
        except (TypeError, ValueError, ZeroDivisionError) as error:
            kind = RequestTypeError if isinstance(error, TypeError) else RequestError
            raise kind(f"chunks is {shown(chunks)}: {error}") from None
        if min(rows) < 1:
            raise RequestError(f"chunks is {chunks!r}: a chunk has {min(rows)} output rows, it must have at least 1")
        self.items = max(items, 1)
        batch = tuple(end - begin for _, begin, end in self._batches(data))
        self.chunks = tuple((extent,) for extent in resolved.output.shape)
        self.chunks = (batch, *self.chunks[1 : self.axis], rows, *self.chunks[self.axis + 1 :])
        self.windows = [(end - extent, end) for extent, end in zip(rows, accumulate(rows))]
        larger = self._rows_within(limit, self.items) < max(rows)
        self.task_limit = limit if memory_limit is not None and larger else None

    def tasks(self, token: str, data: da.Array, residual: da.Array | None) -> dict:
        """The graph: tasks for parts of the data's chunks, and tasks that compute from them."""
        graph: dict = {}
        ends = list(accumulate(data.chunks[self.axis]))
        for n, (block, item, item_end) in enumerate(self._batches(data)):
            for row, window in enumerate(self.windows):
                begin, end = window_input(self.geometry, *window)
                parts = []
                from_chunk = min(bisect_right(ends, begin), len(ends) - 1)  # one at least, of empty data too
                for chunk in range(from_chunk, max(from_chunk, bisect_right(ends, end - 1)) + 1):
                    first = ends[chunk] - data.chunks[self.axis][chunk]
                    index = [slice(None)] * data.ndim
                    index[0] = slice(item, item_end)
                    index[self.axis] = slice(max(begin - first, 0), min(end, ends[chunk]) - first)
                    part = (f"conv-transpose-rows-{token}", n, row, chunk)
                    graph[part] = (getitem, (data.name, *self._place(data.ndim, block, chunk)), tuple(index))
                    parts.append(part)
                place = self._place(data.ndim, n, row)
                compute = partial(_slab, axis=self.axis, output_rows=window, data_rows=data.shape[self.axis])
                beside = None if residual is None else (residual.name, *place)
                graph[(f"conv-transpose-{token}", *place)] = (compute, f"conv-transpose-filter-{token}", parts, beside)
        return graph

    def _batches(self, data: da.Array) -> Iterator[tuple[int, int, int]]:
        """For each chunk of the output's batch: the data's chunk, and its items."""
        for block, items in enumerate(data.chunks[0]):
            for begin in range(0, max(items, 1), self.items):
                yield block, begin, min(begin + self.items, items)

    def _place(self, axes: int, batch: int, row: int) -> list[int]:
        place = [0] * axes
        place[0], place[self.axis] = batch, row
        return place

    def _rows_within(self, limit: int, items: int) -> int:
        """The most output rows of `items` batch items that fit into `limit` bytes with their input rows."""
        g = self.geometry
        share = max(g.batch, 1) / max(items, 1)
        data, output = g.data_bytes / max(g.input[0], 1) / share, g.output_bytes / g.output[0] / share
        if data * g.input[0] + output * g.output[0] <= limit:
            return g.output[0]
        beside = g.dilation[0] * (g.kernel[0] - 1) // g.stride[0] + 2
        return max(0, int((limit - beside * data) / (output + data / g.stride[0])))


class _Layer:
    """The small arrays and the attributes of a call. It goes to each worker once, and packs the filter there."""

    def __init__(self, *arrays: np.ndarray | None, **options: Any) -> None:
        self._arrays = arrays
        self._options = options
        self._lock = threading.Lock()
        self._convolution: ConvTranspose | None = None

    def __reduce__(self) -> tuple:
        return partial(_Layer, **self._options), self._arrays

    def __sizeof__(self) -> int:  # Dask's measure of the cost of sending it
        return sum(0 if array is None else array.nbytes for array in self._arrays)

    def convolution(self) -> ConvTranspose:
        """The layer in this process, on its device."""
        with self._lock:
            if self._convolution is None:
                self._convolution = self._made()
            return self._convolution

    def _made(self) -> ConvTranspose:
        filter, bias, scale, slope, slope2 = self._arrays
        device, memory_limit, options = (self._options[name] for name in ("device", "memory_limit", "options"))
        return ConvTranspose(
            filter,
            bias,
            scale=scale,
            slope=slope,
            slope2=slope2,
            device=_worker_device() if device == "worker" else device,
            memory_limit=memory_limit,
            **options,
        )


def _slab(
    layer: _Layer,
    parts: list[np.ndarray],
    residual: np.ndarray | None,
    *,
    axis: int,
    output_rows: tuple[int, int],
    data_rows: int,
) -> np.ndarray:
    """One task: the output rows, from the parts that hold their input rows."""
    data = parts[0] if len(parts) == 1 else np.concatenate(parts, axis)
    return layer.convolution()(data, residual=residual, output_rows=output_rows, data_rows=data_rows)


def _worker_device() -> int:
    """The device of the distributed worker that runs this task, from the number at the end of the worker's name."""
    worker = None
    with suppress(KeyError, ValueError):
        worker = sys.modules["distributed"].get_worker()
    if worker is None:
        raise RequestError('device is "worker", but no distributed worker runs this task')
    name = str(worker.name)
    number = re.search(r"\d+$", name)
    if number is None or "://" in name:
        raise RequestError(f'device is "worker", but the worker\'s name, {name}, does not end with its number')
    return int(number[0]) % max(1, len(devices()))


def _dask_array(name: str, array: Any) -> da.Array | None:
    if array is None or isinstance(array, da.Array):
        return array
    if not isinstance(array, np.ndarray):
        raise RequestTypeError(f"{name} is a {type(array).__name__}: it must be a NumPy or a Dask array")
    return da.from_array(array, chunks=-1)


def _only_key(array: da.Array | None) -> tuple | None:
    return None if array is None else (array.name, *(0 for _ in array.shape))
