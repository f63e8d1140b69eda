# SPDX-License-Identifier: Apache-2.0
"""Extents that are not known when a session is made, and extents of 0, against ONNX Runtime's own operator.

usage: pytest adapters/onnxruntime        after `pip install ./python`; needs an OpenCL device"""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from test_provider import Counted, compare, conv_transpose, model_of, quantized, random, session, stock

# ---- invented extents


@pytest.mark.parametrize(
    "attributes, kernel, shape",
    [
        ({"pads": [160, 160]}, 161, [2, 3, 400]),
        ({"pads": [160, 160], "strides": [3]}, 161, [2, 3, 108]),
        ({"pads": [170, 170], "dilations": [2], "output_padding": [1], "strides": [2]}, 5, [2, 3, 180]),
        ({"pads": [0, 90, 0, 90]}, 3, [1, 3, 5, 190]),
        ({"pads": [90, 0, 90, 0], "strides": [1, 2]}, 3, [1, 3, 190, 5]),
    ],
    ids=str,
)
@pytest.mark.parametrize("filter_is", ["constant", "input"])
def test_pads_larger_than_invented_extents(attributes, kernel, shape, filter_is):
    """The session cannot know that the data are long enough."""
    axes = len(shape) - 2
    x, w = random(shape), random([3, 4, *[kernel] * axes], 2)
    dynamic = ["n", 3, *"hwd"[:axes]]
    if filter_is == "constant":
        compare(model_of([conv_transpose(**attributes)], dynamic, {"w": w}), x, 1e-4)
    else:
        inputs = {"w": ["c", "m", *"ijk"[:axes]]}
        compare(model_of([conv_transpose(**attributes)], dynamic, {}, inputs=inputs), x, 1e-4, w=w)


def test_pads_larger_than_an_invented_filter():
    """Only the filter's extents are not known."""
    model = model_of([conv_transpose(pads=[30, 30], dilations=[2])], [1, 3, 9], {}, inputs={"w": ["c", "m", "k"]})
    compare(model, random([1, 3, 9]), w=random([3, 4, 40], 2))


def test_pads_that_leave_nothing_of_known_extents(capfd):
    session(model_of([conv_transpose(pads=[30, 30])], [1, 3, 9], {"w": random([3, 4, 5])}))
    assert "the output would have extent -47" in capfd.readouterr().err


@pytest.mark.parametrize("stride", [1, 1 << 62])
def test_pads_beyond_all_extents(stride, capfd):
    """The library says what is wrong with them."""
    session(model_of([conv_transpose(pads=[1 << 62, 5], strides=[stride])], ["n", 3, "h"], {"w": random([3, 4, 5])}))
    assert "another provider" in capfd.readouterr().err


# ---- what is said when a session is made


def outer_data(branch):
    """A ConvTranspose in a branch, of data that the outer graph computes."""
    nodes = [
        helper.make_node("ConvTranspose", ["r", "w"], [f"{branch}_y"]),
        helper.make_node("Relu", [f"{branch}_y"], [branch]),
    ]
    return helper.make_graph(
        nodes, f"{branch}_graph", [], [helper.make_tensor_value_info(branch, TensorProto.FLOAT, None)]
    )


def chains():
    node = helper.make_node
    weights = {
        "a": random([5, 3, 1, 1]),
        "c": random([5, 6, 2, 2]),
        "e": random([7, 6, 3, 3]),
        "g": random([7, 4, 3, 3]),
    }
    yield model_of(
        [
            node("Conv", ["x", "a"], ["b"]),
            node("ConvTranspose", ["b", "c"], ["d"], strides=[2, 2]),
            node("Conv", ["d", "e"], ["f"]),
            node("ConvTranspose", ["f", "g", "h"], ["y"]),
        ],
        [1, 3, 13, 17],
        {**weights, "h": random([4])},
    )
    yield model_of(
        [
            node("Relu", ["x"], ["r"]),
            node("Abs", ["v"], ["w"]),
            node("Neg", ["c"], ["b"]),
            node("ConvTranspose", ["r", "w", "b"], ["y"]),
            node("Add", ["y", "s"], ["z"]),
        ],
        ["n", 4, "h", "w"],
        {"v": random([4, 3, 2, 2]), "c": random([3])},
        inputs={"s": ["p", 3, "q", "r"]},
    )
    for options in (
        {"bias": "floats"},
        {"bias": None},
        {"between": [("Tanh", [], {}, {})]},
        {"filter_": "u8", "output": "i8"},
    ):
        yield quantized(**options)[0]
    branches = {f"{name}_branch": outer_data(name) for name in ("then", "else")}
    yield model_of(
        [node("Relu", ["x"], ["r"]), node("Not", ["choose"], ["chosen"]), node("If", ["chosen"], ["y"], **branches)],
        [1, 4, 5, 5],
        {"w": random([4, 3, 3, 3]), "choose": np.array(False)},
    )


@pytest.mark.parametrize("model", list(chains()))
def test_sessions_begin_without_a_word_about_producers(model, capfd):
    session(model)
    assert "Unable to get" not in capfd.readouterr().err


# ---- extents of 0

EMPTY = [(1, 4, 0, 8), (2, 4, 5, 0), (1, 4, 0, 0), (0, 4, 0, 3)]


def empty(shape, pads, bias, activation):
    nodes = [
        helper.make_node(
            "ConvTranspose", ["x", "w", "b"] if bias else ["x", "w"], ["y"], strides=[2, 2], pads=[pads] * 4
        )
    ]
    if activation:
        nodes.append(helper.make_node("Sigmoid", ["y"], ["z"]))
    return model_of(nodes, shape, {"w": random([4, 3, 3, 3]), **({"b": random([3], 3)} if bias else {})})


@pytest.mark.parametrize("data", EMPTY, ids=str)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", [False, True])
def test_data_with_an_extent_of_0(data, dynamic, bias, activation):
    """Each element is a sum of nothing, and then what follows."""
    compare(empty(["n", 4, "h", "w"] if dynamic else data, 0, bias, activation), np.zeros(data, np.float32))


@pytest.mark.parametrize("data", EMPTY, ids=str)
def test_data_with_an_extent_of_0_of_which_pads_leave_nothing(data):
    x, model = np.zeros(data, np.float32), empty(["n", 4, "h", "w"], 1, True, False)
    counted = Counted()
    for own in (session(model), stock(model)):
        with pytest.raises(InvalidArgument, match="would have extent -1 at spatial axis|output dimension is <= 0"):
            own.run(None, {"x": x})
    assert counted.computed == 0
