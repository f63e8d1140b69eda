# SPDX-License-Identifier: Apache-2.0
"""What the scripts for real models share: a model against the same with tconv-cl, compared, timed, and in a table."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

import tconv_cl
from tconv_cl._device import default_number

UNIT = 2.0**-24  # the largest relative error of one rounding to f32
Compute = Callable[[np.ndarray], np.ndarray]


class Pair(NamedTuple):
    """One model in one runtime: as it comes, and with tconv-cl."""

    runtime: str
    stock: Compute
    ours: Compute
    computed: Callable[[], int]  # how many layers tconv-cl has computed so far


class Row(NamedTuple):
    """A line of the table."""

    model: str
    runtime: str
    layers: int
    stock: float  # seconds, as those of ours
    ours: float
    difference: float
    tolerance: float


def tolerance(terms: Sequence[int]) -> float:
    """How far two computations of a network in f32 may differ, as a part of its largest output.

    `terms` has, for each layer, how many products are added up for one output. A sum of n rounded terms errs by about
    sqrt(n) units; each layer passes on what came before and adds its own, in both computations.
    """
    return 2 * UNIT * float(np.sqrt(terms).sum())


def measure(
    model: str, pair: Pair, data: np.ndarray, layers: int, terms: Sequence[int], rounds: int
) -> tuple[Row, np.ndarray]:
    """Compares and times one inference, stock and ours in turn; medians. Also gives the output with tconv-cl."""
    before = pair.computed()
    wanted, got = pair.stock(data), pair.ours(data)
    computed = pair.computed() - before
    where = f"{model} in {pair.runtime}"
    if computed != layers:
        sys.exit(f"{where}: tconv-cl computed {computed} layers, not {layers}")
    if got.shape != wanted.shape:
        sys.exit(f"{where}: the output with tconv-cl is {got.shape}, not {wanted.shape}")
    difference, allowed = float(np.abs(got - wanted).max() / np.abs(wanted).max()), tolerance(terms)
    if not difference <= allowed:
        sys.exit(f"{where}: the outputs differ by {difference:.3g} of the largest, more than {allowed:.3g}")
    times: dict[Compute, list[float]] = {pair.stock: [], pair.ours: []}
    for compute in (pair.stock, pair.ours) * 3:
        compute(data)
    for _ in range(rounds):
        for compute, its in times.items():
            start = time.perf_counter()
            compute(data)
            its.append(time.perf_counter() - start)
    stock, ours = (statistics.median(its) for its in times.values())
    return Row(model, pair.runtime, layers, stock, ours, difference, allowed), got


def print_table(rows: Sequence[Row]) -> None:
    """In Markdown. The differences are parts of the largest output."""
    print(f"\ntconv-cl on {tconv_cl.devices()[default_number()].name}\n")
    print("| model | runtime | layers | stock | with tconv-cl | stock / ours | difference | tolerance |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row.model} | {row.runtime} | {row.layers} | {1e3 * row.stock:.2f} ms | {1e3 * row.ours:.2f} ms "
            f"| {row.stock / row.ours:.2f} | {row.difference:.1e} | {row.tolerance:.1e} |"
        )
