# SPDX-License-Identifier: Apache-2.0
"""Shapes that a model only claims, against ONNX Runtime's own operators: names of extents, shapes of values that other
nodes compute, and sizes of tensors that do not exist.

usage: pytest adapters/onnxruntime        after `pip install ./python`; needs an OpenCL device"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
import tconv_cl.onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from test_provider import TYPES, Counted, conv_transpose, operators_that_ran, quantized, random, session, stock

node = helper.make_node
UP = conv_transpose(strides=[2, 2])
WEIGHTS = {"w": random([4, 3, 3, 3], 2)}
X = random([2, 4, 5, 6])  # the output is [2, 3, 11, 13]


def model_of(nodes, inputs, constants, claims=(), dtype=np.float32):
    """Shapes of inputs and of values by name; those of a name in capitals are of INT64, and give a shape."""

    def values(shapes):
        kinds = {name: TensorProto.INT64 if name.isupper() else TYPES[dtype] for name in shapes}
        return [helper.make_tensor_value_info(name, kinds[name], shape) for name, shape in shapes.items()]

    constants = [numpy_helper.from_array(np.asarray(array, dtype), name) for name, array in constants.items()]
    outputs = values({nodes[-1].output[0]: None})
    graph = helper.make_graph(nodes, "graph", values(inputs), outputs, constants, value_info=values(dict(claims)))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()


def claimed(name, shape):
    """A node that gives the input `name`_data the shape S at run time, and what the model says of it."""
    return node("Reshape", [f"{name}_data", "S"], [name]), {name: shape}


def same(model, feeds, ours=None, layers=1):
    """Computed by the provider, the same as by ONNX Runtime; the session keeps the provider."""
    ours, counted = ours or session(model, log_severity_level=3), Counted()
    output, wanted = ours.run(None, feeds)[0], stock(model).run(None, feeds)[0]
    assert output.shape == wanted.shape and output.dtype == wanted.dtype
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
    assert counted.computed == layers and "tconv_cl" in ours.get_providers()


# ---- what is added

ADDED = [[2, 3, 11, 13], [1, 3, 11, 13], [2, 3, 1, 1], [2, 1, 11, 13], [2, 3, 1, 13], [1, 1, 1, 1]]
AFTER = {
    "nothing": [],
    "relu": [node("Relu", ["sum"], ["z"])],
    "concat": [node("Sigmoid", ["sum"], ["t"]), node("Concat", ["s", "t"], ["z"], axis=1)],
}


@pytest.mark.parametrize("after", AFTER)
def test_names_of_a_skip_connection_that_broadcasts(after, capfd):
    """A sum of other shapes is computed apart, and the other ones are not."""
    nodes = [UP, node("Add", ["y", "r"], ["sum"]), *AFTER[after]]
    inputs = {"x": ["n", 4, "p", "q"], "r": ["n", 3, "h", "w"]}
    if after == "concat":
        inputs["s"] = ["n", 2, "h", "w"]
    model = model_of(nodes, inputs, WEIGHTS, {"y": ["n", 3, "h", "w"]})
    ours = session(model)
    for shape in [shape for shape in (*ADDED, ADDED[0]) if shape[1] == 3]:
        feeds = {"x": X, "r": random(shape, 3)}
        if after == "concat":
            feeds["s"] = random([2, 2, 11, 13], 4)
        same(model, feeds, ours)
    said = capfd.readouterr().err
    assert said.count("is computed unfused: the tensor that is added does not have the shape") == 1


def test_a_layer_that_is_smaller_than_what_is_added():
    """One image, and a batch that is added to it."""
    nodes = [UP, node("Add", ["r", "y"], ["sum"]), node("Tanh", ["sum"], ["z"])]
    model = model_of(nodes, {"x": ["n", 4, "p", "q"], "r": ["n", 3, "h", "w"]}, WEIGHTS, {"y": ["n", 3, "h", "w"]})
    same(model, {"x": X[:1], "r": random([5, 3, 11, 13], 3)})


@pytest.mark.parametrize("shape", [*ADDED, [3, 11, 13], [13], [1]])
def test_numbers_of_a_skip_connection_that_another_node_computes(shape):
    reshape, claim = claimed("r", [2, 3, 11, 13])
    nodes = [reshape, UP, node("Add", ["y", "r"], ["z"])]
    model = model_of(nodes, {"x": X.shape, "r_data": None, "S": ["k"]}, WEIGHTS, claim)
    same(model, {"x": X, "r_data": random([np.prod(shape)], 3), "S": np.array(shape)})


@pytest.mark.parametrize("operator", ["Add", "PRelu"])
@pytest.mark.parametrize("shape", [[1, 3, 1, 1], [1, 1, 1, 13], [2, 3, 1, 1], [1, 3, 11, 1], [1, 1, 1, 1], [3, 1, 1]])
def test_a_bias_and_slopes_that_are_not_one_number_for_each_channel(operator, shape):
    reshape, claim = claimed("r", [1, 3, 1, 1])
    nodes = [reshape, UP, node(operator, ["y", "r"], ["z"])]
    model = model_of(nodes, {"x": X.shape, "r_data": None, "S": ["k"]}, WEIGHTS, claim)
    same(model, {"x": X, "r_data": random([np.prod(shape)], 3), "S": np.array(shape)})


CHANNELS = {"c": random([3, 1, 1], 5), "one": np.array(0.5)}


@pytest.mark.parametrize(
    "after, channels",
    [
        (node("Mul", ["y", "c"], ["z"]), 1),
        (node("Sub", ["c", "y"], ["z"]), 1),
        (node("PRelu", ["y", "c"], ["z"]), 1),
        (node("Mul", ["y", "one"], ["z"]), 1),
        (node("Sub", ["one", "y"], ["z"]), 7),
        (node("Relu", ["y"], ["z"]), 5),
    ],
    ids=lambda value: getattr(value, "op_type", value),
)
def test_channels_of_a_filter_that_another_node_computes(after, channels):
    reshape, claim = claimed("w", [4, 3, 3, 3])
    model = model_of([reshape, UP, after], {"x": X.shape, "w_data": None, "S": ["k"]}, CHANNELS, claim)
    shape = [4, channels, 3, 3]
    same(model, {"x": X, "w_data": random([np.prod(shape)], 3), "S": np.array(shape)})


def test_a_rank_that_only_the_model_says():
    """A constant of rank 4 behind an output of rank 3. Another provider computes: ours must know the rank."""
    reshape, claim = claimed("x", X.shape)
    nodes = [reshape, node("ConvTranspose", ["x", "w"], ["y"]), node("Mul", ["y", "c"], ["z"])]
    constants = {"c": np.full([1, 1, 1, 1], 3)}
    model = model_of(nodes, {"x_data": None, "S": ["k"], "w": None}, constants, claim)
    feeds = {"x_data": X.ravel(), "S": np.array([2, 4, 30]), "w": random([4, 3, 3], 2)}
    same(model, feeds, layers=0)
    same(model, {**feeds, "S": np.array(X.shape), "w": WEIGHTS["w"]})


def test_a_bias_of_unknown_channels():
    """Nobody knows how many channels the filter has; the bias, a constant, does."""
    nodes = [node("ConvTranspose", ["x", "w", "b"], ["y"]), node("Mul", ["y", "one"], ["z"])]
    model = model_of(nodes, {"x": X.shape, "w": ["c", "m", "k", "l"]}, {"b": random([3], 3), "one": np.array(0.5)})
    same(model, {"x": X, "w": WEIGHTS["w"]})
    with pytest.raises(InvalidArgument, match="the output has 2 channels"):
        session(model, log_severity_level=4).run(None, {"x": X, "w": random([4, 2, 3, 3], 2)})


def test_quantized_filters_of_other_shapes():
    """Sums of more terms than the model says might not fit into 32 bits."""
    file = onnx.load_from_string(quantized()[0])
    (weights,) = (one for one in file.graph.initializer if one.name == "w")
    values = numpy_helper.to_array(weights)
    file.graph.initializer.remove(weights)
    file.graph.node.insert(0, node("Reshape", ["w_data", "S"], ["w"]))
    kind = weights.data_type
    file.graph.input.extend(
        [
            helper.make_tensor_value_info("w_data", kind, None),
            helper.make_tensor_value_info("S", TensorProto.INT64, ["k"]),
        ]
    )
    file.graph.value_info.append(helper.make_tensor_value_info("w", kind, values.shape))
    model, x = file.SerializeToString(), quantized()[1]
    for shape in (values.shape, (*values.shape[:2], 1, values.size // values[..., 0, 0].size)):
        feeds = {"x": x, "w_data": values.ravel(), "S": np.array(shape)}
        ours, counted = session(model, log_severity_level=3), Counted()
        output, wanted = (one.run(None, feeds)[0].astype(int) for one in (ours, stock(model)))
        assert output.shape == wanted.shape and np.abs(output - wanted).max() <= 1 and counted.computed == 1


def test_without_a_fallback():
    """The layer itself is still computed here."""
    model = model_of([UP, node("Add", ["y", "r"], ["z"])], {"x": ["n", 4, 5, 6], "r": ["n", 3, 11, 13]}, WEIGHTS)
    options = tconv_cl.onnxruntime.session_options(fallback="error")
    same(model, {"x": X, "r": random([1, 3, 11, 13], 3)}, InferenceSession(model, options))


def test_doubles():
    """ONNX Runtime has no operator for them, but this provider has."""
    inputs = {"x": ["n", 4, 5, 6], "r": ["n", 3, 11, 13]}
    model = model_of([UP, node("Add", ["y", "r"], ["z"])], inputs, WEIGHTS, dtype=np.float64)
    x, r = X.astype(np.float64), random([1, 3, 11, 13], 3, np.float64)
    ours, counted = session(model, log_severity_level=3), Counted()
    apart = ours.run(None, {"x": x, "r": r})[0]
    together = ours.run(None, {"x": x, "r": np.broadcast_to(r, [2, 3, 11, 13]).copy()})[0]
    np.testing.assert_allclose(apart, together, rtol=1e-14, atol=1e-14)
    assert counted.computed == 2


def test_eight_threads_that_begin_together():
    model = model_of([UP, node("Add", ["y", "r"], ["z"])], {"x": ["n", 4, 5, 6], "r": ["n", 3, 11, 13]}, WEIGHTS)
    ours, wanted = session(model, log_severity_level=3), stock(model)
    feeds = [{"x": random([2, 4, 5, 6], i), "r": random([1 + i % 2, 3, 11, 13], 9 + i)} for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        outputs = list(pool.map(lambda feed: ours.run(None, feed)[0], feeds))
    for feed, output in zip(feeds, outputs):
        np.testing.assert_allclose(output, wanted.run(None, feed)[0], rtol=1e-5, atol=1e-5)


def test_a_branch():
    """Its tensors are those of the graph around it."""

    def branch(name, operator):
        nodes = [
            node("ConvTranspose", ["x", "w"], [f"{name}_y"], strides=[2, 2]),
            node("Add", ["r", f"{name}_y"], [f"{name}_sum"]),
            node(operator, [f"{name}_sum"], [name]),
        ]
        kind = helper.make_tensor_value_info
        claims = [kind(f"{name}_y", TensorProto.FLOAT, ["n", 3, "h", "w"])]
        outputs = [kind(name, TensorProto.FLOAT, None)]
        return helper.make_graph(nodes, f"{name}_graph", [], outputs, value_info=claims)

    branches = {"then_branch": branch("then", "Relu"), "else_branch": branch("else", "Tanh")}
    nodes = [node("Cast", ["C"], ["c"], to=TensorProto.BOOL), node("If", ["c"], ["z"], **branches)]
    inputs = {"x": ["n", 4, "p", "q"], "r": ["n", 3, "h", "w"], "C": []}
    model = model_of(nodes, inputs, WEIGHTS)
    ours = session(model, log_severity_level=3)
    for choice in (0, 1):
        for shape in ([2, 3, 11, 13], [1, 3, 11, 13]):
            same(model, {"x": X, "r": random(shape, 3), "C": np.array(choice)}, ours)


def test_sums_that_nobody_computes():
    """The request is wrong, and the session goes on."""
    model = model_of([UP, node("Add", ["y", "r"], ["z"])], {"x": ["n", 4, 5, 6], "r": ["n", 3, 11, 13]}, WEIGHTS)
    ours = session(model, log_severity_level=4)
    words = "the tensor that is added does not have the shape of the output; unfused: .*broadcast"
    with pytest.raises(InvalidArgument, match=words):
        ours.run(None, {"x": X, "r": random([3, 3, 11, 13], 3)})
    same(model, {"x": X, "r": random([2, 3, 11, 13], 3)}, ours)


@pytest.mark.parametrize("shape, channels", [([0, 0, 11, 13], 3), ([7, 0, 1, 9], 3), ([2, 0, 11, 13], 3)])
def test_parts_of_a_concat_without_channels(shape, channels):
    model = model_of([UP, node("Concat", ["s", "y"], ["z"], axis=1)], {"x": X.shape, "s": None}, WEIGHTS)
    same(model, {"x": X, "s": random(shape)})


def test_a_layer_with_more_inputs_than_operators_have(tmp_path):
    """15 nodes of five inputs behind a layer, and a Concat of eight."""
    names = ["scale", "shift", "mean", "variance"]
    constants = dict(WEIGHTS)
    nodes, last = [UP], "y"
    for i in range(14):
        constants |= {f"{name}{i}": random([3], 7 * i + j) ** 2 + 0.5 for j, name in enumerate(names)}
        nodes.append(node("BatchNormalization", [last, *(f"{name}{i}" for name in names)], [f"y{i}"]))
        last = f"y{i}"
    parts = [f"s{i}" for i in range(7)]
    nodes.append(node("Concat", [*parts, last], ["z"], axis=1))
    model = model_of(nodes, {"x": X.shape, **{part: [2, 1, 11, 13] for part in parts}}, constants)
    feeds = {"x": X, **{part: random([2, 1, 11, 13], i) for i, part in enumerate(parts)}}
    wanted = stock(model).run(None, feeds)[0]
    ran, output = operators_that_ran(model, feeds.pop("x"), tmp_path, **feeds)
    assert [provider for provider, _ in ran] == ["tconv_cl"]
    np.testing.assert_allclose(output, wanted, rtol=1e-3, atol=1e-3)


# ---- sizes that only the model says

HUGE = 1 << 27


def hostile():
    """Models of some hundred bytes, by what they claim."""
    two, up = {"m": np.array(2)}, conv_transpose(group=HUGE)
    claims = {"x": [1, HUGE, 5], "w": [HUGE, 1, 3]}
    yield (
        "a filter of other groups",
        model_of([up, node("Mul", ["y", "m"], ["z"])], {"x": [1, 1, 5]}, {**two, "w": np.ones([1, 1, 3])}),
    )
    for name, inputs in (
        ("Mul", ["y", "m"]),
        ("Sub", ["m", "y"]),
        ("PRelu", ["y", "m"]),
    ):
        yield f"groups, {name}", model_of([up, node(name, inputs, ["z"])], claims, two)
    yield "groups and a bias", model_of([up, node("Add", ["y", "b"], ["z"])], {**claims, "b": [HUGE, 1]}, {})
    wide = {"x": [1, 1, 5], "w": [1, 1 << 40, 3]}
    yield "channels", model_of([conv_transpose(), node("Mul", ["y", "m"], ["z"])], wide, two)
    normalization = node("BatchNormalization", ["y", "a", "a", "a", "a"], ["z"])
    lists = {"a": [HUGE]}
    yield "a normalization", model_of([up, normalization], {**claims, **lists}, {})
    for scale in ([], [2]):
        nodes = [
            node("DequantizeLinear", ["xq", "xs", "xz"], ["x"]),
            node("DequantizeLinear", ["wq", "ws"], ["w"], axis=1),
            up,
            node("QuantizeLinear", ["y", "xs", "xz"], ["z"]),
        ]
        kind = helper.make_tensor_value_info
        graph = helper.make_graph(
            nodes,
            "graph",
            [kind("xq", TensorProto.UINT8, [1, HUGE, 5]), kind("wq", TensorProto.INT8, [HUGE, 2, 3])],
            [kind("z", TensorProto.UINT8, None)],
            [
                numpy_helper.from_array(np.float32(0.1), "xs"),
                numpy_helper.from_array(np.uint8(3), "xz"),
                numpy_helper.from_array(np.full(scale, 0.1, np.float32), "ws"),
            ],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        yield f"bytes, scales {scale}", model.SerializeToString()
    for name, value in (
        ("strides", [1 << 40]),
        ("dilations", [1 << 40]),
        ("pads", [1 << 61, 1 << 61]),
        ("output_padding", [1 << 40]),
        ("output_shape", [1 << 40]),
    ):
        one = {**two, "w": np.ones([1, 1, 3])}
        nodes = [conv_transpose(**{name: value}), node("Mul", ["y", "m"], ["z"])]
        yield name, model_of(nodes, {"x": [1, 1, 5]}, one)
    yield (
        "taps",
        model_of([conv_transpose(), node("Mul", ["y", "m"], ["z"])], {"x": [1, 1, 5], "w": [1, 1, 1 << 40]}, two),
    )
    yield (
        "axes",
        model_of(
            [conv_transpose(), node("Add", ["y", "r"], ["z"])],
            {"x": [1, 1, 5], "r": [1] * 5000},
            {"w": np.ones([1, 1, 3])},
        ),
    )
    chain = [node("Mul", ["y" if i == 0 else f"y{i - 1}", "m"], [f"y{i}"]) for i in range(1000)]
    yield "nodes", model_of([conv_transpose(), *chain], claims, two)


# Prints by how many MiB the session of each file raises the most memory that the process had.
MEASURE = """
import resource, sys
import onnxruntime
import tconv_cl.onnxruntime

for path in sys.argv[1:]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    options = tconv_cl.onnxruntime.session_options(least_macs=0)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(path, options)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_memory_follows_what_exists(tmp_path):
    """A number for each claimed channel takes 1 GiB. The first session, of a usual model, needs a compiler."""
    models = {"usual": model_of([UP, node("Relu", ["y"], ["z"])], {"x": X.shape}, WEIGHTS), **dict(hostile())}
    files = [tmp_path / f"{number}.onnx" for number in range(len(models))]
    for file, model in zip(files, models.values()):
        file.write_bytes(model)
    done = subprocess.run([sys.executable, "-c", MEASURE, *files], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    grown = dict(zip(models, map(int, done.stdout.split()), strict=True))
    assert {name: size for name, size in grown.items() if size > 64 and name != "usual"} == {}


def test_more_layers_than_a_graph_has(capfd):
    """ONNX Runtime would take a minute to fuse them, so it computes those beyond 128 itself."""
    count = 1000
    weights = {f"w{i}": np.full([1, 1, 3], i) for i in range(count)}
    nodes = [node("ConvTranspose", ["x", f"w{i}"], [f"y{i}"], f"layer{i}") for i in range(count)]
    nodes.append(node("Concat", [f"y{i}" for i in range(count)], ["z"], axis=1))
    model = model_of(nodes, {"x": [1, 1, 5]}, weights)
    same(model, {"x": random([1, 1, 5])}, session(model), layers=128)
    assert capfd.readouterr().err.count("and those after it: there are more than 128") == 1
