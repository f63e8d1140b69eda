# SPDX-License-Identifier: Apache-2.0
"""torch.vmap over data, weights and biases, against PyTorch's own operators."""

import copy
import itertools

import pytest

torch = pytest.importorskip("torch")

from test_torch import OURS, THEIRS, Counted, close, random  # noqa: E402
from torch import nn  # noqa: E402

import tconv_cl.torch  # noqa: E402

BATCH = 3


def stack(tensor, at):
    """`tensor` itself, or BATCH different ones along the axis `at`."""
    return tensor if at is None else torch.stack([tensor * (i + 1) - i for i in range(BATCH)], at)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("with_bias", [False, True])
def test_every_choice_of_axes(axes, groups, with_bias):
    """Each is one transposed convolution of the library's. With one axis the weights are larger than the data, else
    smaller."""
    tensors = [random(2, 4, *[4] * axes), random(4, 3, *[3] * axes, seed=2)]
    if with_bias:
        tensors.append(random(3 * groups, seed=3))
    options = {"stride": 2, "padding": 1, "output_padding": 1, "groups": groups}
    for dims in itertools.product((None, 0, 1), (None, 0, -1), *[(None, 0, 1)] * with_bias):
        if any(at is not None for at in dims):
            stacked = [stack(tensor, at) for tensor, at in zip(tensors, dims, strict=True)]
            with Counted(computed=1):
                output = torch.vmap(lambda *each: OURS[axes - 1](*each, **options), in_dims=dims)(*stacked)
            close(output, torch.vmap(lambda *each: THEIRS[axes - 1](*each, **options), in_dims=dims)(*stacked))


def test_the_weight_alone_and_data_without_a_batch():
    data, weights = random(4, 5), random(BATCH, 4, 3, 3)
    for function in (tconv_cl.torch.conv_transpose1d, nn.functional.conv_transpose1d):
        with Counted(computed=1), tconv_cl.torch.dispatch():  # the second by dispatch
            output = torch.vmap(function, in_dims=(None, 0))(data, weights)
        for one, weight in zip(output, weights, strict=True):
            close(one, nn.functional.conv_transpose1d(data, weight))


def test_one_inside_another():
    data, weights = random(2, 4, 5), random(BATCH, 4, 3, 3)

    def every_pair(function):
        return torch.vmap(torch.vmap(function, in_dims=(None, 0)), in_dims=(0, None))(data, weights)

    with Counted(computed=1):
        output = every_pair(tconv_cl.torch.conv_transpose1d)
    close(output, every_pair(nn.functional.conv_transpose1d))


def test_out():
    data, weights, out = random(BATCH, 1, 4, 5), random(BATCH, 4, 3, 3), torch.empty(BATCH, 1, 3, 7)
    with Counted(computed=1):
        torch.vmap(lambda data, weight, out: tconv_cl.torch.conv_transpose1d(data, weight, out=out))(data, weights, out)
    close(out, torch.vmap(nn.functional.conv_transpose1d)(data, weights))


def test_weights_stay_packed():
    data, weights = random(4, 5), random(BATCH, 4, 3, 3)
    with Counted(computed=2, packed=1):
        for _ in range(2):
            torch.vmap(tconv_cl.torch.conv_transpose1d, in_dims=(None, 0))(data, weights)


@pytest.mark.parametrize("gradients", [False, True])
def test_an_ensemble(gradients):
    """Modules with the weights of several models, as torch.func's pages build them, in inference and in training."""
    models = [nn.Sequential(nn.ConvTranspose1d(4, 3, 3), nn.BatchNorm1d(3).eval(), nn.ReLU()) for _ in range(BATCH)]
    own = copy.deepcopy(models[0])
    ours = copy.deepcopy(own)
    tconv_cl.torch.convert(ours)
    data, results = random(2, 4, 5), []
    for module, computed in ((own, 0), (ours, 1)):
        parameters, buffers = torch.func.stack_module_state(models)
        before = tconv_cl.torch.statistics()
        with torch.set_grad_enabled(gradients):
            output = torch.vmap(
                lambda parameters, buffers: torch.func.functional_call(module, (parameters, buffers), (data,))
            )(parameters, buffers)
        assert tconv_cl.torch.statistics()[:2] == (before.computed + computed, before.fallbacks)
        if gradients:
            output.square().sum().backward()
        results.append([output, *(parameter.grad for parameter in parameters.values() if gradients)])
    for wanted, result in zip(*results, strict=True):
        close(result, wanted, 1e-4)


def test_compiled():
    data, weights = random(BATCH, 1, 4, 5), random(BATCH, 4, 3, 3)
    compiled = torch.compile(torch.vmap(tconv_cl.torch.conv_transpose1d), fullgraph=True, backend="aot_eager")
    close(compiled(data, weights), torch.vmap(nn.functional.conv_transpose1d)(data, weights))


def test_no_batch_is_torchs_error():
    before = tconv_cl.torch.statistics()
    with pytest.raises(RuntimeError, match="non-positive groups"):
        torch.vmap(tconv_cl.torch.conv_transpose1d)(random(0, 1, 4, 5), random(0, 4, 3, 3))
    assert tconv_cl.torch.statistics() == before
