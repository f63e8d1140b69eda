# SPDX-License-Identifier: Apache-2.0
"""Outputs in parts of larger tensors, and data that are such parts, against PyTorch's own operators."""

import copy

import pytest

torch = pytest.importorskip("torch")

from test_torch import LAYERS, OURS, THEIRS, Counted, close, converted, random  # noqa: E402
from torch import nn  # noqa: E402

import tconv_cl.torch  # noqa: E402
from tconv_cl.torch import conv_transpose2d, conv_transpose_cat  # noqa: E402

EXTENTS = [5, 6, 3]
LAST = {2: torch.channels_last, 3: torch.channels_last_3d}


@pytest.fixture
def no_copies(monkeypatch):
    """Fails if a tensor is copied or made dense, or tensors are concatenated. A bias is made dense by itself."""

    def refuse(*_, **__):
        raise AssertionError("it was copied")

    def start():
        monkeypatch.setattr(torch.Tensor, "contiguous", refuse)
        monkeypatch.setattr(torch.Tensor, "copy_", refuse)
        monkeypatch.setattr(torch, "cat", refuse)

    yield start
    monkeypatch.undo()


def layer_of(axes, dtype=torch.float32, batch=2):
    data, weight = random(batch, 4, *EXTENTS[:axes], dtype=dtype), random(4, 3, *[3] * axes, seed=2, dtype=dtype)
    return data, weight, THEIRS[axes - 1](data, weight, stride=2)


# ---- out ----


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("begin", [0, 2, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_out_is_a_slice_of_channels(axes, batch, begin, dtype, no_copies):
    data, weight, wanted = layer_of(axes, dtype, batch)
    whole = torch.full((batch, 8, *wanted.shape[2:]), 7, dtype=dtype)
    out = whole[:, begin : begin + 3]
    no_copies()
    with Counted(computed=1):
        assert OURS[axes - 1](data, weight, stride=2, out=out) is out
    close(out, wanted, 1e-5 if dtype != torch.float16 else 4e-3)
    assert torch.all(whole[:, :begin] == 7) and torch.all(whole[:, begin + 3 :] == 7)


@pytest.mark.parametrize("axes", [2, 3])
def test_out_with_channels_last(axes, no_copies):
    data, weight, wanted = layer_of(axes)
    data = data.to(memory_format=LAST[axes])
    whole = torch.full((2, 8, *wanted.shape[2:]), 7.0).to(memory_format=LAST[axes])
    no_copies()
    with Counted(computed=1):
        OURS[axes - 1](data, weight, stride=2, out=whole[:, 4:7])
    close(whole[:, 4:7], wanted)
    assert torch.all(whole[:, :4] == 7) and torch.all(whole[:, 7:] == 7)


def test_out_in_another_order_of_axes(no_copies):
    """Steps along every axis; data and out in different orders."""
    data, weight, wanted = layer_of(2)
    whole = torch.full((2, 3, 26, 33), 7.0).permute(0, 1, 3, 2)
    last = torch.full((2, 3, 11, 13), 7.0).to(memory_format=torch.channels_last)
    no_copies()
    for out in (whole[:, :, 1::3, ::2], last):
        with Counted(computed=1):
            conv_transpose2d(data, weight, stride=2, out=out)
        close(out, wanted)
    assert torch.all(whole[:, :, ::3] == 7) and torch.all(whole[:, :, :, 1::2] == 7)


def test_out_without_a_batch():
    data, weight, wanted = layer_of(2)
    whole = torch.zeros(8, *wanted.shape[2:])
    assert conv_transpose2d(data[0], weight, stride=2, out=whole[2:5]).shape == (3, 11, 13)
    close(whole[2:5], wanted[0])


def test_out_and_data_in_one_tensor():
    """As in networks that concatenate everything; and outputs that take the place of their data."""
    whole, weight = random(2, 8, 5, 6), random(4, 3, 1, 1, seed=2)
    wanted = THEIRS[1](whole[:, :4], weight)
    for form in (torch.contiguous_format, torch.channels_last):
        for begin in (4, 0, 2):
            same = whole.clone(memory_format=form)
            conv_transpose2d(same[:, :4], weight, out=same[:, begin : begin + 3])
            close(same[:, begin : begin + 3], wanted)


def test_out_where_torch_computes():
    """What the library refuses, torch writes into out as well."""

    class Own(torch.Tensor):
        pass

    data, weight, out = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2).as_subclass(Own), torch.zeros(1, 3, 5, 5)
    with Counted(computed=0, fallbacks=1):
        conv_transpose2d(data, weight, out=out[:, 1:2])
    assert torch.equal(out[:, 1:2], THEIRS[1](data, weight)) and torch.all(out[:, ::2] == 0)


@pytest.mark.parametrize(
    "out, sentence",
    [
        (torch.zeros(2, 3, 11, 12), r"out has the shape \[2, 3, 11, 12\]: the output has \[2, 3, 11, 13\]"),
        (torch.zeros(3, 11, 13), "out has the shape"),
        (torch.zeros(2, 3, 11, 13).double(), "out has elements of type torch.float64: the output has torch.float32"),
        (torch.zeros(2, 1, 11, 13).expand(2, 3, 11, 13), "single memory location"),
    ],
)
def test_wrong_out_is_refused(out, sentence):
    data, weight, _ = layer_of(2)
    with pytest.raises(RuntimeError, match=sentence):
        conv_transpose2d(data, weight, stride=2, out=out)
    assert torch.all(out == 0)


# ---- what sees tensors ----


@pytest.mark.parametrize("which", ["data", "weight", "bias", "out"])
def test_out_with_gradients_is_refused(which):
    """As by torch's own functions."""
    tensors = dict(zip(("data", "weight", "out"), layer_of(2)), bias=random(3))
    tensors = {name: tensor.clone().requires_grad_(name == which) for name, tensor in tensors.items()}
    out = tensors.pop("out")
    with pytest.raises(RuntimeError, match=r"conv_transpose2d\(\): functions with out=... arguments don't support"):
        conv_transpose2d(*tensors.values(), stride=2, out=out)
    with torch.no_grad():
        close(conv_transpose2d(*tensors.values(), stride=2, out=out), THEIRS[1](*tensors.values(), stride=2))


def test_autograd_sees_that_out_changed():
    data, weight, wanted = layer_of(2)
    saved = torch.ones(wanted.shape)
    factor = torch.ones((), requires_grad=True)
    product = (factor * saved).sum()
    with torch.no_grad():
        conv_transpose2d(data, weight, stride=2, out=saved[:, :])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_out_in_a_compiled_function():
    data, weight, wanted = layer_of(2)
    whole = torch.full((2, 8, *wanted.shape[2:]), 7.0)

    def write(data, whole):
        conv_transpose2d(data, weight, stride=2, out=whole[:, 2:5])
        return whole * 2

    with torch.no_grad():
        result = torch.compile(write, fullgraph=True, dynamic=True, backend="aot_eager")(data, whole)
    close(whole[:, 2:5], wanted)
    assert torch.equal(result, whole * 2) and torch.all(whole[:, 5:] == 7)


def test_out_inside_of_vmap():
    data, weight = random(3, 2, 4, 5, 6), random(4, 3, 3, 3, seed=2)
    out = torch.zeros(3, 2, 3, 7, 8)
    torch.vmap(lambda x, y: conv_transpose2d(x, weight, out=y))(data, out)
    close(out, torch.stack([THEIRS[1](x, weight) for x in data]))


# ---- data ----

STRIDED = {
    "columns": lambda: random(2, 4, 5, 13)[..., 1::2],
    "rows": lambda: random(2, 4, 11, 6)[:, :, 1::2],
    "crop": lambda: random(2, 4, 9, 11)[:, :, 2:7, 1:7],
    "channels": lambda: random(2, 9, 5, 6)[:, 1:8:2],
    "batch": lambda: random(4, 4, 5, 6)[::2],
    "transposed": lambda: random(2, 4, 6, 5).transpose(2, 3),
    "permuted": lambda: random(5, 4, 2, 6).permute(2, 1, 0, 3),
    "channels last": lambda: random(2, 4, 5, 6).to(memory_format=torch.channels_last),
    "some channels last": lambda: random(2, 9, 5, 6).to(memory_format=torch.channels_last)[:, 3:7],
    "crop of channels last": lambda: random(2, 4, 9, 11).to(memory_format=torch.channels_last)[:, :, 2:7, 1:7],
    "windows": lambda: random(60).as_strided((2, 4, 5, 6), (12, 4, 2, 1)),
}


@pytest.mark.parametrize("name", STRIDED)
def test_strided_data_are_used_in_place(name, no_copies):
    data, weight = STRIDED[name](), random(4, 3, 3, 3, seed=2)
    wanted = THEIRS[1](data, weight, stride=2)
    no_copies()
    with Counted(computed=1):
        output = conv_transpose2d(data, weight, stride=2)
    close(output, wanted)
    is_last = output.is_contiguous(memory_format=torch.channels_last)
    assert is_last if "last" in name else output.is_contiguous()


def test_repeated_data_are_copied():
    data, weight = random(2, 1, 5, 6).expand(2, 4, 5, 6), random(4, 3, 3, 3, seed=2)
    with Counted(computed=1):
        close(conv_transpose2d(data, weight), THEIRS[1](data, weight))


@pytest.mark.parametrize("name", ["crop", "some channels last"])
def test_strided_data_in_a_compiled_function(name):
    """The operator's description of its output is right."""
    data, weight = STRIDED[name](), random(4, 3, 3, 3, seed=2)
    torch.library.opcheck(torch.ops.tconv_cl.conv_transpose, (data, weight, None, [2, 2], [0, 0], [0, 0], 1, [1, 1]))


def test_equal_shapes_with_other_strides():
    """With one weight, whose requests are kept."""
    data, weight, wanted = layer_of(2)
    for _ in range(2):
        for channels in (3, 4, 5):
            out = torch.zeros(2, channels, *wanted.shape[2:])[:, :3]
            near = torch.zeros(2, 4 * channels, 5, 6)[:, ::channels]
            near.copy_(data)
            with Counted(computed=2):
                conv_transpose2d(data, weight, stride=2, out=out)
                close(conv_transpose2d(near, weight, stride=2), wanted)
            close(out, wanted)


# ---- modules ----


def upsampling(axes, *more):
    torch.manual_seed(3)
    module = LAYERS[axes - 1](4, 3, 3, stride=2, padding=1, output_padding=1)
    one = nn.Sequential(module, *more).eval() if more else module.eval()
    for part in one.modules():
        if hasattr(part, "running_var"):
            part.running_mean.uniform_()
            part.running_var.uniform_(0.5, 2)
    return one


FOLLOWED = {
    "alone": lambda axes: upsampling(axes),
    "relu": lambda axes: upsampling(axes, nn.ReLU()),
    "norm": lambda axes: upsampling(axes, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[axes - 1](3), nn.GELU()),
}


@pytest.mark.parametrize("name", FOLLOWED)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_modules_write_into_out(name, axes):
    own = FOLLOWED[name](axes)
    ours, data = converted(own), random(2, 4, *EXTENTS[:axes])
    with torch.no_grad():
        wanted = own(data)
        whole = torch.full((2, 8, *wanted.shape[2:]), 7.0)
        with Counted(computed=1):
            assert ours(data, out=whole[:, 2:5]).data_ptr() == whole[:, 2:5].data_ptr()
    close(whole[:, 2:5], wanted)
    assert torch.all(whole[:, :2] == 7) and torch.all(whole[:, 5:] == 7)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        ours(data, out=whole[:, 2:5])


def test_a_sequential_copies_what_it_does_not_write():
    """Behind another module, a hook that changes the output, and with a wrong shape."""
    data, out = random(2, 4, 5, 6), torch.zeros(2, 3, 10, 12)
    for change in (
        lambda one: one.append(nn.Softmax(1)),
        lambda one: one[-1].register_forward_hook(lambda *a: a[-1] + 1),
    ):
        own = FOLLOWED["alone"](2)
        own = nn.Sequential(own)
        change(own)
        with torch.no_grad(), Counted(computed=1):
            close(converted(own)(data, out=out), own(data))
    with torch.no_grad(), pytest.raises(RuntimeError, match="out has the shape"):
        converted(FOLLOWED["relu"](2))(data, out=torch.zeros(2, 3, 1, 1))


PARTS = [["up", "skip"], ["skip", "up"], ["skip", "up", "skip"], ["skip", "skip", "up"], ["up"], ["up", "skip", "up"]]


@pytest.mark.parametrize("parts", PARTS, ids=str)
@pytest.mark.parametrize("name", FOLLOWED)
@pytest.mark.parametrize("axes, last", [(1, False), (2, False), (2, True), (3, False), (3, True)])
def test_concatenated_outputs(parts, name, axes, last, monkeypatch):
    own = FOLLOWED[name](axes)
    ours, data = converted(own), random(2, 4, *EXTENTS[:axes])
    skips = [random(2, 5 + i, *[2 * extent for extent in EXTENTS[:axes]], seed=4 + i) for i in range(2)]
    if last:
        data, skips = data.to(memory_format=LAST[axes]), [skip.to(memory_format=LAST[axes]) for skip in skips]
    others = skips.copy()
    with torch.no_grad():
        wanted = torch.cat([own(data) if part == "up" else skips.pop(0) for part in parts], 1)
        monkeypatch.delattr(torch, "cat")
        with Counted(computed=parts.count("up")):
            output = conv_transpose_cat([(ours, data) if part == "up" else others.pop(0) for part in parts])
    close(output, wanted)
    assert output.is_contiguous(memory_format=LAST[axes] if last else torch.contiguous_format)


def test_concatenation_in_a_decoder():
    """The example of docs/torch.md, in inference and in training."""

    class Up(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.up, self.after = nn.ConvTranspose2d(4, 3, 2, stride=2), nn.Conv2d(8, 2, 3, padding=1)

        def forward(self, x, skip):
            return self.after(conv_transpose_cat([skip, (self.up, x)]))

    own = Up()
    ours, data, skip = converted(own), random(1, 4, 5, 6), random(1, 5, 10, 12)
    with torch.inference_mode():
        close(ours(data, skip), own(data, skip))
    for model in (own, ours):
        model(data, skip).square().sum().backward()
    for one, other in zip(own.parameters(), ours.parameters()):
        close(one.grad, other.grad, 1e-4)
    with torch.no_grad():
        compiled = torch.compile(ours, fullgraph=True, dynamic=True, backend="aot_eager")
        close(compiled(data, skip), own(data, skip))


@pytest.mark.parametrize("change", ["hook", "dtype", "subclass", "shape", "module", "autocast"])
def test_concatenation_as_torch_does_it(change, monkeypatch):
    """Where the layer's output is seen, is changed, or cannot be concatenated."""
    own, data, skip, seen = FOLLOWED["alone"](2), random(2, 4, 5, 6), random(2, 5, 10, 12), []
    ours = converted(own)
    if change == "hook":
        for module in (own, ours):
            module.register_forward_hook(lambda *arguments: seen.append(1) or arguments[-1] + 1)
    elif change == "dtype":
        skip = skip.double()
    elif change == "subclass":
        skip = nn.Parameter(skip)
    elif change == "shape":
        skip = skip[:, :, :9]
    elif change == "module":
        own, ours = nn.Sequential(own, nn.Upsample(scale_factor=1)), nn.Sequential(ours, nn.Upsample(scale_factor=1))
    calls, own_cat = [], torch.cat
    monkeypatch.setattr(torch, "cat", lambda *arguments: calls.append(1) or own_cat(*arguments))
    with torch.no_grad(), torch.autocast("cpu", enabled=change == "autocast"):
        if change == "shape":
            with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
                conv_transpose_cat([skip, (ours, data)])
        else:
            wanted = own_cat([skip, own(data)], 1)
            output = conv_transpose_cat([skip, (ours, data)])
            close(output, wanted, 1e-2 if change == "autocast" else 1e-5)
            assert output.dtype == wanted.dtype
    assert calls == [1]


def test_modules_that_are_not_converted_are_concatenated():
    own, data, skip = FOLLOWED["relu"](2), random(2, 4, 5, 6), random(2, 5, 10, 12)
    with torch.no_grad():
        assert torch.equal(conv_transpose_cat([(own, data), skip]), torch.cat([own(data), skip], 1))
    assert tconv_cl.torch.conv_transpose_cat([skip]).shape == skip.shape


@pytest.mark.parametrize(
    "make",
    {
        "empty": nn.Sequential,
        "nested empty": lambda: nn.Sequential(nn.Sequential(), nn.Sequential(nn.Sequential())),
        "identity": lambda: nn.Sequential(nn.Identity()),
        "empty before": lambda: nn.Sequential(nn.Sequential(), nn.ConvTranspose2d(3, 2, 1)),
        "empty behind": lambda: nn.Sequential(nn.ConvTranspose2d(3, 2, 1), nn.Sequential()),
        "nested": lambda: nn.Sequential(nn.Sequential(nn.ConvTranspose2d(3, 2, 1), nn.ReLU()), nn.ReLU()),
        "activation": lambda: nn.Sequential(nn.ReLU()),
        "convolution": lambda: nn.Conv2d(3, 2, 1),
        "pool": lambda: nn.Sequential(nn.ConvTranspose2d(3, 2, 2, stride=2), nn.MaxPool2d(2)),
    }.values(),
)
@pytest.mark.parametrize("shape", [(1, 3, 4, 4), (0, 3, 4, 4), (1, 3, 0, 4)], ids=str)
def test_concatenation_of_other_modules(make, shape):
    """They give what torch.cat gives, and raise as it does."""
    own, data, skip = make(), torch.randn(shape), torch.randn(shape)
    ours = tconv_cl.torch.convert(copy.deepcopy(own))

    def outcome(function):
        try:
            return function()
        except RuntimeError as error:
            return str(error)

    with torch.no_grad():
        wanted = outcome(lambda: torch.cat([skip, own(data), own(data)], 1))
        output = outcome(lambda: tconv_cl.torch.conv_transpose_cat([skip, (ours, data), (ours, data)]))
    if isinstance(wanted, str):
        assert output == wanted
    else:
        torch.testing.assert_close(output, wanted)
