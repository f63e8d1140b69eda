# SPDX-License-Identifier: Apache-2.0
"""Exceptions of signal handlers (KeyboardInterrupt is one) and of callbacks: none is lost, and everything works after
them."""

import ast
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from ctypes import byref
from pathlib import Path

import numpy as np
import pytest

import tconv_cl
from tconv_cl import _callbacks, _library, _trace

DATA = np.arange(2 * 40 * 64, dtype=np.float32).reshape(1, 2, 40, 64) % 7
FILTER = np.arange(2 * 3 * 4 * 4, dtype=np.float32).reshape(2, 3, 4, 4) % 5
LIMIT = 1 << 16  # 11 slabs
WANTED = tconv_cl.conv_transpose(DATA, FILTER, strides=2)

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that sends signals")


class Interrupt(BaseException):
    pass


class Alarm:
    """Sends signals, whose handler raises Interrupt."""

    def __init__(self):
        self.sent, self.events = [], 0

    def handle(self, number, frame):
        self.sent.append(number)
        raise Interrupt

    def send_after(self, seconds):
        """0: none."""
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def at_the_third(self, event):
        """A listener."""
        self.events += 1
        if self.events == 3:
            self.send_after(1e-4)


@pytest.fixture
def alarm():
    made = Alarm()
    gc.collect()  # Python itself drops what is raised while it frees objects
    gc.disable()
    before = signal.signal(signal.SIGALRM, made.handle)
    yield made
    made.send_after(0)
    signal.signal(signal.SIGALRM, before)
    gc.enable()


def compute(**options):
    np.testing.assert_array_equal(tconv_cl.conv_transpose(DATA, FILTER, strides=2, **options), WANTED)


@pytest.mark.parametrize("memory_limit", [None, LIMIT])
@pytest.mark.parametrize("listener", ["none", "list", "function", "progress"])
def test_signals_at_any_time(listener, memory_limit, alarm):
    """The time at which the signal comes passes over the whole call."""
    compute(memory_limit=memory_limit)
    begin = time.perf_counter()
    compute(memory_limit=memory_limit)
    seconds = time.perf_counter() - begin
    options = {"memory_limit": memory_limit}
    if listener == "progress":
        options["progress"] = lambda done, of: sum(range(300))
    for step in range(100):
        caught, before = 0, len(alarm.sent)
        try:
            alarm.send_after(seconds * (step + 1) / 90)
            if listener in ("list", "function"):
                with tconv_cl.trace(*[lambda event: sum(range(300))] * (listener == "function")):
                    tconv_cl.conv_transpose(DATA, FILTER, strides=2, **options)
            else:
                tconv_cl.conv_transpose(DATA, FILTER, strides=2, **options)
            alarm.send_after(0)
        except Interrupt:
            caught += 1
        assert caught == len(alarm.sent) - before
    assert not _callbacks._kept and not _callbacks._listening and not _trace.listeners()
    compute(**options)


def test_a_run_in_slabs_ends_early(alarm):
    """Without a callback of the caller's, too; the slabs that were computed are complete."""
    data = np.ones((1, 16, 300, 300), np.float32)
    filter = np.ones((16, 16, 4, 4), np.float32)
    options = dict(strides=2, memory_limit=1 << 20)
    wanted = tconv_cl.conv_transpose(data, filter, **options)
    out = np.full_like(wanted, np.nan)
    with pytest.raises(Interrupt), tconv_cl.trace(alarm.at_the_third):
        tconv_cl.conv_transpose(data, filter, out=out, **options)
    rows = int(np.isfinite(out).all((0, 1, 3)).sum())
    assert 0 < rows < wanted.shape[2] / 2
    np.testing.assert_array_equal(out[:, :, :rows], wanted[:, :, :rows])
    np.testing.assert_array_equal(tconv_cl.conv_transpose(data, filter, out=out, **options), wanted)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError, tconv_cl.Error("mine", 0)])
@pytest.mark.parametrize("memory_limit", [None, LIMIT])
def test_what_a_listener_raises(error, memory_limit):
    """It is raised once, behind the call; others hear everything."""
    told = []

    def receive(event):
        told.append(event.kind)
        raise error

    kind = error if isinstance(error, type) else type(error)
    layer = tconv_cl.ConvTranspose(FILTER, strides=2, memory_limit=memory_limit)
    layer(DATA)
    out = np.zeros_like(WANTED)
    with tconv_cl.trace() as events, tconv_cl.trace(receive):
        for calls in (1, 2):
            with pytest.raises(kind) as caught:
                layer(DATA, out=out)
            assert len(told) == calls and (isinstance(error, type) or caught.value is error)
    assert len(events) >= 2 * len(told) or memory_limit is None
    np.testing.assert_array_equal(layer(DATA), WANTED)
    if memory_limit is None:
        np.testing.assert_array_equal(out, WANTED)


def test_two_that_fail(monkeypatch):
    """An exception that ends the program is raised, the other is reported."""
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: reported.append(error.exc_type))

    def interrupted(event):
        raise KeyboardInterrupt

    compute()
    with pytest.raises(KeyboardInterrupt), tconv_cl.trace(lambda event: 1 / 0), tconv_cl.trace(interrupted):
        compute()
    assert reported == [ZeroDivisionError]


def test_what_is_raised_in_a_thread_of_the_library():
    """It is raised at the end of the context, unless another exception leaves it."""
    heard, event = _trace.callback_of(lambda device: None), _library.TraceEvent(kind=16)

    def in_a_thread():
        thread = threading.Thread(target=heard, args=(None, byref(event)))
        thread.start()
        thread.join()

    reached = False
    with pytest.raises(ZeroDivisionError), tconv_cl.trace(lambda event: 1 / 0):
        in_a_thread()
        reached = True
    assert reached
    with pytest.raises(KeyboardInterrupt), tconv_cl.trace(raising(KeyboardInterrupt())):
        in_a_thread()
        raise KeyError("less")
    with pytest.raises(KeyError, match="first"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", lambda error: None)
        with tconv_cl.trace(lambda event: 1 / 0):
            in_a_thread()
            raise KeyError("first")


@pytest.mark.parametrize("devices", [1, 2])
def test_progress(devices):
    if devices > len(tconv_cl.devices()):
        pytest.skip("one device")
    done = []

    def progress(count, of):
        done.append(count)
        raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            compute(memory_limit=LIMIT, progress=progress, device=list(range(devices)))
    assert done == [1] * 3
    compute(memory_limit=LIMIT, device=list(range(devices)))


def test_nothing_leaks():
    """Each object of the library is released that was made before the interrupt."""
    made, released = [], []
    library = tconv_cl._library.library
    for name in ("tconv_plan", "tconv_device", "tconv_layer"):
        assert hasattr(library, f"{name}_release")
    create, release = library.tconv_layer_create, library.tconv_layer_release

    def interrupted(*arguments):
        status = create(*arguments)
        made.append(arguments[3]._obj.value)
        raise Interrupt  # between the call and what becomes of its result
        return status

    library.tconv_layer_create = interrupted
    library.tconv_layer_release = lambda handle: (released.append(handle.value), release(handle))
    try:
        with pytest.raises(Interrupt):
            tconv_cl.ConvTranspose(FILTER, strides=2)(DATA)
    finally:
        library.tconv_layer_create, library.tconv_layer_release = create, release
    assert made and made == released


SEARCH = """
import os, signal, sys, time
import numpy as np
import tconv_cl

data, filter = np.ones((1, 8, 30, 30), np.float32), np.ones((8, 8, 4, 4), np.float32)
wanted = tconv_cl.conv_transpose(data, filter, strides=2, search="model")

def heard(event):
    if event.kind == "program":
        os.kill(os.getpid(), signal.SIGINT)

begin = time.monotonic()
try:
    with tconv_cl.trace(heard):
        tconv_cl.conv_transpose(data, filter, strides=2, search="measure")
    sys.exit("the interrupt was lost")
except KeyboardInterrupt:
    print(f"{time.monotonic() - begin:.1f} seconds")
np.testing.assert_allclose(tconv_cl.conv_transpose(data, filter, strides=2, search="measure"), wanted, rtol=1e-5)
"""


def test_a_search_ends(tmp_path):
    """It stores nothing."""
    environment = dict(os.environ, TCONV_CL_CACHE_DIR=str(tmp_path))
    subprocess.run([sys.executable, "-c", SEARCH], check=True, env=environment)
    assert sum(b"best_ms " in path.read_bytes() for path in tmp_path.iterdir()) == 0


def test_no_loop_in_a_lock():
    """In Python 3.12 and 3.13 an exception at a loop's jump back does not release it."""
    loops = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp)
    folder = Path(tconv_cl.__file__).parent
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.With) and "lock" in ast.unparse(node.items[0].context_expr):
                inside = [one.lineno for one in ast.walk(node) if isinstance(one, loops)]
                assert not inside, f"{file.relative_to(folder)}:{inside[0]}"


def test_torch():
    """What a listener raises is no refusal of the library."""
    torch = pytest.importorskip("torch")
    import tconv_cl.torch

    layer, data = tconv_cl.torch.convert(torch.nn.ConvTranspose1d(2, 3, 4)), torch.ones(1, 2, 9)
    before = tconv_cl.torch.statistics().fallbacks
    with torch.no_grad():
        for _ in range(2):  # a first call, and one that is like an earlier one
            with pytest.raises(RuntimeError, match="mine"), tconv_cl.trace(raising(RuntimeError("mine"))):
                layer(data)
            layer(data)
        with pytest.raises(KeyboardInterrupt), tconv_cl.trace(raising(KeyboardInterrupt())):
            layer(data)
    with pytest.raises(ValueError, match="mine"), tconv_cl.trace(raising(ValueError("mine"))):
        layer(data)
    assert tconv_cl.torch.statistics().fallbacks == before


def raising(error):
    def receive(event):
        raise error

    return receive


def test_dask(alarm):
    """In the scheduler that computes in the calling thread, a task in slabs ends early."""
    array = pytest.importorskip("dask.array")
    import tconv_cl.dask

    data = array.ones((1, 16, 300, 300), dtype=np.float32)
    filter = np.ones((16, 16, 4, 4), np.float32)
    output = tconv_cl.dask.conv_transpose(data, filter, strides=2, chunks=602, memory_limit="1 MiB")
    wanted = output.compute(scheduler="synchronous")
    with pytest.raises(Interrupt), tconv_cl.trace(alarm.at_the_third):
        output.compute(scheduler="synchronous")
    with tconv_cl.trace() as all_events:
        np.testing.assert_array_equal(output.compute(scheduler="threads"), wanted)
    assert 3 <= alarm.events < len(all_events) / 2
