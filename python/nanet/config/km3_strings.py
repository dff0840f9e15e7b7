# SPDX-License-Identifier: Apache-2.0
"""What the emulator of KM3NeT's strings can be told: `nanet emulate km3 --kind strings`, docs/design/km3-tower.md#strings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Self

from pydantic import model_validator

from nanet.config.base import Endpoint, Model, problem, setting
from nanet.config.errors import load_document, validated

__all__ = ["Strings", "load"]


def load(path: str | Path) -> Strings:
    """The configuration in a YAML file. Raises ConfigError."""
    return validated(Strings, load_document(Path(path)))


class Strings(Model):
    """Strings of modules with 31 photomultipliers each, that send packets of their CLBs: noise of potassium-40, and muons."""

    destination: Endpoint = setting("udp://127.0.0.1:7200", "Where to send: udp://ADDRESS:PORT")
    seed: int = setting(1, "Seed of the random numbers", ge=0, le=2**63 - 1)
    strings: int = setting(1, "Strings", ge=1, le=32)
    modules: int = setting(18, "Modules of each; module m of string s has the number 100 s + m, both from 1", ge=1, le=99)
    singles_hz: float = setting(7000.0, "Single hits of a photomultiplier", unit="Hz", ge=0, le=1e6)
    coincidences_hz: tuple[float, ...] = setting(
        (700.0, 70.0, 7.0), "Decays of a module that 2, 3 and more of its photomultipliers see", unit="Hz", max_length=30
    )
    coincidence_sigma_ns: float = setting(2.0, "Spread of the times of such hits, each", unit="ns", ge=0, le=100)
    muons_hz: float = setting(1.0, "Muons near the strings", unit="Hz", ge=0, le=10000)
    radius_m: float = setting(60.0, "How far from the middle of the strings they pass at most", unit="m", gt=0, le=1000)
    light_pe_m: float = setting(
        7.2, "Photo-electrons of a muon in a photomultiplier that faces the light, times its distance from the track; 7.2 is the tower's 80 on 3 in place of 10 inches",
        unit="m", ge=0, le=10000,
    )  # fmt: skip
    absorption_m: float = setting(60.0, "Way after which 1/e of the light is left", unit="m", gt=0, le=1000)
    time_sigma_ns: float = setting(2.0, "Spread of the time of a photo-electron", unit="ns", ge=0, le=100)
    module_m: float = setting(36.0, "From a module to the next one of its string", unit="m", gt=0, le=1000)
    string_m: float = setting(90.0, "From a string to the next one; they stand in a row", unit="m", gt=0, le=1000)
    tot_ns: float = setting(26.9, "Mean time over threshold", unit="ns", ge=1, le=200)
    tot_sigma_ns: float = setting(2.4, "Spread of that", unit="ns", ge=0, le=50)
    run: int = setting(1, "Number of the run", ge=0, le=2**31 - 1)
    utc_second: int = setting(1_500_000_000, "Second at which the first slice begins", unit="s", ge=0, le=2**31 - 1)
    slice_ms: int = setting(100, "Length of a time slice", unit="ms", ge=1, le=2000)
    packet_hits: int = setting(229, "Most hits of a packet", unit="hits", ge=1, le=1450)
    duration_s: float = setting(10.0, "How much detector time to send, in whole slices", unit="s", ge=0, le=86400)
    speed: float = setting(1.0, "Detector time over time; 1: as strings send; 0: as fast as possible", ge=0, le=1000)

    @property
    def slices(self) -> int:
        """How many are sent."""
        some = 1e-6  # 0.57 s are 57 slices of 10 ms, whatever the last bit says
        return math.floor(self.duration_s * 1000 / self.slice_ms + some)

    @model_validator(mode="after")
    def _check_duration(self) -> Self:
        if self.slices < 1:
            what = f"nothing is sent in {self.duration_s:g} s"
            raise problem(
                what, f"a slice has {self.slice_ms} ms, and only whole ones are sent", "make duration_s longer", "duration_s"
            )
        return self
