# SPDX-License-Identifier: Apache-2.0
"""report.md: the tables of what a folder has."""

import contextlib
import csv
import glob
import math
import os

from files import load, torch_said, whole
from layers import checks

LAUNCH_MS = 0.004
# What data sheets promise without sparsity: TFLOP/s of f32, TF32, f16 and bf16, i8; TB/s. The whole name counts: GH200,
# H100 NVL and a part of a card (MIG) have other sheets.
SHEETS = {
    "NVIDIA A100-SXM4-40GB": (19.5, 156, 312, 624, 1.555),
    "NVIDIA A100-SXM4-80GB": (19.5, 156, 312, 624, 2.039),
    "NVIDIA H100 80GB HBM3": (66.9, 495, 990, 1979, 3.35),
    "NVIDIA H100 PCIe": (51.2, 378, 756, 1513, 2.0),
    "NVIDIA H200": (66.9, 495, 990, 1979, 4.8),
}


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def table(out, heads, rows):
    out.write("| %s |\n|%s\n" % (" | ".join(heads), "---|" * len(heads)))
    for row in rows:
        out.write(
            "| %s |\n"
            % " | ".join("" if cell is None else str(cell).replace("|", "/").replace("\n", " ") for cell in row)
        )
    out.write("\n")


def sheet_of(name, kind):
    """GFLOP/s and GB/s that the card's data sheet promises, or None."""
    if name not in SHEETS:
        return None
    f32, tf32, half, byte, bandwidth = SHEETS[name]
    return 1e3 * {"f32": f32, "tf32": tf32, "i8": byte}.get(kind.split("-")[0], half), 1e3 * bandwidth


def measured_bandwidth(ceilings, size):
    sizes = ceilings["bandwidth_by_working_set"]
    return next((entry["gbs"] for entry in sizes if entry["bytes"] >= size), sizes[-1]["gbs"])


def evaluate(layer, ceilings, sheet, torch):
    """A row of the report: times, and shares of the roofline by measured ceilings and by the data sheet."""
    ms, row = layer["ms_median"], {"id": layer["id"], "layer": layer["layer"], "error": layer["error"]}
    other = torch.get(layer["id"], {})
    row.update({"algorithm": layer["algorithm"], "ms": ms, "torch": other.get("ms"), "torch_error": other.get("error")})
    if ms:
        flops, size = 1e6 * layer["gflops"] * ms, 1e6 * layer["gbs"] * ms
        if ceilings and ceilings["bandwidth_by_working_set"]:
            floor = 1e-6 * max(flops / ceilings["peak_gflops"], size / measured_bandwidth(ceilings, size))
            row["share"] = (floor + LAUNCH_MS) / ms
        if sheet:
            row["sheet"] = (1e-6 * max(flops / sheet[0], size / sheet[1]) + LAUNCH_MS) / ms
        if row["torch"]:
            row["ratio"] = row["torch"] / ms
    return row


def number(form, value):
    return None if value is None else form % value


def mean_and_worst(rows, name):
    values = {row["id"]: row[name] for row in rows if row.get(name)}
    if not values:
        return None
    worst = min(values, key=values.get)
    return "%.3f (%s %.3f)" % (mean(list(values.values())), worst, values[worst])


def span(rows, column):
    """The least and the largest number of a column, whose cells may have units or no number."""
    values = []
    for row in rows:
        with contextlib.suppress(ValueError):
            values.append(float(row[column].split(" ")[0]))
    return "%g to %g" % (min(values), max(values)) if values else "unknown"


def clocks_text(folder):
    """Card, driver and the range of clocks that were seen while commands ran."""
    if not os.path.exists(os.path.join(folder, "clocks.csv")):
        return None
    with open(os.path.join(folder, "clocks.csv"), encoding="utf-8", newline="") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if len(row) == 7]
    cards = {}
    for row in rows:
        cards.setdefault((row[0], row[1], row[3]), []).append(row)
    spans = []
    for (name, driver, limit), seen in cards.items():
        spans.append(
            "%s, driver %s: clock %s MHz (at most %s), memory's %s MHz, %s degrees, %s W, in %d samples"
            % (name, driver, span(seen, 2), limit, span(seen, 4), span(seen, 5), span(seen, 6), len(seen))
        )
    return "; ".join(spans)


def write_report(folder):
    plan, ceilings = load(os.path.join(folder, "plan.json")), load(os.path.join(folder, "ceilings.json"))
    said = torch_said(folder)
    versions = ["%(version)s on %(device)s" % about for about in said if "error" not in about]
    no_torch = None if versions or not said else said[-1]["error"]
    parts = [load(path) for path in sorted(glob.glob(os.path.join(folder, "*.slice.json")))]
    steps = {os.path.basename(path)[:-10]: load(path) for path in glob.glob(os.path.join(folder, "*.step.json"))}
    name = plan["device"]["name"]
    kinds = {}
    for kind in plan["kinds"]:
        mine = [part for part in parts if part["kind"] == kind]
        torch = {key: value for part in mine for key, value in part["torch"].items()}
        rows = {
            layer["id"]: evaluate(layer, ceilings, sheet_of(name, kind), torch)
            for part in mine
            for layer in part["layers"]
        }
        kinds[kind] = ([rows[key] for key in plan["ids"] if key in rows], torch)
    steps_wanted = ["check-" + kind for kind in checks(plan["kinds"])] + ["test-" + test for test in plan["tests"]]
    missing = [step for step in steps_wanted if step not in steps] + ([] if ceilings else ["ceilings"])
    for kind, (rows, torch) in kinds.items():
        ours = [key for key in plan["ids"] if key not in {row["id"] for row in rows}]
        theirs = [] if kind.startswith("i8") or no_torch else [key for key in plan["ids"] if key not in torch]
        for who, keys in [("", ours), (" of PyTorch", [key for key in theirs if key not in ours])]:
            if keys:
                some = "all layers" if len(keys) == len(plan["ids"]) else " ".join(keys)
                missing.append("%s: %s%s" % (kind, some, who))
    with whole(os.path.join(folder, "report.md")) as out:
        out.write("# tconv-cl on %s\n\n" % name)
        newest = max((part for part in parts if "date" in part), key=lambda part: part["date"], default={})
        facts = [
            *plan["device"].items(),
            ("tool_version", newest.get("tool_version")),
            ("date", newest.get("date")),
            ("seen while commands ran", clocks_text(folder) or "unknown: nvidia-smi was not found"),
        ]
        if ceilings:
            form = "%(peak_gflops).4g GFLOP/s of f32, %(bandwidth_gbs).4g GB/s from memory, a launch %(launch_us).3g us"
            facts.append(("ceilings, measured", form % ceilings))
        facts += [("PyTorch", no_torch or ", then ".join(versions) or "was not asked")]
        table(out, ["property", "value"], facts)
        out.write(
            "## Missing\n\n%s\n"
            % ("".join("- %s\n" % text for text in missing) or "Nothing: everything was measured.\n")
        )
        if missing:
            out.write("`--resume` goes on with these.\n\n")
        out.write("## Tests\n\n")
        out.writelines(
            "- %(what)s: %(outcome)s, %(seconds).0f s\n" % steps[key] for key in steps_wanted if key in steps
        )
        out.write("""
## Kinds

All times are measured, none is predicted: medians, with random data on both sides, of computations in a full queue on
GPUs. `bench` verified 2000 outputs of each layer (or all) against an f64 computation in the run that timed it; a layer
with a wrong one has no time. The share of the roofline is (floor + 4 us) / time. The floor follows from measured
ceilings; the measured peak is that of f32 multiply-adds, so matrix units may exceed 1. A data sheet's peaks are known
of few cards. A ratio is PyTorch's time / ours. tf32 is f32 with `--math fast`, and TF32 allowed in PyTorch.

""")
        heads = ["kind", "layers", "failed", "of roofline (worst)", "of data sheet (worst)", "PyTorch / ours (worst)"]
        heads += ["of layers", "lost"]
        summary = []
        for kind, (rows, _) in kinds.items():
            ratios = [row["ratio"] for row in rows if row.get("ratio")]
            lost = sorted((row for row in rows if row.get("ratio", 1) < 1), key=lambda row: row["ratio"])
            summary.append(
                [
                    kind,
                    "%d of %d" % (sum(1 for row in rows if row["ms"]), len(plan["ids"])),
                    ", ".join(row["id"] for row in rows if row["error"]),
                    mean_and_worst(rows, "share"),
                    mean_and_worst(rows, "sheet"),
                    mean_and_worst(rows, "ratio"),
                    len(ratios),
                    "%d: %s" % (len(lost), " ".join(row["id"] for row in lost)) if lost else 0 if ratios else None,
                ]
            )
        table(out, heads, summary)
        for kind, (rows, _) in kinds.items():
            if rows:
                out.write("## %s\n\n" % kind)
                table(
                    out,
                    ["id", "layer", "algorithm", "ms", "PyTorch ms", "ratio", "of roofline", "of data sheet"],
                    [
                        [
                            row["id"],
                            row["layer"],
                            row["algorithm"],
                            number("%.4f", row["ms"]) or row["error"],
                            number("%.4f", row["torch"]) or row["torch_error"],
                            number("%.2f", row.get("ratio")),
                            number("%.3f", row.get("share")),
                            number("%.3f", row.get("sheet")),
                        ]
                        for row in rows
                    ],
                )
        out.write(
            "Tiles, errors and bounds are in `*.slice.json`. "
            "What the driver compiled is in `cache`; `--programs` unpacks it.\n"
        )
    failed = [key for key, step in steps.items() if step["outcome"] != "passed"]
    failed += ["%s %s" % (kind, row["id"]) for kind, (rows, _) in kinds.items() for row in rows if row["error"]]
    return failed, missing
