# SPDX-License-Identifier: Apache-2.0
"""What NumPy users pass besides NumPy's own arrays, layers as objects, and the command line of the package."""

import copy
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyopencl
import pytest

import tconv_cl
from tconv_cl import _adapter, _request, _types

RANDOM = np.random.default_rng(7)
DATA, FILTER = RANDOM.random((1, 2, 5), np.float32), RANDOM.random((2, 3, 3), np.float32)
BIAS = RANDOM.random(3, np.float32)
WANTED = tconv_cl.conv_transpose(DATA, FILTER, BIAS)


class Interface:
    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


class Dlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Subclass(np.ndarray):
    pass


KINDS = {
    "__array_interface__": Interface,
    "__dlpack__": Dlpack,
    "a subclass": lambda array: array.view(Subclass),
}


@pytest.mark.parametrize("kind", KINDS)
def test_objects_with_memory(kind):
    """They are read and written where they are."""
    make = KINDS[kind]
    out = np.empty_like(WANTED)
    given = make(out)
    if kind == "__dlpack__" and tuple(map(int, np.__version__.split(".")[:2])) < (2, 1):
        with pytest.raises(tconv_cl.RequestError, match="out must be writeable: NumPy .* since 2.1"):
            tconv_cl.conv_transpose(DATA, FILTER, BIAS, out=given)
        given = out
    assert tconv_cl.conv_transpose(make(DATA), make(FILTER), make(BIAS), out=given) is given
    np.testing.assert_array_equal(out, WANTED)
    result = tconv_cl.ConvTranspose(make(FILTER), make(BIAS))(make(DATA))
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, WANTED)


def test_lists():
    result = tconv_cl.conv_transpose([[[1.0, 2.0]]], [[[1.0, 2.0, 4.0]]], [0.5])
    assert result.dtype == np.float64 and result.tolist() == [[[1.5, 4.5, 8.5, 8.5]]]
    assert tconv_cl.ConvTranspose([[[1, 2]]])(np.array([[[3, 4]]])).tolist() == [[[3, 10, 8]]]


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(array) for array in (DATA, FILTER, BIAS)]
    out = torch.empty(WANTED.shape)
    assert tconv_cl.conv_transpose(*tensors, out=out) is out
    np.testing.assert_array_equal(out.numpy(), WANTED)
    with pytest.raises(tconv_cl.RequestTypeError, match="filter, a Tensor, gives no array that NumPy can read: .*grad"):
        tconv_cl.conv_transpose(tensors[0], tensors[1].clone().requires_grad_())


@pytest.mark.parametrize("steps", [1, 2])
def test_bf16_of_torch(steps):
    """NumPy does not know the type. Tensors are read and written where they lie."""
    torch, ml_dtypes = pytest.importorskip("torch"), pytest.importorskip("ml_dtypes")
    data, filter, bias = (torch.from_numpy(np.rint(8 * array)).bfloat16() for array in (DATA, FILTER, BIAS))
    wanted = torch.nn.functional.conv_transpose1d(data, filter, bias)
    if steps != 1:
        data, filter = (torch.repeat_interleave(tensor, steps, 2)[:, :, ::steps] for tensor in (data, filter))
    output = tconv_cl.conv_transpose(data, filter, bias)
    assert output.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(output.astype(np.float32), wanted.float().numpy())
    out = torch.empty(*wanted.shape[:2], wanted.shape[2] * steps, dtype=torch.bfloat16)[:, :, ::steps]
    assert tconv_cl.conv_transpose(data, filter, bias, out=out) is out and torch.equal(out, wanted)
    np.testing.assert_array_equal(tconv_cl.ConvTranspose(filter, bias)(data), output)
    with pytest.raises(tconv_cl.RequestTypeError, match="filter, a Tensor, gives no array that NumPy can read: .*grad"):
        tconv_cl.conv_transpose(data, filter.clone().requires_grad_())
    with pytest.raises(tconv_cl.RequestError, match="data is bf16 but filter is f16"):
        tconv_cl.conv_transpose(data, filter.half())


def test_bf16_of_torch_without_ml_dtypes():
    pytest.importorskip("torch")
    code = (
        "import sys; sys.modules['ml_dtypes'] = None\nimport torch, tconv_cl\nones = torch.ones(1, 1, 2).bfloat16()\n"
        "try:\n    tconv_cl.conv_transpose(ones, ones)\nexcept tconv_cl.RequestTypeError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert (
        "data, a Tensor, gives no array that NumPy can read: arrays of bf16 need the package ml_dtypes" in done.stdout
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tensors_of_torch_that_are_stored_negated(dtype):
    torch = pytest.importorskip("torch")
    data, filter = (torch.from_numpy(np.rint(8 * array)).to(getattr(torch, dtype)) for array in (DATA, FILTER))
    negated = torch._neg_view(-data)
    assert torch.equal(negated, data)
    with pytest.raises(tconv_cl.RequestTypeError, match=r"data, a Tensor, .* use tensor\.resolve_neg\(\)"):
        tconv_cl.conv_transpose(negated, filter)
    output = tconv_cl.conv_transpose(negated.resolve_neg(), filter)
    np.testing.assert_array_equal(output, tconv_cl.conv_transpose(data, filter))


def test_shared_virtual_memory(queue):
    """pyopencl's arrays in fine-grained SVM are NumPy's; where the device has none, there are none."""
    if not queue.device.svm_capabilities & pyopencl.device_svm_capabilities.FINE_GRAIN_BUFFER:
        pytest.skip("the device has no fine-grained SVM")
    arrays = []
    for array in (DATA, FILTER, np.empty_like(WANTED)):
        arrays.append(pyopencl.fsvm_empty(queue.context, array.shape, array.dtype))
        arrays[-1][...] = array
    data, filter, out = arrays
    assert tconv_cl.conv_transpose(data, filter, BIAS, out=out) is out
    np.testing.assert_array_equal(out, WANTED)


class Copied:
    """As a dataset of h5py or a Dask array: NumPy gets a copy."""

    def __array__(self, dtype=None, copy=None):
        return np.zeros((1, 3, 7), np.float32)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (dict(data="text"), "data is a str: it must be an array: NumPy's, pyopencl's"),
        (dict(data=None), "data is a NoneType"),
        (dict(data=3.0), "data is a float"),
        (dict(filter=object()), "filter is a object"),
        (dict(filter=[[1, 2], [3]]), "filter, a list, gives no array that NumPy can read"),
        (dict(data=[[["a"]]]), "data has elements of type <U1"),
        (dict(data=DATA.astype(complex)), "data has elements of type complex128"),
        (dict(data=np.ma.masked_array(DATA, DATA > 0.5)), r"data is a masked array: .* filled\(\)"),
        (dict(bias=np.ma.masked_array(BIAS)), "bias is a masked array"),
        (dict(out=[[[0.0] * 7] * 3]), "out is a list"),
        (dict(out=Copied()), "out is a Copied: it must be an array"),
        (dict(strides="2"), "strides is '2'|'2': it must be an integer"),
        (dict(strides=1.5), "strides is 1.5: it must be an integer"),
        (dict(alpha="x"), "alpha is 'x': it must be a number"),
        (dict(algorithm=3), "algorithm is 3: it must be a name"),
        (dict(alpha="2"), "alpha is '2': it must be a number"),
        (dict(strides={2}), r"strides is \{2\}: it must be an integer"),
        (dict(strides=b"2"), "strides is b'2': it must be an integer"),
        (dict(device=b"cpu"), "device is b'cpu': it must be an integer, a name, or a list of these"),
        (dict(device=bytearray(b"cpu")), r"device is bytearray\(b'cpu'\): it must be"),
        (dict(device=[b"cpu"]), "device is b'cpu': it must be"),
        (dict(activation=[["relu"]]), r"activation is \['relu'\]: it must be none, relu"),
        (dict(activation=b"relu"), "activation is b'relu': it must be none, relu"),
        *(
            (dict([(name, value)]), f"{name} is {re.escape(repr(value))}: it must be ")
            for name in ("data_format", "filter_format", "rules", "auto_pad", "math", "search", "output_type")
            for value in (["NXC"], {"a": 1})
        ),
        (dict(requantize="no"), "requantize is 'no': it must be True or False"),
        (dict(progress=3), "progress is 3: it must be a function"),
    ],
    ids=str,
)
def test_wrong_types(arguments, sentence):
    with pytest.raises(TypeError, match=sentence) as caught:
        tconv_cl.conv_transpose(**(dict(data=DATA, filter=FILTER) | arguments))
    assert isinstance(caught.value, tconv_cl.RequestError)  # as for all wrong requests
    assert type(pickle.loads(pickle.dumps(caught.value))) is tconv_cl.RequestTypeError


SHAPES = {"data": (1, 2, 4), "filter": (2, 3, 3)}


@pytest.mark.parametrize(
    "function, arguments, sentence",
    [
        *(
            (function, {name: value}, f"{name} is .*: it must be a shape, a list of extents")
            for function in (tconv_cl.prepare, tconv_cl.explain, tconv_cl.output_shape)
            for name in ("data", "filter")
            for value in (None, 3, "abc", {1, 2, 3}, np.ones((1, 2, 4), np.float32))
        ),
        *(
            (function, arguments, sentence)
            for function in (tconv_cl.prepare, tconv_cl.explain)
            for arguments, sentence in (
                (dict(dtype=None), "dtype is None: it must be a NumPy type, or a name: f32, f16"),
                (dict(dtype=3), "dtype is 3: it must be a NumPy type"),
                (dict(dtype=complex), "dtype is complex128: it must be one of float32"),
                (dict(filter_dtype=[]), "filter_dtype is "),
                (dict(bias="no"), "bias is 'no': it must be True or False"),
                (dict(bias=BIAS), "bias is a ndarray: it must be True or False"),
                (dict(device=b"cpu"), "device is b'cpu'"),
            )
        ),
        (tconv_cl.prepare, dict(scale=None), "scale is None: it must be True or False"),
        (tconv_cl.prepare, dict(residual=[]), r"residual is \[\]: it must be True or False"),
        (tconv_cl.prepare, dict(progress=3), "progress is 3: it must be a function"),
        (tconv_cl.prepare_model, dict(least=None, most=None), "least is None: it must be a function"),
        (tconv_cl.prepare_model, dict(least=dict, most=3), "most is 3: it must be a function"),
        (tconv_cl.prepare_model, dict(least=dict, most=dict, progress=3), "progress is 3: it must be a function"),
        (tconv_cl.prepare_model, dict(least=dict, most=dict, device=b"cpu"), "device is b'cpu'"),
        (tconv_cl.window_input, dict(output_rows=None), r"output_rows is None: it must be \(begin, end\)"),
        (tconv_cl.window_input, dict(data=None, output_rows=(0, 1)), "data is None: it must be a shape"),
    ],
    ids=str,
)
def test_wrong_types_of_shapes_and_flags(function, arguments, sentence):
    shapes = {} if function is tconv_cl.prepare_model else SHAPES
    with pytest.raises(tconv_cl.RequestTypeError, match=sentence):
        function(**(shapes | arguments))


def test_wrong_types_of_adapters():
    for device in (b"cpu", [0], 1.5):
        with pytest.raises(tconv_cl.RequestTypeError, match="device is .*: it must be an integer or a name"):
            _adapter.check_device(lambda *_: 0, device)
    with pytest.raises(tconv_cl.RequestTypeError, match="least_macs is '1': it must be a whole number"):
        _adapter.check_options(None, "1")


def test_wrong_values():
    for arguments in (dict(activation=()), dict(activation=[]), dict(alpha=10**400)):
        with pytest.raises(tconv_cl.RequestError, match=f"{next(iter(arguments))} is "):
            tconv_cl.conv_transpose(DATA, FILTER, **arguments)
    with pytest.raises(tconv_cl.RequestError, match="dtype is 'float31': it must be a NumPy type, or a name: f32"):
        tconv_cl.explain(**SHAPES, dtype="float31")


def test_ranks_without_spatial_axes():
    for data, filter in (((), ()), ((1,), (1,)), ((1, 2), (2, 3))):
        for options in ({}, dict(output_shape=(2, 2)), dict(strides=(2, 2)), dict(pads_begin=())):
            with pytest.raises(tconv_cl.RequestError) as caught:
                tconv_cl.output_shape(data, filter, **options)
            assert not re.search(r"the (-\d|0) spatial axes", str(caught.value)), str(caught.value)


def test_names_of_types_have_one_meaning():
    """The library's: NumPy's "i8" has 64 bits."""
    for name, dtype in {
        "i8": np.int8,
        "u8": np.uint8,
        "f32": np.float32,
        "float32": np.float32,
        "i4": np.int32,
    }.items():
        assert _types.element_type("dtype", name) == _types.type_of("data", np.dtype(dtype))
    assert _request.output_type_of("i8") == _types.element_type("dtype", "i8")


# ---- layers ----


def test_a_layer_takes_lists():
    layer = tconv_cl.ConvTranspose(FILTER.tolist(), BIAS.tolist(), scale=[1, 2, 3])
    wanted = tconv_cl.conv_transpose(DATA, FILTER, BIAS, scale=np.array([1, 2, 3], np.float32))
    assert np.array_equal(layer(DATA), wanted)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (dict(filter=np.ones(3, np.float32)), "rank"),
        (dict(filter=np.ones((2, 3, 0), np.float32)), "filter|kernel"),
        (dict(strides=0), "strides is 0"),
        (dict(strides=[1, 2, 3]), "strides"),
        (dict(groups=3), "groups|channels"),
        (dict(bias=np.ones(4, np.float32)), r"bias has shape \(4,\): it must be \(3,\)"),
        (dict(bias=np.ones(3)), "bias has elements of type float64"),
        (dict(activation="prelu"), "needs a slope"),
        (dict(filter=FILTER.astype(complex)), "filter has elements of type complex128"),
        (dict(no_such_option=1), "no_such_option"),
        (dict(device=-1), "device is -1"),
        (dict(device=99), "device 99 does not exist"),
        (dict(memory_limit="x"), "memory_limit is 'x': it must be an integer"),
        (dict(memory_limit=-1), "memory_limit is -1"),
        (dict(device="no such device"), "no such device"),
    ],
    ids=str,
)
def test_layers_are_validated_when_made(arguments, sentence):
    with pytest.raises((ValueError, TypeError, tconv_cl.Error), match=sentence):
        tconv_cl.ConvTranspose(**(dict(filter=FILTER) | arguments))


@pytest.mark.parametrize(
    "filter, data, options",
    [
        ((2, 3, 3), (1, 2, 4), {}),
        ((2, 4, 3, 3, 3), (1, 8, 4, 4), {}),  # groups, by its rank
        ((2, 4, 3, 3, 3), (1, 2, 4, 4, 4), {}),  # three axes
        ((3, 3, 5, 4), (1, 6, 6, 4), dict(data_format="NXC", filter_format="XIO")),
        ((4, 3, 9), (1, 4, 30), dict(groups=2, pads_begin=4, pads_end=4)),
        ((1, 1, 2), (1, 1, 80), dict(pads_begin=30, pads_end=30)),
        ((1, 1, 3), (1, 1, 7), dict(strides=5, output_shape=33)),
        ((1, 1, 3, 3), (1, 1, 500, 9), dict(strides=[4, 1], output_shape=[1999, 9], auto_pad="same_upper")),
        ((1, 1, 2), (1, 1, 2000), dict(pads_begin=1500)),
    ],
)
def test_layers_for_what_can_be_computed(filter, data, options):
    """No layer is refused that fits some data."""
    filter, data = np.ones(filter, np.float32), np.ones(data, np.float32)
    result = tconv_cl.ConvTranspose(filter, **options)(data)
    np.testing.assert_array_equal(result, tconv_cl.conv_transpose(data, filter, **options))


def test_layers_are_shown_copied_and_pickled():
    layer = tconv_cl.ConvTranspose(FILTER, BIAS, strides=2, activation=("clamp", 0, 1), device="cpu")
    assert repr(layer) == (
        "ConvTranspose(filter=float32[2, 3, 3], bias=float32[3], strides=2, activation=('clamp', 0, 1), device='cpu')"
    )
    wanted = layer(DATA)
    for again in (copy.copy(layer), copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert repr(again) == repr(layer)
        np.testing.assert_array_equal(again(DATA), wanted)


# ---- the package ----


def run(*arguments, **environment):
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_command_line():
    code, output, _ = run("-m", "tconv_cl")
    assert code == 0 and all(device.name in output for device in tconv_cl.devices())
    assert output.count("*") == 2 and "0* " in output
    assert run("-m", "tconv_cl", "--version")[:2] == (0, f"tconv_cl {tconv_cl.__version__}\n")
    assert "examples:" in run("-m", "tconv_cl", "--help")[1]
    code, _, said = run("-m", "tconv_cl", OCL_ICD_VENDORS="/nowhere")
    assert code == 1 and said.startswith("tconv_cl: ") and "device" in said


def test_no_opencl(tmp_path):
    """With a loader that is none, and with a driver that is none: the package is imported, and lists no devices."""
    (tmp_path / "libOpenCL.so.1").write_text("nothing")
    (tmp_path / "broken.icd").write_text(str(tmp_path / "libOpenCL.so.1"))
    program = (
        "import numpy, tconv_cl; print(tconv_cl.devices()); tconv_cl.conv_transpose(*numpy.ones((2, 1, 1, 1), 'f4'))"
    )
    for environment, words in (
        ({"LD_LIBRARY_PATH": str(tmp_path)}, ("libOpenCL.so.1 cannot be opened", "install")),
        ({"OCL_ICD_VENDORS": str(tmp_path / "broken.icd")}, ("no OpenCL platform", "install")),
    ):
        code, output, said = run("-c", program, **environment)
        sentence = said.strip().splitlines()[-1]
        assert code == 1 and output == "[]\n" and sentence.startswith("tconv_cl.Error: no OpenCL device was found")
        assert all(word in sentence for word in words), sentence


def test_two_loaders():
    """pyopencl's wheels have a loader inside: in either order, both find devices."""
    for names in ("pyopencl, tconv_cl", "tconv_cl, pyopencl"):
        code, output, said = run(
            "-c", f"import {names}; print(len(pyopencl.get_platforms()) > 0, len(tconv_cl.devices()) > 0)"
        )
        assert code == 0 and output == "True True\n", said


def test_a_home_that_cannot_be_written(tmp_path):
    """Nothing is kept on disk, and results are the same. /proc cannot be written by root either."""
    program = "import numpy, tconv_cl; print(tconv_cl.conv_transpose(*numpy.ones((2, 1, 1, 1), 'f4')))"
    home = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "TCONV_CL_CACHE_DIR"), "/proc/none")
    code, output, said = run("-c", program, POCL_CACHE_DIR=str(tmp_path), **home)
    assert code == 0 and output == "[[[1.]]]\n", said


def test_the_license_and_the_types_are_inside():
    from importlib.metadata import files

    names = [str(path) for path in files("tconv_cl")]
    assert "tconv_cl/py.typed" in names
    assert [name for name in names if Path(name).name == "LICENSE"]
