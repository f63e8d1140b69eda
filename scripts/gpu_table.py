#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Markdown table of the speed that a predictor tells for the suite on GPUs: of each machine, type and data format the
geometric mean of (floor + one launch) / predicted time, and the worst layer.

The predictor is a program outside of this project. It is called as

  PREDICTOR LISTING --sources cl --machines NAME --json FILE

with lines of `gpu_programs --listing` (docs/gpus.md), and writes a list with `layer`, `ms` and `floor_ms` of each line,
or `error`.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LAUNCH_MS = 0.004  # what a launch costs at least
MACHINES = {"A100": "NVIDIA mma", "H100": "NVIDIA mma", "RX 7900 XTX": "AMD wmma", "MI300X": "AMD mfma"}


def predict(arguments, listing, machine, folder):
    path = os.path.join(folder, "predicted.json")
    command = [sys.executable, arguments.predictor, listing, "--sources", os.path.join(ROOT, "cl")]
    command += ["--machines", machine, "--json", path]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if not os.path.exists(path):
        sys.exit(done.stdout[-1000:])
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)
    os.remove(path)
    return rows


def cell(rows, name):
    failed = [row["layer"] for row in rows if "error" in row]
    if failed:
        print("%s: no prediction of %s" % (name, ", ".join(failed)), file=sys.stderr)
    shares = {row["layer"]: (row["floor_ms"] + LAUNCH_MS) / row["ms"] for row in rows if "error" not in row}
    if not shares:
        return None
    worst = min(shares, key=shares.get)
    return "%.3f (%s %.3f)" % (math.exp(sum(map(math.log, shares.values())) / len(shares)), worst, shares[worst])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("predictor", help="a Python program")
    parser.add_argument("--programs", default=os.path.join(ROOT, "build/host_tests/gpu_programs"))
    parser.add_argument("--suite", metavar="FILE", help="without it the built-in suite")
    parser.add_argument("--kinds", default="f32:NCX,f32:NXC,f16:NCX,f16:NXC", help="element types and data formats")
    arguments = parser.parse_args()
    empty = []
    print("| geometric mean (worst layer) | %s |\n|---|%s" % (" | ".join(MACHINES), "---|" * len(MACHINES)))
    with tempfile.TemporaryDirectory() as folder:
        for kind in arguments.kinds.split(","):
            cells = []
            for machine, device in MACHINES.items():
                command = [arguments.programs, "--listing", *kind.split(":"), "--device", device]
                listing = os.path.join(folder, "listing.jsonl")
                with open(listing, "w", encoding="utf-8") as out:
                    subprocess.run(
                        command + (["--suite", arguments.suite] if arguments.suite else []), stdout=out, check=True
                    )
                name = "%s %s" % (machine, kind)
                cells.append(cell(predict(arguments, listing, machine, folder), name) or "")
                empty += [] if cells[-1] else [name]
            print("| %s | %s |" % (kind.replace(":", " "), " | ".join(cells)), flush=True)
    return "no layer is predicted of " + ", ".join(empty) if empty else 0


if __name__ == "__main__":
    sys.exit(main())
