# SPDX-License-Identifier: Apache-2.0
"""What the emulator of readout boards and L0 trigger processor can be told. Same rules as engine.py."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StrictInt, field_validator, model_validator

from nanet.config.base import Byte, Core, Endpoint, Model, check_power_of_two, problem, setting
from nanet.config.detectors import Detectors
from nanet.config.errors import load_document, validated
from nanet.config.rich import Decision, channel_numbers

__all__ = ["EmulatorConfig", "Fractions", "MonteCarlo", "load"]


def load(path: str | Path) -> EmulatorConfig:
    """The emulator configuration in the YAML file at `path`. Raises ConfigError."""
    return validated(EmulatorConfig, load_document(Path(path)))


class Fractions(Model):
    """Shares of the particles; they need not add up to 1."""

    e: float = setting(0.2, "Electrons", ge=0.0)
    mu: float = setting(0.5, "Muons", ge=0.0)
    pi: float = setting(0.3, "Pions", ge=0.0)
    K: float = setting(0.0, "Kaons; no ring below 44.3 GeV/c", ge=0.0)

    @model_validator(mode="after")
    def _some(self) -> Fractions:
        if self.e + self.mu + self.pi + self.K <= 0.0:
            raise problem("all fractions are 0", "there is no particle to draw", "give at least one a share above 0")
        return self


Share = Annotated[float, Field(ge=0.0, le=1e6)]


class MonteCarlo(Model):
    """Which events are made: up to four rings each, photons on them, and noise."""

    seed: int = setting(1, "Seed of the random numbers", ge=0, lt=1 << 63)
    mean_hits: float = setting(
        20.0, "Mean hits of an electron's ring; others are scaled by their Cherenkov angle", unit="hits", ge=1.0, le=40.0
    )
    noise_hits: float = setting(0.0, "Mean uniform noise hits of an event", unit="hits", ge=0.0, le=40.0)
    smear_mm: float = setting(2.5, "Gaussian smear of a photon at the PM plane, each axis", unit="mm", ge=0.0, le=20.0)
    centre_sigma_mm: float = setting(40.0, "Spread of ring centres, each axis", unit="mm", ge=0.0, le=150.0)
    momentum_min_gev: float = setting(15.0, "Lowest momentum", unit="GeV/c", gt=0.0, le=400.0)
    momentum_max_gev: float = setting(35.0, "Highest momentum", unit="GeV/c", gt=0.0, le=400.0)
    fractions: Fractions = setting(Fractions, "Mix of particles")
    hit_time_sigma_ns: float = setting(0.28, "Spread of a hit's time", unit="ns", ge=0.0, le=2.0)
    flat_radius: bool = setting(
        False, "Draw radii evenly from 80 to 190 mm instead of from particles, with mean_hits at any radius"
    )
    ring_count_shares: tuple[Share, Share, Share, Share, Share] = setting(
        (0.0, 1.0, 0.0, 0.0, 0.0), "Shares of events with 0, 1, 2, 3 and 4 rings; they need not add up to 1",
        too_big="many rings: they do not fit the 32 hits of a padded event",
    )  # fmt: skip
    pileup_share: float = setting(
        0.0, "Probability that a ring belongs to another decay, with a time anywhere from -3.1 to +2.9 ns", ge=0.0, le=1.0
    )
    jura_share: float = setting(0.5, "Share of rings on disk 0 (boards 0 and 1); the others are on disk 1", ge=0.0, le=1.0)
    both_disks_share: float = setting(
        0.0, "Probability that a ring's light is shared by both disks, each photon on either", ge=0.0, le=1.0
    )
    inefficiency: float = setting(
        0.0, "Probability that a photomultiplier that should fire does not; mean_hits is before this loss", ge=0.0, le=0.9,
        too_big="most rings have fewer hits than a fit needs",
    )  # fmt: skip
    hot_channels: tuple[StrictInt | str, ...] = setting(
        (),
        "Channels that fire whatever happens, at any time: numbers, and ranges such as 100-107",
        too_big="fake rings through them",
    )
    hot_share: float = setting(1.0, "Share of the events in which a hot channel fires", ge=0.0, le=1.0)
    dead_channels: tuple[StrictInt | str, ...] = setting(
        (), "Channels that never fire: numbers, and ranges such as 100-107", too_big="rings lose hits"
    )
    hits_max: int = setting(
        32, "Most hits of an event, of which a random choice is kept; a padded event holds 32", unit="hits", ge=4, le=128,
        too_small="rings lose hits", too_big="packed events no longer fit a packet",
    )  # fmt: skip

    @field_validator("hot_channels", "dead_channels")
    @classmethod
    def _numbers(cls, items: tuple[int | str, ...]) -> tuple[int, ...]:
        return channel_numbers(items)

    @model_validator(mode="after")
    def _order(self) -> MonteCarlo:
        if sum(self.ring_count_shares) <= 0.0:
            raise problem("all ring_count_shares are 0", "no number of rings can be drawn", "give at least one a share above 0")
        if self.momentum_min_gev > self.momentum_max_gev:
            raise problem(
                f"momentum_min_gev {self.momentum_min_gev:g} is above momentum_max_gev {self.momentum_max_gev:g}",
                "no momentum is between them",
                "swap them",
            )
        return self


class XdpPath(Model):
    """Answers, and packets too if wanted, through AF_XDP instead of sockets, so that they cost the emulator less."""

    interface: str = setting(..., "Interface that has the address of answers", min_length=1, max_length=15)
    boards: Literal["socket", "frames"] = setting(
        "socket",
        "What the boards send through. socket: messages of many packets that the kernel splits, cheapest at high rates; frames: each packet"
        " a frame of its own without UDP checksum, cheapest for one packet at a time",
    )
    frame_count: int = setting(
        16384, "Frames, a power of two; with boards: frames, half of them are for sending", unit="frames", ge=64, le=1 << 20,
        too_small="answers are lost while the emulator's thread is stopped", too_big="the working set exceeds the caches",
    )  # fmt: skip

    @model_validator(mode="after")
    def _shape(self) -> XdpPath:
        check_power_of_two("frame_count", self.frame_count, "the kernel's rings have such sizes")
        return self


class EmulatorConfig(Decision):
    """Readout boards that send, and the L0 trigger processor that checks what comes back, in one thread on one clock.

    finder, cuts and conditions are the engine's: each answer is checked against the emulator's own.
    """

    model_config = ConfigDict(title="nanet emulator configuration")

    boards: Literal[1, 4] = setting(1, "1: whole events from one board; 4: each event's hits split over four boards")
    layout: Literal["padded", "packed"] = setting("padded", "Layout of the MGP packets: 1168 B for 16 events, or 9-bit hits")
    source_id: Byte = setting(0x1C, "Source ID of the boards")
    first_sub_id: Byte = setting(0, "Sub-ID of the first board; the others follow")
    destinations: tuple[Endpoint, ...] = setting(
        ("udp://127.0.0.1:6200",), "Where to send: one endpoint for all boards, one for each, or none: only check answers"
    )
    answers: Endpoint | None = setting("udp://127.0.0.1:6300", "Where answers are received and checked; null: nowhere")
    xdp: XdpPath | None = setting(None, "Receive answers, or send too, through AF_XDP; null: sockets in both directions")
    rate_events_per_s: float = setting(
        1e6, "Mean rate of the Poisson arrivals while a spill lasts; 0: as fast as possible", unit="events/s", ge=0.0, le=1e9
    )
    duration_s: float = setting(10.0, "How long to send, pauses included; 0: until stopped", unit="s", ge=0.0, le=86400.0)
    events_total: int = setting(0, "Stop after this many events; 0: only by duration_s", unit="events", ge=0, lt=1 << 62)
    burst_packets: int = setting(
        1, "Packets of a board sent in one call; 1: each leaves when its last event happens", unit="packets", ge=1, le=48,
        too_small="the sender limits the rate",
        too_big="latency: the first packet of a burst waits for the last",
    )  # fmt: skip
    in_flight_packets_max: int = setting(
        0, "Most unanswered packets of a board, after which it waits; 0: no limit, as real boards send; 1: as ping-pong "
        "tools measure, so that a stall of the machine affects one packet only", unit="packets", ge=0, le=1 << 20,
    )  # fmt: skip
    events_per_packet: int = setting(16, "Events of a full packet; 16 in the padded layout", unit="events", ge=1, le=182)
    packet_bytes: int = setting(
        0, "Size of every packet, even; 0: the smallest that holds every packet of the pool, 1168 if padded", unit="bytes",
        ge=0, le=1472, too_small="a pool packet does not fit and the emulator does not start",
    )  # fmt: skip
    pool_events: int = setting(
        65536, "Events made before the start and sent repeatedly", unit="events", ge=256, le=1 << 24,
        too_small="the same events repeat too often", too_big="the working set exceeds the caches, and a longer start",
    )  # fmt: skip
    spill_s: float = setting(0.0, "Length of a spill; 0: no spill structure", unit="s", ge=0.0, le=3600.0)
    pause_s: float = setting(0.0, "Pause between spills", unit="s", ge=0.0, le=3600.0)
    cpu_core: Core | None = setting(None, "Core of the emulator's thread; null: not pinned")
    drain_ms: int = setting(200, "After the last packet, no answer for so long ends the run", unit="ms", ge=0, le=60000)
    quiet_ms: int = setting(
        20, "Once every event is answered, the run ends when nothing has arrived for this long", unit="ms", ge=0, le=60000,
        too_small="decisions of an L0 trigger processor with patience_ms do not come back", too_big="the run ends later",
    )  # fmt: skip
    monte_carlo: MonteCarlo = setting(MonteCarlo, "Which events are made")
    detectors: Detectors | None = setting(
        None, "The other detectors, whose primitives of the same events go to the L0 trigger processor; null: none"
    )
    decisions: Endpoint | None = setting(
        None, "Where the L0 trigger processor's decisions are received and their latency is measured; null: nowhere"
    )

    @model_validator(mode="after")
    def _whole(self) -> EmulatorConfig:
        if not self.destinations and self.answers is None:
            raise problem("there are neither destinations nor answers", "there would be nothing to do", "give one of them")
        if len(self.destinations) not in (0, 1, self.boards):
            raise problem(
                f"{len(self.destinations)} destinations for {self.boards} board(s)",
                "there is one for all boards, or one for each",
                f"give 1 or {self.boards}",
            )
        if self.first_sub_id + self.boards > 256:
            raise problem(f"first_sub_id {self.first_sub_id} leaves no room", "a sub-ID has 8 bits", "choose 252 or less")
        if self.layout == "padded":
            self._check_padded()
        elif self.packet_bytes % 2:
            raise problem(f"packet_bytes {self.packet_bytes} is odd", "the checksum covers 16-bit words", "choose an even size")
        if self.pause_s > 0.0 and self.spill_s == 0.0:
            raise problem("pause_s is set but spill_s is 0", "a pause separates spills", "set spill_s, or pause_s to 0")
        self._check_l0()
        if self.mask.hot:
            raise problem("mask.hot is true", "answers are checked against one mask", "remove it, and set mask.channels")
        if self.xdp is not None and self.answers is None:
            raise problem("xdp without answers", "answers are what it receives", "give answers, or remove xdp")
        if self.answers in self.destinations:
            raise problem(f"answers and a destination are both {self.answers}", "one port cannot be both", "change one")
        return self

    def _check_l0(self) -> None:
        if (self.detectors or self.decisions) and not self.destinations:
            raise problem("detectors or decisions without destinations", "they are those of the events sent", "give destinations")
        if self.detectors and self.rate_events_per_s == 0.0:
            raise problem("detectors, but rate_events_per_s is 0", "as fast as possible has no timing to follow", "give a rate")
        if self.decisions is not None and self.decisions in (self.answers, *self.destinations):
            raise problem(f"decisions and another endpoint are both {self.decisions}", "one port cannot be both", "change one")

    def _check_padded(self) -> None:
        if self.events_per_packet > 16:
            raise problem(
                f"events_per_packet {self.events_per_packet} does not fit the padded layout",
                "it has 16 slots of 72 bytes",
                "choose 16 or less, or layout: packed",
            )
        if self.packet_bytes not in (0, 1168):
            raise problem(
                f"packet_bytes {self.packet_bytes} does not fit the padded layout",
                "a padded packet has 1168 bytes",
                "set 0 or 1168",
            )
        if self.monte_carlo.hits_max > 32 and self.boards == 1:
            raise problem(
                f"monte_carlo.hits_max {self.monte_carlo.hits_max} does not fit the padded layout",
                "an event has 32 hit slots",
                "choose 32 or less, or layout: packed",
            )
