# SPDX-License-Identifier: Apache-2.0
"""Computes PyTorch's tensors by the library, with packed weights and resolved requests kept; PyTorch computes the
rest."""

from __future__ import annotations

import ctypes
import functools
import itertools
import logging
import mmap
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from . import _library as c
from . import _request
from ._device import HostDevice, HostLayer, Kept, Request, Resolved, host_device, number_of
from ._host import compute
from ._request import attributes_of
from ._trace import is_traced, tell_fallback
from ._types import number_of as number_of_name

WEIGHTS = 512  # packed weights kept
REQUESTS = 64  # requests kept for each weight: its sets of attributes times shapes of data
SENTENCES = 256  # sentences remembered, so that each is logged only once
LARGE = 4 << 20  # least bytes of an output for which large pages pay
# tconv_type of problem.h. Of the integers torch's own operator takes only these.
TYPES = {torch.float32: 1, torch.float16: 2, torch.bfloat16: 3, torch.float64: 4, torch.int64: 8}
CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}  # by rank
FALLBACKS = ("warn", "error")
FORKED = 0x40  # PF_FORKNOEXEC of a Linux process: it runs the program of its parent

_versions = itertools.count(1)  # of copies of weights
_TwoWords = ctypes.c_uint64 * 2

logger = logging.getLogger("tconv_cl")


class Statistics(NamedTuple):
    """Counts of this process: transposed convolutions by tconv-cl and by torch's own operator, and packed weights."""

    computed: int
    fallbacks: int
    packed: int


class State:
    """The state that all threads share: counters, sentences already logged, and weights by their addresses."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.computed = self.fallbacks = 0
        self.packed = 0  # of weights that are not kept any more
        self.said: Kept[None] = Kept(SENTENCES)
        self.weights: OrderedDict[tuple[Any, ...], Weights] = OrderedDict()  # the most recently used comes last
        self.parent: State | None = None


state = State()


def _after_fork() -> None:
    """Makes a new state: the child lacks the thread that may hold the lock, and cannot release packed weights."""
    global state
    parent, state = state, State()
    state.parent = parent  # never released: that is the parent's task


os.register_at_fork(after_in_child=_after_fork)


def statistics() -> Statistics:
    """The counts of all threads."""
    with state.lock:
        packed = state.packed + sum(weights.packed() for weights in state.weights.values())
        return Statistics(state.computed, state.fallbacks, packed)


class Call(NamedTuple):
    """The attributes of a call, in torch's meaning; lists have one number for each axis."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    output_padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    activation: tuple[Any, ...] = ("none",)
    device: int | None = None
    fallback: str = "warn"
    search: str | None = None


# ---- weights ----


class _Copy(NamedTuple):
    """A contiguous copy of a weight, and the hash of the memory that it was made from."""

    hash: tuple[int, ...]
    weight: Tensor
    version: int


class Weights:
    """A weight at an address: its layers, which pack it again if its elements change, and the requests for it."""

    def __init__(self, weight: Tensor) -> None:
        self.owner = StorageWeakRef(weight.untyped_storage())
        last = sum((extent - 1) * stride for extent, stride in zip(weight.shape, weight.stride()))
        self._bytes = (last + 1) * weight.itemsize
        self._dense: _Copy | None = None
        self.requests: Kept[_Asked] = Kept(REQUESTS)
        self._layers: Kept[HostLayer] = Kept(8)

    def layer(self, device: HostDevice) -> HostLayer:
        return self._layers.get(device, lambda: HostLayer(device, constant_filter=True))

    def dense(self, weight: Tensor) -> tuple[Tensor, int]:
        """The weight, or a contiguous copy, and the version of its elements; 0: not known."""
        if weight.is_contiguous():
            return weight, 0
        if self._bytes > 2 * weight.nbytes:  # mostly other tensors' elements
            return weight.contiguous(), 0
        hashed = self._hash(weight)
        kept = self._dense
        if kept is None or kept.hash != hashed:
            kept = _Copy(hashed, weight.detach().contiguous(), next(_versions))
            if self._hash(weight) != hashed:  # another thread writes it
                return kept.weight, 0
            self._dense = kept
        return kept.weight, kept.version

    def _hash(self, weight: Tensor) -> tuple[int, ...]:
        """The hash of the memory between the first and the last element."""
        hashed = _TwoWords()
        c.library.tconv_hash(weight.data_ptr(), self._bytes, ctypes.byref(hashed))
        return tuple(hashed)

    def packed(self) -> int:
        """How often weights were packed."""
        return sum(layer.counts().filters_packed for layer in self._layers.values())


def _weights(weight: Tensor) -> Weights:
    """The entry of this tensor. The last WEIGHTS entries are kept; a new entry removes those of freed tensors."""
    place = (weight.data_ptr(), weight.shape, weight.stride(), weight.dtype)
    released: list[Weights] = []
    with state.lock:
        kept = state.weights.get(place)
        if kept is not None and not kept.owner.expired():
            state.weights.move_to_end(place)
            return kept
        for gone in [place for place, kept in state.weights.items() if kept.owner.expired()]:
            released.append(state.weights.pop(gone))
        kept = state.weights[place] = Weights(weight)
        while len(state.weights) > WEIGHTS:
            released.append(state.weights.popitem(last=False)[1])
        state.packed += sum(weights.packed() for weights in released)
    del released  # without the lock: releasing objects may take a while
    return kept


def refresh(weight: Tensor) -> None:
    """Releases the packed weights of this tensor."""
    with state.lock:
        places = [place for place in state.weights if place[0] == weight.data_ptr()]
        released = [state.weights.pop(place) for place in places]
        state.packed += sum(weights.packed() for weights in released)
    del released


# ---- calls ----


class _Asked(NamedTuple):
    """A call for data of one shape: the function that runs it, and the output's shape in torch's order of axes."""

    device: HostDevice
    layer: HostLayer
    resolved: Resolved
    shape: tuple[int, ...]


class _Place(NamedTuple):
    """How data or output lie in memory: extents, and element steps in the same order of axes; none: they are dense."""

    shape: tuple[int, ...]
    steps: tuple[int, ...] = ()


def _asked(
    weights: Weights,
    weight: Tensor,
    call: Call,
    data: _Place,
    output_steps: tuple[int, ...],
    type_: int,
    last: bool,
    bias: bool,
    scale: bool,
) -> _Asked:
    device = host_device(number_of(None) if call.device is None else call.device)
    attributes = attributes_of(
        "conv_transpose",
        strides=call.stride,
        pads_begin=call.padding,
        pads_end=call.padding,
        output_padding=call.output_padding,
        dilations=call.dilation,
        groups=call.groups,
        activation=call.activation,
        search=call.search,
        data_format="NXC" if last else "NCX",
    )
    tensors = (_request.Tensor(data.shape, type_, data.steps), _request.Tensor(tuple(weight.shape), type_))
    resolved = device.resolved(Request(attributes, *tensors, bias, scale, residual=False, output_steps=output_steps))
    shape = resolved.output.shape
    if last:
        shape = (shape[0], shape[-1], *shape[1:-1])
    return _Asked(device, weights.layer(device), resolved, shape)


def refusal(data: Tensor, weight: Tensor, bias: Tensor | None) -> str | None:
    """The reason not to ask the library, or None."""
    dtype = data.dtype
    for name, tensor in (("data", data), ("weight", weight), ("bias", bias)):
        if tensor is None:
            continue
        if type(tensor) not in (Tensor, nn.Parameter):
            return f"{name} is a {type(tensor).__name__}"
        if tensor.layout != torch.strided:
            return f"{name} has the layout {tensor.layout}"
        if not tensor.is_cpu:
            return f"{name} is on the device {tensor.device}"
        if tensor.dtype not in TYPES:
            return f"{name} has elements of type {tensor.dtype}"
        if tensor.dtype != dtype:
            return f"data has elements of type {dtype}, {name} of {tensor.dtype}"
    if data.dim() != weight.dim():
        return f"data has {data.dim()} axes, weight {weight.dim()}"
    if weight.numel() == 0:
        return "weight has no elements"
    if bias is not None and bias.dim() != 1:
        return f"bias has {bias.dim()} axes"
    return None


def memory_format(data: Tensor) -> torch.memory_format:
    """The memory format of the output: that of the data, also if these are a part of a larger tensor."""
    last = CHANNELS_LAST.get(data.dim())
    if last is None or data.is_contiguous():
        return torch.contiguous_format
    if data.is_contiguous(memory_format=last) or (data.shape[1] > 1 and data.stride(1) == 1):
        return last
    return torch.contiguous_format


def _channels_last(numbers: Sequence[int]) -> tuple[int, ...]:
    return (numbers[0], *numbers[2:], numbers[1])


def place_of(tensor: Tensor, form: torch.memory_format) -> _Place | None:
    """Where the library finds the elements; None if it does not take them: some share a place."""
    order = tuple if form == torch.contiguous_format else _channels_last
    shape = order(tensor.shape)
    if tensor.is_contiguous(memory_format=form):
        return _Place(shape)
    steps = tuple(step if extent > 1 else 1 for step, extent in zip(order(tensor.stride()), shape))
    return _Place(shape, steps) if min(steps) > 0 else None


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def empty(shape: tuple[int, ...], dtype: torch.dtype, form: torch.memory_format) -> Tensor:
    """As torch.empty, but with large pages for a large tensor in new memory: its first use takes longer than a
    convolution."""
    tensor = torch.empty(shape, dtype=dtype, memory_format=form)
    if tensor.nbytes >= LARGE and hasattr(mmap, "MADV_HUGEPAGE"):
        begin = -(-tensor.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        size = (tensor.data_ptr() + tensor.nbytes - begin) // mmap.PAGESIZE * mmap.PAGESIZE
        middle = begin + size // 2 // mmap.PAGESIZE * mmap.PAGESIZE
        has_page = ctypes.c_ubyte(0)
        _libc().mincore(ctypes.c_void_p(middle), ctypes.c_size_t(mmap.PAGESIZE), ctypes.byref(has_page))
        if not has_page.value & 1:
            # It is advice: a system may ignore it.
            _libc().madvise(ctypes.c_void_p(begin), ctypes.c_size_t(size), mmap.MADV_HUGEPAGE)
    return tensor


def run(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    call: Call,
    scale: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Computes by the library, on its device, into `out` if it can, else into a new tensor. Raises if the library
    refuses."""
    weight = weight.resolve_neg() if weight.is_neg() else weight
    weights = _weights(weight)
    output_steps: tuple[int, ...] = ()
    form = memory_format(data if out is None else out)
    if out is not None:
        target = place_of(out, form) if _is_plain(out) else None
        if target is None:
            out, form = None, memory_format(data)
        else:
            output_steps = target.steps
    last = form != torch.contiguous_format
    data = data.resolve_neg() if data.is_neg() else data
    place = place_of(data, form)
    if place is None:
        data = data.contiguous(memory_format=form)
        place = place_of(data, form)
    key = (call, last, place, output_steps, bias is not None, scale is not None)
    asked = weights.requests.get(
        key,
        lambda: _asked(
            weights, weight, call, place, output_steps, TYPES[data.dtype], last, bias is not None, scale is not None
        ),
    )
    for name, tensor in (("bias", bias), ("scale", scale)):
        if tensor is not None and tensor.shape[0] != asked.resolved.channels:
            raise ValueError(f"{name} has {tensor.shape[0]} elements: {asked.resolved.channels} are needed")
    if bias is not None:
        bias = bias.resolve_neg().contiguous()
    output = empty(asked.shape, data.dtype, form) if out is None else out
    if not asked.resolved.empty:
        filter_, version = weights.dense(weight)
        arrays = c.Arrays(
            0,
            data.data_ptr(),
            filter_.data_ptr(),
            output.data_ptr(),
            None if bias is None else bias.data_ptr(),
            None if scale is None else scale.data_ptr(),
            filter_version=version,
        )
        if out is not None:
            torch.autograd.graph.increment_version(out)  # so that autograd finds what it saved before changed
        compute(asked.device, asked.layer, asked.resolved, arrays, threads=_threads(asked.resolved.macs))
    return output


@functools.cache
def _openmp() -> tuple[Any, Any]:
    """PyTorch's own threads for `compute`, if OpenMP makes them. They wait awake after each of its operators."""
    nothing = (None, None)
    if sys.platform != "linux" or "ATen parallel backend: OpenMP" not in torch.__config__.parallel_info():
        return nothing
    try:
        if int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[6]) & FORKED:
            return nothing  # threads that the parent had would be waited for
        # As the linker finds it for PyTorch: in the whole process, else in what torch is linked with.
        library = _libc() if hasattr(_libc(), "GOMP_parallel") else ctypes.CDLL(torch._C.__file__)
        return c.library.tconv_on_openmp, ctypes.cast(library.GOMP_parallel, ctypes.c_void_p)
    except (OSError, AttributeError):
        return nothing


def _threads(macs: int) -> tuple[Any, Any]:
    """What `compute` takes, for a layer of so many multiply-adds: nothing if waking the threads takes longer than they
    would delay it, in a forked child, and while somebody traces, who expects events in this thread.

    A thread that waits awake takes half of a core, so the layer up to twice its time. Estimates: 25 multiply-adds in a
    nanosecond on each core; 20 us for waking, and 2.5 us more for each thread.
    """
    count = torch.get_num_threads()
    if count < 2 or macs < 25 * count * (20_000 + 2_500 * count) or state.parent is not None or is_traced():
        return None, None
    return _openmp()


def _is_plain(out: Tensor) -> bool:
    """Whether the elements of `out` are those in its memory."""
    return type(out) in (Tensor, nn.Parameter) and out.layout == torch.strided and out.is_cpu and not out.is_neg()


def compute_or(
    own: Callable[[], Tensor],
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    call: Call,
    scale: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The output, by the library or, if it refuses, by `own`, which is torch's operator. It is `out` if the library
    could write into that."""
    reason = refusal(data, weight, bias)
    if reason is None:
        try:
            output = run(data, weight, bias, call, scale, out)
        except (ValueError, RuntimeError, MemoryError) as error:  # tconv_cl.Error is a RuntimeError
            reason = str(error)
    if reason is not None:
        fell_back(weight, reason, call.fallback)
        return own()
    with state.lock:
        state.computed += 1
    return output


def fell_back(weight: Tensor, reason: str, fallback: str) -> None:
    """Counts a fallback and logs its reason, once for each layer. Raises if the caller wants no fallback."""
    layer = f"a transposed convolution with {str(weight.dtype).removeprefix('torch.')} weights {list(weight.shape)}"
    if fallback == "error":
        raise RuntimeError(f"tconv_cl does not compute {layer}: {reason}")
    with state.lock:
        state.fallbacks += 1
    sentence = f"tconv_cl: PyTorch's own operator computes {layer}: {reason}"
    state.said.get(sentence, lambda: logger.warning(sentence))
    tell_fallback("torch", layer, reason)


def device_number(device: int | str | None) -> int | None:
    """The number of an existing device, as the operator takes it. Raises if there is none."""
    if device is None:
        return None
    number = number_of(device) if isinstance(device, str) else _request._integer("device", device, 0, 2**31 - 1)
    host_device(number)
    return number


def search_of(search: str | None) -> str | None:
    if search is not None:
        number_of_name("search", "search", search)
    return search


def fallback_of(fallback: str) -> str:
    if fallback not in FALLBACKS:
        raise ValueError(f'fallback is {fallback!r}: it must be "warn" or "error"')
    return fallback
