# SPDX-License-Identifier: Apache-2.0
"""The extension against OpenVINO's own operators and the conformance vectors. Each test also looks at who computed.

usage: pytest adapters/openvino        with tconv_cl installed as docs/openvino.md says; needs an OpenCL device

TCONV_CL_TEST_GRAPHS: how many graphs are generated."""

import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import openvino as ov
import pytest
from openvino import opset13 as ops
from openvino.utils.node_factory import NodeFactory

import tconv_cl
from tconv_cl.openvino import add_extension, library, statistics

ROOT = pathlib.Path(__file__).resolve().parents[2]
VECTORS = ROOT / "device_tests" / "vectors"
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}
STOCK = ov.Core()
EXTENDED = ov.Core()
add_extension(EXTENDED)


def convert(model, device=None, *, search=None, math="exact", least_macs=0, fuse_concat=True):
    """Of small operators, too. Returns how many were changed."""
    return tconv_cl.openvino._change(model, device, search, math, least_macs, fuse_concat)


class Counted:
    """What has happened since."""

    def __init__(self):
        self.before = statistics()

    def __getattr__(self, name):
        return getattr(statistics(), name) - getattr(self.before, name)


def types(model):
    return [node.get_type_name() for node in model.get_ordered_ops()]


def compiled(model, **options):
    return EXTENDED.compile_model(model, "CPU", {**EXACT, **options})


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def integers(text):
    return [int(word) for word in text.split()]


def transposed(
    data,
    filter_,
    strides,
    dilations=None,
    begin=None,
    end=None,
    auto_pad="explicit",
    padding=None,
    output_shape=None,
    grouped=False,
):
    """OpenVINO's own node, straight from its factory: the functions of its opsets drop the pads of a grouped one that
    has an output_shape."""
    axes = len(strides)
    attributes = {
        "strides": strides,
        "dilations": dilations or [1] * axes,
        "pads_begin": begin or [0] * axes,
        "pads_end": end or [0] * axes,
        "auto_pad": auto_pad,
        "output_padding": padding or [0] * axes,
    }
    inputs = [data, filter_]
    if output_shape is not None:
        inputs.append(
            output_shape if isinstance(output_shape, ov.Node) else ops.constant(np.array(output_shape, dtype=np.int64))
        )
    return NodeFactory("opset1").create(
        "GroupConvolutionBackpropData" if grouped else "ConvolutionBackpropData", inputs, attributes
    )


def reread(model, folder, core=EXTENDED):
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
    return core.read_model(folder / "model.xml")


def random(shape, seed=1):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def is_expressible(case):
    formats = case["groups"] == "1" and case["data_format"] == "NCX" and case["filter_format"] == "OIX"
    axes = len(case["strides"].split())
    return "openvino" in case["rules"].split() and axes <= 3 and (formats or case["op"] == "group_conv_backprop")


CASES = [case for case in rows(VECTORS / "cases.csv") if is_expressible(case)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_vectors(case, tmp_path):
    name = str(VECTORS / "data" / case["id"])
    data, filter_, wanted = (np.load(f"{name}.{part}.npy") for part in ("data", "filter", "output"))
    parameter = ops.parameter(data.shape, np.float32)
    node = transposed(
        parameter,
        ops.constant(filter_),
        integers(case["strides"]),
        integers(case["dilations"]),
        integers(case["pads_begin"]),
        integers(case["pads_end"]),
        case["auto_pad"],
        integers(case["output_padding"]),
        integers(case["output_shape"]) or None,
        case["op"] == "group_conv_backprop",
    )
    model = reread(ov.Model([node], [parameter]), tmp_path)
    assert "TransposedConvolution" in types(model)
    counted = Counted()
    output = compiled(model)(data)[0]
    assert counted.evaluations == 1 and counted.fallbacks == 0
    assert output.shape == wanted.shape
    if case["check"] == "exact":
        np.testing.assert_array_equal(output, wanted)
    else:
        assert (np.abs(output - wanted) <= np.load(f"{name}.bound.npy")).all()


def test_there_are_vectors():
    assert len(CASES) > 80 and len(ONNX_CASES) > 40


MODELS = [row["model"] for row in rows(VECTORS / "ir" / "layers.csv")]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", ["add_extension", "convert"])
def test_models(name, way):
    path = VECTORS / "ir" / f"{name}.xml"
    data = np.load(VECTORS / "ir" / f"{name}.0.input.npy")
    wanted = STOCK.compile_model(path, "CPU", EXACT)(data)[0]
    model = (EXTENDED if way == "add_extension" else STOCK).read_model(path)
    replaced = convert(model)
    assert replaced == (way == "convert")  # the core converts what it reads
    assert "TransposedConvolution" in types(model) and "Add" not in types(model) and "Relu" not in types(model)
    counted = Counted()
    np.testing.assert_allclose(compiled(model)(data)[0], wanted, rtol=1e-5, atol=1e-5)
    assert counted.evaluations == 1 and counted.fallbacks == 0


def test_convert_returns_the_model():
    """With what was converted as a report that prints."""
    x = ops.parameter([1, 4, 5, 4], np.float32)
    node = ops.add(transposed(x, ops.constant(random([4, 6, 3, 3], 2)), [2, 2]), numbers(6, 2, 3))
    model = ov.Model([ops.relu(node)], [x])
    (name,) = tconv_cl.openvino.explain(model).left
    assert tconv_cl.openvino.convert(model, least_macs=1 << 40) is model
    assert "see stderr" in tconv_cl.openvino.explain(model).left[name]
    assert tconv_cl.openvino.convert(model, least_macs=0) is model
    found = tconv_cl.openvino.explain(model)
    assert len(found.converted) == 1 and found.left == {}
    assert str(found).splitlines() == [
        "tconv-cl computes 1 of 1 transposed convolutions",
        f"  {found.converted[0]}, TransposedConvolution, tconv-cl: with bias, relu",
    ]
    with pytest.raises(TypeError, match="model is a str: it must be an openvino.Model"):
        tconv_cl.openvino.convert("model.xml")
    with pytest.raises(TypeError, match=r"convert\(\) got an .* 'device_name'; write device='CPU'"):
        tconv_cl.openvino.convert(model, device_name="CPU")


ACTIVATIONS = {
    "relu": ops.relu,
    "sigmoid": ops.sigmoid,
    "tanh": ops.tanh,
    "clamp": lambda x: ops.clamp(x, -0.25, 0.5),
    "elu": lambda x: ops.elu(x, 0.7),
    "gelu": lambda x: ops.gelu(x, "erf"),
    "gelu_tanh": lambda x: ops.gelu(x, "tanh"),
    "silu": ops.swish,
    "hardswish": ops.hswish,
    "mish": ops.mish,
    "leaky_relu": lambda x: ops.prelu(x, np.array([0.2], dtype=np.float32)),
    "prelu": lambda x: ops.prelu(x, np.linspace(-0.5, 0.5, 6, dtype=np.float32)),
    "none": ops.abs,
}


@pytest.mark.parametrize(
    "activation, grouped, axes",
    [(name, False, 2) for name in ACTIVATIONS]
    + [
        (name, grouped, axes)
        for name in ("relu", "prelu")
        for grouped, axes in ((False, 1), (True, 1), (True, 2), (False, 3), (True, 3))
    ],
)
def test_bias_and_activation_are_fused(activation, grouped, axes):
    extents = [7, 6, 5][:axes]
    data = random([2, 4, *extents])
    filter_ = random([2, 2, 3, *[3] * axes] if grouped else [4, 6, *[3] * axes], 2)
    parameter = ops.parameter(data.shape, np.float32)
    node = transposed(parameter, ops.constant(filter_), [2] * axes, begin=[1] * axes, grouped=grouped)
    node = ACTIVATIONS[activation](ops.add(node, random([1, 6, *[1] * axes], 3)))
    node.set_friendly_name("the last one")
    model = ov.Model([node], [parameter])
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1
    ours = [node for node in model.get_ordered_ops() if node.get_type_name() == "TransposedConvolution"]
    assert ours[0].get_attributes()["activation"] == activation and ours[0].get_attributes()["bias"]
    assert len(types(model)) == {"none": 6, "prelu": 6}.get(activation, 5)
    counted = Counted()
    np.testing.assert_allclose(compiled(model)(data)[0], wanted, rtol=2e-5, atol=2e-6)
    assert counted.evaluations == 1 and counted.fallbacks == 0
    assert convert(model) == 0


@pytest.mark.parametrize(
    "activation, in_f32, in_f64",
    [
        (lambda x: ops.clamp(x, 0, 1.797e308), "relu", "none"),
        (lambda x: ops.clamp(x, -1.797e308, 0.5), "none", "none"),
        (lambda x: ops.clamp(x, 0, np.inf), "relu", "relu"),
        (lambda x: ops.clamp(x, -1e39, 0.5), "none", "none"),
        (lambda x: ops.elu(x, 1e39), "none", "none"),
        (lambda x: ops.prelu(x, np.array([np.inf], dtype=x.get_element_type().to_dtype())), "none", "none"),
    ],
)
@pytest.mark.parametrize("type_", [np.float32, np.float64])
def test_numbers_that_are_not_finite_are_not_fused(activation, in_f32, in_f64, type_):
    """ONNX's Clip of opset 10 and before, without a bound, becomes the first two. Doubles have larger numbers."""
    data = random([1, 4, 5, 5]).astype(type_)
    parameter = ops.parameter(data.shape, type_)
    node = activation(transposed(parameter, ops.constant(random([4, 6, 2, 2]).astype(type_)), [2, 2]))
    model = ov.Model([node], [parameter])
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1
    ours = [node for node in model.get_ordered_ops() if node.get_type_name() == "TransposedConvolution"]
    assert ours[0].get_attributes()["activation"] == (in_f32 if type_ == np.float32 else in_f64)
    np.testing.assert_allclose(compiled(model)(data)[0], wanted, rtol=1e-5, atol=1e-6)


def numbers(channels, axes, seed, low=0.5, high=2):
    return np.random.default_rng(seed).uniform(low, high, (1, channels, *[1] * axes)).astype(np.float32)


def normalized(node, channels, epsilon=1e-3):
    gamma, beta, mean, variance = (numbers(channels, 0, seed).reshape(channels) for seed in (11, 12, 13, 14))
    return ops.batch_norm_inference(node, gamma, beta, mean, variance, epsilon)


FACTORS = {
    "multiply": lambda x, axes: ops.multiply(x, numbers(6, axes, 3)),
    "multiply_one_number": lambda x, axes: ops.multiply(np.array(-1.5, dtype=np.float32), x),
    "multiply_add": lambda x, axes: ops.add(ops.multiply(x, numbers(6, axes, 3)), numbers(6, axes, 4)),
    "add_multiply_add": lambda x, axes: ops.add(
        ops.multiply(ops.add(x, numbers(6, axes, 5)), numbers(6, axes, 3)), numbers(6, axes, 4)
    ),
    "divide_subtract_add": lambda x, axes: ops.subtract(ops.divide(x, numbers(6, axes, 3)), numbers(6, axes, 4)),
    "subtracted_add": lambda x, axes: ops.subtract(numbers(6, axes, 3), x),
    "normalized": lambda x, axes: normalized(x, 6),
    "bias_normalized": lambda x, axes: normalized(ops.add(x, numbers(6, axes, 5)), 6),
}


@pytest.mark.parametrize("grouped, axes", [(False, 2), (True, 1), (True, 3)])
@pytest.mark.parametrize("chain", FACTORS)
def test_factors_and_addends_are_fused(chain, grouped, axes, tmp_path):
    """Also into what was converted before, as when an ONNX file was read with the extension."""
    data = random([2, 4, *[7, 6, 5][:axes]])
    filter_ = random([2, 2, 3, *[3] * axes] if grouped else [4, 6, *[3] * axes], 2)
    parameter = ops.parameter(data.shape, np.float32)
    first = transposed(parameter, ops.constant(filter_), [2] * axes, begin=[1] * axes, grouped=grouped)
    node = FACTORS[chain](first, axes)
    slopes = np.linspace(-0.5, 0.5, 6, dtype=np.float32)
    model = ov.Model([ops.prelu(node, slopes)], [parameter])
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1
    inputs = 2 + 1 + ("add" in chain or "normalized" in chain)  # data, filter; scale; bias
    assert types(model).count("Constant") == inputs and len(types(model)) == inputs + 3
    for changed in (model, reread(model, tmp_path)):
        counted = Counted()
        np.testing.assert_allclose(compiled(changed)(data)[0], wanted, rtol=3e-5, atol=1e-5)
        assert counted.evaluations == 1 and counted.fallbacks == 0
        assert convert(changed) == 0


GATES = {
    "silu": ops.sigmoid,
    "hardswish": ops.hsigmoid,
    "mish": lambda x: ops.tanh(ops.softplus(x)),
    "hardswish ": lambda x: ops.hard_sigmoid(x, np.array(1 / 6, np.float32), np.array(0.5, np.float32)),
    "none": lambda x: ops.hard_sigmoid(x, np.array(0.2, np.float32), np.array(0.5, np.float32)),
}


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("gate", GATES)
def test_gates_are_fused(gate, first):
    """x * f(x), as ONNX files have these activations."""
    data = 3 * random([2, 4, 7, 6])
    parameter = ops.parameter(data.shape, np.float32)
    node = transposed(parameter, ops.constant(random([4, 6, 3, 3], 2)), [2, 2])
    factors = (GATES[gate](node), node)
    model = ov.Model([ops.multiply(*factors) if first else ops.multiply(*factors[::-1])], [parameter])
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1 and ("Multiply" in types(model)) == (gate == "none")
    np.testing.assert_allclose(compiled(model)(data)[0], wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("first", [False, True])
def test_a_skip_connection_is_fused(axes, first, tmp_path):
    """Also where OpenVINO computes it in the end."""
    data, shape = random([2, 4, *[5, 4, 3][:axes]]), [2, 6, *[11, 9, 7][:axes]]
    skip = random(shape, 7)

    def model():
        parameters = ops.parameter(data.shape, np.float32), ops.parameter(shape, np.float32)
        node = transposed(parameters[0], ops.constant(random([4, 6, *[3] * axes], 2)), [2] * axes)
        terms = [ops.add(node, numbers(6, axes, 5)), parameters[1]]
        return ov.Model(
            [ops.prelu(ops.add(*(terms[::-1] if first else terms)), numbers(6, 0, 3).reshape(6))], parameters
        )

    changed = model()
    wanted = STOCK.compile_model(changed.clone(), "CPU", EXACT)([data, skip])[0]
    assert convert(changed) == 1 and "Add" not in types(changed) and "PRelu" not in types(changed)
    for ours in (changed, reread(changed, tmp_path)):
        counted = Counted()
        np.testing.assert_allclose(compiled(ours)([data, skip])[0], wanted, rtol=3e-5, atol=1e-5)
        assert counted.evaluations == 1 and counted.fallbacks == 0


@pytest.mark.parametrize("other", [[1, 6, 11, 9], [2, 1, 11, 9]])
def test_sums_of_other_shapes_are_not_fused(other):
    data = random([2, 4, 5, 4])
    parameters = ops.parameter(data.shape, np.float32), ops.parameter(other, np.float32)
    node = transposed(parameters[0], ops.constant(random([4, 6, 3, 3], 2)), [2, 2])
    model = ov.Model([ops.add(node, parameters[1])], parameters)
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)([data, random(other)])[0]
    assert convert(model) == 1 and "Add" in types(model)
    np.testing.assert_allclose(compiled(model)([data, random(other)])[0], wanted, rtol=1e-5, atol=1e-5)


def test_a_converted_operator_takes_what_follows():
    data = random([2, 4, 7, 6])
    parameter = ops.parameter(data.shape, np.float32)
    biased = ops.add(transposed(parameter, ops.constant(random([4, 6, 3, 3], 2)), [2, 2]), numbers(6, 2, 5))
    model = ov.Model([biased], [parameter])
    assert convert(model) == 1
    result = model.get_results()[0]
    result.input(0).replace_source_output(ops.relu(normalized(result.input_value(0).get_node(), 6)).output(0))
    parameter = ops.parameter(data.shape, np.float32)
    biased = ops.add(transposed(parameter, ops.constant(random([4, 6, 3, 3], 2)), [2, 2]), numbers(6, 2, 5))
    wanted = STOCK.compile_model(ov.Model([ops.relu(normalized(biased, 6))], [parameter]), "CPU", EXACT)(data)[0]
    assert convert(model) == 1 and "BatchNormInference" not in types(model) and "Relu" not in types(model)
    np.testing.assert_allclose(compiled(model)(data)[0], wanted, rtol=3e-5, atol=1e-5)


@pytest.mark.parametrize(
    "factor",
    [
        np.array([1, 2, 3, np.inf, 5, 6], np.float32).reshape(1, 6, 1, 1),
        np.array([1, 2, 3, np.nan, 5, 6], np.float32).reshape(1, 6, 1, 1),
        numbers(6, 0, 3).reshape(6),
        numbers(2, 0, 3).reshape(2, 1, 1, 1),
    ],
)
def test_factors_that_are_not_fused(factor):
    """What is not finite; and what is not one number for each channel."""
    data = random([2, 4, 3, 3])
    parameter = ops.parameter(data.shape, np.float32)
    node = transposed(parameter, ops.constant(random([4, 6, 2, 2])), [2, 2])
    wanted = STOCK.compile_model(ov.Model([node], [parameter]), "CPU", EXACT)(data)[0] * factor
    model = ov.Model([ops.multiply(node, factor)], [parameter])
    assert convert(model) == 1 and "Multiply" in types(model)
    np.testing.assert_allclose(compiled(model)(data)[0], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("element, tolerance", [(ov.Type.f16, 2e-3), (ov.Type.bf16, 2e-2)])
@pytest.mark.parametrize("chain, left", [("multiply_add", False), ("normalized", True)])
def test_short_types_are_fused_where_no_constant_is_rounded(chain, left, element, tolerance):
    data = random([1, 4, 6, 6])
    parameter = ops.parameter(data.shape, np.float32)

    def short(values):
        return ops.constant(values, element)

    node = transposed(ops.convert(parameter, element), short(random([4, 6, 3, 3])), [2, 2])
    if chain == "normalized":
        node = ops.batch_norm_inference(node, *(short(numbers(6, 0, seed).reshape(6)) for seed in (1, 2, 3, 4)), 1e-3)
    else:
        node = ops.add(ops.multiply(node, short(numbers(6, 2, 3))), short(numbers(6, 2, 4)))
    model = ov.Model([ops.convert(node, np.float32)], [parameter])
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1
    assert ("BatchNormInference" in types(model)) == left and "Multiply" not in types(model)
    counted = Counted()
    np.testing.assert_allclose(compiled(model)(data)[0], wanted, rtol=tolerance, atol=tolerance)
    assert counted.evaluations == 1 and counted.fallbacks == 0


def quantized(node, low, high, levels=256):
    return ops.fake_quantize(node, *(np.array(value, dtype=np.float32) for value in (low, high, low, high)), levels)


@pytest.mark.parametrize("way", ["add_extension", "convert"])
def test_quantized_models(way, tmp_path):
    """OpenVINO computes the whole network with integers; with the extension, all but the transposed convolution.

    Weights stay within 64 levels: where a processor has no integer dot products, OpenVINO adds pairs of products in 16
    bits, which saturate.
    """
    data = np.random.default_rng(1).uniform(0, 2.5, (1, 8, 12, 12)).astype(np.float32)
    parameter = ops.parameter(data.shape, np.float32)
    ones = [[1, 1]] * 4
    node = ops.convolution(
        quantized(parameter, 0, 2.55), quantized(random([16, 8, 3, 3], 2) / 2, -1.27, 1.27, 255), *ones
    )
    limit = np.full((1, 6, 1, 1), 1.27)
    weights = quantized(random([16, 6, 4, 4], 3) / 2, -limit, limit, 255)
    node = transposed(quantized(ops.relu(node), 0, 2.55), weights, [2, 2], begin=[1, 1], end=[1, 1])
    node = quantized(ops.relu(ops.add(node, random([1, 6, 1, 1], 4))), 0, 2.55)
    node = ops.convolution(node, quantized(random([4, 6, 3, 3], 5) / 2, -1.27, 1.27, 255), *ones)
    model = ov.Model([node], [parameter])
    stock = STOCK.compile_model(model.clone(), "CPU", EXACT)
    assert any(
        node.get_rt_info()["layerType"].astype(str) == "Deconvolution"
        and node.get_rt_info()["runtimePrecision"].astype(str) == "u8"
        for node in stock.get_runtime_model().get_ordered_ops()
    )
    model = reread(model, tmp_path, EXTENDED if way == "add_extension" else STOCK)
    if way == "convert":
        assert convert(model) == 1 and has_bytes(model)
    ours = compiled(model)
    counted = Counted()
    for _ in range(2):
        difference = np.abs(ours(data)[0] - stock(data)[0])
        # A sum that is half-way between two levels may go to either.
        assert (difference > 1e-4).mean() < 0.01 and difference.max() < 0.1
    assert counted.evaluations == 2 and counted.packs == 1 and counted.fallbacks == 0


STEP = 2.0**-5


def ranged(node, low, high, levels=256):
    """A FakeQuantize; with steps that are powers of two, sums of floats are exact as well."""
    return ops.fake_quantize(node, *(np.array(value, dtype=np.float32) for value in (low, high, low, high)), levels)


def weights_of_bytes(shape, grouped, form):
    """At most 64 levels from zero: where a processor has no integer dot products, OpenVINO adds pairs of products in 16
    bits, which saturate."""
    draw = np.random.default_rng(7)
    integers = draw.integers(-64, 65, shape)
    channels = [2, 1, shape[2]] if grouped else [1, shape[1]]
    steps = (STEP * 2.0 ** draw.integers(-2, 3, channels)).reshape(*channels, *[1] * (len(shape) - len(channels)))
    if form == "levels":
        limit = (127 * steps).astype(np.float32)
        return ops.fake_quantize(ops.constant((integers * steps).astype(np.float32)), -limit, limit, -limit, limit, 255)
    if form == "i8":
        wide = ops.convert(ops.constant(integers.astype(np.int8)), np.float32)
    else:
        wide = ops.convert(ops.constant((integers + 128).astype(np.uint8)), np.float32)
        wide = ops.subtract(wide, np.array(128, np.float32))
    return ops.multiply(wide, steps.astype(np.float32))


def layer_of_bytes(
    axes=2, grouped=False, form="levels", zero=0, between=lambda node: node, output_zero=100, levels=256
):
    shape = [2, 8, *[9, 7, 5][:axes]]
    parameter = ops.parameter(shape, np.float32)
    data = ranged(parameter, -zero * STEP, (levels - 1 - zero) * STEP, levels)
    filter_ = weights_of_bytes([2, 4, 3, *[3] * axes] if grouped else [8, 6, *[3] * axes], grouped, form)
    node = transposed(data, filter_, [2] * axes, begin=[1] * axes, grouped=grouped)
    node = between(ops.add(node, np.full((1, 6, *[1] * axes), 1.25, np.float32)))
    return ov.Model([ranged(node, -output_zero * STEP * 64, (255 - output_zero) * STEP * 64)], [parameter])


def has_bytes(model):
    return [
        node.get_attributes()["requantize"]
        for node in model.get_ordered_ops()
        if node.get_type_name() == "TransposedConvolution"
    ] == [True]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"axes": 1},
        {"axes": 3},
        {"grouped": True},
        {"form": "i8"},
        {"form": "u8"},
        {"form": "i8", "grouped": True},
        {"zero": 128},
        {"output_zero": 0},
        {"levels": 200},
        {"between": ops.relu},
        {"between": lambda node: ops.clamp(node, -55.5, 33.25)},
        {"between": lambda node: ops.prelu(node, np.array([0.25], np.float32))},
        {"between": lambda node: ops.relu(ops.multiply(node, np.full((1, 6, 1, 1), -0.5, np.float32)))},
    ],
    ids=str,
)
def test_layers_of_bytes(options, tmp_path):
    """All numbers have few bits, so that sums of floats are exact, too. OpenVINO's own operator loses the zero point of
    u8 weights: their numbers are those of the i8 ones."""
    model = layer_of_bytes(**options)
    data = 4 * random(list(model.input(0).shape))
    stock = layer_of_bytes(**{**options, "form": options.get("form", "levels").replace("u8", "i8")})
    wanted = STOCK.compile_model(stock, "CPU", EXACT)(data)[0]
    assert convert(model) == 1 and has_bytes(model) and convert(model) == 0
    assert len(np.unique(wanted)) > 9
    for ours in (model, reread(model, tmp_path)):
        counted = Counted()
        np.testing.assert_array_equal(compiled(ours)(data)[0], wanted)
        assert counted.evaluations == 1 and counted.fallbacks == 0


@pytest.mark.parametrize("name", ["data_zero_point", "filter_zero_point", "output_zero_point"])
@pytest.mark.parametrize("number", [2**32, -(2**31) - 1])
def test_a_zero_point_beyond_32_bits_is_refused(name, number):
    model = layer_of_bytes()
    assert convert(model) == 1
    node = next(node for node in model.get_ordered_ops() if node.get_type_name() == "TransposedConvolution")
    node.set_attribute(name, number)
    with pytest.raises(RuntimeError, match=f"the zero point {number} does not fit into 32 bits"):
        compiled(model)


@pytest.mark.parametrize("options", [{}, {"zero": 128, "between": ops.relu}], ids=str)
def test_bytes_fall_back(options, tmp_path):
    model = layer_of_bytes(**options)
    data = 4 * random(list(model.input(0).shape))
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1 and has_bytes(model)
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    (tmp_path / "kernels").mkdir()
    environment = {"TCONV_CL_KERNEL_DIR": str(tmp_path / "kernels")}
    _, log, output = in_another_process(tmp_path / "model.xml", data, tmp_path, **environment)
    assert "OpenVINO's own operator" in log
    np.testing.assert_array_equal(output, wanted)


@pytest.mark.parametrize(
    "options",
    [
        {"between": ops.tanh},
        {"zero": 99.5},
        {"output_zero": 0.5},
        {"output_zero": -3},
        {"output_zero": 300},
        {"between": lambda node: ops.add(node, random(list(node.get_output_shape(0))))},
    ],
    ids=str,
)
def test_layers_that_are_not_computed_with_bytes(options):
    """Activations that depend on the scale, zeros between two levels or outside of them, sums of two tensors."""
    model = layer_of_bytes(**options)
    data = 4 * random(list(model.input(0).shape))
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1 and not has_bytes(model)
    difference = np.abs(compiled(model)(data)[0] - wanted)
    assert (difference > 1e-4).mean() < 0.01 and difference.max() <= 64 * STEP * 1.001


@pytest.mark.parametrize("twice", [False, True])
def test_between_quantized_convolutions_all_is_bytes(twice):
    """The plugin computes both convolutions with integers, and reorders nothing between them."""
    x = ops.parameter([1, 8, 11, 9], np.float32)

    def fixed(shape, seed):
        return ranged(ops.constant(random(shape, seed) / 2), -127 * STEP / 8, 127 * STEP / 8, 255)

    def convolved(node, shape, seed):
        return ops.convolution(node, fixed(shape, seed), [1, 1], [0, 0], [0, 0], [1, 1])

    node = ranged(ops.relu(convolved(ranged(x, 0, 255 * STEP), [16, 8, 1, 1], 1)), 0, 255 * STEP)
    for seed in range(1 + twice):
        node = ops.relu(transposed(node, fixed([16, 16, 2, 2], 2 + seed), [2, 2]))
        node = ranged(node, 0, 255 * STEP)
    model, data = ov.Model([convolved(node, [7, 16, 1, 1], 4)], [x]), 4 * random([1, 8, 11, 9], 9)
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1 + twice
    request = STOCK.compile_model(model, "CPU", {**EXACT, "PERF_COUNT": True}).create_infer_request()
    difference = np.abs(request.infer(data)[0] - wanted)
    assert difference.max() < 0.01 * np.abs(wanted).max()
    ran = [info for info in request.get_profiling_info() if info.status.name == "EXECUTED"]
    first = next(i for i, info in enumerate(ran) if info.node_type == "Convolution")
    assert [info.node_type for info in ran[first:]][: 3 + twice] == [
        "Convolution",
        *["Reference"] * (1 + twice),
        "Convolution",
    ]
    assert all("I8" in info.exec_type for info in ran[first : first + 3 + twice])


def test_weights_of_bytes_with_a_zero_point(tmp_path):
    """Against the same network without integers: OpenVINO's own operator loses the zero point of the weights here."""
    data = np.random.default_rng(1).uniform(0, 2.5, (1, 8, 12, 12)).astype(np.float32)
    weights = np.random.default_rng(2).integers(-127, 128, (8, 6, 4, 4))

    def model(inner, input_):
        parameter = ops.parameter(data.shape, np.float32)
        return ov.Model([transposed(input_(parameter), inner, [2, 2])], [parameter])

    wide = ops.subtract(ops.convert(ops.constant(weights.astype(np.int8)), np.float32), np.array(3, np.float32))
    ours = model(ops.multiply(wide, np.full((1, 6, 1, 1), 0.01, np.float32)), lambda x: quantized(x, 0, 2.55))
    plain = model(ops.constant(((weights - 3) * 0.01).astype(np.float32)), lambda x: x)
    steps = (np.round(data.astype(np.float64) * 100) / 100).astype(np.float32)
    wanted = STOCK.compile_model(plain, "CPU", EXACT)(steps)[0]
    assert convert(ours) == 1
    ours = compiled(ours)
    counted = Counted()
    for _ in range(2):
        np.testing.assert_allclose(ours(data)[0], wanted, rtol=1e-4, atol=1e-4)
    assert counted.evaluations == 2 and counted.packs == 1 and counted.fallbacks == 0


def test_what_others_read_is_not_fused():
    data = random([1, 4, 5, 5])
    parameter = ops.parameter(data.shape, np.float32)
    node = transposed(parameter, ops.constant(random([4, 6, 2, 2])), [2, 2])
    biased = ops.add(node, random([1, 6, 1, 1]))
    row = ops.add(node, random([10]))  # along the last axis: no bias
    model = ov.Model([ops.relu(biased), row, biased], [parameter])
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)
    assert convert(model) == 1
    assert types(model).count("Add") == 2 and types(model).count("Relu") == 1
    for got, want in zip(compiled(model)(data).values(), wanted.values()):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_an_add_along_another_axis_is_no_bias():
    data = random([1, 4, 3, 3])
    parameter = ops.parameter(data.shape, np.float32)
    node = ops.add(transposed(parameter, ops.constant(random([4, 6, 2, 2])), [2, 2]), random([6]))
    model = ov.Model([node], [parameter])
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1 and "Add" in types(model)
    np.testing.assert_allclose(compiled(model)(data)[0], wanted, rtol=1e-5, atol=1e-6)


def dynamic_model(shape=(-1, 8, -1, -1)):
    parameter = ops.parameter(ov.PartialShape(list(shape)), np.float32)
    node = transposed(parameter, ops.constant(random([8, 8, 4, 4])), [2, 2], begin=[1, 1], end=[1, 1])
    return ov.Model([ops.relu(ops.add(node, random([1, 8, 1, 1], 3)))], [parameter])


def test_dynamic_shapes():
    """More shapes than plans are kept; the weights are packed once for each algorithm that they are packed for."""
    model = dynamic_model()
    stock = STOCK.compile_model(model.clone(), "CPU", EXACT)
    assert convert(model) == 1
    counted = Counted()
    ours = compiled(model)
    shapes = [(1 + i % 3, 8, 3 + i, 5 + i % 7) for i in range(40)]
    for shape in shapes + shapes[-3:]:
        np.testing.assert_allclose(ours(random(shape))[0], stock(random(shape))[0], rtol=1e-5, atol=1e-5)
    assert counted.evaluations == 43 and counted.fallbacks == 0
    assert counted.plans == 40 and 1 <= counted.packs <= 4


@pytest.mark.parametrize("type_", [np.int8, np.uint8, np.int32, np.int64])
def test_an_output_shape_has_any_type_of_integers(type_):
    data, parameter = random([1, 3, 6, 7]), ops.parameter([1, 3, -1, -1], np.float32)
    shape = ops.constant(np.array([12, 14], type_))
    node = transposed(parameter, ops.constant(random([3, 5, 3, 3])), [2, 2], auto_pad="same_upper", output_shape=shape)
    model = ov.Model([node], [parameter])
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1
    np.testing.assert_allclose(compiled(model)(data)[0], wanted, rtol=1e-5, atol=1e-5)


def test_an_output_shape_that_is_computed(tmp_path):
    """OpenVINO's own operator on processors wants a constant."""
    data, filter_ = random([1, 3, 6, 7]), random([3, 5, 3, 3])

    def model(parameter, shape, *parameters):
        node = transposed(parameter, ops.constant(filter_), [2, 2], auto_pad="same_upper", output_shape=shape)
        return ov.Model([node], [parameter, *parameters])

    shape = ops.parameter([2], np.int64)
    ours = compiled(reread(model(ops.parameter(data.shape, np.float32), shape, shape), tmp_path))
    counted = Counted()
    for extents in ([12, 14], [11, 13], [12, 14]):
        wanted = STOCK.compile_model(model(ops.parameter(data.shape, np.float32), extents), "CPU", EXACT)(data)[0]
        output = ours([data, np.array(extents, dtype=np.int64)])[0]
        assert output.shape == (1, 5, *extents)
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
    assert counted.evaluations == 3 and counted.plans == 2 and counted.fallbacks == 0


def test_a_filter_that_changes_is_packed_anew(tmp_path):
    data = random([1, 4, 6, 6])
    parameter, filter_ = ops.parameter(data.shape, np.float32), ops.parameter([4, 3, 2, 2], np.float32)
    model = ov.Model([transposed(parameter, filter_, [2, 2])], [parameter, filter_])
    stock = STOCK.compile_model(model.clone(), "CPU", EXACT)
    ours = compiled(reread(model, tmp_path))
    counted = Counted()
    for seed in (1, 2):
        weights = random([4, 3, 2, 2], seed)
        np.testing.assert_allclose(ours([data, weights])[0], stock([data, weights])[0], rtol=1e-5, atol=1e-6)
    assert counted.evaluations == 2 and counted.packs == 2 and counted.plans == 1


def test_weights_that_change_between_compilations(tmp_path):
    """A compiled model has packed weights of its own, also where the weights' memory is shared."""
    data, weights = random([1, 4, 6, 6]), random([4, 3, 2, 2])
    parameter = ops.parameter(data.shape, np.float32)
    model = ov.Model([transposed(parameter, ops.constant(weights, shared_memory=True), [2, 2])], [parameter])
    convert(model)
    first = compiled(model)
    before = first(data)[0].copy()
    weights *= 2
    np.testing.assert_array_equal(compiled(model)(data)[0], 2 * before)


@pytest.mark.parametrize("streams", [1, 2])
def test_eight_threads(streams):
    model = dynamic_model()
    stock = STOCK.compile_model(model.clone(), "CPU", EXACT)
    convert(model)
    inputs = [random((1, 8, 6 + i % 4, 9), i) for i in range(64)]
    wanted = [stock(data)[0] for data in inputs]
    ours = compiled(model, NUM_STREAMS=str(streams))
    requests = [ours.create_infer_request() for _ in range(8)]
    counted = Counted()

    def work(thread):
        for i in range(thread, len(inputs), 8):
            requests[thread].infer(inputs[i])
            np.testing.assert_allclose(requests[thread].get_output_tensor().data, wanted[i], rtol=1e-5, atol=1e-5)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert counted.evaluations == 64 and counted.fallbacks == 0
    assert counted.plans == 4 and counted.packs <= 4


def test_asynchronous_requests():
    model = dynamic_model((1, 8, 10, 12))
    stock = STOCK.compile_model(model.clone(), "CPU", EXACT)
    convert(model)
    inputs = [random((1, 8, 10, 12), i) for i in range(32)]
    outputs = {}
    queue = ov.AsyncInferQueue(compiled(model, NUM_STREAMS="2"), 8)
    queue.set_callback(lambda request, i: outputs.update({i: request.get_output_tensor().data.copy()}))
    counted = Counted()
    for i, data in enumerate(inputs):
        queue.start_async(data, i)
    queue.wait_all()
    for i, data in enumerate(inputs):
        np.testing.assert_allclose(outputs[i], stock(data)[0], rtol=1e-5, atol=1e-5)
    assert counted.evaluations == 32 and counted.plans == 1 and counted.packs == 1


def resident_memory():
    """In MiB."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_many_inferences_give_the_same_bits_in_flat_memory():
    """TCONV_CL_TEST_INFERENCES in each of eight threads, on one compiled model, after at most 50 for warming up."""
    count = int(os.environ.get("TCONV_CL_TEST_INFERENCES", "50"))
    model = dynamic_model()
    convert(model)
    ours = compiled(model, NUM_STREAMS="2")
    inputs = [random((1, 8, 12 + i % 4, 20), i) for i in range(8)]
    requests = [ours.create_infer_request() for _ in range(8)]
    # By a request: after ours(data), requests that are made later write their inputs into this data.
    wanted = [requests[0].infer(data)[0].copy() for data in inputs]

    def work(thread, count):
        for i in range(count):
            which = (thread + i) % len(inputs)
            requests[thread].infer(inputs[which])
            assert np.array_equal(requests[thread].get_output_tensor().data, wanted[which])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8), [min(count, 50)] * 8))
        before, counted, start = resident_memory(), Counted(), time.monotonic()
        list(pool.map(work, range(8), [count] * 8))
    seconds, after = time.monotonic() - start, resident_memory()
    print(f"{8 * count} inferences in {seconds:.1f} s, {before:.1f} MiB before and {after:.1f} MiB after them")
    assert counted.evaluations == 8 * count
    assert counted.fallbacks == counted.plans == counted.packs == 0
    assert after - before < 4


def test_models_in_f16(tmp_path):
    data = random([1, 4, 6, 6]).astype(np.float16)
    parameter = ops.parameter(data.shape, np.float16)
    node = transposed(parameter, ops.constant(random([4, 6, 3, 3]).astype(np.float16)), [2, 2])
    node = ops.prelu(ops.add(node, random([1, 6, 1, 1], 3).astype(np.float16)), np.linspace(0, 1, 6).astype(np.float16))
    model = ov.Model([node], [parameter])
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    for changed in (reread(model, tmp_path), model):
        convert(changed)
        counted = Counted()
        output = compiled(changed)(data)[0]
        assert output.dtype == np.float16 and counted.evaluations == 1 and counted.fallbacks == 0
        np.testing.assert_allclose(output.astype(np.float32), wanted.astype(np.float32), rtol=2e-3, atol=2e-3)


def test_bodies_of_branches():
    data = random([1, 4, 5, 5])
    outer = ops.parameter(data.shape, np.float32)

    def body(seed):
        inner = ops.parameter(data.shape, np.float32)
        return inner, ov.Model(
            [ops.result(transposed(inner, ops.constant(random([4, 6, 2, 2], seed)), [2, 2]))], [inner]
        )

    condition = ops.parameter([], np.bool_)
    branch = ops.if_op(condition)
    (first, then_body), (second, else_body) = body(1), body(2)
    branch.set_then_body(then_body)
    branch.set_else_body(else_body)
    branch.set_input(outer.output(0), first, second)
    model = ov.Model([branch.set_output(then_body.get_results()[0], else_body.get_results()[0])], [condition, outer])
    stock = STOCK.compile_model(model.clone(), "CPU", EXACT)
    assert convert(model) == 2
    ours = compiled(model)
    counted = Counted()
    for value in (True, False):
        np.testing.assert_allclose(
            ours([np.array(value), data])[0], stock([np.array(value), data])[0], rtol=1e-5, atol=1e-6
        )
    assert counted.evaluations == 2 and counted.fallbacks == 0


def test_saved_and_cached(tmp_path):
    model = dynamic_model((1, 8, 10, 12))
    data = random((1, 8, 10, 12))
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    convert(model)
    model = reread(model, tmp_path)
    assert types(model).count("TransposedConvolution") == 1 and "Relu" not in types(model)
    for _ in range(2):
        core = ov.Core()
        add_extension(core)
        core.set_property({"CACHE_DIR": str(tmp_path / "cache")})
        counted = Counted()
        np.testing.assert_allclose(
            core.compile_model(tmp_path / "model.xml", "CPU", EXACT)(data)[0], wanted, rtol=1e-5, atol=1e-5
        )
        assert counted.evaluations == 1 and counted.fallbacks == 0
    assert list((tmp_path / "cache").glob("*.blob"))


ONNX_MODELS = {row["model"]: row for row in rows(VECTORS / "onnx" / "models.csv")}


@pytest.mark.parametrize("batch", [None, "N"])
@pytest.mark.parametrize("name", ONNX_MODELS)
def test_onnx_files(name, batch, tmp_path, capfd):
    """Against ONNX Runtime's results, which OpenVINO's own reader does not always give."""
    path = str(VECTORS / "onnx" / name)
    data, wanted, bound = (np.load(f"{path}.{part}.npy") for part in ("input", "output", "bound"))
    file = onnx.load(f"{path}.onnx")
    if batch is not None:
        file.graph.input[0].type.tensor_type.shape.dim[0].dim_param = batch
        del file.graph.output[0].type.tensor_type.shape.dim[:]
    onnx.save(file, tmp_path / "model.onnx")
    model = EXTENDED.read_model(tmp_path / "model.onnx")
    assert "TransposedConvolution" in types(model) and "Add" not in types(model)
    counted = Counted()
    output = compiled(model)(data)[0]
    assert counted.evaluations == 1 and counted.fallbacks == 0
    assert output.shape == wanted.shape and (np.abs(output - wanted) <= bound).all()
    stock = STOCK.compile_model(tmp_path / "model.onnx", "CPU", EXACT)(data)[0]
    differs = stock.shape != wanted.shape or not np.allclose(stock, wanted, atol=1e-4)
    assert ("OpenVINO's own reader may take others" in capfd.readouterr().err) or not differs


def test_onnx_files_that_openvino_read():
    """Its reader makes a Reshape of the bias."""
    path = VECTORS / "onnx" / "plane_group_bias"
    data, wanted, bound = (np.load(f"{path}.{part}.npy") for part in ("input", "output", "bound"))
    model = STOCK.read_model(f"{path}.onnx")
    assert "Add" in types(model) and convert(model) == 1 and "Add" not in types(model)
    assert (np.abs(compiled(model)(data)[0] - wanted) <= bound).all()


def conv_transpose(folder, data_shape, weights, **attributes):
    """An ONNX file of one ConvTranspose."""
    node = onnx.helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [value("x", onnx.TensorProto.FLOAT, data_shape)],
        [value("y", onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    opset = onnx.helper.make_opsetid("", 13)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8), folder / "model.onnx")
    return folder / "model.onnx"


def is_expressible_in_onnx(case):
    axes = len(case["strides"].split())
    formats = case["data_format"] == "NCX" and case["filter_format"] == "OIX" and case["op"] == "conv_backprop"
    return "onnx" in case["rules"].split() and axes <= 3 and formats


ONNX_CASES = [case for case in rows(VECTORS / "cases.csv") if is_expressible_in_onnx(case)]


@pytest.mark.parametrize("case", ONNX_CASES, ids=lambda case: case["id"])
def test_vectors_in_onnx(case, tmp_path):
    name = str(VECTORS / "data" / case["id"])
    data, filter_, wanted = (np.load(f"{name}.{part}.npy") for part in ("data", "filter", "output"))
    attributes = {name: integers(case[name]) for name in ("strides", "dilations", "output_padding", "output_shape")}
    attributes = {name: value for name, value in attributes.items() if value}
    attributes["auto_pad"] = {"explicit": "NOTSET"}.get(case["auto_pad"], case["auto_pad"].upper())
    if case["auto_pad"] == "explicit":
        attributes["pads"] = integers(case["pads_begin"]) + integers(case["pads_end"])
    path = conv_transpose(tmp_path, data.shape, filter_, group=int(case["groups"]), **attributes)
    model = EXTENDED.read_model(path)
    assert "TransposedConvolution" in types(model)
    output = compiled(model)(data)[0]
    assert output.shape == wanted.shape
    if case["check"] == "exact":
        np.testing.assert_array_equal(output, wanted)
    else:
        assert (np.abs(output - wanted) <= np.load(f"{name}.bound.npy")).all()


@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER"])
@pytest.mark.parametrize("groups", [1, 2])
def test_onnx_with_extents_that_are_not_known(groups, auto_pad, tmp_path, capfd):
    data, weights = random([2, 4, 4, 5]), random([4, 3, 3, 3], 2)
    path = conv_transpose(tmp_path, ["n", 4, "h", "w"], weights, group=groups, strides=[2, 2], auto_pad=auto_pad)
    output = compiled(EXTENDED.read_model(path))(data)[0]
    assert ("not ONNX's" in capfd.readouterr().err) == (auto_pad != "NOTSET")
    wanted = STOCK.compile_model(path, "CPU", EXACT)(data)[0]
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)


# In a process of its own, under another environment: reads a model, tells the types of its nodes, and computes it.
PROGRAM = """
import sys
import numpy as np
import openvino as ov
core = ov.Core()
core.add_extension(sys.argv[1])
model = core.read_model(sys.argv[2])
print(*[node.get_type_name() for node in model.get_ordered_ops()])
compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
for _ in range(2):
    output = compiled(np.load(sys.argv[3]))[0]
np.save(sys.argv[4], output)
"""


def in_another_process(path, data, folder, **environment):
    np.save(folder / "data.npy", data)
    command = [sys.executable, "-c", PROGRAM, library(), path, folder / "data.npy", folder / "output.npy"]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return done.stdout.split(), done.stderr, np.load(folder / "output.npy")


@pytest.mark.parametrize(
    "environment, reason",
    [
        ({"OCL_ICD_VENDORS": "/nowhere"}, "device"),
        ({"TCONV_CL_DEVICE": "99"}, "99"),
        ({"TCONV_CL_DEVICE": "gpu"}, "gpu"),
    ],
)
def test_without_a_device_the_model_stays(environment, reason, tmp_path):
    path = VECTORS / "ir" / "plain_f32.xml"
    data = np.load(VECTORS / "ir" / "plain_f32.0.input.npy")
    nodes, log, output = in_another_process(path, data, tmp_path, **environment)
    assert "ConvolutionBackpropData" in nodes and "TransposedConvolution" not in nodes
    assert len(log.splitlines()) == 1 and reason in log and "OpenVINO's own operator" in log
    np.testing.assert_array_equal(output, STOCK.compile_model(path, "CPU", EXACT)(data)[0])


def test_the_device_can_be_chosen(tmp_path):
    """The last of the devices, with PoCL the second of two; and one that is not there, by the other way."""
    path = VECTORS / "ir" / "plain_f32.xml"
    data = np.load(VECTORS / "ir" / "plain_f32.0.input.npy")
    devices = tconv_cl.devices()
    pocl = [device.platform for device in devices] == ["Portable Computing Language"]
    last = {
        "TCONV_CL_DEVICE": "1" if pocl else str(len(devices) - 1),
        "POCL_DEVICES": "pthread pthread" if pocl else "",
    }
    nodes, log, output = in_another_process(path, data, tmp_path, **last)
    assert "TransposedConvolution" in nodes and log == ""
    np.testing.assert_allclose(output, STOCK.compile_model(path, "CPU", EXACT)(data)[0], rtol=1e-5, atol=1e-5)
    model = STOCK.read_model(path)
    for device in (99, -1, "gpu", "no such device"):
        with pytest.raises(tconv_cl.Error, match=str(device)):
            convert(model, device=device)
    assert "TransposedConvolution" not in types(model)
    for device in ("cpu", devices[0].name[:9], 0):
        converted = model.clone()
        assert convert(converted, device=device) == 1
        counted = Counted()
        STOCK.compile_model(converted, "CPU", EXACT)(data)
        assert counted.evaluations == 1


@pytest.mark.parametrize("search, stored", [(None, 0), ("model", 0), ("records", 0), ("measure", 1), ("renew", 1)])
def test_the_algorithm_can_be_searched_for(search, stored, tmp_path, monkeypatch):
    """What a search found is stored, and found again by a model that was saved with the property."""
    monkeypatch.delenv("TCONV_CL_SEARCH", raising=False)
    path, cache = VECTORS / "ir" / "plain_f32.xml", tmp_path / "cache"
    data, environment = np.load(VECTORS / "ir" / "plain_f32.0.input.npy"), {"TCONV_CL_CACHE_DIR": str(cache)}
    model = STOCK.read_model(path)
    assert convert(model, search=search) == 1
    ours = [node for node in model.get_ops() if node.get_type_name() == "TransposedConvolution"]
    assert ours[0].get_attributes()["search"] == (search or "")
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    for _ in range(2):
        _, log, output = in_another_process(tmp_path / "model.xml", data, tmp_path, **environment)
        assert log == ""
        np.testing.assert_allclose(output, STOCK.compile_model(path, "CPU", EXACT)(data)[0], rtol=1e-5, atol=1e-5)
        files = cache.iterdir() if cache.exists() else ()
        assert sum(b"best_ms " in file.read_bytes() for file in files) == stored


@pytest.mark.parametrize("least, changed", [(None, 0), (0, 1), (20736, 1), (20737, 0)])
def test_small_operators_stay(least, changed):
    """One of 6 x 9 x 8 inputs, 4 channels and 12 taps, without a pad."""
    parameter = ops.parameter([1, 8, 6, 9], np.float32)
    model = ov.Model([transposed(parameter, ops.constant(random([8, 4, 3, 4])), [2, 2])], [parameter])
    assert convert(model, least_macs=least) == changed


def test_small_operators_of_unknown_shapes_are_converted():
    parameter = ops.parameter([-1, 8, -1, -1], np.float32)
    model = ov.Model([transposed(parameter, ops.constant(random([8, 4, 3, 4])), [2, 2])], [parameter])
    assert convert(model, least_macs=None) == 1


def test_least_macs_is_a_number():
    model = STOCK.read_model(VECTORS / "ir" / "plain_f32.xml")
    with pytest.raises(ValueError, match="least_macs is -1: .* 0 or more"):
        convert(model, least_macs=-1)


def test_a_search_that_does_not_exist_is_refused():
    model = STOCK.read_model(VECTORS / "ir" / "plain_f32.xml")
    with pytest.raises(tconv_cl.RequestError, match="search is 'fastest': it must be model, records, measure or renew"):
        convert(model, search="fastest")
    assert "TransposedConvolution" not in types(model)


@pytest.mark.parametrize("activation, dynamic", [*((name, False) for name in ACTIVATIONS), ("prelu", True)])
def test_what_shows_late_is_computed_by_openvino(activation, dynamic, tmp_path):
    """A folder without kernels: only when a plan is made it shows that nothing can be compiled."""
    data = random((1, 8, 6, 7))
    parameter = ops.parameter(ov.PartialShape([1, 8, -1, -1]) if dynamic else data.shape, np.float32)
    node = transposed(parameter, ops.constant(random([8, 6, 4, 4])), [2, 2], begin=[1, 1], end=[1, 1])
    node = ops.add(ops.multiply(node, numbers(6, 2, 5)), random([1, 6, 1, 1], 3))
    model = ov.Model([ACTIVATIONS[activation](node)], [parameter])
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    (tmp_path / "kernels").mkdir()
    nodes, log, output = in_another_process(
        tmp_path / "model.xml", data, tmp_path, TCONV_CL_KERNEL_DIR=str(tmp_path / "kernels")
    )
    assert "TransposedConvolution" in nodes
    assert len(log.splitlines()) == 1 and "OpenVINO's own operator" in log
    np.testing.assert_allclose(output, wanted, rtol=2e-6, atol=2e-6)


def test_integers_are_left_to_openvino(tmp_path, capfd):
    parameter = ops.parameter([1, 2, 4], np.int32)
    model = ov.Model([transposed(parameter, ops.constant(np.ones([2, 2, 3], dtype=np.int32)), [2])], [parameter])
    assert "ConvolutionBackpropData" in types(reread(model, tmp_path))
    assert "i32" in capfd.readouterr().err
    assert convert(model) == 0
    assert "i32" in capfd.readouterr().err


@pytest.mark.parametrize(
    "release, sentence", [("2025.1.0", "was built for OpenVINO 2025.1.0"), (None, "without its extension for OpenVINO")]
)
def test_an_extension_of_another_release_is_refused(release, sentence, tmp_path):
    """A copy of the package, whose library was built for that release, or not at all."""
    shutil.copytree(pathlib.Path(library()).parent, tmp_path / "tconv_cl")
    file = tmp_path / "tconv_cl" / "openvino_release.txt"
    file.unlink() if release is None else file.write_text(release + "\n")
    done = subprocess.run(
        [sys.executable, "-c", "import tconv_cl.openvino"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "ImportError: " in done.stderr and sentence in done.stderr
    assert "TCONV_OPENVINO=ON" in done.stderr


# ---- layouts


def convolution(data, filter_):
    axes = len(filter_.shape) - 2
    return ops.convolution(data, ops.constant(filter_), [1] * axes, [0] * axes, [0] * axes, [1] * axes)


def chain(axes, grouped=False, between=lambda node: node, twice=False, skip=False):
    """A convolution, one or two transposed convolutions, and a convolution. `skip`: the output of another is added."""
    inputs = [ops.parameter([2, 24, *(22, 18, 10)[:axes]], np.float32)] if skip else []
    x = ops.parameter([2, 3, *(11, 9, 5)[:axes]], np.float32)
    node = convolution(x, random([24, 3] + [1] * axes))
    for seed in range(1 + twice):
        shape = [3, 8, 8] if grouped else [24, 24]
        weights = ops.constant(random([*shape, *[3] * axes], seed))
        node = transposed(between(node), weights, [2] * axes, begin=[1] * axes, end=[0] * axes, grouped=grouped)
        node = ops.add(node, numbers(24, axes, seed))
        node = ops.relu(ops.add(node, convolution(inputs[0], random([24, 24] + [1] * axes, 4))) if skip else node)
    return ov.Model([convolution(between(node), random([7, 24] + [1] * axes, 2))], [x, *inputs])


def executed(model, data):
    """What ran of a model, in order."""
    request = STOCK.compile_model(model, "CPU", {**EXACT, "PERF_COUNT": True}).create_infer_request()
    output = request.infer(data)[0]
    return [info.node_type for info in request.get_profiling_info() if info.status.name == "EXECUTED"], output


@pytest.mark.parametrize(
    "axes, options",
    [
        (1, {}),
        (2, {}),
        (3, {}),
        (2, {"grouped": True}),
        (2, {"twice": True}),
        (2, {"between": ops.sigmoid}),
        (2, {"between": ops.sigmoid, "twice": True}),
        (1, {"skip": True}),
        (2, {"skip": True}),
    ],
)
def test_between_convolutions_nothing_is_reordered(axes, options):
    model = chain(axes, **options)
    data = [random(list(input_.shape), 9) for input_ in model.inputs]
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    count = 2 if options.get("twice") else 1
    assert convert(model) == count and not ("skip" in options and types(model).count("Add") > 0)
    assert sum(node.get_attributes().get("channels_last", False) for node in model.get_ops()) == count
    counted = Counted()
    ran, output = executed(model, data)
    assert counted.evaluations == count and counted.fallbacks == 0
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    ours = [i for i, kind in enumerate(ran) if kind == "Reference"]
    assert len(ours) == count and "Transpose" not in ran
    assert not any("Reorder" in ran[max(0, i - 1) : i + 2] for i in ours), ran


@pytest.mark.parametrize("options", [{}, {"twice": True}, {"between": ops.sigmoid, "twice": True}, {"skip": True}])
def test_profiles_have_the_operators_names(options):
    model = chain(2, **options)
    assert convert(model) == (2 if options.get("twice") else 1)
    names = [
        node.get_friendly_name() for node in model.get_ordered_ops() if node.get_type_name() == "TransposedConvolution"
    ]
    request = STOCK.compile_model(model, "CPU", {**EXACT, "PERF_COUNT": True}).create_infer_request()
    request.infer([random(list(input_.shape), 9) for input_ in model.inputs])
    lines = request.get_profiling_info()
    assert [line.node_name for line in lines if line.node_type == "Reference" and line.real_time] == names
    assert [line.node_type for line in lines if line.node_name in names] == ["Reference"] * len(names)


def test_the_page():
    page = (ROOT / "docs" / "openvino.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0] == "Statistics(evaluations=1, fallbacks=0, plans=1, packs=1)"
    assert said[1:3] == [
        "tconv-cl computes 1 of 1 transposed convolutions",
        "  up, TransposedConvolution, tconv-cl",
    ]
    assert said[3] == "with upsampling"
    assert len(said) == 5 and " Reference 0:00:" in said[4]


@pytest.mark.parametrize("grouped", [False, True])
def test_the_tool_reads_converted_models(grouped, tmp_path):
    """A layer of the saved model is the one of the model before, with channels last and without what was fused."""
    tool = ROOT / "build" / "tconv-cl"
    if not tool.exists():
        pytest.skip("the tool is not built")
    model, data = chain(2, grouped), random([2, 24, 11, 9], 9)
    ov.save_model(model, tmp_path / "before.xml", compress_to_fp16=False)
    assert convert(model) == 1
    ov.save_model(model, tmp_path / "after.xml", compress_to_fp16=False)
    outputs = []
    for name, moved in ("before", data), ("after", np.ascontiguousarray(np.moveaxis(data, 1, -1))):
        np.save(tmp_path / "data.npy", moved)
        done = subprocess.run(
            [
                tool,
                "run",
                "--model",
                tmp_path / f"{name}.xml",
                "--data",
                tmp_path / "data.npy",
                "--output",
                tmp_path / "output.npy",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(np.load(tmp_path / "output.npy"))
        assert ("what was fused into 1 of its layers is left out" in done.stderr) == (name == "after")
    np.testing.assert_allclose(np.moveaxis(outputs[1], -1, 1), outputs[0], rtol=1e-5, atol=1e-5)


def test_alone_it_stays_plain():
    x = ops.parameter([1, 4, 6, 7], np.float32)
    model = ov.Model([transposed(ops.sigmoid(x), ops.constant(random([4, 5, 3, 3])), [2, 2])], [x])
    assert convert(model) == 1 and "Transpose" not in types(model)


def test_the_smaller_tensor_is_reordered():
    """A convolution on one side only: before it, the output would be reordered, which is larger than the data."""
    x = ops.parameter([1, 4, 6, 7], np.float32)
    weights = ops.constant(random([4, 5, 4, 4]))
    before = ov.Model([transposed(convolution(x, random([4, 4, 1, 1])), weights, [2, 2])], [x])
    assert convert(before) == 1 and "Transpose" not in types(before)
    x = ops.parameter([1, 4, 6, 7], np.float32)
    after = ov.Model([convolution(transposed(x, weights, [2, 2]), random([3, 5, 1, 1]))], [x])
    assert convert(after) == 1 and types(after).count("Transpose") == 2


def test_a_chain_has_one_layout():
    """As networks that detect text end: the large tensor between two of them, and a mask of one channel."""
    x = ops.parameter([1, 3, 11, 9], np.float32)
    node = convolution(x, random([24, 3, 1, 1]))
    node = ops.relu(ops.add(transposed(node, ops.constant(random([24, 24, 2, 2])), [2, 2]), numbers(24, 2, 1)))
    node = ops.sigmoid(ops.add(transposed(node, ops.constant(random([24, 1, 2, 2])), [2, 2]), numbers(1, 2, 1)))
    model, data = ov.Model([node], [x]), random([1, 3, 11, 9], 9)
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 2
    ran, output = executed(model, data)
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
    assert ran.count("Reference") == 2 and "Transpose" not in ran and "Reorder" not in ran[-3:], ran


@pytest.mark.parametrize("skip", [False, True])
def test_channels_last_falls_back(skip, tmp_path):
    """OpenVINO's own operators compute it between two Transposes, with extents that are not known, too."""
    model = chain(2, grouped=True, skip=skip)
    if skip:
        added = model.get_parameters()[1]
        added.output(0).replace(ops.constant(random(list(added.shape), 8)).output(0))
        model.remove_parameter(added)
    else:
        model.reshape([-1, 3, -1, -1])
    data = random([2, 3, 11, 9], 9)
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1 and types(model).count("Add") == 0
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    (tmp_path / "kernels").mkdir()
    environment = {"TCONV_CL_KERNEL_DIR": str(tmp_path / "kernels")}
    _, log, output = in_another_process(tmp_path / "model.xml", data, tmp_path, **environment)
    assert "OpenVINO's own operator" in log
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


# ---- generated graphs


def generated(seed):
    """A graph of one to three transposed convolutions of any attributes, between convolutions, arithmetic, activations,
    sums with what came before and outputs that are read twice; and how many it has."""
    draw = np.random.default_rng(seed)

    def pick(*choices):
        return choices[draw.integers(len(choices))]

    def constant(*shape):
        return ops.constant(draw.uniform(-1, 1, shape).astype(np.float32))

    axes, channels = int(draw.integers(1, 4)), int(draw.integers(1, 4)) * 2
    ones = [1] * axes
    x = node = ops.parameter(
        [int(draw.integers(1, 3)), channels, *draw.integers(2, [30, 9, 5][axes - 1], axes).tolist()], np.float32
    )
    arithmetic = [
        lambda x, c: ops.add(x, c),
        lambda x, c: ops.subtract(c, x),
        lambda x, c: ops.multiply(c, x),
        lambda x, c: ops.divide(x, ops.add(ops.abs(c), np.array(0.5, np.float32))),
        lambda x, c: ops.maximum(x, c),
    ]
    gates = [lambda x: ops.multiply(x, gate(x)) for gate in GATES.values()]
    simple = [activation for name, activation in ACTIVATIONS.items() if name != "prelu"]
    outputs, count = [], int(draw.integers(1, 4))
    for _ in range(count):
        if pick(True, False):
            inner = int(draw.integers(1, 4)) * 2
            weights = constant(inner, channels, *ones)
            node, channels = ops.convolution(node, weights, ones, [0] * axes, [0] * axes, ones), inner
        grouped, inner = pick(True, False), int(draw.integers(1, 7))
        kernel, strides, dilations = draw.integers(1, 5, axes), draw.integers(1, 4, axes), draw.integers(1, 3, axes)
        shape = [2, channels // 2, inner] if grouped else [channels, inner]
        padding = [int(draw.integers(0, s)) for s in strides]
        options = {"dilations": dilations.tolist(), "padding": padding, "grouped": grouped}
        sizes = dilations * (kernel - 1) + 1  # pads may take at most what one input makes, less one
        options["begin"] = [int(draw.integers(0, (k + 1) // 2)) for k in sizes]
        options["end"] = [int(draw.integers(0, (k + 1) // 2)) for k in sizes]
        node = transposed(node, constant(*shape, *kernel.tolist()), strides.tolist(), **options)
        channels = inner * 2 if grouped else inner
        for _ in range(draw.integers(0, 3)):
            node = pick(*arithmetic)(node, constant(*pick((1, channels, *ones), (1,), (channels, *ones))))
        if pick(True, False):
            skip = constant(*node.get_output_shape(0)) if pick(True, False) else ops.abs(node)
            node = ops.add(node, skip) if pick(True, False) else ops.add(skip, node)
        node = pick(*simple, *gates)(node)
        if pick(True, False):
            batch, _, *extents = node.get_output_shape(0)
            parts = [node, constant(batch, channels, *extents)]
            node, channels = ops.concat(parts if pick(True, False) else parts[::-1], 1), channels * 2
        if channels % 2 == 1:
            node, channels = ops.concat([node, node], 1), channels * 2
        outputs.append(ops.convolution(node, constant(3, channels, *ones), ones, [0] * axes, [0] * axes, ones))
    outputs.append(node)
    return ov.Model(outputs, [x]), count


@pytest.mark.parametrize("seed", range(int(os.environ.get("TCONV_CL_TEST_GRAPHS", "30"))))
def test_generated(seed):
    model, count = generated(seed)
    data = random(list(model.input(0).shape), seed)
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)
    assert convert(model) == count
    counted = Counted()
    ours = compiled(model)(data)
    assert counted.evaluations == count and counted.fallbacks == 0
    for i in range(len(model.outputs)):
        scale = max(1, np.abs(wanted[i]).max())
        np.testing.assert_allclose(ours[i] / scale, wanted[i] / scale, rtol=1e-4, atol=2e-5)


# ---- children

CHILDREN = """
import os, sys, time
import numpy as np
import openvino as ov
import tconv_cl
from tconv_cl.openvino import convert, explain, statistics
core, exact = ov.Core(), {"INFERENCE_PRECISION_HINT": "f32"}
x, use, requests = np.load(sys.argv[2]), sys.argv[3], []
model = core.read_model(sys.argv[1])
if use == "devices": tconv_cl.devices()
if use == "numpy": tconv_cl.conv_transpose(np.ones((1, 2, 4), np.float32), np.ones((2, 1, 2), np.float32))
if use in ("convert", "compile", "infer"): assert explain(convert(model, least_macs=0)).converted
if use in ("compile", "infer"): requests = [core.compile_model(model, "CPU", exact).create_infer_request()]
if use == "infer": requests[0].infer(x)
sys.stdout.flush()
child = os.fork()
if child == 0:
    begin = time.monotonic()
    if not requests:
        if use != "convert": assert explain(convert(model, least_macs=0)).left
        requests = [core.compile_model(model, "CPU", exact).create_infer_request()]
    before = statistics().evaluations
    np.save(sys.argv[4], requests[0].infer(x)[0])
    print("computed", statistics().evaluations - before, time.monotonic() - begin < 20, flush=True)
    os._exit(0)
print("status", os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize("use", ["devices", "numpy", "convert", "compile", "infer"])
def test_a_forked_child_does_not_hang(use, tmp_path):
    """OpenVINO's own operator computes there, and a line says why. The model has nothing else: OpenVINO's own threads
    are not there in a child, either."""
    x = ops.parameter([1, 4, 6, 7], np.float32)
    model = ov.Model([transposed(x, ops.constant(random([4, 5, 3, 3])), [2, 2])], [x])
    data = random([1, 4, 6, 7], 9)
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    np.save(tmp_path / "x.npy", data)
    command = [sys.executable, "-c", CHILDREN, tmp_path / "model.xml", tmp_path / "x.npy", use, tmp_path / "y.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["computed 0 True", "status 0"], done.stderr
    assert "was forked from process" in done.stderr
    wanted = STOCK.compile_model(model, "CPU", EXACT)(data)[0]
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


# ---- copies

COPIES = """
import ctypes, sys
import numpy as np
import openvino as ov
import tconv_cl
from tconv_cl.openvino import add_extension, statistics
counter = ctypes.CDLL(sys.argv[1])
core = ov.Core()
add_extension(core)
compiled = core.compile_model(core.read_model(sys.argv[2]), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
x = np.load(sys.argv[3])
compiled(x)
before, evaluations = counter.copies_counted(), statistics().evaluations
for _ in range(5):
    compiled(x)
print(counter.copies_counted() - before, statistics().evaluations - evaluations)
before = counter.copies_counted()
tconv_cl.conv_transpose(np.ones((1, 2, 40), np.float32), np.ones((2, 1, 2), np.float32), memory_limit=200)
print(counter.copies_counted() > before)  # slabs are copied, which shows that copies are counted
"""


def test_tensors_are_not_copied_on_a_processor(tmp_path):
    random = np.random.default_rng(3)

    def constant(*shape):
        return ops.constant(random.uniform(-1, 1, shape).astype(np.float32))

    def convolution(data, filter_):
        return ops.convolution(data, filter_, [1, 1], [0, 0], [0, 0], [1, 1])

    x = ops.parameter([1, 3, 13, 17], np.float32)
    up = transposed(convolution(x, constant(5, 3, 1, 1)), constant(5, 6, 2, 2), [2, 2])
    up = transposed(convolution(up, constant(7, 6, 3, 3)), constant(7, 4, 3, 3), [2, 2])
    ov.save_model(ov.Model([up], [x]), tmp_path / "model.xml", compress_to_fp16=False)
    np.save(tmp_path / "x.npy", random.uniform(-1, 1, (1, 3, 13, 17)).astype(np.float32))
    source, counter = ROOT / "adapters" / "count_copies.c", tmp_path / "count_copies.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", counter, source, "-ldl"], check=True)
    command = [sys.executable, "-c", COPIES, counter, tmp_path / "model.xml", tmp_path / "x.npy"]
    done = subprocess.run(command, env={**os.environ, "LD_PRELOAD": str(counter)}, capture_output=True, text=True)
    assert done.stdout.split() == ["0", "10", "True"], done.stderr
