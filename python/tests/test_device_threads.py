# SPDX-License-Identifier: Apache-2.0
"""Threads of the library on PoCL's devices: who lets PoCL offer them, how many there are, and the same results."""

import os
import subprocess
import sys

import pytest

import tconv_cl

# Prints what both copies of the environment have, and the threads of each device.
PRINT = """
import ctypes, os, tconv_cl
inside = ctypes.CDLL(None).getenv
inside.restype = ctypes.c_char_p
print([os.environ.get("POCL_DEVICES"), inside(b"POCL_DEVICES")])
"""
SET = str(["pthread basic", b"pthread basic"])
UNSET = str([None, None])
POCL = any(device.platform == "Portable Computing Language" for device in tconv_cl.devices())


def output_of(program, **environment):
    given = {name: value for name, value in os.environ.items() if name not in ("POCL_DEVICES", "TCONV_CL_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=given | environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="where Python and C share an environment, and /proc exists")
@pytest.mark.parametrize(
    "before, environment, wanted",
    [
        ("", {}, SET),
        ("", {"TCONV_CL_THREADS": "3"}, SET),
        ("", {"TCONV_CL_THREADS": "off"}, UNSET),
        ("", {"POCL_DEVICES": "pthread"}, str(["pthread", b"pthread"])),
        ("import pyopencl", {}, UNSET),  # it would see PoCL's device without threads first
    ],
)
def test_the_variable(before, environment, wanted):
    assert output_of(f"{before}\n{PRINT}", **environment) == wanted


LIST = "import tconv_cl\nprint([(each.name, each.kind) for each in tconv_cl.devices()])"


def test_numbers_and_names_of_devices_stay():
    assert output_of(LIST) == output_of(LIST, TCONV_CL_THREADS="off")


COMPUTE = """
import hashlib, numpy, tconv_cl
random = numpy.random.default_rng(1)
data, filter = random.random((2, 16, 40, 41), numpy.float32), random.random((16, 24, 4, 4), numpy.float32)
layer = tconv_cl.ConvTranspose(filter, strides=2, pads_begin=1, algorithm="packed_vector")
digests = {hashlib.sha256(layer(data).tobytes()).hexdigest() for _ in range(100)}
print(len(digests), *digests, *{device.threads for device in tconv_cl.devices() if device.kind == "cpu"})
"""


@pytest.mark.skipif(not POCL, reason="needs PoCL")
def test_results_have_the_same_bits():
    said = {count: output_of(COMPUTE, TCONV_CL_THREADS=count).split() for count in ("1", "2", "3", "off")}
    assert {(each[0], each[1]) for each in said.values()} == {("1", said["1"][1])}
    assert {count: each[2] for count, each in said.items()} == {"1": "1", "2": "2", "3": "3", "off": "0"}


PINNED = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import tconv_cl
print({device.threads for device in tconv_cl.devices() if device.kind == "cpu"})
"""


@pytest.mark.skipif(not (POCL and hasattr(os, "sched_setaffinity")), reason="needs PoCL and Linux")
def test_a_process_on_one_processor():
    assert output_of(PINNED) == "{1}"
