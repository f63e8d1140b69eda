# SPDX-License-Identifier: Apache-2.0
"""Nearest upsampling and the convolution behind it, and a convolution and the pixel shuffle behind it, each pair as one
layer, against ONNX Runtime's own two operators; and pairs that are left alone, with the reason.

usage: pytest adapters/onnxruntime        after `pip install ./python`; needs an OpenCL device

TCONV_CL_TEST_PAIRS: how many random pairs are compared."""

import random
import sys

import numpy as np
import onnx
import pytest
import tconv_cl.onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession
from test_provider import ROOT, Counted, model_of, operators_that_ran, session, stock
from test_provider import random as numbers

sys.path.append(str(ROOT / "python" / "tests"))

from random_pairs import COUNT, SHUFFLE, SHUFFLE_DCR, UPSAMPLE, drawn  # noqa: E402

HALF = ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
NEAREST = ("round_prefer_floor", "round_prefer_ceil")
ANY_FACTOR = [(half, rounding) for half in HALF for rounding in NEAREST] + [("asymmetric", "floor")]
FACTOR_2 = [("asymmetric", "round_prefer_floor")] + [("align_corners", rounding) for rounding in NEAREST]


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


# What stays two nodes, and a part of the reason; None: nothing says that it might be a pair.
UPSAMPLE_LEFT = {
    "linear": "its mode is linear",
    "mode": "does not repeat each element",
    "fraction": "integer factor",
    "no factor": "it enlarges nothing",
    "computed": "are not constants",
    "stride": "the convolution has a stride",
    "dilation": "but the factor is",
    "kernel 1": "its kernel is 1",
    "two readers": "another node needs it",
    "an output": "is an output of the graph",
    "between": None,
}
SHUFFLE_LEFT = {"stride": "the convolution has a stride", "dilation": "dilations[", "two readers": None}
OBSTACLES = {
    UPSAMPLE: UPSAMPLE_LEFT,
    SHUFFLE: SHUFFLE_LEFT,
    SHUFFLE_DCR: {**SHUFFLE_LEFT, "groups of DCR": "groups"},
}
AUTO_PADS = {"explicit": "NOTSET", "same_upper": "SAME_UPPER", "same_lower": "SAME_LOWER", "valid": "VALID"}


def random_pair(seed, obstacles=OBSTACLES):
    return drawn(
        seed,
        obstacles,
        types=("float32", "float32", "float16"),
        auto_pads=("explicit", *AUTO_PADS),
    )


def pair_model(pair, magnitudes=False):
    """The nodes of a pair, with modes, versions and lists of axes drawn besides."""
    draw, dtype = random.Random(pair.seed), np.dtype(pair.type).type
    old = dtype is np.float32 and pair.obstacle not in ("linear", "mode")
    opset = draw.choice([7, 9, 10, 11, 13, 18, 19, 20] if old and not pair.by_sizes else [13, 18, 19])
    if pair.obstacle == "computed" and opset < 9:
        opset = 9
    constants = {"w": pair.weights(), **({"b": pair.biases()} if pair.bias else {})}
    constants = {name: (abs(value) if magnitudes else value).astype(dtype) for name, value in constants.items()}
    pads = {"pads": pair.begin + pair.end} if pair.auto_pad == "explicit" else {"auto_pad": AUTO_PADS[pair.auto_pad]}
    conv = convolve(group=pair.groups, dilations=pair.dilations, strides=pair.strides, **pads)
    if not pair.bias:
        del conv.input[2]
    inputs, nodes = {}, [conv]
    if pair.form == UPSAMPLE:
        modes = [
            mode
            for mode in ANY_FACTOR + (FACTOR_2 if max(pair.factors) == 2 else [])
            if opset >= 19 or "sym" not in mode[0]
        ]
        modes += [("tf_half_pixel_for_nn", "floor")] if opset in (11, 12) else []
        mode = ("half_pixel", "floor") if pair.obstacle == "mode" else draw.choice([*modes, None])
        axes = list(range(2, 2 + pair.axes)) if opset >= 18 and draw.random() < 0.5 else None
        if axes is not None and draw.random() < 0.5:
            axes = [axis - 2 - pair.axes for axis in axes]
        shape, kind = (pair.batch, pair.inner, *pair.extents), "linear" if pair.obstacle == "linear" else None
        as_node = draw.random() < 0.5 and pair.obstacle != "computed"
        made, given = enlarge(
            pair.factors, shape if pair.by_sizes else None, opset, mode, axes, kind=kind, as_node=as_node
        )
        if pair.obstacle == "computed":
            inputs["s"] = given.pop("s")
        if pair.obstacle == "between":
            made.append(helper.make_node("Relu", ["u"], ["between"]))
            conv.input[0] = "between"
        nodes, last, inside = [*made, conv], "y", "u"
        constants.update(given)
    else:
        opset = 13 if opset < 11 and pair.form == SHUFFLE else opset
        conv.input[0], conv.output[0] = "x", "c"
        mode = (
            {}
            if pair.form == SHUFFLE_DCR and draw.random() < 0.5
            else {"mode": "DCR" if pair.form == SHUFFLE_DCR else "CRD"}
        )
        nodes = [
            conv,
            helper.make_node("DepthToSpace", ["c"], ["y"], blocksize=pair.factors[0], **({} if opset < 11 else mode)),
        ]
        last, inside = "y", "c"
    if pair.behind:
        nodes.append(helper.make_node("Relu", ["y"], ["r"]))
        last = "r"
    outputs = [last, *(["y"] if pair.behind == "twice" else [])]
    if pair.obstacle == "two readers":
        nodes.append(helper.make_node("Abs", [inside], ["other"]))
        outputs.append("other")
    elif pair.obstacle == "an output":
        outputs.append(inside)
    value, kind = helper.make_tensor_value_info, helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shape = ["n", pair.inner, *"hwd"[: pair.axes]] if pair.dynamic else [pair.batch, pair.inner, *pair.extents]
    wanted = [value("x", kind, shape)]
    for name, array in inputs.items():
        wanted.append(value(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
    graph = helper.make_graph(
        nodes, "graph", wanted, [value(name, kind, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    data = pair.data().astype(dtype)
    return model.SerializeToString(), {"x": abs(data) if magnitudes else data, **inputs}


def check_outputs(pair, outputs, wanted):
    """The same bits if nothing was taken."""
    model, feeds = pair_model(pair, magnitudes=True)
    for output, one, magnitude in zip(outputs, wanted, stock(model).run(None, feeds)):
        assert output.shape == one.shape and output.dtype == one.dtype
        limit = 0 if pair.obstacle else pair.bound(magnitude)
        assert (abs(output.astype(np.float64) - one) <= limit).all(), pair


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_pairs(seed):
    pair = random_pair(seed)
    model, feeds = pair_model(pair)
    ours, left = reasons(model, log_severity_level=3)
    counted = Counted()
    outputs, wanted = (one.run(None, feeds) for one in (ours, stock(model)))
    reason = OBSTACLES[pair.form].get(pair.obstacle)
    assert counted.computed == (pair.obstacle == "") and len(set(left)) == (reason is not None), (left, pair)
    assert reason is None or reason in left[0], (left, pair)
    check_outputs(pair, outputs, wanted)


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
    both, given = enlarge([2, 2])
    both += [node("Concat", ["u", "t"], ["c"], axis=1), node("Conv", ["c", "w"], ["y"], "conv")]
    constants = {**given, "t": numbers([2, 4, 10, 12], 5), "w": numbers([3, 8, 3, 3], 2)}
    yield "concatenated", model_of(both, X.shape, constants), "a Concat is between it and what"
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
