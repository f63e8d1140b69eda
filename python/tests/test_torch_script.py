# SPDX-License-Identifier: Apache-2.0
"""What cannot take converted modules, and what convert cannot take: errors say what to write instead."""

import io
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

from test_torch import LAYERS, Counted, close, converted, model, random  # noqa: E402
from torch import nn  # noqa: E402

from tconv_cl.torch import convert, dispatch, explain, revert, statistics  # noqa: E402


class Model(nn.Module):
    """Not a Sequential at the top."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, data):
        return self.part(data) + 1


MODELS = {
    "sequential": model,
    "nested": lambda: Model(model()),
    "layer": lambda: LAYERS[1](4, 3, 3),
    "nested layer": lambda: Model(LAYERS[1](4, 3, 3)),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_script_says_revert(make):
    own, data = make().eval(), random(1, 4, 5, 6)
    ours = converted(own)
    with pytest.raises(RuntimeError, match=r"torch\.jit\.script does not know .*: tconv_cl\.torch\.revert\(model\)"):
        torch.jit.script(ours)
    with Counted():  # it is as it was
        close(ours(data), own(data))
    revert(ours)
    close(torch.jit.script(ours)(data), own(data))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_older_onnx_exporter_says_revert(make):
    own, data = make().eval(), random(1, 4, 5, 6)
    ours = converted(own)
    with pytest.raises(RuntimeError, match=r"the ONNX exporter does not know .*: tconv_cl\.torch\.revert\(model\)"):
        torch.onnx.export(ours, (data,), io.BytesIO(), dynamo=False)
    traced = torch.jit.trace(ours, data)  # which is not an export
    with Counted():
        close(traced(data), own(data))
    revert(ours)
    file = io.BytesIO()
    torch.onnx.export(ours, (data,), file, dynamo=False)
    assert b"ConvTranspose" in file.getvalue()


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_convert_of_torchscript_says_dispatch(make):
    own, data = make().eval(), random(1, 4, 5, 6)
    for script in (torch.jit.script(own), torch.jit.trace(own, data), torch.jit.freeze(torch.jit.script(own))):
        with pytest.raises(TypeError, match=r"model is a .*Module: .* `with tconv_cl\.torch\.dispatch\(\):`"):
            convert(script)
        with pytest.raises(TypeError, match="model is a "):
            explain(script)
        with Counted(), dispatch(), torch.inference_mode():
            close(script(data), own(data))


def test_convert_tells_of_torchscript_inside(caplog):
    """The rest is converted."""
    own = nn.Sequential(torch.jit.script(Model(LAYERS[1](4, 4, 3))), LAYERS[1](4, 3, 3), torch.jit.script(nn.ReLU()))
    with caplog.at_level(logging.WARNING, "tconv_cl"):
        assert explain(convert(own)).converted == ["1"]
    (message,) = caplog.messages
    assert message.startswith("tconv_cl: 0.part, a RecursiveScriptModule, is not converted: convert cannot change it: ")
    with Counted(computed=2), dispatch():
        own(random(1, 4, 5, 6))


def test_dispatch_holds_for_one_thread(caplog):
    """A context that has seen nothing says so."""
    own, data = model().eval(), random(1, 4, 5, 6)
    script, wanted = torch.jit.script(own), own(data)
    with caplog.at_level(logging.WARNING, "tconv_cl"), ThreadPoolExecutor(1) as pool:
        before = statistics()
        with dispatch():
            close(pool.submit(script, data).result(), wanted)
        assert statistics() == before
        (message,) = caplog.messages
        assert "ended without a transposed convolution. It works only in its own thread" in message
        caplog.clear()

        def in_a_context():
            with dispatch():
                return script(data)

        with Counted(computed=4), dispatch() as outer:
            close(pool.submit(in_a_context).result(), wanted)
            close(script(data), wanted)
            with pytest.raises(RuntimeError, match=r"a dispatch\(\) must end in the thread that entered it"):
                pool.submit(outer.__exit__, None, None, None).result()
        with Counted(computed=2), dispatch():
            close(converted(own)(data), wanted)
        assert caplog.messages == []
