#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/phases.md: python3 docs/images/phases.py writes phases.svg and product.svg beside itself."""

import os

FOLDER = os.path.dirname(os.path.abspath(__file__))
COLOURS = ["#2f6fb0", "#c8641e"]  # of the two phases
INK = "#334455"
FILL = ["#dce9f6", "#fae4d3"]


class Picture:
    def __init__(self, width, height):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'font-family="Helvetica, Arial, sans-serif" font-size="13">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
        ]

    def box(self, x, y, width, height, fill, stroke=INK, label="", style=""):
        place = f'x="{x}" y="{y}" width="{width}" height="{height}"'
        self.parts.append(f'<rect {place} fill="{fill}" stroke="{stroke}" {style}/>')
        if label:
            self.text(x + width / 2, y + height / 2 + 5, label, "middle")

    def text(self, x, y, text, anchor="start", colour=INK):
        self.parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{text}</text>')

    def line(self, x1, y1, x2, y2, colour):
        self.parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="1.6"/>')

    def write(self, name):
        with open(os.path.join(FOLDER, name), "w", encoding="utf-8") as file:
            file.write("\n".join(self.parts) + "\n</svg>\n")


def phases():
    """One axis: 4 inputs, a kernel of 4, stride 2, pad 1, 8 outputs."""
    inputs, kernel, stride, pad, outputs, cell, left = 4, 4, 2, 1, 8, 62, 90
    picture = Picture(left + outputs * cell + 30, 300)
    bottom, top = 190, 40
    middle = [left + (stride * i + 1) * cell for i in range(inputs)]
    for output in range(outputs):
        for i in range(inputs):
            k = output + pad - stride * i
            if 0 <= k < kernel:
                colour = COLOURS[output % stride]
                x = left + output * cell + cell / 2
                picture.line(middle[i], top + 34, x, bottom, colour)
                across = middle[i] + 0.8 * (x - middle[i])
                down = top + 34 + 0.8 * (bottom - top - 34)
                picture.box(across - 8, down - 9, 16, 17, "white", "white")
                picture.text(across, down + 4, f"w{k}", "middle", colour)
    picture.text(left - 12, top + 22, "input", "end")
    picture.text(left - 12, bottom + 22, "output", "end")
    for i in range(inputs):
        picture.box(middle[i] - 22, top, 44, 34, "#eef2f7", label=f"x{i}")
    for output in range(outputs):
        phase = output % stride
        picture.box(left + output * cell + 5, bottom, cell - 10, 34, FILL[phase], COLOURS[phase], f"y{output}")
    picture.text(left, bottom + 65, "even outputs: taps w1 and w3, one phase", colour=COLOURS[0])
    picture.text(left, bottom + 88, "odd outputs: taps w0 and w2, the other phase", colour=COLOURS[1])
    picture.write("phases.svg")


def product():
    """One phase as a matrix product."""
    picture = Picture(640, 330)
    picture.box(30, 150, 200, 130, "#eef2f7", label="packed filter")
    picture.box(260, 30, 340, 100, "#eef2f7")
    picture.box(260, 150, 340, 130, FILL[0], COLOURS[0])
    picture.text(590, 120, "inputs", "end")
    picture.text(590, 270, "outputs of one phase", "end")
    picture.box(360, 190, 90, 50, "white", COLOURS[1], "tile")
    picture.box(360, 30, 90, 100, "none", COLOURS[1], style='stroke-dasharray="5 3"')
    picture.box(30, 190, 200, 50, "none", COLOURS[1], style='stroke-dasharray="5 3"')
    picture.text(130, 300, "columns: taps x input channels", "middle")
    picture.text(430, 300, "columns: positions of all batch items", "middle")
    picture.text(30, 142, "rows: output channels")
    picture.text(260, 22, "rows: taps x input channels")
    picture.write("product.svg")


phases()
product()
