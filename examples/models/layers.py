#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The transposed convolutions of PP-OCRv4's text detection one by one: the tool tconv-cl against OpenVINO.

OpenVINO writes the model as IR, computes it, and hands out the inputs and outputs of the layers. `tconv-cl run --model`
must give the same outputs, within the rounding bound of both sides; `tconv-cl bench --model` times them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import common
import numpy as np
import openvino
import text_detection


def rounding_bound(data: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The largest difference that rounding to f32 explains between two computations: 2 * gamma(n + 1) * sum of |x * w|.

    For kernels as wide as the strides, without pads: each input makes outputs of its own.
    """
    sums = np.einsum("nihw,ioyx->nohywx", np.abs(data, dtype=np.float64), np.abs(weights, dtype=np.float64))
    n, c, h, y, w, x = sums.shape
    terms = data.shape[1] + 1
    return 2 * terms * common.UNIT / (1 - terms * common.UNIT) * sums.reshape(n, c, h * y, w * x)


def filter_of(node: openvino.Node) -> np.ndarray:
    """The filter's values, behind the Convert that widens them."""
    source = node.input_value(1).get_node()
    if source.get_type_name() == "Convert":
        source = source.input_value(0).get_node()
    return source.data.astype(np.float32)


def check_layer(tool: str, folder: Path, xml: Path, node: openvino.Node, data: np.ndarray, wanted: np.ndarray) -> None:
    name, attributes = node.get_friendly_name(), node.get_attributes()
    weights = filter_of(node)
    if list(weights.shape[2:]) != list(attributes["strides"]) or any(attributes["pads_begin"]):
        sys.exit(f"{name}: the bound is not for this kernel")
    np.save(folder / "data.npy", data)
    layer = ["--model", xml, "--layer", name]
    files = ["--data", folder / "data.npy", "--output", folder / "output.npy"]
    subprocess.run([tool, "run", *layer, *files], check=True)
    got = np.load(folder / "output.npy")
    if got.shape != wanted.shape:
        sys.exit(f"{name}: the output is {got.shape}, not {wanted.shape}")
    worst = np.max(np.abs(got.astype(np.float64) - wanted) / rounding_bound(data, weights))
    shapes = f"{data.shape} -> {got.shape}"
    print(f"{name}: {shapes}, {worst:.2g} of the difference from OpenVINO that rounding allows", flush=True)
    if not worst <= 1:
        sys.exit(f"{name} differs from OpenVINO")
    subprocess.run([tool, "bench", *layer, "--data-shape", ",".join(map(str, data.shape))], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where fetch.py put the models")
    parser.add_argument("--tool", default="build/tconv-cl", help="the tool tconv-cl")
    arguments = parser.parse_args()

    core = openvino.Core()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        xml = folder / "text_detection.xml"
        openvino.save_model(core.read_model(arguments.folder / "text_detection.onnx"), xml)  # with weights as f16
        model = core.read_model(xml)
        nodes = [node for node in model.get_ordered_ops() if node.get_type_name() in common.TRANSPOSED]
        for node in nodes:
            model.add_outputs([node.input_value(0), node.output(0)])
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        page = text_detection.draw_page()
        layers = list(compiled(text_detection.network_input(page)).values())[1:]
        for number, node in enumerate(nodes):
            check_layer(arguments.tool, folder, xml, node, layers[2 * number], layers[2 * number + 1])
        if not nodes:
            sys.exit("the model has no transposed convolution")


if __name__ == "__main__":
    main()
