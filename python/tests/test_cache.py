# SPDX-License-Identifier: Apache-2.0
"""Plans are made once for each shape, and only so many are kept; a layer packs its filter once."""

import gc
import weakref

import numpy as np
import pytest

import tconv_cl
from tconv_cl import _host
from tconv_cl._arrays import address_of
from tconv_cl._device import REQUESTS, Kept, number_of, opened

FILTER = np.arange(18, dtype=np.float32).reshape(3, 2, 3)


def data(batch=2):
    return np.arange(batch * 12, dtype=np.float32).reshape(batch, 3, 4)


def test_the_second_call_makes_no_plan(compute):
    tconv_cl.clear_cache()
    compute(data(), FILTER, strides=2)
    first = tconv_cl.cache_info()
    compute(data() + 1, FILTER + 1, strides=[2])
    compute(data() + 1, FILTER + 1, strides=np.int64(2))
    again = tconv_cl.cache_info()
    assert (first.misses, again.misses, again.plans) == (1, 2, 2)  # [2] is kept apart from 2
    compute(data(), FILTER, strides=2, activation="relu")
    assert tconv_cl.cache_info().misses == 3


def test_plans_are_bounded():
    tconv_cl.clear_cache()
    layer = tconv_cl.ConvTranspose(FILTER)
    for batch in range(1, REQUESTS + 10):
        layer(data(batch))
    assert tconv_cl.cache_info().plans == REQUESTS
    layer(data(REQUESTS + 9))  # the latest ones are kept
    assert tconv_cl.cache_info().hits == 1


def test_what_falls_out_goes():
    class Thing:
        pass

    kept, things = Kept(2), []
    for key in range(5):
        things.append(weakref.ref(kept.get(key, Thing)))
        kept.get(0, Thing)
    gc.collect()
    assert [thing() is not None for thing in things] == [True, False, False, False, True]
    assert kept.get(4, Thing) is things[4]()


def test_a_layer_packs_once():
    """One filter serves all extents that the same algorithm computes."""
    layer = tconv_cl.ConvTranspose(FILTER, np.ones(2, np.float32), algorithm="reference")
    for batch in (1, 2, 3):
        wanted = tconv_cl.conv_transpose(data(batch), FILTER, np.ones(2, np.float32), algorithm="reference")
        np.testing.assert_array_equal(layer(data(batch)), wanted)
    residual, out = np.ones((1, 2, 6), np.float32), np.empty((1, 2, 6), np.float32)
    assert layer(data(1), residual=residual, out=out) is out
    np.testing.assert_array_equal(out, layer(data(1)) + 1)
    (inside,) = layer._layers._kept.values()
    assert (inside.counts().filters_packed, inside.counts().plans_kept) == (1, 4)  # residual makes one more plan


def test_a_layer_with_fast_math():
    random = np.random.default_rng(4)
    filter = random.standard_normal((16, 16, 4, 4)).astype(np.float32)
    layer = tconv_cl.ConvTranspose(filter, strides=2, math="fast")
    for extent in (8, 24, 40):
        pixels = random.standard_normal((1, 16, extent, extent)).astype(np.float32)
        wanted = tconv_cl.conv_transpose(pixels, filter, strides=2)
        np.testing.assert_allclose(layer(pixels), wanted, rtol=1e-3, atol=1e-3)


def test_a_layer_outlives_the_cache():
    layer = tconv_cl.ConvTranspose(FILTER)
    wanted = layer(data())
    tconv_cl.clear_cache()
    np.testing.assert_array_equal(layer(data()), wanted)


def test_calls_like_an_earlier_one(monkeypatch):
    """They see changed elements, and everything is checked that can differ."""
    pixels, weights, out = data(), FILTER.copy(), np.empty((2, 2, 9), np.float32)
    layer = tconv_cl.ConvTranspose(weights, strides=2)
    bias = np.ones(2, np.float32)
    calls = (
        lambda: tconv_cl.conv_transpose(pixels, weights, strides=2),
        lambda: tconv_cl.conv_transpose(pixels, weights, strides=(2,), out=out[:, :, :]),
        lambda: tconv_cl.conv_transpose(pixels, weights, bias, strides=[2]) - bias[:, None],
        lambda: layer(pixels),
    )
    tconv_cl.clear_cache()
    first = [call().copy() for call in calls]
    hits = tconv_cl.cache_info().hits
    with monkeypatch.context() as patch:
        patch.delattr(_host, "run")  # what others need
        pixels *= 3
        for call, before in zip(calls, first):
            np.testing.assert_array_equal(call(), 3 * before)
        weights *= 2
        for call, before in zip(calls, first):
            np.testing.assert_array_equal(call(), 6 * before)
    assert tconv_cl.cache_info().hits == hits + 8
    tconv_cl.clear_cache()
    for call, before in zip(calls, first):
        np.testing.assert_array_equal(call(), 6 * before)


def test_what_is_unlike_an_earlier_call():
    pixels, both = data(), np.empty((2, 2, 2, 6), np.float32)
    out = np.empty((2, 2, 6), np.float32)
    tconv_cl.conv_transpose(pixels, FILTER, strides=1, alpha=1, out=out)
    for strides, what in ((1.0, "must be an integer"), ((1.0,), "must be an integer"), ("1", "must be an integer")):
        with pytest.raises(tconv_cl.RequestError, match=what):
            tconv_cl.conv_transpose(pixels, FILTER, strides=strides, alpha=1, out=out)
    with pytest.raises(tconv_cl.RequestError, match="alpha"):
        tconv_cl.conv_transpose(pixels, FILTER, strides=1, alpha="1", out=out)
    for device in (0.0, True):
        np.testing.assert_equal(tconv_cl.conv_transpose(pixels, FILTER, device=0), out)
        if device is not True or len(tconv_cl.devices()) < 2:
            with pytest.raises((tconv_cl.RequestError, tconv_cl.Error)):
                tconv_cl.conv_transpose(pixels, FILTER, device=device)
    memory = np.zeros(24 + 24, np.float32)
    shared, result = memory[:24].reshape(2, 3, 4), memory[20:44].reshape(2, 2, 6)
    with pytest.raises(tconv_cl.RequestError, match="out shares memory with data"):
        tconv_cl.conv_transpose(shared, FILTER, strides=1, alpha=1, out=result)
    out.flags.writeable = False
    with pytest.raises(tconv_cl.RequestError, match="out must be writeable"):
        tconv_cl.conv_transpose(pixels, FILTER, strides=1, alpha=1, out=out)
    wanted = tconv_cl.conv_transpose(pixels, FILTER)
    for other in (pixels[::-1], np.asfortranarray(pixels), pixels[:, :, ::-1], pixels[:, ::-1]):
        for _ in range(2):
            np.testing.assert_array_equal(
                tconv_cl.conv_transpose(other, FILTER), tconv_cl.conv_transpose(other.copy(), FILTER)
            )
    bias = np.arange(2, dtype=np.float32)
    for filter in (FILTER[::-1], FILTER[:, ::-1], np.asfortranarray(FILTER), FILTER.tolist()):
        once = np.array(filter, np.float32)
        for _ in range(2):
            for given in (None, bias, bias[::-1], bias.tolist()):
                own = None if given is None else np.array(given, np.float32)
                np.testing.assert_array_equal(
                    tconv_cl.conv_transpose(pixels, filter, given), tconv_cl.conv_transpose(pixels, once, own)
                )
    assert tconv_cl.conv_transpose(pixels, FILTER, strides=1, alpha=1, out=both[:, 1]).base is both
    np.testing.assert_array_equal(both[:, 1], wanted)
    with pytest.raises(tconv_cl.RequestError, match="filter"):
        tconv_cl.conv_transpose(pixels, FILTER.astype(">f4"))


def test_addresses():
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    for one in (array, array[1:, ::-1, 2], array[:0], np.array(5.0), np.empty((0, 3))):
        assert address_of(one) == one.__array_interface__["data"][0]


def test_a_small_filter_is_packed_where_it_changed():
    tconv_cl.clear_cache()
    weights, pixels = FILTER.copy(), data()
    first = tconv_cl.conv_transpose(pixels, weights)
    for factor in (1, 1, 2, 1):
        weights *= factor
        first *= factor
        np.testing.assert_array_equal(tconv_cl.conv_transpose(pixels, weights.copy()), first)
    (request,) = opened(number_of(None)).requests.values()
    assert request.layer.counts().filters_packed == 2
    large = np.ones((3, 6000, 3), np.float32)
    tconv_cl.conv_transpose(pixels, large)
    assert [one.layer is None for one in opened(number_of(None)).requests.values()] == [False, True]
