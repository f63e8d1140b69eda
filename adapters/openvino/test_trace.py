# SPDX-License-Identifier: Apache-2.0
"""That tconv_cl.trace() hears the operators of models.

usage: pytest adapters/openvino        after the installation in docs/openvino.md; needs an OpenCL device"""

import subprocess
import sys

import numpy as np
import openvino
import tconv_cl
import tconv_cl.openvino
from openvino import opset13 as ops
from test_extension import compiled, convert, dynamic_model, random


def test_a_trace_hears_operators():
    model = dynamic_model()
    assert convert(model) == 1
    run = compiled(model)
    with tconv_cl.trace() as events:
        run(random((1, 8, 7, 11)))
    assert {event.kind for event in events} >= {"plan", "launch"}
    assert any("--data-shape 1,8,7,11 " in event.problem for event in events if event.kind == "launch")
    assert {event.device for event in events} <= {device.name for device in tconv_cl.devices()}
    told = len(events)
    run(random((1, 8, 7, 13)))
    assert len(events) == told


def test_a_trace_hears_what_openvino_computes(capfd):
    x = ops.parameter([1, 2, 5, 6], openvino.Type.i32)
    y = ops.convolution_backprop_data(x, ops.constant(random((2, 3, 3, 3)).astype("int32")), strides=[2, 2])
    with tconv_cl.trace() as events:
        assert convert(openvino.Model([y], [x])) == 0
    told = [event for event in events if event.kind == "fallback"]
    assert [(event.name, event.problem) for event in told] == [("OpenVINO", "ConvolutionBackpropData")]
    assert told[0].message in capfd.readouterr().err


# A device that is opened inside, so in a process of its own.
INSIDE = """
import tconv_cl
import tconv_cl.openvino
from test_extension import compiled, convert, dynamic_model, random
with tconv_cl.trace() as events:
    model = dynamic_model()
    convert(model)
    compiled(model)(random((1, 8, 7, 11)))
print(sorted({event.kind for event in events} & {"plan", "launch"}))
"""


def test_a_device_that_is_opened_inside():
    child = subprocess.run(
        [sys.executable, "-c", INSIDE], cwd=__file__.rsplit("/", 1)[0], capture_output=True, text=True
    )
    assert child.stdout.splitlines()[-1:] == ["['launch', 'plan']"], child.stderr


def test_a_request_of_one_thread_computes_in_one():
    """The layer is large enough for several shares."""
    parameter = ops.parameter([1, 32, 64, 64], np.float32)
    node = ops.convolution_backprop_data(
        parameter, ops.constant(np.ones((32, 32, 4, 4), np.float32)), [2, 2], None, [1, 1], [1, 1], [1, 1]
    )
    model = tconv_cl.openvino.convert(openvino.Model([node], [parameter]))
    request = openvino.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1}).create_infer_request()
    data = np.ones((1, 32, 64, 64), np.float32)
    with tconv_cl.trace() as events:
        for _ in range(10):
            request.infer([data])
    launches = [event for event in events if event.kind == "launch"]
    assert len(launches) >= 10 and len({event.thread for event in launches}) == 1
