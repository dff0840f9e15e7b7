# SPDX-License-Identifier: Apache-2.0
"""Whether a report can be read on a narrow screen, as far as its text says it; scripts/photograph_pages.py asks a browser."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree
from importlib import resources

from nanet.report.labels import LINE, Box, overlap, text_width
from nanet.report.series import MARKER

SVG = "{http://www.w3.org/2000/svg}"
NARROW_PX = 390 - 2 * 18  # a telephone's width less the margins of style.css
WIDE_PX = 780 - 2 * 32  # the narrowest screen on which the wide charts are shown
TEXT_MIN_PX = 10.5


def style() -> str:
    return (resources.files("nanet.report") / "style.css").read_text(encoding="utf-8")


def chart_text_px() -> float:
    """The size of a chart's text where nothing is scaled."""
    found = re.search(r"^svg text \{[^}]*font-size: (\d+)px", style(), flags=re.MULTILINE)
    assert found
    return float(found[1])


def assert_readable(page: str) -> None:
    """Every table scrolls in a box of its own, and the text of every chart is large enough on either screen."""
    assert re.findall(r".{0,30}(?<!<div class=\"scroll\">)(?<!<div class=\"scroll dense\">)<table", page) == []
    body = page.partition("<body>")[2]
    charts = re.findall(r'<div class="chart">(<svg.*?</svg>)(<svg.*?</svg>)</div>', body, flags=re.DOTALL)
    in_charts = sum(svg.count("<text") for pair in charts for svg in pair)
    assert body.count("<text") == in_charts, "text in a picture that is drawn for one screen only"
    for wide, narrow in charts:
        for svg, style_name, screen_px in ((wide, "wide", WIDE_PX), (narrow, "narrow", NARROW_PX)):
            root = ElementTree.fromstring(svg)
            assert root.get("class") == style_name
            left, _, width, _ = map(float, str(root.get("viewBox")).split())
            assert chart_text_px() * screen_px / width >= TEXT_MIN_PX
            for box, text in text_boxes(svg):
                assert box[0] >= left - 1, text
                assert box[2] <= left + width + 1, text
    for svg in re.findall(r"<svg[^>]*>", body):
        assert "viewBox" in svg or 'class="hidden"' in svg


def text_boxes(svg: str, style_name: str = "") -> list[tuple[Box, str]]:
    """(box, text) of a chart's texts, all or those of one class."""
    boxes = []
    for text in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        styles = str(text.get("class")).split()
        if style_name and style_name not in styles:
            continue
        label = str(text.text or "")
        bold = bool({"note", "who", "label"} & set(styles))
        width = text_width(label) * (1.0 if bold else 0.75)
        left = float(str(text.get("x"))) - {"start": 0.0, "middle": width / 2, "end": width}[text.get("text-anchor", "start")]
        bottom = float(str(text.get("y"))) + 3
        boxes.append(((left, bottom - LINE, left + width, bottom), label))
    return boxes


def assert_labels_apart(svg: str, style_name: str) -> int:
    """No label lies on another one or on a marker; how many labels there are."""
    boxes = text_boxes(svg, style_name)
    for (a, one), (b, other) in itertools.combinations(boxes, 2):
        assert not overlap(a, (b[0] + 0.2, b[1] + 0.2, b[2] - 0.2, b[3] - 0.2)), f"{one} on {other}"
    for x, y in re.findall(r'class="mark [^"]*" transform="translate\(([\d.]+) ([\d.]+)\)"', svg):
        spot = (float(x) - MARKER + 0.2, float(y) - MARKER + 0.2, float(x) + MARKER - 0.2, float(y) + MARKER - 0.2)
        for box, label in boxes:
            assert not overlap(box, spot), f"{label} on a marker"
    return len(boxes)
