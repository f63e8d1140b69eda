# SPDX-License-Identifier: Apache-2.0
"""Shapes that hold for a model but not for its tensors later, and sizes of tensors that do not exist.

usage: pytest adapters/openvino        with tconv_cl installed as docs/openvino.md says; needs an OpenCL device"""

import subprocess
import sys

import numpy as np
import onnx
import openvino as ov
import pytest
from openvino import opset13 as ops

import tconv_cl.openvino
from test_extension import (
    EXACT,
    EXTENDED,
    STOCK,
    Counted,
    compiled,
    convert,
    convolution,
    numbers,
    quantized,
    random,
    transposed,
    types,
)


def same(model, stock, data, fallbacks):
    """The result of OpenVINO's own operators, and who computed."""
    wanted, counted = STOCK.compile_model(stock, "CPU", EXACT)(data)[0], Counted()
    output = compiled(model)(data)[0]
    assert output.shape == wanted.shape
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
    assert (counted.evaluations, counted.fallbacks) == (1 - fallbacks, fallbacks)


# ---- a model that is reshaped after it was converted

DATA, OUTPUT, WEIGHTS = [2, 4, 5, 4], [2, 6, 11, 9], random([4, 6, 3, 3], 2)
AFTER = {
    "nothing": lambda node, part: node,
    "slopes": lambda node, part: ops.prelu(node, numbers(6, 0, 3).reshape(6)),
    "concat": lambda node, part: ops.concat([part, ops.sigmoid(node)], 1),
}


def skipped(after, last):
    """An operator to which a tensor of its output's shape is added. With `last`, it is between convolutions."""
    x, r, s = (ops.parameter(shape, np.float32) for shape in (DATA, OUTPUT, OUTPUT))
    ones = random([4, 4, 1, 1], 3)
    node = transposed(convolution(x, ones) if last else x, ops.constant(WEIGHTS), [2, 2])
    node = AFTER[after](ops.add(ops.multiply(node, np.float32(0.5)), r), s)
    channels = 12 if after == "concat" else 6
    end = convolution(node, random([3, channels, 1, 1], 4)) if last else ops.exp(node)
    return ov.Model([end, ops.abs(s)], [x, r, s])


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_skip_connection_that_broadcasts(after, last, dynamic, capfd):
    """OpenVINO's own operators compute it, and ours again what has the output's shape."""
    model, stock = skipped(after, last), skipped(after, last)
    assert convert(model) == 1 and "Add" not in types(model)
    if dynamic:
        for one in (model, stock):
            one.reshape({0: [-1, 4, -1, -1], 1: [-1, 6, -1, -1], 2: [-1, 6, -1, -1]})
    for shape in ([1, 6, 11, 9], [2, 6, 1, 1], [2, 6, 1, 9], OUTPUT):
        data = [random(DATA), random(shape, 5), random(OUTPUT, 6)]
        if not dynamic:
            for one in (model, stock):
                one.reshape({1: shape})
        assert model.output(0).partial_shape.compatible(stock.output(0).partial_shape)
        same(model, stock, data, fallbacks=int(shape != OUTPUT))
    assert "the tensor that is added does not have the shape of the output" in capfd.readouterr().err


def test_one_image_to_which_a_batch_is_added():
    model, stock = skipped("nothing", False), skipped("nothing", False)
    assert convert(model) == 1
    for one in (model, stock):
        one.reshape({0: [1, *DATA[1:]], 1: [3, *OUTPUT[1:]]})
    same(model, stock, [random([1, *DATA[1:]]), random([3, *OUTPUT[1:]], 5), random(OUTPUT)], fallbacks=1)


def test_sums_that_nobody_computes():
    model = skipped("nothing", False)
    assert convert(model) == 1
    with pytest.raises(RuntimeError, match="does not have the shape of the output"):
        model.reshape({1: [3, *OUTPUT[1:]]})
    model.reshape({i: [-1, *shape[1:]] for i, shape in enumerate((DATA, OUTPUT))})
    ours, counted = compiled(model), Counted()
    with pytest.raises(RuntimeError):
        ours([random(DATA), random([3, *OUTPUT[1:]]), random(OUTPUT)])
    assert counted.evaluations == counted.fallbacks == 0


@pytest.mark.parametrize(
    "after, channels, fallbacks",
    [
        (lambda node: ops.multiply(node, np.float32(2)), 5, 0),
        (lambda node: ops.subtract(np.float32(2), node), 1, 0),
        (lambda node: ops.multiply(node, numbers(6, 2, 3)), 1, 1),
        (lambda node: ops.relu(ops.add(node, numbers(6, 2, 3))), 1, 1),
    ],
    ids=["factor", "addend", "factors", "addends"],
)
def test_a_filter_of_other_channels(after, channels, fallbacks):
    """The filter is an input. One number is for any channels; six are broadcast by one channel."""

    def made():
        x, w = ops.parameter(DATA, np.float32), ops.parameter([4, 6, 3, 3], np.float32)
        node = after(transposed(x, w, [2, 2]))
        return ov.Model([ops.exp(node)], [x, w])

    model, stock = made(), made()
    assert convert(model) == 1
    for one in (model, stock):
        one.reshape({1: [4, channels, 3, 3]})
    same(model, stock, [random(DATA), random([4, channels, 3, 3], 2)], fallbacks)


@pytest.mark.parametrize(
    "channels, addends, known",
    [(6, 6, True), (6, 5, True), (6, 1, True), (1, 6, True), (6, 6, False), (6, 5, False)],
)
def test_biases_of_onnx_of_any_size(channels, addends, known, tmp_path):
    """The bias is an input of unknown size, and the filter perhaps one of unknown channels, which OpenVINO's own does
    not compute. It takes only as many numbers as there are channels, and nobody reads beyond them."""
    value, kind = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    filter_ = [4, channels, 3, 3]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], strides=[2, 2])],
        "graph",
        [value("x", kind, DATA), value("w", kind, filter_ if known else ["c", "m", 3, 3]), value("b", kind, ["n"])],
        [value("y", kind, None)],
    )
    opset = onnx.helper.make_opsetid("", 13)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8), tmp_path / "model.onnx")
    model = EXTENDED.read_model(tmp_path / "model.onnx")
    data = [random(DATA), random(filter_, 2), random([addends], 3)]
    x, w, b = (ops.parameter(one.shape, np.float32) for one in data)
    if channels == addends:
        bias = ops.reshape(b, np.array([1, channels, 1, 1]), False)
        stock = ov.Model([ops.add(transposed(x, w, [2, 2]), bias)], [x, w, b])
        same(model, stock, data, fallbacks=0)
        return
    ours = [compiled(model)]
    if known:
        ours.append(STOCK.compile_model(tmp_path / "model.onnx", "CPU", EXACT))
    for one in ours:
        with pytest.raises(RuntimeError):
            one(data)


# ---- sizes that only the model says

HUGE = 1 << 27


def grouped(after):
    """A model without weights, of as many groups as channels."""
    x, w = ops.parameter([1, HUGE, 5], np.float32), ops.parameter([HUGE, 1, 1, 3], np.float32)
    node = ops.group_convolution_backprop_data(x, w, strides=[1], pads_begin=[0], pads_end=[0], dilations=[1])
    return ov.Model([after(node)], [x, w])


def levels(weights):
    """Quantized weights of 10000 x 10000 elements, which are products of small tensors."""
    x = quantized(ops.parameter([1, 10000, 5], np.float32), 0, 2.55)
    node = quantized(transposed(x, weights, [1]), 0, 2.55)
    return ov.Model([node], [x.input_value(0).get_node()])


def plain(*shape, value=1):
    return ops.constant(np.full(shape, value, np.float32))


def hostile():
    """Models by what they claim."""
    yield "a factor", grouped(lambda node: ops.multiply(node, np.float32(2)))
    yield "an addend", grouped(lambda node: ops.subtract(np.float32(2), node))
    yield "a slope", grouped(lambda node: ops.prelu(node, np.float32(2)))
    x, w = ops.parameter([1, 1, 5], np.float32), ops.parameter([1, 1 << 40, 3], np.float32)
    yield "channels", ov.Model([ops.multiply(transposed(x, w, [1]), np.float32(2))], [x, w])
    bounds = [plain(1, 10000, 1, value=value) for value in (0, 1, 0, 1)]
    yield "levels", levels(ops.fake_quantize(plain(10000, 1, 1), *bounds, 256))
    wide = ops.subtract(ops.convert(ops.constant(np.ones((10000, 1, 1), np.int8)), np.float32), plain(1, 10000, 1))
    yield "widened levels", levels(ops.multiply(wide, np.float32(0.5)))


def measure():
    """Prints by how many MiB each conversion raises the most memory that the process had."""
    import resource

    def begin(model):
        tconv_cl.openvino.convert(model, least_macs=0)

    models = list(hostile())
    begin(skipped("nothing", True))
    for name, model in models:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin(model)
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10, name, flush=True)


def test_memory_follows_what_exists():
    """A number for each claimed channel takes 1 GiB."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
    assert len(lines) == len(list(hostile()))
    assert [line for line in lines if int(line[0]) > 64] == []


def test_weights_without_elements():
    x = ops.parameter([1, 0, 5], np.float32)
    node = transposed(quantized(x, 0, 2.55), quantized(plain(0, 3, 3), 0, 2.55), [1])
    assert convert(ov.Model([quantized(node, 0, 2.55)], [x])) in (0, 1)


@pytest.mark.parametrize("steps, fused", [(8, True), (9, False), (2000, False)])
def test_constants_behind_many_steps(steps, fused):
    """Python's stack is not as deep as a model may be."""
    x, value = ops.parameter(DATA, np.float32), ops.constant(np.full((1, 1, 1, 1), 3, np.float32))
    for _ in range(steps):
        value = ops.reshape(value, np.array([1, 1, 1, 1]), False)
    model = ov.Model([ops.multiply(transposed(x, ops.constant(WEIGHTS), [2, 2]), value)], [x])
    assert convert(model) == 1 and ("Multiply" not in types(model)) == fused


def test_a_chain_of_factors_that_is_longer_than_what_is_fused():
    def made():
        x = ops.parameter(DATA, np.float32)
        node = transposed(x, ops.constant(WEIGHTS), [2, 2])
        for i in range(70):
            node = ops.add(ops.multiply(node, numbers(6, 2, i, 0.9, 1.1)), np.float32(0.01))
        return ov.Model([node], [x])

    model = made()
    assert convert(model) == 1 and types(model).count("Multiply") == 70 - 32
    same(model, made(), [random(DATA)], fallbacks=0)


def of_one_tensor(count):
    """Operators that read one tensor, and whose outputs meet again in sums and in a Concat."""
    x = ops.parameter([2, 1, 5], np.float32)
    nodes = [ops.relu(transposed(ops.abs(x), plain(1, 1, 3), [1])) for _ in range(count)]
    total = nodes[0]
    for node in nodes[1:]:
        total = ops.add(total, node)
    return ov.Model([ops.tanh(total), ops.concat(nodes, 1)], [x])


def in_a_row(count):
    x = ops.parameter([2, 1, 5], np.float32)
    node = x
    for _ in range(count):
        node = ops.exp(transposed(node, plain(1, 1, 1), [1]))
    return ov.Model([node], [x])


@pytest.mark.parametrize("graph", [of_one_tensor, in_a_row])
def test_time_follows_the_number_of_operators(graph):
    """Calls of functions are counted, not seconds."""

    def calls(count):
        counts = {"call": 0, "c_call": 0}

        def note(frame, event, argument):
            if event in counts:
                counts[event] += 1

        model = graph(count)
        sys.setprofile(note)
        try:
            assert convert(model) == count
        finally:
            sys.setprofile(None)
        return sum(counts.values())

    assert calls(900) < 4.5 * calls(300)


if __name__ == "__main__":
    measure()
