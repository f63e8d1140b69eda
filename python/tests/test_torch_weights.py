# SPDX-License-Identifier: Apache-2.0
"""Weights that change are noticed, by whatever route; packed weights are bounded in number."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn.utils import prune  # noqa: E402

import tconv_cl.torch  # noqa: E402
from tconv_cl._torch import tensors as inside  # noqa: E402

CHANNELS, KERNEL = 64, 4  # 65,536 weights


def layers():
    """A converted layer and torch's own with the same weight."""
    torch.manual_seed(3)
    layer = torch.nn.ConvTranspose2d(CHANNELS, CHANNELS, KERNEL, stride=2, bias=False)
    own = torch.nn.ConvTranspose2d(CHANNELS, CHANNELS, KERNEL, stride=2, bias=False)
    own.weight = layer.weight
    return tconv_cl.torch.convert(layer, fallback="error"), own


def check(layer, own, data):
    with torch.no_grad():
        torch.testing.assert_close(layer(data), own(data), rtol=1e-4, atol=1e-4)


def by_data(weight, index):
    weight.data.view(-1)[index] += 100


def by_numpy(weight, index):
    weight.detach().numpy().reshape(-1)[index] += 100


def without_the_counter(weight, index):
    with torch.autograd._unsafe_preserve_version_counter(weight), torch.no_grad():
        weight.view(-1)[index] += 100


def by_its_memory(weight, index):
    np.frombuffer((np.ctypeslib.ctypes.c_float * weight.numel()).from_address(weight.data_ptr()), np.float32)[
        index
    ] += 100


@pytest.mark.parametrize("count", [1, 4, 256])
@pytest.mark.parametrize("change", [by_data, by_numpy, without_the_counter, by_its_memory])
def test_a_few_elements(change, count):
    layer, own = layers()
    data = torch.randn(1, CHANNELS, 3, 4)
    check(layer, own, data)
    for seed in range(5):
        where = np.random.default_rng(seed).choice(layer.weight.numel(), count, replace=False)
        change(layer.weight, where)
        check(layer, own, data)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_fused_optimizers(kind):
    """They leave the version of a weight as it was. The gradient has one element that is not 0."""
    layer, own = layers()
    data = torch.randn(1, CHANNELS, 3, 4)
    optimizer = getattr(torch.optim, kind)([layer.weight], lr=30.0, fused=True)
    check(layer, own, data)
    for step in range(4):
        layer.weight.grad = torch.zeros_like(layer.weight)
        layer.weight.grad.view(-1)[step * 1001] = 1
        optimizer.step()
        check(layer, own, data)


def test_memory_that_another_process_changes():
    layer, own = layers()
    data = torch.randn(1, CHANNELS, 3, 4)
    layer.weight.share_memory_()
    check(layer, own, data)
    worker = torch.multiprocessing.get_context("spawn").Process(target=by_data, args=(layer.weight.detach(), 777))
    worker.start()
    worker.join()
    assert worker.exitcode == 0
    check(layer, own, data)


@pytest.mark.parametrize("last", [False, True])
def test_weights_that_are_not_contiguous(last):
    layer, own = layers()
    data = torch.randn(1, CHANNELS, 3, 4)
    if last:
        data = data.to(memory_format=torch.channels_last)
    layer.weight.data = layer.weight.data.transpose(0, 1).contiguous().transpose(0, 1)
    own.weight = layer.weight
    assert not layer.weight.is_contiguous()
    for index in (0, 5000, 65535):
        check(layer, own, data)
        layer.weight.data[index // 1024, index // 16 % 64, index // 4 % 4, index % 4] += 100
    check(layer, own, data)


@pytest.mark.parametrize("form", ["channels_last", "transposed"])
def test_copies_of_weights_are_packed_once(form):
    """A copy is made and packed again only if an element of the weight has changed."""
    layer, own = layers()
    data = torch.randn(1, CHANNELS, 3, 4)
    weight = layer.weight.data
    weight = weight.to(memory_format=torch.channels_last) if form == "channels_last" else weight.transpose(0, 1)
    layer.weight.data = weight
    own.weight = layer.weight
    before = tconv_cl.torch.statistics().packed
    for packed in (1, 2, 3):
        for _ in range(3):
            check(layer, own, data)
        assert tconv_cl.torch.statistics().packed == before + packed
        by_its_memory(layer.weight, 77 * packed)


def test_weights_between_others():
    """Elements between those of a weight are not looked at."""
    several, data = torch.randn(6, 4, 3, 3, 50), torch.randn(1, 6, 5, 7)
    weight = several[..., 7]
    before = tconv_cl.torch.statistics().packed
    for packed in (1, 2):
        for other in (3, 8):
            output = tconv_cl.torch.conv_transpose2d(data, weight)
            torch.testing.assert_close(output, torch.nn.functional.conv_transpose2d(data, weight))
            several[..., other] += 1
        assert tconv_cl.torch.statistics().packed == before + packed
        weight[1, 2, 0, 0] += 1


def test_a_weight_that_changes_while_it_is_copied(monkeypatch):
    """The copy is used once."""
    layer, own = layers()
    layer.weight.data = layer.weight.data.transpose(0, 1)
    own.weight = layer.weight
    data, hashes = torch.randn(1, CHANNELS, 3, 4), iter(range(1000))
    with monkeypatch.context() as patch:
        patch.setattr(inside.Weights, "_hash", lambda *_: (next(hashes), 0))
        for index in (5, 6):
            check(layer, own, data)
            by_its_memory(layer.weight, index)
    check(layer, own, data)


def test_inference_tensors():
    with torch.inference_mode():
        layer, own = layers()
        own.weight = layer.weight
        data = torch.randn(1, CHANNELS, 3, 4)
        for index in (1, 40001):
            check(layer, own, data)
            layer.weight.view(-1)[index] += 100
        check(layer, own, data)


def test_unchanged_weights_are_packed_once():
    layer, own = layers()
    data = torch.randn(1, CHANNELS, 3, 4)
    before = tconv_cl.torch.statistics().packed
    for _ in range(5):
        check(layer, own, data)
    assert tconv_cl.torch.statistics().packed == before + 1
    by_data(layer.weight, 9)
    for _ in range(5):
        check(layer, own, data)
    assert tconv_cl.torch.statistics().packed == before + 2


def test_views_of_one_storage_are_bounded():
    storage = torch.randn(3000 + 2 * 3 * 5)
    data = torch.randn(1, 2, 7)
    with torch.no_grad():
        for offset in range(3000):
            weight = storage[offset : offset + 30].view(2, 3, 5)
            tconv_cl.torch.conv_transpose1d(data, weight)
    assert len(inside.state.weights) <= inside.WEIGHTS


# ---- weights that are computed at each call ----

NORMS = {
    "weight_norm": lambda layer: torch.nn.utils.weight_norm(layer),
    "parametrizations.weight_norm": lambda layer: torch.nn.utils.parametrizations.weight_norm(layer),
    "parametrizations.spectral_norm": lambda layer: torch.nn.utils.parametrizations.spectral_norm(layer).eval(),
    "prune": lambda layer: prune.l1_unstructured(layer, "weight", 0.3),
}


@pytest.mark.filterwarnings("ignore:.*weight_norm.*is deprecated")
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("order", ["before", "after"])
def test_computed_weights_are_packed_once(norm, order):
    """Those of several layers of one shape, too: they are told apart by their elements."""
    torch.manual_seed(3)
    own = torch.nn.ModuleList(torch.nn.ConvTranspose2d(8, 6, 4, stride=2) for _ in range(3))
    ours = torch.nn.ModuleList(torch.nn.ConvTranspose2d(8, 6, 4, stride=2) for _ in range(3))
    ours.load_state_dict(own.state_dict())
    if order == "before":
        tconv_cl.torch.convert(ours, fallback="error")
    for layer in (*own, *ours):
        torch.manual_seed(4)
        NORMS[norm](layer)
    if order == "after":
        tconv_cl.torch.convert(ours, fallback="error")
    data = torch.randn(2, 8, 5, 6)
    before = tconv_cl.torch.statistics()
    with torch.no_grad():
        for _ in range(5):
            for layer, wanted in zip(ours, own):
                torch.testing.assert_close(layer(data), wanted(data))
    after = tconv_cl.torch.statistics()
    assert (after.packed - before.packed, after.computed - before.computed) == (3, 15)


@pytest.mark.parametrize("use", ["module", "function", "script"])
def test_computed_weights_that_change(use):
    """A hundred changes of one element each: no result is stale, and each is packed once."""
    torch.manual_seed(3)
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.ConvTranspose1d(16, 8, 6, stride=2))
    data, direction = torch.randn(1, 16, 9), layer.parametrizations.weight.original1
    ours = tconv_cl.torch.convert(copy.deepcopy(layer), fallback="error")
    ours.parametrizations.weight.original1 = direction

    def compute():
        if use == "module":
            return ours(data)
        if use == "function":
            return tconv_cl.torch.conv_transpose1d(data, layer.weight, layer.bias, stride=2)
        with tconv_cl.torch.dispatch(fallback="error"):
            return layer(data)

    before = tconv_cl.torch.statistics().packed
    with torch.no_grad():
        for index in np.random.default_rng(5).integers(0, direction.numel(), 100):
            direction.view(-1)[index] += 1
            for _ in range(2):
                torch.testing.assert_close(compute(), layer(data), rtol=1e-4, atol=1e-5)
    assert tconv_cl.torch.statistics().packed - before <= 100


def test_a_computed_weight_that_changes_itself():
    """Behind the call that found it by its elements."""
    data, first = torch.randn(1, 3, 7), torch.randn(3, 2, 5)
    with torch.no_grad():
        for step in range(20):
            weight = first * 1
            for index in (None, step % 30, (7 * step) % 30):
                if index is not None:
                    weight.view(-1)[index] += 100
                wanted = torch.nn.functional.conv_transpose1d(data, weight)
                torch.testing.assert_close(tconv_cl.torch.conv_transpose1d(data, weight), wanted)


def test_weights_of_freed_tensors_are_bounded(monkeypatch):
    monkeypatch.setattr(inside, "FREED_BYTES", 10 * 30 * 4)
    data = torch.randn(1, 2, 7)
    with torch.no_grad():
        for _ in range(100):
            tconv_cl.torch.conv_transpose1d(data, torch.randn(2, 3, 5))
    assert 5 < len(inside.state.freed) <= 10
    monkeypatch.setattr(inside, "FREED_BYTES", 1 << 20)
    with torch.no_grad():
        for _ in range(100):
            tconv_cl.torch.conv_transpose1d(data, torch.randn(2, 3, 5))
    assert len(inside.state.freed) <= inside.FREED_ALIKE
    tconv_cl.torch.refresh(torch.zeros(1))
    assert not inside.state.freed


def test_layers_of_arrays():
    random = np.random.default_rng(5)
    filter_ = random.standard_normal((8, 6, 4, 4)).astype(np.float32)
    data = random.standard_normal((1, 8, 5, 6)).astype(np.float32)
    layer = tconv_cl.ConvTranspose(filter_, strides=2)
    for index in (None, 0, 500, 767):
        if index is not None:
            filter_.reshape(-1)[index] += 100
        np.testing.assert_array_equal(layer(data), tconv_cl.conv_transpose(data, filter_, strides=2))
