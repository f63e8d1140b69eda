# SPDX-License-Identifier: Apache-2.0
"""Devices and layers. Objects of the C library are released when nothing refers to them any more."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from ctypes import byref, c_int, c_void_p, cast, create_string_buffer
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

from . import _library as c
from ._callbacks import Listening, callback, is_kept
from ._library import Error, RequestError, call, create, library
from ._names import instead_of_value
from ._trace import callback_of, follow
from ._request import Attributes, Tensor, Window, extents, resolve, rows_at, steps_of, window_input, with_rows

REQUESTS = 128  # resolved ones, kept for each device, as many as a layer has plans
CONTEXTS = 8  # of pyopencl, kept with their requests
LONG = 16 << 20  # bytes of data and output that take long enough for an interrupt to matter
SMALL = 64 << 10  # bytes of a filter up to which looking whether it changed beats packing it
MEASURED = (3, 4)  # TCONV_SEARCH_MEASURE and _RENEW

# For searches: gives Python the opportunity to handle signals, and ends the search if their handler raised.
_GO_ON = callback(c.SearchProgress, lambda *_: not is_kept())


class CacheInfo(NamedTuple):
    """Counts of requests: `hits` had a kept plan, `misses` were new; `plans` are kept now, in `devices` devices."""

    hits: int
    misses: int
    plans: int
    devices: int


class DeviceInfo(NamedTuple):
    """The properties of a device that the library uses; device.h explains each. `number` is for `device=`.
    `threads`: how many threads of the library compute on it; 0: its driver's do."""

    number: int
    name: str
    vendor: str
    driver: str
    version: str
    platform: str
    kind: str
    compute_units: int
    vector_width: int
    work_group_limit: int
    work_item_limit: tuple[int, int, int]
    local_memory: int
    global_memory: int
    allocation_limit: int
    dedicated_local: bool
    fma: bool
    half_arithmetic: bool
    double_arithmetic: bool
    subgroups: bool
    integer_dot_product: bool
    subgroup_least: int
    matrix_unit: int
    clock_mhz: int
    cache_bytes: int
    constant_kib: int
    architecture: int
    image_pixels: int
    threads: int


class Owner:
    """For `make` and `owned`: owns an object of the C library for which no class here stands."""


def make(owner: object, release: str, name: str, *arguments: Any) -> int:
    """`create`, whose object is released when `owner` is freed, also if an exception (KeyboardInterrupt) comes between
    the two. Not when the interpreter ends: then the process frees everything."""
    handle = owned(owner, release)
    call(name, *arguments, byref(handle))
    assert handle.value is not None
    return handle.value


def owned(owner: object, release: str) -> c_void_p:
    """Where a function writes a handle that is released when `owner` is freed."""
    handle = c_void_p()
    weakref.finalize(owner, _give_back, release, handle).atexit = False
    return handle


def _give_back(release: str, handle: c_void_p) -> None:
    if handle.value is not None and not library.tconv_process_forked():
        getattr(library, release)(handle)


def refuse_child() -> None:
    """Raises in a process forked from one that had used a device: OpenCL calls hang there, and locks may be held."""
    if library.tconv_process_forked():
        call("tconv_device_count", byref(c_int()))


Value = TypeVar("Value")


class Kept(Generic[Value]):
    """Keeps the `limit` most recently used objects; others are freed when their last user ends. For any thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, Value] = OrderedDict()
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The object kept under `key`, or a new one from `make`, called without the lock: of two threads' objects the
        first stays."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                self.hits += 1
                return self._entries[key]
            self.misses += 1
        made = make()
        with self._lock:
            made = self._entries.setdefault(key, made)
            self._entries.move_to_end(key)
            out = self._beyond_limit()
        del out  # without the lock: releasing objects may take a while
        return made

    def count_hit(self) -> None:
        """Counts a use of a kept object that was not asked for here."""
        with self._lock:
            self.hits += 1

    def _beyond_limit(self) -> list[Any]:
        """Takes out what was not used lately."""
        return [self._entries.popitem(last=False) for _ in range(len(self._entries) - self._limit)]

    def values(self) -> list[Value]:
        with self._lock:
            return list(self._entries.values())

    def clear(self) -> None:
        with self._lock:
            entries, self._entries = self._entries, OrderedDict()
        del entries


class Request(NamedTuple):
    """Everything that a plan depends on."""

    attributes: Attributes
    data: Tensor
    filter: Tensor
    bias: bool
    scale: bool
    residual: bool
    window: Window | None = None  # the data are the window's rows
    output_steps: tuple[int, ...] = ()  # of the array that receives the output
    residual_steps: tuple[int, ...] = ()


class Resolved:
    """A request as resolved for any device: shapes and types of the arrays, and the library's structures."""

    def __init__(self, request: Request) -> None:
        attributes, window, data = request.attributes, request.window, request.data
        axis = rows_at(attributes.data_format)
        if window is not None and len(data.shape) > axis:
            data = Tensor(with_rows(data.shape, axis, window.rows), data.type, data.steps)
        self.problem = attributes.problem(data, request.filter)
        if window is None:
            self._set_steps(request)
        self.options = attributes.options(bias=request.bias, scale=request.scale, residual=request.residual)
        geometry = resolve(self.problem)
        self.output = Tensor(extents(geometry.output_shape), geometry.output_type)
        self.data_bytes, self.output_bytes = geometry.data_bytes, geometry.output_bytes
        self.filter_bytes = geometry.filter_bytes
        self.layer: Layer | None = None  # for a small filter: Device.layer_of
        self.key: Hashable = request  # requests of one key have the same plan
        if window is not None:
            self._narrow(geometry, request, window)
            self._set_steps(request)  # of the window's rows: they need not suffice for all rows
        self.channels = geometry.epilogue_channels
        self.bias_type = library.tconv_bias_type(byref(self.options.epilogue), geometry.output_type)
        self.scale_type = library.tconv_scale_type(self.problem.data_type)
        self.slopes = library.tconv_activation_slope_count(attributes.activation)
        self.empty = geometry.output_bytes == 0
        self.is_long = self.data_bytes + self.output_bytes >= LONG
        self._searches = self.options.search in MEASURED or (
            self.options.search == 0 and "TCONV_CL_SEARCH" in os.environ
        )
        if self._searches:
            self.options.search_progress = cast(_GO_ON, c_void_p)

    @property
    def is_simple(self) -> bool:
        """Whether a run is one short call of C."""
        return not (self.empty or self.is_long or self._searches)

    def listening(self) -> contextlib.AbstractContextManager[None]:
        """The context of calls that make its plan: an interrupt ends a search."""
        return Listening() if self._searches else contextlib.nullcontext()

    def _set_steps(self, request: Request) -> None:
        self.problem.data_steps = steps_of(request.data.steps)
        self.problem.output_steps = steps_of(request.output_steps)
        self.problem.residual_steps = steps_of(request.residual_steps)
        self.problem.filter_steps = steps_of(request.filter.steps)

    def _narrow(self, geometry: c.Geometry, request: Request, window: Window) -> None:
        axis = rows_at(geometry.data_format)
        rows, given = window.end - window.begin, request.data.shape[axis]
        first, last = window_input(geometry, window.begin, window.end)
        if given != last - first:
            raise RequestError(
                f"data has {given} rows along axis {axis}: output rows {window.begin} to {window.end} take the "
                f"{last - first} input rows {first} to {last}"
            )
        self.options.output_begin, self.options.output_end = window.begin, window.end
        self.output = Tensor(with_rows(self.output.shape, axis, rows), self.output.type)
        self.data_bytes = self.data_bytes // max(window.rows, 1) * given
        self.output_bytes = self.output_bytes // geometry.output[0] * rows
        # Inner windows differ only in their position: they share one plan.
        pad = geometry.pad_begin[0] + window.begin - first * geometry.stride[0]
        self.key = request._replace(window=None), pad, rows


class Device:
    """A tconv_device. It keeps resolved requests, and a layer for filters that vary."""

    callback = callback_of(lambda device: library.tconv_device_properties(device).contents.name)

    def __init__(self, name: str, *arguments: Any) -> None:
        self.handle = make(self, "tconv_device_release", name, *arguments)
        self.requests: Kept[Resolved] = Kept(REQUESTS)
        self.layer = Layer([self], c.FILTER_VARIES)
        self._lock = threading.Lock()
        follow(self)

    def set_trace(self, kinds: int, callback: Any, context: None) -> None:
        """Sets what hears of this device, for `trace`."""
        call("tconv_device_set_trace", self.handle, kinds, callback, context)

    def resolved(self, request: Request) -> Resolved:
        """The resolved request, kept or new."""
        if request.window is None:
            return self.requests.get(request, lambda: Resolved(request))
        made = Resolved(request)
        return self.requests.get(made.key, lambda: made)

    def layer_of(self, resolved: Resolved) -> Layer:
        """The layer that computes a request of this device with a filter that may vary. A small filter is mostly the
        same again, and the request has a layer of its own, which packs it if it has changed."""
        if resolved.filter_bytes > SMALL:
            return self.layer
        with self._lock:
            if resolved.layer is None:
                resolved.layer = Layer([self], c.FILTER_WATCHED, keeps=False)
            return resolved.layer


class Layer:
    """A tconv_layer, which keeps plans and packed filters. For any thread."""

    def __init__(self, devices: Sequence[Device], filter_use: int, keeps: bool = True) -> None:
        if keeps and filter_use != c.FILTER_VARIES:
            self._devices = devices  # whose requests and traces stay as long as the layer; else the device has it
        handles = (c_void_p * len(devices))(*(device.handle for device in devices))
        self.handle = make(self, "tconv_layer_release", "tconv_layer_create", handles, len(devices), filter_use)

    def explain(self, resolved: Resolved) -> str:
        """Why runs of the request compute with their plan's algorithm: a line for each algorithm."""
        owner = Owner()
        request = (self.handle, byref(resolved.problem), byref(resolved.options))
        with resolved.listening():
            plan = make(owner, "tconv_plan_release", "tconv_layer_plan", *request)
        text = create_string_buffer(library.tconv_plan_explain(plan, None, 0) + 1)
        library.tconv_plan_explain(plan, text, len(text))
        return text.value.decode(errors="replace")

    def counts(self) -> c.LayerCounts:
        counts = c.LayerCounts()
        call("tconv_layer_count", self.handle, byref(counts))
        return counts


class Layers:
    """A layer whose filter mostly stays the same, for each device or group of devices that runs it."""

    def __init__(self) -> None:
        self._kept: Kept[Layer] = Kept(8)
        self.calls: dict[Hashable, Any] = {}  # that may come again, by _host.again

    def on(self, devices: Sequence[Device]) -> Layer:
        return self._kept.get(tuple(devices), lambda: Layer(devices, c.FILTER_WATCHED))

    def packed(self) -> int:
        """How often filters were packed."""
        return sum(layer.counts().filters_packed for layer in self._kept.values())


def wait_list(events: list[int]) -> tuple[int, c_void_p | None]:
    """A list of events as the library's functions take it."""
    return len(events), cast((c_void_p * len(events))(*events), c_void_p) if events else None


# ---- devices by their numbers ----

_opened: Kept[Device] = Kept(64)  # more than a machine has devices: one stays until clear_cache
calls: dict[Hashable, Any] = {}  # of functions, that may come again, by _host.again
clearings = 0  # counts those of the cache


def opened(number: int) -> Device:
    """The device with this number, opened in a context of its own at its first use."""
    refuse_child()
    return _opened.get(number, lambda: Device("tconv_device_open", number))


@cache
def number_of(name: str | None) -> int:
    """The number of a named device, None being the default. Asked once for each name, because asking is slow."""
    number = c_int()
    try:
        call("tconv_device_find", None if name is None else c.text("device", name), byref(number))
    except Error as error:
        raise Error(f"{error}{instead_of_value('device', name)}", error.status, error.opencl_code) from None
    return number.value


def check_device(number: int) -> None:
    """Raises if there is no device with this number."""
    create("tconv_device_at", number, None)


def devices() -> list[DeviceInfo]:
    """All OpenCL devices, in the order of their numbers; read again at each call."""
    count = c_int()
    call("tconv_device_count", byref(count))
    return [_describe(number) for number in range(count.value)]


def _describe(number: int) -> DeviceInfo:
    info = c.DeviceInfo()
    call("tconv_device_describe", create("tconv_device_at", number, None), byref(info))
    values: dict[str, Any] = {}
    for member in DeviceInfo._fields[1:-1]:
        value = getattr(info, member)
        values[member] = value.decode(errors="replace") if isinstance(value, bytes) else value
    values["kind"] = ("other", "cpu", "gpu", "accelerator")[info.kind]
    values["work_item_limit"] = tuple(info.work_item_limit)
    return DeviceInfo(number, **values, threads=_threads(number) if values["kind"] == "cpu" else 0)


def _threads(number: int) -> int:
    """How many threads of the library compute on a processor, known once it is opened."""
    owner = Owner()
    return int(library.tconv_device_threads(make(owner, "tconv_device_release", "tconv_device_open", number)))


# ---- devices of pyopencl's contexts ----

_contexts: Kept[Device] = Kept(CONTEXTS)


def context_device(context: int, device: int) -> Device:
    """The device of a context, found by pointers. The library retains the context, so that its address stays unique."""

    refuse_child()
    return _contexts.get((context, device), lambda: Device("tconv_device_create", context, device))


def cache_info() -> CacheInfo:
    """Counts of requests so far, on the devices that are kept."""
    kept = [device.requests for device in _opened.values() + _contexts.values()]
    return CacheInfo(
        sum(requests.hits for requests in kept),
        sum(requests.misses for requests in kept),
        sum(len(requests.values()) for requests in kept),
        len(kept),
    )


def clear_cache() -> None:
    """Releases all devices with their plans, except those that calls and ConvTranspose objects still use."""
    global clearings
    clearings += 1
    number_of.cache_clear()
    calls.clear()
    _opened.clear()
    _contexts.clear()
