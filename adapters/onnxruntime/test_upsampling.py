# SPDX-License-Identifier: Apache-2.0
"""Nearest upsampling and the convolution behind it, and a convolution and the pixel shuffle behind it, each pair as one
layer, against ONNX Runtime's own two operators; and pairs that are left alone, with the reason.

usage: pytest adapters/onnxruntime        after `pip install ./python`; needs an OpenCL device

TCONV_CL_TEST_PAIRS: how many random pairs are compared."""

import os
import random

import numpy as np
import onnx
import pytest
import tconv_cl.onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession
from test_provider import Counted, model_of, operators_that_ran, session, stock
from test_provider import random as numbers

PAIRS = int(os.environ.get("TCONV_CL_TEST_PAIRS", "20"))
HALF = ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
NEAREST = ("round_prefer_floor", "round_prefer_ceil")
ANY_FACTOR = [(half, rounding) for half in HALF for rounding in NEAREST] + [("asymmetric", "floor")]
FACTOR_2 = [("asymmetric", "round_prefer_floor")] + [("align_corners", rounding) for rounding in NEAREST]
ROUNDINGS = {np.float32: 2.0**-24, np.float16: 2.0**-11}


def enlarge(
    factors, extents=None, opset=13, mode=("asymmetric", "floor"), axes=None, kind=None, as_node=False, **attributes
):
    """Nodes and constants that enlarge x to u. With the extents of the data, sizes take the place of scales."""
    scales = np.array([1, 1, *factors], np.float32)
    if opset < 9:
        return [helper.make_node("Upsample", ["x"], ["u"], scales=scales, **attributes)], {}
    if axes is not None:
        scales, attributes["axes"] = scales[axes], axes
    if kind is not None:
        attributes["mode"] = kind
    if opset >= 11 and mode is not None:
        attributes["coordinate_transformation_mode"], attributes["nearest_mode"] = mode
    operator = "Upsample" if opset < 10 else "Resize"
    if extents is not None:
        sizes = (scales * np.array(extents)[axes if axes is not None else slice(None)]).astype(np.int64)
        inputs, given = ["x", "", "", "s"], {"s": sizes}
        if opset == 11:
            inputs[2], given["none"] = "none", np.zeros(0, np.float32)
    else:
        inputs, given = (["x", "s"] if opset < 11 else ["x", "", "s"]), {"s": scales}
    if opset in (11, 12):
        inputs[1], given["roi"] = "roi", np.zeros(0, np.float32)
    node = helper.make_node(operator, inputs, ["u"], "enlarge", **attributes)
    if not as_node:
        return [node], given
    made = [helper.make_node("Constant", [], [n], value=numpy_helper.from_array(a, n)) for n, a in given.items()]
    return [*made, node], {}


def convolve(**attributes):
    return helper.make_node("Conv", ["u", "w", "b"], ["y"], "conv", **attributes)


def reasons(model, make=session, **settings):
    """A session, and why it leaves layers to ONNX Runtime."""
    with tconv_cl.trace() as events:
        made = make(model, **settings)
    return made, [event.message for event in events if event.kind == "fallback"]


class Pair:
    """A random pair that is one layer."""

    def __init__(self, seed):
        draw = random.Random(seed)
        axes, self.groups = draw.choice([1, 2, 2, 3]), draw.choice([1, 1, 2, 3])
        self.dtype = draw.choice([np.float32, np.float32, np.float16])
        self.opset = draw.choice([7, 9, 10, 11, 13, 18, 19, 20] if self.dtype is np.float32 else [13, 19])
        most = draw.choice([2, 2, 4])
        self.factors = [draw.randint(1, most) for _ in range(axes)]
        self.factors[draw.randrange(axes)] = most
        self.kernel = [draw.randint(2, 4) for _ in range(axes)]
        self.dilations = [draw.randint(1, 2) if s == 1 else draw.randint(1, s - 1) for s in self.factors]
        self.auto_pad = draw.choice(["NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
        if "SAME" in self.auto_pad:  # ONNX Runtime's own operator takes no dilation then
            self.dilations = [1] * axes
        self.pads = [draw.randint(0, 3) for _ in range(2 * axes)]
        reach = max(d * (k - 1) + 1 for d, k in zip(self.dilations, self.kernel))
        self.extents = [reach + draw.randint(0, 4) for _ in range(axes)]
        self.inner, self.outer = self.groups * draw.randint(1, 5), self.groups * draw.randint(1, 5)
        modes = [
            mode for mode in ANY_FACTOR + (FACTOR_2 if most == 2 else []) if self.opset >= 19 or "sym" not in mode[0]
        ]
        if self.opset in (11, 12):
            modes.append(("tf_half_pixel_for_nn", "floor"))
        self.mode = draw.choice([*modes, None])
        self.sizes = self.opset >= 11 and draw.random() < 0.3
        self.axes = list(range(2, 2 + axes)) if self.opset >= 18 and draw.random() < 0.5 else None
        if self.axes is not None and draw.random() < 0.5:
            self.axes = [axis - 2 - axes for axis in self.axes]
        self.dynamic = not self.sizes and draw.random() < 0.3
        self.as_node, self.bias = draw.random() < 0.5, draw.random() < 0.5
        self.x = numbers([2, self.inner, *self.extents], seed, self.dtype)
        self.w = numbers([self.outer, self.inner // self.groups, *self.kernel], seed + 1, self.dtype)
        self.b = numbers([self.outer], seed + 2, self.dtype)

    def model(self, w, b):
        nodes, given = enlarge(
            self.factors, self.x.shape if self.sizes else None, self.opset, self.mode, self.axes, as_node=self.as_node
        )
        attributes = {"pads": self.pads} if self.auto_pad == "NOTSET" else {"auto_pad": self.auto_pad}
        conv = convolve(group=self.groups, dilations=self.dilations, **attributes)
        if not self.bias:
            del conv.input[2]
        shape = ["n", self.inner, *"hwd"[: len(self.extents)]] if self.dynamic else self.x.shape
        constants = {**given, "w": w, **({"b": b} if self.bias else {})}
        return model_of([*nodes, conv], shape, constants, self.dtype, self.opset)

    def bound(self):
        """How far two sums may be apart: each term has one rounding of a sum of weights, and those of f32's sums."""
        model = self.model(abs(self.w), abs(self.b))
        magnitude = stock(model).run(None, {"x": abs(self.x)})[0].astype(np.float64)
        terms = self.inner // self.groups * np.prod(self.kernel) + len(self.kernel) + 2
        own = 2 * ROUNDINGS[self.dtype] if self.dtype is np.float16 else 0
        return magnitude * (2 * terms * 2.0**-24 + own) + 2**-24


@pytest.mark.parametrize("seed", range(PAIRS))
def test_random_pairs(seed):
    pair = Pair(seed)
    model = pair.model(pair.w, pair.b)
    ours, left = reasons(model, log_severity_level=3)
    counted = Counted()
    output, wanted = (one.run(None, {"x": pair.x})[0] for one in (ours, stock(model)))
    assert left == [] and counted.computed == 1, vars(pair)
    assert output.shape == wanted.shape and output.dtype == wanted.dtype
    assert (abs(output.astype(np.float64) - wanted) <= pair.bound()).all(), vars(pair)


# ---- what is left alone

X, W, B = numbers([2, 4, 5, 6]), numbers([3, 4, 3, 3], 2), numbers([3], 3)


def graph(*, conv=None, w=W, behind=(), dtype=np.float32, opset=19, inputs=(), output=None, changed=(), **resize):
    """A model of x [2, 4, 5, 6], enlarged by 2, and a convolution; `changed` replaces constants."""
    nodes, given = enlarge(resize.pop("factors", [2, 2]), opset=opset, **resize)
    constants = {**given, "w": w, "b": B, **dict(changed)}
    constants = {name: value.astype(dtype) if name in "wb" else value for name, value in constants.items()}
    constants = {name: value for name, value in constants.items() if name not in dict(inputs)}
    return model_of([*nodes, convolve(**(conv or {})), *behind], X.shape, constants, dtype, opset, inputs, output)


def left_alone():
    """Models by what they are, with a part of the reason."""
    node = helper.make_node
    for mode in [(half, rounding) for half in HALF for rounding in ("floor", "ceil")]:
        yield "-".join(mode), graph(mode=mode), "does not repeat each element"
    for mode in [("asymmetric", "ceil"), ("asymmetric", "round_prefer_ceil"), ("align_corners", "floor")]:
        yield "-".join(mode), graph(mode=mode), "does not repeat each element"
    for mode in FACTOR_2:
        yield f"3-{'-'.join(mode)}", graph(mode=mode, factors=[2, 3]), "a factor of 3 it does not repeat"
    yield "linear", graph(kind="linear"), "its mode is linear"
    crop = {"roi": np.float32([0] * 4 + [1] * 4)}
    yield "crop", graph(mode=("tf_crop_and_resize", "floor"), changed=crop, opset=11), "tf_crop_and_resize"
    yield "half", graph(factors=[1.5, 2]), "axis 2 does not grow by an integer factor, but by 1.5"
    yield (
        "smaller",
        graph(factors=[0.5, 2], conv={"pads": [1] * 4}),
        "axis 2 does not grow by an integer factor, but by 0.5",
    )
    yield "nothing", graph(factors=[1, 1]), "it enlarges nothing"
    yield (
        "channels",
        graph(changed={"s": np.float32([1, 2, 2, 2])}, w=numbers([3, 8, 3, 3])),
        "axis 1 does not grow by a",
    )
    yield "batch", graph(changed={"s": np.float32([2, 1, 2, 2])}), "axis 0 does not grow by a factor of 1, but by 2"
    yield "sizes", graph(extents=X.shape, changed={"s": np.int64([2, 4, 11, 12])}), "axis 2 does not grow by an integer"
    yield "policy", graph(extents=X.shape, keep_aspect_ratio_policy="not_larger"), "keep_aspect_ratio_policy"
    yield "computed scales", graph(inputs={"s": [4]}), "its scales are not constants"
    yield "stride", graph(conv={"strides": [2, 1]}), "the convolution has a stride"
    yield "1x1", graph(w=numbers([3, 4, 1, 1])), "its kernel is 1"
    yield "16 for 1", graph(w=numbers([64, 4, 3, 3]), changed={"b": numbers([64])}), "64 output channels for 4 input"
    yield "dilation 2", graph(conv={"dilations": [2, 2]}), "as many multiply-adds"
    yield "dilation 3", graph(conv={"dilations": [3, 3]}), "dilations[0] is 3, but the factor is 2"
    yield "an output", graph(behind=[node("Add", ["y", "y"], ["z"])], output="u"), "is an output of the graph"
    other = [node("Relu", ["u"], ["v"]), node("Conv", ["v", "w"], ["z2"]), node("Add", ["y", "z2"], ["z"])]
    yield "read twice", graph(behind=other), "another node needs it"
    yield "any filter", graph(inputs={"w": [3, 4, "k", "l"]}), "the extents of its filter are unknown"


LEFT = {name: (model, reason) for name, model, reason in left_alone()}


@pytest.mark.parametrize("name", LEFT)
def test_pairs_that_are_left_alone(name):
    model, reason = LEFT[name]
    ours, left = reasons(model, log_severity_level=3)
    counted = Counted()
    feeds = {"x": X, **{"computed scales": {"s": np.float32([1, 1, 2, 2])}, "any filter": {"w": W}}.get(name, {})}
    output, wanted = (one.run(None, feeds)[0] for one in (ours, stock(model)))
    assert len(left) == 1 and reason in left[0], left
    assert counted.computed == 0 and np.array_equal(output, wanted)


def test_sums_of_weights_that_would_take_much_memory():
    """70 MB of 7 kB."""
    model = graph(factors=[300, 300], w=numbers([48, 4, 3, 3]), changed={"b": numbers([48])})
    assert "its sums of weights would take 10134 times as much memory" in reasons(model)[1][0]


# ---- what is fused, and when it does not hold


def compare(model, tolerance=1e-5, layers=1, **feeds):
    """Computed here, in so many layers, as ONNX Runtime does."""
    counted = Counted()
    output, wanted = (
        one.run(None, {"x": X, **feeds})[0] for one in (session(model, log_severity_level=3), stock(model))
    )
    assert output.shape == wanted.shape and output.dtype == wanted.dtype and counted.computed == layers
    np.testing.assert_allclose(output, wanted, rtol=tolerance, atol=tolerance)


def behind(*nodes):
    """Nodes behind y, by operator, further inputs and attributes."""
    made, last = [], "y"
    for i, (operator, inputs, attributes) in enumerate(nodes):
        made.append(helper.make_node(operator, [last, *inputs], [f"y{i}"], **attributes))
        last = f"y{i}"
    return made


SCALE = {"m": numbers([3, 1, 1], 5), **{f"n{i}": numbers([3], 6 + i) ** 2 + 0.5 for i in range(4)}}
FUSED = {
    "relu": behind(("Relu", [], {})),
    "silu": [helper.make_node("Sigmoid", ["y"], ["z0"]), helper.make_node("Mul", ["y", "z0"], ["z"])],
    "normalization": behind(("BatchNormalization", ["n0", "n1", "n2", "n3"], {}), ("LeakyRelu", [], {"alpha": 0.3})),
    "residual": behind(("Mul", ["m"], {}), ("Add", ["r"], {}), ("Tanh", [], {})),
    "concat": behind(("Relu", [], {}), ("Concat", ["r"], {"axis": 1})),
}


@pytest.mark.parametrize("name", FUSED)
def test_nodes_behind(name, tmp_path):
    """All are one node of the provider's."""
    feeds = {"r": numbers([2, 3, 8, 10], 4)} if name in ("residual", "concat") else {}
    model = graph(
        behind=FUSED[name], changed=SCALE, inputs={key: value.shape for key, value in feeds.items()}, opset=20
    )
    compare(model, **feeds)
    ran, _ = operators_that_ran(model, X, tmp_path, **feeds)
    assert [provider for provider, _ in ran] == ["tconv_cl"]


def test_a_sum_that_broadcasts(capfd):
    """The model says that the shapes are the same."""
    made, given = enlarge([2, 2])
    nodes = [*made, convolve(), helper.make_node("Add", ["y", "r"], ["z"])]
    file = onnx.load_from_string(
        model_of(nodes, ["n", 4, 5, 6], {**given, "w": W, "b": B}, inputs={"r": ["n", 3, 8, 10]})
    )
    file.graph.value_info.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3, 8, 10]))
    model, ours = file.SerializeToString(), session(file.SerializeToString())
    for shape, layers in (([2, 3, 8, 10], 1), ([1, 3, 8, 10], 0)):
        counted, feeds = Counted(), {"x": X, "r": numbers(shape, 4)}
        output, wanted = (one.run(None, feeds)[0] for one in (ours, stock(model)))
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
        assert counted.computed == layers
    assert 'Conv "conv" is computed unfused: the tensor that is added' in capfd.readouterr().err


@pytest.mark.parametrize("opset, extents", [(7, None), (13, X.shape)])
def test_shapes_that_the_model_only_claims(opset, extents, capfd):
    """Sizes say a factor only with the extents of the data."""
    made, given = enlarge([2, 2], extents, opset)
    reshape = helper.make_node("Reshape", ["x", "S"], ["h"])
    made[-1].input[0] = "h"
    bias = helper.make_node("Add", ["y", "r"], ["z"])
    constants = {**given, "w": W, "b": B, **({} if extents else {"r": numbers([3, 1, 1], 4)})}
    nodes = [reshape, *made, convolve(), *([] if extents else [bias])]
    file = onnx.load_from_string(model_of(nodes, [2 * 4 * 5 * 6], constants, opset=opset))
    file.graph.input.append(helper.make_tensor_value_info("S", TensorProto.INT64, [4]))
    file.graph.value_info.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, X.shape))
    model = file.SerializeToString()
    ours = session(model)
    for shape in (X.shape, (2, 4, 6, 5), (2, 4, 15, 2)):
        counted, feeds = Counted(), {"x": X.ravel(), "S": np.array(shape)}
        output, wanted = (one.run(None, feeds)[0] for one in (ours, stock(model)))
        assert output.shape == wanted.shape
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
        assert counted.computed == (extents is None or shape == X.shape)
    said = capfd.readouterr().err.count("is computed unfused: the data have another shape than in the model")
    assert said == (extents is not None)


def test_two_layers_of_one_scale():
    made, given = enlarge([2, 2])
    again = [helper.make_node("Resize", ["y", "", "s"], ["u2"]), helper.make_node("Conv", ["u2", "w2"], ["z"])]
    constants = {**given, "w": W, "b": B, "w2": numbers([5, 3, 3, 3], 4)}
    compare(model_of([*made, convolve(), *again], X.shape, constants), layers=2)


def test_a_transposed_convolution_behind():
    nodes, given = enlarge([2, 2])
    nodes += [convolve(), helper.make_node("ConvTranspose", ["y", "w2"], ["z"], strides=[2, 2])]
    compare(model_of(nodes, X.shape, {**given, "w": W, "b": B, "w2": numbers([3, 2, 2, 2], 4)}), layers=2)


@pytest.mark.parametrize("channels, extent, taken", [(16, 16, False), (64, 32, True)])
def test_small_pairs_stay_with_onnx_runtime(channels, extent, taken):
    """By default a pair of 1 million multiply-adds is too small to be taken; one of 67 million is taken."""
    x, w = numbers([1, channels, extent, extent]), numbers([channels, channels, 3, 3], 2)
    nodes, given = enlarge([2, 2])
    model = model_of([*nodes, convolve(pads=[1] * 4)], x.shape, {**given, "w": w, "b": numbers([channels])})
    ours, counted = InferenceSession(model, tconv_cl.onnxruntime.session_options()), Counted()
    ours.run(None, {"x": x})
    assert counted.computed == taken


def test_without_a_fallback():
    """With fallback="error", a pair that cannot be one layer stays ONNX Runtime's, and the session is still made."""

    def strict(model):
        return InferenceSession(model, tconv_cl.onnxruntime.session_options(fallback="error"))

    ours, left = reasons(LEFT["half"][0], strict)
    assert len(left) == 1 and LEFT["half"][1] in left[0]
    counted = Counted()
    for model in (LEFT["half"][0], graph()):
        strict(model).run(None, {"x": X})
    assert counted.computed == 1


def test_the_log_says_why(capfd):
    for level, lines in ((1, 1), (2, 0)):
        session(LEFT["half"][0], log_severity_level=level)
        words = "stays ONNX Runtime's: the node that enlarges its data: axis 2 does not grow by an integer"
        assert capfd.readouterr().err.count(f'tconv_cl: Conv "conv" {words}') == lines


# ---- pixel shuffle


def shuffled(draw, seed, *, opset=13, mode=None, conv=None, after=(), inputs=(), changed=(), **shape):
    """A model of a convolution and a shuffle, its data, and a model of the magnitudes."""
    r, groups = shape.get("r", draw.choice([2, 2, 3, 4])), shape.get("groups", 1)
    inner, outer = groups * draw.randint(1, 6), groups * draw.randint(1, 4)
    kernel = shape.get("kernel", [draw.randint(1, 4) for _ in range(2)])
    x = numbers([2, inner, *(k + draw.randint(0, 4) for k in kernel)], seed)
    w, b = numbers([outer * r * r, inner // groups, *kernel], seed + 1), numbers([outer * r * r], seed + 2)
    attributes = {} if mode is None else {"mode": mode}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["u"], "conv", group=groups, **(conv or {})),
        helper.make_node("DepthToSpace", ["u"], ["y"], blocksize=r, **attributes),
        *after,
    ]

    def model(w, b):
        return model_of(nodes, x.shape, {"w": w, "b": b, **dict(changed)}, np.float32, opset, inputs)

    return model(w, b), x, model(abs(w), abs(b))


@pytest.mark.parametrize("seed", range(max(PAIRS // 2, 1)))
def test_random_shuffles(seed):
    draw = random.Random(seed)
    opset = draw.choice([10, 11, 13])
    mode = draw.choice([None, "CRD", "DCR"]) if opset > 10 else None
    padding = draw.choice([{"pads": [draw.randint(0, 3) for _ in range(4)]}, {"auto_pad": "SAME_LOWER"}, {}])
    groups = draw.choice([1, 2, 3]) if mode == "CRD" else 1
    model, x, magnitudes = shuffled(draw, seed, opset=opset, mode=mode, conv=padding, groups=groups)
    ours, left = reasons(model, log_severity_level=3)
    counted = Counted()
    output, wanted, bound = (
        one.run(None, {"x": data})[0] for one, data in ((ours, x), (stock(model), x), (stock(magnitudes), abs(x)))
    )
    assert left == [] and counted.computed == 1 and output.shape == wanted.shape
    terms = x.shape[1] // groups * 16 + 4
    assert (abs(output - wanted) <= 2 * terms * 2.0**-24 * bound).all()


AFTER_SHUFFLE = {
    "relu": (behind(("Relu", [], {})), ["tconv_cl"]),
    "one number": (behind(("Mul", ["m"], {}), ("Tanh", [], {})), ["tconv_cl"]),
    "one slope": (behind(("PRelu", ["m"], {})), ["tconv_cl"]),
    "residual": (behind(("Add", ["r"], {}), ("Sigmoid", [], {})), ["tconv_cl"]),
    "concat": (behind(("Relu", [], {}), ("Concat", ["r"], {"axis": 1})), ["tconv_cl"]),
    "channels": (behind(("Mul", ["c"], {})), ["tconv_cl", "CPUExecutionProvider"]),
}


@pytest.mark.parametrize("name", AFTER_SHUFFLE)
def test_nodes_behind_a_shuffle(name, tmp_path):
    """What has a number for each channel stays apart: bias and scale are those of the convolution's channels."""
    nodes, providers = AFTER_SHUFFLE[name]
    shape = [2, 2, 10, 10]
    w, b, x = numbers([8, 4, 3, 3], 2), numbers([8], 3), numbers([2, 4, 5, 5])
    made = [
        helper.make_node("Conv", ["x", "w", "b"], ["u"], "conv", pads=[1] * 4),
        helper.make_node("DepthToSpace", ["u"], ["y"], blocksize=2, mode="CRD"),
        *nodes,
    ]
    feeds = {"r": numbers(shape, 4)} if name in ("residual", "concat") else {}
    constants = {"w": w, "b": b, "m": np.float32(0.3), "c": numbers([2, 1, 1], 5)}
    model = model_of(made, x.shape, constants, inputs={key: value.shape for key, value in feeds.items()})
    wanted = stock(model).run(None, {"x": x, **feeds})[0]
    ran, output = operators_that_ran(model, x, tmp_path, **feeds)
    assert [provider for provider, _ in ran] == providers
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "attributes, reason",
    [
        ({"conv": {"strides": [2, 2]}, "kernel": [3, 3]}, "the convolution has a stride"),
        ({"conv": {"dilations": [2, 1], "pads": [2] * 4}, "kernel": [3, 3], "r": 2}, "dilations[0] is 2"),
    ],
    ids=["stride", "dilation"],
)
def test_shuffles_that_are_left_alone(attributes, reason):
    model, x, _ = shuffled(random.Random(1), 1, **attributes)
    ours, left = reasons(model, log_severity_level=3)
    counted = Counted()
    assert np.array_equal(*(one.run(None, {"x": x})[0] for one in (ours, stock(model))))
    assert len(left) == 1 and reason in left[0] and counted.computed == 0, left


def test_enlarged_convolved_and_shuffled():
    """The upsampling is taken, or, where it cannot be, the shuffle."""
    for factor, layers in ((2, 1), (1.5, 1)):
        made, given = enlarge([factor] * 2)
        nodes = [*made, convolve(), helper.make_node("DepthToSpace", ["y"], ["z"], blocksize=2)]
        compare(model_of(nodes, X.shape, {**given, "w": numbers([12, 4, 3, 3], 2), "b": numbers([12])}), layers=layers)
