#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two steps of gpu_report.sh: times layers with PyTorch, if it is installed, and writes the report from what lies in the folder."""
import argparse
import csv
import glob
import json
import math
import os
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KINDS = ["f32-NCX", "f32-NXC", "f16-NCX", "f16-NXC", "i8-NCX", "i8-NXC"]


# ---- PyTorch --------------------------------------------------------------------------------------------------------------------


def numbers(layer, name):
    return [int(text) for text in layer[name].split("x")]


def torch_layer(torch, layer, kind, device):
    """A function that computes the layer once. An exception is a refusal."""
    rank = len(numbers(layer, "input"))
    if rank > 3:
        raise ValueError("it knows up to three axes")
    begin, end = numbers(layer, "pads_begin"), numbers(layer, "pads_end")
    strides, dilations = numbers(layer, "strides"), numbers(layer, "dilations")
    # Its pads are the same at both ends; what the end has less of becomes output padding.
    extra = [o + b - e for o, b, e in zip(numbers(layer, "output_padding"), begin, end)]
    if any(not 0 <= x < max(s, d) for x, s, d in zip(extra, strides, dilations)):
        raise ValueError("it does not have these pads")
    channels, groups = int(layer["in_channels"]), int(layer["groups"])
    kinds = {"device": device, "dtype": {"f32": torch.float32, "f16": torch.float16}[kind.split("-")[0]]}
    data = torch.rand(int(layer["batch"]), channels, *numbers(layer, "input"), **kinds)
    weights = torch.rand(channels, int(layer["out_channels"]) // groups, *numbers(layer, "kernel"), **kinds)
    if kind.endswith("NXC"):
        if rank == 1:
            raise ValueError("its channels last are of two or three axes")
        order = torch.channels_last if rank == 2 else torch.channels_last_3d
        data, weights = data.contiguous(memory_format=order), weights.contiguous(memory_format=order)
    convolve = getattr(torch.nn.functional, "conv_transpose%dd" % rank)
    return lambda: convolve(data, weights, None, strides, begin, extra, groups, dilations)


def graph_ms(torch, run):
    """Of a GPU: the mean of 20 computations in a graph, the median of several. No launch is waited for, as with bench --repeat."""
    for _ in range(3):  # cuDNN chooses
        run()
    torch.cuda.synchronize()
    graph, count, times = torch.cuda.CUDAGraph(), 20, []
    with torch.cuda.graph(graph):
        for _ in range(count):
            run()
    for _ in range(9):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / count)
    return sorted(times)[len(times) // 2]


def best_ms(run):
    """Of a CPU: the shortest of many runs, up to half a second of them."""
    run()
    best, begin = math.inf, time.perf_counter()
    while time.perf_counter() - begin < 0.5:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def time_torch(arguments):
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: nothing to compare with")
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # exact, as tconv-cl is by default
    with open(os.path.join(ROOT, "bench/suite.csv"), encoding="utf-8", newline="") as file:
        layers = [layer for layer in csv.DictReader(file) if not arguments.ids or layer["id"] in arguments.ids.split(",")]
    result = {"version": torch.__version__, "device": torch.cuda.get_device_name() if device == "cuda" else "CPU", "ms": {}}
    for kind in KINDS[:4]:  # it has no transposed convolution of integers
        begin, times = time.time(), result["ms"].setdefault(kind, {})
        for layer in layers:
            if arguments.seconds and time.time() - begin > arguments.seconds:
                break
            try:
                with torch.no_grad():
                    run = torch_layer(torch, layer, kind, device)
                    times[layer["id"]] = graph_ms(torch, run) if device == "cuda" else best_ms(run)
            except (ValueError, RuntimeError) as error:
                print("%s %s: %s" % (kind, layer["id"], str(error).splitlines()[0]))
    with open(os.path.join(arguments.folder, "torch.json"), "w", encoding="utf-8") as out:
        json.dump(result, out, indent=1)


# ---- the report -----------------------------------------------------------------------------------------------------------------


def mean(values):
    return "%.3f" % math.exp(sum(map(math.log, values)) / len(values)) if values else ""


def load(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def table(out, heads, rows):
    out.write("| %s |\n|%s\n" % (" | ".join(heads), "---|" * len(heads)))
    for row in rows:
        out.write("| %s |\n" % " | ".join("" if cell is None else str(cell) for cell in row))
    out.write("\n")


def layer_cells(layer, torch_ms):
    other = torch_ms.get(layer["id"])
    time_ms, share = layer["ms_min"], layer["fraction_of_floor"]
    return [layer["id"], layer["layer"].replace("|", "/"), layer["algorithm"], "%.4f" % time_ms if time_ms else layer["error"],
            "%.3f" % share if share else None, "%.4f" % other if other else None, "%.2f" % (other / time_ms) if other and time_ms else None]


def write_report(arguments):
    folder = arguments.folder
    torch = load(os.path.join(folder, "torch.json")) or {"ms": {}}
    benches = {kind: bench for kind in KINDS if (bench := load(os.path.join(folder, "bench-%s.json" % kind)))}
    with open(os.path.join(folder, "report.md"), "w", encoding="utf-8") as out:
        out.write("# tconv-cl on this device\n\n")
        for bench in list(benches.values())[:1]:
            table(out, ["property", "value"], [*bench["device"].items(), ("tool_version", bench["tool_version"]), ("date", bench["date"])])
        if "version" in torch:
            out.write("PyTorch %s on %s.\n\n" % (torch["version"], torch["device"]))
        else:
            out.write("Without a comparison: PyTorch is not installed, or failed (torch.log).\n\n")
        out.write("## Steps\n\n")
        with open(os.path.join(folder, "summary"), encoding="utf-8") as file:
            out.writelines("- " + line for line in file)
        out.write("\n## Geometric means\n\nThe share of the roofline is floor / time; a factor above 1 is faster than PyTorch.\n\n")
        rows = []
        for kind, bench in benches.items():
            timed = [layer for layer in bench["layers"] if layer["ms_min"]]
            shares = [layer["fraction_of_floor"] for layer in timed if layer["fraction_of_floor"]]
            ratios = [other / layer["ms_min"] for layer in timed if (other := torch["ms"].get(kind, {}).get(layer["id"]))]
            failed = [layer["id"] for layer in bench["layers"] if layer["error"] and layer["error"] != "interrupted"]
            rows.append([kind, len(timed), ", ".join(failed), mean(shares), "%.4f" % min(shares) if shares else "", mean(ratios), len(ratios),
                         *("%.4g" % bench[name] if bench.get(name) else "" for name in ("launch_us", "peak_gflops", "bandwidth_gbs"))])
        table(out, ["kind", "layers", "failed", "of roofline", "worst", "PyTorch / tconv-cl", "of layers", "launch us", "peak GFLOP/s", "GB/s"],
              rows)
        for kind, bench in benches.items():
            out.write("## %s\n\n" % kind)
            table(out, ["id", "layer", "algorithm", "ms", "of roofline", "PyTorch ms", "factor"],
                  [layer_cells(layer, torch["ms"].get(kind, {})) for layer in bench["layers"] if layer["error"] != "interrupted"])
        out.write("All numbers are in %s.\n" % ", ".join(sorted(os.path.basename(path) for path in glob.glob(os.path.join(folder, "*.json")))))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["torch", "report"])
    parser.add_argument("folder")
    parser.add_argument("--ids", default="")
    parser.add_argument("--seconds", type=float, default=0)
    arguments = parser.parse_args()
    {"torch": time_torch, "report": write_report}[arguments.step](arguments)


if __name__ == "__main__":
    main()
