#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no page of the site loads a script, style, font, image, frame or worker from another server, that no
table shows the backslash that keeps a | from ending a cell, and that the search knows names of the C and the Python
API.

usage: check.py SITE-FOLDER"""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

ELSEWHERE = re.compile(r"\s*(https?:|wss?:)?//", re.IGNORECASE)
# Attributes whose address a browser loads; a reader follows those of <a> and <area>.
LOADED = {"background", "data", "href", "poster", "src", "srcset", "xlink:href"}
FOLLOWED = {"a", "area"}
LINKS_NOT_LOADED = {"alternate", "author", "canonical", "license", "next", "prev"}
IN_STYLE = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)
# What scripts load by a literal address. Material draws diagrams by a script of another server: no page has one.
IN_SCRIPT = re.compile(
    r"""(?:\b(?:src|href)\s*=|\b(?:Worker|fetch|import|importScripts|loadScript)\(|@import)\s*["'`]((?:https?:)?//[^"'`]+)"""
    r"""|["'`](https?://[^"'`\s]+\.(?:js|mjs|css|wasm|woff2?|ttf|png|jpe?g|svg|gif|webp)(?:\?[^"'`]*)?)["'`]"""
)
DIAGRAMS = re.compile(r"https://unpkg\.com/mermaid@")
# In code the backslash stays.
ESCAPED_BAR = re.compile(r"<td[^>]*>(?:(?!</td>).)*\\\|", re.DOTALL)
SEARCHED = (
    "tconv_plan_enqueue",
    "tconv_args",
    "TCONV_ERROR_FORKED",
    "tconv_cl.conv_transpose",
    "tconv_cl.torch.convert",
)


class Page(HTMLParser):
    """What a page loads from other servers, and whether it has a diagram."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.inside = tag
        if "mermaid" in values.get("class", "").split():
            self.found.append("a diagram's script")
        if tag in FOLLOWED or tag == "link" and set(values.get("rel", "").lower().split()) <= LINKS_NOT_LOADED:
            return
        for name, value in values.items():
            if name in LOADED:
                parts = value.split(",") if name == "srcset" else [value]
                self.found += [part for part in parts if ELSEWHERE.match(part)]
        self.found += IN_STYLE.findall(values.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "style":
            self.found += IN_STYLE.findall(data)
        if self.inside == "script":
            self.found += in_script(data)


def in_script(text: str) -> list[str]:
    addresses = [a or b for a, b in IN_SCRIPT.findall(text)]
    return [address for address in addresses if not DIAGRAMS.match(address)]


def main() -> None:
    site = Path(sys.argv[1])
    wrong = []
    for file in sorted(site.rglob("*")):
        text = file.read_text(encoding="utf-8") if file.suffix in (".html", ".css", ".js", ".svg") else ""
        if file.name == "search_index.js":  # text of the pages
            continue
        found = {".css": IN_STYLE.findall, ".js": in_script}.get(file.suffix, lambda text: Page(text).found)(text)
        wrong += [f"{file.relative_to(site)} loads {address}" for address in sorted(set(found))]
        if file.suffix == ".html" and ESCAPED_BAR.search(text):
            wrong.append(rf"{file.relative_to(site)} shows \| in a table: write the cell without |")
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    known = {entry["title"] for entry in index} | {entry["location"].partition("#")[2] for entry in index}
    wrong += [f"the search does not know {name}" for name in SEARCHED if name not in known]
    if wrong:
        sys.exit("\n".join(wrong[:20]) + f"\n{len(wrong)} faults of the site")


if __name__ == "__main__":
    main()
