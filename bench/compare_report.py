#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Table and pictures from the JSON file of compare.py; compare.py itself calls it, too.

usage: python3 bench/compare_report.py compare.json --table compare.md --ratios ratios.svg --roofline roofline.svg
"""

import argparse
import json
import math
import sys
import textwrap

from plot_report import BLUE, GREY, ORANGE, draw_bandwidths, plain_numbers, plot, save

STOCK, SAME = "stock", "same"  # a system's own operators, and its transposed convolution with the equivalent filter
NOISY = 0.05  # share of the CPU that others took meanwhile


def add_options(parser):
    parser.add_argument("--table", help="write the table there, in Markdown; default: stdout")
    parser.add_argument("--ratios", help="draw how much faster than the best peers, .svg")
    parser.add_argument("--roofline", help="draw throughput under the ceilings, .svg")


def fastest(variants):
    """The one with the least time; None where none has any."""
    return min((v for v in variants if "ms" in v), key=lambda v: v["ms"], default=None)


def own(entry, plain):
    """Our result: with data as NC[D]HW, or the better of that and channels last."""
    return fastest([entry["ours"].get("NCX", {})] if plain else entry["ours"].values())


def peer(entry, plain, name=None, form=STOCK):
    """The best peer's result, or that of the named one: of those that read and write NC[D]HW, or of all. Of a
    convolution that of the system's own operators, or of those that got the equivalent filter."""
    return fastest(
        v
        for v in entry["peers"]
        if (v["plain"] or not plain) and name in (None, v["peer"]) and v.get("form", STOCK) == form
    )


def title(variant):
    kind = variant["variant"].removeprefix("plain").strip(" ,")
    return f"{variant['peer']}, {kind}" if kind else variant["peer"]


def ratio(entry, plain, name=None, form=STOCK):
    """How much faster we are than the best peer, or the named one; None where either has no result."""
    us, them = own(entry, plain), peer(entry, plain, name, form)
    return them["ms"] / us["ms"] if us and them else None


def bandwidth(run, size):
    """GB/s for a working set: of the least measured set that is as large, else of the largest, as in `bench`."""
    sizes = run["roofline"]["bandwidth_by_working_set"]
    return next((s["gbs"] for s in sizes if s["bytes"] >= size), sizes[-1]["gbs"])


def floor(run, entry):
    """The least time in ms: multiply-adds at the peak, or bytes at the bandwidth; the run's highest ceilings."""
    return max(
        1e3 * entry["gflop"] / run["roofline"]["peak_gflops"], 1e-6 * entry["bytes"] / bandwidth(run, entry["bytes"])
    )


def is_f32(run):
    """Whether the peak of multiply-adds, which is measured in f32, bounds the layers."""
    return run["how"].get("type", "f32") == "f32"


def has_convolutions(run):
    return any("kind" in entry for entry in run["layers"])


def has_same(run):
    """Whether peers were timed with the equivalent filter: not for ordinary convolutions."""
    return any(v.get("form") == SAME for entry in run["layers"] for v in entry["peers"])


def mean(values):
    values = list(values)
    return f"{math.exp(sum(map(math.log, values)) / len(values)):.3f}" if values else "-"


def sentence(entry):
    """What is told while it runs."""
    if not own(entry, False):
        return f"{entry['id']} {entry['layer']}: {entry.get('error') or entry['ours']['NCX']['error']}"
    times = [f"ours {o['ms']:.4g} ({f})" for f, o in entry["ours"].items() if "ms" in o]
    for name in dict.fromkeys(v["peer"] for v in entry["peers"]):
        best, same = peer(entry, False, name), peer(entry, False, name, SAME)
        times.append(f"{title(best)} {best['ms']:.4g}" if best else f"{name} -")
        if same:
            times.append(f"same trick {same['ms']:.4g}")
    noise = f" (others took {100 * entry['others']:.0f} % of the CPU)" if entry["others"] > NOISY else ""
    return f"{entry['id']} {entry['layer']}: {'; '.join(times)} ms{noise}"


def row(run, entry):
    if not own(entry, False):
        cells = [""] * (11 if has_same(run) else 8)
        return [entry["id"], entry["layer"], entry.get("error") or entry["ours"]["NCX"]["error"], *cells]
    plain, best = own(entry, True), own(entry, False)
    cells = [
        entry["id"],
        entry["layer"],
        f"{floor(run, entry):.3g}" if is_f32(run) else "-",
        f"{plain['ms']:.4g}" if plain else "-",
        f"{best['ms']:.4g}" + ("" if best is plain else " last"),
    ]
    for only_plain, form in ((True, STOCK), (False, STOCK), (False, SAME))[: 3 if has_same(run) else 2]:
        them, faster = peer(entry, only_plain, form=form), ratio(entry, only_plain, form=form)
        if them is None or faster is None:
            cells += ["-", "", ""]
        else:
            cells += [
                title(them),
                f"{them['ms']:.4g}",
                f"{faster:.2f}".join(("**", "**") if faster < 1 else ("", "")),
            ]
    return cells


def print_text(text, file):
    """In lines of a Markdown page; those of an item are indented."""
    behind = "  " if text.startswith("- ") else ""
    print(textwrap.fill(text, 100, subsequent_indent=behind, break_long_words=False, break_on_hyphens=False), file=file)


def print_table(rows, file):
    print(f"| {' | '.join(rows[0])} |\n|{'---|' * len(rows[0])}", file=file)
    for cells in rows[1:]:
        print(f"| {' | '.join(cells)} |", file=file)


def write_table(run, file):
    how, entries = run["how"], run["layers"]
    timed = [e for e in entries if own(e, False)]
    if timed:
        roofline = run["roofline"]
        peers = ", ".join(f"{name} {version}" for name, version in how["peers"].items())
        print_text(
            f"tconv-cl on {run['device']['name']} ({run['device']['platform']}): "
            f"peak {roofline['peak_gflops']:.0f} GFLOP/s, "
            f"{roofline['bandwidth_by_working_set'][-1]['gbs']:.1f} GB/s from memory, "
            f"{roofline['launch_us']:.1f} us a launch. "
            f"Peers with {how['threads']} threads: {peers}. "
            f"Times in ms, medians of {how['rounds']} interleaved rounds"
            f"{', ours with math=fast' * (how['math'] == 'fast')}. "
            f"Element type: {how.get('type', 'f32')}.",
            file,
        )
        print(file=file)
    heads = "id|layer|floor|ours plain|ours best|best plain peer|ms|ratio|best peer, any layout|ms|ratio".split("|")
    if has_same(run):
        heads += "same trick, any layout|ms|ratio".split("|")
    print_table([heads, *(row(run, e) for e in entries)], file)
    if not timed:
        return
    print(
        f"""
- floor: the least possible time; plain: data and output as NC[D]HW; last: with channels last.
- ratio: the peer's time over ours; **bold** where we lose.
- {len(timed)} of {len(entries)} layers timed.""",
        file=file,
    )
    if has_same(run):
        print_text(
            "- peer: its own two operators, nearest enlargement and convolution, or convolution and shuffle; same "
            "trick: the fastest of all peers' transposed convolutions with the equivalent filter.",
            file,
        )
    for words, plain in (("best plain peer / ours plain", True), ("best peer in any layout / ours best", False)):
        ratios = {e["id"]: ratio(e, plain) for e in timed}
        lost = [i for i, value in ratios.items() if value and value < 1]
        print_text(
            f"- {words}: geometric mean {mean(filter(None, ratios.values()))} of {sum(map(bool, ratios.values()))}; "
            f"{len(lost)} lost{': ' * bool(lost)}{', '.join(lost)}.",
            file,
        )
    if has_convolutions(run):
        write_ratios(run, timed, file)
    elif is_f32(run):
        write_shares(run, timed, file)
    print(file=file)
    write_remarks(run, timed, file)


def write_shares(run, timed, file):
    how = run["how"]
    print("\nGeometric means of floor / time, of the layers that each takes:\n", file=file)
    rows = [
        "system|layers, plain|floor / time|its time / ours|layers, any layout|floor / time|its time / ours".split("|")
    ]
    for name in (None, *how["peers"]):
        cells = [name or "tconv-cl"]
        for plain in (True, False):
            pairs = [(e, peer(e, plain, name) if name else own(e, plain), own(e, plain)) for e in timed]
            pairs = [(floor(run, e), it["ms"], us["ms"]) for e, it, us in pairs if it and us]
            cells += [
                str(len(pairs)),
                mean(f / it for f, it, _ in pairs),
                mean(it / us for _, it, us in pairs) if name else "",
            ]
        rows.append(cells)
    print_table(rows, file)


def write_ratios(run, timed, file):
    """For each system the mean and the worst ratio, of its own operators and with the equivalent filter."""
    print("\nIts time / ours, each with its best layout: geometric mean, and worst:\n", file=file)
    rows = ["system|layers|its own operators|worst|layers|same trick|worst".split("|")]
    forms = (STOCK, SAME)
    if not has_same(run):
        rows, forms = [rows[0][:4]], (STOCK,)
    for name in (None, *run["how"]["peers"]):
        cells = [name or "the fastest"]
        for form in forms:
            ratios = {e["id"]: ratio(e, False, name, form) for e in timed}
            ratios = {key: value for key, value in ratios.items() if value}
            worst = min(ratios, key=lambda key: ratios[key], default=None)
            cells += [
                str(len(ratios)),
                mean(ratios.values()),
                f"{ratios[worst]:.2f} ({worst})" if worst else "-",
            ]
        rows.append(cells)
    print_table(rows, file)


def write_remarks(run, timed, file):
    how = run["how"]
    for name in how["peers"]:
        wrong = [e["id"] for e in timed if any(v["peer"] == name and "wrong" in v for v in e["peers"])]
        for form, what in ((STOCK, ""), (SAME, "with the same trick ")):
            refused = {
                e["id"]: next(v["refused"] for v in mine if "refused" in v)
                for e in timed
                if (mine := [v for v in e["peers"] if v["peer"] == name and v.get("form", STOCK) == form])
                and not peer(e, False, name, form)
                and any("refused" in v for v in mine)
            }
            for i, reason in refused.items():
                print_text(f"- {name} {what}refuses {i}: {reason}", file)
        if wrong:
            print_text(f"- {name} is wrong in some variant on {', '.join(wrong)}.", file)
    noisy = [f"{e['id']} ({100 * e['others']:.0f} %)" for e in timed if e["others"] > NOISY]
    if noisy:
        print_text(
            f"- While these were timed, others took more than {100 * NOISY:.0f} % of the CPU: {', '.join(noisy)}.", file
        )
    for e in timed:
        for data_format, result in e["ours"].items():
            if "error" in result:
                print_text(f"- tconv-cl fails on {e['id']} as {data_format}: {result['error']}", file)


def draw_ratios(run, path):
    """Bars from 1, upwards where we are faster."""
    pyplot = plot()
    labels = "best peer with data as NC[D]HW, as ours", "best peer in any layout, against our better one"
    bars = [(e["id"], ratio(e, True), ratio(e, False)) for e in run["layers"]]
    if has_same(run):
        labels = "best peer's own two operators", "best peer with the equivalent filter"
        bars = [(e["id"], ratio(e, False), ratio(e, False, form=SAME)) for e in run["layers"]]
    bars = sorted((b for b in bars if b[1] and b[2]), key=lambda b: b[1])
    figure, axes = pyplot.subplots(figsize=(max(8, 0.17 * len(bars) + 1), 5), layout="constrained")
    for shift, column, color, label in (
        (-0.2, 1, BLUE, labels[0]),
        (0.2, 2, ORANGE, labels[1]),
    ):
        values = [b[column] for b in bars]
        axes.bar(
            [i + shift for i in range(len(bars))],
            [v - 1 for v in values],
            0.4,
            bottom=1,
            color=color,
            label=f"{label}: geometric mean {mean(values)}",
        )
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set(
        yscale="log",
        ylabel="time of the best peer / ours",
        xlim=(-0.8, len(bars) - 0.2),
        title="How much faster than the best peer (above 1: faster)",
    )
    plain_numbers(axes.yaxis)
    axes.grid(axis="y", linewidth=0.3)
    axes.set_axisbelow(True)
    axes.set_xticks(range(len(bars)), [b[0] for b in bars], rotation=90, fontsize=7)
    figure.legend(loc="outside lower center", frameon=False)
    save(figure, path)


def draw_roofline(run, path):
    """Useful arithmetic per compulsory byte, and what becomes of it."""
    pyplot = plot()
    entries = [e for e in run["layers"] if own(e, False) and peer(e, False)]
    at = [1e9 * e["gflop"] / e["bytes"] for e in entries]
    ours = [1e3 * e["gflop"] / own(e, False)["ms"] for e in entries]
    theirs = [1e3 * e["gflop"] / peer(e, False)["ms"] for e in entries]
    figure, axes = pyplot.subplots(figsize=(9, 6), layout="constrained")
    axes.vlines(at, ours, theirs, color=GREY, linewidth=0.5, zorder=1)
    axes.plot(at, theirs, "D", color=ORANGE, markersize=4, label="best peer in any layout")
    axes.plot(at, ours, "o", color=BLUE, markersize=4.5, label="tconv-cl, the better layout")
    peak, sizes = run["roofline"]["peak_gflops"], run["roofline"]["bandwidth_by_working_set"]
    left, right = min(at) / 1.5, max(at) * 1.5
    axes.axhline(peak, color="black", linewidth=1)
    axes.annotate(f"{peak:.0f} GFLOP/s", (left, peak), xytext=(4, 4), textcoords="offset points")
    axes.set_title("Throughput under the ceilings of the device")
    draw_bandwidths(axes, sizes, peak, (left, right), min(ours + theirs))
    save(figure, path)


def write(run, arguments):
    """What the options of add_options ask for."""
    if arguments.table:
        with open(arguments.table, "w") as file:
            write_table(run, file)
    else:
        write_table(run, sys.stdout)
    drawable = any(ratio(e, True) for e in run["layers"])
    for path, draw in ((arguments.ratios, draw_ratios), (arguments.roofline, draw_roofline)):
        if path and drawable:
            draw(run, path)
        elif path:
            print(f"{path} is not drawn: no layer has a peer", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", help="what compare.py wrote")
    add_options(parser)
    arguments = parser.parse_args()
    with open(arguments.json) as file:
        run = json.load(file)
    write(run, arguments)


if __name__ == "__main__":
    main()
