#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the figures of docs/physics.md and its pictures (docs/images/physics-*.svg) from a result of `nanet physics --json FILE`.

What stands between the two marks of the page is replaced; the rest is written by hand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from goals import physics_goals
from nanet.report.labels import text_width
from nanet.report.physics import frontier_chart, scan_chart, separation_chart
from nanet.report.series import FINDERS, SeriesChart, classes, marker

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "physics.md"
IMAGES = ROOT / "docs" / "images"
BEGIN, END = "<!-- figures: scripts/make_physics.py -->", "<!-- end of figures -->"
LEGEND_HEIGHT = 26

MATRICES = (
    ("all_found", "Events with every true ring found [%]", 100, 2),
    ("efficiency_pileup", "Pile-up rings found [%]", 100, 2),
    ("efficiency_in_time", "In-time rings found [%]", 100, 2),
    ("fakes", "Fakes an event", 1, 4),
    ("clones", "Clones an event", 1, 4),
    ("count_right", "Events with the right number of rings [%]", 100, 2),
    ("radius_rms_mm", "Radius rms [mm]", 1, 2),
    ("ratio_to_bound", "Radius rms over its bound", 1, 3),
    ("radius_bias_mm", "Radius bias [mm]", 1, 2),
    ("centre_rms_mm", "Centre rms, one axis [mm]", 1, 2),
    ("ns_per_event", "ns an event, one core", 1, 0),
)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print("usage: make_physics.py RESULT.json", file=sys.stderr)
        return 2
    result = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(before + BEGIN + "\n" + page(result) + END + after, encoding="utf-8")
    for name, picture in pictures(result):
        (IMAGES / f"physics-{name}.svg").write_text(picture + "\n", encoding="utf-8")
    return 0


def page(result: Mapping[str, Any]) -> str:
    """The part between the marks."""
    names = list(next(iter(result["cases"].values()))["finders"])
    where = f"{result['machine']['cpu']}, {result['machine']['cores']} cores"
    text = f"\n{result['events']:,} events a sample, seed {result['seed']}, {where}, {result['simd']}, {result['date']}.\n"
    text += "\n### The best finder of a sample\n\n" + best_table(physics_goals(result["cases"]))
    text += "\n### The frontier\n\n" + images(("frontier-single", "one ring"), ("frontier-two", "two rings over 60 mm apart"))
    text += "\n### Against hits, noise and distance\n\n" + images(
        ("hits", "efficiency against hits"), ("noise", "efficiency against noise"), ("rings", "all rings found against rings"),
        ("distance", "both rings found against the distance of two centres"), ("resolution", "radius resolution against hits"),
        ("mu-pi", "separation of muon and pion against momentum"),
    )  # fmt: skip
    for figure, title, factor, digits in MATRICES:
        lines = []
        for case in result["cases"].values():
            values = [case["finders"][name][figure] for name in names]
            pileup = case["finders"]["oracle"]["efficiency_pileup"] is not None
            if any(value is not None for value in values) and (pileup or figure != "efficiency_in_time"):
                lines.append([case["title"], *("-" if v is None else f"{factor * v:.{digits}f}" for v in values)])
        text += f"\n### {title}\n\n" + table(["sample", *names], lines)
    text += (
        "\n### Electron window\n\nShare of each particle's true rings that is found with a radius within 6 mm of 189.65 mm [%].\n\n"
    )
    for name in ("real_mix", "real_kaons"):
        text += table(*window(result["cases"][name], names)) + "\n"
    return text


def best_table(figures: Iterable[Mapping[str, Any]]) -> str:
    lines = []
    for one in figures:
        share = one["figure"] in ("efficiency", "all_found")
        found, error = (show(one[key], share) for key in ("found", "error"))
        lines.append([one["title"], one["finder"], one["figure"].replace("_", " "), f"{found} ± {error}"])
    return table(["sample", "best finder", "figure", ""], lines)


def window(case: Mapping[str, Any], names: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    particles = list(case["finders"][names[0]]["electron_window"])
    lines = []
    for name in names:
        shares = case["finders"][name]["electron_window"]
        cells = [f"{show(shares[p]['electron_like'], True)} ± {show(shares[p]['electron_like_error'], True)}" for p in particles]
        lines.append([name, *cells])
    return [case["title"], *particles], lines


def show(value: float | None, share: bool) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.2f} %" if share else f"{value:.5f}"


def table(head: list[str], lines: Iterable[list[str]]) -> str:
    body = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(body + ["| " + " | ".join(line) + " |" for line in lines]) + "\n"


def images(*named: tuple[str, str]) -> str:
    return "\n\n".join(f"![{title}](images/physics-{name}.svg)" for name, title in named) + "\n"


def pictures(result: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """(name, SVG that stands alone) of each picture."""
    names = [*result["finders"], "oracle"]
    for name, case in (("single", "single_ring"), ("two", "two_rings_apart")):
        points = [point for point in result["frontier"] if point["case"] == case]
        yield f"frontier-{name}", alone(frontier_chart(points, "efficiency").svg(), ())
    scans = (
        ("hits", "hits", "efficiency"), ("noise", "noise", "efficiency"), ("rings", "rings_apart", "all_found"),
        ("distance", "distance", "all_found"), ("resolution", "ring_hits", "radius_rms_mm"),
    )  # fmt: skip
    for name, scan, figure in scans:
        yield name, alone(whole(scan_chart(result["scans"][scan], names, figure)), names)
    yield "mu-pi", alone(whole(separation_chart(result["cases"]["real_mix"]["finders"], names, "mu_pi")), names)


def whole(chart: SeriesChart | None) -> str:
    """The wide picture of a chart that the page needs."""
    if chart is None:
        sys.exit("error: a picture has too few points (the result is of a short run) run nanet physics with the default events")
    return chart.svg()


def alone(svg: str, names: Sequence[str]) -> str:
    """The chart with style, background and legend inside."""
    style = (resources.files("nanet.report") / "style.css").read_text(encoding="utf-8")
    style += 'svg text { font-family: system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }'
    head, body = svg.split(">", 1)
    width, height = (int(part) for part in head.split('viewBox="0 0 ')[1].split('"')[0].split())
    rows: list[list[str]] = [[]]
    for name in names:
        if sum(length(other) for other in [*rows[-1], name]) > width:
            rows.append([])
        rows[-1].append(name)
    top = LEGEND_HEIGHT * len(rows) if names else 0
    parts = f'<rect x="-12" y="{-top - 8}" width="{width + 36}" height="{height + top + 20}" fill="var(--paper)"/>'
    for number, row in enumerate(rows if names else []):
        x, y = 4.0, -top + 12 + LEGEND_HEIGHT * number
        for name in row:
            parts += f'<path class="line {classes(name)}" d="M{x:.0f} {y}h30"/>{marker(name, x + 15, y)}'
            parts += f'<text class="who {classes(name)}" x="{x + 37:.0f}" y="{y + 4}">{name}</text>'
            x += length(name)
    head = head.replace(f'viewBox="0 0 {width} {height}"', f'viewBox="-12 {-top - 8} {width + 36} {height + top + 20}"')
    return f"{head}><style>{style}</style>{parts}{body}"


def length(name: str) -> float:
    """Width of an entry of the legend."""
    assert name in FINDERS
    return 37 + text_width(name) + 24


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
