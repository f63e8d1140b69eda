# SPDX-License-Identifier: Apache-2.0
"""Wrong requests, wrong options and data without elements: what raises, and what OpenVINO's own operator computes.

usage: pytest adapters/openvino        with tconv_cl installed as docs/openvino.md says; needs an OpenCL device"""

import subprocess
import sys

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import tconv_cl
from test_extension import (
    EXACT,
    STEP,
    STOCK,
    VECTORS,
    Counted,
    compiled,
    convert,
    convolution,
    has_bytes,
    in_another_process,
    numbers,
    random,
    ranged,
    reread,
    transposed,
    types,
    weights_of_bytes,
)

# ---- extents of 0

EMPTY = [(1, 4, 0, 5), (2, 4, 6, 0), (1, 4, 0, 0), (0, 4, 0, 3)]


def layer(shape, begin=0, grouped=False, after=lambda node: node, **options):
    parameter = ops.parameter(ov.PartialShape(list(shape)), np.float32)
    weights = ops.constant(random([2, 2, 3, 3, 3] if grouped else [4, 6, 3, 3], 2))
    node = transposed(parameter, weights, [2, 2], begin=[begin] * 2, end=[begin] * 2, grouped=grouped, **options)
    return ov.Model([after(node)], [parameter])


BIAS = numbers(6, 2, 5)


@pytest.mark.parametrize(
    "after, element",
    [
        (lambda node: node, np.zeros([1, 6, 1, 1])),
        (lambda node: ops.add(node, BIAS), BIAS),
        (lambda node: ops.sigmoid(ops.add(ops.multiply(node, numbers(6, 2, 3)), BIAS)), 1 / (1 + np.exp(-BIAS))),
    ],
    ids=["alone", "bias", "activation"],
)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("data", EMPTY, ids=str)
def test_data_with_an_extent_of_0(data, dynamic, grouped, after, element, tmp_path):
    """Each element is a sum of nothing, and then what follows. OpenVINO's own operator computes other shapes."""
    model = layer([-1, 4, -1, -1] if dynamic else data, grouped=grouped, after=after)
    assert convert(model) == 1
    shape = (data[0], 6, *(2 * extent + 1 for extent in data[2:]))
    for ours in (model, reread(model, tmp_path)):
        counted = Counted()
        output = compiled(ours)(np.zeros(data, np.float32))[0]
        assert output.shape == shape and counted.evaluations == 1 and counted.fallbacks == 0
        np.testing.assert_allclose(output, np.broadcast_to(element, shape), rtol=1e-6)


@pytest.mark.parametrize("data", EMPTY, ids=str)
def test_data_with_an_extent_of_0_of_which_pads_leave_nothing(data):
    model = layer([-1, 4, -1, -1], begin=1)
    assert convert(model) == 1
    counted = Counted()
    with pytest.raises(RuntimeError, match="the output would have extent -1 at spatial axis"):
        compiled(model)(np.zeros(data, np.float32))
    assert counted.evaluations == counted.fallbacks == 0


def test_bytes_without_elements():
    """Each is the addend, rounded to the output's levels."""
    parameter = ops.parameter(ov.PartialShape([-1, 8, -1, -1]), np.float32)
    weights = weights_of_bytes([8, 6, 3, 3], False, "levels")
    node = transposed(ranged(parameter, 0, 255 * STEP), weights, [2, 2])
    node = ops.add(node, np.full((1, 6, 1, 1), 40.6 * STEP, np.float32))
    model = ov.Model([ranged(node, 0, 255 * STEP)], [parameter])
    assert convert(model) == 1 and has_bytes(model)
    counted = Counted()
    output = compiled(model)(np.zeros((2, 8, 0, 7), np.float32))[0]
    assert counted.evaluations == 1 and counted.fallbacks == 0
    np.testing.assert_array_equal(output, np.full((2, 6, 1, 15), 41 * STEP, np.float32))


def test_channels_last_without_elements():
    parameter, last = ops.parameter(ov.PartialShape([-1, 3, -1, -1]), np.float32), random([7, 6, 1, 1], 2)
    node = transposed(convolution(parameter, random([4, 3, 1, 1])), ops.constant(random([4, 6, 3, 3])), [2, 2])
    model = ov.Model([convolution(ops.add(node, BIAS), last)], [parameter])
    assert convert(model) == 1 and types(model).count("Transpose") == 2
    counted = Counted()
    output = compiled(model)(np.zeros((2, 3, 0, 9), np.float32))[0]
    assert output.shape == (2, 7, 1, 19) and counted.evaluations == 1 and counted.fallbacks == 0
    element = np.sum(last * BIAS, axis=1, keepdims=True).reshape(1, 7, 1, 1)
    np.testing.assert_allclose(output, np.broadcast_to(element, output.shape), rtol=1e-5, atol=1e-6)


def test_data_without_elements_do_not_fall_back(tmp_path):
    """What the device fails to compute is OpenVINO's else."""
    model = layer([-1, 4, -1, -1])
    assert convert(model) == 1
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    (tmp_path / "kernels").mkdir()
    environment = {"TCONV_CL_KERNEL_DIR": str(tmp_path / "kernels")}
    in_another_process(tmp_path / "model.xml", random([1, 4, 2, 5]), tmp_path, **environment)
    with pytest.raises(subprocess.CalledProcessError) as failure:
        in_another_process(tmp_path / "model.xml", np.zeros([1, 4, 0, 5], np.float32), tmp_path, **environment)
    assert "TCONV_CL_KERNEL_DIR is set" in failure.value.stderr


# ---- wrong requests


def test_wrong_shapes_raise(capfd):
    """Channels that are not those of the filter, and pads that leave nothing, of extents that only the data have."""
    for model, data, sentence in (
        (layer([-1, -1, -1, -1]), random([1, 5, 3, 3]), "channels"),
        (layer([-1, -1, -1, -1], begin=3), random([1, 4, 2, 2]), "would have extent -1"),
    ):
        assert convert(model) == 1
        ours, counted = compiled(model), Counted()
        with pytest.raises(RuntimeError, match=sentence):
            ours(data)
        assert counted.evaluations == counted.fallbacks == 0
        assert ours(random([1, 4, 5, 5]))[0].shape[1] == 6 and counted.evaluations == 1
    assert capfd.readouterr().err == ""


def test_an_output_shape_that_is_wrong_raises():
    parameter, shape = ops.parameter([1, 3, 6, 7], np.float32), ops.parameter([2], np.int64)
    node = transposed(parameter, ops.constant(random([3, 5, 3, 3])), [2, 2], auto_pad="same_upper", output_shape=shape)
    model = ov.Model([node], [parameter, shape])
    assert convert(model) == 1
    ours, data, counted = compiled(model), random([1, 3, 6, 7]), Counted()
    with pytest.raises(RuntimeError, match="output_shape is -5 at spatial axis 1: it must be at least 1"):
        ours([data, np.array([12, -5])])
    assert counted.evaluations == counted.fallbacks == 0


@pytest.mark.parametrize(
    "options, sentence", [({"end": [-2, 0]}, "pads_end is -2"), ({"padding": [-1, 0]}, "output_padding is -1")]
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_attributes_that_only_openvino_has_stay(dynamic, options, sentence, capfd):
    parameter = ops.parameter(ov.PartialShape([1, 4, *([-1, -1] if dynamic else [5, 6])]), np.float32)
    model = ov.Model([transposed(parameter, ops.constant(random([4, 3, 3, 3])), [2, 2], **options)], [parameter])
    assert convert(model) == 0 and sentence in capfd.readouterr().err
    STOCK.compile_model(model, "CPU", EXACT)(random([1, 4, 5, 6]))


# ---- wrong options


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"device": "0\0"}, "must not have a zero character"),
        ({"search": "fastest"}, "search is 'fastest'"),
        ({"least_macs": -1}, "least_macs is -1: .* 0 or more"),
        ({"least_macs": 1.5}, "least_macs is 1.5: it must be a whole number"),
        ({"least_macs": 1 << 63}, "less than"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(options, sentence):
    model = layer([1, 4, 5, 6])
    with pytest.raises(tconv_cl.RequestError, match=sentence):
        convert(model, **options)
    assert "TransposedConvolution" not in types(model)


# What is not read before a device is opened, so in a process of its own.
ENVIRONMENT = """
import os, sys
import openvino as ov
import tconv_cl
from tconv_cl.openvino import add_extension, convert, explain, library

def refused(function, *arguments):
    try:
        function(*arguments)
    except (RuntimeError if function == plain.read_model else tconv_cl.RequestError) as error:
        print(name in str(error) and '"wrong"' in str(error))
    else:
        print("accepted")

plain = ov.Core()
plain.add_extension(library())
for name in ("SEARCH", "MATRIX", "LAUNCH_MS", "CACHE", "CACHE_MIB"):
    os.environ["TCONV_CL_" + name] = "wrong"
    refused(add_extension, ov.Core())
    refused(convert, ov.Core().read_model(sys.argv[1]))
    refused(plain.read_model, sys.argv[1])
    del os.environ["TCONV_CL_" + name]
add_extension(ov.Core())
print(len(explain(convert(ov.Core().read_model(sys.argv[1]), least_macs=0)).converted))
"""


def test_wrong_variables_of_the_environment_are_refused():
    done = subprocess.run(
        [sys.executable, "-c", ENVIRONMENT, VECTORS / "ir" / "plain_f32.xml"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True"] * 15 + ["1"], done.stdout + done.stderr
