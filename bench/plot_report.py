#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From the JSON of `tconv-cl bench` on stdin to an SVG picture on stdout: the roofline of the device with each layer
under it. From that of `tconv-cl compare`: the ratio of old and new time of each layer.

    tconv-cl bench --json bench.json && python3 bench/plot_report.py <bench.json >roofline.svg
    tconv-cl compare old.json new.json --json - | python3 bench/plot_report.py >ratios.svg

`tconv-cl bench --plot FILE.svg` and `tconv-cl compare --plot FILE.svg` do the same: the tool has this file inside.
"""

import io
import json
import os
import re
import sys

BLUE, ORANGE, GREY = "#0072b2", "#e69f00", "#666666"  # told apart by all eyes
SLOW = 0.5  # of the roofline
MOST_NAMED = 200  # layers whose ids stand below their bars


def plot():
    """matplotlib's pyplot, for pictures whose text stays text, and in which nothing depends on the moment."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update(
        {
            "svg.hashsalt": "tconv-cl",
            "svg.fonttype": "none",
            "font.family": "sans-serif",
            "font.size": 9,
            "text.parse_math": False,  # a $ in an id or a file's name is a $
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    from matplotlib import pyplot

    return pyplot


def save(figure, target, **options):
    figure.savefig(target, metadata={"Date": None, "Creator": None}, **options)


def plain_numbers(axis, steps=(1, 2, 5)):
    """1, 2, 5, 10 instead of powers of ten."""
    from matplotlib import ticker

    axis.set_major_locator(ticker.LogLocator(subs=steps))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def draw_bandwidths(axes, sizes, peak, span, least):
    """The ceilings of a roofline that memory and caches set, its axes and its legend. Layers are at `span` along x;
    the slowest has `least` GFLOP/s."""
    left, right = span
    for size, style, where in (
        (sizes[-1], "-", "from memory"),
        (max(sizes, key=lambda s: s["gbs"]), "--", "at most, from a cache"),
    ):
        x = [left, max(left, peak / size["gbs"])]
        y = [value * size["gbs"] for value in x]
        axes.plot(x, y, style, color="black", linewidth=1, label=f"{size['gbs']:.0f} GB/s {where}")
    axes.set(
        xscale="log",
        yscale="log",
        xlim=(left, right),
        xlabel="useful arithmetic per byte that must move, FLOP/B",
        ylabel="GFLOP/s",
    )
    axes.set_ylim(least / 1.5, peak * 1.5)
    plain_numbers(axes.xaxis)
    plain_numbers(axes.yaxis)
    axes.grid(linewidth=0.3)
    axes.legend(loc="lower right", frameon=False)


def draw_roofline(report, pyplot):
    timed = [layer for layer in report["layers"] if layer["error"] is None and layer["gbs"] and layer["gflops"]]
    at = [layer["gflops"] / layer["gbs"] for layer in timed]
    peak, sizes = report["peak_gflops"], report["bandwidth_by_working_set"]
    left, right = min(at, default=0.5) / 1.5, max(at, default=500) * 1.5
    figure, axes = pyplot.subplots(figsize=(9, 6), layout="constrained")
    for slow, color in ((False, BLUE), (True, ORANGE)):
        chosen = [(x, layer) for x, layer in zip(at, timed) if (layer["fraction_of_floor"] < SLOW) == slow]
        words = f"{'less' if slow else 'more'} than {SLOW:.0%} of the roofline: {len(chosen)} layers"
        axes.plot(
            [x for x, _ in chosen],
            [layer["gflops"] for _, layer in chosen],
            "o",
            color=color,
            markersize=4.5,
            label=words,
        )
    for x, layer in zip(at, timed):
        axes.annotate(
            layer["id"], (x, layer["gflops"]), xytext=(3, 3), textcoords="offset points", fontsize=6, color=GREY
        )
    axes.axhline(peak, color="black", linewidth=1, linestyle="-.", label=f"{peak:.0f} GFLOP/s at most")
    axes.set_title(f"{report['device']['name']} ({report['device']['platform']})")
    draw_bandwidths(axes, sizes, peak, (left, right), min([layer["gflops"] for layer in timed], default=peak / 100))
    return figure


def draw_ratios(comparison, pyplot):
    """Bars from 1, upwards where the new run is faster, the largest ratio first. Lines span the noise around 1."""
    layers = [layer for layer in comparison["layers"] if layer["ratio"] is not None]
    layers.sort(key=lambda layer: -layer["ratio"])
    width = max(8, 0.17 * min(len(layers), MOST_NAMED) + 1)
    thickness = min(12, 0.6 * 72 * width / max(len(layers), 1))  # of a bar, in points
    figure, axes = pyplot.subplots(figsize=(width, 5), layout="constrained")
    for verdicts, color, words in (
        (("faster",), BLUE, "faster beyond noise"),
        (("slower",), ORANGE, "slower beyond noise"),
        (("alike", None), GREY, "within noise, or not known"),
    ):
        chosen = [(i, layer["ratio"]) for i, layer in enumerate(layers) if layer["verdict"] in verdicts]
        axes.vlines(
            [i for i, _ in chosen],
            1,
            [ratio for _, ratio in chosen],
            color=color,
            linewidth=thickness,
            label=f"{words}: {len(chosen)} layers",
        )
    known = [(i, 1 + layer["noise"]) for i, layer in enumerate(layers) if layer["noise"] is not None]
    axes.vlines(
        [i for i, _ in known],
        [1 / most for _, most in known],
        [most for _, most in known],
        color="black",
        linewidth=min(1, thickness),
    )
    axes.axhline(1, color="black", linewidth=0.8)
    mean = comparison["geomean_ratio"]
    old, new = (comparison[run]["file"] for run in ("old", "new"))
    axes.set(
        yscale="log",
        ylabel="old time / new time",
        xlim=(-0.8, max(len(layers), 1) - 0.2),
        title=f"{new} against {old}: geometric mean {'-' if mean is None else format(mean, '.3f')} (above 1: faster)",
    )
    plain_numbers(axes.yaxis, steps=(1, 1.2, 1.5, 2, 3, 5, 7))
    axes.grid(axis="y", linewidth=0.3)
    axes.set_axisbelow(True)
    if len(layers) <= MOST_NAMED:
        axes.set_xticks(range(len(layers)), [layer["id"] for layer in layers], rotation=90, fontsize=7)
    else:
        axes.set_xticks([])
    figure.legend(loc="outside lower center", frameon=False, ncols=3)
    return figure


def shown(value):
    """A report whose texts have question marks, as the tool's tables have, for what ends a line or cannot be in XML."""
    if isinstance(value, str):
        return re.sub("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]", "?", value)
    if isinstance(value, list):
        return [shown(item) for item in value]
    return {key: shown(item) for key, item in value.items()} if isinstance(value, dict) else value


def draw(report):
    report = shown(report)
    pyplot = plot()
    figure = (draw_ratios if "geomean_ratio" in report else draw_roofline)(report, pyplot)
    picture = io.BytesIO()
    save(figure, picture, format="svg")
    return picture.getvalue()


if __name__ == "__main__":
    picture = draw(json.load(sys.stdin))
    try:
        sys.stdout.buffer.write(picture)
        sys.stdout.buffer.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else Python tries again at its end
        sys.exit(f"plot_report.py: the picture cannot be written: {error.strerror}")
