# SPDX-License-Identifier: Apache-2.0
"""Streams: a layer with one spatial axis whose input arrives in chunks."""

from __future__ import annotations

import math
from ctypes import byref, c_int64
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from . import _host, _opencl
from . import _library as c
from ._arrays import Arrays, address_of, check_channels, check_output, numpy_array, of_type
from ._convolution import Array, Options, devices_of
from ._device import Device, Layer, Owner, Request, Resolved, context_device, make, opened, wait_list
from ._library import RequestError, RequestTypeError, call, library
from ._names import suggesting
from ._opencl import FILTER_VERSION
from ._request import DEFAULTS, NXC, XIO, Attributes, Tensor, attributes_among, forward, integer, rows_at
from ._request import with_rows
from ._types import dtype_of, element_type, type_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack  # typing has it since 3.11

    from ._convolution import Axes

_LONGEST = 1 << 40  # columns that are tried for a problem that has an output


class Stream(Generic[Array]):
    """A layer with one spatial axis whose input arrives in chunks, such as the frames of a sound.

    `push` returns the output columns that no later input changes, `flush` the rest, and `reset` starts anew. What
    pushes and the flush return has the bits of one call on the whole input, however it was divided: of conv_transpose
    (or upsample_conv, conv_pixel_shuffle) with `algorithm=stream.algorithm` on the same device. docs/streams.md says
    what else holds, and what a push costs.

    Args:
        filter, bias: arrays as for conv_transpose; copied, as is `history`. All arrays of a stream are of one kind,
            NumPy's or pyopencl's; pyopencl arrays are used in place and must not change.
        upsample: factors with which the layer is upsample_conv instead, and `filter` the convolution's. With 1 it is an
            ordinary convolution of stride 1; `pads_begin=dilations * (taps - 1)` then makes it causal.
        pixel_shuffle, shuffle_order: the factors and `order` of conv_pixel_shuffle likewise.
        history: what is before the first column: "zeros", the layer's own pad, or an array like a chunk: as if it had
            been pushed and its outputs dropped.
        columns: how many a usual chunk has: the algorithm is chosen for it; 0: one that suits chunks of 1 to 100.
        dtype: the data's type, if it is not the filter's, such as float32 beside weights of float16.
        device: one device, as for conv_transpose; of NumPy arrays only.
        scale, slope, slope2 and the others: as for conv_transpose, except output_shape, which a stream cannot have.

    A stream keeps `stream.history_columns` columns of input, and its layer the 128 plans used last, of which each
    length of chunk needs one or two: memory does not grow with the number of pushes. Two threads must not use one
    stream at the same time; streams that `share` weights may be used side by side.

    Raises: as conv_transpose. After an exception the stream is as it was before the call.

    Examples:
        A layer of stride 2 and kernel 4, whose chunks have 3, 0 and 2 columns:

        >>> x = np.arange(5, dtype=np.float32).reshape(1, 1, 5)
        >>> w = np.ones((1, 1, 4), np.float32)
        >>> stream = Stream(w, strides=2)
        >>> [stream.push(x[:, :, a:b]).tolist() for a, b in ((0, 3), (3, 3), (3, 5))]
        [[[[0.0, 0.0, 1.0, 1.0, 3.0, 3.0]]], [[[]]], [[[5.0, 5.0, 7.0, 7.0]]]]
        >>> stream.flush()
        array([[[4., 4.]]], dtype=float32)
        >>> stream.reset()
        >>> parts = [stream.push(x), stream.flush()]
        >>> whole = conv_transpose(x, w, strides=2, algorithm=stream.algorithm)
        >>> np.array_equal(np.concatenate(parts, axis=2), whole)
        True
    """

    @suggesting(DEFAULTS, name="Stream")
    def __init__(
        self,
        filter: Array,
        bias: Array | None = None,
        *,
        scale: Array | None = None,
        slope: Array | None = None,
        slope2: Array | None = None,
        upsample: Axes | None = None,
        pixel_shuffle: Axes | None = None,
        shuffle_order: str = "CRD",
        history: str | Array = "zeros",
        columns: int = 0,
        dtype: Any = None,
        device: int | str | Sequence[int | str] | None = None,
        **options: Unpack[Options],
    ) -> None:
        factors = {"upsample": upsample, "pixel_shuffle": pixel_shuffle, "shuffle_order": shuffle_order}
        self._attributes = attributes_among(forward({**DEFAULTS, **options, **factors}))
        if self._attributes.output_shape != ():
            raise RequestError("output_shape is given, but the outputs of a stream follow from its inputs")
        self._columns = integer("columns", columns, 0)
        self._opencl = _opencl.is_array(filter)
        self._arrays = self._weights(filter, bias, scale, slope, slope2)
        self._type = type_of("filter", self._arrays.filter.dtype) if dtype is None else element_type("dtype", dtype)
        if isinstance(history, str) and history != "zeros":
            raise RequestError(f'history is {history!r}: it must be "zeros", or an array of columns')
        self._history: Any = None if isinstance(history, str) else history
        if self._opencl and device is not None:
            raise RequestError("device is for NumPy arrays: a pyopencl array stays where its queue is")
        self._device: Device | None = None
        if not self._opencl:
            numbers = devices_of(device)
            if len(numbers) != 1:
                raise RequestError(f"device names {len(numbers)} devices: the outputs of a stream come from one")
            self._device = opened(numbers[0])
        self._layer: Layer | None = None
        self._algorithm: bytes | None = None
        self._handle: int | None = None
        self._owner: Owner | None = None
        self._resolved: Resolved = self._resolve(1)
        self._begun = self._history is None
        check_channels(self._resolved, self._arrays)
        if self._history is not None:
            kept = self._chunk("history", self._history)
            self._history = kept if self._opencl else kept.copy()  # for every reset

    @property
    def algorithm(self) -> str:
        """The algorithm, as `algorithm=` takes it, with what decides about the order of additions. A stream of
        pyopencl arrays has it once it was pushed to."""
        if self._algorithm is None:
            if self._device is None:
                raise RequestError("algorithm is not known yet: the first push tells the stream its queue")
            self._make(1)
        assert self._algorithm is not None
        return self._algorithm.decode()

    @property
    def history_columns(self) -> int:
        """How many columns of the input the stream keeps."""
        return int(self._info().history)

    @property
    def latency(self) -> int:
        """After T input columns, `T * stride - latency` output columns have been returned."""
        return int(self._info().lag)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the stream has now, without weights."""
        return int(self._info().bytes)

    @suggesting(maker="Stream")
    def push(self, chunk: Array, *, residual: Array | None = None, out: Array | None = None) -> Array:
        """Takes the next columns of the input, any number of them, and returns the output columns that are final.

        Args:
            chunk: [N, C, columns], with data_format="NXC" [N, columns, C]; N is the same in all chunks.
            residual: like the output.
            out: receives the output, as for conv_transpose.
        """
        given = self._chunk("chunk", chunk)
        batch, columns = int(given.shape[0]), int(given.shape[self._axis])
        output: Array = self._compute(batch, columns, given, residual, out)
        return output

    @suggesting(maker="Stream")
    def flush(self, *, residual: Array | None = None, out: Array | None = None, queue: Any = None) -> Array:
        """Returns the output columns that are left when no more input comes. Then only reset is allowed. `queue`: of
        pyopencl arrays, if it is not that of the last push."""
        output: Array = self._compute(None, c.STREAM_FLUSH, None, residual, out, queue)
        return output

    def reset(self) -> None:
        """Starts anew, with the history that the stream was made with."""
        if self._handle is not None:
            call("tconv_stream_reset", self._handle, 0, None, None)
        self._begun = self._history is None

    def share(self) -> Stream[Array]:
        """Another stream, at its begin, with the same packed weights and algorithm. Of pyopencl arrays, share a stream
        that was pushed to: it then knows its device."""
        if self._device is not None and self._handle is None:
            self._make(1)
        other: Stream[Array] = Stream.__new__(Stream)
        other.__dict__.update(self.__dict__)
        other._handle = other._owner = None
        other._begun = self._history is None
        return other

    def __repr__(self) -> str:
        filter = self._arrays.filter
        return f"Stream(filter={filter.dtype}{list(filter.shape)}, columns={self._columns})"

    # ---- weights and problems ----

    @property
    def _nxc(self) -> bool:
        return bool(self._attributes.data_format == NXC)

    @property
    def _axis(self) -> int:
        """The columns' index in the shapes of data and output."""
        return rows_at(self._attributes.data_format)

    def _weights(self, filter: Any, bias: Any, scale: Any, slope: Any, slope2: Any) -> Arrays:
        arrays = Arrays(None, filter, bias, scale, slope, slope2)
        if self._opencl:
            for name, array in arrays._asdict().items():
                if array is not None and not (_opencl.is_array(array) and array.flags.c_contiguous):
                    raise RequestError(f"{name} must be a C-contiguous pyopencl array, as filter is a pyopencl array")
            return arrays
        own = _host.weights_of(arrays)
        return Arrays(*(None if array is None else np.array(array, order="C") for array in own))

    def _data_shape(self, batch: int, columns: int) -> tuple[int, ...]:
        channels = _channels(self._attributes, self._arrays.filter.shape)
        return (batch, columns, channels) if self._nxc else (batch, channels, columns)

    def _resolve(self, batch: int, residual: bool = False) -> Resolved:
        """The request for a whole input that has an output."""
        arrays, columns = self._arrays, 16
        filter = Tensor(arrays.filter.shape, type_of("filter", arrays.filter.dtype))
        while True:
            data = Tensor(self._data_shape(batch, columns), self._type)
            given = (arrays.bias is not None, arrays.scale is not None, residual)
            try:
                return Resolved(Request(self._attributes, data, filter, *given))
            except RequestError:
                columns *= 16
                if columns > _LONGEST:
                    raise

    def _make(self, batch: int, residual: bool = False) -> None:
        """Makes the stream of the library for this batch, with the algorithm of the one before."""
        assert self._device is not None
        resolved = self._resolve(batch, residual)
        if self._layer is None:
            self._layer = Layer([self._device], c.FILTER_WATCHED)
        if self._algorithm is not None:
            resolved.options.algorithm = self._algorithm
        owner = Owner()
        options = c.StreamOptions(columns=self._columns)
        request = (self._layer.handle, byref(resolved.problem), byref(resolved.options), byref(options))
        with resolved.listening():
            self._handle = make(owner, "tconv_stream_release", "tconv_stream_create", *request)
        self._owner, self._resolved = owner, resolved
        self._algorithm = library.tconv_stream_algorithm(self._handle)

    def _info(self) -> Any:
        if self._handle is None:
            if self._device is None:
                raise RequestError("the stream has no device yet: the first push tells it its queue")
            self._make(1)
        info = c.StreamInfo()
        call("tconv_stream_describe", self._handle, byref(info))
        return info

    # ---- chunks ----

    def _chunk(self, name: str, chunk: Any) -> Any:
        """Columns as the library takes them; their shape and type are checked."""
        if _opencl.is_array(chunk) != self._opencl:
            kind = "a pyopencl" if self._opencl else "a NumPy"
            raise RequestTypeError(f"{name} is a {type(chunk).__name__}: it must be {kind} array, as filter is one")
        dtype = dtype_of(self._type)
        if not self._opencl:
            chunk = of_type(chunk, numpy_array(name, chunk), dtype)
        expected = self._data_shape(1, 0)
        axis = 2 if self._nxc else 1
        if chunk.ndim != 3 or chunk.shape[axis] != expected[axis]:
            shape = "[N, columns, C]" if self._nxc else "[N, C, columns]"
            raise RequestError(
                f"{name} has shape {tuple(chunk.shape)}: it must be {shape} with {expected[axis]} channels"
            )
        if type_of(name, chunk.dtype) != self._type:
            raise RequestError(f"{name} has elements of type {chunk.dtype}: it must have {dtype}")
        if self._opencl and not chunk.flags.c_contiguous:
            raise RequestError(f"{name} is not C-contiguous, and pyopencl arrays are not copied: make it so first")
        return chunk if self._opencl else np.ascontiguousarray(chunk)

    def _ready(self, batch: int | None, residual: bool, queue: Any) -> None:
        """Makes the stream of the library ready for a chunk of this batch; None: of the one before."""
        if self._opencl and queue is not None:
            device = context_device(queue.context.int_ptr, queue.device.int_ptr)
            if self._device is not None and device is not self._device:
                raise RequestError("the queue is of another context or device than those of the pushes before")
            self._device = device
        if self._device is None:
            raise RequestError("the stream has no queue yet: push a chunk first")
        has = int(self._resolved.problem.data.dim[0])
        options = self._resolved.options
        if batch is None:
            batch = has if self._history is None or self._begun else int(self._history.shape[0])
        pushed = 0 if self._handle is None else self._info().pushed
        if pushed > 0 and self._begun and batch != has:
            raise RequestError(f"chunk has batch {batch}: it must be {has}, as that of the chunks before")
        if pushed > 0 and self._begun and residual != bool(options.epilogue.residual):
            raise RequestError("a residual must be given to all pushes of a stream, or to none")
        if self._handle is None or batch != has or residual != bool(options.epilogue.residual):
            self._make(batch, residual)
            self._begun = self._history is None
        if not self._begun:
            columns = self._history
            if columns.shape[0] != batch:
                raise RequestError(f"history has batch {columns.shape[0]}, but the chunk {batch}: they must be equal")
            self._keep_history(columns, queue)
            self._begun = True

    def _keep_history(self, columns: Any, queue: Any) -> None:
        count = int(columns.shape[self._axis])
        if self._opencl:
            place = _opencl.place(columns)
            events, waits = wait_list([event.int_ptr for event in columns.events])
            run = c.Run(queue=queue.int_ptr, wait_count=events, wait=waits)
            call("tconv_stream_reset", self._handle, count, byref(place), byref(run))
        else:
            host = c.Tensor(host=address_of(columns))
            call("tconv_stream_reset", self._handle, count, byref(host), None)

    def _compute(self, batch: int | None, columns: int, chunk: Any, residual: Any, out: Any, queue: Any = None) -> Any:
        if self._opencl:
            queue = chunk.queue if chunk is not None else queue if queue is not None else getattr(self, "_queue", None)
            if queue is None:
                raise RequestError("the chunk has no queue: give it one with chunk.with_queue(queue)")
            self._queue = queue
        given = out
        if not self._opencl:
            residual = _host.other_array("residual", residual, dtype_of(self._resolved.output.type))
            out = _host.out_array(out, {"chunk": chunk, "residual": residual})
        self._ready(batch, residual is not None, queue)
        count = int(library.tconv_stream_outputs(self._handle, c_int64(columns)))
        shape = with_rows(self._resolved.output.shape, self._axis, count)
        dtype = check_output(self._resolved, residual, out, shape)
        if self._opencl:
            return self._enqueue(columns, chunk, residual, out, shape, dtype, queue)
        output = self._run(columns, chunk, residual, out, shape, dtype)
        return output if given is None else given

    def _run(
        self, columns: int, chunk: Any, residual: Any, out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Any:
        if residual is not None:
            residual = np.ascontiguousarray(residual)
        output = _host.empty(shape, dtype) if out is None else np.ascontiguousarray(out)
        arrays = self._arrays._replace(data=chunk, residual=residual, out=output)
        tensors = _host.tensors_of(arrays, FILTER_VERSION)
        self._advance(columns, tensors, None)
        if out is not None and output is not out:
            out[...] = output
        return output

    def _advance(self, columns: int, tensors: Any, how: Any) -> None:
        """Calls the library with a chunk, or for the rest."""
        with self._resolved.listening():
            if columns == c.STREAM_FLUSH:
                call("tconv_stream_flush", self._handle, tensors, how)
            else:
                call("tconv_stream_push", self._handle, columns, tensors, how)

    def _enqueue(
        self,
        columns: int,
        chunk: Any,
        residual: Any,
        out: Any,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        queue: Any,
    ) -> Any:
        import pyopencl.array

        if out is None:
            out = pyopencl.array.empty(queue, shape, dtype)
        arrays = self._arrays._replace(data=chunk, residual=residual, out=out)
        for name, array in arrays._asdict().items():
            if array is not None and not array.flags.c_contiguous:
                raise RequestError(f"{name} is not C-contiguous, and pyopencl arrays are not copied")
        event = _opencl.enqueue(arrays, queue, FILTER_VERSION, lambda *how: self._advance(columns, *how))
        if event is not None and chunk is not None:
            chunk.add_event(event)  # it is read until then
        return out


def _channels(attributes: Attributes, filter: tuple[int, ...]) -> int:
    """The channels of the data that a filter takes, all groups together."""
    groups = attributes.groups or 1
    if attributes.operation is not None:  # [G*CO, CI, K] or [K, CI, G*CO]
        return groups * int(filter[1]) if len(filter) > 1 else 0
    if attributes.is_oneapi:
        return int(filter[-1] if attributes.filter_format == XIO else filter[0]) if filter else 0
    return math.prod(filter[: max(len(filter) - 2, 1)]) if filter else 0
