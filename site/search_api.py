# SPDX-License-Identifier: Apache-2.0
"""The search of the site finds the names of the C and C++ API, too, and leads to their places on Doxygen's pages."""

import json
import xml.etree.ElementTree as tree
from html import escape
from pathlib import Path

from mkdocs.plugins import event_priority

XML = Path(__file__).parent.parent / "build/doxygen/xml"


def entry(element: tree.Element, name: str) -> dict[str, str]:
    """The page of a header, structure or class; or the place on it: Doxygen joins page and place by _1."""
    page, _, place = element.attrib["id"].partition("_1a")
    comments = " ".join(
        " ".join("".join(part.itertext()).split()) for part in element if part.tag.endswith("description")
    )
    return {
        "location": f"api/{page}.html" + (f"#a{place}" if place else ""),
        "title": name,
        "text": f"<p>{escape(comments)}</p>",
    }


def entries() -> list[dict[str, str]]:
    found = []
    for file in sorted(XML.glob("*.xml")):
        for compound in tree.parse(file).iter("compounddef"):
            if compound.attrib["kind"] in ("file", "struct", "class") and "_8md" not in compound.attrib["id"]:
                found.append(entry(compound, compound.findtext("compoundname", "")))
                for member in (*compound.iter("memberdef"), *compound.iter("enumvalue")):
                    found.append(entry(member, member.findtext("name", "")))
    return found


@event_priority(-50)  # when the plug-in search has written the index, and offline has not yet copied it
def on_post_build(config, **_):
    index = Path(config.site_dir) / "search/search_index.json"
    content = json.loads(index.read_text(encoding="utf-8"))
    content["docs"] += entries()
    index.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
