#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PP-OCRv4 finds text on a page: the network as a runtime computes it, and with tconv-cl in it.

The page is drawn here. Both outputs must be the same within the rounding of a network of that depth; the picture shows
the page, and where the network with tconv-cl sees text.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import common
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ppocr"))
from ppocr import draw_picture, heat_map, network_input  # noqa: E402

LAYERS = 2  # transposed convolutions
SUMS = {"Convolution": 1, "GroupConvolution": 2, "MatMul": 1}  # of the weights' axes, those that are no terms of a sum


def terms(path: Path) -> list[int]:
    """How many products each layer adds up for one output."""
    import openvino

    counts = []
    for node in openvino.Core().read_model(path).get_ordered_ops():
        if node.get_type_name() in SUMS:
            shape = list(node.input_value(1).get_partial_shape().to_shape())
            counts.append(int(np.prod(shape[SUMS[node.get_type_name()] :])))
        elif node.get_type_name() == "ConvolutionBackpropData":  # kernels as wide as strides: one tap of each channel
            counts.append(int(node.input_value(1).get_partial_shape()[0].get_length()))
    return counts


def with_openvino(path: Path) -> common.Pair:
    import openvino

    import tconv_cl.openvino

    core = openvino.Core()
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    stock = core.compile_model(core.read_model(path), "CPU", exact)
    model = core.read_model(path)
    tconv_cl.openvino.convert(model)
    core.add_extension(tconv_cl.openvino.library())
    ours = core.compile_model(model, "CPU", exact)
    return common.Pair(
        "OpenVINO",
        lambda data: stock(data)[0],
        lambda data: ours(data)[0],
        lambda: tconv_cl.openvino.statistics().evaluations,
    )


RUNTIMES = {"openvino": with_openvino}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where fetch.py put the models")
    parser.add_argument("--runtime", choices=RUNTIMES, action="append", help="may be given several times; else all")
    parser.add_argument("--width", type=int, default=640, help="of the page; a multiple of 32")
    parser.add_argument("--height", type=int, default=448, help="of the page; a multiple of 32")
    parser.add_argument("--rounds", type=int, default=21, help="inferences that are timed, of each")
    parser.add_argument("--picture", type=Path, default=Path("docs/images/text_detection.png"))
    arguments = parser.parse_args()
    path = arguments.folder / "text_detection.onnx"

    page = draw_picture(arguments.width, arguments.height)
    rows = []
    for name in arguments.runtime or RUNTIMES:
        pair = RUNTIMES[name](path)
        row, probability = common.measure(
            "PP-OCRv4 text detection", pair, network_input(page), LAYERS, terms(path), arguments.rounds
        )
        rows.append(row)
    heat_map(page, probability[0, 0], arguments.picture)
    common.print_table(rows)
    print(f"\n{arguments.picture} shows where the network sees text")


if __name__ == "__main__":
    main()
