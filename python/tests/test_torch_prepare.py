# SPDX-License-Identifier: Apache-2.0
"""prepare_model with a converted PyTorch model."""

import pytest
import tconv_cl

torch = pytest.importorskip("torch")
import tconv_cl.torch  # noqa: E402


def test_prepare_model(tmp_path, monkeypatch):
    tconv_cl.clear_cache()
    monkeypatch.setenv("TCONV_CL_CACHE_DIR", str(tmp_path))
    layers = torch.nn.ConvTranspose2d(8, 6, 4, 2, 1), torch.nn.ReLU(), torch.nn.ConvTranspose2d(6, 3, 3, 2)
    model = tconv_cl.torch.convert(torch.nn.Sequential(*layers).eval())

    def run(height, width):
        return model(torch.ones(1, 8, height, width))

    with torch.inference_mode():
        assert tconv_cl.prepare_model(lambda: run(2, 2), lambda: run(9, 9)) >= 2
        with tconv_cl.trace() as events:
            for height, width in ((2, 7), (5, 5), (9, 3)):
                run(height, width)
    tconv_cl.clear_cache()
    assert {event.source for event in events if event.kind == "plan"} == {"prepared"}
    assert not [event for event in events if event.kind == "program" and event.source == "compiler"]
