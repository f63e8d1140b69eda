#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A generator of sound like HiFi-GAN's, of causal convolutions, speaks in chunks, with the bits of the whole.

Prints for each length of chunk how late the sound is, and what a second of it costs, against one push of all and
against PyTorch's own convolutions. The weights are random: only the shapes are HiFi-GAN's.
"""

from __future__ import annotations

import argparse
import sys
import time

import torch
from torch import nn

import tconv_cl.torch
from tconv_cl.torch import CausalConv1d, Streaming

RATE, HOP = 22050, 256  # samples of a second, and of a frame of the spectrogram


class Block(nn.Module):
    """Three dilated convolutions, each with one behind it, and what they are added to."""

    def __init__(self, channels: int, taps: int) -> None:
        super().__init__()
        self.first = nn.ModuleList([CausalConv1d(channels, channels, taps, dilation=d) for d in (1, 3, 5)])
        self.second = nn.ModuleList([CausalConv1d(channels, channels, taps) for _ in range(3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for first, second in zip(self.first, self.second):
            x = x + second(nn.functional.leaky_relu(first(nn.functional.leaky_relu(x, 0.1)), 0.1))
        return x


class Generator(nn.Module):
    """Four upsamplers, by 256 together, with blocks of 3, 7 and 11 taps behind each."""

    def __init__(self, width: int) -> None:
        super().__init__()
        sizes = [width >> i for i in range(5)]
        taps_strides = ((16, 8), (16, 8), (4, 2), (4, 2))
        self.begin = CausalConv1d(80, width, 7)
        self.ups = nn.ModuleList(
            [nn.ConvTranspose1d(a, b, k, s, (k - s) // 2) for a, b, (k, s) in zip(sizes, sizes[1:], taps_strides)]
        )
        self.blocks = nn.ModuleList([nn.ModuleList([Block(size, k) for k in (3, 7, 11)]) for size in sizes[1:]])
        self.end = CausalConv1d(sizes[-1], 1, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.begin(x)
        for up, blocks in zip(self.ups, self.blocks):
            x = up(nn.functional.leaky_relu(x, 0.1))
            x = sum(block(x) for block in blocks) / len(blocks)
        return torch.tanh(self.end(nn.functional.leaky_relu(x)))


def speak(generator: Streaming, frames: torch.Tensor, chunk: int) -> tuple[torch.Tensor, list[float], int]:
    """The sound, the seconds of each push, and how many samples the first push lacks."""
    generator.reset()
    parts, times = [], []
    for piece in frames.split(chunk, dim=2):
        start = time.perf_counter()
        parts.append(generator(piece))
        times.append(time.perf_counter() - start)
    late = chunk * HOP - parts[0].shape[2]
    start = time.perf_counter()
    parts.append(generator.flush())
    times[-1] += time.perf_counter() - start
    return torch.cat(parts, dim=2), times, late


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=60, help="of the spectrogram (60: 0.7 s of sound)")
    parser.add_argument("--chunks", type=int, nargs="+", default=[1, 4, 20], help="frames of a chunk")
    parser.add_argument("--width", type=int, default=512, help="channels of the first layer (HiFi-GAN V1: 512)")
    options = parser.parse_args()
    torch.manual_seed(1)
    model = Generator(options.width).eval()
    frames = torch.randn(1, 80, options.frames)
    generator = tconv_cl.torch.streaming(model)
    seconds = options.frames * HOP / RATE
    with torch.no_grad():
        model(frames)
        start = time.perf_counter()
        stock = model(frames)
    print(f"PyTorch, all at once:   {(time.perf_counter() - start) / seconds:6.2f} s for a second of sound")
    equal, whole = True, torch.empty(0)
    for chunk in (options.frames, *options.chunks):
        for _ in range(2):  # the first time compiles
            sound, times, late = speak(generator, frames, chunk)
        whole = sound if chunk == options.frames else whole
        same = torch.equal(sound, whole)
        equal = equal and same
        wait = 1e3 * (late / RATE + max(times))
        print(
            f"chunks of {chunk:3} frames:    {sum(times) / seconds:6.2f} s for a second of sound; each at most "
            f"{1e3 * max(times):6.1f} ms; {late} samples late, with the longest push {wait:.1f} ms; "
            f"{'the same bits' if same else 'OTHER BITS'}"
        )
    print(
        f"largest difference to PyTorch's: {(whole - stock).abs().max():.2g}, of a sound up to {stock.abs().max():.2g}"
    )
    return 0 if equal and torch.allclose(whole, stock, rtol=1e-3, atol=1e-4) else 1


if __name__ == "__main__":
    sys.exit(main())
