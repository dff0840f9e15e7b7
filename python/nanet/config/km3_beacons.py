# SPDX-License-Identifier: Apache-2.0
"""The file that says where acoustic beacons are and what they emit, for `nanet km3 positions` (docs/design/km3-server.md#positions)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Self

from pydantic import model_validator

from nanet.config.base import Model, Name, problem, setting
from nanet.config.errors import load_document, validated

__all__ = ["Beacon", "Beacons", "load"]


def load(path: str | Path) -> Beacons:
    """The beacons in the YAML file at `path`. Raises ConfigError."""
    return validated(Beacons, load_document(Path(path)))


class Beacon(Model):
    """A beacon, and when it emits."""

    name: Name = setting(..., "Its name")
    x_m: float = setting(..., "Position, as the detector file counts", unit="m", ge=-1e7, le=1e7)
    y_m: float = setting(..., "Position", unit="m", ge=-1e7, le=1e7)
    z_m: float = setting(..., "Position, upwards", unit="m", ge=-1e7, le=1e7)
    period_s: float = setting(1.0, "Time from pulse to pulse", unit="s", ge=0.01, le=3600)
    phase_s: float = setting(0.0, "GPS time of a pulse, modulo period_s", unit="s", ge=0, le=3600)


class Beacons(Model):
    """All beacons, their pulse, and what is known of the sound's speed."""

    beacons: tuple[Beacon, ...] = setting(..., "The beacons", min_length=3, max_length=64)
    pulse_ms: float = setting(5.0, "Length of a pulse", unit="ms", ge=0.1, le=100)
    pulse_from_hz: float = setting(20_000.0, "Frequency at its beginning; it rises evenly", unit="Hz", ge=10, le=90_000)
    pulse_to_hz: float = setting(40_000.0, "Frequency at its end", unit="Hz", ge=10, le=90_000)
    pulse_taper: float = setting(1.0, "Share of it in which it grows and falls; 1: a cosine window", ge=0, le=1)
    speed_m_s: float = setting(1545.0, "Speed of sound at depth_z_m", unit="m/s", ge=1000, le=2000)
    speed_error_m_s: float = setting(
        0.0, "How well that is known; 0: exactly, else it is found with the places", unit="m/s", ge=0, le=100
    )
    gradient_per_s: float = setting(
        0.0, "How much faster sound is a metre further down; 0.0165 in deep water", unit="1/s", ge=0, le=1
    )
    depth_z_m: float = setting(0.0, "Where speed_m_s holds", unit="m", ge=-1e7, le=1e7)
    within_m: float = setting(
        20.0, "How far from its nominal place a hydrophone is looked for", unit="m", gt=0, le=200,
        too_small="hydrophones that went further are far_from_nominal or no_pulse", too_big="echoes and other pulses are taken for the sound",
    )  # fmt: skip

    @model_validator(mode="after")
    def _names_are_different(self) -> Self:
        doubled = [name for name, count in Counter(one.name for one in self.beacons).items() if count > 1]
        if doubled:
            raise problem(f"two beacons are called {doubled[0]}", "places are told by name", "give each its own")
        return self
