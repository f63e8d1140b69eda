# SPDX-License-Identifier: Apache-2.0
"""Devices by number, one or several."""

import numpy as np
import pytest

import tconv_cl


def test_names():
    data, filter = np.ones((1, 2, 4), np.float32), np.ones((2, 3, 3), np.float32)
    wanted = tconv_cl.conv_transpose(data, filter)
    first = tconv_cl.devices()[0]
    for name in (first.kind.upper(), first.name[1:-1], first.platform.lower()):
        assert (tconv_cl.conv_transpose(data, filter, device=name) == wanted).all()
    with pytest.raises(tconv_cl.Error, match='no device is "no such device".* the devices are 0 \\('):
        tconv_cl.conv_transpose(data, filter, device="no such device")


def test_devices():
    devices = tconv_cl.devices()
    assert [device.number for device in devices] == list(range(len(devices)))
    for device in devices:
        assert device.name and device.kind in ("cpu", "gpu", "accelerator", "other")
        assert device.compute_units > 0 and 0 < device.allocation_limit <= device.global_memory
        assert len(device.work_item_limit) == 3
        assert device.threads >= 0 and (device.threads == 0 or device.kind == "cpu")


def test_every_device_and_all_at_once():
    random = np.random.default_rng(6)
    data = random.integers(-8, 8, (3, 4, 20, 10)).astype(np.float32)
    filter = random.integers(-8, 8, (4, 2, 3, 3)).astype(np.float32)
    wanted = tconv_cl.conv_transpose(data, filter, strides=2)
    numbers = [device.number for device in tconv_cl.devices()]
    for number in numbers:
        np.testing.assert_array_equal(tconv_cl.conv_transpose(data, filter, strides=2, device=number), wanted)
    if len(numbers) == 1:
        pytest.skip("there is one device only")
    np.testing.assert_array_equal(tconv_cl.conv_transpose(data, filter, strides=2, device=numbers), wanted)
    layer = tconv_cl.ConvTranspose(filter, strides=2, device=numbers)
    np.testing.assert_array_equal(layer(data), wanted)
