# SPDX-License-Identifier: Apache-2.0
"""The layers that are measured, and in which order."""

import csv
import math
import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# An element type and a data format each.
KINDS = ["f16-NXC", "f16-NCX", "f32-NCX", "f32-NXC", "bf16-NXC", "bf16-NCX", "tf32-NXC", "tf32-NCX", "i8-NXC", "i8-NCX"]
DECISIVE = ["B24", "B25", "B43", "B10", "B07", "B09", "B11", "S1", "B23", "B39"]
SLICE = 5  # layers


def suite():
    with open(os.path.join(ROOT, "bench/suite.csv"), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def slices(kinds, ids, wanted):
    """(kind, number, ids): the layers of each kind that are `wanted`, the "decisive" ones or the "others"."""
    first = [key for key in DECISIVE if key in ids]
    layers = {"decisive": first, "others": [key for key in ids if key not in first]}[wanted]
    number = 1 if wanted == "decisive" else 1 + math.ceil(len(first) / SLICE)
    return [(kind, number + i // SLICE, layers[i : i + SLICE]) for kind in kinds for i in range(0, len(layers), SLICE)]


def checks(kinds):
    return [kind for kind in kinds if not kind.startswith("tf32")]  # check computes TF32 with --math fast only


def first_checks(kinds):
    """One kind of each element type: correctness is known after little time."""
    return list({kind.split("-")[0]: kind for kind in reversed(checks(kinds))}.values())[::-1]
