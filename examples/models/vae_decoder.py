#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The VAE decoder of Stable Diffusion 1.x, which has no transposed convolution, stock and with tconv-cl in it.

The decoder makes a picture of a latent image an eighth as large. It enlarges three times, each time by nearest
neighbours with a convolution behind. tconv-cl computes these three pairs as one layer each, in PyTorch by

    decoder = tconv_cl.torch.convert(decoder)

in ONNX Runtime, where torch.onnx makes the file, by

    session = onnxruntime.InferenceSession(file, tconv_cl.onnxruntime.session_options())

and in OpenVINO by

    model = tconv_cl.openvino.convert(openvino.Core().read_model(file))

The architecture is the published one, made by the package diffusers. Its weights are random: time, memory and rounding
do not depend on them, but the picture is noise, and is not shown. Needs what run.sh installs.

For each runtime the script prints which pairs were taken, by which algorithm, and a line of the table:

  stock, with tconv-cl   milliseconds of one whole decoding, medians; the two run in turn
  memory peaks           the largest resident memory of a process that only makes the model and decodes five times, in
                         MiB, stock and with tconv-cl, whose OpenCL driver is a part of it
  difference, tolerance  the largest difference of both outputs, and what rounding explains (tolerance in common.py),
                         as parts of the largest output

It fails if a pair is not taken, or if the outputs differ by more than the tolerance.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import torch

# Modules that only one runtime needs are imported where they are needed: the memory of the others is measured.

Compute = Callable[[np.ndarray], np.ndarray]
PAIRS = 3
CONFIGURATION: dict[str, Any] = {  # vae/config.json of Stable Diffusion 1.4 and 1.5
    "act_fn": "silu",
    "block_out_channels": (128, 256, 512, 512),
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "in_channels": 3,
    "latent_channels": 4,
    "layers_per_block": 2,
    "norm_num_groups": 32,
    "out_channels": 3,
    "sample_size": 512,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
}
FACTOR = 8


class Choice(NamedTuple):
    """What was asked for."""

    folder: Path
    extent: int  # of the picture
    math: str
    channels_last: bool

    @property
    def file(self) -> Path:
        return self.folder / f"vae_decoder_{self.extent}.onnx"


def make_latent(extent: int) -> np.ndarray:
    shape = (1, CONFIGURATION["latent_channels"], extent // FACTOR, extent // FACTOR)
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def make_decoder() -> torch.nn.Module:
    """What AutoencoderKL.decode does, without the encoder."""
    import torch
    from diffusers import AutoencoderKL

    torch.manual_seed(1)
    vae = AutoencoderKL(**CONFIGURATION).eval()
    return torch.nn.Sequential(vae.post_quant_conv, vae.decoder)


def export(choice: Choice) -> None:
    """Writes the ONNX file, unless it is there."""
    import torch

    if not choice.file.exists():
        latent = torch.from_numpy(make_latent(choice.extent))
        torch.onnx.export(make_decoder(), (latent,), choice.file, dynamo=True, verbose=False)


# ---- the runtimes: the decoder, stock or with tconv-cl ----


def with_torch(choice: Choice, ours: bool) -> Compute:
    import torch

    layout = torch.channels_last if choice.channels_last else torch.contiguous_format
    decoder = make_decoder().to(memory_format=layout)
    if ours:
        import tconv_cl.torch

        decoder = tconv_cl.torch.convert(decoder, math=choice.math)

    @torch.inference_mode()
    def compute(latent: np.ndarray) -> np.ndarray:
        return decoder(torch.from_numpy(latent).contiguous(memory_format=layout)).contiguous().numpy()

    return compute


def with_onnxruntime(choice: Choice, ours: bool) -> Compute:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # it warns of every provider that does not take the whole model
    if ours:
        import tconv_cl.onnxruntime

        options = tconv_cl.onnxruntime.session_options(options, math=choice.math)
    providers = None if ours else ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(choice.file, options, providers)
    name = session.get_inputs()[0].name
    return lambda latent: session.run(None, {name: latent})[0]


def with_openvino(choice: Choice, ours: bool) -> Compute:
    import openvino

    core = openvino.Core()
    model = core.read_model(choice.file)
    if ours:
        import tconv_cl.openvino

        model = tconv_cl.openvino.convert(model, math=choice.math)
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return lambda latent: compiled(latent)[0]


RUNTIMES = {
    "torch": ("PyTorch", with_torch),
    "onnxruntime": ("ONNX Runtime", with_onnxruntime),
    "openvino": ("OpenVINO", with_openvino),
}


# ---- memory ----


def print_peak(compute: Compute, latent: np.ndarray) -> None:
    """The largest resident memory of this process, in MiB, as Linux counts it; that of getrusage may be a parent's."""
    for _ in range(5):
        compute(latent)
    lines = Path("/proc/self/status").read_text().splitlines()
    print(next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM:")))


def peak(runtime: str, which: str) -> str:
    """That of a process of its own."""
    command = [sys.executable, __file__, *sys.argv[1:], "--runtime", runtime, "--peak", which]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1]


# ---- one run ----

HEADER = (
    "| runtime | pairs | stock | with tconv-cl | stock / ours | memory peaks: stock, ours | difference | tolerance |",
    "|---|---|---|---|---|---|---|---|",
)


def measure(runtime: str, choice: Choice, rounds: int) -> str:
    """The line of the table."""
    import common

    import tconv_cl

    name, make = RUNTIMES[runtime]
    latent = make_latent(choice.extent)
    taken: dict[str, str] = {}

    def hear(event: tconv_cl.TraceEvent) -> None:
        if event.kind == "plan":
            taken[str(event.problem)] = f"{event.algorithm} {event.tile}"

    stock, ours = make(choice, False), make(choice, True)
    wanted = stock(latent)
    with tconv_cl.trace(hear):
        got = ours(latent)
    print(f"{name}: tconv-cl computes")
    for problem, algorithm in taken.items():
        print(f"  {problem}: {algorithm}")
    if len(taken) != PAIRS or not all("--upsample" in problem for problem in taken):
        sys.exit(f"{name}: tconv-cl took {len(taken)} layers, not {PAIRS} upsamplings")
    model = common.read(choice.file, latent.shape)
    counts = common.terms(model, normalizations=runtime == "openvino")
    difference, allowed = common.compared(name, got, wanted, counts)
    times = common.in_turn((stock, ours), latent, rounds)
    return (
        f"| {name}{', channels last' if choice.channels_last and runtime == 'torch' else ''} | {len(taken)} "
        f"| {1e3 * times[0]:.0f} ms | {1e3 * times[1]:.0f} ms | {times[0] / times[1]:.2f} "
        f"| {peak(runtime, 'stock')}, {peak(runtime, 'ours')} MiB | {difference:.1e} | {allowed:.1e} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the ONNX file goes there (200 MB)")
    parser.add_argument("--runtime", choices=RUNTIMES, action="append", help="may be given several times; else all")
    parser.add_argument("--extent", type=int, default=256, help="of the picture, a multiple of 8 (256)")
    parser.add_argument("--rounds", type=int, default=9, help="decodings that are timed, of each (9)")
    parser.add_argument(
        "--math", choices=("exact", "fast"), default="exact", help="fast: kernels that round more may compute (exact)"
    )
    parser.add_argument("--channels-last", action="store_true", help="PyTorch's tensors have the channels last")
    parser.add_argument(
        "--peak", choices=("stock", "ours"), help="only print the memory peak of one --runtime, in this process"
    )
    arguments = parser.parse_args()
    if arguments.extent < FACTOR or arguments.extent % FACTOR:
        parser.error(f"--extent {arguments.extent}: is not a positive multiple of {FACTOR}")
    choice = Choice(arguments.folder, arguments.extent, arguments.math, arguments.channels_last)
    if arguments.peak is not None and arguments.runtime is None:
        parser.error("--peak needs a --runtime")
    choice.folder.mkdir(parents=True, exist_ok=True)
    if arguments.peak is not None:
        if not choice.file.exists():
            parser.error(f"--peak: {choice.file} is not there; run without --peak first")
        make = RUNTIMES[arguments.runtime[-1]][1]
        print_peak(make(choice, arguments.peak == "ours"), make_latent(choice.extent))
        return
    export(choice)
    rows = [measure(runtime, choice, arguments.rounds) for runtime in arguments.runtime or RUNTIMES]
    print("\n".join([*HEADER, *rows]))


if __name__ == "__main__":
    main()
