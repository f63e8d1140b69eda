# SPDX-License-Identifier: Apache-2.0
"""A Concat along the channels becomes a part of the operator before it: what is fused, what is not, and the results.

usage: pytest adapters/openvino        with tconv_cl installed as docs/openvino.md says; needs an OpenCL device"""

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from test_extension import (
    EXACT,
    EXTENDED,
    STEP,
    STOCK,
    Counted,
    compiled,
    convert,
    convolution,
    executed,
    in_another_process,
    numbers,
    random,
    ranged,
    reread,
    transposed,
    types,
    weights_of_bytes,
)

OWN, SKIP = 6, 5  # channels
ORDERS = ["own skip", "skip own", "skip own skip", "own skip skip", "skip skip own"]


def up(node, axes, channels=OWN, seed=2, grouped=False):
    """A transposed convolution that doubles extents."""
    inner = node.get_output_partial_shape(0)[1].get_length()
    shape = [2, inner // 2, channels // 2] if grouped else [inner, channels]
    return transposed(node, ops.constant(random([*shape, *[2] * axes], seed)), [2] * axes, grouped=grouped)


def model_of(axes, order, last, batch=2, extents=(7, 6, 5), after=lambda node: node, **options):
    """With `last`, the transposed convolution is between convolutions, so that channels come last."""
    own = extents[:axes]
    x = ops.parameter(ov.PartialShape([batch, 4, *own]), np.float32)
    doubled = [-1 if extent == -1 else 2 * extent for extent in own]
    skip = ops.parameter(ov.PartialShape([batch, SKIP, *doubled]), np.float32)
    before = convolution(x, random([8, 4] + [1] * axes)) if last else ops.sigmoid(x)
    beside = convolution(skip, random([SKIP, SKIP] + [1] * axes, 3)) if last else ops.sigmoid(skip)
    node, count = after(up(before, axes, **options)), order.count("skip")
    skips = [beside, ops.relu(beside)][:count]
    node = ops.concat([node if part == "own" else skips.pop() for part in order.split()], 1)
    node.set_friendly_name("the concatenated one")
    channels = OWN + count * SKIP
    return ov.Model([convolution(node, random([3, channels] + [1] * axes, 4)) if last else ops.tanh(node)], [x, skip])


def inputs_of(model, batch=2, extents=(7, 6, 5)):
    axes = model.input(0).partial_shape.rank.get_length() - 2
    own = extents[:axes]
    return [random([batch, 4, *own], 8), random([batch, SKIP, *(2 * extent for extent in own)], 9)]


def ours(model):
    return [node for node in model.get_ordered_ops() if node.get_type_name() == "TransposedConvolution"]


def fused(model):
    """How many tensors are before and after the output of the only operator."""
    (node,) = ours(model)
    return node.get_attributes()["concat_before"], node.get_attributes()["concat_after"]


def check(model, wanted, data, evaluations=1):
    counted = Counted()
    np.testing.assert_allclose(compiled(model)(data)[0], wanted, rtol=1e-5, atol=1e-5)
    assert counted.evaluations == evaluations and counted.fallbacks == 0


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("last", [True, False])
def test_it_is_fused(last, axes, order, tmp_path):
    model = model_of(axes, order, last)
    data = inputs_of(model)
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1 and "Concat" not in types(model) and ("Transpose" in types(model)) == last
    parts = order.split()
    assert fused(model) == (parts.index("own"), len(parts) - 1 - parts.index("own"))
    assert ours(model)[0].get_friendly_name() == "the concatenated one"
    for changed in (model, reread(model, tmp_path), model.clone()):
        assert fused(changed) == fused(model)
        check(changed, wanted, data)
        assert convert(changed) == 0


@pytest.mark.parametrize("last", [True, False])
def test_tensors_that_several_threads_copy(last):
    """Larger than what one thread copies at a time, and no multiple of it."""
    extents = (61, 53)
    model = model_of(2, "skip own skip", last, extents=extents)
    data = inputs_of(model, extents=extents)
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1 and fused(model) == (1, 1)
    check(model, wanted, data)


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("last", [True, False])
def test_dynamic_shapes(last, axes):
    model = model_of(axes, "skip own", last, batch=-1, extents=(-1, -1, -1))
    stock = STOCK.compile_model(model.clone(), "CPU", EXACT)
    assert convert(model) == 1 and fused(model) == (1, 0)
    request = compiled(model)
    counted = Counted()
    for i in range(5):
        data = inputs_of(model, 1 + i % 3, (3 + i, 5 - i % 2, 4))
        np.testing.assert_allclose(request(data)[0], stock(data)[0], rtol=1e-5, atol=1e-5)
    assert counted.evaluations == 5 and counted.fallbacks == 0
    with pytest.raises(RuntimeError, match="input 2 is .*, but the output is .*: only the channels may differ"):
        request([data[0], data[1][:, :, 1:]])


@pytest.mark.parametrize("last", [True, False])
def test_the_rest_is_fused_before(last):
    def after(node):
        node = ops.add(ops.multiply(node, numbers(OWN, 2, 5)), numbers(OWN, 2, 6))
        node = ops.add(node, ops.constant(random([2, OWN, 14, 12], 7)))
        return ops.prelu(node, numbers(OWN, 0, 3).reshape(OWN))

    model = model_of(2, "skip own skip", last, after=after, grouped=True)
    data = inputs_of(model)
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1 and fused(model) == (1, 1)
    attributes = ours(model)[0].get_attributes()
    assert all(attributes[name] for name in ("scale", "bias", "residual")) and attributes["activation"] == "prelu"
    check(model, wanted, data)


@pytest.mark.parametrize("element", [ov.Type.f16, ov.Type.f64])
def test_other_types(element):
    """In f16 a slice may begin at any even address."""
    x, skip = ops.parameter([2, 4, 3, 5], element), ops.parameter([2, 3, 6, 10], element)
    weights = ops.constant(random([4, OWN, 2, 2]).astype(element.to_dtype()))
    model = ov.Model([ops.concat([skip, transposed(x, weights, [2, 2])], 1)], [x, skip])
    data = [random([2, 4, 3, 5], 1).astype(element.to_dtype()), random([2, 3, 6, 10], 2).astype(element.to_dtype())]
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1 and fused(model) == (1, 0)
    counted = Counted()
    output = compiled(model)(data)[0]
    assert counted.evaluations == 1 and output.dtype == element.to_dtype()
    np.testing.assert_allclose(output.astype(np.float64), wanted.astype(np.float64), rtol=2e-3, atol=2e-3)


def test_a_computed_output_shape_is_the_last_input(tmp_path):
    x, shape = ops.parameter([2, 3, 6, 7], np.float32), ops.parameter([2], np.int64)
    skip = ops.parameter([2, 2, -1, -1], np.float32)

    def model(extents, *parameters):
        node = transposed(x, ops.constant(random([3, 5, 3, 3])), [2, 2], auto_pad="same_upper", output_shape=extents)
        return ov.Model([ops.concat([node, skip], 1)], [x, skip, *parameters])

    changed = model(shape, shape)
    assert convert(changed) == 1 and fused(changed) == (0, 1)
    request = compiled(reread(changed, tmp_path))
    for extents in ([12, 14], [11, 13]):
        data = [random([2, 3, 6, 7]), random([2, 2, *extents], 2)]
        wanted = STOCK.compile_model(model(extents), "CPU", EXACT)(data)[0]
        counted = Counted()
        np.testing.assert_allclose(request([*data, np.array(extents)])[0], wanted, rtol=1e-5, atol=1e-5)
        assert counted.evaluations == 1 and counted.fallbacks == 0


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("small_first", [True, False])
def test_of_two_operators_the_larger_is_fused(small_first, last):
    x = ops.parameter([2, 4, 7, 6], np.float32)
    node = convolution(x, random([8, 4, 1, 1])) if last else ops.sigmoid(x)
    parts = [up(node, 2, 4), up(ops.relu(node), 2, 8, 3)][:: 1 if small_first else -1]
    node = ops.concat(parts, 1)
    model = ov.Model([convolution(node, random([3, 12, 1, 1], 4)) if last else ops.tanh(node)], [x])
    data = random([2, 4, 7, 6], 8)
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 2 and "Concat" not in types(model)
    counts = [(node.get_attributes()["concat_before"], node.get_attributes()["concat_after"]) for node in ours(model)]
    assert sorted(counts) == [(0, 0), (1, 0) if small_first else (0, 1)]
    check(model, wanted, data, evaluations=2)


def test_a_chain_of_them_is_a_decoder():
    """Nothing is reordered or transposed between convolutions, though each skip has another reader."""
    x, skips = ops.parameter([1, 3, 32, 32], np.float32), []
    node = x
    for level in range(3):
        node = ops.relu(convolution(node, random([8 << level, node.get_output_shape(0)[1], 1, 1], level)))
        if level < 2:
            skips.append(node)
            node = ops.avg_pool(node, [2, 2], [0, 0], [0, 0], [2, 2], True)
    for level in (1, 0):
        node = ops.concat([skips[level], up(node, 2, 8 << level, level)], 1)
        node = ops.relu(convolution(node, random([8 << level, 16 << level, 1, 1], level)))
    model, data = ov.Model([node], [x]), random([1, 3, 32, 32])
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 2 and "Concat" not in types(model)
    counted = Counted()
    ran, output = executed(model, data)
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    assert counted.evaluations == 2 and "Transpose" not in ran and "Reorder" not in ran[2:-1], ran


def along(axis):
    def change(node, skip):
        return ops.concat([node, skip], axis)

    return change


def turned(node):
    return ops.transpose(node, np.array([0, 1, 3, 2]))


@pytest.mark.parametrize(
    "join, options",
    [
        (along(0), {}),
        (along(2), {}),
        (along(-1), {}),
        (lambda node, skip: ops.concat([node, node, skip], 1), {}),
        (lambda node, skip: ops.multiply(ops.concat([node, skip], 1), ops.reduce_max(node, np.array([1]), True)), {}),
        (lambda node, skip: ops.concat([turned(node), turned(skip)], 1), {}),
        (lambda node, skip: ops.concat([node, skip], 1), {"fuse_concat": False}),
    ],
    ids=["batch", "rows", "columns", "twice", "two readers", "transposed", "off"],
)
@pytest.mark.parametrize("last", [True, False])
def test_what_is_not_fused(last, join, options):
    x, skip = ops.parameter([2, 8, 7, 6], np.float32), ops.parameter([2, OWN, 14, 12], np.float32)
    node = join(up(convolution(x, random([8, 8, 1, 1])) if last else ops.sigmoid(x), 2), skip)
    if last:
        node = convolution(node, random([3, node.get_output_shape(0)[1], 1, 1]))
    model, data = ov.Model([node], [x, skip]), [random([2, 8, 7, 6]), random([2, OWN, 14, 12], 2)]
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model, **options) == 1 and "Concat" in types(model) and fused(model) == (0, 0)
    check(model, wanted, data)


def test_another_transpose_is_not_fused():
    """As passes of OpenVINO may merge two of them."""
    model = model_of(2, "own skip", True, extents=(7, 7))
    assert convert(model, fuse_concat=False) == 1
    (order,) = (target.get_node().input(1) for target in ours(model)[0].output(0).get_target_inputs())
    order.replace_source_output(ops.constant(np.array([0, 3, 2, 1])).output(0))
    data = inputs_of(model, extents=(7, 7))
    wanted = compiled(model.clone())(data)[0]
    convert(model)
    assert fused(model) == (0, 0) and "Concat" in types(model)
    check(model, wanted, data)


def test_plain_tensors_of_one_image_are_not_fused():
    """OpenVINO's plugin has each of them computed where it belongs."""
    model = model_of(2, "own skip", False, batch=1)
    data = inputs_of(model, 1)
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1 and fused(model) == (0, 0)
    ran, output = executed(model, data)
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
    assert "Concat" not in ran


@pytest.mark.parametrize("rank", [None, 4])
def test_an_unknown_rank_is_not_fused(rank):
    parameters = [ops.parameter(ov.PartialShape.dynamic(), np.float32) for _ in range(3)]
    if rank is not None:
        parameters[1] = ops.parameter(ov.PartialShape([-1] * rank), np.float32)
    model = ov.Model([ops.concat([transposed(*parameters[:2], [2, 2]), parameters[2]], 1)], parameters)
    assert convert(model) == 1 and fused(model) == (0, 0) and "Concat" in types(model)


def test_levels_behind_it_are_not_fused():
    """Integers are computed only if a FakeQuantize reads the operator itself, not the concatenated tensor."""
    x, skip = ops.parameter([2, 6, 7, 6], np.float32), ops.parameter([2, 3, 14, 12], np.float32)
    node = transposed(ranged(x, 0, 255 * STEP), weights_of_bytes([6, OWN, 2, 2], False, "levels"), [2, 2])
    model = ov.Model([ranged(ops.concat([node, skip], 1), -100 * STEP, 155 * STEP)], [x, skip])
    data = [random([2, 6, 7, 6]), random([2, 3, 14, 12], 2)]
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1 and convert(model) == 0
    assert fused(model) == (0, 1) and not ours(model)[0].get_attributes()["requantize"]
    np.testing.assert_allclose(compiled(model)(data)[0], wanted, atol=1.01 * STEP)


@pytest.mark.parametrize("last", [True, False])
def test_it_falls_back(last, tmp_path):
    """OpenVINO's own operators compute it, if kernels cannot be compiled."""
    model = model_of(2, "skip own skip", last)
    data = inputs_of(model)
    skip = model.get_parameters()[1]
    skip.output(0).replace(ops.constant(data[1]).output(0))
    model.remove_parameter(skip)
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data[0])[0]
    assert convert(model) == 1 and fused(model) == (1, 1)
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    (tmp_path / "kernels").mkdir()
    environment = {"TCONV_CL_KERNEL_DIR": str(tmp_path / "kernels")}
    _, log, output = in_another_process(tmp_path / "model.xml", data[0], tmp_path, **environment)
    assert "OpenVINO's own operator computes the concatenated one" in log
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "number, sentence",
    [
        ("-1", "cannot concatenate -1 of"),
        ("99", "cannot concatenate 99 of"),
        ("3", "takes 6 inputs and output_shape, not 4"),
    ],
)
def test_wrong_numbers_in_a_file_are_refused(number, sentence, tmp_path):
    model = model_of(2, "skip own skip", False)
    assert convert(model) == 1
    reread(model, tmp_path)
    path = tmp_path / "model.xml"
    text = path.read_text()
    assert text.count('concat_before="1"') == 1
    path.write_text(text.replace('concat_before="1"', f'concat_before="{number}"'))
    with pytest.raises(RuntimeError, match=sentence):
        EXTENDED.read_model(path)


def test_other_extents_are_refused():
    model = model_of(2, "own skip", False)
    assert convert(model) == 1 and fused(model) == (0, 1)
    with pytest.raises(RuntimeError, match="input 2 is .*, but the output is .*: only the channels may differ"):
        model.reshape({0: [2, 4, 7, 6], 1: [2, SKIP, 14, 13]})
    model.reshape({0: [2, 4, 7, 6], 1: [2, SKIP + 1, 14, 12]})
    assert model.output(0).shape == ov.Shape([2, OWN + SKIP + 1, 14, 12])


def test_without_a_plugin():
    """Model.evaluate takes tensors of any shape."""
    model = model_of(2, "skip own", False, batch=-1, extents=(-1, -1))
    data = inputs_of(model)
    wanted = STOCK.compile_model(model.clone(), "CPU", EXACT)(data)[0]
    assert convert(model) == 1
    output, counted = ov.Tensor(np.zeros(wanted.shape, np.float32)), Counted()
    assert model.evaluate([output], [ov.Tensor(array) for array in data])
    np.testing.assert_allclose(output.data, wanted, rtol=1e-5, atol=1e-5)
    assert counted.evaluations == 1
    with pytest.raises(RuntimeError, match="tensor 0 is .*, but the output is .*: only the channels may differ"):
        model.evaluate([output], [ov.Tensor(data[0]), ov.Tensor(np.ascontiguousarray(data[1][:, :, 1:]))])
