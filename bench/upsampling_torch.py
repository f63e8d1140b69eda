#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times upsampling layers of networks in PyTorch: nearest upsampling and a convolution, and a convolution and pixel
shuffle, as PyTorch computes them and converted.

    python bench/upsampling_torch.py [--channels-last] [--math fast] [--type bfloat16] [--seconds 3]

Python needs torch and the package tconv_cl, as docs/torch.md installs them. The two run in turn; medians count. There
are two threads. Prints a table: above 1, tconv-cl is faster."""

import argparse
import copy
import math
import statistics
import time

import torch
import torch.nn.functional as functional
from torch import nn

import tconv_cl.torch


class Upsample2D(nn.Module):
    """As diffusers has it."""

    def __init__(self, inner, outer):
        super().__init__()
        self.conv = nn.Conv2d(inner, outer, 3, padding=1)

    def forward(self, x):
        return self.conv(functional.interpolate(x, scale_factor=2.0, mode="nearest"))


def nearest(inner, outer, convolution=nn.Conv2d):
    return nn.Sequential(nn.Upsample(scale_factor=2), convolution(inner, outer, 3, padding=1))


def reflected(inner, outer):
    return nn.Sequential(nn.Upsample(scale_factor=2), nn.ReflectionPad2d(1), nn.Conv2d(inner, outer, 3))


def shuffled(inner, outer, factor=2):
    return nn.Sequential(nn.Conv2d(inner, outer, 3, padding=1), nn.PixelShuffle(factor))


LAYERS = {
    "Stable Diffusion VAE, 512 channels, 32 to 64": (Upsample2D(512, 512), (1, 512, 32, 32)),
    "Stable Diffusion U-Net, 1280 channels, 8 to 16": (Upsample2D(1280, 1280), (1, 1280, 8, 8)),
    "style transfer, 128 to 64 channels, 128 to 256": (reflected(128, 64), (1, 128, 128, 128)),
    "3-D autoencoder, 64 channels, 16 to 32": (nearest(64, 64, nn.Conv3d), (1, 64, 16, 16, 16)),
    "EDSR, 64 to 256 channels, shuffle by 2, 64 to 128": (shuffled(64, 256), (1, 64, 64, 64)),
    "ESPCN, 32 to 9 channels, shuffle by 3, 128 to 384": (shuffled(32, 9, 3), (1, 32, 128, 128)),
}


def times(own, ours, data, seconds):
    """Medians of both, in ms."""
    taken = {own: [], ours: []}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken[ours]) < 5:
        for model, found in taken.items():
            start = time.perf_counter()
            model(data)
            found.append(time.perf_counter() - start)
    return [statistics.median(found) * 1e3 for found in taken.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--math", default="exact", choices=("exact", "fast"))
    parser.add_argument("--type", default="float32", choices=("float32", "bfloat16", "float16"))
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(1)
    print("| layer | stock ms | with tconv-cl ms | stock / ours | difference |\n|---|---|---|---|---|")
    ratios = []
    for name, (model, shape) in LAYERS.items():
        data = torch.randn(shape, dtype=getattr(torch, arguments.type))
        own = model.to(data.dtype).eval()
        if arguments.channels_last:
            form = torch.channels_last if data.dim() == 4 else torch.channels_last_3d
            own, data = own.to(memory_format=form), data.to(memory_format=form)
        ours = tconv_cl.torch.convert(copy.deepcopy(own), math=arguments.math, fallback="error")
        with torch.inference_mode():
            wanted, output = own(data).double(), ours(data).double()
            assert tconv_cl.torch.explain(ours).converted, name
            difference = float((output - wanted).abs().max() / wanted.abs().max())
            stock, mine = times(own, ours, data, arguments.seconds)
        ratios.append(stock / mine)
        print(f"| {name} | {stock:.3f} | {mine:.3f} | {ratios[-1]:.2f} | {difference:.0e} |", flush=True)
    print(f"| geometric mean | | | {math.prod(ratios) ** (1 / len(ratios)):.2f} | |")


if __name__ == "__main__":
    main()
