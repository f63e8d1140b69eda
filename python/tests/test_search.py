# SPDX-License-Identifier: Apache-2.0
"""The choice of an algorithm by time: stored in the cache directory, and the same result."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tconv_cl

PROGRAM = """
import sys
import numpy as np
import tconv_cl
data, filter = np.arange(60, dtype=np.float32).reshape(1, 3, 4, 5), np.ones((3, 2, 4, 4), np.float32)
wanted = tconv_cl.conv_transpose(data, filter, strides=2, search="model", algorithm="reference")
search = sys.argv[1] if len(sys.argv) > 1 else None
np.testing.assert_array_equal(tconv_cl.conv_transpose(data, filter, strides=2, search=search), wanted)
layer = tconv_cl.ConvTranspose(filter, strides=2, search=search)
np.testing.assert_array_equal(layer(data), wanted)
"""


def records(directory):
    return sum(b"best_ms " in path.read_bytes() for path in directory.iterdir()) if directory.exists() else 0


@pytest.mark.parametrize("way", ["keyword", "environment"])
def test_results_are_stored(way, tmp_path):
    directory = tmp_path / "cache"
    environment = dict(os.environ, TCONV_CL_CACHE_DIR=str(directory))
    environment.pop("TCONV_CL_SEARCH", None)
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, env=environment)
    assert records(directory) == 0
    if way == "keyword":
        arguments = ["measure"]
    else:
        arguments, environment["TCONV_CL_SEARCH"] = [], "measure"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", PROGRAM, *arguments], check=True, env=environment)
        assert records(directory) == 1


def test_a_result_that_cannot_be_stored_is_told(tmp_path):
    (tmp_path / "file").touch()
    program = """
import numpy as np
import tconv_cl
data, filter = np.ones((1, 3, 4), np.float32), np.ones((3, 2, 4), np.float32)
with tconv_cl.trace() as events:
    tconv_cl.conv_transpose(data, filter, search="renew")
print([event.message for event in events if event.kind == "plan"])
"""
    for folder, words in ((tmp_path / "file", "['the result cannot be stored in "), (tmp_path / "new", "[None]")):
        environment = dict(os.environ, TCONV_CL_CACHE_DIR=str(folder))
        done = subprocess.run([sys.executable, "-c", program], env=environment, check=True, stdout=subprocess.PIPE)
        assert done.stdout.decode().startswith(words)


def test_other_names_are_refused():
    data, filter = np.ones((1, 1, 3), np.float32), np.ones((1, 1, 2), np.float32)
    with pytest.raises(tconv_cl.RequestError, match="search is 'fastest': it must be model, records, measure or renew"):
        tconv_cl.conv_transpose(data, filter, search="fastest")
