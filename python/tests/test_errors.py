# SPDX-License-Identifier: Apache-2.0
"""The signature that callers rely on, and what becomes of calls that cannot be carried out."""

import inspect
import pickle

import numpy as np
import pyopencl.array
import pytest

import tconv_cl

DATA, FILTER = np.ones((1, 2, 4), np.float32), np.ones((2, 3, 3), np.float32)


def test_signature():
    parameters = inspect.signature(tconv_cl.conv_transpose).parameters
    assert list(parameters)[:3] == ["data", "filter", "bias"] and parameters["bias"].default is None
    wanted = dict(strides=1, dilations=1, pads_begin=0, pads_end=0, auto_pad="explicit", output_padding=0)
    wanted |= dict(output_shape=None, groups=None, data_format="NCX", filter_format="OIX", rules="spec")
    wanted |= dict(algorithm="auto", device=None)
    for function in (tconv_cl.conv_transpose, tconv_cl.output_shape):
        parameters = inspect.signature(function).parameters
        assert {name: parameters[name].default for name in wanted} == wanted
        assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in wanted)


REQUESTS = {
    "strides is 0 at spatial axis 0": dict(strides=0),
    "strides is 1.5: it must be an integer": dict(strides=1.5),
    "strides has 7 entries": dict(strides=[1] * 7),
    "data has 2 channels": dict(groups=3),
    "groups is 0: it must be at least 1": dict(groups=0),
    "they fit with data_format NXC and filter_format XIO": dict(groups=2, filter=np.ones((3, 5, 4), np.float32)),
    "auto_pad is 'some'": dict(auto_pad="some"),
    "rules is None": dict(rules=None),
    'no algorithm is named "magic"|magic': dict(algorithm="magic"),
    r"activation is 'clamp': clamp takes 2 numbers, for example \('clamp', -1, 1\)$": dict(activation="clamp"),
    r"activation is 'leaky_relu': .*, for example \('leaky_relu', 0.1\); \"prelu\" takes": dict(
        activation="leaky_relu"
    ),
    r"activation is 'clamp:-1,1': write \('clamp', -1, 1\)$": dict(activation="clamp:-1,1"),
    "activation is .*: relu takes 0 numbers, for example 'relu'$": dict(activation=("relu", 1)),
    "needs a slope": dict(activation="prelu"),
    "slope is given": dict(slope=np.ones(3, np.float32)),
    "needs a second slope": dict(activation="snakebeta", slope=np.ones(3, np.float32)),
    "slope2 is given, but the activation takes one slope": dict(
        activation="snake", slope=np.ones(3, np.float32), slope2=np.ones(3, np.float32)
    ),
    "slope2 has shape": dict(activation="snakebeta", slope=np.ones(3, np.float32), slope2=np.ones(2, np.float32)),
    "beta is 1.0, but there is no out": dict(beta=1),
    "bias has shape": dict(bias=np.ones(2, np.float32)),
    "scale has elements of type float64: it must have float32": dict(scale=np.ones(3)),
    "residual has shape": dict(residual=np.ones((1, 3, 5), np.float32)),
    "out has shape": dict(out=np.ones((1, 3, 5), np.float32)),
    "out must be writeable": dict(out=np.broadcast_to(np.float32(0), (1, 3, 6))),
    "out shares memory with data": dict(out=DATA),
    "data_zero_point is 256": dict(data_zero_point=256),
    "output_type is 'float'": dict(output_type="float"),
    "device is -1": dict(device=-1),
    "device is an empty list": dict(device=[]),
    "device is 0.5: it must be an integer": dict(device=0.5),
    "device names 0 twice": dict(device=[0, 0]),
    "filter has rank 1": dict(filter=np.ones(2, np.float32)),
}


@pytest.mark.parametrize("sentence", REQUESTS)
def test_request(sentence):
    arguments = {"filter": FILTER} | REQUESTS[sentence]
    with pytest.raises(ValueError, match=sentence):
        tconv_cl.conv_transpose(DATA, **arguments)


def test_unknown_keywords_name_the_function():
    functions = (tconv_cl.conv_transpose, tconv_cl.output_shape, tconv_cl.explain)
    for function, first in (
        (tconv_cl.ConvTranspose, (FILTER,)),
        *((each, (DATA.shape, FILTER.shape)) for each in functions),
    ):
        with pytest.raises(TypeError, match=rf"{function.__name__}\(\) got .* 'stride'; write strides=2$"):
            function(*first, stride=2)
    with pytest.raises(
        TypeError, match=r"ConvTranspose\.__call__\(\) got .* 'outputrows'; did you mean 'output_rows'\?$"
    ):
        tconv_cl.ConvTranspose(FILTER)(DATA, outputrows=(0, 1))


def test_lists_take_the_type_of_arrays():
    wanted = tconv_cl.conv_transpose(DATA, FILTER, np.arange(3, dtype=np.float32))
    for data, filter in ((DATA.tolist(), FILTER), (DATA, FILTER.tolist()), (DATA.astype(int).tolist(), FILTER)):
        output = tconv_cl.conv_transpose(data, filter, [0, 1, 2])
        assert output.dtype == np.float32
        np.testing.assert_array_equal(output, wanted)
    assert tconv_cl.conv_transpose(np.ones((1, 2, 4), np.int16), np.ones((2, 3, 3), int).tolist()).dtype == np.int16
    for data, filter in (
        (DATA, [[["one"]]]),
        (np.ones((1, 1, 4), np.int8), [[[1000]]]),
        (np.ones((1, 1, 4), int), [[[0.5]]]),
    ):
        with pytest.raises(ValueError):
            tconv_cl.conv_transpose(data, filter)


def test_status_of_a_request():
    for status, options in {1: dict(device=[]), 3: dict(strides=0), 7: dict(algorithm="magic")}.items():
        with pytest.raises(tconv_cl.RequestError) as caught:
            tconv_cl.conv_transpose(DATA, FILTER, **options)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (caught.value.status, again.status, str(again)) == (status, status, str(caught.value))


def test_error_of_the_device():
    with pytest.raises(tconv_cl.Error, match="device 99 does not exist") as caught:
        tconv_cl.conv_transpose(DATA, FILTER, device=99)
    assert (caught.value.status, caught.value.opencl_code) == (42, 0)  # TCONV_ERROR_NO_DEVICE
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.status) == (str(caught.value), 42)


def test_error_of_memory():
    with pytest.raises(tconv_cl.Error, match="one row of the outermost axis takes"):
        tconv_cl.conv_transpose(DATA, FILTER, memory_limit=1)


def test_output_shape():
    shape = tconv_cl.output_shape((1, 20, 224, 224), (20, 10, 3, 3), strides=2, pads_begin=1, pads_end=1)
    assert shape == (1, 10, 447, 447)
    assert tconv_cl.output_shape((0, 8, 4), (2, 4, 3, 5)) == (0, 6, 8)
    with pytest.raises(ValueError, match="data has rank 2"):
        tconv_cl.output_shape((1, 2), (2, 3))


def test_arrays_that_are_not_contiguous():
    data = np.asfortranarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    filter = np.arange(54, dtype=np.float32).reshape(3, 6, 3)[:, ::-2]
    wanted = tconv_cl.conv_transpose(data.copy("C"), filter.copy("C"))
    np.testing.assert_array_equal(tconv_cl.conv_transpose(data, filter), wanted)


def test_an_empty_batch(compute):
    assert compute(DATA[:0], FILTER).shape == (0, 3, 6)


def test_of_pyopencl(queue):
    data, filter = pyopencl.array.to_device(queue, DATA), pyopencl.array.to_device(queue, FILTER)
    with pytest.raises(ValueError, match="filter is a ndarray: it must be a pyopencl array"):
        tconv_cl.conv_transpose(data, FILTER)
    with pytest.raises(ValueError, match="filter is a Array: it must be an array"):
        tconv_cl.conv_transpose(DATA, filter)
    with pytest.raises(ValueError, match="filter has strides of .* these strides must be positive"):
        tconv_cl.conv_transpose(data, filter[:, :, ::-1])
    with pytest.raises(ValueError, match="bias is not C-contiguous"):
        tconv_cl.conv_transpose(data, filter, pyopencl.array.to_device(queue, np.ones(6, np.float32))[::2])
    with pytest.raises(ValueError, match="data has no queue"):
        tconv_cl.conv_transpose(data.with_queue(None), filter)
    with pytest.raises(ValueError, match="device, memory_limit and progress are for NumPy"):
        tconv_cl.conv_transpose(data, filter, device=0)
    with pytest.raises(ValueError, match="out shares memory with data"):
        tconv_cl.conv_transpose(data, pyopencl.array.zeros(queue, (2, 2, 1), np.float32), out=data)
    context = pyopencl.Context([queue.device])
    other = pyopencl.CommandQueue(context)
    with pytest.raises(ValueError, match="another context"):
        tconv_cl.conv_transpose(data, pyopencl.array.to_device(other, FILTER))


@pytest.mark.parametrize(
    "argument, value",
    {
        "algorithm": "reference\0x",
        "rules": "spec\0x",
        "auto_pad": "valid\0",
        "activation": "relu\0x",
        "math": "exact\0",
        "search": "model\0",
        "data_format": "NCX\0",
        "filter_format": "OIX\0",
        "output_type": "f32\0",
        "device": "cpu\0x",
    }.items(),
)
def test_names_do_not_end_at_a_zero(argument, value):
    data, filter = np.ones((1, 1, 2), np.float32), np.ones((1, 1, 3), np.float32)
    with pytest.raises(ValueError, match=rf"^{argument} is '.*\\x00"):
        tconv_cl.conv_transpose(data, filter, **{argument: value})


def test_explain_tells_of_the_plan_that_computes():
    data, filter = np.ones((1, 3, 7), np.float32), np.ones((3, 2, 3), np.float32)
    tconv_cl.clear_cache()
    with tconv_cl.trace() as events:
        tconv_cl.conv_transpose(data, filter, strides=2)
        text = tconv_cl.explain(data.shape, filter.shape, strides=2)
        tconv_cl.conv_transpose(data, filter, strides=2)
    (plan,) = [event for event in events if event.kind == "plan"]
    assert [line.split(":")[0] for line in text.splitlines() if ", taken" in line] == [plan.algorithm]


def test_explain_after_a_computation_of_the_same_problem():
    data, filter = np.ones((1, 1, 2), np.float32), np.ones((1, 1, 3), np.float32)
    before = tconv_cl.explain(data.shape, filter.shape)
    tconv_cl.conv_transpose(data, filter)
    assert tconv_cl.explain(data.shape, filter.shape) == before
    tconv_cl.clear_cache()
    tconv_cl.conv_transpose(data, filter)
    assert tconv_cl.explain(data.shape, filter.shape) == before
