# SPDX-License-Identifier: Apache-2.0
"""A child that is forked after a device was used raises a named error at once; its parent goes on."""

import subprocess
import sys

import pytest

# What the parent does before it forks, each in a program of its own.
WAYS = {
    "lists the devices": "tconv_cl.devices()",
    "computes": "compute()",
    "holds a layer": "layer = tconv_cl.ConvTranspose(FILTER); layer(DATA); compute = lambda: layer(DATA)",
    "computes in another thread": "threading.Thread(target=often, daemon=True).start(); time.sleep(0.5)",
    "uses pyopencl arrays": "compute = on_queue(); compute()",
}

PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import tconv_cl

DATA, FILTER = np.ones((1, 4, 30, 30), np.float32), np.ones((4, 3, 3, 3), np.float32)

def compute():
    return tconv_cl.conv_transpose(DATA, FILTER)

def often():
    while True:
        compute()

def on_queue():
    import pyopencl, pyopencl.array
    queue = pyopencl.CommandQueue(pyopencl.create_some_context(interactive=False))
    data, filter = (pyopencl.array.to_device(queue, array) for array in (DATA, FILTER))
    return lambda: tconv_cl.conv_transpose(data, filter)

%s
child = os.fork()
if child == 0:
    signal.alarm(5)
    try:
        compute()
    except tconv_cl.Error as error:
        os._exit(0 if error.status == 43 and "was forked from process" in str(error) else 2)
    os._exit(3)
result = os.waitpid(child, 0)[1]
compute()
print("exit", os.waitstatus_to_exitcode(result))  # of a signal: its number, negative
"""


@pytest.mark.parametrize("way", WAYS)
def test_child(way):
    done = subprocess.run([sys.executable, "-c", PROGRAM % WAYS[way]], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "exit 0"), done.stderr


def test_a_child_may_be_the_first():
    program = PROGRAM.replace("os._exit(3)", "os._exit(0)") % "pass"
    done = subprocess.run(
        [sys.executable, "-c", program.replace("signal.alarm(5)", "")], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.strip()) == (0, "exit 0"), done.stderr
