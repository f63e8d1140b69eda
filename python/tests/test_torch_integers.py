# SPDX-License-Identifier: Apache-2.0
"""Integer tensors: int64 is computed bit for bit as by PyTorch's own operators, which refuse all other integers."""

import pytest

torch = pytest.importorskip("torch")

from test_torch import LAYERS, OURS, THEIRS, Counted, converted, problem  # noqa: E402
from torch import nn  # noqa: E402

import tconv_cl.torch  # noqa: E402

INTEGERS = (torch.int8, torch.int16, torch.int32, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool)
LEAST, MOST = -(2**63), 2**63 - 1


def whole(*shape, seed=1):
    """All of the type's numbers: sums wrap."""
    return torch.randint(LEAST, MOST, shape, generator=torch.Generator().manual_seed(seed), dtype=torch.int64)


@pytest.mark.parametrize("seed", range(24))
def test_int64(seed):
    axes, *tensors, options = problem(seed)
    tensors = [None if tensor is None else whole(*tensor.shape, seed=i) for i, tensor in enumerate(tensors)]
    wanted = THEIRS[axes - 1](*tensors, **options)
    with Counted(computed=3, packed=1):
        assert torch.equal(OURS[axes - 1](*tensors, **options), wanted)
        with tconv_cl.torch.dispatch():
            assert torch.equal(THEIRS[axes - 1](*tensors, **options), wanted)
        out = torch.empty_like(wanted)
        assert OURS[axes - 1](*tensors, **options, out=out) is out and torch.equal(out, wanted)


def test_strides_and_changed_weights():
    data, weight = whole(2, 5, 6, 4).permute(0, 3, 1, 2), whole(3, 4, 3, 3, seed=2).transpose(0, 1)
    for number in (0, LEAST):  # as f64 they would be equal
        weight[3, 2, 1, 1] = number
        with Counted(computed=2, packed=1):
            for _ in range(2):
                output = tconv_cl.torch.conv_transpose2d(data, weight)
                assert torch.equal(output, nn.functional.conv_transpose2d(data, weight))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_modules(axes):
    """What follows the layer is torch's: activations of integers have other types."""
    own = nn.Sequential(LAYERS[axes - 1](4, 6, 3, stride=2, groups=2), nn.ReLU(), nn.Sigmoid())
    for name in ("weight", "bias"):
        setattr(own[0], name, nn.Parameter(whole(*getattr(own[0], name).shape), requires_grad=False))
    data = whole(2, 4, *[5] * axes, seed=2)
    with torch.no_grad(), Counted(computed=1):
        output = converted(own)(data)
    assert torch.equal(output, own(data))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_other_integers_are_refused_as_by_torch(dtype):
    data, weight = torch.ones(1, 2, 5).to(dtype), torch.ones(2, 2, 3).to(dtype)
    with pytest.raises(RuntimeError) as wanted:
        nn.functional.conv_transpose1d(data, weight)
    with Counted(computed=0, fallbacks=1), pytest.raises(type(wanted.value)) as caught:
        tconv_cl.torch.conv_transpose1d(data, weight)
    assert str(caught.value) == str(wanted.value)
    with tconv_cl.torch.dispatch(fallback="error"), pytest.raises(RuntimeError, match=f"elements of type {dtype}"):
        nn.functional.conv_transpose1d(data, weight)
