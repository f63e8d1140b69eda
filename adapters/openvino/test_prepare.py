# SPDX-License-Identifier: Apache-2.0
"""tconv_cl.prepare_model with a compiled model: later shapes compile nothing, in this process and in the next one."""

import os
import subprocess
import sys

import numpy as np
import openvino as ov
import tconv_cl
from openvino import opset13 as ops
from tconv_cl.openvino import add_extension, convert


def decoder():
    """Two layers with bias and relu, of any extents."""
    x = ops.parameter([1, 8, -1, -1], np.float32)
    first = ops.convolution_backprop_data(x, np.ones((8, 6, 4, 4), np.float32), [2, 2], None, [1, 1], [1, 1], [1, 1])
    active = ops.relu(ops.add(first, np.ones((1, 6, 1, 1), np.float32)))
    weights = np.ones((6, 3, 3, 3), np.float32)
    second = ops.convolution_backprop_data(active, weights, [2, 2], None, [0, 0], [0, 0], [1, 1])
    return ov.Model([second], [x], "decoder")


def compiled():
    core = ov.Core()
    add_extension(core)
    return core.compile_model(convert(decoder(), least_macs=0), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})


def data(height, width):
    return [np.ones((1, 8, height, width), np.float32)]


def expect_prepared():
    """A model that is compiled later compiles no program for shapes of the range."""
    with tconv_cl.trace() as events:
        model = compiled()
        for height, width in ((2, 9), (5, 5), (9, 2), (9, 9)):
            model(data(height, width))
    plans = [event.source for event in events if event.kind == "plan"]
    assert len(plans) >= 8 and plans.count("prepared") >= 8, plans
    assert not [event.options for event in events if event.kind == "program" and event.source == "compiler"]


def prepare(model):
    assert tconv_cl.prepare_model(lambda: model(data(2, 2)), lambda: model(data(9, 9))) >= 2


def test_prepare_model(tmp_path, monkeypatch):
    monkeypatch.setenv("TCONV_CL_CACHE_DIR", str(tmp_path))
    for last in ("t.prepare(t.compiled()); t.expect_prepared()", "t.expect_prepared()"):
        command = [sys.executable, "-c", f"import test_prepare as t; {last}"]
        done = subprocess.run(command, cwd=os.path.dirname(__file__), capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
