# SPDX-License-Identifier: Apache-2.0
"""tconv_cl.prepare_model with a session: later shapes compile nothing, in this process and in the next one."""

import os
import subprocess
import sys

import numpy as np
import onnxruntime as ort
import tconv_cl
import tconv_cl.onnxruntime
from onnx import TensorProto, helper, numpy_helper


def decoder():
    """Two layers with bias and relu, of any extents."""
    weights = {
        "w1": np.ones((8, 6, 4, 4), np.float32),
        "b1": np.ones(6, np.float32),
        "w2": np.ones((6, 3, 3, 3), np.float32),
    }
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w1", "b1"], ["c1"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("ConvTranspose", ["r1", "w2"], ["y"], strides=[2, 2]),
    ]
    graph = helper.make_graph(
        nodes,
        "decoder",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, "h", "w"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, None, None])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10).SerializeToString()


def session_of(model):
    options = tconv_cl.onnxruntime.session_options(least_macs=0)
    options.log_severity_level = 3
    return ort.InferenceSession(model, options)


def data(height, width):
    return {"x": np.ones((1, 8, height, width), np.float32)}


def expect_prepared():
    """Later sessions compile nothing for shapes of the range."""
    with tconv_cl.trace() as events:
        session = session_of(decoder())
        for height, width in ((2, 9), (5, 5), (9, 2), (9, 9)):
            session.run(None, data(height, width))
    plans = [event.source for event in events if event.kind == "plan"]
    assert len(plans) >= 8 and plans.count("prepared") >= 8, plans
    assert not [event.options for event in events if event.kind == "program" and event.source == "compiler"]


def test_prepare_model(tmp_path, monkeypatch):
    monkeypatch.setenv("TCONV_CL_CACHE_DIR", str(tmp_path))
    tconv_cl.clear_cache()
    # In a process of its own: the provider of this one has its device object already.
    command = "import test_prepare as t; s = t.session_of(t.decoder()); t.prepare(s); t.expect_prepared()"
    for last in (command, "import test_prepare as t; t.expect_prepared()"):
        done = subprocess.run(
            [sys.executable, "-c", last], cwd=os.path.dirname(__file__), capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr


def prepare(session):
    assert tconv_cl.prepare_model(lambda: session.run(None, data(2, 2)), lambda: session.run(None, data(9, 9))) >= 2
