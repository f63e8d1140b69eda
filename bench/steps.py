#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times layers whose output is a slice of the channels of a tensor with twice as many, and the same layers with a
dense output, in turns. Prints a Markdown table of times and ratios for channels first and last.

usage: bench/steps.py [--tool build/tconv-cl] [--ids B07,B10,...] [--batch 4] [--rounds 12] [--device N]"""

from __future__ import annotations

import argparse
import csv
import json
import math
import subprocess
from pathlib import Path

SUITE = Path(__file__).parent / "suite.csv"
IDS = "B07,B10,B14,B18,B19,B20,B22,B28,B30,B33"


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split("x")]


def options(row: dict[str, str], batch: int, last: bool) -> list[str]:
    """The layer as options of the tool."""
    channels, outputs, groups = (int(row[name]) for name in ("in_channels", "out_channels", "groups"))
    space, kernel = numbers(row["input"]), numbers(row["kernel"])
    data = [batch, *space, channels] if last else [batch, channels, *space]
    words = {
        "data-shape": data,
        "filter-shape": [channels, outputs // groups, *kernel],
        "groups": [groups],
        **{name.replace("_", "-"): numbers(row[name]) for name in ("strides", "dilations", "pads_begin", "pads_end")},
        "output-padding": numbers(row["output_padding"]),
    }
    listed = [[f"--{name}", ",".join(map(str, values))] for name, values in words.items()]
    formats = ["--data-format", "NXC" if last else "NCX", "--filter-format", "OIX"]
    return [word for pair in listed for word in pair] + formats


def tool(arguments: argparse.Namespace, *words: str) -> dict:
    device = ["--device", arguments.device] if arguments.device else []
    done = subprocess.run(
        [arguments.tool, *words, *device, "--quiet", "--json", "-"]
        if words[0] != "shape"
        else [arguments.tool, *words, "--quiet", "--json", "-"],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def slice_steps(shape: list[int], last: bool) -> str:
    """The steps of an output of this shape in a tensor with twice the channels."""
    whole = [*shape[:-1], 2 * shape[-1]] if last else [shape[0], 2 * shape[1], *shape[2:]]
    steps = [math.prod(whole[axis + 1 :]) for axis in range(len(whole))]
    return ",".join(map(str, steps))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="build/tconv-cl")
    parser.add_argument("--ids", default=IDS)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--device", default="")
    arguments = parser.parse_args()
    rows = {row["id"]: row for row in csv.DictReader(SUITE.open(encoding="utf-8"))}
    for last in (False, True):
        print(f"\n| {'NXC' if last else 'NCX'}, batch {arguments.batch} | algorithm | dense ms | slice ms | ratio |")
        print("|---|---|---|---|---|")
        ratios = []
        for name in arguments.ids.split(","):
            layer = options(rows[name], arguments.batch, last)
            steps = slice_steps(tool(arguments, "shape", *layer)["output_shape"], last)
            best, algorithms = [math.inf, math.inf], ["", ""]
            for _ in range(arguments.rounds):
                for kind, more in enumerate(([], ["--output-steps", steps])):
                    found = tool(arguments, "bench", *layer, *more, "--no-ceilings", "--runs", "8")["layers"][0]
                    best[kind] = min(best[kind], found["ms_min"])
                    algorithms[kind] = found["algorithm"]
            ratios.append(best[1] / best[0])
            used = algorithms[0] if algorithms[0] == algorithms[1] else " / ".join(algorithms)
            print(
                f"| {name} {rows[name]['layer']} | {used} | {best[0]:.3f} | {best[1]:.3f} | {ratios[-1]:.3f} |",
                flush=True,
            )
        print(f"\ngeometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, worst {max(ratios):.3f}")


if __name__ == "__main__":
    main()
