#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HiFi-GAN makes sound of a mel spectrogram: the network as a runtime computes it, and with tconv-cl in it.

The spectrogram is that of two seconds of a voice made of harmonics here, which passes through five vowels. The package
says nothing of the spectrogram that its network was trained on: it is made as HiFi-GAN's own code makes it, and the
sound must have nearly the same. The sound with tconv-cl goes into a .wav file; the picture shows what was asked for,
and the sound.
"""

from __future__ import annotations

import sys
import wave
from pathlib import Path

import common
import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

RATE, HOP, WINDOW, BANDS = 16000, 160, 1024, 80
SECONDS = 2.0
# The formants of the vowels, in Hz.
VOWELS = ((730, 1090, 2440), (530, 1840, 2480), (270, 2290, 3010), (570, 840, 2410), (300, 870, 2240))
FORMANTS = ((1, 60), (0.6, 80), (0.3, 120))  # how loud and how wide the three are
LIKE = 0.9  # the correlation of both spectrograms; others than HiFi-GAN's give 0.88 and less


def make_voice() -> np.ndarray:
    """Harmonics of a gliding pitch, as loud as the formants at their place make them, and a little breath."""
    t = np.arange(int(SECONDS * RATE)) / RATE
    pitch = 130 + 25 * np.sin(2 * np.pi * 0.9 * t) + 4 * np.sin(2 * np.pi * 5 * t)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    middles = np.linspace(0, SECONDS, len(VOWELS) + 2)[1:-1]
    formants = [np.interp(t, middles, places) for places in zip(*VOWELS)]
    sound = np.zeros_like(t)
    for harmonic in range(1, 60):
        at = harmonic * pitch
        loud = sum(gain / (1 + ((at - place) / width) ** 2) for place, (gain, width) in zip(formants, FORMANTS))
        sound += np.where(at < RATE / 2, loud, 0) / np.sqrt(harmonic) * np.sin(harmonic * phase)
    sound *= np.sqrt(np.sin(np.pi * t / SECONDS)) * (0.6 + 0.4 * np.cos(2 * np.pi * t * len(VOWELS) / SECONDS))
    sound += 1e-3 * np.random.default_rng(1).normal(size=t.size)
    return 0.3 * sound / np.abs(sound).max()


def bands() -> np.ndarray:
    """Triangles on Slaney's mel scale, linear up to 1 kHz and logarithmic from there, each of the same area."""
    step = np.log(6.4) / 27
    top = 15 + np.log(RATE / 2 / 1000) / step
    marks = np.linspace(0, top, BANDS + 2)
    edges = np.where(marks < 15, marks * 200 / 3, 1000 * np.exp((marks - 15) * step))
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    at = np.fft.rfftfreq(WINDOW, 1 / RATE)
    return np.clip(np.minimum((at - low) / (middle - low), (high - at) / (high - middle)), 0, None) * 2 / (high - low)


def spectrogram(sound: np.ndarray) -> np.ndarray:
    """Logarithms of the loudness in 80 bands, every 10 ms."""
    padded = np.pad(sound, (WINDOW - HOP) // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP] * np.hanning(WINDOW + 1)[:-1]
    return np.log(np.maximum(bands() @ np.abs(np.fft.rfft(frames)).T, 1e-5)).astype(np.float32)


def draw(asked: np.ndarray, sound: np.ndarray, target: Path) -> None:
    figure, (above, middle, below) = pyplot.subplots(3, 1, figsize=(8, 6), sharex=True, layout="constrained")
    for axes, values, title in (
        (above, asked, "mel spectrogram that the network was given"),
        (below, spectrogram(sound), "mel spectrogram of the sound"),
    ):
        extent = (0, SECONDS, 0, BANDS)
        axes.imshow(values, origin="lower", aspect="auto", extent=extent, vmin=asked.min(), vmax=asked.max())
        axes.set(title=title, ylabel="band")
    middle.plot(np.arange(sound.size) / RATE, sound, linewidth=0.4)
    middle.set(title="sound, with tconv-cl in the network", xlim=(0, SECONDS))
    below.set(xlabel="seconds")
    figure.savefig(target, dpi=72, metadata={"Software": None})


def main() -> None:
    asked = spectrogram(make_voice())

    def show(output: np.ndarray, folder: Path) -> str:
        sound, target = output[0, 0], folder / "vocoder.png"
        like = float(np.corrcoef(asked.ravel(), spectrogram(sound).ravel())[0, 1])
        if not like >= LIKE:
            sys.exit(f"the sound is not what the network was asked for: the spectrograms' correlation is {like:.3f}")
        draw(asked, sound, target)
        with wave.open(str(target.with_suffix(".wav")), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", None))  # one channel, two bytes
            file.writeframes((32767 * sound).astype("<i2").tobytes())
        return f"{target} shows the sound of {target.with_suffix('.wav')}; its spectrogram correlates by {like:.3f}"

    common.run(
        description=__doc__,
        name="HiFi-GAN vocoder",
        file="vocoder.ts",
        runtimes=("openvino", "torch"),
        rounds=9,
        make=lambda: asked[None],
        show=show,
    )


if __name__ == "__main__":
    main()
