# SPDX-License-Identifier: Apache-2.0
"""A convolution with nearest upsampling or pixel shuffle as one layer, against the two steps in float64."""

import importlib
from pathlib import Path

import numpy as np
import pytest
import tconv_cl


def convolved(x, w, begin, end, dilation, groups):
    """A convolution of stride 1, channels first."""
    axes = x.ndim - 2
    x, w = x.astype(np.float64), w.astype(np.float64)
    x = np.pad(x, [(0, 0), (0, 0), *zip(begin, end)])
    extents = [x.shape[a + 2] - dilation[a] * (w.shape[a + 2] - 1) for a in range(axes)]
    y = np.zeros((x.shape[0], w.shape[0], *extents))
    inner, outer = w.shape[1], w.shape[0] // groups
    for k in np.ndindex(*w.shape[2:]):
        part = x[
            (
                slice(None),
                slice(None),
                *(slice(k[a] * dilation[a], k[a] * dilation[a] + extents[a]) for a in range(axes)),
            )
        ]
        for g in range(groups):
            rows = slice(g * outer, (g + 1) * outer)
            weights = w[(rows, slice(None), *k)]
            y[:, rows] += np.einsum("oi,ni...->no...", weights, part[:, g * inner : (g + 1) * inner])
    return y


def two_steps(x, w, scale, begin, end, dilation, groups, last, xio):
    """The definition: enlarge, pad, convolve."""
    if last:
        x = np.moveaxis(x, -1, 1)
    if xio:
        w = np.moveaxis(w, (-1, -2), (0, 1))
    for a in range(x.ndim - 2):
        x = np.repeat(x, scale[a], axis=a + 2)
    y = convolved(x, w, begin, end, dilation, groups)
    return np.moveaxis(y, 1, -1) if last else y


def shuffled(y, factors, order):
    """Pixel shuffle, channels first: as a reshape and a transposition."""
    batch, channels, *extents = y.shape
    axes, out = len(extents), channels // int(np.prod(factors))
    split = (out, *factors) if order == "CRD" else (*factors, out)
    y = y.reshape(batch, *split, *extents)
    own, phases = (1, range(2, axes + 2)) if order == "CRD" else (axes + 1, range(1, axes + 1))
    places = [axis for a, phase in enumerate(phases) for axis in (axes + 2 + a, phase)]
    return y.transpose(0, own, *places).reshape(batch, out, *(e * f for e, f in zip(extents, factors)))


@pytest.mark.parametrize("seed", range(20))
def test_two_steps(seed):
    random = np.random.default_rng(seed)
    axes, groups = int(random.integers(1, 4)), int(random.integers(1, 3))
    inner, outer = random.integers(1, 5, 2)
    last, xio = random.integers(0, 2, 2).astype(bool)
    kernel, scale, dilation = (tuple(int(n) for n in random.integers(1, most, axes)) for most in (4, 4, 3))
    dilation = tuple(d if s == 1 else min(d, s) for d, s in zip(dilation, scale))
    begin, end = (tuple(int(random.integers(0, d * (k - 1) + 1)) for k, d in zip(kernel, dilation)) for _ in range(2))
    extents = tuple(int(n) for n in random.integers(4, 8, axes))
    x = random.integers(-3, 4, (2, groups * inner, *extents)).astype(np.float32)
    w = random.integers(-3, 4, (groups * outer, inner, *kernel)).astype(np.float32)
    if last:
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    if xio:
        w = np.ascontiguousarray(np.moveaxis(w, (0, 1), (-1, -2)))
    y = tconv_cl.upsample_conv(
        x, w, scale=scale, pads_begin=begin, pads_end=end, dilations=dilation, groups=groups,
        data_format="NXC" if last else "NCX", filter_format="XIO" if xio else "OIX",
    )  # fmt: skip
    np.testing.assert_array_equal(y, two_steps(x, w, scale, begin, end, dilation, groups, last, xio))


def test_bias_residual_and_activation():
    x, w = np.ones((1, 2, 3), np.float32), np.ones((1, 2, 3), np.float32)
    y = tconv_cl.upsample_conv(
        x, w, np.array([-7], np.float32), pads_begin=1, pads_end=1, residual=np.ones((1, 1, 6), np.float32),
        activation=("leaky_relu", 0.5),
    )  # fmt: skip
    np.testing.assert_array_equal(y, [[[-1, 0, 0, 0, 0, -1]]])


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.uint16, np.int64])
def test_factor_1_is_a_convolution(kind):
    """For every type: there are no sums of weights. Numbers that float32 and float64 do not have stay exact."""
    x, w = np.array([[[0, 1, 2, 3, 4]]], kind), np.array([[[1, 0, 3]]], kind)
    np.testing.assert_array_equal(tconv_cl.upsample_conv(x, w, scale=1), [[[6, 10, 14]]])
    np.testing.assert_array_equal(tconv_cl.conv(x, w, dilations=2, auto_pad="same_upper"), [[[6, 9, 12, 1, 2]]])
    if kind == np.int64:
        x, w = np.array([[[2**53 + 1, 5]]]), np.array([[[1, 2**40]]])
        np.testing.assert_array_equal(tconv_cl.conv(x, w), [[[2**53 + 1 + 5 * 2**40]]])


@pytest.mark.parametrize("seed", range(12))
def test_convolutions_of_integers(seed):
    """1-D to 3-D, dilations, groups, formats; also quantised, with zero points, which pads count as."""
    random = np.random.default_rng(100 + seed)
    axes, groups = 1 + seed % 3, int(random.integers(1, 3))
    inner, outer = random.integers(1, 5, 2)
    last, xio = bool(seed & 1), bool(seed & 2)
    kernel, dilation = (tuple(int(n) for n in random.integers(1, 4, axes)) for _ in range(2))
    begin, end = (tuple(int(n) for n in random.integers(0, 4, axes)) for _ in range(2))
    kinds = ((np.int8, np.int8), (np.uint8, np.int8), (np.int16, np.int16), (np.uint64, np.uint64))[seed % 4]
    x = random.integers(0, 100, (2, groups * inner, *(int(n) for n in random.integers(7, 10, axes)))).astype(kinds[0])
    w = random.integers(0, 100, (groups * outer, inner, *kernel)).astype(kinds[1])
    bytes_ = kinds[0] in (np.int8, np.uint8)
    zero, weight_zero = (7, -3) if bytes_ else (0, 0)
    wanted = convolved(x.astype(int) - zero, w.astype(int) - weight_zero, begin, end, dilation, groups)
    arrays = (
        np.ascontiguousarray(np.moveaxis(x, 1, -1)) if last else x,
        np.ascontiguousarray(np.moveaxis(w, (0, 1), (-1, -2))) if xio else w,
    )
    options = dict(
        pads_begin=begin, pads_end=end, dilations=dilation, groups=groups, data_format="NXC" if last else "NCX",
        filter_format="XIO" if xio else "OIX",
    )  # fmt: skip
    if bytes_:
        options |= dict(data_zero_point=zero, filter_zero_point=weight_zero)
    sums = tconv_cl.upsample_conv(*arrays, scale=1, **options, output_type="i32" if bytes_ else None)
    first = np.moveaxis(sums, -1, 1) if last else sums
    np.testing.assert_array_equal(first, wanted.astype(np.int64).astype(sums.dtype))
    if bytes_:
        scale = np.full(groups * outer, 2.0**-9, np.float32)
        y = tconv_cl.conv(*arrays, **options, scale=scale, requantize=True, output_zero_point=4, output_type="i8")
        wanted = np.clip(np.rint(wanted * 2.0**-9) + 4, -128, 127)
        np.testing.assert_array_equal(np.moveaxis(y, -1, 1) if last else y, wanted)
        y = tconv_cl.upsample_conv(
            *arrays, scale=1, **options, alpha=2.0**-9, requantize=True, output_zero_point=4, output_type="i8"
        )
        np.testing.assert_array_equal(np.moveaxis(y, -1, 1) if last else y, wanted)


def test_same_padding_keeps_the_enlarged_extents():
    x, w = np.ones((1, 1, 4, 5), np.float32), np.ones((2, 1, 3, 5), np.float32)
    assert tconv_cl.upsample_conv(x, w, scale=(2, 3), auto_pad="same_upper").shape == (1, 2, 8, 15)


def test_refusals():
    x, w = np.ones((1, 4, 3), np.float32), np.ones((6, 4, 3), np.float32)
    with pytest.raises(tconv_cl.RequestError, match="in 2 groups, but the filter wants 4 input channels of a group"):
        tconv_cl.upsample_conv(x, w, groups=2)
    with pytest.raises(tconv_cl.RequestError, match="NCX[)], but the filter wants 4 input channels [(]"):
        tconv_cl.upsample_conv(x[:, :3], w)
    with pytest.raises(tconv_cl.RequestError, match="need not fit an integer type"):
        tconv_cl.upsample_conv(x.astype(np.int8), w.astype(np.int8))
    with pytest.raises(tconv_cl.RequestError, match="only with factors of 1, an ordinary convolution"):
        tconv_cl.upsample_conv(x.astype(np.int8), w.astype(np.int8), scale=2)
    with pytest.raises(tconv_cl.RequestError, match="strides"):
        tconv_cl.upsample_conv(x, w, scale=0)
    with pytest.raises(TypeError, match="'stride'; leave it out: the stride is 1, and there are no factors"):
        tconv_cl.conv(x, w, stride=2)
    for padding, said in (
        ("same", 'write auto_pad="same_upper"'),
        ("VALID", "leave it out"),
        (1, "write pads_begin=1"),
    ):
        with pytest.raises(TypeError, match=f"'padding'; {said}"):
            tconv_cl.conv(x, w, padding=padding)
    with pytest.raises(TypeError, match="'padding'; write pads_begin=0, pads_end=2$"):  # JAX's, of the data
        tconv_cl.conv(x, w, padding=((0, 2),))


@pytest.mark.parametrize("name", ["stride", "strides", "scale_factor", "factor"])
def test_other_names_of_the_factors(name):
    x, w = np.ones((1, 1, 3), np.float32), np.ones((1, 1, 3), np.float32)
    with pytest.raises(TypeError, match=rf"'{name}'; write scale=2$"):
        tconv_cl.upsample_conv(x, w, **{name: 2})


def test_negative_pads_cut():
    """As 3 x 3 taps behind pads that repeat the border: the border of the small data is repeated before."""
    random = np.random.default_rng(1)
    x, w = (random.integers(-3, 4, shape).astype(np.float32) for shape in ((1, 2, 3, 4), (3, 2, 3, 3)))
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], mode="edge")
    enlarged = np.pad(x.repeat(2, 2).repeat(2, 3), [(0, 0), (0, 0), (1, 1), (1, 1)], mode="reflect")
    y = tconv_cl.upsample_conv(wide, w, scale=2, pads_begin=-1, pads_end=-1)
    np.testing.assert_array_equal(y, two_steps(enlarged, w, (1, 1), (0, 0), (0, 0), (1, 1), 1, False, False))
    with pytest.raises(tconv_cl.RequestError, match="pads_end is -2 at spatial axis 1: it must be at least -1"):
        tconv_cl.upsample_conv(wide, w, scale=2, pads_end=(-1, -2))


@pytest.mark.parametrize("seed", range(20))
def test_shuffle_of_a_convolution(seed):
    random = np.random.default_rng(seed)
    axes, order = int(random.integers(1, 4)), ("CRD", "dcr")[seed % 4 == 3]
    groups = int(random.integers(1, 3)) if order == "CRD" else 1
    inner, outer = random.integers(1, 4, 2)
    last, xio = random.integers(0, 2, 2).astype(bool)
    kernel, factors = (tuple(int(n) for n in random.integers(1, 4, axes)) for _ in range(2))
    begin, end = (tuple(int(random.integers(0, k)) for k in kernel) for _ in range(2))
    extents = tuple(int(n) for n in random.integers(3, 6, axes))
    kind = (np.float32, np.int8, np.float64)[seed % 3]
    x = random.integers(-3, 4, (2, groups * inner, *extents)).astype(kind)
    w = random.integers(-3, 4, (groups * outer * int(np.prod(factors)), inner, *kernel)).astype(kind)
    b = random.integers(-9, 9, w.shape[0]).astype(np.int32 if kind == np.int8 else kind)
    y = convolved(x, w, begin, end, (1,) * axes, groups) + b.reshape(-1, *(1,) * axes)
    y = shuffled(y, factors, order.upper())
    got = tconv_cl.conv_pixel_shuffle(
        np.ascontiguousarray(np.moveaxis(x, 1, -1)) if last else x,
        np.ascontiguousarray(np.moveaxis(w, (0, 1), (-1, -2))) if xio else w,
        b, upscale_factor=factors, order=order, pads_begin=begin, pads_end=end, groups=groups,
        data_format="NXC" if last else "NCX", filter_format="XIO" if xio else "OIX",
        output_type="i32" if kind == np.int8 else None,
    )  # fmt: skip
    np.testing.assert_array_equal(np.moveaxis(got, -1, 1) if last else got, y)


def test_shuffle_scales_and_slopes_are_of_the_convolution():
    x, w = np.array([[[1.0, -1.0]]], np.float32), np.array([[[1.0]], [[10.0]]], np.float32)
    scale, slope, bias = (np.array(pair, np.float32) for pair in ((2, 3), (0.5, 0.25), (0, 2)))
    y = tconv_cl.conv_pixel_shuffle(
        x, w, bias, scale=scale, slope=slope, activation="prelu", residual=np.ones((1, 1, 4), np.float32)
    )
    np.testing.assert_array_equal(y, [[[3, 33, -0.5, -6.75]]])
    with pytest.raises(tconv_cl.RequestError, match="bias"):
        tconv_cl.conv_pixel_shuffle(x, w, bias[:1])


def test_shuffle_refusals():
    x, w = np.ones((1, 4, 3), np.float32), np.ones((6, 4, 3), np.float32)
    with pytest.raises(tconv_cl.RequestError, match="pixel shuffle by 4 takes 4 of them"):
        tconv_cl.conv_pixel_shuffle(x, w, upscale_factor=4)
    with pytest.raises(tconv_cl.RequestError, match="phases of an output channel from several groups"):
        tconv_cl.conv_pixel_shuffle(x, w[:, :2], order="DCR", groups=2)
    with pytest.raises(tconv_cl.RequestError, match='order is 7: it must be "CRD" or "DCR"'):
        tconv_cl.conv_pixel_shuffle(x, w, order=7)
    with pytest.raises(TypeError, match="'stride'; write upscale_factor=3$"):
        tconv_cl.conv_pixel_shuffle(x, w, stride=3)


def test_shapes_and_explanations():
    data, up, shuffle = (1, 4, 5, 6), (8, 4, 3, 3), (24, 4, 3, 3)
    pads = {"pads_begin": 1, "pads_end": 1}
    assert tconv_cl.output_shape(data, up, upsample=2, **pads) == (1, 8, 10, 12)
    assert tconv_cl.output_shape(data, shuffle, pixel_shuffle=(3, 2), shuffle_order="DCR", **pads) == (1, 4, 15, 12)
    for factors in ({"upsample": 2}, {"pixel_shuffle": 2}):
        assert "reference" in tconv_cl.explain(data, shuffle, bias=True, **factors, **pads)
        with pytest.raises(tconv_cl.RequestError, match=f"strides is given beside {next(iter(factors))}"):
            tconv_cl.explain(data, shuffle, strides=2, **factors)
    with pytest.raises(tconv_cl.RequestError, match="a layer has one of them"):
        tconv_cl.output_shape(data, up, upsample=2, pixel_shuffle=2)


BENCH = Path(__file__).parents[2] / "bench"


@pytest.mark.skipif(not BENCH.exists(), reason="the sources are not there")
@pytest.mark.parametrize(
    "row",
    [
        "2,4,6,2,5x6,3x2,2x3,,,1x0,1x1",
        "1,4,6,1,5x6,3x3,3x3,,2x3,1x2,1x2",
        "1,4,6,2,9,3,1,,3,2,2",
        "1,2,3,1,3x4x5,3x3x3,,2x2x2,,1x1x1,1x1x1",
        "2,4,2,2,5x6,3x3,,3x2,,1x1,1x1",
    ],
)
def test_peers_of_the_benchmark_get_the_same_layer(row, tmp_path, monkeypatch):
    """bench/compare.py times peers with the equivalent filter: its own two steps, this package's, and the transposed
    convolution that it describes give the same."""
    monkeypatch.syspath_prepend(str(BENCH))
    compare, convolutions = (importlib.import_module(name) for name in ("compare", "compare_convolutions"))
    columns = "batch,in_channels,out_channels,groups,input,kernel,upsample,pixel_shuffle,dilations,pads_begin,pads_end"
    (tmp_path / "suite.csv").write_text(f"id,layer,{columns}\nX,x,{row}\n")
    (layer,) = compare.read_suite(tmp_path / "suite.csv")
    own, random = layer["convolution"], np.random.default_rng(1)
    shapes = (layer["batch"], layer["in_channels"], *layer["input"]), convolutions.filter_shape(layer)
    x, w = (random.integers(-3, 4, shape).astype(np.float32) for shape in shapes)
    y = convolutions.reference(layer, x, w)
    assert y.shape == compare.output_shape(layer)
    names = ("pads_begin", "pads_end", "dilations")
    options = {name: own[name] for name in names} | {"groups": layer["groups"]}
    shuffle = own["kind"] == "shuffle"
    function = tconv_cl.conv_pixel_shuffle if shuffle else tconv_cl.upsample_conv
    factors = {"upscale_factor" if shuffle else "scale": own["factors"]}
    np.testing.assert_array_equal(function(x, w, **factors, **options), y)
    equivalent = {name: layer[name] for name in (*names, "strides", "groups")}
    np.testing.assert_array_equal(tconv_cl.conv_transpose(x, convolutions.summed(layer, w), **equivalent), y)
