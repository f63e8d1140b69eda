# SPDX-License-Identifier: Apache-2.0
"""python -m tconv_cl.fold_onnx: ONNX Runtime's own operators compute the model before and after; and pairs that stay,
with the reason that the provider has.

usage: pytest adapters/onnxruntime/test_fold_onnx.py        after `pip install ./python`; needs no device

TCONV_CL_TEST_PAIRS: how many random pairs of each kind are compared."""

import os
import random
import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
import onnx.inliner
import pytest
from onnx import TensorProto, helper, numpy_helper
from tconv_cl import fold_onnx
from tconv_cl._onnx.weights import rounded
from test_provider import model_of, stock
from test_upsampling import COUNT, LEFT, UPSAMPLE, UPSAMPLE_LEFT, B, W, X, check_outputs, convolve, enlarge, graph
from test_upsampling import numbers, pair_model, random_pair, shuffled


def valid(model):
    """With shapes of the outputs, which onnx.checker wants."""
    loaded = onnx.shape_inference.infer_shapes(onnx.load_from_string(model))
    loaded.graph.ClearField("value_info")
    return loaded


def folded(model, **options):
    """The model of the function, checked, and its pairs."""
    loaded = valid(model)
    pairs = fold_onnx.fold(loaded, **options)
    onnx.checker.check_model(loaded, full_check=True)
    return loaded, pairs


def check_that_it_stays(model, reason, **options):
    loaded = onnx.load_from_string(model)
    pairs = fold_onnx.fold(loaded, **options)
    assert len(pairs) == 1 and reason in pairs[0].reason, pairs
    assert loaded.SerializeToString() == onnx.load_from_string(model).SerializeToString()


def operators(model):
    return [node.op_type for node in model.graph.node]


def both(model, feeds, **options):
    """Outputs before and after, and the changed model and its pairs."""
    changed, pairs = folded(model, **options)
    wanted, output = (stock(one).run(None, feeds)[0] for one in (model, changed.SerializeToString()))
    assert output.shape == wanted.shape and output.dtype == wanted.dtype
    return output, wanted, changed, pairs


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_pairs(seed):
    pair = random_pair(seed, {UPSAMPLE: UPSAMPLE_LEFT})
    spans = [d * (k - 1) for d, k in zip(pair.dilations, pair.kernel)]
    # a ConvTranspose has no negative pads
    pair.begin, pair.end = ([min(*two) for two in zip(pads, spans)] for pads in (pair.begin, pair.end))
    model, feeds = pair_model(pair)
    changed, pairs = folded(model)
    reason = UPSAMPLE_LEFT.get(pair.obstacle)
    assert len(pairs) == (pair.obstacle != "between") and (reason or "") in "".join(one.reason for one in pairs), pair
    assert ("ConvTranspose" in operators(changed)) == (pair.obstacle == "")
    if not pair.obstacle:
        assert "Conv" not in operators(changed) and len(changed.graph.initializer) == 1 + pair.bias
    outputs, wanted = (stock(one).run(None, feeds) for one in (changed.SerializeToString(), model))
    check_outputs(pair, outputs, wanted)


@pytest.mark.parametrize("opset", range(7, 22))
def test_operator_sets(opset):
    mode = ("asymmetric", "floor")
    made, given = enlarge([2, 3], opset=opset, mode=mode)
    constants = {**given, "w": W, "b": B}
    model = onnx.load_from_string(model_of([*made, convolve(pads=[1, 0, 2, 1])], ["n", 4, "h", "w0"], constants))
    model.opset_import[0].version = opset
    for shape in ((2, 4, 5, 6), (1, 4, 3, 9)):
        output, wanted, changed, pairs = both(model.SerializeToString(), {"x": numbers(shape)})
        assert operators(changed) == ["ConvTranspose"] and pairs[0].macs_of_output == (9, 10 / 3)
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LEFT)
def test_pairs_that_stay(name):
    """For the reasons of the provider, and bit by bit."""
    model, reason = LEFT[name]
    check_that_it_stays(model, "its filter is an input of the graph" if name == "any filter" else reason)


def conv_of(**attributes):
    return graph(conv=attributes)


def branch_of(name):
    """A branch that reads a value of the graph around it."""
    node, output = helper.make_node("ReduceSum", [name], ["r"], keepdims=0), ("r", TensorProto.FLOAT, [])
    return helper.make_graph([node], "branch", [], [helper.make_tensor_value_info(*output)])


def left_besides():
    """Models that stay for reasons that only a ConvTranspose or a file has, with a part of the reason."""
    yield "large pads", conv_of(pads=[3, 1, 1, 1]), "pads[0] is 3: a ConvTranspose takes 0 to 2"
    yield "negative pads", conv_of(pads=[1, 1, 1, -1]), "pads[3] is -1"
    yield "a range", graph(w=W * 6e4, dtype=np.float16), "a sum of its weights leaves the range of float16"
    made, given = enlarge([2, 2])
    model = onnx.load_from_string(model_of([*made, convolve()], X.shape, {**given, "w": W, "b": B}))
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, W.shape))
    yield "a default", model.SerializeToString(), "its filter is an input of the graph, not a constant"
    made, given = enlarge([2, 2], X.shape)
    model = model_of([*made, convolve()], [2, 4, "h", 6], {**given, "w": W, "b": B})
    yield "an extent", model, "the data's extent at axis 2 is not known"
    made[-1].input[0] = "h"  # what is only claimed
    reshape = helper.make_node("Reshape", ["x", "S"], ["h"])
    model = onnx.load_from_string(model_of([reshape, *made, convolve()], [240], {**given, "w": W, "b": B}))
    model.graph.input.append(helper.make_tensor_value_info("S", TensorProto.INT64, [4]))
    model.graph.value_info.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, X.shape))
    yield "a claim", model.SerializeToString(), "is not known"
    model.graph.output.append(model.graph.value_info.pop())
    yield "a claim of an output", model.SerializeToString(), "is not known"
    made, given = enlarge([2, 2])
    other = [helper.make_node("If", ["c"], ["i"], then_branch=branch_of("u"), else_branch=branch_of("u"))]
    other.append(helper.make_node("Add", ["y", "i"], ["z"]))
    constants = {**given, "w": W, "b": B, "c": np.array(True)}
    yield "a subgraph", model_of([*made, convolve(), *other], X.shape, constants), "another node needs it"


ALSO_LEFT = {name: (model, reason) for name, model, reason in left_besides()}


@pytest.mark.parametrize("name", ALSO_LEFT)
def test_pairs_that_no_convtranspose_is(name):
    check_that_it_stays(*ALSO_LEFT[name])


# ---- pixel shuffle


@pytest.mark.parametrize("seed", range(COUNT // 2))
def test_random_shuffles(seed):
    """Without a bias, with one for each channel, and with one for each phase, which becomes an Add."""
    draw = random.Random(seed)
    opset, kind = draw.choice([7, 10, 11, 13, 21]), ("none", "channels", "phases")[seed % 3]
    mode = draw.choice([None, "CRD", "DCR"]) if opset > 10 else None
    kernel, r = [draw.randint(1, 4) for _ in range(2)], draw.choice([2, 3, 4])
    padding = draw.choice([{"pads": [draw.randint(0, k - 1) for k in kernel * 2]}, {"auto_pad": "SAME_LOWER"}, {}])
    groups = draw.choice([1, 2, 3]) if mode == "CRD" else 1
    made, x, magnitudes = shuffled(draw, seed, opset=opset, mode=mode, conv=padding, groups=groups, kernel=kernel, r=r)
    model = onnx.load_from_string(made)
    if kind == "none":
        del model.graph.node[0].input[2], model.graph.initializer[1]
    elif kind == "channels":
        bias = numpy_helper.to_array(model.graph.initializer[1])
        each = np.repeat(bias[:: r * r], r * r) if mode == "CRD" else np.tile(bias[: bias.size // r**2], r * r)
        model.graph.initializer[1].CopyFrom(numpy_helper.from_array(each, "b"))
    output, wanted, changed, pairs = both(model.SerializeToString(), {"x": x}, add_bias=True)
    assert [pair.reason for pair in pairs] == [""]
    assert operators(changed) == ["ConvTranspose"] + ["Add"] * (kind == "phases")
    bound = stock(magnitudes).run(None, {"x": abs(x)})[0] + 2
    assert (abs(output - wanted) <= 2 * (x.shape[1] * 16 + 4) * 2.0**-24 * bound).all()
    assert pairs[0].macs[0] == pairs[0].macs[1]


SHUFFLES = {
    "bias": ("--add-bias makes an Add", {}, {}),
    "extents": ("extents are not known", {"shape": [None] * 4}, {"add_bias": True}),
    "unwanted": ("--no-shuffle", {}, {"shuffle": False}),
    "stride": ("the convolution has a stride", {"conv": {"strides": [2, 2]}}, {}),
    "dilation": ("dilations[0] is 2", {"conv": {"dilations": [2, 1], "pads": [2] * 4}}, {}),
    "pads": ("pads[3] is 3", {"conv": {"pads": [0, 0, 0, 3]}}, {}),
    "groups": ("mode DCR", {"groups": 2, "mode": "DCR"}, {}),
    "twice": ("another node needs it", {"after": [helper.make_node("Relu", ["u"], ["z"])]}, {}),
}


@pytest.mark.parametrize("name", SHUFFLES)
def test_shuffles_that_stay(name):
    reason, given, options = SHUFFLES[name]
    shape = given.pop("shape", None)
    model = onnx.load_from_string(shuffled(random.Random(1), 1, kernel=[3, 3], r=2, **given)[0])
    if shape is not None:
        model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
    check_that_it_stays(model.SerializeToString(), reason, **options)


# ---- whole models


def test_weights_of_one_rounding():
    """Also those of bfloat16, which NumPy converts by way of float32."""
    ties = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40, 1 + 2.0**-8, -1 - 3 * 2.0**-8, 1e39, 3.4e38])
    wanted = [1 + 2.0**-7, 1, 1, -1 - 2.0**-6, np.inf, np.inf]
    assert rounded(ties, np.dtype(ml_dtypes.bfloat16)).astype(np.float64).tolist() == wanted
    assert rounded(np.array([1 + 2.0**-11 + 2.0**-40, 7e4]), np.dtype(np.float16)).tolist() == [1 + 2.0**-10, np.inf]


def test_multiply_adds():
    """Those whose tap is on the data: with pads of 1 and 5 x 6 inputs, not all."""
    pairs = folded(graph(conv={"pads": [1] * 4}))[1]
    assert pairs[0].macs == ((3 * 10 - 2) * (3 * 12 - 2) * 12, (4 * 5 - 2) * (4 * 6 - 2) * 12)


def test_one_filter_of_two_pairs():
    made, given = enlarge([2, 2])
    again = [helper.make_node("Resize", ["y", "", "s"], ["u2"]), helper.make_node("Conv", ["u2", "w"], ["z"])]
    w = numbers([4, 4, 3, 3])
    model = model_of([*made, convolve(), *again], X.shape, {**given, "w": w, "b": numbers([4])})
    output, wanted, changed, pairs = both(model, {"x": X})
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
    # the first is asymmetric and floor, the second half_pixel and round_prefer_floor
    assert len(pairs) == 2 and [tensor.name for tensor in changed.graph.initializer] == ["b", "w_upsample"]


def test_constants_that_are_computed():
    """Sizes by Shape, Slice and Concat, as exporters write them, and weights behind Identity and Cast."""
    node, made = helper.make_node, enlarge([2, 2], X.shape)[0]
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Slice", ["shape", "zero", "two"], ["front"]),
        node("Concat", ["front", "last"], ["s"], axis=0),
        node("Cast", ["half"], ["w1"], to=TensorProto.FLOAT),
        node("Identity", ["w1"], ["w"]),
        *made,
        convolve(),
    ]
    numbers_of = {"zero": np.int64([0]), "two": np.int64([2]), "last": np.int64([10, 12])}
    model = model_of(nodes, X.shape, {**numbers_of, "half": W.astype(np.float16), "b": B})
    output, wanted, changed, _ = both(model, {"x": X})
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
    assert operators(changed) == ["ConvTranspose"] and len(changed.graph.initializer) == 2


def test_what_others_read_stays():
    """A scale that two nodes read, and a filter that a subgraph reads."""
    made, given = enlarge([2, 2])
    nodes = [
        *made,
        convolve(),
        helper.make_node("Resize", ["y", "", "s"], ["v"]),
        helper.make_node("If", ["c"], ["i"], then_branch=branch_of("w"), else_branch=branch_of("w")),
        helper.make_node("Add", ["v", "i"], ["z"]),
    ]
    model = model_of(nodes, X.shape, {**given, "w": W, "b": B, "c": np.array(True)})
    output, wanted, changed, _ = both(model, {"x": X})
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
    assert {tensor.name for tensor in changed.graph.initializer} == {"s", "w", "b", "c", "w_upsample"}


def test_a_pair_in_a_subgraph():
    made, given = enlarge([2, 2])
    branch = helper.make_graph([*made, convolve()], "then", [], [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    ])  # fmt: skip
    nodes = [helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch)]
    model = model_of(nodes, X.shape, {**given, "w": W, "b": B, "c": np.array(True)})
    output, wanted, changed, pairs = both(model, {"x": X})
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
    assert [pair.reason for pair in pairs] == ["", ""]
    assert {tensor.name for tensor in changed.graph.initializer} >= {"b", "c"} - {"s", "w"}
    assert "w" not in {tensor.name for tensor in changed.graph.initializer}


def test_a_function_of_the_model():
    made, given = enlarge([2, 2])
    constants = [helper.make_node("Constant", [], [k], value=numpy_helper.from_array(v, k)) for k, v in given.items()]
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "up", ["x", "w", "b"], ["y"], [*constants, *made, convolve()], imports)
    call = helper.make_node("up", ["x", "w", "b"], ["y"], domain="own")
    model = onnx.load_from_string(model_of([call], X.shape, {"w": W, "b": B}))
    model.functions.append(function)
    model.opset_import.append(imports[1])
    check_that_it_stays(model.SerializeToString(), "they are in the function up: ")
    inlined = onnx.inliner.inline_local_functions(model)
    assert [pair.reason for pair in fold_onnx.fold(inlined)] == [""] and operators(inlined) == ["ConvTranspose"]


def test_inputs_of_old_files():
    """Before version 4 of the format, constants are inputs, too."""
    made, given = enlarge([2, 2], opset=7)
    model = onnx.load_from_string(model_of([*made, convolve()], X.shape, {**given, "w": W, "b": B}, opset=7))
    model.ir_version = 3
    for tensor in model.graph.initializer:
        model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    output, wanted, changed, _ = both(model.SerializeToString(), {"x": X})
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
    assert [value.name for value in changed.graph.input] == ["x", "b", "w_upsample"]


# ---- the command

MODEL = valid(graph(conv={"pads": [1] * 4})).SerializeToString()


def command(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "tconv_cl.fold_onnx", *map(str, arguments)], capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


def test_the_command(tmp_path):
    before, after = tmp_path / "in.onnx", tmp_path / "out.onnx"
    before.write_bytes(MODEL)
    status, out, err = command(before, after)
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        'Conv "conv" and the Resize before it are one ConvTranspose; 9 -> 4 multiply-adds for each output and input '
        "channel",
        "1 of 1 pairs are one ConvTranspose now; multiply-adds of one image: 11,424 before, 4,752 after",
    ]
    assert before.read_bytes() == MODEL and operators(onnx.load(after)) == ["ConvTranspose"]
    before.write_bytes(valid(LEFT["half"][0]).SerializeToString())
    assert fold_onnx.main([str(before), str(after)]) == 0 and operators(onnx.load(after)) == ["Resize", "Conv"]
    assert sorted(os.listdir(tmp_path)) == ["in.onnx", "out.onnx"]


def test_what_fails(tmp_path, capsys):
    model, broken, output = (tmp_path / name for name in ("in.onnx", "broken.onnx", "out.onnx"))
    model.write_bytes(MODEL)
    broken.write_bytes(MODEL[:-100])
    (tmp_path / "link.onnx").symlink_to(model)

    def fails(*arguments):
        status = fold_onnx.main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("tconv_cl.fold_onnx: ") and err.count("\n") == 1
        return status, err

    assert fails(tmp_path / "none.onnx", output) == (
        1,
        f"tconv_cl.fold_onnx: {tmp_path / 'none.onnx'} cannot be read: No such file or directory\n",
    )
    assert fails(broken, output)[0] == 1
    assert fails(model, tmp_path / "none" / "out.onnx")[0] == 1
    for written in (model, tmp_path / "link.onnx", tmp_path):
        status, sentence = fails(model, written)
        assert status == 2 and "OUT is" in sentence
    with pytest.raises(SystemExit) as usage:
        fold_onnx.main([str(model)])
    assert usage.value.code == 2 and model.read_bytes() == MODEL
    assert sorted(os.listdir(tmp_path)) == ["broken.onnx", "in.onnx", "link.onnx"]


def test_without_the_package_onnx():
    program = (
        "import runpy, sys; sys.modules['onnx'] = None; runpy.run_module('tconv_cl.fold_onnx', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1 and "needs the package onnx" in done.stderr and done.stderr.count("\n") == 1


def test_an_output_that_is_not_valid(tmp_path, monkeypatch, capsys):
    """The earlier file stays."""
    before, after = tmp_path / "in.onnx", tmp_path / "out.onnx"
    before.write_bytes(MODEL)
    after.write_bytes(b"earlier")
    monkeypatch.setattr(fold_onnx, "fold", lambda model, **options: model.graph.ClearField("name") or [])
    assert fold_onnx.main([str(before), str(after)]) == 1 and "is not written" in capsys.readouterr().err
    assert after.read_bytes() == b"earlier" and len(os.listdir(tmp_path)) == 2


def test_external_data(tmp_path, monkeypatch, capsys):
    """Read from beside the model, and written there above a limit; that of the input is never replaced."""
    before, after = tmp_path / "in.onnx", tmp_path / "out.onnx"
    model = valid(graph(w=numbers([30, 4, 3, 3]), changed={"b": numbers([30])}))
    wanted = stock(model.SerializeToString()).run(None, {"x": X})[0]
    onnx.save(model, before, save_as_external_data=True, location="weights", size_threshold=0)
    kept = [path.read_bytes() for path in (before, tmp_path / "weights")]
    for limit in (1 << 20, 0):
        monkeypatch.setattr(fold_onnx, "MOST_INLINE", limit)
        for _ in range(2):
            assert fold_onnx.main([str(before), str(after)]) == 0
        np.testing.assert_allclose(stock(str(after)).run(None, {"x": X})[0], wanted, rtol=1e-5, atol=1e-5)
        assert (tmp_path / "out.onnx.data").exists() == (limit == 0)
    assert kept == [path.read_bytes() for path in (before, tmp_path / "weights")]
    assert fold_onnx.main([str(before), str(tmp_path / "weights")]) == 2
    (tmp_path / "weights").unlink()
    assert fold_onnx.main([str(before), str(after)]) == 1
    assert "weights" in capsys.readouterr().err
