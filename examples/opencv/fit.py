# SPDX-License-Identifier: Apache-2.0
"""Fits the weights of upsampler_x2.h: the linear filter that best restores pictures halved by averaging 2 x 2 pixels.

Least squares over all pixels of the given pictures: 36 weights for one of the four phases, which the others mirror.
Needs numpy and pillow. The committed weights are of pictures that the wheel of scikit-image 0.26 has:

    python fit.py skimage/data/{coffee,camera,rocket,motorcycle_left,brick,grass}.* >upsampler_x2.h
"""

from __future__ import annotations

import sys

import numpy as np
from PIL import Image

KERNEL, STRIDE, PAD = 12, 2, 5
OFFSETS = range(-3, 3)  # input pixels that reach an output of phase 0, as distances from half its position


def equations(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sums of least squares for phase (0, 0): products of inputs with each other, and with the output."""
    rows, columns = (n // 2 for n in picture.shape)
    picture = picture[: 2 * rows, : 2 * columns]
    low = picture.reshape(rows, 2, columns, 2).mean(axis=(1, 3))
    inner = slice(3, -3)
    inputs = np.stack([np.roll(low, (-y, -x), (0, 1))[inner, inner].ravel() for y in OFFSETS for x in OFFSETS])
    output = picture[::2, ::2][inner, inner].ravel()
    return inputs @ inputs.T, inputs @ output


def main() -> None:
    taps = len(OFFSETS)
    squares, products = np.zeros((taps**2, taps**2)), np.zeros(taps**2)
    for path in sys.argv[1:]:
        image = np.asarray(Image.open(path).convert("RGB"), dtype=np.float64) / 255
        for channel in np.moveaxis(image, 2, 0):
            for mirrored in (channel, channel[::-1], channel[:, ::-1], channel[::-1, ::-1], channel.T):
                more = equations(mirrored)
                squares, products = squares + more[0], products + more[1]
    weights = np.linalg.solve(squares + 1e-3 * np.eye(taps**2), products).reshape(taps, taps)
    weights = (weights + weights.T) / 2
    weights /= weights.sum()  # an even area stays as it is
    kernel = np.zeros((KERNEL, KERNEL))
    places = [PAD - STRIDE * offset for offset in OFFSETS]
    for y, ky in enumerate(places):
        for x, kx in enumerate(places):
            for my, mx in ((ky, kx), (KERNEL - 1 - ky, kx), (ky, KERNEL - 1 - kx), (KERNEL - 1 - ky, KERNEL - 1 - kx)):
                kernel[my, mx] = weights[y, x]
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Weights that double a picture: 12 x 12, stride 2, pad 5. Made by fit.py. */")
    print("/* clang-format off */")
    print(f"static const float upsampler_x2[{KERNEL} * {KERNEL}] = {{")
    for row in kernel:
        for half in row.reshape(2, -1):
            print("    " + ", ".join(f"{value:.5f}F" for value in half) + ",")
    print("};\n/* clang-format on */")


if __name__ == "__main__":
    main()
