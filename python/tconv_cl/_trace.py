# SPDX-License-Identifier: Apache-2.0
"""`trace`: what the library does, as Python objects. The rules of the callback are those of tconv_cl/trace.h."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from . import _library as c
from ._library import library

LAUNCH, RECORD = 8, 32
KINDS = {
    1: "plan",
    2: "passed over",
    4: "program",
    LAUNCH: "launch",
    16: "fallback",
    RECORD: "record",
    64: "replay",
}


class TraceEvent(NamedTuple):
    """What the library did; tconv_cl/trace.h explains each member. What a kind does not have is None, 0 or ()."""

    kind: str  # "plan", "passed over", "program", "launch", "fallback", "record", "replay"
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


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def _made(event: c.TraceEvent, device: bytes | None) -> TraceEvent:
    launch = event.kind in (LAUNCH, RECORD)
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
    )


_lock = threading.Lock()  # for the two below; never held while the library is called
_listeners: tuple[Callable[[TraceEvent], Any], ...] = ()
_followed: weakref.WeakSet[Source] = weakref.WeakSet()


def is_traced() -> bool:
    """Whether somebody listens."""
    return bool(_listeners)


_inside = threading.local()  # has `telling` in a thread that runs listeners

# Calls a listener. An exception goes to sys.unraisablehook, so that other listeners and the caller go on.
_call = ctypes.PYFUNCTYPE(None, ctypes.py_object, ctypes.py_object)(lambda listener, event: listener(event))


def _tell(event: TraceEvent) -> None:
    if hasattr(_inside, "telling"):  # a listener uses a runtime: each adapter's library only knows its own callbacks
        return
    _inside.telling = True
    try:
        for listener in _listeners:
            _call(listener, event)
    finally:
        del _inside.telling


def tell_fallback(adapter: str, layer: str, why: str) -> None:
    """Tells that a runtime computes a layer itself, where an adapter in Python knows it without a device."""
    if not _listeners:
        return
    now = time.monotonic_ns()
    event = TraceEvent(kind="fallback", begin_ns=now, end_ns=now, thread=threading.get_ident(), name=adapter)
    _tell(event._replace(problem=layer, message=why))


class Source(Protocol):
    """What raises events: a device, or all devices of an adapter's library."""

    callback: Any  # the only one that it ever gets; the library may call it as long as it is loaded

    def set_trace(self, kinds: int, callback: Any, context: None) -> None:
        """Sets the callback. When it returns, calls for earlier listeners have ended."""


def callback_of(name_of: Callable[[int], bytes | None]) -> Any:
    """A callback for tconv_device_set_trace; `name_of` gives the name of an event's device."""
    return c.Trace(lambda _, event: _tell(_made(event.contents, name_of(event.contents.device))))


# Held while callbacks are set, so that a late removal does not undo what another thread set meanwhile. Not inside a
# listener: the thread with the lock waits for listeners.
_setting = threading.Lock()


def _set(source: Source) -> None:
    guard = contextlib.nullcontext() if hasattr(_inside, "telling") else _setting
    wanted = None
    with guard:
        while wanted != bool(_listeners):  # another thread may change them meanwhile
            wanted = bool(_listeners)
            source.set_trace(2**32 - 1, source.callback if wanted else c.Trace(), None)


def follow(source: Source) -> None:
    """Includes a source in traces now and later, as long as it lives."""
    with _lock:
        _followed.add(source)
        listeners = _listeners
    if listeners:
        _set(source)


def _change(add: Callable[[TraceEvent], Any] | None, remove: Callable[[TraceEvent], Any] | None) -> None:
    global _listeners
    with _lock:
        kept = [one for one in _listeners if one is not remove]
        _listeners = tuple(kept if add is None else [*kept, add])
        sources = list(_followed)
    if not library.tconv_process_forked():
        for source in sources:
            _set(source)


class trace:
    """A context in which the library tells what it does, on all devices of the package and in all threads.

    Those of the adapters for OpenVINO and ONNX Runtime are included, from their first use on.

    >>> with trace() as events:
    ...     output = conv_transpose(np.ones((1, 2, 5)), np.ones((2, 3, 3)))
    >>> {event.kind for event in events} >= {"launch"}
    True

    `receive`, if given, is called for each `TraceEvent` instead of collecting them in a list, in the thread that does
    the work. It may call this package, which then tells nothing; it must not wait for another thread that does. An
    exception in it goes to `sys.unraisablehook`.
    """

    def __init__(self, receive: Callable[[TraceEvent], Any] | None = None) -> None:
        if receive is not None and not callable(receive):
            raise c.RequestTypeError(f"receive is {receive!r}: it must be callable")
        self._receive = receive
        self._entered: list[Callable[[TraceEvent], Any]] = []

    def __enter__(self) -> list[TraceEvent]:
        events: list[TraceEvent] = []
        receive = self._receive

        def listener(event: TraceEvent) -> None:
            if receive is None:
                events.append(event._replace(event=None))
            else:
                receive(event)

        self._entered.append(listener)
        _change(add=listener, remove=None)
        return events

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _change(add=None, remove=self._entered.pop())
