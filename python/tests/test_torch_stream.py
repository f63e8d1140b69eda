# SPDX-License-Identifier: Apache-2.0
"""tconv_cl.torch.streaming: a generator in chunks has the bits of the generator in one push, and stock's numbers."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import numpy as np  # noqa: E402
import snakes  # noqa: E402
from snakes import SnakeBeta, draw_snakes  # noqa: E402
from torch import nn  # noqa: E402

import tconv_cl  # noqa: E402
import tconv_cl.torch as tt  # noqa: E402


class Own(nn.Module):
    """A causal convolution as other projects write it."""

    def __init__(self, channels, taps):
        super().__init__()
        self.conv, self.left = nn.Conv1d(channels, channels, taps), taps - 1

    def forward(self, x):
        return self.conv(nn.functional.pad(x, (self.left, 0)))


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.convs = nn.ModuleList([tt.CausalConv1d(channels, channels, 3, dilation=d) for d in (1, 3)])
        self.own = Own(channels, 5)

    def forward(self, x):
        for conv in self.convs:
            x = x + conv(nn.functional.leaky_relu(x, 0.1))
        return x + self.own(x)


class Generator(nn.Module):
    """Like HiFi-GAN, with causal convolutions."""

    def __init__(self):
        super().__init__()
        self.pre = tt.CausalConv1d(10, 16, 7)
        self.ups = nn.ModuleList([nn.ConvTranspose1d(16, 8, 8, 4, 2), nn.ConvTranspose1d(8, 4, 4, 2, 1)])
        self.blocks = nn.ModuleList([Block(8), Block(4)])
        self.mix = nn.Conv1d(4, 4, 1)
        self.post = tt.CausalConv1d(4, 1, 7)

    def forward(self, x):
        x = self.pre(x)
        for up, block in zip(self.ups, self.blocks):
            x = block(up(nn.functional.leaky_relu(x, 0.1)))
        return torch.tanh(self.post(self.mix(x)))


@pytest.fixture
def generator():
    torch.manual_seed(1)
    return Generator().eval()


def in_chunks(streams, data, lengths):
    streams.reset()
    parts = [streams(part) for part in data.split(lengths, dim=2)]
    return torch.cat([*parts, streams.flush()], dim=2)


def test_chunks_have_the_bits_of_the_whole(generator):
    data = torch.randn(2, 10, 23)
    streams = tt.streaming(generator, causal=[Own])
    whole = in_chunks(streams, data, [23])
    with torch.no_grad():
        stock = generator(data)
    assert whole.shape == stock.shape == (2, 1, 8 * 23)
    assert torch.allclose(whole, stock, rtol=1e-4, atol=1e-5)
    rng = np.random.default_rng(1)
    for _ in range(3):
        lengths = [0, *rng.integers(1, 6, 3).tolist()]
        lengths.append(23 - sum(lengths))
        assert torch.equal(in_chunks(streams, data, lengths), whole)
    other = streams.share()
    assert torch.equal(in_chunks(other, data, [1] * 23), whole)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_one_layer_of_other_types(dtype):
    pytest.importorskip("ml_dtypes")
    layer, data = nn.ConvTranspose1d(4, 6, 5, 3, 1, groups=2, dtype=dtype), torch.randn(1, 4, 9, dtype=dtype)
    streams = tt.streaming(layer)
    whole = in_chunks(streams, data, [9])
    assert whole.dtype == dtype and torch.equal(in_chunks(streams, data, [2, 0, 1, 6]), whole)
    with torch.no_grad():
        assert torch.allclose(whole, layer(data), rtol=1e-2 if dtype == torch.bfloat16 else 1e-12, atol=1e-2)


@pytest.mark.parametrize(
    "module, words",
    [
        (nn.Sequential(nn.Conv1d(2, 2, 3, padding=1)), "0 is a Conv1d with 3 taps"),
        (nn.Sequential(nn.Conv1d(2, 2, 1, stride=2)), "0 is a Conv1d of stride 2"),
        (nn.Sequential(nn.AvgPool1d(2)), "0 is a AvgPool1d, which may mix columns"),
        (nn.Sequential(Own(2, 3)), "0.conv is a Conv1d with 3 taps"),
    ],
)
def test_what_mixes_columns_is_refused(module, words):
    with pytest.raises(tconv_cl.RequestError, match=words):
        tt.streaming(module)


def test_wrong_calls(generator):
    streams = tt.streaming(generator, causal=[Own])
    with pytest.raises(tconv_cl.RequestError, match="nothing to flush"):
        streams.flush()
    with pytest.raises(tconv_cl.RequestError, match="10 channels"):
        streams(torch.zeros(1, 3, 4))
    in_chunks(streams, torch.randn(1, 10, 4), [4])
    with pytest.raises(tconv_cl.RequestError, match="was flushed"):
        streams(torch.zeros(1, 10, 1))
    with pytest.raises(tconv_cl.RequestTypeError, match="must be a torch.nn.Module"):
        tt.streaming(3)


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = tt.CausalConv1d(2, 2, 3)

    def forward(self, x):
        return self.one(self.one(x))


class Raising(nn.Module):
    """Raises in the middle of a model, while told to."""

    def forward(self, x):
        if self.raises:
            raise OSError("no more memory")
        return x


class Louder(nn.ConvTranspose1d):
    def forward(self, x):
        return 2 * super().forward(x)


class Rectified(tt.CausalConv1d):
    def forward(self, x):
        return super().forward(x).relu()


def test_a_module_called_twice_is_refused():
    streams = tt.streaming(Twice())
    with pytest.raises(tconv_cl.RequestError, match="one is called twice"):
        streams(torch.randn(1, 2, 4))


def test_a_chunk_that_failed_midway_wants_a_reset():
    raising = Raising()
    raising.raises = False
    streams = tt.streaming(nn.Sequential(tt.CausalConv1d(2, 2, 3), raising, tt.CausalConv1d(2, 2, 3)).eval())
    data = torch.randn(1, 2, 6)
    whole = in_chunks(streams, data, [6])
    streams.reset()
    for length, raises in ((2, False), (4, True)):
        streams.model[1].raises = raises
        if raises:
            with pytest.raises(OSError, match="no more memory"):
                streams(data[:, :, 2:])
        else:
            streams(data[:, :, :length])
    streams.model[1].raises = False
    for call in (lambda: streams(data), streams.flush):
        with pytest.raises(tconv_cl.RequestError, match="reset the stream"):
            call()
    assert torch.equal(in_chunks(streams, data, [2, 4]), whole)


def test_what_a_stream_would_leave_out_is_refused():
    hooked = nn.ConvTranspose1d(2, 2, 4, 2, 1)
    hooked.register_forward_hook(lambda module, arguments, output: 2 * output)
    for module, words in (
        (hooked, "0, a ConvTranspose1d, has hooks"),
        (Louder(2, 2, 4, 2, 1), "0, a Louder, has a forward of its own"),
        (Rectified(2, 2, 3), "0, a Rectified, has a forward of its own"),
    ):
        with pytest.raises(tconv_cl.RequestError, match=words):
            tt.streaming(nn.Sequential(module))
    tt.streaming(nn.Sequential(Rectified(2, 2, 3)), causal=[Rectified])  # who names a class knows it


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_weight_norm_is_computed_from_its_present_parts():
    layer, data = torch.nn.utils.weight_norm(nn.ConvTranspose1d(3, 2, 4, 2, 1)).eval(), torch.randn(1, 3, 7)
    with torch.no_grad():
        layer.weight_g *= 3  # as if it were loaded; no forward has made the weight of it
    whole = in_chunks(tt.streaming(layer), data, [3, 4])
    with torch.no_grad():
        assert torch.allclose(whole, layer(data), rtol=1e-4, atol=1e-5)


class Vocoder(nn.Module):
    """A layer and SnakeBeta in a Sequential, which a forward may also call one by one."""

    def __init__(self, apart=lambda number: False):
        super().__init__()
        self.up = nn.Sequential(nn.ConvTranspose1d(6, 4, 4, 2, 1), SnakeBeta(4, True))
        self.post = nn.Sequential(tt.CausalConv1d(4, 3, 3), SnakeBeta(3), nn.Tanh())
        self.apart, self.calls = apart, 0

    def forward(self, x):
        self.calls += 1
        x = self.up[1](self.up[0](x)) if self.apart(self.calls) else self.up(x)
        return self.post(x)


def test_snakebeta_behind_a_layer_is_part_of_its_stream(monkeypatch):
    torch.manual_seed(4)
    model, data = Vocoder().eval(), torch.randn(2, 6, 17)
    draw_snakes(model)
    with torch.no_grad():
        stock = model(data)
    streams = tt.streaming(model)
    assert "with SnakeBeta" in str(streams.model.up[0]) and "with SnakeBeta" in str(streams.model.post[0])
    for one in (streams, streams.share()):
        monkeypatch.setattr(snakes, "sin", lambda *_: pytest.fail("SnakeBeta is called"))
        whole = in_chunks(one, data, [17])
        torch.testing.assert_close(whole, stock, rtol=1e-4, atol=1e-5)
        assert torch.equal(in_chunks(one, data, [1, 0, 3, 9, 4]), whole)
        monkeypatch.undo()
    with torch.no_grad():
        torch.testing.assert_close(model(data), stock)  # the model itself stays as it is


def test_a_forward_that_calls_snakebeta_itself():
    torch.manual_seed(5)
    data, models = torch.randn(1, 6, 12), [Vocoder(lambda number: True), Vocoder(lambda number: number == 2)]
    for model in models:
        draw_snakes(model)
    with torch.no_grad():
        stock = models[0].eval()(data)
    streams = tt.streaming(models[0])
    torch.testing.assert_close(in_chunks(streams, data, [5, 7]), stock, rtol=1e-4, atol=1e-5)
    streams = tt.streaming(models[1])
    streams(data)
    with pytest.raises(tconv_cl.RequestError, match="up.0 is called by its Sequential for one chunk"):
        streams(data)


def test_what_is_not_snakebeta_stays_a_module():
    torch.manual_seed(6)
    model, data = Vocoder().eval(), torch.randn(1, 6, 9)
    draw_snakes(model)
    seen = []
    model.post[1].register_forward_hook(lambda module, inputs, output: seen.append(output.shape[2]))
    model.up[1].forward = lambda x: 2 * x
    with torch.no_grad():
        stock = model(data)
    streams = tt.streaming(model)
    assert "with SnakeBeta" not in str(streams)
    torch.testing.assert_close(in_chunks(streams, data, [4, 5]), stock, rtol=1e-4, atol=1e-5)
    assert sum(seen) == 2 * 18


class Halved(nn.Sequential):
    """A Sequential with more than a forward."""

    def __call__(self, x):
        return super().__call__(x) / 2

    def again(self, x):
        return self(x) + 1


class InTraining(SnakeBeta):
    """SnakeBeta, but in training with another number."""

    def forward(self, x):
        alpha, beta = self.alpha.unsqueeze(0).unsqueeze(-1), self.beta.unsqueeze(0).unsqueeze(-1)
        number = 1.0 if self.training else self.no_div_by_zero
        return x + (1.0 / (beta + number)) * torch.pow(torch.sin(x * alpha), 2)


class Calling(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = Halved(nn.ConvTranspose1d(6, 4, 4, 2, 1), SnakeBeta(4))

    def forward(self, x):
        return self.up.again(x)


def test_a_subclass_of_sequential_keeps_its_own_methods():
    torch.manual_seed(7)
    model, data = Calling().eval(), torch.randn(1, 6, 9)
    draw_snakes(model)
    with torch.no_grad():
        stock = model(data)
    streams = tt.streaming(model)
    assert "with SnakeBeta" in str(streams)
    for one in (streams, streams.share()):
        torch.testing.assert_close(in_chunks(one, data, [4, 5]), stock, rtol=1e-4, atol=1e-5)


def test_snakebeta_is_that_of_inference():
    torch.manual_seed(8)
    model, data = nn.Sequential(nn.ConvTranspose1d(6, 4, 4, 2, 1), InTraining(4)), torch.randn(1, 6, 9)
    draw_snakes(model)
    streams = tt.streaming(model.train())
    assert "with InTraining" in str(streams) and model.training
    with torch.no_grad():
        torch.testing.assert_close(in_chunks(streams, data, [4, 5]), model.eval()(data), rtol=1e-4, atol=1e-5)
