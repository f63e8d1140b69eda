#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PP-OCRv4 finds text on a page: the network as a runtime computes it, and with tconv-cl in it.

The page is drawn here. The picture shows the page, and where the network with tconv-cl sees text.
"""

from __future__ import annotations

from pathlib import Path

import common
import numpy as np
from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT = 640, 448  # of the page; multiples of 32
MEAN, DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
LINES = (
    ("Transposed convolution", 46),
    ("makes small pictures large,", 34),
    ("one useful multiply-add at a time.", 34),
    ("kernel 2x2   stride 2x2   24 channels", 24),
    ("no zeros, no atomics, no waste", 24),
)


def draw_page() -> np.ndarray:
    """A page with lines of text in several sizes, and a box without."""
    page = Image.new("RGB", (WIDTH, HEIGHT), (244, 241, 232))
    draw = ImageDraw.Draw(page)
    y = 30
    for number, (text, size) in enumerate(LINES):
        draw.text((30 + 25 * number, y), text, fill=(20 + 30 * number, 20, 60), font=ImageFont.load_default(size))
        y += size + 40
    draw.rectangle((WIDTH - 150, HEIGHT - 130, WIDTH - 40, HEIGHT - 40), outline=(150, 30, 30), width=4)
    return np.asarray(page)


def network_input(page: np.ndarray) -> np.ndarray:
    pixels = page[:, :, ::-1] / 255  # the network was trained on BGR
    return np.ascontiguousarray(((pixels - MEAN) / DEVIATION).transpose(2, 0, 1)[None], dtype=np.float32)


def main() -> None:
    page = draw_page()

    def show(probability: np.ndarray, folder: Path) -> str:
        target = folder / "text_detection.png"
        common.overlay(page, probability[0, 0], target)
        return f"{target} shows where the network sees text"

    common.run(
        description=__doc__,
        name="PP-OCRv4 text detection",
        file="text_detection.onnx",
        runtimes=("openvino", "onnxruntime"),
        rounds=21,
        make=lambda: network_input(page),
        show=show,
        threshold=0.3,  # PaddleOCR's
    )


if __name__ == "__main__":
    main()
