# SPDX-License-Identifier: Apache-2.0
"""`trace`: what the library does, as Python objects. The rules of the callback are those of tconv_cl/trace.h."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from . import _library as c
from ._callbacks import Listening, callback, is_kept, keep, raise_kept, raise_rest, runs
from ._library import library

LAUNCH, RECORDING = 8, 32
KINDS = {
    1: "plan",
    2: "passed over",
    4: "program",
    LAUNCH: "launch",
    16: "fallback",
    RECORDING: "recording",
    64: "replay",
}


class TraceEvent(NamedTuple):
    """What the library did; tconv_cl/trace.h explains each member. What a kind does not have is None, 0 or ()."""

    kind: str  # "plan", "passed over", "program", "launch", "fallback", "recording", "replay"
    begin_ns: int  # of time.monotonic_ns
    end_ns: int
    thread: int  # threading.get_ident of the thread whose call did it
    device: str | None = None  # its name
    problem: str | None = None
    algorithm: str | None = None
    tile: str | None = None
    name: str | None = None
    source: str | None = None
    options: str | None = None
    message: str | None = None
    piece: int = 0
    pieces: int = 0
    offset: tuple[int, ...] = ()
    global_size: tuple[int, ...] = ()
    local_size: tuple[int, ...] = ()
    event: int | None = None  # OpenCL's handle, valid during the callable's call; None in a list
    given: tuple[bytes, bytes] | None = None  # what the plan was made for: tconv_problem and tconv_plan_options


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def _made(event: c.TraceEvent, device: bytes | None) -> TraceEvent:
    launch = event.kind in (LAUNCH, RECORDING)
    sizes = [tuple(getattr(event, name)) if launch else () for name in ("offset", "global", "local")]
    texts = {name: _text(getattr(event, name)) for name in ("problem", "algorithm", "tile", "name", "source")}
    return TraceEvent(
        kind=KINDS.get(event.kind, str(event.kind)),
        begin_ns=event.begin_ns,
        end_ns=event.end_ns,
        device=_text(device),
        thread=threading.get_ident(),
        **texts,
        options=_text(event.options),
        message=_text(event.message),
        piece=event.piece,
        pieces=event.pieces,
        offset=sizes[0],
        global_size=sizes[1],
        local_size=sizes[2],
        event=event.event,
        given=_given(event),
    )


def _given(event: c.TraceEvent) -> tuple[bytes, bytes] | None:
    """The structures' bytes. An adapter's library may be of a version whose events do not have them."""
    if event.struct_size < ctypes.sizeof(c.TraceEvent) or not event.given_problem:
        return None
    return (
        ctypes.string_at(event.given_problem, ctypes.sizeof(c.Problem)),
        ctypes.string_at(event.given_options, ctypes.sizeof(c.PlanOptions)),
    )


Listener = Callable[[TraceEvent], Any]

_lock = threading.Lock()  # for the two below; never held while the library is called
# Weak, so an interrupted `with` cannot leave a listener behind.
_listeners: tuple[weakref.ref[Listener], ...] = ()
_followed: weakref.WeakSet[Source] = weakref.WeakSet()
_listening = Listening()  # as long as there are listeners


def listeners() -> list[Listener]:
    """Those who listen."""
    return [listener for listener in [reference() for reference in _listeners] if listener is not None]


def is_followed() -> bool:
    """Whether somebody may listen."""
    return bool(_listeners)


def _tell(event: TraceEvent) -> None:
    """Calls the listeners, except those that failed earlier in the same call."""
    if runs(_tell, sys._getframe(1)):  # a listener uses a runtime: each adapter's library only knows its own callbacks
        return
    for listener in listeners():
        if not is_kept(listener):
            try:
                listener(event)
            except BaseException as error:
                keep(error, listener)


def tell_fallback(adapter: str, layer: str, why: str) -> None:
    """Tells that a runtime computes a layer itself, where an adapter in Python knows it without a device."""
    if not listeners():
        return
    now = time.monotonic_ns()
    event = TraceEvent(kind="fallback", begin_ns=now, end_ns=now, thread=threading.get_ident(), name=adapter)
    _tell(event._replace(problem=layer, message=why))
    raise_kept()


class Source(Protocol):
    """What raises events: a device, or all devices of an adapter's library."""

    callback: Any  # the only one that it ever gets; the library may call it as long as it is loaded

    def set_trace(self, kinds: int, callback: Any, context: None) -> None:
        """Sets the callback. When it returns, calls for earlier listeners have ended."""


def callback_of(name_of: Callable[[int], bytes | None]) -> Any:
    """A callback for tconv_device_set_trace; `name_of` gives the name of an event's device."""
    return callback(c.Trace, lambda _, event: _tell(_made(event.contents, name_of(event.contents.device))))


# Held while callbacks are set, so that a late removal does not undo what another thread set meanwhile. Not inside a
# listener: the thread with the lock waits for listeners.
_setting = threading.Lock()


def _set(source: Source) -> None:
    if runs(_tell, sys._getframe()):
        _set_last(source)
    else:
        with _setting:
            _set_last(source)


def _set_last(source: Source) -> None:
    wanted = None
    while wanted != bool(listeners()):  # another thread may change them meanwhile
        wanted = bool(listeners())
        source.set_trace(2**32 - 1, source.callback if wanted else c.Trace(), None)


def follow(source: Source) -> None:
    """Includes a source in traces now and later, as long as it lives."""
    with _lock:
        _followed.add(source)
    if listeners():
        _set(source)


def _with(add: Listener | None, remove: Listener | None) -> tuple[weakref.ref[Listener], ...]:
    kept = [one for one in listeners() if one is not remove]
    return tuple(weakref.ref(one) for one in (kept if add is None else [*kept, add]))


def _change(add: Listener | None, remove: Listener | None) -> None:
    global _listeners
    with _lock:
        _listeners = _with(add, remove)
        if _listeners:
            _listening.__enter__()
        sources = list(_followed)
    if not library.tconv_process_forked():
        for source in sources:
            _set(source)
    with _lock:
        if not listeners():
            _listening.__exit__()


class trace:
    """A context in which the library tells what it does, on all devices of the package and in all threads.

    Those of the adapters for OpenVINO and ONNX Runtime are included, from their first use on.

    >>> with trace() as events:
    ...     output = conv_transpose(np.ones((1, 2, 5)), np.ones((2, 3, 3)))
    >>> {event.kind for event in events} >= {"launch"}
    True

    `receive`, if given, is called for each `TraceEvent` instead of collecting them in a list, in the thread that does
    the work. It may call this package, which then tells nothing; it must not wait for another thread that does. What it
    raises, KeyboardInterrupt too, is raised behind the call that did the work, which has been carried out; until then
    `receive` is not called again. If that call was not one of this package (but of ONNX Runtime or OpenVINO), or if the
    work was done in a thread that the library started, it is raised at the end of the context.
    """

    def __init__(self, receive: Callable[[TraceEvent], Any] | None = None) -> None:
        if receive is not None and not callable(receive):
            raise c.RequestTypeError(f"receive is {receive!r}: it must be callable")
        self._receive = receive
        self._entered: list[Listener] = []

    def __enter__(self) -> list[TraceEvent]:
        events: list[TraceEvent] = []
        receive = self._receive

        def listener(event: TraceEvent) -> None:
            if receive is None:
                events.append(event._replace(event=None))
            else:
                receive(event)

        self._entered.append(listener)
        try:
            _change(add=listener, remove=None)
        except BaseException:  # an interrupt
            self._end(self._entered.pop())
            raise
        return events

    def _end(self, listener: Listener) -> None:
        try:
            _change(add=None, remove=listener)
        except BaseException:  # an interrupt
            _change(add=None, remove=listener)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        listener = self._entered.pop()
        self._end(listener)
        raise_rest(listener, value)
