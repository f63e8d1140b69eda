# SPDX-License-Identifier: Apache-2.0
"""Devices with their plans. Objects of the C library are released when nothing refers to them any more."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from ctypes import byref, c_int, c_void_p, cast, create_string_buffer
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

from . import _library as c
from ._callbacks import Listening, callback, is_kept
from ._library import Error, RequestError, call, create, library
from ._names import instead_of_value
from ._trace import callback_of, follow
from ._request import Attributes, Tensor, Window, extents, resolve, rows_at, steps_of, window_input, with_rows

PLANS = 128  # kept for each device
CONTEXTS = 8  # of pyopencl, kept with their plans
WHOLE = 512 << 20  # bytes of data and output that are not worth dividing into slabs
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
    """The properties of a device that the library uses; device_info.h explains each. `number` is for `device=`."""

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


def make(owner: object, release: str, name: str, *arguments: Any) -> int:
    """`create`, whose object is released when `owner` is freed, also if an exception (KeyboardInterrupt) comes between
    the two. Not when the interpreter ends: then the process frees everything."""
    handle = c_void_p()
    weakref.finalize(owner, _give_back, release, handle).atexit = False
    call(name, *arguments, byref(handle))
    assert handle.value is not None
    return handle.value


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

    def _beyond_limit(self) -> list[Any]:
        """Takes out what was not used lately."""
        return [self._entries.popitem(last=False) for _ in range(len(self._entries) - self._limit)]

    def renew(self, key: Hashable, old: Value, make: Callable[[], Value]) -> Value:
        """A new object in place of `old`; `old` if none can be made."""
        try:
            made = make()
        except (Error, RequestError):
            return old
        with self._lock:
            if self._entries.get(key) is old:
                self._entries[key] = made
        return made

    def find(self, wanted: Callable[[Value], bool]) -> Value | None:
        """The first kept object that is wanted, which counts as used; `wanted` is called without the lock."""
        with self._lock:
            entries = list(self._entries.items())
        for key, kept in entries:
            if wanted(kept):
                return self.get(key, lambda: kept)
        return None

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
        self.macs: int = geometry.macs
        self.key: Hashable = request  # requests of one key have the same plan
        if window is not None:
            self._narrow(geometry, request, window)
            self._set_steps(request)  # of the window's rows: they need not suffice for all rows
        self.channels = geometry.groups * geometry.group_out_channels
        self.bias_type = library.tconv_bias_type(byref(self.options.epilogue), geometry.output_type)
        self.scale_type = library.tconv_scale_type(self.problem.data_type)
        self.slopes = library.tconv_activation_has_slope(attributes.activation)
        self.empty = geometry.output_bytes == 0
        self._searches = self.options.search in MEASURED or (
            self.options.search == 0 and "TCONV_CL_SEARCH" in os.environ
        )
        if self._searches:
            self.options.search_progress = cast(_GO_ON, c_void_p)

    def listening(self) -> contextlib.AbstractContextManager[None]:
        """The context of calls that make its plan: an interrupt ends a search."""
        return Listening() if self._searches else contextlib.nullcontext()

    def _set_steps(self, request: Request) -> None:
        self.problem.data_steps = steps_of(request.data.steps)
        self.problem.output_steps = steps_of(request.output_steps)
        self.problem.residual_steps = steps_of(request.residual_steps)

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


class Plan(Resolved):
    """A resolved request on one device, with its tconv_plan."""

    def __init__(self, device: Device, request: Request) -> None:
        super().__init__(request)
        options = (byref(self.problem), byref(self.options))
        with self.listening():
            self.handle = make(self, "tconv_plan_release", "tconv_plan_create", device.handle, *options)
        self.workspace_bytes = library.tconv_plan_workspace_bytes(self.handle)
        self.renewed = False  # a call has set out to replace it


class Filter:
    """A tconv_packed_filter: weights packed on the device, for one plan and those of the same layout."""

    def __init__(self, plan: Plan, queue: int, weights: c.Tensor, waits: list[int]) -> None:
        self.handle = make(self, "tconv_packed_filter_release", "tconv_packed_filter_create", plan.handle, None)
        packing = (self.handle, queue, byref(weights), *wait_list(waits))
        # Executions on other queues wait for it.
        self.event = make(self, "clReleaseEvent", "tconv_packed_filter_enqueue_pack", *packing)
        library.clFlush(queue)

    def fits(self, plan: Plan) -> bool:
        return bool(library.tconv_packed_filter_fits(self.handle, plan.handle))


class Execution:
    """An enqueued execution of a plan, with its event."""

    def __init__(self, plan: Plan, queue: int, args: c.Args, waits: list[int]) -> None:
        enqueued = (plan.handle, queue, byref(args), *wait_list(waits))
        self.event = make(self, "clReleaseEvent", "tconv_plan_enqueue", *enqueued)


class Device:
    """A tconv_device with its plans."""

    callback = callback_of(lambda device: library.tconv_device_properties(device).contents.name)

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.plans: Kept[Any] = Kept(PLANS)
        follow(self)

    def set_trace(self, kinds: int, callback: Any, context: None) -> None:
        """Sets what hears of this device, for `trace`."""
        call("tconv_device_set_trace", self.handle, kinds, callback, context)

    def plan(self, request: Request) -> Plan:
        """The plan for a request, kept or new. Of a stale one, one call makes a new one."""
        key = Plan, request if request.window is None else Resolved(request).key
        plan: Plan = self.plans.get(key, lambda: Plan(self, request))
        if library.tconv_plan_is_stale(plan.handle) and not plan.renewed:
            plan.renewed = True
            plan = self.plans.renew(key, plan, lambda: Plan(self, request))
        return plan


class ContextDevice(Device):
    """A device of a context of pyopencl's."""

    def __init__(self, context: int, device: int) -> None:
        super().__init__(make(self, "tconv_device_release", "tconv_device_create", context, device))


class Session(Device):
    """A tconv_session: a device with a context and a queue of its own, for host arrays. It keeps resolved requests."""

    def __init__(self, number: int) -> None:
        self.session = make(self, "tconv_session_release", "tconv_session_create", number)
        super().__init__(library.tconv_session_device(self.session))
        self.allocation_limit = library.tconv_device_properties(self.handle).contents.allocation_limit
        self.layer = SessionLayer(self, constant_filter=False)

    def resolved(self, request: Request) -> Resolved:
        """The resolved request, kept or new."""
        key = request if request.window is None else Resolved(request).key
        resolved: Resolved = self.plans.get((Resolved, key), lambda: Resolved(request))
        return resolved

    def needs_slabs(self, resolved: Resolved) -> bool:
        """True if the tensors are too large for one buffer, or worth dividing."""
        largest = max(resolved.data_bytes, resolved.output_bytes)
        return bool(largest > self.allocation_limit) or resolved.data_bytes + resolved.output_bytes > WHOLE


class SessionLayer:
    """A tconv_session_layer: plans and packed filters for host arrays. For any thread."""

    def __init__(self, session: Session, *, constant_filter: bool) -> None:
        owner: object = session  # the session's own layer; the newest of its objects is freed first
        if constant_filter:
            self._session = session  # which must be freed after it
            owner = self
        made = (session.session, constant_filter)
        self.handle = make(owner, "tconv_session_layer_release", "tconv_session_layer_create", *made)
        library.tconv_session_layer_watch(self.handle, constant_filter)  # callers may change arrays

    def explain(self, resolved: Resolved) -> str:
        """Why runs of the request compute with their plan's algorithm: a line for each algorithm."""
        owner = threading.Event()  # any object that can be referred to weakly
        request = (self.handle, byref(resolved.problem), byref(resolved.options))
        with resolved.listening():
            plan = make(owner, "tconv_plan_release", "tconv_session_layer_plan", *request)
        text = create_string_buffer(library.tconv_plan_explain(plan, None, 0) + 1)
        library.tconv_plan_explain(plan, text, len(text))
        return text.value.decode()

    def counts(self) -> c.SessionLayerCounts:
        counts = c.SessionLayerCounts()
        call("tconv_session_layer_count", self.handle, byref(counts))
        return counts


def wait_list(events: list[int]) -> tuple[int, c_void_p | None]:
    """A list of events as the library's functions take it."""
    return len(events), cast((c_void_p * len(events))(*events), c_void_p) if events else None


# ---- sessions, by the number of their device ----

_sessions: Kept[Session] = Kept(64)  # more than a machine has devices: a session stays until clear_cache


def session_of(number: int) -> Session:
    """The session on the device with this number, opened at its first use."""
    refuse_child()
    return _sessions.get(number, lambda: Session(number))


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
    for member in DeviceInfo._fields[1:]:
        value = getattr(info, member)
        values[member] = value.decode(errors="replace") if isinstance(value, bytes) else value
    values["kind"] = ("other", "cpu", "gpu", "accelerator")[info.kind]
    values["work_item_limit"] = tuple(info.work_item_limit)
    return DeviceInfo(number, **values)


# ---- devices of pyopencl's contexts ----

_contexts: Kept[Device] = Kept(CONTEXTS)


def context_device(context: int, device: int) -> Device:
    """The device of a context, found by pointers. The library retains the context, so that its address stays unique."""

    refuse_child()
    return _contexts.get((context, device), lambda: ContextDevice(context, device))


def cache_info() -> CacheInfo:
    """Counts of requests so far, on the devices that are kept."""
    kept = [device.plans for device in _sessions.values() + _contexts.values()]
    return CacheInfo(
        sum(plans.hits for plans in kept),
        sum(plans.misses for plans in kept),
        sum(len(plans.values()) for plans in kept),
        len(kept),
    )


def clear_cache() -> None:
    """Releases all devices and plans, except those that calls and ConvTranspose objects still use."""
    number_of.cache_clear()
    _sessions.clear()
    _contexts.clear()
