# SPDX-License-Identifier: Apache-2.0
"""Python functions that C calls. ctypes drops what they raise, KeyboardInterrupt too: here it is kept, and raised
behind the call."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from itertools import filterfalse
from types import FrameType, TracebackType
from typing import Any, NamedTuple


class _Kept(NamedTuple):
    thread: int  # in which it was raised
    raised_by: object  # what must not be called again before it is raised
    error: BaseException


# A handler of signals may come here, too. As everywhere in the package, no loop is directly in a `with` of a lock: an
# exception at the jump back to a loop's begin does not release the lock in Python 3.12 and 3.13.
_lock = threading.RLock()
_kept: list[_Kept] = []
_last = threading.local()  # has `raised`: the exception that `raise_kept` raised last in a thread


def callback(prototype: Any, function: Callable[..., Any]) -> Any:
    """A function as a callback of C. What it raises is kept for `raise_kept`; C gets 0, False or NULL."""

    def called(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except BaseException as error:
            keep(error)
            return None

    return prototype(called)


_CALLED = callback(lambda function: function, lambda: None).__code__  # of all functions that C calls


def keep(error: BaseException, raised_by: object = None) -> None:
    """Keeps what was raised in a callback of this thread."""
    with _lock:
        _kept.append(_Kept(threading.get_ident(), raised_by, error))


def is_kept(raised_by: object = None) -> bool:
    """Whether something that was raised in this thread waits for `raise_kept`; by `raised_by`, if that is given."""
    if not _kept:
        return False
    thread = threading.get_ident()
    return any(one.thread == thread and raised_by in (None, one.raised_by) for one in list(_kept))


def raise_kept() -> None:
    """Raises what callbacks raised in this thread, behind the call in which they ran."""
    if _kept:
        thread = threading.get_ident()
        _raise(lambda one: one.thread == thread)


def raise_rest(raised_by: object, instead: BaseException | None) -> None:
    """Raises what `raised_by` raised in calls that were not this package's, or in threads of C; `instead` is what is
    being raised already."""
    if _kept:
        thread = threading.get_ident()
        _raise(lambda one: one.raised_by is raised_by or one.thread == thread, instead)


def was_kept(error: BaseException) -> bool:
    """Whether an exception came from a callback: it says nothing about the call itself."""
    return getattr(_last, "raised", None) is error


def _raise(wanted: Callable[[_Kept], bool], instead: BaseException | None = None) -> None:
    """Raises one of the kept exceptions that are wanted: one that ends the program comes first. Reports the others."""
    global _kept
    with _lock:
        own = list(filter(wanted, _kept))
        _kept = list(filterfalse(wanted, _kept))
    taken = sorted((one.error for one in own), key=lambda error: isinstance(error, Exception))
    raised = None
    if taken and (instead is None or isinstance(instead, Exception) > isinstance(taken[0], Exception)):
        raised = taken.pop(0)
    for error in taken:
        _report(error)
    if raised is not None:
        _last.raised = raised
        try:
            raise raised
        finally:
            del raised, taken, own  # they have this frame


class _Unraisable(NamedTuple):
    """What sys.unraisablehook takes."""

    exc_type: type[BaseException]
    exc_value: BaseException
    exc_traceback: TracebackType | None
    err_msg: str
    object: None


def _report(error: BaseException) -> None:
    message = "Exception ignored in a callback of tconv_cl, beside another one"
    hook: Any = sys.unraisablehook
    hook(_Unraisable(type(error), error, error.__traceback__, message, None))


def runs(function: Any, frame: FrameType | None) -> bool:
    """Whether a function runs in this frame or around it. A flag could stay set after an interrupt."""
    while frame is not None:
        if frame.f_code is function.__code__:
            return True
        frame = frame.f_back
    return False


# ---- exceptions at the first instruction of a callback ----
#
# Python runs the handler of a signal that came during a call of C as soon as a callback begins, before its `try`. What
# the handler raises is given to sys.unraisablehook, the only function that sees it.

_previous: Any = None
_listening: weakref.WeakSet[Listening] = weakref.WeakSet()  # an interrupted one may never end: it is freed


def _hook(unraisable: Any) -> None:
    traceback = unraisable.exc_traceback
    if traceback is not None and traceback.tb_frame.f_code is _CALLED:
        keep(unraisable.exc_value.with_traceback(traceback))
    elif runs(_hook, sys._getframe(1)):  # another hook, set after this one, calls it
        sys.__unraisablehook__(unraisable)
    else:
        _previous(unraisable)


class Listening:
    """A context in which callbacks may run: nothing that they raise is lost. Entering it again changes nothing."""

    def __enter__(self) -> None:
        global _previous
        with _lock:
            _listening.add(self)
            if sys.unraisablehook is not _hook:
                _previous, sys.unraisablehook = sys.unraisablehook, _hook

    def __exit__(self, *_: Any) -> None:
        with _lock:
            _listening.discard(self)
            if not _listening and sys.unraisablehook is _hook:
                sys.unraisablehook = _previous
