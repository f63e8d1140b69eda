# SPDX-License-Identifier: Apache-2.0
"""The execution provider against ONNX Runtime's own and the conformance vectors. Each test also looks at who computed.

usage: pytest adapters/onnxruntime        after `pip install ./python`; needs an OpenCL device

TCONV_CL_TEST_RUNS: how many inferences each of eight threads does."""

import csv
import gc
import json
import os
import pathlib
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnxruntime
import pytest
import tconv_cl.onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

ROOT = pathlib.Path(__file__).resolve().parents[2]
VECTORS = ROOT / "device_tests" / "vectors"
RUNS = int(os.environ.get("TCONV_CL_TEST_RUNS", "50"))
TYPES = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16, np.float64: TensorProto.DOUBLE}


class Counted:
    """What has happened since."""

    def __init__(self):
        self.before = tconv_cl.onnxruntime.statistics()

    def __getattr__(self, name):
        return getattr(tconv_cl.onnxruntime.statistics(), name) - getattr(self.before, name)


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def integers(text):
    return [int(word) for word in text.split()]


def random(shape, seed=1, dtype=np.float32):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def conv_transpose(**attributes):
    return helper.make_node("ConvTranspose", ["x", "w"], ["y"], "conv", **attributes)


def model_of(nodes, shape, constants, dtype=np.float32, opset=13, inputs=(), output=None):
    """A model from input x of that shape to the last node's output. `inputs`: shapes of further ones, by name."""
    value, kind = helper.make_tensor_value_info, TYPES[dtype]
    constants = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    inputs = [value("x", kind, shape), *(value(name, kind, its) for name, its in dict(inputs).items())]
    outputs = [value(output or nodes[-1].output[0], kind, None)]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return model.SerializeToString()


def session(model, device=None, least_macs=0, **settings):
    """With small layers, too."""
    options = onnxruntime.SessionOptions()
    for name, value in settings.items():
        setattr(options, name, value)
    tconv_cl.onnxruntime.session_options(options, device=device, least_macs=least_macs)
    return onnxruntime.InferenceSession(model, options)


def stock(model):
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def run(model, x, **others):
    """Computed by the provider, which is made sure of."""
    counted = Counted()
    output = session(model).run(None, {"x": x, **others})[0]
    assert counted.computed == 1 and counted.in_slabs == 0
    return output


def compare(model, x, tolerance=1e-5, **others):
    output = run(model, x, **others)
    wanted = stock(model).run(None, {"x": x, **others})[0]
    assert output.shape == wanted.shape and output.dtype == wanted.dtype
    np.testing.assert_allclose(output.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance)


# ---- ONNX's own tests of backends

with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):  # other operators' cases are computed, too
    ONNX_CASES = [case for case in load_model_tests(kind="node") if case.name.startswith("test_convtranspose")]


def test_there_are_cases_of_onnx():
    assert len(ONNX_CASES) >= 11


@pytest.mark.parametrize("case", ONNX_CASES, ids=lambda case: case.name)
def test_onnx(case):
    ours = session(case.model.SerializeToString())
    names = [value.name for value in case.model.graph.input]
    for inputs, outputs in case.data_sets:
        counted = Counted()
        (output,) = ours.run(None, dict(zip(names, inputs)))
        assert counted.computed == 1 and output.dtype == outputs[0].dtype
        np.testing.assert_allclose(output, outputs[0], rtol=case.rtol, atol=case.atol)


# ---- conformance vectors


def is_expressible(case):
    """ONNX has one operator, with groups, in one format, of floating types."""
    formats = case["data_format"] == "NCX" and case["filter_format"] == "OIX" or case["op"] == "group_conv_backprop"
    return "onnx" in case["rules"].split() and formats and case["dtype"] == "f32"


CASES = [case for case in rows(VECTORS / "cases.csv") if is_expressible(case)]
MODELS = [row["model"] for row in rows(VECTORS / "onnx" / "models.csv")]


def test_there_are_vectors():
    assert len(CASES) > 60 and len(MODELS) == 4


@pytest.mark.parametrize("opset", [1, 11, 22])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_vectors(case, opset):
    name = str(VECTORS / "data" / case["id"])
    data, filter_, wanted = (np.load(f"{name}.{part}.npy") for part in ("data", "filter", "output"))
    groups = int(case["groups"])
    if case["op"] == "group_conv_backprop":
        groups = filter_.shape[0]
        filter_ = filter_.reshape(-1, *filter_.shape[2:])
    attributes = {name: integers(case[name]) for name in ("strides", "dilations", "output_padding", "output_shape")}
    attributes = {name: value for name, value in attributes.items() if value}
    attributes["auto_pad"] = {"explicit": "NOTSET"}.get(case["auto_pad"], case["auto_pad"].upper())
    if case["auto_pad"] == "explicit":
        attributes["pads"] = integers(case["pads_begin"]) + integers(case["pads_end"])
    node = conv_transpose(group=groups, kernel_shape=filter_.shape[2:], **attributes)
    output = run(model_of([node], data.shape, {"w": filter_}, opset=opset), data)
    assert output.shape == wanted.shape
    if case["check"] == "exact":
        np.testing.assert_array_equal(output, wanted)
    else:
        assert (np.abs(output - wanted) <= np.load(f"{name}.bound.npy")).all()


@pytest.mark.parametrize("batch", [None, "N"])
@pytest.mark.parametrize("name", MODELS)
def test_models(name, batch):
    path = str(VECTORS / "onnx" / name)
    data, wanted, bound = (np.load(f"{path}.{part}.npy") for part in ("input", "output", "bound"))
    file = onnx.load(f"{path}.onnx")
    if batch is not None:
        file.graph.input[0].type.tensor_type.shape.dim[0].dim_param = batch
        del file.graph.output[0].type.tensor_type.shape.dim[:]
    counted = Counted()
    output = session(file.SerializeToString()).run(None, {file.graph.input[0].name: data})[0]
    assert counted.computed == 1
    assert output.shape == wanted.shape and (np.abs(output - wanted) <= bound).all()


# ---- attributes, against ONNX Runtime's own operator


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("auto_pad", ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("output_shape", [None, "smaller", "larger"])
def test_attributes(axes, groups, dynamic, auto_pad, output_shape):
    extents = [5, 4, 3][:axes]
    x, w, b = random([2, 4, *extents]), random([4, 3, *[3, 2, 3][:axes]], 2), random([3 * groups], 3)
    attributes = {"strides": [3, 2, 2][:axes], "dilations": [1, 2, 1][:axes], "output_padding": [1, 0, 1][:axes]}
    if output_shape is not None:
        attributes["output_shape"] = [extent * 2 - (output_shape == "smaller") for extent in extents]
    if auto_pad == "NOTSET":
        attributes["pads"] = [1, 0, 1][:axes] + [0, 1, 1][:axes]
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], group=groups, auto_pad=auto_pad, **attributes)
    shape = ["n", 4, *"hwd"[:axes]] if dynamic else x.shape
    compare(model_of([node], shape, {"w": w, "b": b}), x)


def test_six_axes():
    """With one tap, the data are spread."""
    x = random([1, 1, 2, 1, 2, 1, 2, 2])
    output = run(model_of([conv_transpose(strides=[2] * 6)], x.shape, {"w": np.ones([1, 1] + [1] * 6, np.float32)}), x)
    assert output.shape == (1, 1, 3, 1, 3, 1, 3, 3)
    np.testing.assert_array_equal(output[:, :, ::2, ::2, ::2, ::2, ::2, ::2], x)


@pytest.mark.parametrize("dtype, tolerance", [(np.float16, 2e-3), (np.float64, 1e-12)])
@pytest.mark.parametrize("opset", [1, 11, 22])
def test_other_types(dtype, tolerance, opset):
    """f16 needs no conversions, as ONNX Runtime's own operator does; that one has no f64."""
    x, w = random([2, 4, 5, 6], 1, dtype), random([4, 3, 3, 3], 2, dtype)
    model = model_of([conv_transpose(strides=[2, 2])], x.shape, {"w": w}, dtype, opset)
    output = run(model, x)
    node = conv_transpose(strides=[2, 2])
    wide = stock(model_of([node], x.shape, {"w": w.astype(np.float32)})).run(None, {"x": x.astype(np.float32)})[0]
    assert output.dtype == dtype and output.shape == wide.shape
    if dtype == np.float64:  # the operation once more, in NumPy
        wide = np.zeros(output.shape)
        for i, j in np.ndindex(3, 3):
            wide[:, :, i : i + 9 : 2, j : j + 11 : 2] += np.einsum("nchw,co->nohw", x, w[:, :, i, j])
    np.testing.assert_allclose(output.astype(np.float64), wide, rtol=tolerance, atol=tolerance)


def test_bfloat16():
    """Between conversions, as NumPy does not have it; small integers are exact in it."""
    shapes = [(1, 2, 5, 6), (2, 3, 3, 3)]
    x, w = (np.random.default_rng(1).integers(-2, 3, shape).astype(np.float32) for shape in shapes)
    convert = [helper.make_node("Cast", [name], [f"{name}_b"], to=TensorProto.BFLOAT16) for name in "xw"]
    node = helper.make_node("ConvTranspose", ["x_b", "w_b"], ["y_b"], strides=[2, 2])
    back = helper.make_node("Cast", ["y_b"], ["y"], to=TensorProto.FLOAT)
    wanted = stock(model_of([conv_transpose(strides=[2, 2])], x.shape, {"w": w})).run(None, {"x": x})[0]
    np.testing.assert_array_equal(run(model_of([*convert, node, back], x.shape, {"w": w}, opset=22), x), wanted)


# ---- what is fused

ACTIVATIONS = {
    "Relu": {},
    "LeakyRelu": {"alpha": 0.3},
    "Sigmoid": {},
    "Tanh": {},
    "Elu": {"alpha": 0.7},
    "Gelu": {"approximate": "tanh"},
    "HardSwish": {},
    "Mish": {},
}


def chain(*nodes, dtype=np.float32, opset=20, shape=(2, 4, 5, 6), **constants):
    """ConvTranspose, then nodes by operator, further inputs and attributes."""
    made, last = [conv_transpose(strides=[2, 2])], "y"
    for i, (operator, inputs, attributes) in enumerate(nodes):
        made.append(helper.make_node(operator, [last, *inputs], [f"y{i}"], **attributes))
        last = f"y{i}"
    constants = {"w": random([4, 3, 3, 3], 2), **constants}
    return model_of(made, shape, {name: array.astype(dtype) for name, array in constants.items()}, dtype, opset)


def operators_that_ran(model, x, folder, **others):
    """The operators that each provider ran, from ONNX Runtime's profile; and the output."""
    own = session(model, enable_profiling=True, profile_file_prefix=str(folder / "profile"))
    output = own.run(None, {"x": x, **others})[0]
    events = json.loads(pathlib.Path(own.end_profiling()).read_text())
    ran = [event["args"] for event in events if event["name"].endswith("_kernel_time")]
    return [(args["provider"], args["op_name"]) for args in ran], output


@pytest.mark.parametrize(
    "name, inputs, attributes, constants",
    [
        *((name, [], attributes, {}) for name, attributes in ACTIVATIONS.items()),
        ("Gelu", [], {}, {}),
        ("Clip", ["low", "high"], {}, {"low": np.array(-0.5), "high": np.array(1)}),
        ("Clip", ["low"], {}, {"low": np.array(0.5)}),
        ("Clip", ["", "high"], {}, {"high": np.array(0.5)}),
        ("PRelu", ["slope"], {}, {"slope": np.array([0.1, -0.2, 3]).reshape(3, 1, 1)}),
        ("PRelu", ["slope"], {}, {"slope": np.array([0.2])}),
    ],
)
@pytest.mark.parametrize("bias", [False, True])
def test_bias_and_activation_are_fused(name, inputs, attributes, constants, bias, tmp_path):
    nodes = [(name, inputs, attributes)]
    if bias:
        nodes.insert(0, ("Add", ["b"], {}))
        constants = {**constants, "b": random([1, 3, 1, 1], 5)}
    all_is_fused(chain(*nodes, **constants), random([2, 4, 5, 6]), tmp_path)


def all_is_fused(model, x, folder, **others):
    """One node of this provider's computes the model, and what ONNX Runtime does."""
    ran, output = operators_that_ran(model, x, folder, **others)
    assert [provider for provider, _ in ran] == ["tconv_cl"]
    np.testing.assert_allclose(output, stock(model).run(None, {"x": x, **others})[0], rtol=1e-5, atol=1e-5)


PER_CHANNEL = np.array([0.5, -2, 3]).reshape(3, 1, 1)
NORMALIZATION = {
    "scale": random([3], 11),
    "shift": random([3], 12),
    "mean": random([3], 13),
    "variance": random([3], 14) ** 2 + 0.1,
}


@pytest.mark.parametrize(
    "nodes",
    [
        [("Mul", "c"), "Relu"],
        [("Add", "one"), ("Mul", "c"), ("Sub", "one"), ("Div", "c"), "Tanh"],
        [("Mul", "one"), ("Div", "one")],
        [("Sub", "c"), ("Sub", "c")],
        [("BatchNormalization", "scale", "shift", "mean", "variance"), "Relu"],
        [("Add", "c"), ("BatchNormalization", "scale", "shift", "mean", "variance"), ("Mul", "one")],
        [("Mul", "c"), ("Add", "residual")],
        [("BatchNormalization", "scale", "shift", "mean", "variance"), ("Add", "residual"), "Relu"],
    ],
    ids=str,
)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_arithmetic_is_fused(nodes, first, bias, tmp_path):
    """Constants that are added and multiplied, as either operand, then a tensor of the output's shape."""
    made, last = [conv_transpose(strides=[2, 2])], "y"
    if bias:
        made[0].input.append("b")
    for i, (name, *others) in enumerate((node,) if isinstance(node, str) else node for node in nodes):
        inputs = [*others, last] if first and name in ("Add", "Mul", "Sub") else [last, *others]
        made.append(helper.make_node(name, inputs, [f"y{i}"]))
        last = f"y{i}"
    used = {name for node in made for name in node.input}
    constants = {
        "w": random([4, 3, 3, 3], 2),
        "b": random([3], 3),
        "c": PER_CHANNEL,
        "one": np.array(1.5),
        **NORMALIZATION,
    }
    constants = {name: array.astype(np.float32) for name, array in constants.items() if name in used}
    others = {"residual": random([2, 3, 11, 13], 9)} if "residual" in used else {}
    inputs = {name: array.shape for name, array in others.items()}
    model = model_of(made, (2, 4, 5, 6), constants, opset=15, inputs=inputs)
    all_is_fused(model, random([2, 4, 5, 6]), tmp_path, **others)


@pytest.mark.parametrize(
    "gate", [["Sigmoid"], [("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5})], ["Softplus", "Tanh"]], ids=str
)
@pytest.mark.parametrize("first", [False, True])
def test_gates_are_fused(gate, first, tmp_path):
    """x * f(x): silu, hardswish and mish as exporters write them."""
    nodes, last = [conv_transpose(strides=[2, 2])], "y"
    for i, node in enumerate(gate):
        name, attributes = (node, {}) if isinstance(node, str) else node
        nodes.append(helper.make_node(name, [last], [f"y{i}"], **attributes))
        last = f"y{i}"
    nodes.append(helper.make_node("Mul", [last, "y"] if first else ["y", last], ["z"]))
    all_is_fused(model_of(nodes, (2, 4, 5, 6), {"w": random([4, 3, 3, 3], 2)}), random([2, 4, 5, 6]) * 3, tmp_path)


def test_a_skip_connection_is_fused(tmp_path):
    """Two layers that are added: the second takes in the sum. The batch is known by name only."""
    nodes = [
        conv_transpose(strides=[2, 2]),
        helper.make_node("ConvTranspose", ["x", "v"], ["other"], strides=[2, 2]),
        helper.make_node("Add", ["y", "other"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["z"]),
    ]
    constants = {"w": random([4, 3, 3, 3], 2), "v": random([4, 3, 3, 3], 4)}
    model, x = model_of(nodes, ("batch", 4, 5, 6), constants), random([2, 4, 5, 6])
    ran, output = operators_that_ran(model, x, tmp_path)
    assert [provider for provider, _ in ran] == ["tconv_cl", "tconv_cl"]
    np.testing.assert_allclose(output, stock(model).run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_fused_in_other_types(dtype, tmp_path):
    """Also a clip whose bounds are f16."""
    nodes = [("Add", ["b"], {}), ("Clip", ["low", "high"], {})]
    constants = {"b": random([1, 3, 1, 1], 5), "low": np.array(-0.5), "high": np.array(1)}
    x = random([2, 4, 5, 6])
    ran, output = operators_that_ran(chain(*nodes, dtype=dtype, **constants), x.astype(dtype), tmp_path)
    assert [provider for provider, _ in ran] == ["tconv_cl"]
    wanted = stock(chain(*nodes, **constants)).run(None, {"x": x})[0]
    np.testing.assert_allclose(output.astype(np.float64), wanted, rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize(
    "nodes, constants",
    [
        ([("Add", ["b"], {})], {"b": random([11, 13], 5)}),  # along the last axes: no bias
        ([("Add", ["b"], {})], {"b": random([1, 1, 1, 1, 1], 5)}),  # the result has a higher rank
        ([("Div", ["b"], {})], {"b": np.zeros([1])}),
        ([("Sin", [], {})], {}),
        ([("HardSigmoid", [], {})], {}),
        ([("LeakyRelu", [], {"alpha": float("inf")})], {}),
        ([("Elu", [], {"alpha": float("inf")})], {}),
        ([("PRelu", ["b"], {})], {"b": np.array([np.inf])}),
        ([("Relu", [], {}), ("Add", ["b"], {})], {"b": random([3, 1, 1], 5)}),  # a bias comes before
    ],
)
def test_what_is_not_fused(nodes, constants, tmp_path):
    model, x = chain(*nodes, **constants), random([2, 4, 5, 6])
    ran, output = operators_that_ran(model, x, tmp_path)
    assert [provider for provider, _ in ran] == ["tconv_cl", "CPUExecutionProvider"]
    np.testing.assert_allclose(output, stock(model).run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("inputs", [["low"], ["", "high"], []])
def test_a_clip_of_doubles_without_a_bound_is_fused(inputs, tmp_path):
    bounds = {"low": np.array(-0.25), "high": np.array(0.25)}
    constants = {name: bounds[name] for name in inputs if name}
    model, x = chain(("Clip", inputs, {}), dtype=np.float64, **constants), random([2, 4, 5, 6]).astype(np.float64)
    output = session(model).run(None, {"x": x})[0]
    ran, _ = operators_that_ran(model, x, tmp_path)
    assert [provider for provider, _ in ran] == ["tconv_cl"]
    assert (output.min() == -0.25) == ("low" in inputs) and (output.max() == 0.25) == ("high" in inputs)


@pytest.mark.parametrize("gate, factor", [("Sigmoid", "v"), ("HardSigmoid", "y")])
def test_other_products_are_no_gates(gate, factor, tmp_path):
    """The other factor is not the gate's input, or the gate is not that of hardswish."""
    nodes = [
        conv_transpose(strides=[2, 2]),
        helper.make_node(gate, ["y"], ["g"]),
        helper.make_node("Exp", ["y"], ["v"]),
        helper.make_node("Mul", ["g", factor], ["z"]),
        helper.make_node("Add", ["z", "v"], ["sum"]),
    ]
    x, constants = random([1, 4, 5, 5]), {"w": random([4, 3, 3, 3], 2)}
    model = model_of(nodes, x.shape, constants)
    ran, output = operators_that_ran(model, x, tmp_path)
    assert len(ran) == len(nodes)
    np.testing.assert_allclose(output, stock(model).run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("output", ["y", "z", "v"])
def test_what_others_see_is_not_fused(output, tmp_path):
    """ConvTranspose's own result is read twice, or is the model's."""
    nodes = [
        conv_transpose(strides=[2, 2]),
        helper.make_node("Relu", ["y"], ["z"]),
        helper.make_node("Sub", ["z", "y"] if output == "v" else ["z", "one"], ["v"]),
    ]
    x, constants = random([1, 4, 5, 5]), {"w": random([4, 3, 3, 3], 2), "one": np.ones([1], np.float32)}
    model = model_of(nodes, x.shape, constants, output=output)
    ran, result = operators_that_ran(model, x, tmp_path)
    assert ran[0][0] == "tconv_cl"
    np.testing.assert_allclose(result, stock(model).run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)


# ---- layers of bytes

BYTES = {"u8": (np.uint8, TensorProto.UINT8, 121), "i8": (np.int8, TensorProto.INT8, -3)}


def quantized(
    data="u8",
    filter_="i8",
    output="u8",
    groups=1,
    per_channel=True,
    bias="linear",
    between=(),
    axes=2,
    step=2.0**-5,
    zero=None,
):
    """A model of floats whose layer stands between integers, and its input. With the steps that it has if none is
    given, the sums of floats are exact, too."""
    draw = np.random.default_rng(5)
    constants = {}

    def linear(name, kind, scale, zero):
        element, _, _ = BYTES[kind]
        constants[f"{name}_scale"] = np.array(scale, np.float32)
        constants[f"{name}_zero"] = np.full(np.shape(scale), zero, element)
        return [f"{name}_scale", f"{name}_zero"]

    node, channels = helper.make_node, 5 * groups
    zeros = {kind: BYTES[kind][2] if zero is None else zero for kind in BYTES}
    x = linear("x", data, step, zeros[data])
    info = np.iinfo(BYTES[filter_][0])
    constants["w"] = draw.integers(info.min, info.max + 1, (4 * groups, 5, *[3] * axes)).astype(BYTES[filter_][0])
    w = linear(
        "w", filter_, step * 2.0 ** draw.integers(-2, 3, 5) if per_channel else step, 0 if filter_ == "i8" else 128
    )
    nodes = [
        node("QuantizeLinear", ["x", *x], ["x_bytes"]),
        node("DequantizeLinear", ["x_bytes", *x], ["x_floats"]),
        node("DequantizeLinear", ["w", *w], ["w_floats"], axis=1),
        node("ConvTranspose", ["x_floats", "w_floats"], ["y"], strides=[2] * axes, group=groups),
    ]
    if bias:
        constants["b"] = draw.integers(-3000, 3000, channels).astype(np.int32)
        if bias == "linear":
            scale, zero = np.full(channels, step * step, np.float32), np.zeros(channels, np.int32)
            constants["b_scale"], constants["b_zero"] = scale, zero
            nodes.insert(0, node("DequantizeLinear", ["b", "b_scale", "b_zero"], ["b_floats"], axis=0))
            nodes[-1].input.append("b_floats")
        else:
            constants["b"] = (constants["b"] * step * step).astype(np.float32)
            nodes[-1].input.append("b")
    last = "y"
    for i, (operator, inputs, attributes, further) in enumerate(between):
        nodes.append(node(operator, [last, *inputs], [f"y{i}"], **attributes))
        constants.update(further)
        last = f"y{i}"
    y = linear("y", output, step * 64, zeros[output])
    nodes += [node("QuantizeLinear", [last, *y], ["y_bytes"]), node("DequantizeLinear", ["y_bytes", *y], ["z"])]
    shape = [2, 4 * groups, *[6, 5, 3][:axes]]
    return model_of(nodes, shape, constants), random(shape) * 4


def numbers(value, *shape):
    return np.full(shape, value, np.float32)


ON_BYTES = ["QuantizeLinear", "DequantizeLinear"]  # what stays with ONNX Runtime


@pytest.mark.parametrize(
    "options",
    [
        *({"data": data, "output": output} for data in BYTES for output in BYTES),
        {"filter_": "u8"},
        {"groups": 3},
        {"per_channel": False},
        {"bias": None},
        {"bias": "floats"},
        {"axes": 1},
        {"axes": 3},
        {"zero": 0},
        {"between": [("Relu", [], {}, {})]},
        {"between": [("LeakyRelu", [], {"alpha": 0.25}, {})]},
        {"between": [("Clip", ["low", "high"], {}, {"low": numbers(-8), "high": numbers(16)})]},
        {"between": [("Clip", ["low"], {}, {"low": numbers(-8)})]},
        {"bias": "floats", "between": [("Mul", ["two"], {}, {"two": numbers(0.5, 5, 1, 1)}), ("Relu", [], {}, {})]},
    ],
    ids=str,
)
def test_bytes(options, tmp_path):
    """All numbers have few bits, so both computations are exact, and half-way cases are rounded alike."""
    model, x = quantized(**options)
    ran, output = operators_that_ran(model, x, tmp_path)
    assert sorted(name for provider, name in ran if provider != "tconv_cl") == sorted(ON_BYTES)
    assert [provider for provider, _ in ran].count("tconv_cl") == 1
    wanted = stock(model).run(None, {"x": x})[0]
    assert len(np.unique(wanted)) > 9
    np.testing.assert_array_equal(output, wanted)


def test_bytes_with_any_steps():
    """Sums of floats are rounded, and may then be on the other side of the middle of two bytes."""
    model, x = quantized(step=0.0237)
    difference = np.abs(run(model, x) - stock(model).run(None, {"x": x})[0]) / (64 * 0.0237)
    assert difference.max() < 1.01 and (difference > 0.01).mean() < 0.01


@pytest.mark.parametrize(
    "options",
    [
        {"between": [("Tanh", [], {}, {})]},
        {"between": [("PRelu", ["slope"], {}, {"slope": random([5, 1, 1], 6)})]},
        {"between": [("Add", ["skip"], {}, {"skip": random([2, 5, 13, 11], 6)})]},
        {"data": "i8", "filter_": "u8"},
        {"filter_": "u8", "output": "i8"},
    ],
    ids=str,
)
def test_bytes_that_are_computed_as_floats(options, tmp_path):
    """Activations that depend on the scale, what is added as floats, types that the library does not have together."""
    model, x = quantized(**options)
    ran, output = operators_that_ran(model, x, tmp_path)
    names = [name for provider, name in ran if provider != "tconv_cl"]
    assert names.count("QuantizeLinear") == 2 and "ConvTranspose" not in names
    difference = np.abs(output - stock(model).run(None, {"x": x})[0])
    assert difference.max() < 2.01 and (difference > 0.01).mean() < 0.01


@pytest.mark.parametrize("terms, fits", [(33025, True), (33026, False)])
def test_sums_of_bytes_stay_in_32_bits(terms, fits, tmp_path):
    """With more terms of 255 * 255 they might not."""
    node = helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "one", "zero"], ["q"]),
        node("DequantizeLinear", ["q", "one", "zero"], ["u"]),
        node("DequantizeLinear", ["w", "one", "zero"], ["v"]),
        node("ConvTranspose", ["u", "v"], ["y"]),
        node("QuantizeLinear", ["y", "step", "zero"], ["r"]),
        node("DequantizeLinear", ["r", "step", "zero"], ["z"]),
    ]
    weights = np.full([terms, 1, 1], 255, np.uint8)
    constants = {"one": numbers(1), "step": numbers(1 << 24), "zero": np.array(0, np.uint8), "w": weights}
    model, x = model_of(nodes, [1, terms, 2], constants), numbers(255, 1, terms, 2)
    ran, output = operators_that_ran(model, x, tmp_path)
    assert [name for _, name in ran].count("QuantizeLinear") == (1 if fits else 2)
    np.testing.assert_array_equal(output, numbers((1 << 24) * 128, 1, 1, 2))


def test_branches():
    """The weights are the outer graph's."""

    def branch(name, activation):
        nodes = [
            helper.make_node("ConvTranspose", ["x", "w"], [f"{name}_y"]),
            helper.make_node(activation, [f"{name}_y"], [f"{name}_z"]),
        ]
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(f"{name}_z", TensorProto.FLOAT, None)])

    one = helper.make_node("If", ["choose"], ["y"], then_branch=branch("a", "Relu"), else_branch=branch("b", "Tanh"))
    value = helper.make_tensor_value_info
    x, w = random([1, 4, 5, 5]), random([4, 3, 3, 3], 2)
    graph = helper.make_graph(
        [one],
        "graph",
        [value("x", TensorProto.FLOAT, x.shape), value("choose", TensorProto.BOOL, [])],
        [value("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()
    ours, own = session(model), stock(model)
    counted = Counted()
    for choose in (True, False):
        feeds = {"x": x, "choose": np.array(choose)}
        np.testing.assert_allclose(ours.run(None, feeds)[0], own.run(None, feeds)[0], rtol=1e-5, atol=1e-5)
    assert counted.computed == 2


# ---- shapes, weights, threads, memory


def dynamic_model():
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    return model_of(nodes, ["n", 8, "h", "w"], {"w": random([8, 8, 4, 4]), "b": random([8], 3)})


def small_model():
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])
    return model_of([node], [1, 8, 6, 9], {"w": random([8, 4, 3, 4])})


def test_dynamic_shapes():
    """The weights are packed once for each algorithm that they are packed for."""
    ours, own = session(dynamic_model()), stock(dynamic_model())
    counted = Counted()
    shapes = [(1 + i % 3, 8, 3 + i, 5 + i % 7) for i in range(40)]
    for shape in shapes + shapes[-3:]:
        x = random(shape)
        np.testing.assert_allclose(ours.run(None, {"x": x})[0], own.run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)
    assert counted.computed == 43 and counted.in_slabs == 0
    assert counted.plans == 40 and 1 <= counted.packs <= 4
    assert ours.run(None, {"x": random(shapes[0])})[0].shape == (1, 8, 6, 10) and counted.plans == 40


def test_an_empty_batch():
    output = session(dynamic_model()).run(None, {"x": np.zeros((0, 8, 3, 4), np.float32)})[0]
    assert output.shape == (0, 8, 6, 8)


@pytest.mark.parametrize("shape", [[4, 3, 2, 2], ["c", "m", "k", "k"], None])
def test_a_filter_and_a_bias_that_change(shape):
    """They are inputs of the model, of known shape or not; the rank of the data is known."""
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], strides=[2, 2])
    x = random([1, 4, 6, 6])
    model = model_of([node], x.shape, {}, inputs={"w": shape, "b": None if shape is None else [3]})
    ours, own = session(model), stock(model)
    counted = Counted()
    for seed in (1, 2):
        feeds = {"x": x, "w": random([4, 3, 2, 2], seed), "b": random([3], seed)}
        np.testing.assert_allclose(ours.run(None, feeds)[0], own.run(None, feeds)[0], rtol=1e-5, atol=1e-5)
    assert counted.computed == 2 and counted.packs == 2 and counted.plans == 1


@pytest.mark.parametrize("added", [(), (3, 1, 1)])
def test_shapes_that_nobody_knows_are_not_the_same(added):
    """The output has no shape, because the filter has none. Nor has what is added to it: a scalar, or anything."""
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2]),
        helper.make_node("Add", ["y", "c"], ["z"]),
    ]
    x, constant = random([1, 4, 6, 6]), added == ()
    feeds = {"x": x, "w": random([4, 3, 2, 2], 2), **({} if constant else {"c": random(added, 3)})}
    inputs = {name: None for name in feeds if name != "x"}
    model = model_of(nodes, x.shape, {"c": np.array(0.5, np.float32)} if constant else {}, inputs=inputs)
    counted, output = Counted(), session(model).run(None, feeds)[0]
    assert counted.computed == 1
    np.testing.assert_allclose(output, stock(model).run(None, feeds)[0], rtol=1e-5, atol=1e-5)


WRONG = {
    "bias": ({"b": random([2])}, "the bias has not one number for each of 3 channels"),
    "channels": ({"x": random([1, 5, 6, 6])}, "channels"),
    "filter": ({"w": random([4, 3, 3, 2])}, "kernel_shape is 2 at spatial axis 0"),
    "groups": ({"w": random([3, 3, 2, 2])}, "channels"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_stays_one_wrong_request(name, capfd):
    """The shapes are known only when it runs: it is the caller's error, and the session goes on with the provider."""
    wrong, words = WRONG[name]
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], kernel_shape=[2, 2])
    right = {"x": random([1, 4, 6, 6]), "w": random([4, 3, 2, 2]), "b": random([3])}
    model = model_of([node], ["n", "c", "h", "w"], {}, inputs={"w": ["c", "m", "i", "j"], "b": ["b"]})
    ours, counted = session(model), Counted()
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument, match=words):
        ours.run(None, {**right, **wrong})
    assert counted.computed == 0 and "Falling back" not in capfd.readouterr().out
    output = ours.run(None, right)[0]
    assert counted.computed == 1 and "tconv_cl" in ours.get_providers()
    np.testing.assert_allclose(output, stock(model).run(None, right)[0], rtol=1e-5, atol=1e-5)


def test_bound_outputs():
    """Into the caller's own memory, wherever it begins: some of it is used in place, some is copied."""
    x = random([2, 8, 6, 7])
    ours, wanted = session(dynamic_model()), stock(dynamic_model()).run(None, {"x": x})[0]
    room = np.zeros(wanted.size + 64, np.float32)
    for offset in range(0, 64, 8):
        room[:] = -7
        output = room[offset : offset + wanted.size].reshape(wanted.shape)
        binding = ours.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_output("z", "cpu", 0, np.float32, wanted.shape, output.ctypes.data)
        ours.run_with_iobinding(binding)
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
        assert (room[:offset] == -7).all() and (room[offset + wanted.size :] == -7).all()


def resident():
    """Bytes of this process in memory."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_eight_threads():
    """The same results as one thread had, and memory that does not grow: by 4 MiB at most after a warm-up."""
    inputs = [random((1, 8, 6 + i % 4, 9), i) for i in range(32)]
    own, ours = stock(dynamic_model()), session(dynamic_model(), intra_op_num_threads=1)
    wanted = [ours.run(None, {"x": x})[0] for x in inputs]
    for x, output in zip(inputs, wanted):
        np.testing.assert_allclose(output, own.run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)

    def work(thread, runs):
        for i in range(runs):
            at = (i * 8 + thread) % len(inputs)
            np.testing.assert_array_equal(ours.run(None, {"x": inputs[at]})[0], wanted[at])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8), [max(20, RUNS // 5)] * 8))
        counted, before = Counted(), resident()
        list(pool.map(work, range(8), [RUNS] * 8))
        grown = resident() - before
    print(f"{8 * RUNS} inferences: {before >> 10} KiB in memory, {grown >> 10} KiB more afterwards")
    assert counted.computed == 8 * RUNS and counted.in_slabs == 0
    assert counted.plans == 0 and counted.packs == 0
    assert grown <= 4 << 20


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_layers_on_the_threads_of_the_runtime(threads):
    """Layers of 270 million multiply-adds, between other operators, in four threads at once: layer.c."""
    shape, axes = [1, 64, 64, 64], dict(strides=[2, 2], pads=[1, 1, 1, 1])
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("ConvTranspose", ["r", "w"], ["y"], **axes),
        helper.make_node("Conv", ["y", "v"], ["z"]),
    ]
    model = model_of(nodes, shape, {"w": random([64, 64, 4, 4]), "v": random([3, 64, 1, 1])})
    ours, x = session(model, intra_op_num_threads=threads), random(shape)
    wanted = stock(model).run(None, {"x": x})[0]
    counted = Counted()
    with ThreadPoolExecutor(4) as pool:
        for output in pool.map(lambda _: ours.run(None, {"x": x})[0], range(16)):
            np.testing.assert_allclose(output, wanted, rtol=1e-4, atol=1e-3)
    assert counted.computed == 16 and counted.in_slabs == 0


def test_sessions_come_and_go():
    """Each makes plans and packs a filter, and gives all back: 1 MiB more at most after the first few."""
    model, x = dynamic_model(), random((1, 8, 6, 9))
    wanted = stock(model).run(None, {"x": x})[0]
    sessions = 20 + RUNS
    for i in range(sessions):
        if i == 20:
            before = resident()
        np.testing.assert_allclose(session(model).run(None, {"x": x})[0], wanted, rtol=1e-5, atol=1e-5)
    gc.collect()
    grown = resident() - before
    print(f"{sessions} sessions: {before >> 10} KiB in memory, {grown >> 10} KiB more afterwards")
    assert grown <= 1 << 20


def test_registering_again():
    x = random((1, 8, 6, 9))
    for _ in range(3):
        assert run(dynamic_model(), x).shape == (1, 8, 12, 18)
        assert tconv_cl.onnxruntime.register() == "tconv_cl"  # nothing happens
        gc.collect()
        onnxruntime.unregister_execution_provider_library("tconv_cl")
        assert "tconv_cl" not in [device.ep_name for device in onnxruntime.get_ep_devices()]


def test_another_name(capfd):
    """The provider's options come with it: a device that is there, and one that is not."""
    name = tconv_cl.onnxruntime.register("Another_Name")
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == name]
    for device, computed in (("0", 1), ("99", 0)):
        options = onnxruntime.SessionOptions()
        options.add_provider_for_devices(devices, {"device": device})
        counted, own = Counted(), onnxruntime.InferenceSession(dynamic_model(), options)
        assert (name in own.get_providers()) == (computed == 1)
        own.run(None, {"x": random((1, 8, 6, 9))})
        assert counted.computed == computed
    assert "99" in capfd.readouterr().out  # ONNX Runtime's Python says so, and takes its own provider
    del own, options, devices
    gc.collect()
    onnxruntime.unregister_execution_provider_library(name)


# ---- what is left to others


@pytest.mark.parametrize(
    "attributes, reason",
    [({"kernel_shape": [3, 3]}, "kernel_shape"), ({"group": 3}, "group"), ({"strides": [2]}, "strides")],
)
def test_wrong_models_are_left_to_onnx_runtime(attributes, reason, capfd):
    """Which refuses them with words of its own, or not: when they run at the latest."""
    x = random([1, 4, 5, 5])
    counted = Counted()
    with pytest.raises(Exception) as failure:
        session(model_of([conv_transpose(**attributes)], x.shape, {"w": random([4, 3, 2, 2])})).run(None, {"x": x})
    assert counted.computed == 0 and "tconv_cl" not in str(failure.value)
    lines = [line for line in capfd.readouterr().err.splitlines() if "tconv_cl:" in line]
    assert len(lines) <= 1 and all(reason in line and "another provider" in line for line in lines)


# In a process of its own, under another environment: computes a model and tells who computed.
PROGRAM = """
import sys
import warnings
import numpy as np
import onnxruntime
import tconv_cl.onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], tconv_cl.onnxruntime.session_options(**eval(sys.argv[4])))
for _ in range(2):
    output = session.run(None, {"x": np.load(sys.argv[2])})[0]
np.save(sys.argv[3], output)
print(tconv_cl.onnxruntime.statistics().computed, tconv_cl.onnxruntime.statistics().in_slabs)
"""


def in_another_process(model, x, folder, options=None, **environment):
    (folder / "model.onnx").write_bytes(model)
    np.save(folder / "x.npy", x)
    command = [sys.executable, "-c", PROGRAM, *(folder / name for name in ("model.onnx", "x.npy", "y.npy"))]
    command.append(repr(options or {}))
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    lines = [line for line in done.stderr.splitlines() if "tconv_cl:" in line]
    return [int(word) for word in done.stdout.split()], lines, np.load(folder / "y.npy")


@pytest.mark.parametrize(
    "environment, reason",
    [
        ({"OCL_ICD_VENDORS": "/nowhere"}, "device"),
        ({"TCONV_CL_DEVICE": "99"}, "99"),
        ({"TCONV_CL_DEVICE": "gpu"}, "gpu"),
    ],
)
def test_without_a_device_onnx_runtime_computes(environment, reason, tmp_path):
    x = random((1, 8, 6, 9))
    counts, lines, output = in_another_process(dynamic_model(), x, tmp_path, **environment)
    assert counts == [0, 0]
    assert len(lines) == 1 and reason in lines[0] and "other providers" in lines[0]
    np.testing.assert_array_equal(output, stock(dynamic_model()).run(None, {"x": x})[0])
    with pytest.raises(subprocess.CalledProcessError) as failure:
        in_another_process(dynamic_model(), x, tmp_path, {"fallback": "error"}, **environment)
    assert "tconv_cl.Error" in failure.value.stderr and reason in failure.value.stderr


@pytest.mark.parametrize("search, stored", [(None, 0), ("model", 0), ("records", 0), ("measure", 1), ("renew", 1)])
def test_the_algorithm_can_be_searched_for(search, stored, tmp_path, monkeypatch):
    """What a search found is stored, once for each shape, though the session also tries invented extents."""
    monkeypatch.delenv("TCONV_CL_SEARCH", raising=False)
    x, cache = random((1, 8, 6, 9)), tmp_path / "cache"
    for _ in range(2):
        counts, lines, output = in_another_process(
            dynamic_model(), x, tmp_path, {"search": search}, TCONV_CL_CACHE_DIR=str(cache)
        )
        assert counts == [2, 0] and lines == []
        np.testing.assert_allclose(output, stock(dynamic_model()).run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)
        files = cache.iterdir() if cache.exists() else ()
        assert sum(b"best_ms " in file.read_bytes() for file in files) == stored


@pytest.mark.parametrize("least, computed", [(None, 0), (0, 1), (20736, 1), (20737, 0)])
def test_small_layers_stay(least, computed):
    """A layer of 6 x 9 x 8 inputs, 4 channels and 12 taps, without a pad."""
    x, model = random((1, 8, 6, 9)), small_model()
    counted = Counted()
    output = session(model, least_macs=least).run(None, {"x": x})[0]
    assert counted.computed == computed
    np.testing.assert_allclose(output, stock(model).run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)


def test_a_device_that_cannot_compile(tmp_path):
    """A folder without kernels: this shows before the model runs, with shapes that are not known, too."""
    x = random((1, 8, 6, 9))
    (tmp_path / "kernels").mkdir()
    counts, lines, output = in_another_process(
        dynamic_model(), x, tmp_path, TCONV_CL_KERNEL_DIR=str(tmp_path / "kernels")
    )
    assert counts == [0, 0]
    assert len(lines) == 1 and "another provider" in lines[0]
    np.testing.assert_array_equal(output, stock(dynamic_model()).run(None, {"x": x})[0])


def test_slabs(tmp_path):
    """An output that is larger than what the device takes in one buffer: 256 MiB."""
    x = random([1, 1, 1026, 1026])
    model = model_of([conv_transpose(strides=[8, 8])], ["n", 1, "h", "w"], {"w": random([1, 1, 1, 1], 2)})
    counts, lines, output = in_another_process(model, x, tmp_path, POCL_MEMORY_LIMIT="1")
    assert counts == [2, 2]
    assert len(lines) == 1 and "in slabs" in lines[0]
    assert np.array_equal(output, stock(model).run(None, {"x": x})[0])  # one product each


def test_the_device_can_be_chosen(tmp_path):
    """The second of two devices, by either way."""
    x = random((1, 8, 6, 9))
    for options, environment in (({"device": 1}, {}), ({}, {"TCONV_CL_DEVICE": "1"})):
        counts, lines, output = in_another_process(
            dynamic_model(), x, tmp_path, options, POCL_DEVICES="pthread pthread", **environment
        )
        assert counts == [2, 0] and lines == []
        np.testing.assert_allclose(output, stock(dynamic_model()).run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)


def test_integers_are_left_to_others():
    """ONNX has no such ConvTranspose: nobody takes it."""
    node = conv_transpose()
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "graph",
        [value("x", TensorProto.INT32, [1, 2, 4])],
        [value("y", TensorProto.INT32, None)],
        [numpy_helper.from_array(np.ones([2, 2, 3], np.int32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    with pytest.raises(Exception, match="int32"):
        session(model.SerializeToString())


# ---- children

CHILDREN = """
import multiprocessing, os, sys, time
import numpy as np
import onnxruntime
import tconv_cl
import tconv_cl.onnxruntime
model, x = sys.argv[1], np.load(sys.argv[2])
make = lambda: onnxruntime.InferenceSession(model, tconv_cl.onnxruntime.session_options(least_macs=0))
use = sys.argv[3]
session = None
if use == "devices": tconv_cl.devices()
if use == "session": session = make()
if use == "run": session = make(); session.run(None, {"x": x})
if use == "numpy": tconv_cl.conv_transpose(np.ones((1, 2, 4), np.float32), np.ones((2, 1, 2), np.float32))
if use == "two": session = make(); session.run(None, {"x": x}); make().run(None, {"x": x})
sys.stdout.flush()
child = os.fork()
if child == 0:
    begin = time.monotonic()
    if session is not None: # of the parent
        try:
            session.run(None, {"x": x})
            print("computed", flush=True)
        except Exception as error:
            print("forked" if "was forked from process" in str(error) else error, flush=True)
    own = make() # of its own, which falls back
    own.run(None, {"x": x})
    print("own", tconv_cl.onnxruntime.statistics().computed, time.monotonic() - begin < 1, flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
print("status", status)
"""


@pytest.mark.parametrize("use", ["devices", "session", "run", "numpy", "two"])
def test_a_forked_child_does_not_hang(use, tmp_path):
    """The parent's session raises, a new one has ONNX Runtime's own provider compute, each at once."""
    (tmp_path / "model.onnx").write_bytes(dynamic_model())
    np.save(tmp_path / "x.npy", random((1, 8, 6, 9)))
    command = [sys.executable, "-c", CHILDREN, tmp_path / "model.onnx", tmp_path / "x.npy", use]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    computed = {"run": 1, "two": 2}.get(use, 0)
    wanted = ["forked"] if use in ("session", "run", "two") else []
    assert done.stdout.splitlines() == [*wanted, f"own {computed} True", "status 0"], done.stderr
    assert "other providers" in done.stderr


# ---- copies

COPIES = """
import ctypes, sys
import numpy as np
import onnxruntime
import tconv_cl
import tconv_cl.onnxruntime
counter = ctypes.CDLL(sys.argv[1])
session = onnxruntime.InferenceSession(sys.argv[2], tconv_cl.onnxruntime.session_options(least_macs=0))
x = np.load(sys.argv[3])
session.run(None, {"x": x})
before, computed = counter.copies_counted(), tconv_cl.onnxruntime.statistics().computed
for _ in range(5):
    session.run(None, {"x": x})
print(counter.copies_counted() - before, tconv_cl.onnxruntime.statistics().computed - computed)
before = counter.copies_counted()
tconv_cl.conv_transpose(np.ones((1, 2, 40), np.float32), np.ones((2, 1, 2), np.float32), memory_limit=200)
print(counter.copies_counted() > before)  # slabs are copied, which shows that copies are counted
"""


def test_tensors_are_not_copied_on_a_processor(tmp_path):
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["b"]),
        helper.make_node("ConvTranspose", ["b", "c"], ["d"], strides=[2, 2]),
        helper.make_node("Conv", ["d", "e"], ["f"]),
        helper.make_node("ConvTranspose", ["f", "g", "h"], ["y"], strides=[2, 2]),
    ]
    shapes = dict(a=(5, 3, 1, 1), c=(5, 6, 2, 2), e=(7, 6, 3, 3), g=(7, 4, 3, 3), h=(4,))
    model = model_of(nodes, (1, 3, 13, 17), {name: random(shape) for name, shape in shapes.items()})
    (tmp_path / "model.onnx").write_bytes(model)
    np.save(tmp_path / "x.npy", random((1, 3, 13, 17)))
    source, counter = ROOT / "adapters" / "count_copies.c", tmp_path / "count_copies.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", counter, source, "-ldl"], check=True)
    command = [sys.executable, "-c", COPIES, counter, tmp_path / "model.onnx", tmp_path / "x.npy"]
    done = subprocess.run(command, env={**os.environ, "LD_PRELOAD": str(counter)}, capture_output=True, text=True)
    assert done.stdout.split() == ["0", "10", "True"], done.stderr
