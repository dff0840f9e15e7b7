# SPDX-License-Identifier: Apache-2.0
"""The emulated detectors other than the RICH: which they are, what they see, how often they report it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from nanet.config.base import Byte, Endpoint, Model, Name, Probability, problem, setting

__all__ = ["Detector", "Detectors", "default_detectors"]

PrimitiveId = Annotated[int, Field(ge=0x0100, lt=0x8000)]
Bits = Annotated[int, Field(ge=0, lt=0x8000)]


class Detector(Model):
    """One detector: a primitive for each event that it sees, and accidental ones that belong to no event."""

    name: Name = setting(..., "Name in reports")
    source_id: Byte = setting(..., "Source ID in its MTP packets")
    efficiency: Probability = setting(0.95, "Probability that it sees an event")
    time_sigma_ns: float = setting(0.5, "Resolution of its times, Gaussian", unit="ns", ge=0.0, le=100.0)
    offset_ns: float = setting(0.0, "Added to every time: a detector that is not aligned", unit="ns", ge=-1000.0, le=1000.0)
    accidental_rate_hz: float = setting(
        1e5, "Primitives that belong to no event, at random times", unit="Hz", ge=0.0, le=1e9,
        too_big="the emulator's thread falls behind",
    )  # fmt: skip
    primitive_id: PrimitiveId = setting(0x4000, "Bits set in every primitive ID")
    random_bits: Bits = setting(0xF, "Bits of the primitive ID that are drawn uniformly")


def default_detectors() -> tuple[Detector, ...]:
    """Six detectors with plausible efficiencies and resolutions, none of them measured; few accidentals."""
    return (
        Detector(name="CHOD", source_id=0x18, efficiency=0.98, time_sigma_ns=0.25),
        Detector(name="NewCHOD", source_id=0x20, efficiency=0.97, time_sigma_ns=1.0),
        Detector(name="MUV3", source_id=0x30, efficiency=0.6, time_sigma_ns=0.5),
        Detector(name="LAV", source_id=0x10, efficiency=0.2, time_sigma_ns=1.0),
        Detector(name="LKr", source_id=0x24, efficiency=0.4, time_sigma_ns=0.5),
        Detector(name="CEDAR", source_id=0x04, efficiency=0.95, time_sigma_ns=0.1),
    )


class Detectors(Model):
    """All of them, in the emulator's thread and on its clock."""

    endpoint: Endpoint = setting("udp://127.0.0.1:6400", "Where the L0 trigger processor listens")
    frame_us: float = setting(
        6.4, "How often each detector sends a packet, rounded to whole 6.387 us; 6.4 is NA62's", unit="us", ge=6.0, le=1000.0,
        too_small="each packet costs the emulator a microsecond", too_big="the read lag of the trigger processor has to be longer",
    )  # fmt: skip
    detectors: tuple[Detector, ...] = setting(default_detectors, "The detectors")

    @model_validator(mode="after")
    def _whole(self) -> Detectors:
        if not self.detectors:
            raise problem("there is no detector", "nothing would be sent", "name one, or set detectors to null")
        for what, values in {
            "name": [d.name for d in self.detectors],
            "source_id": [f"0x{d.source_id:02X}" for d in self.detectors],
        }.items():
            if twice := next((v for v in values if values.count(v) > 1), None):
                raise problem(f"two detectors have {what} {twice}", "it identifies them", "change one of them")
        return self
