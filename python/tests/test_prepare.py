# SPDX-License-Identifier: Apache-2.0
"""prepare and prepare_model: afterwards nothing of the range is compiled, and results are right."""

import numpy as np
import pytest
import reference
import tconv_cl

FILTER = np.random.default_rng(1).integers(-3, 4, (5, 7, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """A cache of this test; sessions that are open already keep theirs."""
    tconv_cl.clear_cache()
    monkeypatch.setenv("TCONV_CL_CACHE_DIR", str(tmp_path / "cache"))
    yield tmp_path / "cache"
    tconv_cl.clear_cache()


def compiled(events):
    return sum(event.kind == "program" and event.source == "compiler" for event in events)


def test_no_extent_of_a_range_compiles(own_folder):
    options = {"strides": 2, "activation": "relu"}
    told = []
    programs = tconv_cl.prepare((1, 5, (3, 40)), FILTER.shape, progress=lambda *now: told.append(now), **options)
    assert programs >= 1 and told[-1][0] == told[-1][1] >= 1
    with tconv_cl.trace() as events:
        for extent in (3, 10, 17, 40):
            data = np.random.default_rng(extent).integers(-3, 4, (1, 5, extent)).astype(np.float32)
            output = tconv_cl.conv_transpose(data, FILTER, **options)
            wanted = np.maximum(reference.conv_transpose(data, FILTER, 2), 0)
            np.testing.assert_array_equal(output, wanted)
    assert compiled(events) == 0
    assert {event.source for event in events if event.kind == "plan"} == {"prepared"}
    assert any(own_folder.iterdir())


def test_layers_of_a_model():
    first, second = (tconv_cl.ConvTranspose(filter, strides=2) for filter in (FILTER, np.ones((7, 2, 3), np.float32)))

    def model(extent):
        return second(first(np.ones((1, 5, extent), np.float32)))

    assert tconv_cl.prepare_model(lambda: model(3), lambda: model(20)) >= 2
    tconv_cl.clear_cache()  # plans of the two runs
    with tconv_cl.trace() as events:
        for extent in range(4, 20, 3):
            model(extent)
    assert compiled(events) == 0
    assert {event.source for event in events if event.kind == "plan"} == {"prepared"}


def test_a_layer_that_only_large_inputs_have():
    layer = tconv_cl.ConvTranspose(FILTER, strides=3)
    tconv_cl.prepare_model(lambda: None, lambda: layer(np.ones((1, 5, 20), np.float32)))
    tconv_cl.clear_cache()
    with tconv_cl.trace() as events:
        layer(np.ones((1, 5, 2), np.float32))
    assert compiled(events) == 0


def test_views_between():
    """Channels are the last axis in memory, which other programs serve."""
    layer = tconv_cl.ConvTranspose(np.ones((4, 3, 3, 3), np.float32), strides=2)

    def run(height, width):
        layer(np.ones((1, height, width, 4), np.float32).transpose(0, 3, 1, 2))

    tconv_cl.prepare_model(lambda: run(8, 8), lambda: run(14, 30))
    tconv_cl.clear_cache()
    with tconv_cl.trace() as events:
        for height in range(8, 15, 2):
            for width in range(8, 31, 3):
                run(height, width)
    assert compiled(events) == 0
    assert {event.source for event in events if event.kind == "plan"} == {"prepared"}


def test_an_interrupt_ends_it():
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tconv_cl.prepare((1, 5, (3, 40)), FILTER.shape, strides=2, progress=interrupt)
    assert tconv_cl.prepare((1, 5, (3, 9)), FILTER.shape, strides=2) >= 1


@pytest.mark.parametrize(
    "data, words",
    [
        ((1, 5, (9, 3)), r"data\[2\] is \(9, 3\): the range is empty"),
        ((1, (5, 6), 9), r"data\[1\] is \(5, 6\): channels are no range"),
        ((1, 5, (1, 2**62)), "the largest shape of the range: .*overflow"),
        ((1, 5, (1, 2, 3)), r"data\[2\] is \(1, 2, 3\): it must be an extent, or a pair"),
        ((1, 5, (-1, 3)), r"data\[2\] is -1"),
        ((1, 5), "axes"),
    ],
)
def test_refusals(data, words):
    with pytest.raises(tconv_cl.RequestError, match=words):
        tconv_cl.prepare(data, FILTER.shape, strides=2)


def test_unknown_arguments_and_models_without_layers():
    with pytest.raises(TypeError, match="pads_begin=1, pads_end=1"):
        tconv_cl.prepare((1, 5, 9), FILTER.shape, padding=1)
    with pytest.raises(tconv_cl.RequestError, match="computed no layer"):
        tconv_cl.prepare_model(lambda: None, lambda: None)


def test_slabs_are_refused():
    layer = tconv_cl.ConvTranspose(FILTER, strides=2)
    in_slabs = tconv_cl.ConvTranspose(FILTER, strides=2, memory_limit=1 << 20)
    for run in (in_slabs, lambda data: (layer(data), in_slabs(data))):
        with pytest.raises(tconv_cl.RequestError, match="in slabs or windows .* cannot be prepared"):
            tconv_cl.prepare_model(lambda: None, lambda run=run: run(np.ones((1, 5, 100_000), np.float32)))
