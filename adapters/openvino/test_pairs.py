# SPDX-License-Identifier: Apache-2.0
"""Nearest upsamplings before convolutions, and pixel shuffles behind them, as one layer, against OpenVINO's own
operators.

usage: pytest adapters/openvino        with tconv_cl installed as docs/openvino.md says; needs an OpenCL device

TCONV_CL_TEST_PAIRS: how many random pairs are computed."""

import math
import subprocess
import sys

import numpy as np
import onnx
import openvino as ov
import pytest
from openvino import opset13 as ops
from openvino.utils.node_factory import NodeFactory

import tconv_cl
from tconv_cl._openvino import pairs
from tconv_cl._openvino.pairs import REPEATING
from tconv_cl.openvino import add_extension, explain
from tconv_cl.openvino import convert as convert_model
from test_extension import (
    EXACT,
    ROOT,
    STOCK,
    Counted,
    compiled,
    convert,
    convolution,
    numbers,
    random,
    reread,
    transposed,
    types,
)

sys.path.append(str(ROOT / "python" / "tests"))

from random_pairs import COUNT, SHUFFLE, SHUFFLE_DCR, UPSAMPLE, drawn  # noqa: E402

DATA = [1, 4, 5, 4]


@pytest.fixture(autouse=True)
def small_shuffles(monkeypatch):
    """Takes shuffles of any size."""
    monkeypatch.setattr(pairs, "LEAST_CHANNELS", 1)
    monkeypatch.setattr(pairs, "LEAST_AXES", 1)


def enlarged(
    x,
    factors,
    mode=("asymmetric", "floor"),
    by="scales",
    opset=11,
    axes=None,
    pads=(0, 0),
    antialias=False,
    kind="nearest",
    target=None,
):
    """Interpolate of these factors along the spatial axes, or with `axes` along these. `target` replaces scales or
    sizes."""
    rank = x.get_output_partial_shape(0).rank.get_length()
    axes = list(range(2, rank)) if axes is None else axes
    factor = dict(zip(range(2, rank), factors))
    scales = np.array([factor.get(axis, 1) for axis in axes], np.float32)
    if by == "sizes" and target is None:
        shape = x.get_output_shape(0)
        target = ops.constant(np.array([shape[axis] * factor.get(axis, 1) for axis in axes], np.int64))
    elif target is None:
        target = ops.constant(scales)
    inputs = [x, target, ops.constant(np.array(axes, np.int64))]
    if opset == 4:
        unused = ops.constant(np.full(len(axes), 7, np.int64)) if by == "scales" else ops.constant(scales)
        inputs[1:2] = [unused, target] if by == "scales" else [target, unused]
    attributes = {
        "mode": kind,
        "shape_calculation_mode": by,
        "coordinate_transformation_mode": mode[0],
        "nearest_mode": mode[1],
        "antialias": antialias,
        "pads_begin": [0, 0, *[pads[0]] * (rank - 2)],
        "pads_end": [0, 0, *[pads[1]] * (rank - 2)],
        "cube_coeff": -0.75,
    }
    return NodeFactory(f"opset{opset}").create("Interpolate", [each.output(0) for each in inputs], attributes)


def convolved(x, weights, begin=None, end=None, dilations=None, auto_pad="explicit", groups=1, strides=None):
    axes = weights.ndim - 2
    attributes = {
        "strides": strides or [1] * axes,
        "dilations": dilations or [1] * axes,
        "pads_begin": begin or [0] * axes,
        "pads_end": end or [0] * axes,
        "auto_pad": auto_pad,
    }
    if groups > 1:
        weights = weights.reshape(groups, -1, *weights.shape[1:])
    kind = "GroupConvolution" if groups > 1 else "Convolution"
    return NodeFactory("opset1").create(kind, [x.output(0), ops.constant(weights).output(0)], attributes)


def shuffled(x, factors, dcr=False, by="DepthToSpace"):
    """By DepthToSpace, which has one factor, or as exporters write other shuffles."""
    if by == "DepthToSpace":
        return ops.depth_to_space(x, "blocks_first" if dcr else "depth_first", factors[0])
    batch, channels, *extents = x.get_output_shape(0)
    axes, channels = len(extents), channels // math.prod(factors)
    first = [batch, *factors, channels, *extents] if dcr else [batch, channels, *factors, *extents]
    order = [0, axes + 1 if dcr else 1]
    for axis in range(axes):
        order += [axes + 2 + axis, axis + (1 if dcr else 2)]
    last = [batch, channels, *(extent * factor for extent, factor in zip(extents, factors))]
    return ops.reshape(ops.transpose(ops.reshape(x, first, False), order), last, False)


# What stays two operators, and a part of the reason; None: nothing says that it might be a pair.
UPSAMPLE_LEFT = {
    "linear": None,
    "mode": "half_pixel and floor",
    "fraction": "not whole numbers",
    "no factor": "hardly save",
    "computed": "not constant|not known",
    "stride": "stride is not 1",
    "dilation": "above the factor",
    "kernel 1": "kernel is 1",
    "two readers": "reads the enlarged data",
    "an output": "reads the enlarged data",
    "between": None,
}
SHUFFLE_LEFT = {"stride": "stride is not 1", "dilation": "dilation is not 1", "two readers": None}
OBSTACLES = {
    UPSAMPLE: UPSAMPLE_LEFT,
    SHUFFLE: SHUFFLE_LEFT,
    SHUFFLE_DCR: {**SHUFFLE_LEFT, "groups of DCR": "several groups"},
}


def random_pair(seed):
    return drawn(
        seed,
        OBSTACLES,
        types=("float32", "float32", "float32", "float64", "float16", "bfloat16"),
        shuffle_axes=(1, 2, 2, 3),
        auto_pads=("explicit", "explicit", "valid", "same_upper", "same_lower"),
    )


def pair_model(pair, magnitudes=False):
    """A pair, perhaps between convolutions, with versions, modes and lists of axes drawn besides."""
    draw = np.random.default_rng(pair.seed)

    def pick(*choices):
        return choices[draw.integers(len(choices))]

    def own(values):
        return np.abs(values) if magnitudes else values

    shape = [pair.batch, pair.inner, *pair.extents]
    opset, mode, which = pick(4, 11), pick(*sorted(REPEATING)), pick(None, list(range(pair.axes + 2)))
    if which is None and not pair.by_sizes and pick(True, False):
        which = list(range(2, pair.axes + 2))[::-1]
    between, by = pick(True, False), pick("DepthToSpace", "Reshape")
    plain = pair.type == "float32"
    dynamic = pair.dynamic and (pair.form == UPSAMPLE or by == "DepthToSpace")
    x = ops.parameter([pick(-1, pair.batch), pair.inner, *[-1] * pair.axes] if dynamic else shape, np.float32)
    parameters, others, inner = [x], [], np.abs(random([pair.inner] * 2 + [1] * pair.axes, 3))
    node = convolution(x, inner) if between and plain else x
    element = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16"}[pair.type]
    node = node if plain else ops.convert(node, element)
    inside = None
    if pair.form == UPSAMPLE:
        target = None
        if pair.obstacle == "computed":
            target = ops.parameter([len(which or pair.kernel)], np.int64 if pair.by_sizes else np.float32)
            parameters.append(target)
        mode = ("half_pixel", "floor") if pair.obstacle == "mode" else mode
        kind, by_what = "linear" if pair.obstacle == "linear" else "nearest", "sizes" if pair.by_sizes else "scales"
        node = inside = enlarged(node, pair.factors, mode, by_what, opset, which, kind=kind, target=target)
        if pair.obstacle == "between":
            node = ops.relu(node)
    weights = own(pair.weights())
    if pair.groups > 1:
        weights = weights.reshape(pair.groups, -1, *weights.shape[1:])
    filter_ = ops.constant(weights) if plain else ops.convert(ops.constant(weights), element)
    attributes = {"strides": pair.strides, "dilations": pair.dilations, "pads_begin": pair.begin, "pads_end": pair.end}
    node = NodeFactory("opset1").create(
        "GroupConvolution" if pair.groups > 1 else "Convolution",
        [node.output(0), filter_.output(0)],
        {**attributes, "auto_pad": pair.auto_pad},
    )
    inside = inside or node
    node.set_friendly_name("the pair")
    if pair.bias:
        bias = ops.constant(own(pair.biases()).reshape(-1, *[1] * pair.axes))
        node = ops.add(node, bias if plain else ops.convert(bias, element))
        inside = node if pair.form != UPSAMPLE else inside
    if pair.form != UPSAMPLE:
        node = shuffled(node, pair.factors, pair.form == SHUFFLE_DCR, by)
    first = node
    node = ops.relu(node) if pair.behind else node
    behind = pair.outer if pair.form == UPSAMPLE else pair.outer // math.prod(pair.factors)
    node = node if plain else ops.convert(node, np.float32)
    outputs = [convolution(node, np.abs(random([2, behind, *[1] * pair.axes], 4))) if between and plain else node]
    if pair.behind == "twice":
        outputs.append(first if plain else ops.convert(first, np.float32))
    if pair.obstacle == "two readers":
        others = [ops.abs(inside)]
    elif pair.obstacle == "an output":
        others = [inside]
    outputs += others if plain else [ops.convert(one, np.float32) for one in others]
    model = ov.Model(outputs, parameters)
    feeds = [own(pair.data())]
    if pair.obstacle == "computed":
        factor = dict(zip(range(2, pair.axes + 2), pair.factors))
        axes, of_one = which or range(2, pair.axes + 2), shape if pair.by_sizes else [1] * len(shape)
        given = [factor.get(axis, 1) * of_one[axis] for axis in axes]
        feeds.append(np.array(given, np.int64 if pair.by_sizes else np.float32))
    return model, feeds, between and plain


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_pairs(seed):
    pair = random_pair(seed)
    model, feeds, between = pair_model(pair)
    wanted = list(STOCK.compile_model(model.clone(), "CPU", EXACT)(feeds).values())
    magnitudes, most, _ = pair_model(pair, magnitudes=True)
    most = list(STOCK.compile_model(magnitudes, "CPU", EXACT)(most).values())
    reason, before = OBSTACLES[pair.form].get(pair.obstacle), types(model)
    taken = pair.obstacle == ""
    assert convert(model) == taken, pair
    told = explain(model)
    assert len(told) == (taken or reason is not None) and len(told.converted) == taken, (told, pair)
    assert reason is None or any(part in told[0].note for part in reason.split("|")), (told, pair)
    if taken:
        left = {"Interpolate", "DepthToSpace", "Reshape", "Add"} & set(types(model))
        assert left == set() and ("Transpose" in types(model)) <= between, pair
    else:
        assert sorted(types(model)) == sorted(before)
    counted = Counted()
    outputs = list(compiled(model)(feeds).values())
    assert (counted.evaluations, counted.fallbacks) == (taken, 0), pair
    further = 2 * (pair.inner + pair.outer + 2) * 2.0**-24 if between else 0  # of the convolutions around
    for output, one, magnitude in zip(outputs, wanted, most):
        assert output.shape == one.shape and output.dtype == one.dtype
        limit = pair.bound(magnitude) + further * magnitude if taken else 0
        assert (np.abs(output.astype(np.float64) - one) <= limit).all(), pair


LEFT = {
    "linear": (dict(kind="linear"), {}, None),
    "mode": (dict(mode=("half_pixel", "floor")), {}, "half_pixel and floor"),
    "only of 2": (dict(mode=("asymmetric", "round_prefer_floor")), {}, "asymmetric and round_prefer_floor"),
    "scale": (dict(factors=[2, 1.5]), {}, "not whole numbers"),
    "scale below 1": (dict(factors=[0.5, 2]), {}, "not whole numbers"),
    "scale nearly 2": (dict(factors=[2, 2.0000002]), {}, "not whole numbers"),
    "size": (dict(by="sizes", target=ops.constant(np.array([10, 9], np.int64))), {}, "not whole numbers"),
    "sizes of one axis": (dict(by="sizes", axes=[3]), {}, "some axes only"),
    "channels": (dict(axes=[1, 2], target=ops.constant(np.array([2, 2], np.float32))), {}, "batch or channels"),
    "pads": (dict(pads=(0, 1)), {}, "pads or antialias"),
    "antialias": (dict(antialias=True), {}, "pads or antialias"),
    "stride": ({}, dict(strides=[2, 1]), "stride is not 1"),
    "dilation": (dict(factors=[2, 3]), dict(dilations=[3, 1]), "dilation 3 is above the factor 2"),
    "dilation of the factor": ({}, dict(dilations=[2, 2]), "hardly save multiply-adds"),
    "kernel of 1": ({}, dict(kernel=[1, 1]), "kernel is 1"),
}


@pytest.mark.parametrize("name", LEFT)
def test_pairs_that_are_left(name):
    interpolate, attributes, reason = LEFT[name]
    attributes = dict(attributes)
    x = ops.parameter([1, 4, 6, 6], np.float32)
    weights = random([3, 8 if name == "channels" else 4, *attributes.pop("kernel", [3, 3])], 2)
    node = convolved(enlarged(x, **{"factors": [2, 2], **interpolate}), weights, **attributes)
    model = ov.Model([node], [x])
    before = types(model)
    assert convert(model) == 0 and types(model) == before
    left = list(explain(model).left.values())
    assert left == [] if reason is None else len(left) == 1 and reason in left[0]


@pytest.mark.parametrize("what", ["another reader", "an output", "a filter", "scales", "stride"])
def test_pairs_that_depend_on_the_rest_of_the_model(what):
    x = ops.parameter(DATA, np.float32)
    scales = ops.parameter([2], np.float32)
    node = enlarged(x, [2, 2], target=scales if what == "scales" else None)
    w = ops.parameter([3, 4, 3, 3], np.float32)
    ones = [1, 1]
    weights = w if what == "a filter" else ops.constant(random([3, 4, 3, 3], 2))
    last = ops.convolution(node, weights, [2, 2] if what == "stride" else ones, ones, ones, ones)
    others = {"another reader": [ops.abs(node)], "an output": [node]}.get(what, [])
    model = ov.Model([last, *others], [x, scales, w])
    assert convert(model) == 0 and len(explain(model).left) == 1
    assert str(explain(model)).startswith("tconv-cl computes 0 of 1 upsamplings")


def pair(x, seed=2, groups=1, **interpolate):
    """Twice the extents, and a 3 x 3 convolution to 6 channels that keeps these."""
    weights = random([6, x.get_output_partial_shape(0)[1].get_length() // groups, 3, 3], seed)
    return convolved(enlarged(x, [2, 2], **interpolate), weights, [1, 1], [1, 1], groups=groups)


def same(model, stock, data, fallbacks=0, tolerance=2e-5):
    wanted, counted = STOCK.compile_model(stock, "CPU", EXACT)(data)[0], Counted()
    output = compiled(model)(data)[0]
    assert output.shape == wanted.shape and output.dtype == wanted.dtype
    np.testing.assert_allclose(output, wanted, rtol=tolerance, atol=tolerance)
    assert (counted.evaluations, counted.fallbacks) == (1 - fallbacks, fallbacks)


@pytest.mark.parametrize("shape", [[1, 4, -1, -1], [-1, 4, 5, -1]])
def test_scales_hold_for_any_extents(shape):
    x = ops.parameter(shape, np.float32)
    model = ov.Model([pair(x)], [x])
    stock = model.clone()
    assert convert(model) == 1
    assert model.output(0).partial_shape == stock.output(0).partial_shape
    for data in ([1, 4, 5, 4], [1, 4, 5, 7]):
        same(model, stock, random(data))


@pytest.mark.parametrize("opset", [4, 11])
@pytest.mark.parametrize("axes", [None, [0, 1, 2, 3]])
@pytest.mark.parametrize("computed", [False, True])
def test_sizes_hold_for_the_extents_that_they_are_multiples_of(opset, axes, computed, tmp_path, capfd):
    """A model may be reshaped after convert. Constant sizes may then not be multiples of the data's extents:
    OpenVINO's own operators compute, in the model's mode. Sizes that are computed from the data's shape change with
    it, and so do the layer's factors."""
    x = ops.parameter(DATA, np.float32)
    sizes = None
    if computed:
        sizes = ops.multiply(ops.shape_of(x), np.array([1, 1, 2, 2], np.int64))
        sizes = sizes if axes else ops.gather(sizes, np.array([2, 3]), np.array(0))
    mode = "pytorch_half_pixel", "round_prefer_ceil"
    node = enlarged(x, [2, 2], mode, "sizes", opset, axes, target=sizes)
    model = ov.Model([convolved(node, random([6, 4, 3, 3], 2), [1, 1], [1, 1])], [x])
    stock = model.clone()
    assert convert(model) == 1
    for one in (model, reread(model, tmp_path)):
        same(one, stock, random(DATA))
    for shape, late in (([1, 4, 10, 2], False), ([1, 4, 4, 3], not computed)):
        for one in (model, stock):
            one.reshape(shape)
        same(model, stock, random(shape), late)
    assert ("whole multiples of the data's extents" in capfd.readouterr().err) == (not computed)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("element, tolerance", [(ov.Type.f16, 4e-3), (ov.Type.bf16, 3e-2), (ov.Type.f64, 2e-5)])
def test_types(element, tolerance, groups):
    """The pair in f16, bf16 and f64, between conversions from and to f32."""
    x = ops.parameter([1, 4, 5, 4], np.float32)
    weights = ops.constant(random([6, 4 // groups, 3, 3], 2).reshape([groups] * (groups > 1) + [-1, 4 // groups, 3, 3]))
    node = enlarged(ops.convert(x, element.to_string()), [2, 2])
    kind = ops.group_convolution if groups > 1 else ops.convolution
    node = kind(node, ops.convert(weights, element.to_string()), [1, 1], [1, 1], [1, 1], [1, 1])
    model = ov.Model([ops.convert(node, np.float32)], [x])
    stock = model.clone()
    assert convert(model) == 1
    same(model, stock, random(DATA), tolerance=tolerance)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("late", [False, True])
def test_channels_last_with_what_follows(groups, late, tmp_path, capfd):
    """Between convolutions, with bias, residual and activation; also when only inference shows that a residual is
    broadcast, and OpenVINO's own operators compute."""
    x, r = ops.parameter([2, 4, 5, 4], np.float32), ops.parameter([2, 6, 10, 8], np.float32)
    node = pair(convolution(x, random([4, 4, 1, 1], 3)), groups=groups)
    node = ops.swish(ops.add(ops.add(node, numbers(6, 2, 3)), r))
    model = ov.Model([convolution(node, random([3, 6, 1, 1], 4))], [x, r])
    stock = model.clone()
    assert convert(model) == 1
    (name,) = explain(model).converted
    assert explain(model)[0].note == "with upsampling, bias, residual, silu"
    assert str(explain(model)).startswith("tconv-cl computes 1 of 1 upsamplings")
    model = reread(model, tmp_path)
    assert next(node for node in model.get_ops() if node.get_friendly_name() == name).get_attributes()["channels_last"]
    if late:
        for one in (model, stock):
            one.reshape({1: [1, 6, 1, 8]})
    same(model, stock, [random([2, 4, 5, 4]), random([1, 6, 1, 8] if late else [2, 6, 10, 8], 5)], fallbacks=int(late))


def test_a_concat_behind_a_pair_is_fused():
    x, skip = ops.parameter([2, 4, 5, 4], np.float32), ops.parameter([2, 3, 10, 8], np.float32)
    model = ov.Model([ops.concat([skip, ops.relu(pair(x, by="sizes"))], 1)], [x, skip])
    stock = model.clone()
    assert convert(model) == 1 and "Concat" not in types(model)
    same(model, stock, [random([2, 4, 5, 4]), random([2, 3, 10, 8], 3)])


def joined(x, skip, last=False, channels=(4, 3), groups=1, **convolution_):
    """A block of a U-Net: the enlarged data are concatenated with a tensor, then convolved."""
    both = [enlarged(x, [2, 2]), skip]
    weights = random([6, sum(channels) // groups, 3, 3], 2)
    return convolved(ops.concat(both[:: -1 if last else 1], 1), weights, groups=groups, **convolution_)


JOINED = {
    "alone": lambda node, r: node,
    "bias and relu": lambda node, r: ops.relu(ops.add(node, numbers(6, 2, 3))),
    "normalization": lambda node, r: ops.relu(ops.add(ops.multiply(node, numbers(6, 2, 3)), numbers(6, 2, 4))),
    "residual": lambda node, r: ops.swish(ops.add(ops.multiply(node, numbers(6, 2, 3)), r)),
}


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("behind", JOINED)
@pytest.mark.parametrize("pads", [{"begin": [1, 1], "end": [1, 1]}, {"auto_pad": "same_lower"}, {"begin": [0, 2]}])
def test_a_concat_between(behind, last, pads, tmp_path):
    """Only the enlarged part is the layer's, and OpenVINO's convolution of the other one is its residual."""
    x, skip = ops.parameter(DATA, np.float32), ops.parameter([1, 3, 10, 8], np.float32)
    node = joined(x, skip, last, **pads)
    r = ops.parameter(node.get_output_shape(0), np.float32)
    model = ov.Model([JOINED[behind](node, r)], [x, skip, *([r] if behind == "residual" else [])])
    stock = model.clone()
    assert convert(model) == 1 and "Concat" not in types(model) and types(model).count("Convolution") == 1
    assert explain(model)[0].note.startswith("with upsampling") and "residual" in explain(model)[0].note
    data = [random(list(one.shape), 5 + at) for at, one in enumerate(model.inputs)]
    for one in (model, reread(model, tmp_path)):
        same(one, stock, data)


@pytest.mark.parametrize(
    "what, reason",
    [
        ("few", "too few of its channels are enlarged"),
        ("three", "does not join two inputs"),
        ("rows", "does not join two inputs along the channels"),
        ("read twice", "something else reads"),
        ("groups", "the convolution has groups"),
    ],
)
def test_a_concat_between_that_stays(what, reason):
    others = 12 if what == "few" else 2 if what == "groups" else 4
    x, skip = ops.parameter(DATA, np.float32), ops.parameter([1, others, 10, 8], np.float32)
    outputs = []
    if what in ("three", "rows"):
        both = ops.concat([enlarged(x, [2, 2]), skip] + [skip] * (what == "three"), 2 if what == "rows" else 1)
        outputs = [convolved(both, random([6, both.get_output_shape(0)[1], 3, 3]))]
    else:
        outputs = [joined(x, skip, channels=(4, others), groups=2 if what == "groups" else 1)]
    if what == "read twice":
        outputs.append(ops.abs(outputs[0].input_value(0).get_node()))
    model = ov.Model(outputs, [x, skip])
    before = types(model)
    assert convert(model) == 0 and types(model) == before
    (note,) = explain(model).left.values()
    assert reason in note


@pytest.mark.parametrize("way", ["path", "model", "bytes", "text"])
def test_a_core_with_the_extension_takes_pairs(way, tmp_path):
    """Of what it reads; the caller's core stays the same object, also of a class of the caller's."""
    x = ops.parameter([1, 64, 32, 32], np.float32)
    ov.save_model(
        ov.Model([convolved(enlarged(x, [2, 2]), random([64, 64, 3, 3], 2))], [x]), tmp_path / "model.xml", False
    )
    stock = STOCK.read_model(tmp_path / "model.xml")

    class Own(ov.Core):
        def mine(self):
            return 3

    core = Own()
    for _ in range(2):
        add_extension(core)
    assert isinstance(core, Own) and core.mine() == 3 and type(core).__name__ == "Own"
    xml, weights = (tmp_path / "model.xml").read_bytes(), (tmp_path / "model.bin").read_bytes()
    if way == "model":
        model = core.read_model(tmp_path / "model.xml")
        assert len(explain(model).converted) == 1
        network = core.compile_model(model, "CPU", EXACT)
    elif way == "path":
        network = core.compile_model(str(tmp_path / "model.xml"), "CPU", EXACT)
    else:
        network = core.compile_model(xml if way == "bytes" else xml.decode(), "CPU", EXACT, weights=weights)
    data, counted = random([1, 64, 32, 32]), Counted()
    wanted = STOCK.compile_model(stock, "CPU", EXACT)(data)[0]
    np.testing.assert_allclose(network(data)[0], wanted, rtol=2e-5, atol=2e-5)
    assert (counted.evaluations, counted.fallbacks) == (1, 0)


def test_a_quantized_pair_stays():
    """OpenVINO computes it with integers."""
    x = ops.parameter(DATA, np.float32)
    bounds = [np.array(number, np.float32) for number in (-1, 1, -1, 1)]
    weights = ops.fake_quantize(ops.constant(random([6, 4, 3, 3], 2)), *bounds, 255)
    node = enlarged(ops.fake_quantize(x, *bounds, 256), [2, 2])
    model = ov.Model([ops.convolution(node, weights, [1, 1], [1, 1], [1, 1], [1, 1])], [x])
    assert convert(model) == 0 and list(explain(model).left.values()) == ["the convolution's filter is not a constant"]


@pytest.mark.parametrize("least, changed", [(None, 0), (6048, 1), (6049, 0)])
def test_small_pairs_stay(least, changed):
    x = ops.parameter(DATA, np.float32)
    model = ov.Model([pair(x)], [x])
    assert convert(model, least_macs=least) == changed
    assert bool(explain(model).left) != bool(changed)


@pytest.mark.parametrize("is_pair", [False, True])
def test_math(is_pair):
    """Fast algorithms are used if they are allowed."""
    data = random([1, 64, 16, 16])
    x = ops.parameter(data.shape, np.float32)
    if is_pair:
        node = convolved(enlarged(x, [2, 2]), random([64, 64, 5, 5], 2), [2, 2], [2, 2])
    else:
        node = transposed(x, ops.constant(random([64, 64, 4, 4], 2)), [2, 2])
    model = ov.Model([node], [x])
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    for math_ in ("exact", "fast"):
        changed = model.clone()
        assert convert(changed, math=math_, search="model") == 1
        with tconv_cl.trace() as events:
            output = compiled(changed)(data)[0]
        algorithms = {event.algorithm for event in events if event.kind == "plan"}
        assert ("winograd_vector" in algorithms) == (math_ == "fast")
        np.testing.assert_allclose(output, wanted, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="math is 'quick': it must be exact or fast"):
        convert(model, math="quick")


@pytest.mark.parametrize("sizes", [False, True])
@pytest.mark.parametrize("group", [1, 2])
def test_onnx_files(sizes, group, tmp_path):
    """As PyTorch exports interpolate and Conv2d."""
    kind = onnx.TensorProto.FLOAT
    target = onnx.numpy_helper.from_array(
        np.array([1, 4, 10, 8], np.int64) if sizes else np.array([1, 1, 2, 2], np.float32), "target"
    )
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node(
                "Resize",
                ["x", "", *([""] if sizes else []), "target"],
                ["u"],
                mode="nearest",
                coordinate_transformation_mode="asymmetric",
                nearest_mode="floor",
            ),
            onnx.helper.make_node("Conv", ["u", "w", "b"], ["y"], pads=[1, 1, 1, 1], group=group),
        ],
        "graph",
        [onnx.helper.make_tensor_value_info("x", kind, DATA)],
        [onnx.helper.make_tensor_value_info("y", kind, None)],
        [
            target,
            onnx.numpy_helper.from_array(random([6, 4 // group, 3, 3], 2), "w"),
            onnx.numpy_helper.from_array(random([6], 3), "b"),
        ],
    )
    opset = onnx.helper.make_opsetid("", 18)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8), tmp_path / "model.onnx")
    model = STOCK.read_model(tmp_path / "model.onnx")
    stock = model.clone()
    assert convert_model(model, least_macs=0) is model
    assert explain(model)[0].note == "with upsampling, bias"
    same(model, stock, random(DATA))


@pytest.mark.parametrize("channels_last", [False, True])
def test_the_tool_reads_a_converted_pair(channels_last, tmp_path):
    tool = ROOT / "build" / "tconv-cl"
    if not tool.exists():
        pytest.skip("the tool is not built")
    data = random([1, 4, 5, 4])
    x = ops.parameter(data.shape, np.float32)
    model = ov.Model([pair(x, groups=2)], [x])
    wanted = STOCK.compile_model(model, "CPU", EXACT)(data)[0]
    if channels_last:  # the operator alone has them between convolutions
        node = pair(convolution(x, random([4, 4, 1, 1], 3)), groups=2)
        model = ov.Model([convolution(node, random([3, 6, 1, 1], 4))], [x])
        data, wanted = np.ascontiguousarray(np.moveaxis(data, 1, -1)), np.moveaxis(wanted, 1, -1)
    assert convert(model) == 1
    ov.save_model(model, tmp_path / "after.xml", compress_to_fp16=False)
    np.save(tmp_path / "data.npy", data)
    files = ["--data", tmp_path / "data.npy", "--output", tmp_path / "output.npy"]
    subprocess.run([tool, "run", "--model", tmp_path / "after.xml", *files], capture_output=True, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "output.npy"), wanted, rtol=1e-5, atol=1e-5)


# ---- pixel shuffle


@pytest.mark.parametrize("dcr", [False, True])
@pytest.mark.parametrize("factors", [[2, 2], [2, 3]])
def test_numbers_before_and_behind_a_shuffle(factors, dcr):
    """Factors, addends and slopes of the convolution's channels, then of the output's."""
    x, channels = ops.parameter([2, 4, 5, 4], np.float32), 3 * math.prod(factors)
    node = convolved(x, random([channels, 4, 3, 3], 2), [1, 1], [1, 1])
    node = ops.add(ops.multiply(node, numbers(channels, 2, 3)), numbers(channels, 2, 4))
    node = shuffled(node, factors, dcr, "Reshape")
    node = ops.subtract(ops.multiply(node, numbers(3, 2, 5)), numbers(3, 2, 6))
    model = ov.Model([ops.prelu(node, np.linspace(-0.5, 0.5, 3, dtype=np.float32))], [x])
    stock = model.clone()
    assert convert(model) == 1 and explain(model)[0].note == "with pixel shuffle, scale, bias, prelu"
    assert convert(model) == 0
    same(model, stock, random([2, 4, 5, 4]))


@pytest.mark.parametrize("slopes", [False, True])
@pytest.mark.parametrize("form", ["shuffle", "shuffle_dcr"])
def test_shuffles_fall_back(form, slopes, tmp_path):
    """A residual that is broadcast is OpenVINO's, in the layer's order, with channels last."""
    x, r = ops.parameter([2, 4, 5, 4], np.float32), ops.parameter([2, 3, 10, 8], np.float32)
    node = convolved(convolution(x, random([4, 4, 1, 1], 3)), random([12, 4, 3, 3], 2), [1, 1], [1, 1])
    node = shuffled(ops.add(node, numbers(12, 2, 4)), [2, 2], form == "shuffle_dcr")
    node = ops.add(node, r)
    node = ops.prelu(node, np.array([-0.5, 0.2, 0.7], np.float32)) if slopes else ops.relu(node)
    model = ov.Model([convolution(node, random([3, 3, 1, 1], 4))], [x, r])
    stock = model.clone()
    assert convert(model) == 1
    model = reread(model, tmp_path)
    (layer,) = (node for node in model.get_ordered_ops() if node.get_type_name() == "TransposedConvolution")
    assert layer.get_attributes()["channels_last"]
    same(model, stock, [random([2, 4, 5, 4]), random([2, 3, 10, 8], 5)])
    for one in (model, stock):
        one.reshape({1: [1, 3, 1, 8]})
    same(model, stock, [random([2, 4, 5, 4]), random([1, 3, 1, 8], 5)], fallbacks=1)


@pytest.mark.parametrize("shape", [[1, 4, -1, -1], [-1, 4, 5, -1]])
def test_a_shuffle_of_any_extents(shape):
    x = ops.parameter(shape, np.float32)
    model = ov.Model([ops.depth_to_space(convolved(x, random([8, 4, 3, 3], 2), [1, 1], [1, 1]), "depth_first", 2)], [x])
    stock = model.clone()
    assert convert(model) == 1
    assert model.output(0).partial_shape.compatible(stock.output(0).partial_shape)
    same(model, stock, random([1, 4, 5, 7]))


@pytest.mark.parametrize(
    "shape, outputs, groups, taken",
    [
        ([1, 4, 6, 6], 128, 1, True),
        ([1, 4, 6, 6], 124, 1, False),
        ([1, 4, 6, 6], 16, 4, True),
        ([1, 4, 6, 6], 16, 2, False),
        ([1, 4, 36], 128, 1, False),
        ([1, 456, 6, 6], 128, 1, False),  # 4104 products of an output
    ],
)
def test_shuffles_that_gain_nothing_stay(shape, outputs, groups, taken, monkeypatch):
    monkeypatch.undo()
    x, axes = ops.parameter(shape, np.float32), len(shape) - 2
    node = convolved(x, random([outputs, shape[1] // groups, *[3] * axes]), groups=groups)
    model = ov.Model([ops.depth_to_space(node, "depth_first", 2)], [x])
    assert convert(model) == taken and len(explain(model).left) == (not taken)


SHUFFLES = {
    "dilation": (lambda x: shuffled(dilated(x), [2, 2]), "dilation is not 1"),
    "stride": (lambda x: shuffled(convolved(x, random([8, 4, 3, 3]), strides=[2, 2]), [2, 2]), "stride is not 1"),
    "residual": (
        lambda x: shuffled(ops.add(convolved(x, random([8, 4, 1, 1])), random([1, 8, 6, 6])), [2, 2]),
        "added before the shuffle",
    ),
    "groups": (
        lambda x: shuffled(convolved(x, random([8, 2, 3, 3]), groups=2), [2, 2], True),
        "from several groups",
    ),
    "another order": (
        lambda x: ops.reshape(
            ops.transpose(ops.reshape(convolved(x, random([8, 4, 1, 1])), [1, 2, 4, 6, 6], False), [0, 2, 1, 3, 4]),
            [1, 8, 6, 6],
            False,
        ),
        None,
    ),
    "another shape": (
        lambda x: ops.reshape(shuffled(convolved(x, random([8, 4, 1, 1])), [2, 2], by="Reshape"), [1, 4, 6, 12], False),
        "",
    ),
}


def dilated(x):
    return convolved(x, random([8, 4, 3, 3]), dilations=[2, 1])


@pytest.mark.parametrize("name", SHUFFLES)
def test_shuffles_that_are_left(name):
    make, reason = SHUFFLES[name]
    x = ops.parameter([1, 4, 6, 6], np.float32)
    model = ov.Model([make(x)], [x])
    before = types(model)
    if reason == "":  # the shuffle itself is taken
        assert convert(model) == 1
        return
    assert convert(model) == 0 and types(model) == before
    left = list(explain(model).left.values())
    assert left == [] if reason is None else len(left) == 1 and reason in left[0]
