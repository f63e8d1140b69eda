# SPDX-License-Identifier: Apache-2.0
"""What tests share: a queue of pyopencl's, and both ways to compute."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pyopencl
import pyopencl.array
import pytest

import tconv_cl


@pytest.fixture(scope="session")
def queue() -> Iterator[pyopencl.CommandQueue]:
    """An in-order queue on the device that the library would take."""
    devices = [device for platform in pyopencl.get_platforms() for device in platform.get_devices()]
    for kind in (pyopencl.device_type.GPU, pyopencl.device_type.ACCELERATOR):
        devices.sort(key=lambda device: not device.type & kind)
    context = pyopencl.Context(devices[:1])
    yield pyopencl.CommandQueue(context)
    del context  # not before: with Intel's runtime the context of a queue ends with the last reference of the caller's


@pytest.fixture(autouse=True)
def only_own_weights() -> None:
    """Weights of earlier tests, which tconv_cl.torch keeps packed, are not found again by equal elements."""
    if "tconv_cl.torch" in sys.modules:
        tconv_cl.torch.refresh(sys.modules["torch"].empty(0))


@pytest.fixture(params=["numpy", "pyopencl"])
def compute(request, queue):
    """conv_transpose with NumPy arrays in and out, by either way."""
    if request.param == "numpy":
        return tconv_cl.conv_transpose

    def with_pyopencl(*arrays, **options):
        def to_device(value):
            return pyopencl.array.to_device(queue, value) if isinstance(value, np.ndarray) else value

        result = tconv_cl.conv_transpose(
            *map(to_device, arrays), **{name: to_device(value) for name, value in options.items()}
        )
        assert isinstance(result, pyopencl.array.Array)
        return result.get()

    return with_pyopencl
