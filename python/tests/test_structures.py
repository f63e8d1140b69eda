# SPDX-License-Identifier: Apache-2.0
"""No structure of the C library, and no member of a request, is forgotten in Python."""

import shutil
from pathlib import Path

import pytest
import structures

import tconv_cl
from tconv_cl import _convolution, _library, _request


def test_sizes_and_offsets():
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    assert structures.layouts(_library, compiler) == []


def test_options_of_the_members():
    assert structures.missing_options(_library, Path(tconv_cl.__file__).parent) == []


def test_each_option_changes_the_request():
    """Equal requests share plans: an option that a request does not have would be ignored."""
    plain = _request.attributes_of()
    others = {"output_shape": 3, "groups": 2, "output_type": "f32", "algorithm": "reference", "search": "model"}
    others |= {"auto_pad": "valid", "rules": "onnx", "data_format": "NXC", "filter_format": "XIO", "math": "fast"}
    others |= {"activation": "relu", "alpha": 0.5, "beta": 0.5, "requantize": True}
    for name in _convolution.Options.__annotations__:
        assert _request.attributes_of(**{name: others.get(name, 7)}) != plain, name


def test_unknown_option():
    with pytest.raises(TypeError, match="stride'"):
        _request.attributes_of(stride=2)
