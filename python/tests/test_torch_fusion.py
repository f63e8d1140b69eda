# SPDX-License-Identifier: Apache-2.0
"""A Sequential takes neighbours into a layer only where nobody can see the difference."""

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")

import snakes  # noqa: E402
from snakes import LEFT, AlongTime, ByValue, Snake, SnakeBeta, draw_snakes  # noqa: E402

import tconv_cl.torch  # noqa: E402

nn = torch.nn
DATA = torch.randn(1, 4, 5, 6, generator=torch.Generator().manual_seed(1))


def model(norm=True):
    torch.manual_seed(2)
    modules = [nn.ConvTranspose2d(4, 6, 3, stride=2), *([nn.BatchNorm2d(6)] if norm else []), nn.ReLU()]
    one = nn.Sequential(*modules).eval()
    if norm:
        one[1].running_mean.uniform_()
        one[1].running_var.uniform_(0.5, 2)
    return one


def replace_forward(number):
    def change(one, seen):
        own = one[number].forward
        one[number].forward = lambda input: seen.append(number) or own(input) + number + 1

    return change


def replace_call(number):
    def change(one, seen):
        own = one[number]._call_impl
        one[number]._call_impl = lambda *args, **kwargs: seen.append(number) or own(*args, **kwargs) + number + 1

    return change


def hook(register, number):
    def change(one, seen):
        def called(module, *tensors):
            seen.append(number)

        getattr(one[number], register)(called)

    return change


def hook_of_all(register):
    def change(one, seen):
        def called(module, *tensors):
            seen.append((type(module).__name__, [tuple(t.shape) for t in tensors if isinstance(t, torch.Tensor)]))

        return getattr(nn.modules.module, register)(called)

    return change


def parametrize(number):
    def change(one, seen):
        class Doubled(nn.Module):
            def forward(self, x):
                seen.append(number)
                return 2 * x

        nn.utils.parametrize.register_parametrization(one[number], "weight", Doubled())

    return change


CHANGES = {
    **{f"forward of {n}": replace_forward(n) for n in range(3)},
    **{f"call of {n}": replace_call(n) for n in range(3)},
    **{f"hook of {n}": hook("register_forward_hook", n) for n in range(3)},
    **{f"pre-hook of {n}": hook("register_forward_pre_hook", n) for n in range(3)},
    "hook of all": hook_of_all("register_module_forward_hook"),
    "pre-hook of all": hook_of_all("register_module_forward_pre_hook"),
    **{f"parametrization of {n}": parametrize(n) for n in range(2)},
}


@pytest.mark.parametrize("converted_first", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_whoever_looks_sees_the_same(change, converted_first):
    own, ours = model(), model()
    if converted_first:
        tconv_cl.torch.convert(ours, fallback="error")
    seen = []
    for one in (own, ours):
        calls = []
        handle = CHANGES[change](one, calls)
        if one is ours and not converted_first:
            tconv_cl.torch.convert(ours, fallback="error")
        with torch.no_grad():
            calls.append(one(DATA))
        if handle is not None:
            handle.remove()
        seen.append(calls)
    torch.testing.assert_close(seen[1].pop(), seen[0].pop(), rtol=1e-4, atol=1e-4)
    assert seen[0] == seen[1] and seen[0]


def test_what_is_plain_is_fused(monkeypatch):
    """Else the tests above would show nothing: neighbours that nobody watches are not called."""
    ours = model()
    tconv_cl.torch.convert(ours)
    with torch.no_grad():
        wanted = model()(DATA)
    for cls in (nn.BatchNorm2d, nn.ReLU):
        monkeypatch.setattr(cls, "__call__", lambda *_: pytest.fail("it is called"), raising=False)
    with torch.no_grad():
        torch.testing.assert_close(ours(DATA), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cls", [nn.ReLU, nn.BatchNorm2d])
def test_a_class_that_somebody_changed(cls, monkeypatch):
    own, ours = model(), model()
    tconv_cl.torch.convert(ours)
    forward = cls.forward
    monkeypatch.setattr(cls, "forward", lambda self, input: forward(self, input) + 3)
    with torch.no_grad():
        torch.testing.assert_close(ours(DATA), own(DATA), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("weight, bias", [(True, False), (False, True), (False, False)])
def test_norms_without_some_of_their_tensors(weight, bias):
    own, ours = model(), model()
    for one in (own, ours):
        one[1].weight = nn.Parameter(torch.full([6], 1.5)) if weight else None
        one[1].bias = nn.Parameter(torch.full([6], 0.25)) if bias else None
    tconv_cl.torch.convert(ours, fallback="error")
    with torch.no_grad():
        torch.testing.assert_close(ours(DATA), own(DATA), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("gradients", [True, False])
def test_symbolic_traces(gradients, norm):
    own, ours = model(norm), model(norm)
    tconv_cl.torch.convert(ours)
    with torch.set_grad_enabled(gradients):
        traced = torch.fx.symbolic_trace(ours)
    assert [node.op for node in traced.graph.nodes].count("call_module") >= 1
    saved = pickle.dumps(traced)
    assert b"tconv_cl._" not in saved  # private modules may change
    with torch.no_grad():
        wanted = own(DATA)
        torch.testing.assert_close(traced(DATA), wanted, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(pickle.loads(saved)(DATA), wanted, rtol=1e-4, atol=1e-4)


def test_compiled_neighbours():
    own, ours = model(), model()
    tconv_cl.torch.convert(ours)
    ours[2].compile(backend="eager")
    with torch.no_grad():
        torch.testing.assert_close(ours(DATA), own(DATA), rtol=1e-4, atol=1e-4)


def test_transforms_of_pytorch():
    own, ours = model(), model()
    tconv_cl.torch.convert(ours)
    with torch.no_grad():
        wanted = own(DATA)
        torch.testing.assert_close(torch.vmap(ours)(DATA[None])[0], wanted, rtol=1e-4, atol=1e-4)
        value, _ = torch.func.jvp(ours, (DATA,), (DATA,))
        torch.testing.assert_close(value, wanted, rtol=1e-4, atol=1e-4)
        with torch.autograd.forward_ad.dual_level():
            torch.testing.assert_close(ours(DATA), wanted, rtol=1e-4, atol=1e-4)


def test_numbers_of_an_activation_that_change():
    own, ours = model(), model()
    slope = torch.tensor(0.1)
    for one in (own, ours):
        one[2] = nn.LeakyReLU(slope)
    tconv_cl.torch.convert(ours)
    for value in (0.1, 0.7):
        slope.fill_(value)
        with torch.no_grad():
            torch.testing.assert_close(ours(DATA), own(DATA), rtol=1e-4, atol=1e-4)


def test_wrong_modules_raise_as_before():
    for change in (
        lambda one: setattr(one[1], "running_var", torch.ones(1)),
        lambda one: one.__setitem__(2, nn.GELU("foo")),
        lambda one: setattr(one[0], "weight", nn.Parameter(torch.ones(4, 1, 3, 3))),
        lambda one: setattr(one[0], "bias", nn.Parameter(torch.ones(1))),
    ):
        ours = model()
        change(ours)
        tconv_cl.torch.convert(ours)
        with torch.no_grad(), pytest.raises(RuntimeError):
            ours(DATA)


def test_channels_that_a_layer_only_says():
    """Another weight may be put in its place."""
    own, ours = model(), model()
    for one in (own, ours):
        one[0].weight = nn.Parameter(torch.ones(4, 5, 3, 3))
        one[0].bias = nn.Parameter(torch.ones(5))
        one[1] = nn.BatchNorm2d(5).eval()
    tconv_cl.torch.convert(ours, fallback="error")
    with torch.no_grad():
        torch.testing.assert_close(ours(DATA), own(DATA), rtol=1e-4, atol=1e-4)
        one = ours[0](DATA, norm=ours[1])  # as it is fused
        torch.testing.assert_close(ours[2](one), own(DATA), rtol=1e-4, atol=1e-4)


def test_a_layer_class_that_somebody_changed(monkeypatch):
    ours = model()
    forward = nn.ConvTranspose2d.forward
    monkeypatch.setattr(nn.ConvTranspose2d, "forward", lambda self, input: forward(self, input) + 3)
    wanted = model()(DATA)
    assert tconv_cl.torch.explain(tconv_cl.torch.convert(ours)).converted == []
    torch.testing.assert_close(ours(DATA), wanted)


@pytest.mark.parametrize("extent", [5, 8])
def test_data_without_a_batch(extent):
    """Then a norm takes the channels for a batch: with 6 columns it computes that, with others it raises."""
    own = nn.Sequential(nn.ConvTranspose1d(4, 6, 2), nn.BatchNorm1d(6)).eval()
    ours = nn.Sequential(nn.ConvTranspose1d(4, 6, 2), nn.BatchNorm1d(6)).eval()
    own[1].running_mean.uniform_()
    ours.load_state_dict(own.state_dict())
    tconv_cl.torch.convert(ours)
    data = torch.randn(4, extent)
    with torch.no_grad():
        if extent == 5:
            torch.testing.assert_close(ours(data), own(data), rtol=1e-4, atol=1e-4)
        else:
            for one in (own, ours):
                with pytest.raises(RuntimeError):
                    one(data)


@pytest.mark.parametrize("shape", [(1, 4, 0, 5), (2, 4, 3, 0), (0, 4, 3, 5)], ids=str)
def test_data_without_elements(shape):
    """Gradients are PyTorch's, and so is the error."""
    own = nn.ConvTranspose2d(4, 6, 3, stride=2)
    ours = tconv_cl.torch.convert(copy.deepcopy(own), fallback="error")
    for layer in (own, ours):
        if 0 in shape[2:]:
            with pytest.raises(RuntimeError, match="Only zero batch or zero channel inputs are supported"):
                layer(torch.zeros(shape, requires_grad=True))
        else:
            layer(torch.zeros(shape, requires_grad=True)).sum().backward()
    torch.testing.assert_close(ours.weight.grad, own.weight.grad)
    torch.testing.assert_close(ours.bias.grad, own.bias.grad)


SOUND = torch.randn(2, 6, 11, generator=torch.Generator().manual_seed(2))


def vocoder(snake, norm=False):
    torch.manual_seed(3)
    norms = [nn.BatchNorm1d(4)] if norm else []
    made = nn.Sequential(nn.ConvTranspose1d(6, 4, 4, 2, 1), *norms, snake, nn.Tanh()).eval()
    draw_snakes(made)
    return made


def each_apart(model, data):
    """A Sequential fuses: this does not."""
    for module in model:
        data = module(data)
    return data


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("snake", [SnakeBeta(4), SnakeBeta(4, True), Snake(4)], ids=["beta", "logarithms", "one"])
def test_snakebeta_is_fused(snake, dtype, norm):
    ours = tconv_cl.torch.convert(vocoder(snake, norm).to(dtype), fallback="error")
    data = SOUND.to(dtype)
    names = f"{'BatchNorm1d and ' if norm else ''}{type(snake).__name__}"
    assert f"tconv-cl: with {names}, if no gradient is asked for" in str(tconv_cl.torch.explain(ours))
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-13}
    with torch.no_grad():
        for change in (lambda: None, lambda: None, lambda: snake.alpha.mul_(0.5)):
            change()  # parameters are read at each call
            torch.testing.assert_close(ours(data), each_apart(ours, data), **close)
        if isinstance(snake, SnakeBeta):  # and so are its numbers
            snake.alpha_logscale = not snake.alpha_logscale
            torch.testing.assert_close(ours(data), each_apart(ours, data), **close)
    assert ours(data).grad_fn is not None
    if not norm:
        torch.testing.assert_close(ours(data[0]), each_apart(ours, data[0]), **close)


def test_snakebeta_is_called_where_somebody_looks(monkeypatch):
    ours = tconv_cl.torch.convert(vocoder(SnakeBeta(4)), fallback="error")
    called, own = [], snakes.sin
    with torch.no_grad():
        wanted = ours(SOUND)
        monkeypatch.setattr(snakes, "sin", lambda x: called.append(1) or own(x))
        torch.testing.assert_close(ours(SOUND), wanted)
        assert not called
        handle = ours[1].register_forward_hook(lambda *_: None)
        torch.testing.assert_close(ours(SOUND), wanted, rtol=1e-4, atol=1e-5)
        assert len(called) == 1
        handle.remove()
        with torch.autocast("cpu", torch.bfloat16):
            assert ours(SOUND).dtype == each_apart(ours, SOUND).dtype
        assert len(called) == 3
        monkeypatch.setattr(SnakeBeta, "forward", lambda self, x: 2 * x)
        torch.testing.assert_close(ours(SOUND), each_apart(ours, SOUND))


@pytest.mark.parametrize("cls", LEFT, ids=lambda cls: cls.__name__)
def test_what_is_not_snakebeta_is_left_alone(cls):
    named = type(f"Snake{cls.__name__}", (cls,), {})
    ours = tconv_cl.torch.convert(vocoder(named(4)), fallback="error")
    (layer,) = tconv_cl.torch.explain(ours)
    assert layer.converted and f"not with {named.__name__}: " in layer.note and LEFT[cls] in layer.note
    if cls not in (AlongTime, ByValue):  # which fail
        with torch.no_grad():
            ours[1].alpha_logscale = False
            got = ours(SOUND)
            ours[1].alpha_logscale = False
            torch.testing.assert_close(got, each_apart(ours, SOUND), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda model: setattr(model, "2", SnakeBeta(3)), ""),
        (lambda model: setattr(model, "1", SnakeBeta(1)), "alpha has 1 elements, but the layer has 4 channels"),
        (lambda model: model.half(), "elements of type torch.float16"),
        (lambda model: model[1].double(), "no parameter of type torch.float32"),
        (lambda model: nn.utils.parametrizations.weight_norm(model[1], "alpha", 0), "reads alpha, which is no"),
        (lambda model: setattr(model[1], "forward", lambda x: x), "a method that was replaced"),
    ],
)
def test_why_snakebeta_is_left(change, words):
    ours = vocoder(SnakeBeta(4))
    change(ours)
    (layer,) = tconv_cl.torch.explain(tconv_cl.torch.convert(ours))
    assert layer.converted and words in layer.note and ("not with" in layer.note) == bool(words)
