#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says how well the cost model chooses, and fits its fields to measured times.

    tconv-cl tune --budget 2000 --json f32.json
    tconv-cl tune --budget 2000 --data-format NXC --json f32-nxc.json
    scripts/refit.py f32.json f32-nxc.json::NXC

A measurement is FILE.json[:TYPE[:FORMAT]], what `tconv-cl tune --json` wrote for layers of the built-in suite; TYPE is
f32 and FORMAT is NCX where they are left out. For each layer the model's choice is compared with the fastest candidate
that was timed: the regret is the time of the one over that of the other.

With --fit, fields are changed, one after the other and in several rounds, so that the choices become better, and the
changes are printed as `tconv-cl tune --fields` takes them; with --write they go into src/algorithm/cost/fields.h.
With --unneeded, each field is doubled and halved, and printed with the number of choices that this changes."""

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HARDWARE = (
    "units lanes clock l3 l2 l1 line registers adds loads issue latency sums unit_lanes warp unit_warps "
    "unit_registers unit_issue unit_read unit_local unit_l2 unit_dram gpu_launch gpu_begin gpu_wait"
).split()
SHARPNESS = 25  # of the soft choice: a candidate that is expected to take 4 % longer counts 1/e times as much
STEPS = (0.5, 0.71, 0.84, 1.19, 1.41, 2.0)


def fail(message: str) -> None:
    sys.exit(f"refit.py: {message}")


class Measured:
    """The timed candidates of all layers."""

    def __init__(self, specs: list[str]):
        self.lines: list[str] = []  # as host_tests/costs reads them
        self.times: list[float] = []
        self.layers: list[tuple[str, range]] = []
        self.device: dict = {}
        for spec in specs:
            path, _, rest = spec.partition(":")
            type_, _, data_format = rest.partition(":")
            try:
                report = json.loads(Path(path).read_text())
                layers, device = report["layers"], dict(report["device"])
            except (OSError, ValueError, KeyError, TypeError) as error:
                fail(f"{path}: no report of tconv-cl tune: {error!r}")
            if any((self.device or device).get(key) != device.get(key) for key in ("name", "compute_units")):
                fail(f"{path} was measured on another device than {specs[0]}")
            self.device = device
            for layer in layers:
                self.add(layer, type_ or "f32", data_format or "NCX")
        if not self.layers:
            fail("no layer with two or more timed candidates")

    def add(self, layer: dict, type_: str, data_format: str) -> None:
        timed = layer.get("timed") or []
        if len(timed) < 2:
            return
        first = len(self.lines)
        for c in timed:
            self.lines.append(f"{layer['id']} {type_} {data_format} {c['algorithm']} {c['tile']}".strip())
            self.times.append(c["ms"])
        self.layers.append((f"{layer['id']} {type_} {data_format}", range(first, len(self.lines))))


class Model:
    """The cost model with other fields: host_tests/costs as a child process."""

    def __init__(self, costs: Path, device: str, measured: Measured, folder: Path):
        candidates = folder / "refit-candidates.txt"
        candidates.write_text("\n".join(measured.lines) + "\n")
        units = str(measured.device.get("compute_units", 1))
        self.child = subprocess.Popen(
            [costs, device, units, candidates], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def expected(self, fields: dict[str, float]) -> list[float]:
        """Milliseconds of each candidate; 0: with these fields there is no such tile."""
        self.child.stdin.write(" ".join(f"{k}={v:.6g}" for k, v in fields.items()) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            fail("host_tests/costs stopped; its message is above")
        return [float(word) for word in line.split()]


def choices(measured: Measured, expected: list[float]) -> list[tuple[str, float, int, int]]:
    """For each layer its name, the regret, the chosen candidate and the fastest one; none of a layer without tiles."""
    found = []
    for name, places in measured.layers:
        possible = [i for i in places if expected[i] > 0]
        if not possible:
            continue
        chosen = min(possible, key=lambda i: expected[i])
        best = min(places, key=lambda i: measured.times[i])
        found.append((name, measured.times[chosen] / measured.times[best], chosen, best))
    return found


def loss(measured: Measured, expected: list[float], fields: dict[str, float], usual: dict[str, float]) -> float:
    """The mean logarithm of the regret, of a choice that is made smooth, and a little for each change."""
    total = 0.0
    for _, places in measured.layers:
        possible = [i for i in places if expected[i] > 0]
        if not possible:
            total += 1
            continue
        least = min(expected[i] for i in possible)
        weights = [math.exp(-SHARPNESS * math.log(expected[i] / least)) for i in possible]
        best = min(measured.times[i] for i in places)
        total += sum(w * math.log(measured.times[i] / best) for w, i in zip(weights, possible)) / sum(weights)
    change = sum(math.log(v / usual[k]) ** 2 for k, v in fields.items() if usual[k] > 0)
    return total / len(measured.layers) + 1e-4 * change


def tell(measured: Measured, expected: list[float], worst: int) -> None:
    found = choices(measured, expected)
    if not found:
        fail("the described device has none of the measured tiles: --device names the one that was measured")
    mean = math.exp(sum(math.log(r) for _, r, _, _ in found) / len(found))
    ratios = [math.log(e / t) for e, t in zip(expected, measured.times) if e > 0]
    centre = sum(ratios) / len(ratios)
    error = math.exp(math.sqrt(sum((r - centre) ** 2 for r in ratios) / len(ratios)))
    print(
        f"{len(found)} layers, {len(measured.lines)} candidates: regret {100 * (mean - 1):.1f} % (geometric mean), "
        f"{100 * (max(r for _, r, _, _ in found) - 1):.0f} % (worst layer)"
    )
    print(f"expected over measured time {math.exp(centre):.2f} (geometric mean), within a factor of {error:.2f}")
    for name, regret, chosen, best in sorted(found, key=lambda f: -f[1])[:worst]:
        if regret > 1.005:
            print(
                f"  {name}: {100 * (regret - 1):.0f} %: {measured.lines[chosen].split(' ', 3)[3]} "
                f"({measured.times[chosen]:.4g} ms) instead of {measured.lines[best].split(' ', 3)[3]} "
                f"({measured.times[best]:.4g} ms)"
            )


def fit(measured: Measured, model: Model, usual: dict[str, float], names: list[str], rounds: int) -> dict[str, float]:
    fields: dict[str, float] = {}
    least = loss(measured, model.expected(fields), fields, usual)
    for number in range(rounds):
        before = least
        for at, name in enumerate(names):
            print(f"\rround {number + 1}, {at + 1} of {len(names)} fields, loss {least:.5f}  ", end="", file=sys.stderr)
            for step in STEPS:
                trial = dict(fields)
                trial[name] = fields.get(name, usual[name]) * step
                value = loss(measured, model.expected(trial), trial, usual)
                if value < least - 1e-6:
                    least, best = value, trial
                    fields = best
        if before - least < 1e-4:
            break
    print(file=sys.stderr)
    return {k: float(f"{v:.3g}") for k, v in fields.items() if f"{v:.3g}" != f"{usual[k]:.3g}"}


def write(fields: dict[str, float], device: str) -> None:
    path = ROOT / "src/algorithm/cost/fields.h"
    text = path.read_text()
    families = {"NVIDIA": "NVIDIA", "NVIDIA mma": "NVIDIA", "AMD wmma": "AMD_RDNA", "AMD mfma": "AMD_CDNA"}
    family = families.get(device)
    for name, value in fields.items():
        pattern, changed = rf"F\({name}, [^,\n]*, (\d), \"", rf'F({name}, {value:g}, \1, "'
        own = rf"(define TCONV_{family}_FIELDS\(F\)(?:.*\\\n)*?.*F\({name}, )[^,()]*\)"
        if family and re.search(own, text):
            pattern, changed = own, rf"\g<1>{value:g})"
        text, count = re.subn(pattern, changed, text)
        if count != 1:
            fail(f"{path} has no single field {name}")
    lines = []
    for line in text.split("\n"):  # the backslashes stand in one column
        bare = re.sub(r"\s*\\$", "", line)
        lines.append(bare.ljust(99) + "\\" if line.endswith("\\") else line)
    path.write_text("\n".join(lines))
    print(f"written to {path.relative_to(ROOT)}")


def unneeded(measured: Measured, model: Model, usual: dict[str, float], names: list[str]) -> None:

    def chosen(fields: dict[str, float]) -> dict[int, int]:
        """The chosen candidate of each layer, by its fastest one."""
        return {best: choice for _, _, choice, best in choices(measured, model.expected(fields))}

    base = chosen({})
    for name in names:
        changed = 0
        for step in (0.5, 2.0):
            other = chosen({name: usual[name] * step})
            changed += sum(choice != other.get(best) for best, choice in base.items())
        print(f"{changed:4d} {name}")


def described(name: str | None, measured: dict) -> str:
    """The described device for what was measured. The fields of one would be fitted to the times of another."""
    kind, width = measured.get("kind"), measured.get("vector_width")
    usual = {16: "CPU AVX-512", 8: "CPU AVX2"}.get(width) if kind == "CPU" else None
    title = f"{measured.get('name', 'an unknown device')}, a {kind or 'device of an unknown kind'}"
    if name is None and usual is None:
        fail(f"the measurements are of {title}: --device names the device of host_tests/described.c that is like it")
    if name is not None and kind in ("CPU", "GPU") and (kind == "CPU") != name.startswith("CPU"):
        fail(f"--device is {name}, but the measurements are of {title}")
    return name or usual or ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements", nargs="+", metavar="FILE.json[:TYPE[:FORMAT]]")
    parser.add_argument("--fit", action="store_true", help="fit fields")
    parser.add_argument("--unneeded", action="store_true", help="how many choices change with each field")
    parser.add_argument(
        "--fields", help="the fields to fit or to change, commas between; default: all but the hardware's"
    )
    parser.add_argument("--rounds", type=int, default=4, help="rounds over all fields; default 4")
    parser.add_argument("--write", action="store_true", help="with --fit: change src/algorithm/cost/fields.h")
    parser.add_argument(
        "--device", help="the described device (host_tests/described.c); default: CPU AVX-512 or AVX2, as was measured"
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="build folder; default build")
    parser.add_argument("--worst", type=int, default=10, help="how many layers to list; default 10")
    options = parser.parse_args()
    if options.write and not options.fit:
        parser.error("--write wants --fit")
    costs = options.build / "host_tests/costs"
    if not costs.exists():
        fail(f"there is no {costs}: build the project with its tests first")
    measured = Measured(options.measurements)
    options.device = described(options.device, measured.device)
    table = subprocess.run(
        [costs, options.device, "1", "fields"], stdout=subprocess.PIPE, text=True, check=False
    ).stdout
    if not table:
        fail(f"no device is described as {options.device}: host_tests/described.c has the names")
    usual = {row.split("\t")[0]: float(row.split("\t")[1]) for row in table.splitlines()}
    names = options.fields.split(",") if options.fields else [n for n in usual if n not in HARDWARE]
    for name in names:
        if name not in usual:
            fail(f"there is no field {name}; {costs} lists them")
    with tempfile.TemporaryDirectory() as folder:
        work(options, measured, Model(costs, options.device, measured, Path(folder)), usual, names)


def work(
    options: argparse.Namespace, measured: Measured, model: Model, usual: dict[str, float], names: list[str]
) -> None:
    tell(measured, model.expected({}), options.worst)
    if options.unneeded:
        unneeded(measured, model, usual, names)
    if options.fit:
        fields = fit(measured, model, usual, names, options.rounds)
        tell(measured, model.expected(fields), options.worst)
        print(" ".join(f"{k}={v:g}" for k, v in fields.items()) or "nothing to change")
        if options.write:
            write(fields, options.device)


if __name__ == "__main__":
    main()
