# SPDX-License-Identifier: Apache-2.0
"""The options of the execution provider, and that it is never left out where they say so.

usage: pytest adapters/onnxruntime        after `pip install ./python`; needs an OpenCL device"""

import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import tconv_cl.onnxruntime
from test_provider import Counted, conv_transpose, dynamic_model, in_another_process, model_of, random, session


@pytest.mark.parametrize("device", [99, -3, "gpu", "no such device"])
def test_a_device_that_is_asked_for_must_be_there(device):
    with pytest.raises(tconv_cl.Error, match=str(device)):
        session(dynamic_model(), device=device)


def test_devices_by_name():
    x = random((1, 8, 6, 9))
    for device in ("cpu", "CPU", "portable computing", 0):
        counted = Counted()
        session(dynamic_model(), device=device).run(None, {"x": x})
        assert counted.computed == 1


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"fallback": "no"}, "fallback is 'no': it must be 'warn' or 'error'"),
        ({"fallback": None}, "fallback is None: it must be"),
        ({"device": "0\0"}, "must not have a zero character"),
        ({"search": "fastest"}, "search is 'fastest': it must be model, records, measure or renew"),
        ({"math": "faster"}, "math is 'faster': it must be exact or fast"),
        ({"least_macs": -1}, "least_macs is -1: .* 0 or more"),
        ({"least_macs": 1.5}, "least_macs is 1.5: it must be a whole number"),
        ({"least_macs": 1 << 63}, f"least_macs is {1 << 63}: .* less than"),
        ({"fuse_concat": 1}, "fuse_concat is 1: it must be True or False"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(options, sentence):
    with pytest.raises(tconv_cl.RequestError, match=sentence):
        tconv_cl.onnxruntime.session_options(**options)


def test_names_of_other_systems():
    """The errors say what to write instead."""
    for option, words in {
        "device_id": "; write device=0",
        "min_macs": "; write least_macs=0",
        "fast_math": '; write math="fast" or "exact"',
        "serch": "'search'",
    }.items():
        with pytest.raises(TypeError, match=rf"session_options\(\) got .* '{option}'{words}|; did you mean {words}"):
            tconv_cl.onnxruntime.session_options(**{option: 0})
    with pytest.raises(tconv_cl.Error, match='; write "gpu"$'):
        tconv_cl.onnxruntime.session_options(device="cuda")


def test_fast_math():
    """It reaches the plans: of the try when the session begins, and of the run."""
    x, w = random((1, 128, 16, 16)), random((128, 128, 3, 3), 2) / 32
    model = model_of([conv_transpose(pads=[1] * 4)], x.shape, {"w": w})
    chosen, outputs = {}, {}
    for math in ("exact", "fast"):
        with tconv_cl.trace() as events:
            options = tconv_cl.onnxruntime.session_options(math=math, search="model")
            outputs[math] = onnxruntime.InferenceSession(model, options).run(None, {"x": x})[0]
        chosen[math] = {event.algorithm for event in events if event.kind == "plan"}
    assert chosen["fast"] == {"winograd_vector"} and "winograd_vector" not in chosen["exact"]
    np.testing.assert_allclose(outputs["fast"], outputs["exact"], rtol=1e-4, atol=1e-4)


def test_numbers_of_numpy():
    options = tconv_cl.onnxruntime.session_options(device=np.int64(0), least_macs=np.int64(7))
    assert options.get_session_config_entry("ep.tconv_cl.least_macs") == "7"
    assert "tconv_cl" in onnxruntime.InferenceSession(dynamic_model(), options).get_providers()


# What is not read before a device is opened, so in a process of its own.
ENVIRONMENT = """
import os
import onnxruntime
import tconv_cl.onnxruntime
for name in ("SEARCH", "MATRIX", "LAUNCH_MS", "CACHE", "CACHE_MIB"):
    os.environ["TCONV_CL_" + name] = "wrong"
    for fallback in ("warn", "error"):
        try:
            tconv_cl.onnxruntime.session_options(fallback=fallback)
            print("accepted")
        except tconv_cl.RequestError as error:
            print(name in str(error) and '"wrong"' in str(error))
    del os.environ["TCONV_CL_" + name]
print("tconv_cl" in [device.ep_name for device in onnxruntime.get_ep_devices()])
tconv_cl.onnxruntime.session_options(fallback="error")
"""


def test_wrong_variables_of_the_environment_are_refused():
    done = subprocess.run([sys.executable, "-c", ENVIRONMENT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 11, done.stderr


def test_no_fallback(tmp_path):
    """Who wants no silent change of providers: what is refused makes the session fail."""
    (tmp_path / "kernels").mkdir()
    with pytest.raises(subprocess.CalledProcessError) as failure:
        in_another_process(
            dynamic_model(),
            random((1, 8, 6, 9)),
            tmp_path,
            {"fallback": "error"},
            TCONV_CL_KERNEL_DIR=str(tmp_path / "kernels"),
        )
    assert 'ConvTranspose "": TCONV_CL_KERNEL_DIR' in failure.value.stderr


WRONG_ENTRIES = [
    ("fallback", "no", 'fallback is "no": it must be "warn" or "error"'),
    ("fallback", "e" * 20, "not large enough"),
    ("search", "fastest", 'search is "fastest".*"model", "records", "measure" or "renew"'),
    ("search", "m" * 20, "not large enough"),
    ("math", "faster", 'math is "faster": it must be "exact" or "fast"'),
    ("least_macs", "1e6", 'least_macs is "1e6"'),
    ("fuse_concat", "no", 'fuse_concat is "no": it must be "0" or "1"'),
    ("device", "99", 'no device is "99"'),
    ("device", "d" * 300, "not large enough"),
]


@pytest.mark.parametrize("key, value, sentence", WRONG_ENTRIES, ids=str)
def test_wrong_entries_after_session_options(key, value, sentence, capfd):
    """ONNX Runtime's Python goes on without a provider that cannot be made: with fallback="error" the session fails."""
    options = tconv_cl.onnxruntime.session_options(fallback="error")
    options.add_session_config_entry(f"ep.tconv_cl.{key}", value)
    with pytest.raises(Exception, match=f"tconv_cl: .*{sentence}"):
        onnxruntime.InferenceSession(dynamic_model(), options)
    assert "EP Error" not in capfd.readouterr().out


@pytest.mark.parametrize("key, value, sentence", WRONG_ENTRIES[2:], ids=str)
def test_wrong_entries_with_warn(key, value, sentence, capfd):
    """ONNX Runtime's Python says so. In other languages, the session is not made."""
    options = tconv_cl.onnxruntime.session_options()
    options.add_session_config_entry(f"ep.tconv_cl.{key}", value)
    with pytest.raises(RuntimeError, match=sentence):
        onnxruntime.InferenceSession(dynamic_model(), options, enable_fallback=0)
    assert onnxruntime.InferenceSession(dynamic_model(), options).get_providers() == ["CPUExecutionProvider"]
    assert "EP Error" in capfd.readouterr().out


def test_a_provider_by_name():
    """Without session_options."""
    name = tconv_cl.onnxruntime.register()
    for options, sentence in (({"device": "99"}, 'no device is "99"'), ({"search": "fastest"}, "fastest")):
        providers = [(name, {"fallback": "error", **options}), "CPUExecutionProvider"]
        with pytest.raises(Exception, match=f"tconv_cl: .*{sentence}"):
            onnxruntime.InferenceSession(dynamic_model(), providers=providers)
    providers = [(name, {"fallback": "error"}), "CPUExecutionProvider"]
    assert name in onnxruntime.InferenceSession(dynamic_model(), providers=providers).get_providers()


def test_providers_beside_the_options_take_their_place():
    """As docs/onnxruntime.md says, even of those with fallback="error"."""
    options = tconv_cl.onnxruntime.session_options(fallback="error")
    with pytest.warns(UserWarning, match="will only use the providers passed"):
        own = onnxruntime.InferenceSession(dynamic_model(), options, providers=["CPUExecutionProvider"])
    assert own.get_providers() == ["CPUExecutionProvider"]
    assert "tconv_cl" in onnxruntime.InferenceSession(dynamic_model(), options).get_providers()


def test_a_library_that_is_not_there(monkeypatch):
    monkeypatch.setattr(tconv_cl.onnxruntime, "library", lambda: "/nowhere/libtconv_cl_onnxruntime.so")
    tconv_cl.onnxruntime._load.cache_clear()
    with pytest.raises(ImportError, match="cannot load its provider .*/nowhere/.*: install it again"):
        tconv_cl.onnxruntime.session_options()


def test_an_older_onnx_runtime(monkeypatch):
    monkeypatch.delattr(onnxruntime, "register_execution_provider_library")
    with pytest.raises(RuntimeError, match="it must be 1.24 or later"):
        tconv_cl.onnxruntime.session_options()


def test_the_same_options_twice():
    options = onnxruntime.SessionOptions()
    for device in ("cpu", 0):
        assert tconv_cl.onnxruntime.session_options(options, device=device) is options
    assert options.get_session_config_entry("ep.tconv_cl.device") == "0"
    counted = Counted()
    onnxruntime.InferenceSession(dynamic_model(), options).run(None, {"x": random((1, 8, 6, 9))})
    assert counted.computed == 1


def test_models_that_are_saved_are_refused(tmp_path):
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    with pytest.raises(ValueError, match="optimized_model_filepath .* cannot save"):
        tconv_cl.onnxruntime.session_options(options)
