#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what README.md and docs/benchmarks.md claim with the tables of docs/benchmarks.

A claim is "1.59, slower on 1 of 68", or a row of the table of results in docs/benchmarks.md. A page that the claim's
section links to must have a column of ratios with this number of layers, this geometric mean, and so many ratios below
1. The competitors that README names for f32 on a CPU must be those that the paragraph above the table names. Each other
number with two decimals in a list item of README that links to such a page must be a mean or a ratio of its tables.

usage: claims.py SOURCES"""

import math
import re
import sys
from pathlib import Path
from typing import NamedTuple

PEERS = {
    "OpenVINO": "openvino",
    "ONNX Runtime": "onnxruntime",
    "PyTorch": "pytorch",
    "oneDNN": "onednn",
    "ncnn": "ncnn",
}


class Column(NamedTuple):
    """The ratios of one column of a table."""

    mean: float
    lost: int
    layers: int
    peers: str  # the paragraph above the table that names them, or ""
    ratios: tuple[float, ...]


def columns_of(page: str) -> list[Column]:
    """All columns of ratios of a page."""
    found, paragraph, peers, ratios = [], "", "", {}

    def end() -> None:
        for column in ratios.values():
            if column:
                ratios_ = tuple(value for value, _ in column)
                mean = math.exp(sum(math.log(max(value, 0.005)) for value in ratios_) / len(column))
                found.append(Column(mean, sum(bold for _, bold in column), len(column), peers, ratios_))

    for line in page.splitlines() + [""]:
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells and cells[0] == "id":
            ratios = {at: [] for at, cell in enumerate(cells) if cell == "ratio"}
        elif cells and set(line) - set("|-"):
            for at, column in ratios.items():
                text = cells[at].replace("\\*", "") if at < len(cells) else ""
                number = re.fullmatch(r"(\*\*)?([0-9.]+)(\*\*)?", text)
                if number:
                    column.append((float(number[2]), number[1] is not None))
        elif not cells:
            end()
            ratios = {}
            if line:
                paragraph = f"{paragraph} {line}".lstrip()
                peers = paragraph if paragraph.startswith("tconv-cl on ") else ""
        if cells or not line:
            paragraph = ""
    return found


def claims_of(text: str) -> list[tuple[float, int, int, str, str]]:
    """Mean, lost, layers, the claim, and the section around it."""
    found = []
    for section in re.split(r"^(?=## )", text, flags=re.MULTILINE):
        for match in re.finditer(r"\*?\*?([0-9]+\.[0-9]+)\*?\*?, slower on ([0-9]+) of ([0-9]+)", section):
            found.append((float(match[1]), int(match[2]), int(match[3]), match[0], section))
        for line in section.splitlines():
            row = re.fullmatch(r"\| ([^|]+) \| ([0-9]+) \| ([0-9.]+) \| ([0-9]+) \| ([0-9.]+) \| ([0-9]+) \|.*", line)
            if row and "benchmarks/" in line and "#" not in line:
                for mean, lost in ((row[3], row[4]), (row[5], row[6])):
                    found.append((float(mean), int(lost), int(row[2]), f"{mean}, slower on {lost} of {row[2]}", line))
    return found


def main() -> None:
    sources = Path(sys.argv[1])
    pages = {page.name: columns_of(page.read_text()) for page in sorted((sources / "docs/benchmarks").glob("*.md"))}
    checked, wrong = 0, []
    for name in ("README.md", "docs/benchmarks.md"):
        for mean, lost, layers, claim, section in claims_of((sources / name).read_text()):
            linked = set(re.findall(r"benchmarks/([a-z0-9_]+\.md)", section))
            columns = [
                column
                for page in linked
                for column in pages[page]
                if (column.lost, column.layers) == (lost, layers) and abs(column.mean - mean) < 0.008
            ]
            if not columns:
                wrong.append(f"{name}: {claim}: no table of {', '.join(sorted(linked)) or 'a linked page'} says so")
                continue
            checked += 1
            if name == "README.md" and layers == 68:
                stated = re.search(r"- CPU, f32: against (.*?) on two cores", " ".join(section.split()))
                named = {peer for peer in PEERS if stated and peer in stated[1]}
                timed = {peer for peer in PEERS if f" {PEERS[peer]} " in columns[0].peers}
                if named != timed:
                    wrong.append(f"{name}: {claim}: names {sorted(named)}, and the table has {sorted(timed)}")
    for item in re.findall(r"^- .*?(?=^- |^$)", (sources / "README.md").read_text(), re.MULTILINE | re.DOTALL):
        columns = [column for page in re.findall(r"benchmarks/([a-z0-9_]+\.md)", item) for column in pages[page]]
        for number in re.findall(r"\b[0-9]\.[0-9]{2}\b", item) if columns else ():
            if any(abs(c.mean - float(number)) < 0.008 or float(number) in c.ratios for c in columns):
                checked += 1
            else:
                wrong.append(f"README.md: {number} in {item.split(chr(10))[0]!r}: no table of the linked page has it")
    for line in wrong:
        print(line)
    if wrong or checked < 8:
        sys.exit(f"{len(wrong)} claims are wrong, {checked} are right")
    print(f"{checked} claims agree with their tables")


if __name__ == "__main__":
    main()
