# SPDX-License-Identifier: Apache-2.0
"""tconv_cl.trace: what it tells, in which threads, and that nothing is told behind its end."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref

import numpy as np
import pyopencl.array
import pytest

import tconv_cl
from tconv_cl import _library
from tconv_cl._trace import callback_of, tell_fallback

DATA = np.arange(2 * 9, dtype=np.float32).reshape(1, 2, 9)
FILTER = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
WANTED = tconv_cl.conv_transpose(DATA, FILTER, strides=2)


def compute(**options):
    np.testing.assert_array_equal(tconv_cl.conv_transpose(DATA, FILTER, strides=2, **options), WANTED)


def test_a_list_of_events():
    tconv_cl.clear_cache()
    before = time.monotonic_ns()
    with tconv_cl.trace() as events:
        compute(algorithm="reference")
    after = time.monotonic_ns()
    told = len(events)
    compute()
    assert len(events) == told
    assert {event.kind for event in events} == {"plan", "program", "launch"}
    (plan,) = [event for event in events if event.kind == "plan"]
    assert (plan.algorithm, plan.source, plan.tile) == ("reference", "name", "")
    assert plan.problem.startswith("--data-shape 1,2,9 --filter-shape 2,3,4")
    assert plan.global_size == () and plan.event is None
    program = next(event for event in events if event.kind == "program")
    assert program.source in ("compiler", "disk") and "reference" in program.name
    launch = [event for event in events if event.kind == "launch"][-1]
    assert launch.name.startswith("tconv_") and launch.event is None
    assert (launch.piece, launch.pieces, launch.offset) == (0, 1, (0, 0, 0))
    assert np.prod(launch.global_size) >= WANTED.size and min(launch.local_size) >= 1
    names = {device.name for device in tconv_cl.devices()}
    for event in events:
        assert before - 1000 <= event.begin_ns <= event.end_ns <= after + 1000
        assert event.thread == threading.get_ident() and event.device in names


def test_a_device_that_is_opened_inside_and_one_of_pyopencl(queue):
    arrays = [pyopencl.array.to_device(queue, array) for array in (DATA, FILTER)]
    waited = []

    def receive(event):
        if event.kind == "launch":
            waited.append(pyopencl.Event.from_int_ptr(event.event, retain=True))

    tconv_cl.clear_cache()
    with tconv_cl.trace(receive) as nothing:
        output = tconv_cl.conv_transpose(*arrays, strides=2)
    np.testing.assert_array_equal(output.get(), WANTED)
    pyopencl.wait_for_events(waited)
    assert waited and nothing == []


def test_traces_in_each_other():
    compute()
    outer = tconv_cl.trace()
    with outer as all_events, tconv_cl.trace() as some:
        compute()
    with tconv_cl.trace() as others:
        compute()
    assert len(some) == len(all_events) == len(others) > 0
    with outer as again:
        compute()
    assert len(again) == len(some) and again is not all_events


def test_threads():
    tconv_cl.clear_cache()
    compute()
    with ThreadPoolExecutor(4) as pool, tconv_cl.trace() as events:
        list(pool.map(lambda _: compute(), range(100)))
    with tconv_cl.trace() as one:
        compute()
    assert len(events) == 100 * len(one)
    assert threading.get_ident() not in {event.thread for event in events}


def test_traces_that_come_and_go_beside_others():
    stop = threading.Event()

    def work():
        while not stop.is_set():
            compute()

    def watch():
        for _ in range(50):
            with tconv_cl.trace() as events:
                compute()
            told = len(events)
            assert any(event.thread == threading.get_ident() for event in events)
            time.sleep(0.001)
            assert len(events) == told

    with ThreadPoolExecutor(4) as pool:
        workers = [pool.submit(work) for _ in range(2)]
        watchers = [pool.submit(watch) for _ in range(2)]
        try:
            for watcher in watchers:
                watcher.result()
        finally:
            stop.set()
        for worker in workers:
            worker.result()


def test_a_callable_that_calls():
    depth = []

    def receive(event):
        depth.append(event.kind)
        compute()
        with tconv_cl.trace() as nothing:
            compute()
        assert nothing == []

    tconv_cl.clear_cache()
    with tconv_cl.trace(receive):
        compute()
    assert {"plan", "launch"} <= set(depth) and len(depth) < 20


def test_one_that_fails_beside_others():
    with tconv_cl.trace(lambda event: 1 / 0), tconv_cl.trace() as events:
        for use in (compute, lambda: tell_fallback("torch", "a layer", "a reason")):
            with pytest.raises(ZeroDivisionError):
                use()
    assert {event.kind for event in events} >= {"launch", "fallback"}


def test_a_callable_that_uses_an_adapter():
    """An adapter has a library of its own, which does not know that it is called from inside a callable."""
    told = []

    def receive(event):
        told.append(event.kind)
        callback(None, byref(_library.TraceEvent(kind=16)))

    callback = callback_of(lambda device: None)
    with tconv_cl.trace(receive):
        tell_fallback("torch", "a layer", "a reason")
        callback(None, byref(_library.TraceEvent(kind=16)))
        tell_fallback("torch", "a layer", "a reason")
    assert told == ["fallback"] * 3


def test_something_that_is_not_callable():
    with pytest.raises(TypeError, match="receive is 7: it must be callable"):
        tconv_cl.trace(7)
