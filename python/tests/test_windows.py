# SPDX-License-Identifier: Apache-2.0
"""Windows: output rows computed from their input rows alone are those of the whole; also in slabs, with progress."""

import numpy as np
import pytest

import tconv_cl

RANDOM = np.random.default_rng(11)
CASES = {
    "crops": ((2, 4, 13, 9), (4, 5, 4, 4), dict(strides=2, pads_begin=1, pads_end=1)),
    "one axis, dilation, outputs past the end": ((1, 3, 30), (3, 2, 5), dict(strides=3, dilations=4, output_shape=160)),
    "rows that nothing reaches": ((2, 4, 7, 5), (4, 3, 2, 2), dict(strides=[6, 2], output_padding=[5, 0])),
    "channels last": ((2, 7, 5, 6), (3, 2, 3, 6), dict(strides=[3, 2], data_format="NXC", filter_format="XIO")),
    "groups, crops beyond the kernel": ((2, 4, 9, 4, 5), (2, 2, 3, 3, 2, 3), dict(strides=2, pads_begin=[5, 0, 1])),
    "auto_pad": ((1, 2, 8, 8), (2, 2, 5, 5), dict(strides=2, auto_pad="same_lower", rules="onnx")),
    "the data shifted inwards": ((1, 2, 4), (2, 2, 3), dict(output_shape=20)),
}


def tensors(case):
    *shapes, options = CASES[case]
    data, filter = [RANDOM.integers(-8, 8, shape).astype(np.float32) for shape in shapes]
    return data, filter, options, 1 if options.get("data_format") == "NXC" else 2


def rows(array, axis, begin, end):
    return array[(slice(None),) * axis + (slice(begin, end),)]


@pytest.mark.parametrize("step", [1, 4, 7, 1000])
@pytest.mark.parametrize("case", CASES)
def test_windows_are_the_whole(case, step, compute):
    data, filter, options, axis = tensors(case)
    whole = compute(data, filter, **options)
    extent, layer = whole.shape[axis], tconv_cl.ConvTranspose(filter, **options)
    for begin in range(0, extent, step):
        window = (begin, min(begin + step, extent))
        first, last = tconv_cl.window_input(data.shape, filter.shape, window, **options)
        assert 0 <= first < last <= data.shape[axis]
        part, place = rows(data, axis, first, last).copy(), dict(output_rows=window, data_rows=data.shape[axis])
        wanted = rows(whole, axis, *window)
        np.testing.assert_array_equal(compute(part, filter, **options, **place), wanted)
        np.testing.assert_array_equal(layer(part, **place), wanted)


def test_a_window_in_slabs():
    data, filter, options, axis = tensors("crops")
    whole = tconv_cl.conv_transpose(data, filter, **options)
    residual = RANDOM.integers(-8, 8, whole.shape).astype(np.float32)
    first, last = tconv_cl.window_input(data.shape, filter.shape, (5, 21), **options)
    steps = []
    output = tconv_cl.conv_transpose(
        data[:, :, first:last],
        filter,
        **options,
        residual=residual[:, :, 5:21],
        output_rows=(5, 21),
        data_rows=13,
        memory_limit=12000,
        progress=lambda *numbers: steps.append(numbers),
    )
    np.testing.assert_array_equal(output, (whole + residual)[:, :, 5:21])
    assert len(steps) > 2 and steps == [(done, len(steps)) for done in range(1, len(steps) + 1)]


def test_windows_inside_share_a_plan():
    data, filter = np.ones((1, 1, 400), np.float32), np.ones((1, 1, 4), np.float32)
    tconv_cl.clear_cache()
    for begin in range(0, 802, 40):
        window = (begin, min(begin + 40, 802))
        first, last = tconv_cl.window_input(data.shape, filter.shape, window, strides=2)
        tconv_cl.conv_transpose(data[:, :, first:last], filter, strides=2, output_rows=window, data_rows=400)
    assert tconv_cl.cache_info().plans == 3  # the first, those inside, the last


def test_requests():
    data, filter = np.ones((1, 1, 8), np.float32), np.ones((1, 1, 3), np.float32)
    requests = {
        "go together": dict(output_rows=(0, 4)),
        "output_rows is 4: it must be .begin, end": dict(output_rows=4, data_rows=8),
        "output rows 4 to 4 are not a part": dict(output_rows=(4, 4), data_rows=8),
        "output rows 0 to 99 are not a part": dict(output_rows=(0, 99), data_rows=8),
        "data has 8 rows along axis 2: output rows 4 to 7 take the 3 input rows 1 to 4": dict(
            output_rows=(4, 7), data_rows=8
        ),
    }
    for sentence, options in requests.items():
        with pytest.raises(tconv_cl.RequestError, match=sentence):
            tconv_cl.conv_transpose(data, filter, strides=2, **options)
    # Also where a plan for windows of as many rows is there already.
    tconv_cl.conv_transpose(data[:, :, 1:4], filter, strides=2, output_rows=(4, 7), data_rows=8)
    with pytest.raises(tconv_cl.RequestError, match="output rows 14 to 17 take the 2 input rows 6 to 8"):
        tconv_cl.conv_transpose(data[:, :, 1:4], filter, strides=2, output_rows=(14, 17), data_rows=8)


@pytest.mark.parametrize("no", [False, np.False_])
def test_progress_that_says_no(no):
    data, filter = np.ones((1, 2, 4000), np.float32), np.ones((2, 3, 4), np.float32)
    seen = []

    def stop(done, total):
        seen.append(done)
        return no

    with pytest.raises(tconv_cl.Error, match="stopped after 1 of"):
        tconv_cl.conv_transpose(data, filter, memory_limit=2000, progress=stop)
    assert seen == [1]


def test_progress():
    data, filter = np.ones((4, 2, 50), np.float32), np.ones((2, 2, 3), np.float32)
    steps = []
    tconv_cl.ConvTranspose(filter)(data, progress=lambda *numbers: steps.append(numbers))
    assert steps == [(1, 1)]

    def stop(done, total):
        if done == 2:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        tconv_cl.conv_transpose(data, filter, memory_limit=2000, progress=stop)


def test_explain():
    text = tconv_cl.explain((1, 4, 20, 20), (4, 4, 3, 3), strides=2)
    assert text.count(", taken") == 1 and "\nreference: " in text
    assert " ms expected, taken" in tconv_cl.explain((1, 4, 20), (4, 4, 3), dtype=np.int8, output_type="i32")
