# SPDX-License-Identifier: Apache-2.0
"""Reports: self-contained, well-formed, and saying what the result says."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import l0_part, samples
from made_up_bench import latency_result, rate_result, rings_result
from nanet.report import events, write_report
from nanet.report.svg import Axis, Chart


def page_of(result: dict[str, Any], tmp_path: Path) -> str:
    write_report(result, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert_self_contained(text)
    for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        ElementTree.fromstring(svg)
        assert "nan" not in re.sub(r'aria-label="[^"]*"', "", svg)
    return text


def assert_self_contained(text: str) -> None:
    text = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?://|<script|<link|<img|@import|url\(", text)


def test_demo(demo_result: dict[str, Any], tmp_path: Path) -> None:
    text = page_of(demo_result, tmp_path)
    assert "Every event answered" in text
    assert [f"<td>{name}</td>" in text for name in ("loop", "host", "tune")] == [True, True, True]
    assert text.count("<figure>") == 6 + 2  # events, and a map of each disk
    assert text.count('class="ring') == 5  # one of the six has no ring
    assert "budget 1\u2009000 \u00b5s" in text
    for name in ("events_lost", "answers_lost", "unexplained"):
        assert name in text


def test_demo_with_the_trigger_processor(demo_result: dict[str, Any], tmp_path: Path) -> None:
    demo_result["l0"] = l0_part()
    text = page_of(demo_result, tmp_path)
    assert (
        "9\u2009999\u2009900 of 10\u2009000\u2009000 were decided on, 50\u2009000 triggers were sent and 50\u2009000 came back"
        in text
    )
    assert "pion-nothing-else" in text
    assert "late: came when its time was decided on already." in text
    assert "out_of_range" not in re.sub(r"<pre>.*?</pre>", "", text, flags=re.DOTALL)
    demo_result["l0"] |= {"event_to_decision_histogram": None, "event_to_decision_us": None}
    for one in demo_result["l0"]["inputs"]:
        one["counters"]["late"] = 0
    text = page_of(demo_result, tmp_path)
    assert "No trigger came back" in text
    assert "No primitive was late" in text


def test_demo_that_lost(demo_result: dict[str, Any], tmp_path: Path) -> None:
    demo_result["losses"]["events_lost"] = 160
    demo_result["verdict"] |= {"kept": False, "worked": False, "reasons": ["lost 160 <events>"]}
    text = page_of(demo_result, tmp_path)
    assert "The promise was broken" in text
    assert "lost 160 &lt;events&gt;" in text
    assert '<tr class="loss"><td>events_lost</td>' in text


def test_demo_without_a_ring_or_an_answer(demo_result: dict[str, Any], tmp_path: Path) -> None:
    demo_result["engine"]["rings"] = {"radius_mm": [0] * 400}
    demo_result["engine"]["event_samples"] = []
    for side in ("engine", "emulator"):
        demo_result[side]["latency_histogram"] = None
    demo_result["emulator"]["latency_clean_histogram"] = None
    demo_result["emulator"]["series"] = []
    text = page_of(demo_result, tmp_path)
    assert "No ring was found" in text
    assert "Nothing was measured" in text


def test_rate(tmp_path: Path) -> None:
    text = page_of(rate_result(), tmp_path)
    assert "10.00 Mevent/s without a single loss" in text
    assert "engine: lost events_lost 5" in text


def test_rate_without_one(tmp_path: Path) -> None:
    result = rate_result()
    failed = result["steps"][-1] | {"rate_events_per_s": 1e4}
    text = page_of(result | {"critical_rate_events_per_s": 0.0, "steps": [failed]}, tmp_path)
    assert "No rate without loss was found" in text
    assert "down to 0.01 Mevent/s, there because of the engine." in text
    assert "0.00" not in text.partition("<section>")[0].partition("<body>")[2]


def test_latency(tmp_path: Path) -> None:
    text = page_of(latency_result(), tmp_path)
    assert "+2.8 \u00b5s against a bare UDP round trip" in text
    assert "leaves out the events that were in flight while the emulator\u2019s thread was stopped" in text
    without = page_of(latency_result() | {"latency_clean_histogram": None}, tmp_path)
    assert "leaves out the events" not in without


def test_rings(tmp_path: Path) -> None:
    assert "40.0 million rings per second with 20 hits" in page_of(rings_result(), tmp_path)


def test_hits_belong_to_the_nearest_ring() -> None:
    rings = [{"x_mm": 0.0, "y_mm": 0.0, "radius_mm": 100.0}, {"x_mm": 50.0, "y_mm": 0.0, "radius_mm": 100.0}]
    places = np.array([[0.0, 100.0], [150.0, 0.0], [103.0, 0.0], [50.0, -95.0], [0.0, 0.0], [0.0, 116.1]])
    assert events.hit_owners(places, rings).tolist() == [0, 1, 0, 1, -1, -1]
    assert events.hit_owners(places, []).tolist() == [-1] * 6
    assert events.hit_owners(np.empty((0, 2)), rings).tolist() == []


def test_a_display_shows_rings_truth_and_hits() -> None:
    svg, caption = events.display(samples(3)[0])
    assert 'class="ring r1"' in svg
    assert 'class="ring truth"' in svg
    assert svg.count('class="r1"') > 10
    assert "e\u2011like" in caption


def test_choice_of_events() -> None:
    chosen = events.choose(samples(30))
    assert len(chosen) == 6
    assert sum(not sample["rings"] for sample in chosen) == 1
    assert sum(sample["electron"] for sample in chosen) >= 2
    assert len({id(sample) for sample in chosen}) == 6
    assert events.choose([]) == []
    two = [{**sample, "rings": sample["rings"] * 2} for sample in samples(12)]
    assert [len(sample["rings"]) for sample in events.choose([*samples(12), *two])][:3] == [2, 2, 2]
    assert len(events.choose(samples(3))) == 3


def test_hits_are_drawn_where_the_photomultipliers_are() -> None:
    svg, caption = events.display(samples(1)[0] | {"hits": [0, 511]})  # channel 0 is at (-261, 93.5) mm; 511 has no PM
    assert ' cx="-261" cy="-93.5" r="8.5"/>' in svg
    assert svg.count('r="8.5"') == 1
    assert "1 hits" in caption


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (Axis(0, 10, ""), [0, 2, 4, 6, 8, 10]),
        (Axis(60, 230, ""), [100, 150, 200]),
        (Axis(0.5, 2000, "", log=True), [1, 10, 100, 1000]),
        (Axis(3, 30, "", log=True), [5, 10, 20]),
    ],
)
def test_ticks_are_round(axis: Axis, expected: list[float]) -> None:
    assert axis.ticks() == pytest.approx(expected)


def test_axis_places() -> None:
    assert Axis(1, 100, "", log=True).share(10) == pytest.approx(0.5)
    assert Axis(0, 4, "").share(9) == 1.0
    assert Axis(1e-7, 1, "", log=True, percent=True).text(1e-7) == "0.00001 %"
    with pytest.raises(ValueError, match="no axis"):
        Axis(0, 1, "", log=True)


def test_chart_is_well_formed_with_awkward_text() -> None:
    chart = Chart(Axis(0, 1, "a < b & c"), Axis(0, 1, "'q'"), title='x "y" <z>')
    chart.line([0, 1], [0, 1], "s1", "<name>")
    chart.bars(np.arange(3).tolist(), [1, 2], "s1")
    chart.vertical(0.5, "limit", "<here>")
    ElementTree.fromstring(chart.svg())


def test_a_long_legend_goes_above_the_chart() -> None:
    """No name lies on that of the vertical axis; short ones stay in its row."""

    def rows(count: int) -> set[int]:
        chart = Chart(Axis(0, 1, "x"), Axis(0, 1, "latency [us]"))
        for n in range(count):
            chart.line([0, 1], [0, 1], "s1", f"persistent, {n} in flight")
        svg = chart.svg()
        places = [(int(x), int(y)) for x, y in re.findall(r'<text class="tick" x="(\d+)" y="(-?\d+)">persistent', svg)]
        assert len(places) == count
        assert all(x > 100 for x, y in places if y == 13)
        assert f'viewBox="0 {min(y for _, y in places) - 13} ' in svg
        return {y for _, y in places}

    assert rows(3) == {13}
    assert rows(7) == {13, -7}
