# SPDX-License-Identifier: Apache-2.0
"""What the scripts for real models share: a model in a runtime against the same with tconv-cl, compared and timed."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import openvino
from PIL import Image

import tconv_cl
from tconv_cl._device import number_of

UNIT = 2.0**-24  # the largest relative error of one rounding to f32
KERNELS = {
    "Convolution": 1,
    "GroupConvolution": 2,
    "MatMul": 1,
}  # the axes of the weights from this one on are added up
TRANSPOSED = ("ConvolutionBackpropData", "GroupConvolutionBackpropData")
Compute = Callable[[np.ndarray], np.ndarray]


class Pair(NamedTuple):
    """One model in one runtime: as it comes, and with tconv-cl."""

    runtime: str
    stock: Compute
    ours: Compute
    computed: Callable[[], int]  # how many layers tconv-cl has computed so far
    normalizes_in_f32: bool = False  # the runtime's own: others add up what mean and variance are made of in f64


class Row(NamedTuple):
    """A line of the table."""

    model: str
    runtime: str
    layers: int
    stock: float  # seconds, as those of ours
    ours: float
    difference: float
    tolerance: float
    errors: tuple[float, float] | None  # from an f64 computation, stock and ours
    equal: float | None  # the share of elements that are in both masks or in none


# ---- the runtimes ----


def with_openvino(path: Path, shape: Sequence[int]) -> Pair:
    import tconv_cl.openvino

    core = openvino.Core()
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    model = read(path, shape)
    stock = core.compile_model(model.clone(), "CPU", exact)
    tconv_cl.openvino.convert(model, least_macs=0)
    ours = core.compile_model(model, "CPU", exact)
    return Pair(
        "OpenVINO",
        lambda data: stock(data)[0],
        lambda data: ours(data)[0],
        lambda: tconv_cl.openvino.statistics().evaluations,
        normalizes_in_f32=True,
    )


def with_onnxruntime(path: Path, shape: Sequence[int]) -> Pair:
    import onnxruntime

    import tconv_cl.onnxruntime

    stock = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    ours = onnxruntime.InferenceSession(path, tconv_cl.onnxruntime.session_options(least_macs=0))
    name = stock.get_inputs()[0].name
    return Pair(
        "ONNX Runtime",
        lambda data: stock.run(None, {name: data})[0],
        lambda data: ours.run(None, {name: data})[0],
        lambda: tconv_cl.onnxruntime.statistics().computed,
    )


def with_torch(path: Path, shape: Sequence[int]) -> Pair:
    import torch

    import tconv_cl.torch

    # Two, since each optimises itself as it runs.
    model, same = (torch.jit.load(path, map_location="cpu").eval() for _ in range(2))

    @torch.inference_mode()
    def stock(data: np.ndarray) -> np.ndarray:
        return model(torch.from_numpy(data)).numpy()

    @torch.inference_mode()
    def ours(data: np.ndarray) -> np.ndarray:
        with tconv_cl.torch.dispatch():
            return same(torch.from_numpy(data)).numpy()

    return Pair("PyTorch", stock, ours, lambda: tconv_cl.torch.statistics().computed)


RUNTIMES = {"openvino": with_openvino, "onnxruntime": with_onnxruntime, "torch": with_torch}


def read(path: Path, shape: Sequence[int]) -> openvino.Model:
    """The ONNX or TorchScript model as OpenVINO has it."""
    if path.suffix == ".onnx":
        model = openvino.Core().read_model(path)
    else:
        import torch

        model = openvino.convert_model(torch.jit.load(path, map_location="cpu").eval())
    model.reshape(openvino.PartialShape(list(shape)))
    return model


# ---- what may differ ----


def terms(model: openvino.Model, normalizations: bool) -> list[int]:
    """How many products, or values to be normalized, each layer adds up for one output."""
    counts = []
    for node in model.get_ordered_ops():
        kind = node.get_type_name()
        if kind in KERNELS:
            counts.append(int(np.prod(list(node.input_value(1).get_shape())[KERNELS[kind] :])))
        elif kind in TRANSPOSED:  # of a kernel, one output meets the taps that are a stride apart
            attributes, shape = node.get_attributes(), list(node.input_value(1).get_shape())
            channels, kernel = shape[-2 - len(attributes["strides"])], shape[-len(attributes["strides"]) :]
            taps = [-(-extent // stride) for extent, stride in zip(kernel, attributes["strides"])]
            counts.append(int(channels * np.prod(taps)))
        elif kind == "MVN" and normalizations:
            shape = list(node.input_value(0).get_shape())
            counts.append(int(np.prod([shape[axis] for axis in node.input_value(1).get_node().data])))
    return counts


def tolerance(counts: Sequence[int], outputs: int) -> float:
    """How far two computations of a network in f32 may differ, as a part of its largest output.

    A sum of n rounded terms usually errs by about sqrt(n) units; each layer passes on what came before and adds its
    own, in both computations. The largest of N such errors is about sqrt(2 ln N) times a usual one.
    """
    return 2 * UNIT * float(np.sqrt(counts).sum() * np.sqrt(2 * np.log(outputs)))


def exact(path: Path, data: np.ndarray) -> np.ndarray:
    """The output of a TorchScript model in f64, as PyTorch computes it."""
    import torch

    with torch.inference_mode():
        return torch.jit.load(path, map_location="cpu").eval().double()(torch.from_numpy(data).double()).numpy()


# ---- one run ----


def compared(where: str, got: np.ndarray, wanted: np.ndarray, counts: Sequence[int]) -> tuple[float, float]:
    """The difference of two outputs and the tolerance for sums of so many terms; exits if it is larger."""
    if got.shape != wanted.shape:
        sys.exit(f"{where}: the output with tconv-cl is {got.shape}, not {wanted.shape}")
    difference, allowed = apart(got, wanted), tolerance(counts, wanted.size)
    if not difference <= allowed:
        sys.exit(f"{where}: the outputs differ by {difference:.3g} of the largest, more than {allowed:.3g}")
    return difference, allowed


def measure(
    name: str,
    path: Path,
    pair: Pair,
    data: np.ndarray,
    rounds: int,
    threshold: float | None,
    truth: np.ndarray | None,
) -> tuple[Row, np.ndarray]:
    """Compares and times one inference, stock and ours in turn; medians. Also gives the output with tconv-cl."""
    model = read(path, data.shape)
    layers = sum(node.get_type_name() in TRANSPOSED for node in model.get_ordered_ops())
    before = pair.computed()
    wanted, got = pair.stock(data), pair.ours(data)
    computed = pair.computed() - before
    where = f"{name} in {pair.runtime}"
    if computed != layers or layers == 0:
        sys.exit(f"{where}: tconv-cl computed {computed} layers of {layers}")
    difference, allowed = compared(where, got, wanted, terms(model, pair.normalizes_in_f32))
    errors = None if truth is None else (apart(wanted, truth), apart(got, truth))
    equal = None if threshold is None else float(((got > threshold) == (wanted > threshold)).mean())
    stock, ours = in_turn((pair.stock, pair.ours), data, rounds)
    return Row(name, pair.runtime, layers, stock, ours, difference, allowed, errors, equal), got


def in_turn(computes: Sequence[Compute], data: np.ndarray, rounds: int) -> list[float]:
    """The median seconds of one inference of each."""
    times: list[list[float]] = [[] for _ in computes]
    for compute in [*computes] * 2:  # runtimes optimise while the first ones run
        compute(data)
    for _ in range(rounds):
        for compute, its in zip(computes, times):
            start = time.perf_counter()
            compute(data)
            its.append(time.perf_counter() - start)
    return [statistics.median(its) for its in times]


def apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max() / np.abs(other).max())


def run(
    description: str,
    name: str,
    file: str,
    runtimes: Sequence[str],
    rounds: int,
    make: Callable[[], np.ndarray],
    show: Callable[[np.ndarray, Path], str],
    threshold: float | None = None,
) -> None:
    """A whole script: `make` gives the input, `show` writes what the output with tconv-cl looks like and says where."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where fetch.py put the models; the pictures go there, too")
    parser.add_argument("--runtime", choices=runtimes, action="append", help="may be given several times; else all")
    parser.add_argument("--rounds", type=int, default=rounds, help=f"inferences that are timed, of each ({rounds})")
    parser.add_argument("--table", type=Path, help="a file that the table is appended to, too")
    arguments = parser.parse_args()
    path, data, rows = arguments.folder / file, make(), []
    truth = exact(path, data) if path.suffix != ".onnx" else None
    for runtime in arguments.runtime or runtimes:
        pair = RUNTIMES[runtime](path, data.shape)
        row, output = measure(name, path, pair, data, arguments.rounds, threshold, truth)
        rows.append(row)
    print(f"tconv-cl on {tconv_cl.devices()[number_of(None)].name}; {show(output, arguments.folder)}")
    print("\n".join([*HEADER, *map(line, rows)]))
    if arguments.table is not None:
        new = not arguments.table.exists()
        with arguments.table.open("a") as table:
            table.writelines(text + "\n" for text in [*(HEADER if new else []), *map(line, rows)])


HEADER = (
    "| model | runtime | layers | stock | with tconv-cl | stock / ours | difference | tolerance "
    "| from f64: stock, ours | equal in masks |",
    "|---|---|---|---|---|---|---|---|---|---|",
)


def line(row: Row) -> str:
    """In Markdown. Differences and errors are parts of the largest output."""
    errors = "" if row.errors is None else f"{row.errors[0]:.1e}, {row.errors[1]:.1e}"
    equal = "" if row.equal is None else f"{100 * row.equal:.5f} %"
    return (
        f"| {row.model} | {row.runtime} | {row.layers} | {1e3 * row.stock:.1f} ms | {1e3 * row.ours:.1f} ms "
        f"| {row.stock / row.ours:.2f} | {row.difference:.1e} | {row.tolerance:.1e} | {errors} | {equal} |"
    )


def overlay(pixels: np.ndarray, share: np.ndarray, target: Path) -> None:
    """Writes a picture, and beside it the same with `share`, from 0 to 1, in red over it."""
    below = np.asarray(pixels, dtype=np.float64)
    hot = np.array([230.0, 60.0, 20.0])
    mixed = below * (1 - 0.75 * share[..., None]) + hot * 0.75 * share[..., None]
    Image.fromarray(np.concatenate([below, mixed], axis=1).round().astype(np.uint8)).save(target, optimize=True)
