# SPDX-License-Identifier: Apache-2.0
"""A Concat behind a ConvTranspose, which writes into its part of the output, against ONNX Runtime's own operators.

usage: pytest adapters/onnxruntime        after `pip install ./python`; needs an OpenCL device"""

import numpy as np
import onnx
import onnxruntime
import pytest
import tconv_cl.onnxruntime
from onnx import TensorProto, helper
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from test_provider import (
    Counted,
    all_is_fused,
    conv_transpose,
    model_of,
    operators_that_ran,
    quantized,
    random,
    session,
    stock,
)

node = helper.make_node
OUTPUT = {1: [11], 2: [11, 13], 3: [11, 13, 7]}  # spatial extents of the layer's output, by axes


def joined(parts, axis=1, axes=2, batch=2, between=(), dtype=np.float32, sizes=(5, 2, 4), names=False):
    """A model that concatenates the layer's output "y" and the inputs "s0", "s1" and so on, and its inputs; `between`
    are operators without further inputs."""
    nodes, last = [conv_transpose(strides=[2] * axes)], "y"
    for i, operator in enumerate(between):
        nodes.append(node(operator, [last], [f"y{i}"]))
        last = f"y{i}"
    nodes.append(node("Concat", [last if part == "y" else part for part in parts], ["z"], axis=axis))
    feeds = {"x": random([batch, 4, *[5, 6, 3][:axes]])}
    for part in parts:
        if part != "y":
            feeds[part] = random([batch, sizes[int(part[1:])], *OUTPUT[axes]], 9 + int(part[1:]))
    feeds = {name: array.astype(dtype) for name, array in feeds.items()}
    shapes = {name: array.shape for name, array in feeds.items()}
    if names:  # nothing but ranks and the layer's channels is known
        shapes = {name: [f"{name}{i}" for i in range(axes + 2)] for name in feeds} | {"x": ["n", 4, *"hwd"[:axes]]}
    constants = {"w": random([4, 3, *[3] * axes], 2, dtype)}
    return model_of(nodes, shapes.pop("x"), constants, dtype, 20, shapes), feeds


@pytest.mark.parametrize(
    "parts",
    [["y", "s0"], ["s0", "y"], ["s0", "y", "s1"], ["y", "s0", "s1"], ["s0", "s1", "s2", "y"], ["s0", "y", "s0"], ["y"]],
    ids=str,
)
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("batch", [1, 2])
def test_the_layer_writes_into_its_part(parts, axes, batch, tmp_path):
    model, feeds = joined(parts, axes=axes, batch=batch)
    all_is_fused(model, feeds.pop("x"), tmp_path, **feeds)


@pytest.mark.parametrize("between", [["Relu"], ["Sigmoid"], ["HardSwish"]], ids=str)
@pytest.mark.parametrize("axis", [1, -3])
def test_behind_an_activation(between, axis, tmp_path):
    model, feeds = joined(["s0", "y"], axis, between=between)
    all_is_fused(model, feeds.pop("x"), tmp_path, **feeds)


def test_behind_a_residual(tmp_path):
    """The tensor that is added is dense, the output is not."""
    nodes = [conv_transpose(strides=[2, 2]), node("Add", ["y", "r"], ["a"]), node("Concat", ["a", "s"], ["z"], axis=1)]
    shapes = {"r": [2, 3, 11, 13], "s": [2, 5, 11, 13]}
    model = model_of(nodes, [2, 4, 5, 6], {"w": random([4, 3, 3, 3], 2)}, inputs=shapes)
    all_is_fused(model, random([2, 4, 5, 6]), tmp_path, **{name: random(shape, 7) for name, shape in shapes.items()})


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_types(dtype, tmp_path):
    model, feeds = joined(["s0", "y", "s1"], dtype=dtype)
    ran, output = operators_that_ran(model, feeds["x"], tmp_path, **{name: feeds[name] for name in ("s0", "s1")})
    assert [provider for provider, _ in ran] == ["tconv_cl"]
    wide, _ = joined(["s0", "y", "s1"])
    wanted = stock(wide).run(None, {name: array.astype(np.float32) for name, array in feeds.items()})[0]
    np.testing.assert_allclose(output.astype(np.float64), wanted, rtol=4e-3, atol=4e-3)
    np.testing.assert_array_equal(output[:, :5], feeds["s0"])
    np.testing.assert_array_equal(output[:, 8:], feeds["s1"])


def test_large_parts_are_copied_by_several_threads(tmp_path):
    """In pieces, the last of which is shorter."""
    nodes = [conv_transpose(strides=[2, 2]), node("Concat", ["s", "y", "t"], ["z"], axis=1)]
    shapes = {"s": [3, 7, 201, 203], "t": [3, 1, 201, 203]}
    model = model_of(nodes, [3, 4, 100, 101], {"w": random([4, 3, 3, 3], 2)}, inputs=shapes)
    others = {name: random(shape, 5) for name, shape in shapes.items()}
    all_is_fused(model, random([3, 4, 100, 101]), tmp_path, **others)


def test_a_constant_part(tmp_path):
    nodes = [conv_transpose(strides=[2, 2]), node("Concat", ["s", "y"], ["z"], axis=1)]
    model = model_of(nodes, [2, 4, 5, 6], {"w": random([4, 3, 3, 3], 2), "s": random([2, 1, 11, 13], 3)})
    all_is_fused(model, random([2, 4, 5, 6]), tmp_path)


@pytest.mark.parametrize("options", [{}, {"output": "i8"}], ids=str)
def test_bytes(options, tmp_path):
    """A Concat of the layer's bytes."""
    model, x = quantized(**options)
    file = onnx.load_from_string(model)
    bytes_, *linear = file.graph.node[-1].input
    del file.graph.node[-1]
    file.graph.node.extend(
        [
            node("Concat", ["s", bytes_], ["joined"], axis=1),
            node("DequantizeLinear", ["joined", *linear], ["z"]),
        ]
    )
    kind, element = (TensorProto.INT8, np.int8) if options else (TensorProto.UINT8, np.uint8)
    file.graph.input.append(helper.make_tensor_value_info("s", kind, [2, 1, 13, 11]))
    model = file.SerializeToString()
    s = np.random.default_rng(1).integers(0, 100, [2, 1, 13, 11]).astype(element)
    ran, output = operators_that_ran(model, x, tmp_path, s=s)
    assert "Concat" not in [name for _, name in ran] and "tconv_cl" in [provider for provider, _ in ran]
    np.testing.assert_array_equal(output, stock(model).run(None, {"x": x, "s": s})[0])


def test_extents_that_change(tmp_path):
    """Batch, channels and spatial extents from run to run, with one session."""
    model, feeds = joined(["s0", "y", "s1"], names=True)
    all_is_fused(model, feeds.pop("x"), tmp_path, **feeds)
    ours, own = session(model), stock(model)
    extents = [(1, 3, 4, 6), (3, 6, 5, 1), (1, 3, 4, 2), (2, 3, 4, 6), (2, 5, 6, 0), (0, 5, 6, 2)]
    for batch, height, width, channels in extents:
        counted, skip = Counted(), [batch, channels, 2 * height + 1, 2 * width + 1]
        feeds = {"x": random([batch, 4, height, width]), "s0": random(skip, 2), "s1": random(skip, 3)}
        output, wanted = ours.run(None, feeds)[0], own.run(None, feeds)[0]
        assert counted.computed == 1 and output.shape == wanted.shape
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "skip, sentence",
    [
        ([2, 5, 11, 12], "input 0 of the Concat has extent 12 at axis 3, the output of the layer 13"),
        ([1, 5, 11, 13], "input 0 of the Concat has extent 1 at axis 0, the output of the layer 2"),
    ],
)
def test_parts_of_other_extents_are_refused(skip, sentence):
    model, feeds = joined(["s0", "y"], names=True)
    ours = session(model)
    with pytest.raises(InvalidArgument, match=sentence):
        ours.run(None, {**feeds, "s0": random(skip)})
    np.testing.assert_allclose(ours.run(None, feeds)[0], stock(model).run(None, feeds)[0], rtol=1e-5, atol=1e-5)


def test_two_layers_into_one_concat(tmp_path):
    """One of them writes into its part, the other one's output is copied."""
    nodes = [
        conv_transpose(strides=[2, 2]),
        node("ConvTranspose", ["x", "v"], ["u"], strides=[2, 2]),
        node("Relu", ["u"], ["t"]),
        node("Concat", ["y", "t"], ["z"], axis=1),
    ]
    model = model_of(nodes, [2, 4, 5, 6], {"w": random([4, 3, 3, 3], 2), "v": random([4, 2, 3, 3], 3)})
    x = random([2, 4, 5, 6])
    ran, output = operators_that_ran(model, x, tmp_path)
    assert [provider for provider, _ in ran] == ["tconv_cl"] * 2
    np.testing.assert_allclose(output, stock(model).run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)


def test_a_decoder(tmp_path):
    """Two levels: the next layer reads what was concatenated, and the skip is what the layer reads."""
    nodes = [
        conv_transpose(strides=[2, 2]),
        node("Concat", ["s0", "y"], ["c"], axis=1),
        node("Conv", ["c", "k"], ["d"], pads=[1, 1, 1, 1]),
        node("ConvTranspose", ["d", "v"], ["u"]),
        node("Concat", ["u", "d"], ["z"], axis=1),
    ]
    constants = {"w": random([4, 3, 3, 3], 2), "k": random([6, 5, 3, 3], 3), "v": random([6, 4, 1, 1], 4)}
    model = model_of(nodes, ["n", 4, 5, 6], constants, inputs={"s0": ["n", 2, "h", "w"]})
    feeds = {"x": random([2, 4, 5, 6]), "s0": random([2, 2, 11, 13], 6)}
    ran, output = operators_that_ran(model, feeds["x"], tmp_path, s0=feeds["s0"])
    assert [provider for provider, _ in ran].count("tconv_cl") == 2
    assert "Concat" not in [name for _, name in ran]
    np.testing.assert_allclose(output, stock(model).run(None, feeds)[0], rtol=1e-4, atol=1e-4)


def unfused(nodes, inputs, folder):
    """The layer is computed by the provider, the Concat is not."""
    model = model_of(nodes, [2, 4, 5, 6], {"w": random([4, 3, 3, 3], 2)}, inputs=inputs)
    others, x = {name: random(shape, 7) for name, shape in inputs.items()}, random([2, 4, 5, 6])
    ran, result = operators_that_ran(model, x, folder, **others)
    assert ("CPUExecutionProvider", "Concat") in ran and "tconv_cl" in [provider for provider, _ in ran]
    np.testing.assert_allclose(result, stock(model).run(None, {"x": x, **others})[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "axis, skip", [(0, [1, 3, 11, 13]), (2, [2, 3, 4, 13]), (-1, [2, 3, 11, 1]), (-4, [1, 3, 11, 13])]
)
def test_other_axes(axis, skip, tmp_path):
    unfused([conv_transpose(strides=[2, 2]), node("Concat", ["y", "s"], ["z"], axis=axis)], {"s": skip}, tmp_path)


@pytest.mark.parametrize("parts", [["y", "y"], ["y", "s", "y"]])
def test_the_output_twice(parts, tmp_path):
    unfused(
        [conv_transpose(strides=[2, 2]), node("Concat", parts, ["z"], axis=1)],
        {"s": [2, 1, 11, 13]} if "s" in parts else {},
        tmp_path,
    )


def test_an_output_that_another_node_reads(tmp_path):
    nodes = [
        conv_transpose(strides=[2, 2]),
        node("Concat", ["y", "s"], ["z"], axis=1),
        node("Exp", ["y"], ["e"]),
        node("Concat", ["z", "e"], ["joined"], axis=1),
    ]
    unfused(nodes, {"s": [2, 1, 11, 13]}, tmp_path)


def test_an_output_that_is_the_models():
    model, feeds = joined(["s0", "y"])
    file = onnx.load_from_string(model)
    file.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    model, counted = file.SerializeToString(), Counted()
    outputs = session(model).run(None, feeds)
    assert counted.computed == 1
    for output, wanted in zip(outputs, stock(model).run(None, feeds)):
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)


def test_nine_parts(tmp_path):
    """More than the provider reads."""
    nodes = [conv_transpose(strides=[2, 2]), node("Concat", ["y", *["s"] * 8], ["z"], axis=1)]
    unfused(nodes, {"s": [2, 1, 11, 13]}, tmp_path)


# ---- the option


def test_the_fusion_can_be_turned_off(tmp_path):
    model, feeds = joined(["s0", "y"])
    outputs = []
    for fuse, count in ((True, 1), (False, 2)):
        options = onnxruntime.SessionOptions()
        options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
        tconv_cl.onnxruntime.session_options(options, least_macs=0, fuse_concat=fuse)
        own = onnxruntime.InferenceSession(model, options)
        outputs.append(own.run(None, feeds)[0])
        with open(own.end_profiling(), encoding="utf-8") as file:
            assert file.read().count("_kernel_time") == count
    np.testing.assert_array_equal(*outputs)
