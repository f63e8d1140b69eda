# SPDX-License-Identifier: Apache-2.0
"""The conformance vectors (device_tests/vectors): results of other systems, by NumPy and by pyopencl."""

import csv
from pathlib import Path

import numpy as np
import pytest

import tconv_cl

VECTORS = Path(__file__).parents[2] / "device_tests" / "vectors"
LISTS = ("strides", "dilations", "pads_begin", "pads_end", "output_padding")


def table(file):
    with open(VECTORS / file, newline="") as lines:
        return list(csv.DictReader(lines))


def attributes(row):
    lists = {name: [int(number) for number in row[name].split()] for name in LISTS}
    output_shape = [int(number) for number in row["output_shape"].split()] or None
    return {**lists, "output_shape": output_shape, "auto_pad": row["auto_pad"]}


def load(folder, name, what):
    return np.load(VECTORS / folder / f"{name}.{what}.npy")


CASES = table("cases.csv")


def test_all_cases_are_there():
    assert len(CASES) == 163


@pytest.mark.parametrize("row", CASES, ids=lambda row: row["id"])
def test_case(row, compute):
    name = row["id"]
    data, filter, wanted = (load("data", name, what) for what in ("data", "filter", "output"))
    options = attributes(row)
    if row["op"] == "conv_backprop":  # else the filter's rank tells everything
        options |= {"data_format": row["data_format"], "filter_format": row["filter_format"]}
        if row["groups"] != "1":
            options["groups"] = int(row["groups"])
    for rules in row["rules"].split():
        options["rules"] = rules
        assert tconv_cl.output_shape(data.shape, filter.shape, **options) == wanted.shape
    output = compute(data, filter, **options)
    assert output.dtype == wanted.dtype
    if row["check"] == "exact":
        np.testing.assert_array_equal(output, wanted)
    else:
        assert np.all(np.abs(output.astype(np.float64) - wanted) <= load("data", name, "bound"))


@pytest.mark.parametrize("row", table("onnx/models.csv"), ids=lambda row: row["model"])
def test_onnx_model(row, compute):
    name = row["model"]
    bias = [load("onnx", name, "bias")] if "bias" in name else []
    output = compute(
        load("onnx", name, "input"),
        load("onnx", name, "filter"),
        *bias,
        groups=int(row["groups"]),
        rules="onnx",
        **attributes(row),
    )
    assert np.all(np.abs(output.astype(np.float64) - load("onnx", name, "output")) <= load("onnx", name, "bound"))
