# SPDX-License-Identifier: Apache-2.0
"""Event displays: the photomultipliers of a disk, the hits of one event, and the ring that was fitted to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from nanet import rich_map

CHANNEL_MASK = 0x07FF
HALF_WIDTH_MM = 345
SHOWN = 6


def choose(samples: Sequence[Mapping[str, Any]], wanted: int = SHOWN) -> list[Mapping[str, Any]]:
    """A telling choice: electron-like rings, other rings over the range of radii, and an event without ring if there is one."""
    electrons = [s for s in samples if s["found"] and s["electron"]]
    others = sorted((s for s in samples if s["found"] and not s["electron"]), key=lambda s: float(s["radius_mm"]))
    without = [s for s in samples if not s["found"]]
    picked = [*electrons[:2], *without[:1]]
    room = wanted - len(picked)
    if others and room:
        places = np.unique(np.linspace(0, len(others) - 1, min(room, len(others))).round().astype(int))
        picked += [others[n] for n in places]
    rest = [s for s in samples if not any(s is p for p in picked)]
    picked += rest[: max(0, wanted - len(picked))]
    return sorted(picked[:wanted], key=lambda s: (not s["found"], -float(s["radius_mm"])))


def definitions() -> str:
    """The disk's photomultipliers, drawn once and used by every display."""
    disk = np.concatenate([rich_map.half_disk_mm(0), rich_map.half_disk_mm(1)])
    circles = "".join(f'<circle cx="{x:.0f}" cy="{-y:.1f}" r="8"/>' for x, y in disk)
    return f'<svg class="hidden" aria-hidden="true"><defs><g id="disk" class="pm">{circles}</g></defs></svg>'


def display(sample: Mapping[str, Any]) -> tuple[str, str]:
    """One event as (svg, caption)."""
    positions = rich_map.positions_mm()
    channels = np.asarray(sample["hits"], dtype=np.int64) & CHANNEL_MASK
    places = positions[channels]
    places = places[~np.isnan(places[:, 0])]
    hits = "".join(f'<circle cx="{x:.0f}" cy="{-y:.1f}" r="8.5"/>' for x, y in places)
    ring = ""
    caption = f"no ring \u00b7 {len(places)} hits"
    if sample["found"]:
        x, y, radius = float(sample["x_mm"]), float(sample["y_mm"]), float(sample["radius_mm"])
        style = "electron" if sample["electron"] else "other"
        ring = f'<circle class="ring {style}" cx="{x:.1f}" cy="{-y:.1f}" r="{radius:.1f}"/>'
        ring += f'<path class="centre" d="M{x - 7:.1f} {-y:.1f}h14M{x:.1f} {-y - 7:.1f}v14"/>'
        caption = f"R {radius:.1f} mm \u00b7 {len(places)} hits \u00b7 rms {float(sample['rms_mm']):.1f} mm"
        caption += " \u00b7 e-like" if sample["electron"] else ""
    half = HALF_WIDTH_MM
    svg = (
        f'<svg class="event" viewBox="{-half} {-half} {2 * half} {2 * half}" role="img" aria-label="{escape(caption)}" '
        f'xmlns="http://www.w3.org/2000/svg"><use href="#disk"/><g class="hit">{hits}</g>{ring}</svg>'
    )
    return svg, caption
