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
from collections.abc import Callable, Hashable, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from .. import _library as c
from .. import _request
from .._callbacks import raise_kept, was_kept
from .._device import Device, Kept, Layer, Layers, Request, Resolved, number_of, opened
from .._host import compute
from .._request import DEFAULTS, attributes_among, integer
from .._trace import is_followed, tell_fallback

WEIGHTS = 512  # packed weights kept
FREED_BYTES = 256 << 20  # of weights that do not exist any more, whose packed elements are kept
FREED_ALIKE = 16  # such weights of one shape
REQUESTS = 64  # requests kept for each weight: its sets of attributes times shapes of data
SENTENCES = 256  # sentences remembered, so that each is logged only once
LARGE = 4 << 20  # least bytes of an output for which large pages pay
# tconv_type of problem.h. Of the integers torch's own operator takes only these.
TYPES = {torch.float32: 1, torch.float16: 2, torch.bfloat16: 3, torch.float64: 4, torch.int64: 8}
CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}  # by rank
TENSORS = (Tensor, nn.Parameter)  # of exactly these classes
FORKED = 0x40  # PF_FORKNOEXEC of a Linux process: it runs the program of its parent

_versions = itertools.count(1)  # of copies of weights
_TwoWords = ctypes.c_uint64 * 2

logger = logging.getLogger("tconv_cl")


class Statistics(NamedTuple):
    """Counts of this process: layers by tconv-cl and by torch's own operators, and packed weights."""

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
        self.weights: dict[tuple[Any, ...], Weights] = {}
        self.freed: dict[tuple[Any, ...], Weights] = {}  # by `Weights.content`; the latest are at the end
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
        kept = (*state.weights.values(), *state.freed.values())
        packed = state.packed + sum(weights.packed() for weights in kept)
        return Statistics(state.computed, state.fallbacks, packed)


# What a call computes, and the operation of the library's that does; none: by the attributes and shapes.
TRANSPOSED = "transposed convolution"
UPSAMPLED = "nearest upsampling and convolution"  # `stride` has the factors, the rest is the convolution's
SHUFFLED = "convolution and pixel shuffle"  # likewise
OPERATIONS = {TRANSPOSED: None, UPSAMPLED: _request.UPSAMPLE_CONV, SHUFFLED: _request.SHUFFLES["CRD"]}


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
    math: str = "exact"
    form: str = TRANSPOSED
    padding_end: tuple[int, ...] | None = None  # None: as `padding`


Slopes = tuple[Tensor, Tensor]  # of the activation snakebeta: slope and slope2, contiguous, in the data's type


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
        self.bytes = (last + 1) * weight.itemsize
        self._spread = self.bytes > 2 * weight.nbytes  # it lies between other tensors' elements
        self.form = weight.shape, weight.stride(), weight.dtype
        # Only for finding this again, for a tensor with the same elements: the layers hash the elements at each run.
        self.content = None if self._spread else (self._hash(weight), *self.form)
        self._dense: _Copy | None = None
        self.was_used = True  # since it was last considered for removal
        self.requests: dict[Hashable, _Asked] = {}
        self._layers = Layers()

    def keep(self, key: Hashable, asked: _Asked) -> None:
        with state.lock:
            self.requests[key] = asked
            if len(self.requests) > REQUESTS:
                del self.requests[next(iter(self.requests))]

    def layer(self, device: Device) -> Layer:
        return self._layers.on([device])

    def dense(self, weight: Tensor) -> tuple[Tensor, int]:
        """The weight, or a contiguous copy, and the version of its elements; 0: not known."""
        if weight.is_contiguous():
            return weight, 0
        if self._spread:
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
        c.library.tconv_hash(weight.data_ptr(), self.bytes, ctypes.byref(hashed))
        return tuple(hashed)

    def packed(self) -> int:
        """How often weights were packed."""
        return self._layers.packed()


def _place_of_weight(weight: Tensor) -> tuple[Any, ...]:
    return weight.data_ptr(), weight.shape, weight.stride(), weight.dtype


def _known(weight: Tensor) -> Weights | None:
    """The entry of this tensor, if it has one. Takes no lock."""
    kept = state.weights.get(_place_of_weight(weight))
    if kept is None or kept.owner.expired():
        return None
    kept.was_used = True
    return kept


def _new_weights(weight: Tensor) -> Weights:
    """The entry of a weight at a new address. A weight that is computed at each call (torch.nn.utils.weight_norm) gets
    the entry of the freed tensor with the same elements; all else a new one."""
    place, made = _place_of_weight(weight), Weights(weight)
    with state.lock:
        released = _free_expired()
        kept = state.weights.get(place)  # another thread's, if that came first
        if kept is None:
            kept = state.weights[place] = _freed_like(made) or made
            kept.owner, kept.content = made.owner, made.content
        released += _beyond_limits(kept)
        state.packed += sum(weights.packed() for weights in released)
    del released  # without the lock: releasing objects may take a while
    return kept


def _free_expired() -> list[Weights]:
    """Under the lock: moves the entries of tensors that do not exist any more. Returns those that are not kept."""
    released = []
    for place in [place for place, kept in state.weights.items() if kept.owner.expired()]:
        gone = state.weights.pop(place)
        replaced = gone if gone.content is None else state.freed.pop(gone.content, None)
        if gone.content is not None:
            state.freed[gone.content] = gone
        if replaced is not None:
            released.append(replaced)
    return released


def _freed_like(made: Weights) -> Weights | None:
    """Under the lock: takes an entry with the same elements, else, beyond FREED_ALIKE of this shape, the oldest (its
    plans are reusable; it packs again)."""
    if made.content in state.freed:
        return state.freed.pop(made.content)
    alike = [content for content, freed in state.freed.items() if freed.form == made.form]
    return state.freed.pop(alike[0]) if len(alike) >= FREED_ALIKE else None


def _beyond_limits(newest: Weights) -> list[Weights]:
    """Under the lock: takes out the oldest entries that were not used lately."""
    released = []
    while len(state.weights) > WEIGHTS:
        oldest = next(iter(state.weights))
        one = state.weights.pop(oldest)
        if one is newest or one.was_used:
            one.was_used = False
            state.weights[oldest] = one  # passed over once: it is the newest now
        else:
            released.append(one)
    size = sum(freed.bytes for freed in state.freed.values())
    while size > FREED_BYTES:
        released.append(state.freed.pop(next(iter(state.freed))))
        size -= released[-1].bytes
    return released


def refresh(weight: Tensor) -> None:
    """Releases the packed weights of this tensor, and of tensors that do not exist any more."""
    with state.lock:
        released = [*_free_expired(), *_taken_out(weight), *state.freed.values()]
        state.freed.clear()
        state.packed += sum(weights.packed() for weights in released)
    del released


def _taken_out(weight: Tensor) -> list[Weights]:
    """Under the lock: takes out the entries of a tensor."""
    return [state.weights.pop(place) for place in list(state.weights) if place[0] == weight.data_ptr()]


def dense(weight: Tensor) -> Tensor:
    """The weight, or the contiguous copy that is kept of it."""
    return (_known(weight) or _new_weights(weight)).dense(weight)[0]


# ---- calls ----


class _Place(NamedTuple):
    """How data or output lie in memory: extents, and element steps in the same order of axes; none: they are dense."""

    shape: tuple[int, ...]
    steps: tuple[int, ...] = ()


class _Asked(NamedTuple):
    """A call for data of one shape and place: what runs it, and how its tensors lie."""

    layer: Layer
    resolved: Resolved
    form: torch.memory_format  # of the data and of a new output
    gathers: bool  # the data must be copied: the library does not take them where they lie
    writes: bool  # the library writes into `out`; else the output is new
    shape: tuple[int, ...]  # of the output, in torch's order of axes
    steps: tuple[int, ...]  # of a new output
    is_simple: bool  # `again` can run it
    channels: torch.Size  # the shape of bias and scale
    references: tuple[Any, Any, Any]  # what tconv_layer_run takes: layer, problem, options
    had_pages: dict[int, int]  # an output's address that had pages: for how many calls not to ask again


def _asked(
    weights: Weights,
    weight: Tensor,
    call: Call,
    data: Tensor,
    bias: bool,
    scale: bool,
    out: Tensor | None,
    residual: bool,
) -> _Asked:
    device = opened(number_of(None) if call.device is None else call.device)
    form = memory_format(data if out is None else out)
    target = place_of(out, form) if out is not None and _is_plain(out) else None
    if out is not None and target is None:
        form = memory_format(data)
    last = form != torch.contiguous_format
    place = place_of(data, form)
    gathers = place is None
    if place is None:
        place = _Place(_channels_last(data.shape) if last else tuple(data.shape))
    attributes = attributes_among(
        {
            **DEFAULTS,
            "strides": call.stride,
            "pads_begin": call.padding,
            "pads_end": call.padding if call.padding_end is None else call.padding_end,
            "output_padding": call.output_padding,
            "dilations": call.dilation,
            "groups": call.groups,
            "activation": call.activation,
            "search": call.search,
            "math": call.math,
            "data_format": "NXC" if last else "NCX",
            "operation": OPERATIONS[call.form],
        }
    )
    type_ = TYPES[data.dtype]
    tensors = (_request.Tensor(place.shape, type_, place.steps), _request.Tensor(tuple(weight.shape), type_))
    output_steps = () if target is None else target.steps
    resolved = device.resolved(Request(attributes, *tensors, bias, scale, residual=residual, output_steps=output_steps))
    shape = resolved.output.shape
    if last:
        shape = (shape[0], shape[-1], *shape[1:-1])
    steps = dense_steps(shape, form)
    layer = weights.layer(device)
    is_simple = not (gathers or resolved.empty or resolved.is_long or residual)
    channels = torch.Size([resolved.channels])
    references = (layer.handle, ctypes.byref(resolved.problem), ctypes.byref(resolved.options))
    writes = target is not None
    return _Asked(layer, resolved, form, gathers, writes, shape, steps, is_simple, channels, references, {})


def refusal(data: Tensor, weight: Tensor, bias: Tensor | None) -> str | None:
    """The reason not to ask the library, or None."""
    dtype = data.dtype
    for name, tensor in (("data", data), ("weight", weight), ("bias", bias)):
        if tensor is None:
            continue
        if type(tensor) not in TENSORS:
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
    if bias is not None and bias.dim() != 1:
        return f"bias has {bias.dim()} axes"
    return None


def has_wide_padding(call: Call) -> bool:
    """True for an output padding that torch does not take; the library does."""
    return any(o >= s and o >= d for o, s, d in zip(call.output_padding, call.stride, call.dilation))


def has_nothing(data: Tensor, weight: Tensor, call: Call) -> bool:
    """True if there is nothing to compute: torch returns an empty tensor or the bias, or raises."""
    return data.numel() == 0 or weight.numel() == 0 or min(output_shape(data, weight, call)) <= 0


def output_shape(data: Tensor, weight: Tensor, call: Call) -> list[int]:
    if call.form != TRANSPOSED:
        ones = (1,) * len(call.stride)
        before, behind = (call.stride, ones) if call.form == UPSAMPLED else (ones, call.stride)
        numbers = (data.shape[2:], weight.shape[2:], before, behind, call.padding, call.padding_end, call.dilation)
        return [
            data.shape[0],
            weight.shape[0] // prod(behind),
            *((x * s + begin + end - d * (k - 1)) * r for x, k, s, r, begin, end, d in zip(*numbers)),
        ]
    return [
        data.shape[0],
        weight.shape[1] * call.groups,
        *(
            (x - 1) * s - 2 * p + d * (k - 1) + o + 1
            for x, k, s, p, o, d in zip(
                data.shape[2:], weight.shape[2:], call.stride, call.padding, call.output_padding, call.dilation
            )
        ),
    ]


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


def dense_steps(shape: tuple[int, ...], form: torch.memory_format) -> tuple[int, ...]:
    """The strides of a new tensor."""
    return torch.empty(shape, device="meta", memory_format=form).stride()


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _large_pages() -> tuple[Any, Any] | None:
    """mincore and madvise, where a system has large pages."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    mincore, madvise = _libc().mincore, _libc().madvise
    mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return mincore, madvise


PAGE = mmap.PAGESIZE
CALLS_WITH_PAGES = 15
LARGE_PAGES = _large_pages()


def ask_for_large_pages(tensor: Tensor) -> bool:
    """Asks for large pages if the tensor is large and in new memory: its first use takes longer than a convolution.
    False if it had no pages."""
    size = tensor.nbytes
    if size < LARGE or LARGE_PAGES is None:
        return True
    (mincore, madvise), begin, has_page = LARGE_PAGES, tensor.data_ptr(), ctypes.c_ubyte()
    mincore((begin + size // 2) // PAGE * PAGE, PAGE, ctypes.byref(has_page))
    if has_page.value & 1:
        return True
    first, end = -(-begin // PAGE) * PAGE, (begin + size) // PAGE * PAGE
    madvise(first, end - first, mmap.MADV_HUGEPAGE)  # a system may ignore it
    return False


def _new_output(asked: _Asked, dtype: torch.dtype) -> Tensor:
    output = torch.empty_strided(asked.shape, asked.steps, dtype=dtype)
    if asked.resolved.output_bytes >= LARGE:
        # Asking is slow, and memory that had pages mostly still has them.
        address = output.data_ptr()
        left = asked.had_pages.get(address, 0)
        if left > 0:
            asked.had_pages[address] = left - 1
        elif ask_for_large_pages(output):
            asked.had_pages.clear()
            asked.had_pages[address] = CALLS_WITH_PAGES
    return output


def _key(
    call: tuple[Any, ...],
    data: Tensor,
    bias: Tensor | None,
    scale: Tensor | None,
    out: tuple[int, ...] | None = None,
    residual: Tensor | None = None,
) -> Hashable:
    """What a request for a weight depends on. `out` has strides, none if the library cannot write there."""
    added = bias is not None, scale is not None, residual is not None
    return call, data.dtype, data.shape, data.stride(), added, out


def again(
    call: tuple[Any, ...],
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    scale: Tensor | None,
    slopes: Slopes | None = None,
) -> Tensor | None:
    """The output of a call like one that `run` has computed. None: ask compute_or, also after an error, which it then
    meets again and tells.

    Kept short: after torch's own operators the caches hold their tensors, and Python runs five to ten times slower.
    """
    if not (_is_plain(data) and _is_plain(weight)):
        return None
    weights = _known(weight)
    if weights is None:
        return None
    asked = weights.requests.get(_key(call, data, bias, scale))
    if asked is None or not asked.is_simple:
        return None
    addresses = [0, 0]
    for i, tensor in ((0, bias), (1, scale)):
        if tensor is not None:
            plain = _is_plain(tensor) and tensor.is_contiguous()
            if not (plain and tensor.shape == asked.channels and tensor.dtype == data.dtype):
                return None
            addresses[i] = tensor.data_ptr()
    try:
        output = _new_output(asked, data.dtype)
        filter_, version = weights.dense(weight)
    except (RuntimeError, MemoryError):
        return None
    tensors = c.host_tensors(
        data.data_ptr(),
        filter_.data_ptr(),
        output.data_ptr(),
        bias=addresses[0],
        scale=addresses[1],
        **_addresses(slopes),
        filter_version=version,
    )
    failed = c.library.tconv_layer_run(*asked.references, tensors, _how(), None)
    raise_kept()
    if failed:
        return None
    with state.lock:
        state.computed += 1
    return output


def run(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    call: Call,
    scale: Tensor | None = None,
    out: Tensor | None = None,
    residual: Tensor | None = None,
    slopes: Slopes | None = None,
) -> Tensor:
    """Computes by the library, on its device, into `out` if it can, else into a new tensor. `residual` has the output's
    shape. Raises if the library refuses."""
    weight = weight.resolve_neg() if weight.is_neg() else weight
    data = data.resolve_neg() if data.is_neg() else data
    weights = _known(weight) or _new_weights(weight)
    key = _key(call, data, bias, scale, None if out is None else out.stride() if _is_plain(out) else (), residual)
    asked = weights.requests.get(key)
    if asked is None:
        added = residual is not None
        asked = _asked(weights, weight, call, data, bias is not None, scale is not None, out, added)
        weights.keep(key, asked)
    resolved = asked.resolved
    for name, tensor in (("bias", bias), ("scale", scale)):
        if tensor is not None and tensor.shape[0] != resolved.channels:
            raise ValueError(f"{name} has {tensor.shape[0]} elements: {resolved.channels} are needed")
    if bias is not None:
        bias = bias.resolve_neg().contiguous()
    if asked.gathers:
        data = data.contiguous(memory_format=asked.form)
    if residual is not None:
        if residual.shape != torch.Size(asked.shape):
            raise ValueError(f"residual has the shape {list(residual.shape)}: the output has {list(asked.shape)}")
        residual = residual.resolve_neg().contiguous(memory_format=asked.form)
    output = out if asked.writes else _new_output(asked, data.dtype)
    if not resolved.empty:
        filter_, version = weights.dense(weight)
        tensors = c.host_tensors(
            data.data_ptr(),
            filter_.data_ptr(),
            output.data_ptr(),
            bias=0 if bias is None else bias.data_ptr(),
            scale=0 if scale is None else scale.data_ptr(),
            residual=0 if residual is None else residual.data_ptr(),
            **_addresses(slopes),
            filter_version=version,
        )
        if asked.writes:
            torch.autograd.graph.increment_version(output)  # so that autograd finds what it saved before changed
        compute(asked.layer, resolved, tensors, run=_how())
    return output


def _addresses(slopes: Slopes | None) -> dict[str, int]:
    return {} if slopes is None else {"slope": slopes[0].data_ptr(), "slope2": slopes[1].data_ptr()}


@functools.cache
def _openmp() -> tuple[Any, Any]:
    """PyTorch's own threads, if OpenMP makes them: a tconv_on_threads and its pool. They wait awake after each of its
    operators."""
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


@functools.cache
def _run(threads: int, own: bool) -> c.Run:
    """How layers run on so many threads, PyTorch's `own` or the device's."""
    on_threads, pool = _openmp() if own else (None, None)
    return c.Run(on_threads=ctypes.cast(on_threads, ctypes.c_void_p), pool=pool, threads=threads)


def _how() -> c.Run:
    """The tconv_run of a call. PyTorch's threads do not compute in a forked child, which lacks those of its parent, and
    while somebody traces, who expects no events in them."""
    return _run(torch.get_num_threads(), state.parent is None and not is_followed())


def _is_plain(tensor: Tensor) -> bool:
    """Whether the elements of a tensor are those in its memory."""
    return type(tensor) in TENSORS and tensor.layout == torch.strided and tensor.is_cpu and not tensor.is_neg()


def compute_or(
    own: Callable[[], Tensor],
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    call: Call,
    scale: Tensor | None = None,
    out: Tensor | None = None,
    residual: Tensor | None = None,
    slopes: Slopes | None = None,
) -> Tensor:
    """The output, by the library or, if it refuses, by `own`, which is torch's operator. It is `out` if the library
    could write into that."""
    if has_wide_padding(call) or has_nothing(data, weight, call):
        return own()  # which raises, mostly
    reason = refusal(data, weight, bias)
    if reason is None:
        try:
            output = run(data, weight, bias, call, scale, out, residual, slopes)
        except (ValueError, RuntimeError, MemoryError) as error:  # tconv_cl.Error is a RuntimeError
            if was_kept(error):
                raise
            reason = str(error)
    if reason is not None:
        fell_back(weight, reason, call)
        return own()
    with state.lock:
        state.computed += 1
    return output


def fell_back(weight: Tensor, reason: str, call: Call) -> None:
    """Counts a fallback and logs its reason, once for each layer. Raises if the caller wants no fallback."""
    layer = f"a {call.form} with {str(weight.dtype).removeprefix('torch.')} weights {list(weight.shape)}"
    if call.fallback == "error":
        raise RuntimeError(f"tconv_cl does not compute {layer}: {reason}")
    with state.lock:
        state.fallbacks += 1
    sentence = f"tconv_cl: PyTorch's own operator computes {layer}: {reason}"
    state.said.get(sentence, lambda: logger.warning(sentence))
    tell_fallback("torch", layer, reason)


@functools.cache
def least_macs(device: int | None) -> int:
    """Layers with fewer multiply-adds are faster by torch's own operators. 0 if there is no device, which is then told
    at the call."""
    try:
        opened_ = opened(number_of(None) if device is None else device)
    except (ValueError, RuntimeError):
        return 0
    return int(c.library.tconv_device_least_macs(opened_.handle))


def device_number(device: int | str | None) -> int | None:
    """The number of an existing device, as the operator takes it. Raises if there is none."""
    if device is None:
        return None
    number = number_of(device) if isinstance(device, str) else integer("device", device, 0, 2**31 - 1)
    opened(number)
    return number
