# SPDX-License-Identifier: Apache-2.0
"""PyTorch, against its own operators and the conformance vectors. Each test also looks at who computed."""

from __future__ import annotations

import copy
import ctypes
import io
import logging
import os
import pickle
import re
import runpy
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from test_readme import tutorial  # noqa: E402
from test_threads import resident_bytes  # noqa: E402
from test_vectors import CASES, load  # noqa: E402
from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.nn import functional  # noqa: E402

import tconv_cl  # noqa: E402
import tconv_cl.torch  # noqa: E402
from tconv_cl._torch import tensors as inside  # noqa: E402
from tconv_cl.torch import convert, dispatch, explain, revert, statistics  # noqa: E402

THREADS = 8
CALLS = int(os.environ.get("TCONV_CL_TEST_CALLS", "200"))
GROWTH = 8 << 20  # bytes of resident memory that allocators may take after the warm-up
OURS = (tconv_cl.torch.conv_transpose1d, tconv_cl.torch.conv_transpose2d, tconv_cl.torch.conv_transpose3d)
THEIRS = (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d)
LAYERS = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
OPERATOR = torch.ops.tconv_cl.conv_transpose
ROUNDOFF = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def test_example_of_a_gradient(capsys):
    """It compares itself with torch.nn.grad.conv2d_input, and fails if they differ."""
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "gradient" / "input_gradient.py"), run_name="__main__")
    assert "72 gradients and a backward pass" in capsys.readouterr().out


class Counted:
    """What happens in a with statement: by default something is computed, all of it by tconv-cl."""

    def __init__(self, computed=None, fallbacks=0, packed=None):
        self.wanted = {"computed": computed, "fallbacks": fallbacks, "packed": packed}

    def __enter__(self):
        self.before = statistics()

    def __exit__(self, kind, *_):
        if kind is not None:
            return
        happened = {name: getattr(statistics(), name) - getattr(self.before, name) for name in self.wanted}
        assert happened["computed"] + happened["fallbacks"] > 0
        for name, wanted in self.wanted.items():
            assert wanted is None or happened[name] == wanted, happened


def random(*shape, dtype=torch.float32, seed=1):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).sub(0.5).to(dtype)


def bound(data, weight, bias, options, wanted):
    """How far a result in the type of `data` may be from `wanted`, a result in f64: gamma(n) times the sum of the
    magnitudes of all n terms, in the type of the sums, and one rounding to the type of the output, whose smallest
    numbers lie further apart."""
    axes = data.dim() - 2
    terms = weight.numel() // weight.shape[1] + 1
    unit = min(ROUNDOFF[data.dtype], ROUNDOFF[torch.float32])
    magnitudes = THEIRS[axes - 1](
        data.double().abs(), weight.double().abs(), None if bias is None else bias.double().abs(), **options
    )
    sums = terms * unit / (1 - terms * unit) * magnitudes
    return sums + ROUNDOFF[data.dtype] * (wanted.abs() + sums) + torch.finfo(data.dtype).tiny * ROUNDOFF[data.dtype]


def assert_close(output, data, weight, bias=None, **options):
    """Against torch's own operator in f64."""
    wide = [None if tensor is None else tensor.detach().double() for tensor in (data, weight, bias)]
    wanted = THEIRS[data.dim() - 3](*wide, **options)
    limit = bound(data.detach(), weight.detach(), None if bias is None else bias.detach(), options, wanted)
    if data.dtype == torch.float64:
        limit = 2 * limit  # torch's rounds as well
    assert output.shape == wanted.shape and output.dtype == data.dtype
    assert torch.all((output.detach().double() - wanted).abs() <= limit)


def model(*, dtype=torch.float32):
    torch.manual_seed(1)
    layers = (
        nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
        nn.ReLU(),
        nn.Conv2d(6, 4, 3),
        nn.ConvTranspose2d(4, 3, (2, 3), dilation=(1, 2), bias=False),
        nn.GELU(),
    )
    return nn.Sequential(*layers).to(dtype)


def converted(own, **options):
    ours = copy.deepcopy(own)
    assert convert(ours, **options) is ours
    assert len(explain(ours).converted) == sum(isinstance(module, LAYERS) for module in own.modules())
    return ours


def close(one, other, tolerance=1e-5):
    torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


# ---- vectors ----


def in_torchs_words(row):
    """The case as torch takes it, or None: the same padding on both sides, and an output padding that torch allows."""
    name = row["id"]
    data, weight, wanted = (torch.from_numpy(load("data", name, what)) for what in ("data", "filter", "output"))
    if data.dim() > 5:
        return None
    groups = int(row["groups"])
    if row["op"] == "group_conv_backprop":
        groups, weight = weight.shape[0], weight.flatten(0, 1)
    if row["data_format"] == "NXC":
        data, wanted = data.movedim(-1, 1), wanted.movedim(-1, 1)
    if row["filter_format"] == "XIO":
        weight = weight.movedim((-1, -2), (0, 1))
    lists = {name: [int(number) for number in row[name].split()] for name in ("strides", "dilations")}
    padding = [int(number) for number in row["resolved_pads_begin"].split()]
    output_padding = []
    for axis, (s, d, p) in enumerate(zip(*lists.values(), padding, strict=True), 2):
        extra = wanted.shape[axis] - (s * (data.shape[axis] - 1) - 2 * p + d * (weight.shape[axis] - 1) + 1)
        if p < 0 or not 0 <= extra < max(s, d):
            return None
        output_padding.append(extra)
    options = {"stride": lists["strides"], "dilation": lists["dilations"], "padding": padding, "groups": groups}
    return data, weight, wanted, {**options, "output_padding": output_padding}


EXPRESSIBLE = {row["id"]: case for row in CASES if (case := in_torchs_words(row)) is not None}


def test_most_cases_are_expressible():
    assert len(EXPRESSIBLE) == 97


@pytest.mark.parametrize("way", ["function", "dispatch"])
@pytest.mark.parametrize("row", [row for row in CASES if row["id"] in EXPRESSIBLE], ids=lambda row: row["id"])
def test_vectors(row, way):
    data, weight, wanted, options = EXPRESSIBLE[row["id"]]
    axes = data.dim() - 2
    with Counted(computed=1):
        if way == "function":
            output = OURS[axes - 1](data, weight, **options)
        else:
            with dispatch():
                output = THEIRS[axes - 1](data, weight, **options)
    assert output.shape == wanted.shape and output.dtype == wanted.dtype
    if row["check"] == "exact":
        assert torch.equal(output, wanted)
    else:
        limit = torch.from_numpy(load("data", row["id"], "bound"))
        if row["data_format"] == "NXC":
            limit = limit.movedim(-1, 1)
        assert torch.all((output.double() - wanted).abs() <= limit)


# ---- the functions ----


def problem(seed):
    """Tensors and attributes of a random call that torch accepts."""
    dice = np.random.default_rng(seed)

    def numbers(low, high):
        return [int(number) for number in dice.integers(low, high, axes)]

    axes = int(dice.integers(1, 4))
    groups, ci, co = (int(number) for number in dice.integers(1, 5, 3))
    stride, dilation, kernel, extents = numbers(1, 4), numbers(1, 4), numbers(1, 5), numbers(1, 9 - axes)
    spans = list(zip(stride, dilation, kernel, extents, strict=True))
    output_padding = [int(dice.integers(0, max(s, d))) for s, d, _, _ in spans]
    padding = [int(dice.integers(0, ((x - 1) * s + d * (k - 1)) // 2 + 1)) for s, d, k, x in spans]
    dtype = list(ROUNDOFF)[seed % 4]
    data = random(int(dice.integers(1, 4)), groups * ci, *extents, dtype=dtype, seed=seed)
    weight = random(groups * ci, co, *kernel, dtype=dtype, seed=seed + 1)
    bias = random(groups * co, dtype=dtype, seed=seed + 2) if seed % 3 else None
    options = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    return axes, data, weight, bias, {**options, "groups": groups}


@pytest.mark.parametrize("seed", range(48))
def test_random_calls(seed):
    axes, data, weight, bias, options = problem(seed)
    with Counted(computed=2):
        assert_close(OURS[axes - 1](data, weight, bias, **options), data, weight, bias, **options)
        with dispatch():
            output = THEIRS[axes - 1](data[0], weight, bias, **options)
    assert_close(output[None], data[:1], weight, bias, **options)


@pytest.mark.parametrize("dtype", ROUNDOFF, ids=str)
def test_special_numbers(dtype):
    """Small integers come out exactly, infinity and NaN where they are used."""
    data, weight = random(1, 3, 5, 6).mul(8).round().to(dtype), random(3, 2, 3, 3, seed=2).mul(8).round().to(dtype)
    assert torch.equal(tconv_cl.torch.conv_transpose2d(data, weight), functional.conv_transpose2d(data, weight))
    data[0, 0, 2, 2], data[0, 1, 4, 5] = torch.inf, torch.nan
    with Counted(computed=1):
        output = tconv_cl.torch.conv_transpose2d(data, weight + 9, stride=3)
    wanted = functional.conv_transpose2d(data.double(), weight.double() + 9, stride=3)
    torch.testing.assert_close(output, wanted.to(dtype), rtol=0, atol=0, equal_nan=True)


def test_signature():
    """Numbers, lists of one, tuples, positions; data without a batch."""
    data, weight, bias = random(2, 4, 5, 6), random(4, 3, 3, 3), random(6)
    arguments = (bias, [2], (1, 0), 1, 2, 1)
    with Counted(computed=2):
        output = tconv_cl.torch.conv_transpose2d(data, weight, *arguments)
        close(output, functional.conv_transpose2d(data, weight, *arguments))
        assert torch.equal(tconv_cl.torch.conv_transpose2d(data[1], weight, *arguments), output[1])
    with pytest.raises(RuntimeError, match="conv_transpose2d takes data of 3 or 4 axes"):
        tconv_cl.torch.conv_transpose2d(data[0, 0], weight)


def test_memory_formats():
    """Channels-last data stay so, and no tensor is copied that lies dense in either order."""
    data, weight = random(2, 8, 5, 6), random(8, 4, 3, 3)
    last = data.to(memory_format=torch.channels_last)
    seen = []
    compute = tconv_cl._torch.tensors.compute

    def spy(layer, resolved, tensors, **others):
        given = tconv_cl._library.Tensors.from_buffer_copy(tensors)
        seen.append((given.data.host, given.filter.host, given.output.host))
        return compute(layer, resolved, tensors, **others)

    with Counted(computed=4), pytest.MonkeyPatch.context() as patch:
        patch.setattr(tconv_cl._torch.tensors, "compute", spy)
        for tensor in (data, last):
            output = tconv_cl.torch.conv_transpose2d(tensor, weight)
            assert output.stride() == functional.conv_transpose2d(tensor, weight).stride()
            assert seen.pop() == (tensor.data_ptr(), weight.data_ptr(), output.data_ptr())
            assert_close(output, tensor, weight)
        for tensor, other in ((data[:, :, ::2], weight), (data, weight.to(memory_format=torch.channels_last))):
            assert_close(tconv_cl.torch.conv_transpose2d(tensor, other), tensor, other)


def test_views_that_torch_resolves_later():
    data, weight = random(1, 2, 5), random(2, 2, 3)
    negative = torch.complex(data, data).conj().imag
    assert negative.is_neg()
    with Counted(computed=1):
        assert_close(tconv_cl.torch.conv_transpose1d(negative, weight), -data, weight)


def test_autocast():
    """The types are those that torch's own functions give under autocast."""
    data, weight = random(1, 4, 5, 6), random(4, 3, 3, 3)
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype), Counted(computed=2):
            output = tconv_cl.torch.conv_transpose2d(data, weight)
            assert output.dtype == functional.conv_transpose2d(data, weight).dtype == dtype
            assert_close(output, data.to(dtype), weight.to(dtype))
            output = tconv_cl.torch.conv_transpose2d(data.double(), weight.double())
            assert output.dtype == functional.conv_transpose2d(data.double(), weight.double()).dtype == torch.float64
        own = model()
        ours = converted(own)
        with torch.autocast("cpu", dtype), Counted(computed=4):
            wanted = own(data)
            close(ours(data), wanted, 16 * ROUNDOFF[dtype])
            with dispatch():
                close(own(data), wanted, 16 * ROUNDOFF[dtype])


# ---- PyTorch's own samples ----

SAMPLED = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("dtype", SAMPLED, ids=str)
@pytest.mark.parametrize("gradients", [False, True])
def test_samples_of_pytorch(axes, dtype, gradients):
    """The calls that PyTorch tests its own functions with (OpInfo), and their gradients."""
    from torch.testing._internal.common_methods_invocations import op_db

    (info,) = [info for info in op_db if info.name == f"nn.functional.conv_transpose{axes}d"]
    samples = list(info.sample_inputs("cpu", dtype, requires_grad=gradients))
    assert len(samples) >= 8
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-12, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
    for sample in samples:
        tensors = [tensor for tensor in (sample.input, *sample.args) if tensor is not None]
        with Counted():
            output = OURS[axes - 1](sample.input, *sample.args, **sample.kwargs)
        wide = [tensor.detach().double().requires_grad_(gradients) for tensor in tensors]
        wanted = THEIRS[axes - 1](*wide, **sample.kwargs)
        limit = {"rtol": tolerance, "atol": tolerance * max(1.0, wanted.detach().abs().max().item())}
        assert output.dtype == dtype
        torch.testing.assert_close(output.detach().double(), wanted.detach(), **limit)
        if not gradients:
            continue
        towards = random(*output.shape, dtype=dtype)
        ours = torch.autograd.grad(output, tensors, towards)
        theirs = torch.autograd.grad(wanted, wide, towards.double())
        for one, other in zip(ours, theirs, strict=True):
            limit["atol"] = 4 * tolerance * max(1.0, other.abs().max().item())
            torch.testing.assert_close(one.double(), other, **limit)


# ---- the operator ----


@pytest.mark.parametrize("activation, numbers", [("none", []), ("relu", []), ("elu", [0.5]), ("gelu_tanh", [])])
def test_derivatives(activation, numbers):
    tensors = [
        random(*shape, dtype=torch.float64, seed=i).requires_grad_()
        for i, shape in enumerate([(2, 4, 5), (4, 3, 3), (6,)])
    ]
    rest = ([2], [1], [1], 2, [2], activation, numbers)
    with Counted():
        torch.library.opcheck(OPERATOR, (*tensors, *rest))
        assert torch.autograd.gradcheck(lambda *tensors: OPERATOR(*tensors, *rest), tensors)
        assert torch.autograd.gradgradcheck(lambda *tensors: OPERATOR(*tensors, *rest), tensors)


def test_the_operator_without_gradients():
    last = random(1, 4, 5, 6).to(memory_format=torch.channels_last)
    rest = ([2, 2], [0, 0], [0, 0], 1, [1, 1])
    with Counted():
        torch.library.opcheck(OPERATOR, (last, random(4, 3, 3, 3), None, *rest))
        torch.library.opcheck(OPERATOR, (last[:, :, 1:], random(4, 3, 3, 3), random(3), *rest))


def test_training():
    own = model()
    ours = converted(own)
    for one in (own, ours):
        optimizer = torch.optim.SGD(one.parameters(), lr=0.1)
        before = statistics()
        for step in range(5):
            optimizer.zero_grad()
            one(random(2, 4, 5, 6, seed=step)).square().sum().backward()
            optimizer.step()
    assert statistics().computed - before.computed == 10 and statistics().fallbacks == before.fallbacks
    for wanted, parameter in zip(own.parameters(), ours.parameters(), strict=True):
        close(parameter, wanted, 1e-4)


@pytest.mark.parametrize("gradients", [False, True])
def test_compile(gradients):
    own = model()
    ours = torch.compile(converted(own), fullgraph=True, dynamic=True, backend="aot_eager")
    with torch.set_grad_enabled(gradients), Counted(computed=6):
        for extent in (5, 6, 9):
            data = random(2, 4, extent, 7)
            output, wanted = ours(data), own(data)
            close(output, wanted)
            if gradients:
                output.sum().backward()
                wanted.sum().backward()
    if gradients:
        for wanted, parameter in zip(own.parameters(), ours.parameters(), strict=True):
            close(parameter.grad, wanted.grad, 1e-4)


def test_export():
    own = model()
    extent = torch.export.Dim("extent", min=3, max=64)
    program = torch.export.export(converted(own), (random(1, 4, 5, 6),), dynamic_shapes=({2: extent},))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    with Counted(computed=2):
        close(torch.export.load(file).module()(random(1, 4, 9, 6)), own(random(1, 4, 9, 6)))


def test_tracers():
    own, data = model(), random(1, 4, 5, 6)
    ours = converted(own)
    with Counted(computed=2):
        close(torch.fx.symbolic_trace(ours)(data), own(data))
    traced = torch.jit.trace(ours, data)
    with Counted(computed=2), torch.no_grad():
        close(traced(data), own(data))


def test_transforms_of_functions():
    """torch.func and forward-mode derivatives: an operator of one's own takes part in vmap alone."""
    data, weight = random(2, 4, 5), random(4, 3, 3)

    def derivatives(function):
        jvp = torch.func.jvp(lambda x: function(x, weight), (data,), (data,))[1]
        grad = torch.func.grad(lambda x: function(x, weight).square().sum())(data)
        batch = torch.vmap(function)(data[None], weight[None])
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(data, data)
            tangent = torch.autograd.forward_ad.unpack_dual(function(dual, weight)).tangent
        return jvp, grad, batch, tangent

    with Counted(computed=1, fallbacks=3):
        ours = derivatives(tconv_cl.torch.conv_transpose1d)
    for output, wanted in zip(ours, derivatives(functional.conv_transpose1d), strict=True):
        close(output, wanted)


# ---- what is empty ----


def outcome(function):
    """What a function returns, or the error that it raises."""
    try:
        output = function()
    except (RuntimeError, ValueError, IndexError) as error:
        return type(error), str(error)
    return output.shape, output.stride(), output.detach()


def close_outcome(output, wanted):
    assert output[:-1] == wanted[:-1]
    if isinstance(wanted[-1], str):
        assert output[-1] == wanted[-1]
    else:
        close(output[-1], wanted[-1])


EMPTY = {  # channels of data and weight, output channels, kernel
    "nothing": (4, 4, 3, 3),
    "data channels": (0, 0, 3, 3),
    "channels of the weight": (4, 0, 3, 3),
    "channels of the data": (0, 4, 3, 3),
    "output channels": (4, 4, 0, 3),
    "kernel": (4, 4, 3, 0),
    "output": (4, 4, 3, 1),
}


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("what", EMPTY)
def test_what_is_empty(what, axes):
    """Shapes, results and errors of PyTorch, for whatever is empty: without a fallback, which would log."""
    channels, own_channels, outputs, kernel = EMPTY[what]
    padding = 3 if what == "output" else 1
    own, ours = getattr(functional, f"conv_transpose{axes}d"), getattr(tconv_cl.torch, f"conv_transpose{axes}d")
    before = statistics().fallbacks
    for batch in ((), (0,), (2,)):
        for extents in ([5] * axes, [0] + [5] * (axes - 1), [5] * (axes - 1) + [0], [0] * axes):
            data, weight = random(*batch, channels, *extents), random(own_channels, outputs, *[kernel] * axes)
            for groups, gradients in ((1, False), (2, False), (1, True)):
                bias = random(outputs * groups)
                arguments = (data, weight, bias, 2, padding, 0, groups)
                with torch.set_grad_enabled(gradients):
                    wanted = outcome(lambda: own(*arguments))
                    close_outcome(outcome(lambda: ours(*arguments)), wanted)
                    with dispatch(fallback="error"):
                        close_outcome(outcome(lambda: own(*arguments)), wanted)
    assert statistics().fallbacks == before


@pytest.mark.parametrize("extents", [(0, 4), (4, 0), (1, 1)], ids=str)
def test_modules_on_what_is_empty(extents):
    """Alone, with what is fused, in a compiled function, and backwards. With extents of 1 the output is empty."""
    own = nn.Sequential(nn.ConvTranspose2d(4, 3, 2, padding=1), nn.BatchNorm2d(3), nn.ReLU()).eval()
    ours = converted(own, fallback="error")
    compiled = torch.compile(ours, backend="aot_eager", fullgraph=True)
    data = random(1, 4, *extents)
    wanted = outcome(lambda: own(data))
    assert wanted[0] is RuntimeError and outcome(lambda: ours(data)) == wanted
    with torch.no_grad():
        assert outcome(lambda: ours(data)) == wanted
        with pytest.raises(Exception, match="Only zero batch or zero channel|Output size is too small"):
            compiled(data)
    empty = random(0, 4, 5, 5)
    with torch.no_grad():
        close_outcome(outcome(lambda: compiled(empty)), outcome(lambda: own(empty)))


# ---- modules ----


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convert_and_revert(axes):
    layer = LAYERS[axes - 1](4, 6, 3, stride=2, padding=1, groups=2)
    data, weight = random(2, 4, *[5] * axes), layer.weight
    options = {"stride": 2, "padding": 1, "groups": 2}
    assert convert(layer) is layer and isinstance(layer, LAYERS[axes - 1]) and layer.weight is weight
    assert convert(layer, device=0) is layer and explain(layer).converted == [""]
    with Counted(computed=3, packed=1):  # of the same device
        assert_close(layer(data), data, weight, layer.bias, **options)
        with torch.inference_mode():
            assert_close(layer(data), data, weight, layer.bias, **options)
        extents = [10] * axes
        assert layer(data[0], output_size=extents).shape == (6, *extents)
    assert revert(layer) is layer and type(layer) is LAYERS[axes - 1] and "tconv_cl_device" not in vars(layer)
    before = statistics()
    layer(data)
    assert statistics() == before and revert(layer) is layer


class WithForward(nn.ConvTranspose2d):
    def forward(self, data):
        return super().forward(data) + 1


class WithCall(nn.ConvTranspose2d):
    def __call__(self, data):
        return super().__call__(data) + 1


def test_what_is_left_alone(caplog):
    replaced = nn.ConvTranspose2d(1, 1, 1)
    replaced.forward = lambda data: data
    quantized = torch.ao.nn.quantized.ConvTranspose2d(1, 1, 1)
    made = dict(own=WithForward(1, 1, 1), lazy=nn.LazyConvTranspose2d(1, 1), replaced=replaced, quantized=quantized)
    made |= dict(call=WithCall(1, 1, 1), script=torch.jit.script(nn.ConvTranspose2d(1, 1, 1)))
    modules = nn.ModuleDict({**made, "other": nn.Conv2d(1, 1, 1)})
    classes = [type(module) for module in modules.values()]
    assert set(explain(modules).left) == set(made)
    with caplog.at_level(logging.WARNING, "tconv_cl"):
        assert convert(modules) is modules and [type(module) for module in modules.values()] == classes
    left = {
        "own": "its class has its own forward or call: use tconv_cl.torch.conv_transpose2d there, or call the model "
        "in a dispatch()",
        "lazy": "it has no weights yet: call the model before convert",
        "replaced": "its forward was replaced",
        "quantized": "it is of torch.ao.nn.quantized.modules.conv, and not a torch.nn.ConvTranspose1d, 2d or 3d",
        "script": "convert cannot change it: call the model in a `with tconv_cl.torch.dispatch():`",
    }
    left["call"] = left["own"]
    assert explain(modules).left == left and explain(modules).converted == []
    names = {name: type(module).__name__ for name, module in modules.items()}
    assert set(caplog.messages) == {
        f"tconv_cl: {name}, a {names[name]}, is not converted: {reason}" for name, reason in left.items()
    }
    with pytest.raises(TypeError, match="model is a function: it must be a torch.nn.Module"):
        convert(lambda data: data)


class Subclass(nn.ConvTranspose2d):
    """A user's class that computes as torch's own."""

    def __init__(self, *args, note=None, **options):
        super().__init__(*args, **options)
        self.note = note

    def extra_repr(self):
        return f"{super().extra_repr()}, note={self.note}"


def test_subclasses():
    """They are converted, and stay subclasses of their own class in all that torch does with modules."""
    own = nn.Sequential(Subclass(4, 3, 3, stride=2, note="mine"), nn.ReLU())
    ours, data = converted(own), random(1, 4, 5, 6)
    wanted = own(data)
    layer = ours[0]
    assert isinstance(layer, Subclass) and isinstance(layer, tconv_cl.torch.ConvTranspose2d)
    assert repr(layer) == repr(own[0]) and type(layer).__name__ == "Subclass"
    file = io.BytesIO()
    torch.save(ours, file)
    file.seek(0)
    copies = (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), torch.load(file, weights_only=False))
    for one in (*copies, torch.compile(ours, fullgraph=True, backend="aot_eager"), torch.fx.symbolic_trace(ours)):
        with Counted(computed=1):
            close(one(data), wanted)
    assert copies[1][0].note == "mine" and type(copies[1][0]) is type(layer)
    assert "with ReLU" in str(explain(ours))
    nn.utils.parametrizations.weight_norm(ours[0])
    with Counted(computed=2):
        close(ours(data), wanted)
        close(copy.deepcopy(ours)(data), wanted)
    convert(revert(ours))
    with Counted(computed=1):
        close(ours(data), wanted)
    nn.utils.parametrize.remove_parametrizations(ours[0], "weight")
    assert type(revert(ours)[0]) is Subclass and type(ours) is nn.Sequential
    close(ours(data), wanted)


def test_copies_and_files():
    own, data = model(), random(1, 4, 5, 6)
    ours = converted(own)
    assert ours.state_dict().keys() == own.state_dict().keys()
    file = io.BytesIO()
    torch.save(ours, file)
    file.seek(0)
    fresh = converted(model())
    nn.init.zeros_(fresh[0].weight)
    fresh.load_state_dict(own.state_dict())
    for one in (
        copy.deepcopy(ours),
        pickle.loads(pickle.dumps(ours)),
        torch.load(file, weights_only=False),
        ours[:],
        fresh,
    ):
        with Counted(computed=2):
            close(one(data), own(data))
    with Counted(computed=2):
        close(torch.func.functional_call(fresh, dict(own.named_parameters()), (data,)), own(data))


def test_weight_norm():
    data, layer = random(1, 4, 6), nn.utils.parametrizations.weight_norm(nn.ConvTranspose1d(4, 3, 3))
    wanted = layer(data)
    assert type(convert(layer).bias) is nn.Parameter
    with Counted(computed=2):
        close(layer(data), wanted)
        close(copy.deepcopy(layer)(data), wanted)
    before = statistics()
    close(revert(layer)(data), wanted)
    assert statistics() == before
    convert(layer)
    nn.utils.parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is tconv_cl.torch.ConvTranspose1d
    with Counted(computed=1):
        close(layer(data), wanted)


def test_refresh():
    """One element of many, changed in a way that torch does not count."""
    layer, data = nn.ConvTranspose1d(192, 192, 3, bias=False), random(1, 192, 4)
    convert(layer)
    with torch.no_grad():
        layer(data)
    for forget in (
        lambda: tconv_cl.torch.refresh(nn.ModuleList([layer])),
        lambda: tconv_cl.torch.refresh(layer.weight),
    ):
        with torch.no_grad(), Counted(packed=1):
            layer(data)
            layer.weight.data[5, 7, 1] += 1
            forget()
            assert_close(layer(data), data, layer.weight)


@pytest.mark.parametrize("channels", [2, 192])  # 192: so large that only some of its elements are looked at
def test_weights_that_change(channels):
    layer, data = nn.ConvTranspose1d(channels, channels, 3, bias=False), random(1, channels, 4)
    convert(layer)

    def compare():
        with torch.no_grad():
            assert_close(layer(data), data, layer.weight)

    with Counted(computed=3, packed=1), torch.no_grad():
        for _ in range(3):
            layer(data)
    changes = (
        lambda: layer.weight.add_(1),
        lambda: layer.weight[0, 0, 1].add_(1),  # not looked at in large weights
        lambda: layer.weight.data.mul_(2),
        lambda: np.add(layer.weight.detach().numpy(), 1, out=layer.weight.detach().numpy()),
        lambda: setattr(layer.weight, "data", random(channels, channels, 3)),
        lambda: setattr(layer, "weight", nn.Parameter(random(channels, channels, 3, seed=2))),
        lambda: layer.load_state_dict({"weight": random(channels, channels, 3, seed=3)}),
    )
    for change in changes:
        with torch.no_grad():
            change()
        with Counted(computed=2, packed=1):
            compare()
            compare()


def test_inference_tensors():
    with torch.inference_mode():
        data, weight = random(1, 192, 4), random(192, 192, 3, seed=91)
        with Counted(computed=3, packed=2):
            assert_close(tconv_cl.torch.conv_transpose1d(data, weight), data, weight)
            tconv_cl.torch.conv_transpose1d(data, weight)
            weight[5, 6, 1] += 1
            assert_close(tconv_cl.torch.conv_transpose1d(data, weight), data, weight)


def test_packed_weights_go_with_the_weights():
    kept = tconv_cl._torch.tensors.state.weights
    for seed in range(20):
        weight = random(64, 8, seed + 1, seed=seed)  # another size: it may lie elsewhere
        tconv_cl.torch.conv_transpose1d(random(1, 64, 4), weight)
    del weight
    tconv_cl.torch.conv_transpose1d(random(1, 2, 4), random(2, 2, 3))
    assert not [place for place in kept if place[1][:2] == (64, 8)]


@pytest.mark.parametrize("stride, extra, dilation", [(2, 2, 1), (1, 1, 1), (2, 3, 3)])
def test_an_output_padding_that_torch_refuses_is_refused(stride, extra, dilation):
    own = nn.ConvTranspose1d(4, 3, 3, stride=stride, output_padding=extra, dilation=dilation)
    data, sentence = random(2, 4, 5), "output padding must be smaller than either stride or dilation"
    for layer in (own, converted(own), converted(own, fallback="error")):
        for gradients in (True, False):
            with torch.set_grad_enabled(gradients), pytest.raises(RuntimeError, match=sentence):
                layer(data)
    with tconv_cl.torch.dispatch(), torch.no_grad(), pytest.raises(RuntimeError, match=sentence):
        own(data)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, pytest.raises(RuntimeError, match=sentence):
        converted(own)(mode.from_tensor(data))


@pytest.mark.parametrize(
    "activation", [nn.Hardtanh(-float("inf"), 0.5), nn.LeakyReLU(float("inf")), nn.ELU(float("inf"))]
)
def test_numbers_that_are_not_finite_are_not_fused(activation):
    own, data = nn.Sequential(nn.ConvTranspose1d(4, 3, 3), activation), random(2, 4, 5)
    with torch.no_grad(), Counted(computed=1):
        close(converted(own, fallback="error")(data), own(data))


# Where an activation changes the library's result by more than a rounding: not on these.
@pytest.mark.parametrize(
    "activation",
    [
        nn.ReLU(),
        nn.ReLU6(),
        nn.LeakyReLU(0.2),
        nn.Hardtanh(-0.1, 0.2),
        nn.Sigmoid(),
        nn.Tanh(),
        nn.GELU(),
        nn.GELU("tanh"),
        nn.SiLU(),
        nn.ELU(0.7),
        nn.Hardswish(),
        nn.Mish(),
        nn.Softplus(),
    ],
    ids=str,
)
def test_activations_are_fused(activation):
    own = nn.Sequential(nn.ConvTranspose1d(4, 3, 3, stride=2), activation)
    ours, data = converted(own), random(2, 4, 5)
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        seen = lambda *_: calls.append("own") or torch.zeros(1)  # noqa: E731
        patch.setattr(type(activation), "__call__", seen, raising=False)
        with torch.no_grad(), Counted(computed=1):
            output = ours(data)
    if isinstance(activation, nn.Softplus):
        assert calls == ["own"]
    else:
        assert not calls
        close(output, own(data).detach())
    with Counted(computed=1):
        close(ours(data), own(data))  # with gradients: not fused
    seen = []
    with ours[0].register_forward_hook(lambda *_: seen.append(1)), torch.no_grad():
        close(ours(data), own(data))
    assert seen == [1]
    assert type(revert(ours)) is nn.Sequential


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_batch_normalization_is_fused(axes, affine, bias):
    torch.manual_seed(1)
    norm = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[axes - 1](6, affine=affine)
    own = nn.Sequential(LAYERS[axes - 1](4, 6, 3, stride=2, groups=2, bias=bias), norm, nn.LeakyReLU(0.1))
    data = random(3, 4, *[5] * axes)
    for _ in range(3):
        own(data)  # so that there are statistics
    if affine:
        nn.init.uniform_(norm.weight)
        nn.init.uniform_(norm.bias)
    ours = converted(own.eval())
    calls = []
    for module in (type(norm), nn.LeakyReLU):
        with pytest.MonkeyPatch.context() as patch, torch.no_grad(), Counted(computed=1):
            patch.setattr(module, "__call__", lambda *_: calls.append("own"), raising=False)
            output = ours(data)
        close(output, own(data).detach())
    assert not calls
    with Counted(computed=2):
        close(ours(data), own(data))  # with gradients: not fused
        with torch.no_grad(), ours[1].register_forward_hook(lambda *_: calls.append("seen")):
            close(ours(data), own(data))
    assert calls == ["seen"]
    with torch.no_grad(), Counted(computed=1):  # in training the statistics are the data's
        close(copy.deepcopy(ours).train()(data), copy.deepcopy(own).train()(data), 1e-4)
    with torch.no_grad(), Counted(computed=0, fallbacks=1), pytest.MonkeyPatch.context() as patch:
        patch.setattr(tconv_cl._torch.tensors, "again", lambda *_: None)
        patch.setattr(tconv_cl._torch.tensors, "refusal", lambda *_: "of a test")
        close(ours(data), own(data))


def test_the_operators_own_activation_where_torch_computes():
    data, weight = random(1, 2, 5), random(2, 2, 3)
    with Counted(computed=0, fallbacks=1):
        output = OPERATOR(data, weight, None, [1], [0], [0], 1, [1], "leaky_relu", [0.1], 99)
    close(output, functional.leaky_relu(functional.conv_transpose1d(data, weight), 0.1))


# ---- TorchScript ----


@pytest.mark.parametrize("way", ["script", "trace", "freeze", "optimize_for_inference"])
def test_torchscript(way):
    own, data = model().eval(), random(1, 4, 5, 6)
    script = torch.jit.trace(own, data) if way == "trace" else torch.jit.script(own)
    if way in ("freeze", "optimize_for_inference"):
        script = getattr(torch.jit, way)(script)
    if way != "optimize_for_inference":  # such ones cannot be saved
        file = io.BytesIO()
        torch.jit.save(script, file)
        file.seek(0)
        script = torch.jit.load(file)
    with Counted(computed=16, packed=2):
        for mode in (torch.no_grad, torch.inference_mode):
            with mode(), dispatch():
                for _ in range(4):
                    output = script(data)
            close(output, own(data).detach())


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_what_dispatch_catches(axes, mode):
    """Whatever torch calls it, with all arguments or the fewest; and nothing else."""
    extents = [5] * axes
    data, weight, bias = random(1, 4, *extents), random(4, 3, *[3] * axes), random(3)
    options = {"stride": 2, "padding": 1, "output_padding": 1, "dilation": 2}
    lists = ([2] * axes, [1] * axes, [1] * axes)
    rest = (True, [0] * axes, 1, False, False, False)
    with mode(), dispatch(), Counted(computed=4):
        least = THEIRS[axes - 1](data, weight)
        most = THEIRS[axes - 1](data, weight, bias, **options)
        older = torch.ops.aten._convolution.deprecated(data, weight, bias, *lists, *rest)
        traced = torch.ops.aten._convolution.default(data, weight, bias, *lists, *rest, False)
    assert_close(least, data, weight)
    assert_close(most, data, weight, bias, **options)
    assert_close(older, data, weight, bias, stride=2, padding=1)
    assert torch.equal(traced, older)
    before = statistics()
    with mode(), dispatch():
        torch.convolution(data, random(3, 4, *[3] * axes), None, *lists, False, [0] * axes, 1)
    assert statistics() == before


def test_dispatch_with_gradients():
    own, data = model(), random(1, 4, 5, 6)
    own(data).sum().backward()
    wanted = [parameter.grad for parameter in own.parameters()]
    own.zero_grad()
    with dispatch(device=0), Counted(computed=2):
        own(data).sum().backward()
    for gradient, parameter in zip(wanted, own.parameters(), strict=True):
        close(parameter.grad, gradient)


# ---- where torch computes ----


def test_fallbacks(caplog):
    """torch's own results and errors, and one line for each reason and layer."""

    class Own(torch.Tensor):
        pass

    data, weight = random(1, 2, 5).as_subclass(Own), random(2, 2, 3)
    with tconv_cl.trace() as told, caplog.at_level(logging.WARNING, "tconv_cl"), Counted(computed=0, fallbacks=4):
        for _ in range(2):
            assert torch.equal(tconv_cl.torch.conv_transpose1d(data, weight), functional.conv_transpose1d(data, weight))
        with dispatch():
            functional.conv_transpose1d(data, weight)
        with pytest.raises(RuntimeError, match="to have 1 channels"):
            tconv_cl.torch.conv_transpose1d(data, weight[:1])
    assert [(event.kind, event.name) for event in told] == [("fallback", "torch")] * 4
    assert told[0].problem.endswith("float32 weights [2, 2, 3]") and told[0].message.startswith("data is a Own")
    assert len(caplog.messages) == 2
    assert re.fullmatch(
        r"tconv_cl: PyTorch's own operator computes .* float32 weights \[2, 2, 3\]: data is a Own", caplog.messages[0]
    )


def test_refusals():
    f32, weight = random(1, 2, 5), random(2, 2, 3)

    class Tensor(torch.Tensor):
        pass

    def reason(data, weight=weight, bias=None):
        return tconv_cl._torch.tensors.refusal(data, weight, bias)

    assert reason(f32) is None
    assert reason(f32.as_subclass(Tensor)) == "data is a Tensor"
    assert reason(f32, weight.to("meta")) == "weight is on the device meta"
    assert reason(f32.to_sparse()) == "data has the layout torch.sparse_coo"
    assert reason(f32.cfloat()) == "data has elements of type torch.complex64"
    assert "bias of torch.float64" in reason(f32, bias=random(2).double())
    assert tconv_cl.torch.conv_transpose1d(f32.to("meta"), weight.to("meta")).shape == (1, 2, 7)
    assert reason(f32, bias=random(2, 1)) == "bias has 2 axes"
    with (
        Counted(computed=0, fallbacks=1),
        pytest.raises(RuntimeError, match="expected bias to be 1-dimensional with 2"),
    ):
        tconv_cl.torch.conv_transpose1d(f32, weight, random(3))


@pytest.mark.parametrize("last", [False, True])
def test_calls_like_an_earlier_one(last):
    """What is kept of a call answers only calls that are like it in everything."""
    data, weight, bias = random(2, 4, 5, 6), random(4, 3, 3, 3), random(3)
    if last:
        data, weight = data.to(memory_format=torch.channels_last), weight.to(memory_format=torch.channels_last)
    negative = torch.complex(bias, bias).conj().imag

    class Own(torch.Tensor):
        pass

    def check(data=data, weight=weight, bias=bias, stride=2):
        output = tconv_cl.torch.conv_transpose2d(data, weight, bias, stride)
        wanted = functional.conv_transpose2d(data, weight, bias, stride)
        assert (type(output), output.dtype, output.stride()) == (type(wanted), wanted.dtype, wanted.stride())
        close(output.detach(), wanted.detach(), 1e-5 if output.dtype == torch.float32 else 1e-2)
        return output

    check()
    with Counted(computed=1), pytest.MonkeyPatch.context() as patch:
        patch.delattr(tconv_cl._torch.tensors, "run")  # as the first call has asked all
        check()
    layer = nn.ConvTranspose2d(4, 3, 3, 2)
    own = copy.deepcopy(layer)
    convert(layer)
    with torch.no_grad(), Counted(computed=5):
        for options in ({}, {"output_size": [12, 14]}, {"output_size": [12, 14]}):
            close(layer(data, **options), own(data, **options))
        layer.stride = own.stride = [2, 2]
        for _ in range(2):
            close(layer(data), own(data))
    with pytest.raises(RuntimeError, match="conv_transpose1d takes"):
        tconv_cl.torch.conv_transpose1d(data, weight, bias, (2, 2), (0, 0), (0, 0), 1, (1, 1))
    with Counted(computed=9):
        for stride in (2, [2], (2, 2), [2, 2]):
            check(stride=stride)
        check(bias=random(6)[::2])
        check(bias=negative)
        check(bias=None)
        check(data=torch.complex(data, data).conj().imag)
        check(data=data[:1])
    with Counted(computed=1), torch.no_grad():
        weight.data.mul_(3)
        check()
    for name, tensor in {"data": data, "weight": weight, "bias": bias}.items():
        with Counted(computed=0, fallbacks=1):
            check(**{name: tensor.as_subclass(Own)})
    with Counted(computed=0, fallbacks=1), pytest.raises(RuntimeError, match="bias"):
        check(bias=random(4))
    with Counted(computed=1), torch.autocast("cpu", torch.bfloat16):
        assert check().dtype == torch.bfloat16
    with Counted(computed=1):
        check(weight=weight.requires_grad_()).sum().backward()
    assert weight.grad is not None
    with Counted(computed=1), torch.inference_mode():
        check()
    _, tangent = torch.func.jvp(lambda x: tconv_cl.torch.conv_transpose2d(x, weight, bias, 2), (data,), (data,))
    close(tangent.detach(), functional.conv_transpose2d(data, weight, None, 2).detach())


def test_fallback_error():
    layer, data = nn.ConvTranspose1d(2, 2, 3), random(1, 2, 5)
    for device in (99, "no such device", -1):
        with pytest.raises((tconv_cl.Error, tconv_cl.RequestError), match="device"):
            convert(layer, device=device)
        with pytest.raises((tconv_cl.Error, tconv_cl.RequestError), match="device"):
            dispatch(device=device)
    assert type(layer) is nn.ConvTranspose1d
    with pytest.raises(ValueError, match="fallback is 'never': it must be 'warn' or 'error'"):
        convert(layer, fallback="never")
    own = copy.deepcopy(layer)
    assert explain(convert(layer, "cpu", fallback="error")).converted == [""]
    with Counted(computed=1):
        close(layer(data), own(data))
    with Counted(computed=2), dispatch(0, fallback="error"):
        close(layer(data), own(data))
    for run in (lambda: layer(data.long()), lambda: torch.func.jvp(layer, (data,), (data,))):
        with pytest.raises(
            RuntimeError, match="tconv_cl does not compute a transposed convolution with float32 weights"
        ):
            run()
    with dispatch(fallback="error"), pytest.raises(RuntimeError, match="tconv_cl does not compute"):
        functional.conv_transpose1d(data.int(), random(2, 2, 3).int())
    convert(layer)
    with Counted(computed=0, fallbacks=1):
        torch.func.jvp(layer, (data,), (data,))


SEARCH = """
import sys
import torch
import tconv_cl.torch
own, data = torch.nn.ConvTranspose2d(3, 2, 4, stride=2), torch.ones(1, 3, 4, 5)
wanted, search = own(data), None if sys.argv[1] == "None" else sys.argv[1]
with torch.inference_mode(), tconv_cl.torch.dispatch(fallback="error", search=search):
    torch.testing.assert_close(own(data), wanted, rtol=1e-5, atol=1e-5)
tconv_cl.torch.convert(own, fallback="error", search=search)
torch.testing.assert_close(own(data), wanted, rtol=1e-5, atol=1e-5)
own(data).sum().backward()
assert not hasattr(tconv_cl.torch.revert(own), "tconv_cl_search")
"""


@pytest.mark.parametrize("search, stored", [(None, 0), ("model", 0), ("records", 0), ("measure", 1), ("renew", 1)])
def test_the_algorithm_can_be_searched_for(search, stored, tmp_path):
    environment = dict(os.environ, TCONV_CL_CACHE_DIR=str(tmp_path / "cache"))
    environment.pop("TCONV_CL_SEARCH", None)
    subprocess.run([sys.executable, "-c", SEARCH, str(search)], check=True, env=environment)
    files = (tmp_path / "cache").iterdir() if (tmp_path / "cache").exists() else ()
    assert sum(b"best_ms " in file.read_bytes() for file in files) == stored


def test_a_search_that_does_not_exist_is_refused():
    layer = nn.ConvTranspose1d(2, 2, 3)
    for use in (lambda: convert(layer, search="fastest"), lambda: dispatch(search="fastest")):
        with pytest.raises(
            tconv_cl.RequestError, match="search is 'fastest': it must be model, records, measure or renew"
        ):
            use()
    assert type(layer) is nn.ConvTranspose1d


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex(dtype):
    """As before: torch's own operators, with gradients."""
    own = nn.ConvTranspose2d(2, 3, 3, stride=2, dtype=dtype)
    ours, data = converted(own), torch.complex(random(1, 2, 4, 4), random(1, 2, 4, 4, seed=2)).to(dtype)
    with Counted(computed=0, fallbacks=2):
        for one in (own, ours):
            one(data).abs().sum().backward()
        assert torch.equal(ours(data), own(data))
        assert torch.equal(ours.weight.grad, own.weight.grad)
    with dispatch():
        assert torch.equal(own(data), ours(data))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_quantization_is_refused():
    from torch.ao import quantization
    from torch.ao.quantization import quantize_fx

    mapping = quantization.get_default_qconfig_mapping("x86")
    data = random(1, 2, 5, 5)
    own = nn.Sequential(nn.Conv2d(2, 2, 1), nn.ConvTranspose2d(2, 2, 3)).eval()
    eager = converted(own)
    eager.qconfig = quantization.default_qconfig
    quantization.prepare(eager, inplace=True)
    traced = converted(own)
    for run in (
        lambda: eager(data),
        lambda: quantize_fx.prepare_fx(traced, mapping, (data,)),
        lambda: tconv_cl.torch.conv_transpose2d(torch.quantize_per_tensor(data, 0.1, 0, torch.quint8), own[1].weight),
    ):
        with pytest.raises(RuntimeError, match=r"tconv_cl\.torch\.revert\(model\) before it prepares the model"):
            run()
    revert(traced)
    quantize_fx.prepare_fx(traced, mapping, (data,))


def test_flops_are_counted():
    from torch.utils.flop_counter import FlopCounterMode

    own, data = model(), random(2, 4, 5, 6)
    counts = []
    for one in (own, converted(own)):
        with FlopCounterMode(display=False) as counter:
            one(data).sum().backward()
        counts.append(counter.get_total_flops())
    assert counts[0] == counts[1] > 0


def test_the_profiler_sees_the_operator():
    ours = converted(model())
    with torch.inference_mode(), torch.profiler.profile() as profile:
        ours(random(2, 4, 5, 6))
    assert "tconv_cl::conv_transpose" in [event.key for event in profile.key_averages()]


def in_process(code, timeout=120, **environment):
    """What a Python program of its own says, and that it ends well."""
    start = (
        "import os, sys, torch\nfrom torch.nn import functional\n"
        "data, weight = torch.ones(1, 2, 5), torch.ones(2, 2, 3)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", start + code],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


COMPARE = """
def compare():
    assert torch.equal(tconv_cl.torch.conv_transpose1d(data, weight), functional.conv_transpose1d(data, weight))
"""


def test_no_device():
    said = in_process(
        f"import tconv_cl.torch{COMPARE}\ncompare(); compare()\nassert tconv_cl.torch.statistics()[:2] == (0, 2)",
        OCL_ICD_VENDORS="/nowhere",
    )
    assert len(re.findall("^tconv_cl: PyTorch's own operator computes .* device", said, re.MULTILINE)) == 1


def test_no_ml_dtypes():
    said = in_process(
        f"sys.modules['ml_dtypes'] = None\nimport tconv_cl.torch{COMPARE}\ncompare()\n"
        "data, weight = data.bfloat16(), weight.bfloat16()\ncompare()\n"
        "assert tconv_cl.torch.statistics()[:2] == (2, 0)"
    )
    assert said == ""


@pytest.mark.parametrize(
    "parent",
    [
        "tconv_cl.devices()",
        "compute()",
        "layer = torch.nn.ConvTranspose1d(2, 2, 3); tconv_cl.torch.convert(layer); layer(data)",
        "threading.Thread(target=often, daemon=True).start(); time.sleep(0.5)",
        "with tconv_cl.torch.dispatch(): functional.conv_transpose1d(data, weight)",
    ],
)
def test_fork(parent):
    """A child of a process that used OpenCL computes by torch's own operators, at once; its parent goes on."""
    said = in_process(
        f"import signal, threading, time\nimport tconv_cl.torch{COMPARE}\n"
        "def often():\n    while True:\n        compare()\n"
        f"compute = compare\n{parent}\nchild = os.fork()\nif child == 0:\n    signal.alarm(5)\n"
        "before = tconv_cl.torch.statistics()[:2]\ncompare()\nafter = tconv_cl.torch.statistics()[:2]\n"
        "if child == 0:\n    os._exit(0 if (before, after) == ((0, 0), (0, 1)) else 3)\n"
        "assert after[0] > before[0] and after[1] == 0\n"
        "assert os.waitpid(child, 0)[1] == 0\nos._exit(0)"
    )
    assert "was forked from process" in said


# ---- threads ----


def test_the_threads_of_torch(monkeypatch):
    """They compute layers that are not small, but not while somebody traces; a single one is that of the call."""
    if tconv_cl.devices()[tconv_cl._device.number_of(None)].threads < 2:
        pytest.skip("the device's driver has threads of its own, or there is one processor")
    calls = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.CFUNCTYPE(None, ctypes.c_void_p), ctypes.c_void_p)
    def pool(_, task, argument):
        calls.append(argument)
        task(argument)

    monkeypatch.setattr(inside, "_openmp", lambda: (pool, None))
    monkeypatch.setattr(inside, "_run", inside._run.__wrapped__)  # which is not kept
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    data, weight = random(1, 8, 90, 90), random(8, 8, 4, 4)
    for expected in (1, 2):
        assert_close(OURS[1](data, weight, stride=2), data, weight, stride=2)
        assert len(calls) == expected
    assert_close(OURS[1](data[:, :, :1, :9], weight, stride=2), data[:, :, :1, :9], weight, stride=2)
    with tconv_cl.trace() as events:
        assert_close(OURS[1](data, weight, stride=2), data, weight, stride=2)
    assert events and len(calls) == 2
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    OURS[1](data, weight, stride=2)
    with tconv_cl.trace() as events:
        OURS[1](data, weight, stride=2)
    assert {event.thread for event in events} == {threading.get_ident()}
    assert len(calls) == 2


@pytest.mark.parametrize("count", (1, 2, 5))
def test_layers_beside_the_threads_of_torch(count):
    openmp = "ATen parallel backend: OpenMP" in torch.__config__.parallel_info() and sys.platform == "linux"
    in_process(
        "import tconv_cl.torch, tconv_cl._torch.tensors as inside\n"
        f"torch.set_num_threads({count})\n"
        "data, weight = torch.randn(2, 8, 233, 235), torch.randn(8, 4, 3, 3)\n"
        "for turn in range(50):\n"
        "    data = functional.conv2d(data, torch.eye(8).reshape(8, 8, 1, 1))  # so that the threads are awake\n"
        "    ours = tconv_cl.torch.conv_transpose2d(data, weight, stride=2)\n"
        "    assert torch.allclose(ours, functional.conv_transpose2d(data, weight, stride=2), atol=1e-4), turn\n"
        f"assert (bool(inside._how().on_threads), inside._how().threads) == ({openmp}, {count})",
        timeout=300,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_without_the_threads_of_torch():
    """The parent used PyTorch's threads, which the child lacks, and not OpenCL, which the child may use."""
    in_process(
        "import signal\ntorch.set_num_threads(3)\n"
        "data, weight = torch.ones(1, 64, 90, 90), torch.ones(64, 8, 2, 2)\n"
        "functional.conv2d(data, torch.ones(64, 64, 3, 3))\n"
        "child = os.fork()\n"
        "if child == 0:  # PyTorch's own parallel operators would wait for ever\n"
        "    signal.alarm(120)\n"
        "    import tconv_cl.torch\n"
        "    output = tconv_cl.torch.conv_transpose2d(data, weight, stride=2).detach().numpy()\n"
        "    right = output.min() == output.max() == 64 and tconv_cl.torch.statistics()[:2] == (1, 0)\n"
        "    os._exit(0 if right else 3)\n"
        "assert os.waitpid(child, 0)[1] == 0",
        timeout=300,
    )


def test_many_threads():
    own = model()
    ours = converted(own)
    script = torch.jit.freeze(torch.jit.script(own.eval()))
    inputs = [random(1, 4, 5 + i, 6, seed=i) for i in range(4)]
    with torch.no_grad():
        wanted = [ours(data) for data in inputs]

    def work(thread, count):
        with torch.no_grad():
            for i in range(thread, thread + count):
                assert torch.equal(ours(inputs[i % 4]), wanted[i % 4])
            with dispatch():
                for i in range(thread, thread + count // 8):
                    close(script(inputs[i % 4]), wanted[i % 4])

    def in_threads(count):
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(work, range(THREADS), [count] * THREADS))

    in_threads(max(8, CALLS // 4))
    before = resident_bytes()
    with Counted(computed=2 * THREADS * (CALLS + CALLS // 8), packed=0):
        in_threads(CALLS)
    grown = resident_bytes() - before
    print(f"{THREADS} threads x {CALLS}: resident memory grew by {grown} bytes of {before}")
    assert grown < GROWTH


@pytest.mark.parametrize(
    "extent, kernel, stride, pad, dilation, groups",
    [(13, 3, 2, 1, 1, 1), (14, 3, 2, 1, 1, 2), (17, 5, 3, 2, 2, 1), (9, 1, 2, 0, 1, 1)],
)
def test_the_data_gradient_of_a_convolution(extent, kernel, stride, pad, dilation, groups):
    random = np.random.default_rng(extent)
    data, weight = np.zeros((2, 6, extent, extent)), random.integers(-3, 4, (4, 6 // groups, kernel, kernel))
    data, weight = (torch.tensor(array, dtype=torch.float32) for array in (data, weight))
    forward = functional.conv2d(data, weight, None, stride, pad, dilation, groups)
    output = torch.tensor(random.integers(-3, 4, forward.shape), dtype=torch.float32)
    wanted = torch.nn.grad.conv2d_input(data.shape, weight, output, stride, pad, dilation, groups)
    given = tconv_cl.conv_transpose(
        output.numpy(), weight.numpy(), strides=stride, pads_begin=pad, pads_end=pad, dilations=dilation,
        groups=groups, output_padding=(extent + 2 * pad - dilation * (kernel - 1) - 1) % stride,
    )  # fmt: skip
    np.testing.assert_array_equal(given, wanted.numpy())


def test_the_page():
    text = (Path(__file__).parents[2] / "docs" / "torch.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 9
    assert "tconv_cl:" not in in_process("\n".join(blocks))


def test_tutorial():
    program, wanted = tutorial("torch.md")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == wanted and "tconv_cl:" not in done.stderr
