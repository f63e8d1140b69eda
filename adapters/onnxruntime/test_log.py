# SPDX-License-Identifier: Apache-2.0
"""What the execution provider writes to ONNX Runtime's log, and that tconv_cl.trace() hears it.

usage: pytest adapters/onnxruntime        after `pip install ./python`; needs an OpenCL device"""

import threading

import onnxruntime
import tconv_cl.onnxruntime
from test_provider import conv_transpose, dynamic_model, model_of, random, session


def run(level, shape=(1, 8, 7, 9), **settings):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = level
    settings = tconv_cl.onnxruntime.session_options(options, least_macs=0, search="model", **settings)
    x = random(shape)
    onnxruntime.InferenceSession(dynamic_model(), settings).run(None, {"x": x})


def lines(captured):
    return [line for line in captured.readouterr().err.splitlines() if "tconv_cl: " in line]


def test_plans_are_in_the_log(capfd):
    run(1, (1, 8, 7, 11))  # information
    written = lines(capfd)
    assert len(written) >= 2  # one for the try when the session begins, one for the shape
    assert all("chosen by model, planned in" in line and "[I:" in line for line in written), written
    assert any("--data-shape 1,8,7,11 " in line for line in written), written


def test_programs_are_in_a_verbose_log(capfd):
    run(0, (1, 8, 7, 13))
    written = lines(capfd)
    assert any(
        "[V:" in line and (" from disk in" in line or " from memory in" in line or " from compiler in" in line)
        for line in written
    ), written


def test_a_usual_log_has_no_plans(capfd):
    run(2)
    assert lines(capfd) == []


def test_a_trace_hears_sessions(capfd):
    with tconv_cl.trace() as events:
        run(1, (1, 8, 9, 11))
    assert lines(capfd) == []  # the trace has them
    assert {event.kind for event in events} >= {"plan", "launch"}
    launched = [event for event in events if event.kind == "launch"]
    assert all("--data-shape 1,8,9,11 " in event.problem for event in launched)
    assert {event.device for event in events} <= {device.name for device in tconv_cl.devices()}
    told = len(events)
    run(1, (1, 8, 9, 13))
    assert len(events) == told
    assert lines(capfd) != []


def test_a_trace_hears_what_others_compute(capfd):
    # Seven spatial axes are more than the library computes.
    model = model_of([conv_transpose()], [1, 2] + [3] * 7, {"w": random([2, 2] + [1] * 7)})
    with tconv_cl.trace() as events:
        session(model)
    told = [event for event in events if event.kind == "fallback"]
    assert [event.name for event in told] == ["ONNX Runtime"] and told[0].message
    assert any("another provider" in line for line in lines(capfd))


def test_threads_write_to_their_own_sessions(capfd):
    """A session with a log beside one without: the lines are about the first one's shapes."""

    def quiet():
        for width in range(20, 26):
            run(3, (1, 8, 5, width))

    other = threading.Thread(target=quiet)
    other.start()
    for width in range(50, 54):
        run(1, (1, 8, 5, width))
    other.join()
    shapes = {line.split("--data-shape ")[1].split()[0] for line in lines(capfd)}
    assert {f"1,8,5,{width}" for width in range(50, 54)} <= shapes
    assert not shapes & {f"1,8,5,{width}" for width in range(20, 26)}
