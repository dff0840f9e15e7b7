# SPDX-License-Identifier: Apache-2.0
"""Pages on narrow and wide screens, in light and dark: what can be said of them without a browser."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from made_up_pages import all_results
from nanet.report import page, series, write_report
from nanet.report.physics import frontier_chart
from nanet.report.svg import NARROW, WIDE, Axis, Chart
from page_checks import assert_labels_apart, assert_readable, style, text_boxes


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name, result in all_results():
        write_report(result, folder / f"{name}.html")
        found[name] = (folder / f"{name}.html").read_text()
    return found


def test_every_kind_of_report_can_be_read_on_a_narrow_screen(pages: dict[str, str]) -> None:
    assert len(pages) == 13
    for name, text in pages.items():
        assert "<table" in text, name
        assert_readable(text)


def test_what_cannot_be_read_is_found() -> None:
    """The check of the other tests can fail."""
    chart = Chart(Axis(0, 1, "x"), Axis(0, 1, "y"))
    good = f"<body>{page.table(['a'], [['b']])}{chart.html()}"
    assert_readable(good)
    for bad in (good.replace('class="scroll"', 'class="box"'), f"<body>{chart.svg()}", good.replace(f" {NARROW} ", " 600 ")):
        with pytest.raises(AssertionError):
            assert_readable(bad)


def test_no_text_of_the_page_is_small() -> None:
    sizes = [float(size) for size in re.findall(r"font(?:-size)?: (?:\d+ )?(\d+)px", style())]
    assert len(sizes) > 10
    assert min(sizes) >= 13


def test_dark_has_every_colour_that_light_has() -> None:
    """And no rule has a colour of its own, so that all of a page follows prefers-color-scheme."""
    light, dark = re.findall(r":root \{(.*?)\n *\}", style(), flags=re.DOTALL)
    names = [re.findall(r"(--\w+): #[0-9a-f]{6}", block) for block in (light, dark)]
    assert sorted(names[0]) == sorted(names[1])
    rules = style().replace(light, "").replace(dark, "")
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?! \{)|rgba?\(|: (?:black|white)\b", rules) == []
    assert "@media (prefers-color-scheme: dark)" in style()
    assert "color-scheme: light dark" in light


def a_point(finder: str, device: str, rate: float, efficiency: float) -> dict[str, Any]:
    return {
        "finder": finder, "device": device, "events_per_s": rate, "efficiency": efficiency, "fakes": 1.0 - efficiency,
        "on_frontier": True,
    }  # fmt: skip


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("figure", ["efficiency", "fakes"])
@pytest.mark.parametrize("spread", [1.0, 1.05, 1.6])
def test_labels_of_the_frontier_keep_apart(width: int, figure: str, spread: float) -> None:
    """All finders, some on a GPU too, in one place, in a heap and in a row."""
    names = [name for name in series.FINDERS if name != "oracle"]
    points = [a_point(name, "cpu", 1e4 * spread**n, 1.0 - 0.1 / spread**n) for n, name in enumerate(names)]
    points += [a_point(name, "gpu", 1e6 * spread**n, 1.0 - 0.1 / spread**n) for n, name in enumerate(names[:6])]
    assert assert_labels_apart(frontier_chart(points, figure).svg(width), "who") == len(points)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_values_beside_dots_keep_apart(width: int) -> None:
    """Those without room are left out; the table below a chart has them."""
    chart = Chart(Axis(1, 1e5, "x", log=True), Axis(1, 100, "y", log=True))
    xs = [2.0**n for n in range(1, 16)]
    chart.dots(xs, [10.0] * len(xs), "s1", [f"{x:.1f}" for x in xs])
    assert assert_labels_apart(chart.svg(width), "note") > 5


def test_ticks_of_a_narrow_chart_keep_apart() -> None:
    chart = Chart(Axis(1, 1e9, "x", log=True), Axis(1e-6, 1, "y", log=True, percent=True))
    for width in (WIDE, NARROW):
        below = [box for box, _ in text_boxes(chart.svg(width), "tick") if box[3] > 330]
        assert len(below) > 3
        assert all(a[2] < b[0] for a, b in pairwise(below))
