# SPDX-License-Identifier: Apache-2.0
"""Nearest upsampling and a convolution in PyTorch's models, against PyTorch's own. Each test also looks at who
computed.

TCONV_CL_TEST_PAIRS: how many random pairs are compared."""

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import fx, nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import tconv_cl  # noqa: E402
import tconv_cl.torch  # noqa: E402
from random_pairs import COUNT, SHUFFLE, UPSAMPLE, drawn  # noqa: E402
from tconv_cl._torch import tensors as inside  # noqa: E402
from tconv_cl.torch import convert, explain, revert, statistics  # noqa: E402

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
BOUNDS = {torch.float32: 2.0**-24, torch.float64: 2.0**-53, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}


def computed():
    return statistics().computed


def random(*shape, dtype=torch.float32, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def close(output, wanted, convolution, data):
    """Within the bounds of both: of n products in f32, and a rounding of each weight, data being at most 5."""
    assert output.shape == wanted.shape and output.dtype == wanted.dtype
    weight = convolution.weight.detach().double().abs()
    terms = weight[0].numel() + 2
    wide = torch.float64 if data.dtype == torch.float64 else torch.float32
    size = weight.flatten(1).sum(1).max() * data.detach().double().abs().max()
    bias = 0 if convolution.bias is None else convolution.bias.detach().double().abs().max()
    limit = (2 * terms * BOUNDS[wide] + 2 * BOUNDS[data.dtype]) * (size + bias) + BOUNDS[data.dtype] * bias
    assert (output.double() - wanted.double()).abs().max() <= limit


class Block(nn.Module):
    """As diffusers' Upsample2D."""

    def __init__(self, channels=4):
        super().__init__()
        self.channels = channels
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, hidden_states, output_size=None):
        assert hidden_states.shape[1] == self.channels
        if hidden_states.shape[0] >= 64:
            hidden_states = hidden_states.contiguous()
        if output_size is None:
            hidden_states = functional.interpolate(hidden_states, scale_factor=2.0, mode="nearest")
        else:
            hidden_states = functional.interpolate(hidden_states, size=output_size, mode="nearest")
        return self.conv(hidden_states)


# ---- random pairs ----

# What stays two steps, and a part of the reason; None: nothing says that it might be a pair.
UPSAMPLE_LEFT = {
    "linear": "its mode is",
    "fraction": "whole number|not a multiple",
    "stride": "stride is",
    "kernel 1": "kernel of 1",
    "dilation": "above the factor",
    "no factor": "factors are 1",
    "reflect": "reflect pads",
    "two readers": "used 2 times",
    "an output": "used 2 times",
    "between": "what follows it is",
}
SHUFFLE_LEFT = {"stride": "stride is", "dilation": "dilation is", "two readers": "used 2 times"}
OBSTACLES = {UPSAMPLE: UPSAMPLE_LEFT, SHUFFLE: SHUFFLE_LEFT}
IN_GRAPHS = ("two readers", "an output", "between")
PAD_MODES = ("constant", "constant", "reflect", "replicate", "circular")
TYPES = tuple(
    name for name, times in (("float32", 6), ("float64", 2), ("bfloat16", 1), ("float16", 1)) for _ in range(times)
)


def random_pair(seed):
    return drawn(
        seed,
        OBSTACLES,
        types=TYPES, pad_modes=PAD_MODES, auto_pads=("explicit", "explicit", "same_upper", "valid"),
    )  # fmt: skip


class Drawn(nn.Module):
    """A pair as functions and a convolution."""

    def __init__(self, pair, magnitudes=False):
        super().__init__()
        self.pair, same = pair, pair.begin == pair.end and pair.pad_mode == "constant"
        padding = {"same_upper": "same", "valid": "valid"}.get(pair.auto_pad, pair.begin if same else 0)
        self.pads = () if padding != 0 else tuple(
            p for ends in zip(pair.begin[::-1], pair.end[::-1]) for p in ends
        )  # fmt: skip
        self.conv = CONVOLUTIONS[pair.axes - 1](
            pair.inner, pair.outer, pair.kernel, pair.strides, padding, pair.dilations, pair.groups, pair.bias
        )
        for name, values in (("weight", pair.weights()), ("bias", pair.biases())):
            if getattr(self.conv, name) is not None:
                getattr(self.conv, name).data = torch.from_numpy(abs(values) if magnitudes else values)
        self.to(getattr(torch, pair.type)).eval()

    def upsampling(self, sizes=None):
        """What torch.nn.Upsample takes."""
        pair = self.pair
        mode = {1: "linear", 2: "bilinear", 3: "trilinear"}[pair.axes] if pair.obstacle == "linear" else (
            "nearest", "nearest-exact"
        )[pair.seed % 2]  # fmt: skip
        if pair.by_sizes:
            return {"size": sizes or pair.enlarged, "mode": mode}
        return {"scale_factor": tuple(map(float, pair.factors)), "mode": mode}

    def modules(self):
        """The pair as an nn.Sequential."""
        pair = self.pair
        name = {"constant": "Zero", "reflect": "Reflection", "replicate": "Replication", "circular": "Circular"}
        pads = [getattr(nn, f"{name[pair.pad_mode]}Pad{pair.axes}d")(self.pads)] if self.pads else []
        behind = [nn.ReLU()] if pair.behind == "relu" else []
        if pair.form == SHUFFLE:
            return nn.Sequential(*pads, self.conv, nn.PixelShuffle(pair.factors[0]), *behind).eval()
        return nn.Sequential(nn.Upsample(**self.upsampling()), *pads, self.conv, *behind).eval()

    def forward(self, x):
        pair, other = self.pair, None
        if pair.form == UPSAMPLE:
            x = up = functional.interpolate(x, **self.upsampling())
            if pair.obstacle == "between":
                x = torch.tanh(x) if pair.seed % 3 else x + 1
        if self.pads:
            x = functional.pad(x, self.pads, mode=pair.pad_mode)
        x = self.conv(x)
        if pair.form == SHUFFLE:
            up, x = x, functional.pixel_shuffle(x, pair.factors[0])
        if pair.obstacle in ("two readers", "an output"):
            other = up if pair.obstacle == "an output" else torch.tanh(up)
        if pair.behind == "relu":
            x = torch.relu(x)
        x = (x, torch.relu(x)) if pair.behind == "twice" else x
        return x if other is None else (x, other)


def flat(outputs):
    return [outputs] if isinstance(outputs, torch.Tensor) else [one for output in outputs for one in flat(output)]


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_pairs(seed):
    """In an nn.Sequential, or in a graph."""
    pair = random_pair(seed)
    model = Drawn(pair)
    in_graph = pair.obstacle in IN_GRAPHS or pair.behind == "twice" or seed % 2 == 0
    data = torch.from_numpy(pair.data()).to(getattr(torch, pair.type))
    if pair.channels_last and pair.axes > 1:
        data = data.to(memory_format=(torch.channels_last, torch.channels_last_3d)[pair.axes - 2])
    magnitudes = Drawn(pair, magnitudes=True)
    model, magnitudes = (fx.symbolic_trace(one) if in_graph else one.modules() for one in (model, magnitudes))
    keys = model.state_dict().keys()
    with torch.no_grad():
        wanted, most = flat(model(data)), flat(magnitudes(abs(data)))
        convert(model, fallback="error")
        before = computed()
        outputs = flat(model(data))
    assert computed() - before == (pair.obstacle == ""), pair
    for output, one, magnitude in zip(outputs, wanted, most):
        assert output.shape == one.shape and output.dtype == one.dtype
        if pair.obstacle:
            assert torch.equal(output, one), pair
        else:
            difference = (output.double() - one.double()).abs().numpy()
            assert (difference <= pair.bound(magnitude.double().numpy())).all(), pair
    assert keys == model.state_dict().keys()
    (layer,) = explain(model)
    reason = OBSTACLES[pair.form].get(pair.obstacle)
    at_runtime = pair.by_sizes and pair.obstacle in ("fraction", "dilation", "no factor", "reflect")
    assert layer.upsamples and layer.converted == (reason is None or at_runtime)
    assert layer.converted or any(part in layer.note for part in reason.split("|")), (layer, pair)


# ---- in a forward, and in graphs ----


class Expression(nn.Module):
    """As the end of RRDBNet: pairs in expressions, activations behind, one of them in place."""

    def __init__(self):
        super().__init__()
        self.up1, self.up2, self.last = (nn.Conv2d(4, 4, 3, padding=1) for _ in range(3))
        self.activation = nn.LeakyReLU(0.2, inplace=True)

    def forward(self, x):
        x = self.activation(self.up1(functional.interpolate(x, scale_factor=2, mode="nearest")))
        x = functional.silu(self.up2(functional.interpolate(x, scale_factor=(2.0, 1.0), mode="nearest-exact")))
        return self.last(x)


class Style(nn.Module):
    """As ReflectionPad2d in networks of style transfer, with a batch normalization."""

    def __init__(self):
        super().__init__()
        self.up, self.pad = nn.Upsample(scale_factor=2), nn.ReflectionPad2d(1)
        self.conv, self.norm = nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)
        self.norm.running_mean.uniform_()
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(self.pad(self.up(x)))))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        up = functional.interpolate(x, scale_factor=2.0)
        return self.conv(up) + up


class Concat(Twice):
    def forward(self, x):
        up = functional.interpolate(x[:, :2], scale_factor=2)
        return self.conv(torch.cat([up, up], 1))


class Bilinear(Twice):
    def forward(self, x):
        modes = "nearest", "bilinear"
        return self.conv(functional.interpolate(x, scale_factor=2, mode=modes[1]))


class Written(Twice):
    def forward(self, x):
        x = x + 0
        up = functional.interpolate(x, scale_factor=2)
        x.mul_(3)
        return self.conv(up) + x.sum()


class Shared(Twice):
    def forward(self, x):
        return self.conv(functional.interpolate(self.conv(functional.interpolate(x, scale_factor=2)), scale_factor=2))


class Returned(Twice):
    def forward(self, x):
        up = functional.interpolate(x, scale_factor=2)
        return up, self.conv(up)


class Skip(nn.Module):
    """As a block of a U-Net."""

    def __init__(self, own=4, other=2, groups=1, bias=False, padding=1, last=False):
        super().__init__()
        self.own, self.other, self.last = own, other, last
        self.conv = nn.Conv2d(own + other, 4, 3, padding=padding, groups=groups, bias=bias)
        self.norm = nn.BatchNorm2d(4)
        self.norm.running_mean.uniform_()
        self.norm.running_var.uniform_(0.5, 2)

    def skip(self, x):
        return functional.pad(torch.tanh(x[:, : self.other]), (3, 3, 2, 3))  # as large as DATA enlarged

    def forward(self, x):
        tensors = [functional.interpolate(x[:, : self.own], scale_factor=2), self.skip(x)]
        return torch.relu(self.norm(self.conv(torch.cat(tensors[:: -1 if self.last else 1], dim=1))))


class OfThree(Skip):
    def forward(self, x):
        up = functional.interpolate(x[:, :4], scale_factor=2)
        return self.conv(torch.cat([up, self.skip(x)[:, :1], self.skip(x)[:, 1:]], 1))


class OfRows(Twice):
    def forward(self, x):
        return self.conv(torch.cat([functional.interpolate(x, scale_factor=2), x.repeat(1, 1, 2, 2)], 2))


class Joined(Skip):
    def forward(self, x):
        both = torch.cat([functional.interpolate(x, scale_factor=2), self.skip(x)], 1)
        return self.conv(both), both


class SubPixel(nn.Module):
    """As networks of super-resolution: an activation before or behind the shuffle, and a skip."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(4, 16, 3, padding=1), nn.Conv2d(4, 36, 3, padding=1, bias=False)
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, x):
        x = functional.leaky_relu(self.shuffle(self.conv1(x)), 0.1)
        y = self.conv2(x)
        x = functional.pixel_shuffle(torch.tanh(y), 3)
        return functional.pixel_shuffle(x, 2), x


# A module, and how many of its pairs are taken; the reason of those that are not.
FORWARDS = {
    Block: (1, None),
    Expression: (2, None),
    Style: (1, None),
    Shared: (2, None),
    Twice: (0, "used 2 times"),
    Concat: (0, "used 1 times|what follows it is cat"),
    Bilinear: (0, "its mode is bilinear"),
    Written: (0, "is between them"),
    Returned: (0, "used 2 times"),
    SubPixel: (2, "not a convolution"),
    Skip: (1, None),
    OfThree: (0, "what follows it is cat"),
    OfRows: (0, "what follows it is cat"),
    Joined: (0, "used 2 times"),
}
DATA = random(2, 4, 5, 6)


def in_a_forward(model):
    return convert(model, fallback="error")


def as_a_graph(model):
    return convert(fx.symbolic_trace(model), fallback="error")


def exported(model):
    with torch.no_grad():
        program = torch.export.export(model, (DATA,), strict=False)
    return convert(program.module(), fallback="error")


def compiled(model):
    return torch.compile(model, backend=lambda graph, inputs: convert(graph, fallback="error"))


WAYS = {"forward": in_a_forward, "fx": as_a_graph, "export": exported, "compile": compiled}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", FORWARDS, ids=lambda cls: cls.__name__)
def test_forwards(cls, way):
    torch.manual_seed(1)
    torch._dynamo.reset()
    model = cls().eval()
    if way == "fx" and cls is Block:
        pytest.skip("torch.fx cannot trace its conditions")
    taken, reason = FORWARDS[cls]
    with torch.no_grad():
        wanted = model(DATA)
        ours = WAYS[way](model)
        for _ in range(2):
            before = computed()
            output = ours(DATA)
            assert computed() - before == taken
            torch.testing.assert_close(output, wanted, rtol=1e-4, atol=1e-5)
    if way != "compile":
        told = explain(ours)
        assert len(told.converted) == taken
        assert reason is None or all(any(part in note for part in reason.split("|")) for note in told.left.values())
        assert bool(told.left) == (reason is not None)


@pytest.mark.parametrize(
    "options, taken",
    [
        ({}, 1),
        ({"last": True, "bias": True}, 1),
        ({"other": 4, "padding": (2, 0)}, 1),
        ({"own": 2, "other": 4}, 0),  # most channels are not enlarged
        ({"groups": 2}, 0),
        ({"padding": "same", "last": True}, 1),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("last", [False, True])
def test_a_concatenation_between(options, taken, dtype, last):
    """Only the enlarged part is the layer's, and the other one's convolution is its residual; not in f16, which would
    round that."""
    torch.manual_seed(1)
    taken = taken and dtype == torch.float32
    model = Skip(**options).to(dtype).eval()
    data = DATA.to(dtype).to(memory_format=torch.channels_last if last else torch.contiguous_format)
    ours = convert(fx.symbolic_trace(copy.deepcopy(model)), fallback="error")
    rows = pickle.loads(pickle.dumps(ours))
    with torch.no_grad():
        wanted = model(data)
        for one in (ours, rows):
            before = computed()
            output = one(data)
            assert computed() == before + taken and output.stride() == wanted.stride()
            torch.testing.assert_close(output, wanted, rtol=1e-4 * taken, atol=1e-5 * taken)
        note = explain(ours)[0].note
        assert ("groups" in note) if "groups" in options else note.startswith("with cat")
        revert(ours)
        before = computed()
        assert torch.equal(ours(data), wanted) and computed() == before
    ours = convert(ours, fallback="error")
    gradients = []
    for one in (model, ours):
        given = data.clone().requires_grad_()
        gradients.append(torch.autograd.grad(one(given).sum(), given)[0])
    assert torch.equal(*gradients)


def test_one_forward_for_many_modules_shapes_and_threads():
    """torch's compiler keeps one graph for all modules of a class and all extents."""
    torch._dynamo.reset()
    blocks = [Block().eval() for _ in range(12)]
    own = copy.deepcopy(blocks)
    model = convert(nn.ModuleList(blocks), fallback="error")
    with torch.no_grad():
        for number, (block, stock) in enumerate(zip(model, own)):
            data = random(1, 4, 4 + number % 3, 5 + number)
            before = computed()
            torch.testing.assert_close(block(data), stock(data), rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(block(data, [16, 20]), stock(data, [16, 20]), rtol=1e-4, atol=1e-5)
            multiple = [16 % data.shape[2] == 0 and 20 % data.shape[3] == 0]
            assert computed() - before == 1 + sum(multiple)
    assert [layer.name for layer in explain(model)] == [f"{number}.conv" for number in range(12)]


class Maybe(nn.Module):
    """As diffusers' ResnetBlock2D, whose forward could enlarge."""

    def __init__(self, upsample=None):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.upsample = upsample

    def forward(self, x):
        return self.conv(x if self.upsample is None else self.upsample(x))


def test_a_forward_that_enlarged_nothing_is_not_listed():
    torch._dynamo.reset()
    model = convert(nn.Sequential(Maybe(), Maybe(nn.Upsample(scale_factor=2))).eval(), fallback="error")
    assert list(explain(model).left) == ["0.forward", "1.forward"]
    with torch.inference_mode():
        model(DATA)
    assert [layer.name for layer in explain(model)] == ["1.conv"]
    assert str(explain(model)).startswith("tconv-cl computes 1 of 1 upsamplings")


def test_a_forward_keeps_what_it_was():
    import inspect

    torch._dynamo.reset()
    own = Block().eval()
    ours = convert(copy.deepcopy(own), fallback="error")
    assert isinstance(ours, Block) and inspect.signature(ours.forward) == inspect.signature(own.forward)
    assert "pairs are looked for in its first call" in str(explain(ours)) and explain(ours).left
    assert ours.state_dict().keys() == own.state_dict().keys()
    before = computed()
    ours(DATA).sum().backward()  # with gradients PyTorch computes
    assert computed() == before and ours.conv.weight.grad is not None
    with torch.inference_mode():
        wanted = own(DATA)
        for one in (ours, copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
            before = computed()
            torch.testing.assert_close(one(DATA), wanted, rtol=1e-4, atol=1e-5)
            assert computed() == before + 1
        ours.conv.weight.data.mul_(2)
        own.conv.weight.data.mul_(2)
        torch.testing.assert_close(ours(DATA), own(DATA), rtol=1e-4, atol=1e-5)
        with pytest.raises(AssertionError):
            ours(DATA[:, :2])
    assert type(revert(ours)) is Block
    with torch.no_grad():
        before = computed()
        assert torch.equal(ours(DATA), own(DATA)) and computed() == before


@pytest.mark.parametrize("way", ["fx", "export"])
def test_graphs_are_copied_saved_and_reverted(way):
    torch.manual_seed(1)
    model = Expression().eval()
    with torch.no_grad():
        wanted = model(DATA)
        ours = WAYS[way](model)
        if way == "fx":
            ours = pickle.loads(pickle.dumps(ours))
        one = copy.deepcopy(ours)
        before = computed()
        torch.testing.assert_close(one(DATA), wanted, rtol=1e-4, atol=1e-5)
        assert computed() == before + 2
        convert(one, device=0)  # a second time
        revert(one)
        before = computed()
        assert torch.equal(one(DATA), wanted) and computed() == before and not explain(one)


# ---- who looks ----


def watched(hooked):
    def change(model, seen):
        getattr(model[hooked[1]], hooked[0])(lambda module, *tensors: seen.append(hooked[1]))

    return change


CHANGES = {
    **{f"hook of {n}": watched(("register_forward_hook", n)) for n in range(5)},
    **{f"pre-hook of {n}": watched(("register_forward_pre_hook", n)) for n in range(5)},
    "forward": lambda model, seen: setattr(
        model[1], "forward", lambda x, own=model[1].forward: seen.append(1) or own(x) + 1
    ),
    "weight_norm": lambda model, seen: seen.append(nn.utils.parametrizations.weight_norm(model[2])),
    "old weight_norm": lambda model, seen: seen.append(nn.utils.weight_norm(model[2])),
}  # fmt: skip


@pytest.mark.parametrize("converted_first", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_whoever_looks_sees_the_same(change, converted_first):
    results = []
    for ours in (False, True):
        torch.manual_seed(3)
        model = nn.Sequential(
            nn.Upsample(scale_factor=2), nn.ZeroPad2d(1), nn.Conv2d(4, 3, 3), nn.BatchNorm2d(3), nn.SiLU()
        ).eval()
        seen = []
        if ours and converted_first:
            convert(model, fallback="error")
        CHANGES[change](model, seen)
        if ours and not converted_first:
            convert(model, fallback="error")
        with torch.no_grad():
            results.append((model(DATA), [one for one in seen if isinstance(one, int)]))
    torch.testing.assert_close(results[1][0], results[0][0], rtol=1e-4, atol=1e-5)
    assert results[0][1] == results[1][1]


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.GELU("tanh"), nn.Hardtanh(-0.5, 0.5), None], ids=str)
@pytest.mark.parametrize("norm", [True, False])
def test_what_follows_is_fused(norm, activation, monkeypatch):
    torch.manual_seed(4)
    modules = [nn.UpsamplingNearest2d(scale_factor=2), nn.Conv2d(4, 3, 3, padding="same")]
    modules += [nn.BatchNorm2d(3)] if norm else []
    modules += [] if activation is None else [activation]
    model = nn.Sequential(*modules).eval()
    with torch.no_grad():
        wanted = model(DATA)
        convert(model, fallback="error")
        for cls in {nn.BatchNorm2d, *map(type, modules)}:
            monkeypatch.setattr(cls, "__call__", lambda *_: pytest.fail("it is called"), raising=False)
        before = computed()
        torch.testing.assert_close(model(DATA), wanted, rtol=1e-4, atol=1e-5)
        assert computed() == before + 1


def test_gradients():
    torch.manual_seed(5)
    own = nn.Sequential(nn.Upsample(scale_factor=(2, 3)), nn.Conv2d(4, 3, 3, padding=1), nn.Sigmoid()).double()
    ours = convert(copy.deepcopy(own), fallback="error")
    data = DATA.double()[:, :, :3, :3]
    before = computed()
    results = []
    for model in (own, ours):
        given = data.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(model(given).square().sum(), given, create_graph=True)
        results.append((gradient.detach(), *torch.autograd.grad(gradient.sum(), list(model.parameters()))))
    assert computed() == before + 1
    torch.testing.assert_close(results[1], results[0])
    operator = torch.ops.tconv_cl.upsample_conv
    given = [one.detach().requires_grad_() for one in (data, own[1].weight, own[1].bias)]
    for activation, numbers in (("none", []), ("leaky_relu", [0.1])):
        arguments = (*given, [2, 3], [1, 0], [1, 1], 1, [1, 1], activation, numbers)
        torch.library.opcheck(
            operator, arguments, test_utils=("test_schema", "test_faketensor", "test_autograd_registration")
        )
        assert torch.autograd.gradcheck(lambda *three: operator(*three, *arguments[3:]), given)


def test_data_without_a_batch_is_pytorchs():
    """Then an upsampling enlarges other axes than the convolution takes."""
    model = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(4, 3, 3)).eval()
    with torch.no_grad():
        wanted = model(DATA[0])
        assert torch.equal(convert(model)(DATA[0]), wanted)


def test_small_layers_are_left_to_pytorch():
    model = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(4, 4, 3, padding=1)).eval()
    large = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(64, 64, 3, padding=1)).eval()
    with torch.no_grad():
        wanted = model(DATA)
        before = statistics()
        assert torch.equal(convert(model)(DATA), wanted)
        assert statistics()[:2] == before[:2]
        convert(large)(random(1, 64, 20, 20))
        assert computed() == before.computed + 1
        shuffle = convert(nn.Sequential(nn.Conv2d(64, 64, 3), nn.PixelShuffle(2)))
        shuffle(random(1, 64, 20, 20).to(memory_format=torch.channels_last))
        assert computed() == before.computed + 1
        shuffle(random(1, 64, 20, 20))
        assert computed() == before.computed + 2
        convert(nn.Sequential(nn.Conv2d(256, 64, 3), nn.PixelShuffle(2)))(random(1, 256, 20, 20))  # 2304 products
        assert computed() == before.computed + 2


@pytest.mark.parametrize("extents", [(0, 5), (3, 4)])
def test_errors_are_pytorchs(extents):
    own = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(4, 4, 9))
    ours = convert(copy.deepcopy(own), fallback="error")
    for model in (own, ours):
        with torch.no_grad(), pytest.raises(RuntimeError):
            model(torch.ones(1, 4, *extents))


def test_autocast():
    model = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(4, 4, 3, padding=1), nn.ReLU()).eval()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        wanted = model(DATA)
        output = convert(model, fallback="error")(DATA)
    assert output.dtype == wanted.dtype
    torch.testing.assert_close(output, wanted, rtol=0.05, atol=0.05)


def test_compiled_and_transformed():
    torch._dynamo.reset()
    model = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(4, 4, 3, padding=1), nn.ReLU()).eval()
    with torch.no_grad():
        wanted = model(DATA)
        convert(model, fallback="error")
        before = computed()
        output = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")(DATA)
        torch.testing.assert_close(output, wanted, rtol=1e-4, atol=1e-5)
        assert computed() == before + 1
        convert(model)
        torch.testing.assert_close(torch.vmap(model)(DATA[None])[0], wanted, rtol=1e-4, atol=1e-5)
        traced = fx.symbolic_trace(model)
        torch.testing.assert_close(traced(DATA), wanted, rtol=1e-4, atol=1e-5)


# ---- convolution and pixel shuffle ----


@pytest.mark.parametrize("seed", range(16))
def test_shuffles(seed):
    dice = np.random.default_rng(seed)
    groups, inner, outer, factor = (int(number) for number in dice.integers((1, 1, 1, 2), (3, 4, 4, 5)))
    kernel, padding = (tuple(int(number) for number in dice.integers(low, 4, 2)) for low in (1, 0))
    dtype = (torch.float32, torch.float64, torch.bfloat16, torch.float16)[seed % 4]
    refused = seed % 8 == 7
    convolution = nn.Conv2d(
        groups * inner, groups * outer * factor**2, kernel, 1 + refused, padding, 1, groups, bool(seed % 3)
    )
    norm = [nn.BatchNorm2d(convolution.out_channels)] if seed % 5 == 1 else []
    before = [nn.Tanh()] if seed % 3 == 1 else []
    behind = [nn.Hardswish()] if seed % 2 else []
    model = nn.Sequential(convolution, *norm, *before, nn.PixelShuffle(factor), *behind).to(dtype).eval()
    data = random(2, groups * inner, 5, 6, dtype=dtype, seed=seed)
    if dice.integers(2):
        data = data.to(memory_format=torch.channels_last)
    with torch.no_grad():
        wanted = model(data)
        convert(model, fallback="error")
        count = computed()
        output = model(data)
    half = dtype in (torch.float16, torch.bfloat16)
    taken = not refused and not (norm and half)
    assert computed() - count == taken and explain(model)[0].converted == (not refused)
    close(output, wanted, convolution, data)


def test_gradients_of_a_shuffle():
    torch.manual_seed(6)
    own = nn.Sequential(nn.Conv2d(4, 12, 3, padding=1), nn.PixelShuffle(2), nn.Sigmoid()).double()
    ours = convert(copy.deepcopy(own), fallback="error")
    before, results = computed(), []
    for model in (own, ours):
        given = DATA.double().requires_grad_()
        results.append(torch.autograd.grad(model(given).square().sum(), [given, *model.parameters()]))
    assert computed() == before + 1
    torch.testing.assert_close(results[1], results[0])


# ---- math ----


def test_math():
    model = nn.Sequential(nn.ConvTranspose2d(4, 4, 4, 2), nn.Upsample(scale_factor=2), nn.Conv2d(4, 4, 3, padding=1))
    with torch.no_grad():
        wanted = model(DATA)
        convert(model, math="fast", fallback="error")
        torch.testing.assert_close(model(DATA), wanted, rtol=1e-3, atol=1e-4)
        weights = [inside._known(model[number].weight) for number in (0, 2)]
        assert [one.resolved.options.math for known in weights for one in known.requests.values()] == [1, 1]
        with tconv_cl.torch.dispatch(math="fast", fallback="error"):
            functional.conv_transpose2d(DATA, model[0].weight.clone())
    with pytest.raises(tconv_cl.RequestError, match="math is 'quick': it must be exact or fast"):
        convert(model, math="quick")
    with pytest.raises(tconv_cl.RequestError, match="math is 'quick'"):
        tconv_cl.torch.dispatch(math="quick")
