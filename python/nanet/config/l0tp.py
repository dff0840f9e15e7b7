# SPDX-License-Identifier: Apache-2.0
"""The L0 trigger processor's settings. Same rules as nanet/config.py; meaning of the terms in docs/design/l0tp.md.

A mask gives, for each input it cares about, the primitive ID as 16 characters, bit 15 first: `0` and `1` must match, `x` may be
either, `_` is a separator. An input without a match shows 16 zeros, which no primitive ID can be, so `"0000_0000_0000_0000"` is a veto.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, model_validator

from nanet import wire
from nanet.config.base import Byte, Core, Endpoint, Model, Name, problem, setting
from nanet.config.errors import load_document, nearest, validated

__all__ = ["Input", "L0tpConfig", "Mask", "NodeWaiting", "load"]

CELLS = 16384
INPUTS_MAX = 7
MASKS_MAX = 16
CARE_FOR_NOTHING = "x" * 16


def load(path: str | Path) -> L0tpConfig:
    """The L0 trigger processor's configuration in the YAML file at `path`. Raises ConfigError."""
    return validated(L0tpConfig, load_document(Path(path)))


def check_pattern(pattern: Any) -> str:
    """16 characters 0, 1 or x; underscores are taken out."""
    if not isinstance(pattern, str):
        raise problem(f"pattern {pattern} is not text", "YAML reads digits alone as a number", "put it in quotes")
    bits = pattern.replace("_", "").lower()
    if len(bits) != 16:
        raise problem(f"pattern '{pattern}' has {len(bits)} bits", "a primitive ID has 16", "write one character for each bit")
    if strange := set(bits) - set("01x"):
        raise problem(f"pattern '{pattern}' has '{min(strange)}'", "a bit is 0, 1, or x for either", "write 0, 1 or x")
    return bits


Pattern = Annotated[str, BeforeValidator(check_pattern)]


class Input(Model):
    """One detector that sends primitives."""

    name: Name = setting(..., "Name in masks and reports")
    source_id: Byte = setting(..., "Source ID in its MTP packets; any sub-ID is accepted")
    time_cut_ns: float = setting(
        6.0, "Largest distance in time from the reference; at most one cell", unit="ns", ge=0.0, le=25.0,
        too_small="matches are missed: detectors know their times to 0.1 to 2 ns", too_big="accidental primitives match",
    )  # fmt: skip


class Mask(Model):
    """One trigger condition: what the primitives of the inputs must be."""

    name: Name = setting(..., "Name in reports")
    bits: dict[Name, Pattern] = setting(
        dict, "Bit pattern of the primitive ID for each input that matters: 16 characters 0, 1 or x, bit 15 first"
    )
    downscaling: int = setting(
        1,
        "Fire at every n-th match only",
        unit="matches",
        ge=1,
        lt=1 << 32,
        too_small="a trigger rate that the readout cannot follow",
    )
    enabled: bool = setting(True, "Whether it can fire at all")


class NodeWaiting(Model):
    """What the thread does when nothing arrives."""

    spin: int = setting(
        20000, "Empty polls before it sleeps; -1: spin forever, which needs a core of its own", unit="polls", ge=-1, le=1 << 40,
        too_small="the kernel's wake-up time (about 30 us) is added at every pause", too_big="a core that is never idle",
    )  # fmt: skip
    sleep_us: int = setting(
        100, "Longest sleep, after which silence is noticed", unit="us", ge=1, le=1_000_000,
        too_big="what is pending at the end of a spill is decided late",
    )  # fmt: skip
    gather_us: int = setting(
        0, "Sleep after each pass that had work, so that many packets share one wake-up; 0: none, for a core of its own", unit="us",
        ge=0, le=10_000, too_small="on a shared core, each packet interrupts the other thread", too_big="all of it adds to the latency",
    )  # fmt: skip


def default_inputs() -> tuple[Input, ...]:
    """Seven detectors that say the most about a decay within a millisecond; docs/design/l0tp.md says why these."""
    source = wire.Source
    return tuple(
        Input(name=name, source_id=number)
        for name, number in {
            "RICH": source.rich, "CHOD": source.chod, "NewCHOD": source.new_chod, "MUV3": source.muv3,
            "LAV": source.lav, "LKr": source.lkr, "CEDAR": source.cedar,
        }.items()
    )  # fmt: skip


class L0tpConfig(Model):
    """A whole L0 trigger processor: inputs, alignment memory and masks."""

    model_config = ConfigDict(title="nanet L0 trigger processor configuration")

    version: Literal[1] = setting(1, "Version of this schema")
    inputs: tuple[Input, ...] = setting(default_inputs, "The detectors, in the order of the decision's bits")
    reference: Name = setting(
        "RICH", "Name of the input whose primitives are decided on; preferably the one with the best time resolution"
    )
    fine_time_bits: int = setting(
        2, "Cells of the alignment memory are 25 ns divided by 2 to this power", unit="bits", ge=0, le=3,
        too_small="primitives close in time overwrite each other", too_big="the memory's 16384 cells hold less time",
    )  # fmt: skip
    read_lag_us: float = setting(
        1.6, "A decision waits until the newest time received is this far ahead; at most half of the memory", unit="us", ge=0.0, le=205.0,
        too_small="primitives of slower detectors arrive late", too_big="all of it adds to the latency of every decision",
    )  # fmt: skip
    silence_us: int = setting(
        500, "After this long without any packet, everything pending is decided; 0: never", unit="us", ge=0, le=1_000_000,
        too_small="a short pause of all detectors makes their next primitives late", too_big="the last events of a spill wait",
    )  # fmt: skip
    patience_ms: int = setting(
        0, "How long a silent input is waited for: until then the primitives of the others are held back, whenever they arrive; "
        "0: no input is waited for, as in hardware. With patience, silence_us is not used", unit="ms", ge=0, le=60_000,
        too_small="primitives are late when the machine stops the process that sends them",
        too_big="if one of the detectors is missing, the first decisions are delayed by this much",
    )  # fmt: skip
    masks: tuple[Mask, ...] = setting((), "Trigger conditions; the i-th is bit i of the trigger word")
    listen: Endpoint = setting("udp://127.0.0.1:6400", "Where MTP packets of all inputs are received")
    decisions: Endpoint | None = setting(None, "Where triggers are sent, in L0 decision packets; null: they are only counted")
    source_sub_id: Byte = setting(0, "Source sub-ID of the decision packets")
    socket_buffer_bytes: int = setting(
        64 << 20, "How much the kernel may queue for the receiving socket", unit="bytes", ge=65536, le=1 << 30,
        too_small="primitives are lost while the thread is not running", too_big="primitives that are late instead of lost",
    )  # fmt: skip
    cpu_core: Core | None = setting(None, "Core of the thread; null: not pinned")
    waiting: NodeWaiting = setting(NodeWaiting, "What the thread does when nothing arrives")

    @property
    def cell_ns(self) -> float:
        """Width of a cell of the alignment memory."""
        return wire.TIMESTAMP_NS / (1 << self.fine_time_bits)

    @model_validator(mode="after")
    def _whole(self) -> L0tpConfig:
        self._check_inputs()
        self._check_times()
        self._check_masks()
        if self.decisions == self.listen:
            raise problem(f"listen and decisions are both {self.listen}", "triggers are not primitives", "change one")
        return self

    def _check_inputs(self) -> None:
        if not 1 <= len(self.inputs) <= INPUTS_MAX:
            raise problem(f"{len(self.inputs)} inputs", f"the trigger processor has 1 to {INPUTS_MAX}", "name 1 to 7 detectors")
        for what, values in {
            "name": [i.name for i in self.inputs],
            "source_id": [f"0x{i.source_id:02X}" for i in self.inputs],
        }.items():
            if twice := next((v for v in values if values.count(v) > 1), None):
                raise problem(f"two inputs have {what} {twice}", "a packet belongs to one input", "change one of them")
        names = [i.name for i in self.inputs]
        if self.reference not in names:
            raise problem(f"reference is '{self.reference}'", "no input has that name", nearest(self.reference, names))

    def _check_times(self) -> None:
        for detector in self.inputs:
            if detector.time_cut_ns > self.cell_ns:
                raise problem(
                    f"time_cut_ns {detector.time_cut_ns:g} of {detector.name} is more than a cell of {self.cell_ns:.4g} ns",
                    "only the adjacent cells are searched, so a larger cut would depend on where in its cell a primitive lies",
                    "lower it, or fine_time_bits",
                )
        memory_us = CELLS * self.cell_ns / 1000
        if self.read_lag_us > memory_us / 2:
            raise problem(
                f"read_lag_us {self.read_lag_us:g} is more than half of the memory's {memory_us:.4g} us",
                "the other half is for detectors that are ahead",
                "lower it, or fine_time_bits",
            )

    def _check_masks(self) -> None:
        if len(self.masks) > MASKS_MAX:
            raise problem(f"{len(self.masks)} masks", "a trigger word has 16 bits", "keep 16 or fewer")
        mask_names = [m.name for m in self.masks]
        if twice := next((n for n in mask_names if mask_names.count(n) > 1), None):
            raise problem(f"two masks are named '{twice}'", "reports tell them apart by name", "rename one")
        names = [i.name for i in self.inputs]
        for mask in self.masks:
            if strange := next((n for n in mask.bits if n not in names), None):
                raise problem(f"mask '{mask.name}' asks for '{strange}'", "no input has that name", nearest(strange, names))

    def native(self) -> dict[str, Any]:
        """What the native trigger processor takes: numbers only, times in ticks."""
        return {
            "inputs": [{"source_id": i.source_id, "time_cut_ticks": int(i.time_cut_ns / wire.TICK_NS)} for i in self.inputs],
            "reference_index": [i.name for i in self.inputs].index(self.reference),
            "fine_time_bits": self.fine_time_bits,
            "read_lag_ticks": round(self.read_lag_us * 1000 / wire.TICK_NS),
            "silence_ns": self.silence_us * 1000,
            "masks": [self._native_mask(mask) for mask in self.masks],
        }

    def native_node(self) -> dict[str, Any]:
        """What the native node takes: the processor, its sockets and its thread."""
        return {
            "processor": self.native(),
            "listen": self.listen,
            "decisions": self.decisions,
            "source_sub_id": self.source_sub_id,
            "socket_bytes": self.socket_buffer_bytes,
            "cpu_core": self.cpu_core,
            "spins": self.waiting.spin,
            "sleep_ns": self.waiting.sleep_us * 1000,
            "gather_ns": self.waiting.gather_us * 1000,
            "patience_ns": self.patience_ms * 1_000_000,
        }

    def _native_mask(self, mask: Mask) -> dict[str, Any]:
        patterns = [mask.bits.get(i.name, CARE_FOR_NOTHING) for i in self.inputs]
        patterns += [CARE_FOR_NOTHING] * (INPUTS_MAX - len(patterns))
        return {
            "name": mask.name,
            "value": [int(p.replace("x", "0"), 2) for p in patterns],
            "care": [int(p.replace("0", "1").replace("x", "0"), 2) for p in patterns],
            "downscaling": mask.downscaling,
            "enabled": mask.enabled,
        }
