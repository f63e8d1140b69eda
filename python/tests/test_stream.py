# SPDX-License-Identifier: Apache-2.0
"""Streams of NumPy's and pyopencl's arrays: the bits of one call, whatever the chunks."""

from __future__ import annotations

import numpy as np
import pyopencl.array
import pytest

import tconv_cl

KINDS = ("conv", "group", "channels last", "upsample", "causal", "pixel shuffle")


def chunks_of(rng, columns):
    """Lengths of chunks, 0 and 1 among them."""
    lengths = []
    while sum(lengths) < columns:
        lengths.append(min(int(rng.choice([0, 1, 1, 2, 5, columns])), columns - sum(lengths)))
    return lengths


def draw(seed, kind):
    """Data, the stream's and the call's arguments, and the axis of time."""
    rng = np.random.default_rng(seed)
    k, s, d = int(rng.integers(1, 6)), int(rng.integers(1, 5)), int(rng.integers(1, 3))
    n, columns, ci, co = int(rng.integers(1, 3)), int(rng.choice([1, 4, 30])), 3, 4

    def array(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    data, axis, own = array(n, ci, columns), 2, {}
    options = {"strides": s, "dilations": d, "pads_begin": int(rng.integers(0, k)), "pads_end": 0}
    function = tconv_cl.conv_transpose
    filter = array(ci, co, k)
    if kind == "group":
        filter, data = array(2, ci, co, k), array(n, 2 * ci, columns)
    elif kind == "channels last":
        data, axis = array(n, columns, ci), 1
        options.update(data_format="NXC", groups=1)
    elif kind in ("upsample", "causal"):
        filter, s = array(co, ci, k), 2 if kind == "upsample" else 1
        d = 1 if kind == "upsample" else d
        options = {"dilations": d, "pads_begin": d * (k - 1)}
        function, own = lambda *arrays, **rest: tconv_cl.upsample_conv(*arrays, scale=s, **rest), {"upsample": s}
    elif kind == "pixel shuffle":
        filter, options = array(2 * co, ci, k), {"pads_begin": k - 1}
        function, own = tconv_cl.conv_pixel_shuffle, {"pixel_shuffle": 2}
    bias = array(2 * co if kind in ("group", "pixel shuffle") else co)
    return rng, data, axis, (filter, bias), options, own, function


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, 2])
def test_chunks_give_the_bits_of_one_call(seed, kind):
    rng, data, axis, weights, options, own, function = draw(seed, kind)
    stream = tconv_cl.Stream(*weights, **own, **options)
    whole = function(data, *weights, algorithm=stream.algorithm, **options)
    for _ in range(2):
        ends = np.cumsum([0, *chunks_of(rng, data.shape[axis])])
        parts = [stream.push(data.take(range(a, b), axis)) for a, b in zip(ends, ends[1:])]
        parts.append(stream.flush())
        assert np.array_equal(np.concatenate(parts, axis), whole)
        stream.reset()


def test_pyopencl_arrays_stay_on_their_queue(queue):
    rng, data, axis, weights, options, own, function = draw(3, "conv")
    on_device = [pyopencl.array.to_device(queue, array) for array in weights]
    stream = tconv_cl.Stream(*on_device, **options)
    with pytest.raises(tconv_cl.RequestError, match="not known yet"):
        _ = stream.algorithm
    parts = []
    ends = np.cumsum([0, *chunks_of(rng, data.shape[axis])])
    for a, b in zip(ends, ends[1:]):
        chunk = pyopencl.array.to_device(queue, np.ascontiguousarray(data[:, :, a:b]))
        parts.append(stream.push(chunk).get())
    parts.append(stream.flush().get())
    whole = function(
        *(pyopencl.array.to_device(queue, a) for a in (data, *weights)), algorithm=stream.algorithm, **options
    )
    assert np.array_equal(np.concatenate(parts, axis), whole.get())
    with pytest.raises(tconv_cl.RequestTypeError, match="chunk is a ndarray"):
        stream.push(data)


def test_history_is_pushed_before():
    rng = np.random.default_rng(5)
    data, filter = rng.standard_normal((2, 3, 20)).astype(np.float32), rng.standard_normal((4, 3, 5)).astype(np.float32)
    whole = tconv_cl.Stream(filter, upsample=1, pads_begin=4).push(data)
    stream = tconv_cl.Stream(filter, upsample=1, pads_begin=4, history=data[:, :, :9])
    for _ in range(2):
        assert np.array_equal(stream.push(data[:, :, 9:]), whole[:, :, 9:])
        stream.reset()


def test_out_residual_and_shared_weights():
    rng = np.random.default_rng(6)
    data, filter = rng.standard_normal((1, 3, 8)).astype(np.float32), rng.standard_normal((3, 2, 4)).astype(np.float32)
    one = tconv_cl.Stream(filter, strides=2)
    other = one.share()
    plain = one.push(data)
    out, residual = np.empty_like(plain), rng.standard_normal(plain.shape).astype(np.float32)
    assert other.push(data, residual=residual, out=out) is out
    assert np.allclose(out, plain + residual, rtol=1e-5, atol=1e-5)
    strided = np.zeros((1, 4, plain.shape[2]), np.float32)[:, ::2]
    third = one.share()
    third.push(data, out=strided)
    assert np.array_equal(strided, plain)
    assert one._layer is other._layer and one._layer.counts().filters_packed == 1
    assert (one.history_columns, one.latency) == (1, 0) and one.nbytes > 0


def test_wrong_calls_change_nothing():
    data, filter = np.ones((1, 2, 6), np.float32), np.ones((2, 3, 4), np.float32)
    stream = tconv_cl.Stream(filter, strides=2)
    parts = [stream.push(data[:, :, :2])]
    for call, words in (
        (lambda: stream.push(data[:, :1]), "with 2 channels"),
        (lambda: stream.push(data.astype(np.float64)), "elements of type float64"),
        (lambda: stream.push(np.ones((2, 2, 3), np.float32)), "chunk has batch 2"),
        (lambda: stream.push(data, out=np.empty(3, np.float32)), "out has shape"),
        (lambda: stream.push(data, residual=np.zeros((1, 3, 12), np.float32)), "a residual must be given"),
        (lambda: stream.push(data, scal=1), "scal"),
        (lambda: tconv_cl.Stream(filter, output_shape=9), "output_shape is given"),
        (lambda: tconv_cl.Stream(filter, history="ones"), '"zeros"'),
        (lambda: tconv_cl.Stream(filter, algorithm="winograd_vector", math="fast").algorithm, "where an output is"),
    ):
        with pytest.raises((tconv_cl.RequestError, TypeError), match=words):
            call()
    parts += [stream.push(data[:, :, 2:]), stream.flush()]
    whole = tconv_cl.conv_transpose(data, filter, strides=2, algorithm=stream.algorithm)
    assert np.array_equal(np.concatenate(parts, 2), whole)
    with pytest.raises(tconv_cl.RequestError, match="the stream was flushed"):
        stream.push(data)


def test_out_is_refused_where_it_would_be_read():
    rng = np.random.default_rng(7)
    data, filter = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 2, 8), (2, 2, 3)))
    stream = tconv_cl.Stream(filter)
    memory = np.zeros(24, np.float32)
    begin, end = memory[:16].reshape(data.shape), memory[8:].reshape(data.shape)
    repeated = np.lib.stride_tricks.as_strided(memory, data.shape, (0, 4, 0))
    for chunk, out, words in (
        (begin, end, "shares memory with chunk"),
        (data, repeated, "share places"),
        (data, np.broadcast_to(np.float32(0), data.shape), "must be writeable"),
        (data, data.tolist(), "must be an array"),
        (data, 5, "must be an array"),
    ):
        with pytest.raises(tconv_cl.RequestError, match=words):
            stream.push(chunk, out=out)
    with pytest.raises(tconv_cl.RequestError, match="shares memory with residual"):
        stream.push(data, residual=begin, out=begin)
    whole = tconv_cl.conv_transpose(data, filter, algorithm=stream.algorithm)
    assert np.array_equal(stream.push(data), whole[:, :, :8])


def test_the_history_may_change_afterwards():
    rng = np.random.default_rng(8)
    data, filter = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 2, 9), (2, 2, 3)))
    history = data[:, :, :4].copy()
    stream = tconv_cl.Stream(filter, history=history)
    history[...] = 0
    first = stream.push(data[:, :, 4:])
    history[...] = 1
    stream.reset()
    assert np.array_equal(stream.push(data[:, :, 4:]), first)
    assert np.array_equal(first, tconv_cl.Stream(filter).push(data)[:, :, 4:])


def test_residuals_are_arrays_of_any_kind():
    data, filter = np.ones((1, 1, 2), np.float32), np.ones((1, 1, 1), np.float32)
    assert tconv_cl.Stream(filter).push(data, residual=[[[1, 2]]]).tolist() == [[[2, 3]]]
