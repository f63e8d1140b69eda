#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deepbet tells brain from head in a volume: the network as a runtime computes it, and with tconv-cl in it.

The head is made of ellipsoids here, as bright as tissues are in T1-weighted magnetic resonance, with noise: it is
nobody's. The volume is what deepbet gives the network: the brain and a margin around it, 256 voxels along each axis,
normalised. The picture shows a slice from the back to the front of the head, and what of it the network with tconv-cl
takes for brain.
"""

from __future__ import annotations

from pathlib import Path

import common
import numpy as np

EXTENT = 256
# From the outside inwards: how bright, the centre, the radii. The axes go right, to the front, and up.
# The brain is from -1 to 1.
ELLIPSOIDS = (
    (0.80, (0.00, 0.02, -0.10), (1.17, 1.18, 1.28)),  # scalp
    (0.08, (0.00, 0.02, -0.06), (1.09, 1.10, 1.16)),  # skull
    (0.16, (0.00, 0.00, 0.00), (1.01, 1.02, 1.02)),  # fluid
    (0.50, (0.00, 0.00, 0.03), (0.97, 0.98, 0.95)),  # grey matter
    (0.78, (0.43, 0.00, 0.10), (0.44, 0.83, 0.72)),  # white matter, right
    (0.78, (-0.43, 0.00, 0.10), (0.44, 0.83, 0.72)),  # and left
    (0.15, (0.14, 0.05, 0.10), (0.09, 0.40, 0.16)),  # ventricles
    (0.15, (-0.14, 0.05, 0.10), (0.09, 0.40, 0.16)),
    (0.60, (0.00, -0.45, -0.58), (0.60, 0.36, 0.26)),  # cerebellum
    (0.75, (0.00, -0.08, -0.65), (0.16, 0.16, 0.40)),  # brain stem
)


def make_head() -> np.ndarray:
    axis = (
        (np.arange(EXTENT, dtype=np.float32) - (EXTENT - 1) / 2) / (EXTENT / 2) * 1.2
    )  # a margin of 10 % on each side
    right, front, up = axis[:, None, None], axis[None, :, None], axis[None, None, :]
    head = np.zeros((EXTENT,) * 3, np.float32)
    folds = 0.02 * np.sin(14 * right) * np.sin(13 * front + 1) * np.sin(15 * up + 2)  # as a brain has them, roughly
    for bright, (x, y, z), (a, b, c) in ELLIPSOIDS:
        edge = 1 + 4 * folds if c < 1 else 1
        head[((right - x) / a) ** 2 + ((front - y) / b) ** 2 + ((up - z) / c) ** 2 < edge] = bright
    for _ in range(2):  # a scanner sees no sharp edges
        for along in range(3):
            head = (np.roll(head, 1, along) + 2 * head + np.roll(head, -1, along)) / 4
    return head + np.random.default_rng(1).normal(0, 0.02, head.shape).astype(np.float32)


def network_input(head: np.ndarray) -> np.ndarray:
    """As deepbet normalises."""
    low, high = np.quantile(head[::2, ::2, ::2], (0.005, 0.995))
    head = np.clip((head - low) / (high - low), 0, 1)
    return (0.226 * (head - head.mean()) / head.std() + 0.449).astype(np.float32)[None, None]


def main() -> None:
    head = make_head()

    def show(probability: np.ndarray, folder: Path) -> str:
        target = folder / "segmentation.png"
        mask = probability[0, 1] > 0.5
        seen = np.clip(head[EXTENT // 2 + 20].T[::-1], 0, 1)[..., None].repeat(3, axis=-1) * 255
        common.overlay(seen, 0.6 * mask[EXTENT // 2 + 20].T[::-1], target)
        return f"{target} shows a slice; {100 * mask.mean():.1f} % of the volume is brain"

    common.run(
        description=__doc__,
        name="deepbet brain segmentation",
        file="brain.pt",
        runtimes=("openvino", "torch"),
        rounds=5,
        make=lambda: network_input(head),
        show=show,
        threshold=0.5,  # deepbet's
    )


if __name__ == "__main__":
    main()
