# SPDX-License-Identifier: Apache-2.0
"""The errors for names and values of other systems: what they say to write, written, computes the same as there."""

import re
from pathlib import Path

import numpy as np
import pyopencl.array
import pytest

import tconv_cl
from tconv_cl import _names

random = np.random.default_rng(7)
DATA = random.standard_normal((1, 2, 5, 6)).astype(np.float32)
FILTER = random.standard_normal((2, 3, 3, 3)).astype(np.float32)


def said(function, *arguments, **options):
    """What the error says to write, as arguments."""
    with pytest.raises(TypeError, match=r"got (an )?unexpected keyword argument") as caught:
        function(*arguments, **options)
    return str(caught.value).split("; ", 1)[1].removeprefix("write ")


def written(text):
    return eval(f"dict({text.split(';')[0].split(', if no')[0]})", {"numpy": np})


def placed(stride, kernel, begin, extent):
    """The output from its definition: `begin` cut off in front, `extent` outputs of each axis."""
    whole = np.zeros((1, 3, *(60 for _ in extent)), np.float64)
    for y in range(DATA.shape[2]):
        for x in range(DATA.shape[3]):
            for i in range(kernel):
                for j in range(kernel):
                    products = DATA[0, :, y, x] @ CUT[kernel][:, :, i, j].astype(np.float64)
                    whole[0, :, 20 + y * stride + i - begin, 20 + x * stride + j - begin] += products
    return whole[:, :, 20 : 20 + extent[0], 20 : 20 + extent[1]]


CUT = {kernel: random.standard_normal((2, 3, kernel, kernel)).astype(np.float32) for kernel in (1, 2, 3, 4, 5)}


@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", ["same", "valid", 0, 1])
def test_pads_compute_what_the_other_system_computes(padding, stride, kernel):
    """Of Keras, TensorFlow and JAX if it is a word, of PyTorch if it is a number."""
    extents = DATA.shape[2:]
    if padding == "same":
        begin, wanted = max(kernel - stride, 0) // 2, [x * stride for x in extents]
    elif padding == "valid":
        begin, wanted = 0, [x * stride + max(kernel - stride, 0) for x in extents]
    else:
        begin, wanted = padding, [stride * (x - 1) + kernel - 2 * padding for x in extents]
    text = said(tconv_cl.conv_transpose, DATA, CUT[kernel], strides=stride, padding=padding)
    arguments = {} if text.startswith("leave it out") else written(text)
    output = tconv_cl.conv_transpose(DATA, CUT[kernel], strides=stride, **arguments)
    np.testing.assert_allclose(output, placed(stride, kernel, begin, wanted), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("pair", [(0, 0), (2, 1), (1, 2)])
def test_pads_of_jax_are_those_of_the_data(pair):
    """lax.conv_transpose(..., transpose_kernel=True): a correlation of the dilated and padded data with the reversed
    filter."""
    stride, dilation = 2, 2
    data, filter = DATA[:, :, 0], CUT[3][:, :, 0]
    dilated = np.zeros((1, 2, stride * (data.shape[2] - 1) + 1))
    dilated[:, :, ::stride] = data
    padded = np.pad(dilated, ((0, 0), (0, 0), pair))
    reach = dilation * (filter.shape[2] - 1)
    wanted = sum(
        np.einsum(
            "nix,io->nox", padded[:, :, dilation * k : padded.shape[2] - reach + dilation * k], filter[:, :, 2 - k]
        )
        for k in range(3)
    )
    options = {"strides": stride, "dilations": dilation}
    arguments = written(said(tconv_cl.conv_transpose, data, filter, **options, padding=[pair]))
    output = tconv_cl.conv_transpose(data, filter, **options, **arguments)
    np.testing.assert_allclose(output, wanted, rtol=1e-4, atol=1e-4)


def correlated(data, filter, stride, pair, reverse):
    """lax.conv_transpose of one axis: the data, dilated and padded, correlated with the filter."""
    dilated = np.zeros((*data.shape[:2], stride * (data.shape[2] - 1) + 1))
    dilated[:, :, ::stride] = data
    padded, kernel = np.pad(dilated, ((0, 0), (0, 0), pair)), filter[:, :, ::-1] if reverse else filter
    outputs = padded.shape[2] - filter.shape[2] + 1
    return sum(np.einsum("nix,io->nox", padded[:, :, k : k + outputs], kernel[:, :, k]) for k in range(filter.shape[2]))


@pytest.mark.parametrize(
    "pair, options",
    [
        ((1, 1), dict(padding=((1, 1),), strides=2)),
        ((0, 2), dict(padding=[(0, 2)], strides=2)),
        ((1, 4), dict(padding=[(1, 4)], strides=2)),  # beyond the last output of the whole
        ((1, 1), dict(padding=((1, 1),), lhs_dilation=(2,))),
        ((1, 1), dict(padding=((1, 1),), strides=2, transpose_kernel=False)),
        ((1, 1), dict(padding=((1, 1),), strides=2, transpose_kernel=True)),
        ((2, 1), dict(padding="SAME", strides=2)),
        ((2, 1), dict(padding="same", lhs_dilation=(2,))),
        ((2, 2), dict(padding="VALID", strides=2)),
    ],
    ids=str,
)
def test_filters_of_jax_are_reversed_unless_they_are_transposed(pair, options):
    data, filter = DATA[:, :, 0], CUT[3][:, :, 0]
    with pytest.raises(TypeError) as caught:
        tconv_cl.conv_transpose(data, filter, **options)
    says, transposed = str(caught.value), options.get("transpose_kernel", False)
    assert ("reverse the filter along its spatial axes (numpy.flip)" in says) is not transposed
    pads = re.search(r"pads_begin=\d, pads_end=\d(, output_padding=\d)?", says)
    arguments = eval(f"dict({pads[0]})") if pads else {}
    flipped = filter if transposed else np.flip(filter, 2)
    output = tconv_cl.conv_transpose(data, flipped, strides=2, **arguments)
    np.testing.assert_allclose(output, correlated(data, filter, 2, pair, transposed), rtol=1e-4, atol=1e-4)


def test_nothing_is_reversed_for_other_systems():
    for padding in ("same", "valid", 1, (1, 2), [[0, 0], [1, 1], [1, 1], [0, 0]]):
        assert "reverse" not in said(tconv_cl.conv_transpose, DATA, FILTER, padding=padding)


EQUAL = {  # what is written, and what must be said
    "padding=1": "pads_begin=1, pads_end=1",
    "padding=(1, 2)": "pads_begin=(1, 2), pads_end=(1, 2)",
    "padding=(1, 2, 3, 4)": "pads_begin=(1, 2), pads_end=(3, 4)",
    "padding=((0, 1), (1, 2))": "pads_begin=(2, 1), pads_end=(1, 0)",  # JAX: of the data
    "padding='same'": "pads_begin=0, pads_end=1",
    "padding='SAME_LOWER'": "auto_pad='same_lower'; with rules=\"onnx\"",
    "padding='full'": "leave it out: 'full' has no equivalent; pads are numbers, pads_begin and pads_end",
    "padding='CIRCULAR'": "leave it out: 'circular' has no equivalent",
    "padding=(1, 2, 3)": "pads_begin=..., pads_end=..., with one number for each spatial axis",
    "padding=[1.5, 2]": "pads_begin=..., pads_end=...",
    "padding=[[0, 0], [1, 2], [3, 0], [0, 0]]": "pads_begin=(1, 3), pads_end=(2, 0)",  # TensorFlow: of the output
    "padding=[[0, 0], [0, 0], [1, 1], [1, 1]]": "pads_begin=1, pads_end=1",
    "padding=[(4, 1), (1, 3)]": "pads_begin=(0, 1), pads_end=(1, 0), output_padding=(0, 1); and put (2, 0)",
    "padding=None": "leave it out",
    "pads=1": "pads_begin=1, pads_end=1",
    "pads=[1, 2, 3, 4]": "pads_begin=(1, 2), pads_end=(3, 4)",
    "pads=[1, 2]": "pads_begin=1, pads_end=2",
    "pad=1": "pads_begin=1, pads_end=1",
    "pad_h=1, pad_w=2": "pads_begin=(1, 2), pads_end=(1, 2)",
    "pad_top=1, pad_left=2, pad_bottom=0, pad_right=1": "pads_begin=(1, 2), pads_end=(0, 1)",
    "padding_l=(1, 1), padding_r=(0, 0)": "'padding_l': write pads_begin=(1, 1); 'padding_r': write pads_end=(0, 0)",
    "output_size=(11, 13)": "output_padding=0",
    "output_size=(1, 3, 12, 13)": "output_padding=(1, 0)",
    "output_size=(12, 13), pads_begin=1": "output_padding=(2, 1)",
    "output_size=(3, 3)": "leave it out: the size 3 is too small, the least is (11, 13); larger pads_end",
    "output_size=[float('inf'), 1]": "output_padding=..., one number",
    "output_size=None": "leave it out",
    "output_size=12, padding=1": "'output_size': write output_padding=(3, 1); 'padding': write pads_begin=1, pads_end",
    "stride=2": "strides=2",
    "stride_h=2, stride_w=3": "strides=(2, 3)",
    "output_padding_w=1": "output_padding=(0, 1)",
    "pads_begin_h=1": "pads_begin=(1, 0)",
    "dilation=2": "dilations=2",
    "dilation_rate=(1, 2)": "dilations=(1, 2)",
    "rhs_dilation=2": "dilations=2",
    "dilates=1": "dilations=2",
    "group=2": "groups=2",
    "feature_group_count=2": "groups=2",
    "adj=1": "output_padding=1",
    "weight=FILTER": "filter=...",
    "filters=64": "leave it out: the filter's shape says it, [CI, CO/groups, K...], here [2, 3, 3, 3]",
    "kernel_size=3": "leave it out: the filter's shape says it, [CI, CO/groups, K...], here [2, 3, 3, 3]",
    "negative_slope=0.1": 'activation=("leaky_relu", 0.1)',
    "min_val=-1, max_val=1": 'activation=("clamp", -1, 1)',
    "layout='NHWC'": 'data_format="NXC"; the arrays keep their axes: data, residual and output are [N, X..., C]',
    "layout='NCHW'": 'data_format="NCX", as is the default',
    "dimension_numbers=('NHWC', 'HWIO', 'NHWC')": 'data_format="NXC"; the arrays keep their axes',
    "dtype='f4'": "output_type=numpy.float32",
    "dtype=np.int32": "output_type=numpy.int32",
    "dtype=None": "leave it out",
    "preferred_element_type=None": "leave it out",
    "dtype='f32'": "output_type=numpy.float32",
    "dtype='i8'": "output_type=numpy.int8",  # the library's name
    "dtype='bfloat16'": 'output_type="bf16"',
    "dtype=bool": 'output_type=a type of NumPy\'s, or a name as "f32"; ... is none',
    "relu=False": "leave it out",
    "autotune=False": "leave it out",
    "stride=None": "leave it out",
    "device_id='cuda:1'": 'device="gpu"',
    "device_id='cpu'": "device='cpu'",
    "device_name=1": "device=1",
    "queue=None": "leave it out: pyopencl arrays carry their queue",
    "wait_for=None": "leave it out: the call waits for the events of its arrays",
    "autotune=True": 'search="measure"',
    "skip=DATA": "residual=...",
    "strids=2": "did you mean 'strides'?",
    "out_put_shape=2": "did you mean 'output_shape'?",
    "nothing_of_this=2": "help(conv_transpose) has its arguments",
    "data_rowz=2": "did you mean 'data_rows'?",
}


@pytest.mark.parametrize("call", EQUAL)
def test_names(call):
    options = eval(f"dict({call})")
    strides = {} if "stride" in call else {"strides": 2}
    assert said(tconv_cl.conv_transpose, DATA, FILTER, **strides, **options).startswith(EQUAL[call])


def test_no_part_of_a_name_is_taken_for_it():
    """A shorter or longer name may be one side of two, or something else."""
    known = tuple(_names.ARGUMENTS)
    for word in (
        "padding",
        "pads",
        "pad",
        "layout",
        "wait_for",
        "shape",
        "type",
        "format",
        "zero_point",
        "limit",
        "rows",
    ):
        assert _names.close_to(word, known) is None, word
    assert _names.close_to("pads_begni", known) == "pads_begin" and _names.close_to("ruels", known) == "rules"


class Broken:
    def __iter__(self):
        raise LookupError


def test_values_that_no_system_takes():
    """The error is still about the name."""
    odd = (None, "x", "", object(), [], (), [None], {}, float("nan"), -1, DATA, [[1]], (1, "a"), b"same", np.int64(3))
    odd += ([float("inf"), 1], Broken())
    for name in {*_names.OTHERS, *_names.SAME, "nonsense"} - {"data", "filter"}:
        for value in odd:
            for function, first in ((tconv_cl.conv_transpose, (DATA, FILTER)), (tconv_cl.ConvTranspose, (FILTER,))):
                with pytest.raises(TypeError, match=f"got an unexpected keyword argument '{name}'; "):
                    function(*first, **{name: value})


def functions():
    shapes, layer = (DATA.shape, FILTER.shape), tconv_cl.ConvTranspose(FILTER, strides=2)
    yield "conv_transpose", lambda **o: tconv_cl.conv_transpose(DATA, FILTER, **o)
    yield "ConvTranspose", lambda **o: tconv_cl.ConvTranspose(FILTER, **o)
    yield "ConvTranspose.__call__", lambda **o: layer(DATA, **o)
    yield "output_shape", lambda **o: tconv_cl.output_shape(*shapes, **o)
    yield "window_input", lambda **o: tconv_cl.window_input(*shapes, (0, 1), **o)
    yield "explain", lambda **o: tconv_cl.explain(*shapes, **o)
    dask, array = pytest.importorskip("tconv_cl.dask"), pytest.importorskip("dask.array").from_array(DATA)
    yield "conv_transpose", lambda **o: dask.conv_transpose(array, FILTER, **o)


def test_all_functions():
    for name, function in functions():
        text = said(function, padding=1)
        elsewhere = ", an argument of ConvTranspose()" if name == "ConvTranspose.__call__" else ""
        assert text == f"pads_begin=1, pads_end=1{elsewhere}", name
        with pytest.raises(TypeError, match=re.escape(f"{name}() got an unexpected keyword argument 'padding'; write")):
            function(padding=1)
    assert said(tconv_cl.output_shape, (1, 2, 5), (2, 3, 3), negative_slope=0.1).endswith(
        "an argument of conv_transpose()"
    )
    assert said(dict(functions())["ConvTranspose.__call__"], strides=2) == "strides=2, an argument of ConvTranspose()"
    assert said(tconv_cl.conv_transpose, DATA, weight=FILTER, padding=1) == (
        "'weight': write filter=...; 'padding': write pads_begin=1, pads_end=1"
    )


def test_functions_of_other_runtimes():
    torch = pytest.importorskip("torch")
    import tconv_cl.torch

    module = torch.nn.ConvTranspose1d(1, 1, 1)
    assert said(tconv_cl.torch.convert, module, inplace=True).startswith("leave it out: the model is changed in place")
    assert said(tconv_cl.torch.convert, module=module) == "model=..."
    assert said(tconv_cl.torch.convert, module, device_id=0) == "device=0"
    assert said(tconv_cl.torch.convert, module, device_id="cuda") == 'device="gpu"'
    assert said(tconv_cl.torch.convert, module, device_type="CUDA") == 'device="gpu"'
    assert said(tconv_cl.torch.dispatch, strict=True) == 'fallback="error"'
    assert said(tconv_cl.torch.convert, module, fallbck="error") == "did you mean 'fallback'?"
    with pytest.raises(tconv_cl.Error, match='no device is "cuda.*; write "gpu"$'):
        tconv_cl.torch.convert(module, device="cuda")


VALUES = {
    "data_format": {"NHWC": 'write data_format="NXC"; the arrays keep', "channels_first": 'write data_format="NCX"'},
    "activation": {
        "swish": 'write "silu"',
        "hswish": 'write "hardswish"',
        "leaky": 'write ("leaky_relu", slope)',
        "hardtanh": 'write ("clamp", -1, 1)',
        "clip": 'write ("clamp", low, high)',
        None: 'write "none"',
        np.tanh: "write 'tanh'",
    },
    "auto_pad": {"same": 'write "same_upper"; with rules="onnx"', None: 'write "explicit"'},
    "rules": {"pytorch": 'write "spec", with the pads as numbers'},
    "output_type": {"float32": "write numpy.float32", "f4": "write numpy.float32", "bfloat16": 'write "bf16"'},
    "filter_format": {"HWOI": '"XIO": filter_format="OIX" is', "HWIO": 'filter_format="OIX" is [CI, CO/groups, K...]'},
    "search": {True: 'write "measure"', "tune": 'write "measure"'},
    "math": {"fp16": 'write "fast"'},
    "strides": {(1, 2, 3, 1): "write strides=(2, 3)", (1, 1, 2, 2): "write strides=2"},
    "pads_begin": {(1, 2, 3, 4): "write pads_begin=(1, 2), pads_end=(3, 4)"},
    "output_shape": {(1, 10, 10, 3): "write the 2 spatial extents alone"},
}


@pytest.mark.parametrize("argument", VALUES)
def test_values(argument):
    for value, words in VALUES[argument].items():
        with pytest.raises(tconv_cl.RequestError, match=re.escape(f"; {words}")):
            tconv_cl.conv_transpose(DATA, FILTER, **{argument: value})


def test_pads_that_are_none_have_no_hint():
    with pytest.raises(tconv_cl.RequestError, match="has 4 values: it must have one for each of the 2 spatial axes"):
        tconv_cl.conv_transpose(DATA, FILTER, pads_begin=(-1, 0, 0, 0))


def test_channels_last_by_the_shape(queue):
    last = np.ascontiguousarray(np.moveaxis(DATA, 1, -1))
    with pytest.raises(ValueError, match="they fit in the oneAPI form with data_format NXC and filter_format OIX"):
        tconv_cl.conv_transpose(last, FILTER)
    with pytest.raises(ValueError, match="data_format NXC and filter_format OIX"):
        tconv_cl.conv_transpose(*(pyopencl.array.to_device(queue, array) for array in (last, FILTER)))
    output = tconv_cl.conv_transpose(last, FILTER, data_format="NXC", filter_format="OIX")
    np.testing.assert_allclose(np.moveaxis(output, -1, 1), tconv_cl.conv_transpose(DATA, FILTER), rtol=1e-5, atol=1e-5)


def options_of(write):
    return [option.replace("-", "_") for option in re.findall(r"--([a-z-]+) %", write)]


def test_the_tool_has_the_same_names():
    """Each name of an option that other systems have, and what stands for it."""
    source = Path(__file__).parents[2] / "src/tool/foreign_list.h"
    rows = re.search(r"#define FOREIGN_OPTIONS\(F\)(.*?)\n\n", source.read_text(), re.DOTALL)[1]
    ours = {"type": "output_type", "output": "out"}
    count = 0
    for names, write in re.findall(r'F\("([^"]*)",[\s\\]*"([^"]*)"', rows):
        options = options_of(write)
        for name in names.replace("-", "_").split():
            if name in _names.ARGUMENTS:
                continue
            value = "w.npy" if "filter" in options else 1
            text = _names.instead_of(name, _names.Call({name: value}), ())
            assert text is not None, name
            assert {ours.get(option, option) for option in options} <= set(re.findall(r"(\w+)=", text)), (name, text)
            count += 1
    assert count > 40
    rows = re.search(r"#define FOREIGN_AXES\(A\)(.*?)\n\n", source.read_text(), re.DOTALL)[1]
    for names, absent, write in re.findall(r'A\("([^"]*)", "(\d)", "([^"]*)"', rows):
        for name in names.replace("-", "_").split():
            for side, values in {"h": f"(3, {absent})", "w": f"({absent}, 3)"}.items():
                text = _names.instead_of(f"{name}_{side}", _names.Call({f"{name}_{side}": 3}), ())
                assert text == ", ".join(f"{option}={values}" for option in options_of(write)), name
            count += 1
    assert count > 48
