# SPDX-License-Identifier: Apache-2.0
"""Load curves of a torus of verilated nodes, in simulated cycles: runs the program bench_torus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nanet.bench.program import said_by
from nanet.bench.torus_keys import BenchTorusResult, Fault, FaultsResult, Point, Put, Saturation, TorusResult
from nanet.bench.torus_reference import references_of
from nanet.result import files

PROGRAM = Path("build/release/bench/torus/bench_torus")
LONGEST_S = 3600.0  # of one load
PATTERNS = ("uniform", "neighbour", "tornado", "complement", "transpose", "rotate", "hot_spot")
LOADS = (0.05, 0.2, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0)
HOT_LOADS = (
    0.02,
    0.05,
    0.08,
    0.1,
    0.15,
)  # of hot_spot on 4x4x4: at 0.11 the port of its node is full, and beyond it queues only grow
FEW_LOADS = (0.2, 0.5, 1.0)
LINK_WIRE_CYCLES = 150  # a round trip of 300 words
PUT_WIRE_CYCLES = 16
CLOCK_MHZ = 175
CUBE = "4x4x4"
Say = Callable[[str], None]


class TorusError(RuntimeError):
    """It cannot be measured: "problem (why) suggestion"."""


@dataclass(frozen=True)
class Study:
    """payload_bytes: of every packet; wire_cycles: that a word is on a cable, each way; window: cycles that are measured, half as many are warm-up."""

    shape: str = CUBE
    patterns: tuple[str, ...] = ("uniform",)
    loads: tuple[float, ...] = LOADS
    payload_bytes: int = 256
    wire_cycles: int = 16
    window: int = 6000
    seed: int = 1
    threads: int = 1
    program: Path = PROGRAM

    def arguments(self, pattern: str, load: float) -> list[str]:
        """Of the program, for one load."""
        return [
            "--shape", self.shape, "--pattern", pattern, "--loads", f"{load:g}", "--payload-bytes", str(self.payload_bytes),
            "--wire-cycles", str(self.wire_cycles), "--threads", str(self.threads), "--seed", str(self.seed),
            "--warmup", str(self.window // 2), "--window", str(self.window), "--drain", str(2 * self.window),
        ]  # fmt: skip


def possible(patterns: Sequence[str], shape: str) -> tuple[str, ...]:
    """Those that a torus of this shape can have: the halves of a node's number, or x, y and z, cannot always change places."""
    nodes = [int(n) for n in shape.split("x") if n.isdigit()] + [1, 1]
    count = nodes[0] * nodes[1] * nodes[2]
    even = count.bit_count() == 1 and (count.bit_length() - 1) % 2 == 0
    cube = nodes[0] == nodes[1] == nodes[2]
    return tuple(name for name in patterns if (name != "transpose" or even) and (name != "rotate" or cube))


def run(command: str, study: Study, say: Say) -> TorusResult:
    """Every pattern at every load, each said when it is there. Raises TorusError."""
    curves = points(study, say)
    return {
        **files.base(command),
        "threads": study.threads,
        "cycles_per_wall_second": sum(one["node_cycles"] for one in curves) / max(sum(one["wall_s"] for one in curves), 1e-9),
        "curves": curves,
        "reference": references_of(curves),
        "problems": problems_of(curves),
    }


def bench(study: Study, say: Say, *, short: bool = False) -> BenchTorusResult:
    """Link, hop, curves and speed. Short: a small torus, and no 4x4x4. Raises TorusError."""
    said = _say_of(study.program, ["--link", str(LINK_WIRE_CYCLES)], {"wire_cycles", "efficiencies", "hops", "problems"})
    of_bytes = {one["payload_bytes"]: one["efficiency"] for one in said["efficiencies"]}
    least, most = min(said["hops"]["min"]), max(said["hops"]["max"])
    say(f"link: payload {of_bytes[4096]:.4f} of its words with 4096 B a packet, {of_bytes[256]:.4f} with 256 B")
    say(f"hop: {least} to {most} cycles through router and link")
    put, put_problems = put_of(study)
    say(f"put of {put['bytes']} B, host to host, one hop: {put['rtl_ns']:.0f} ns of RTL at {CLOCK_MHZ} MHz")
    cool = tuple(pattern for pattern in study.patterns if short or pattern != "hot_spot")
    hot = tuple(pattern for pattern in study.patterns if pattern not in cool)
    curves = points(replace(study, patterns=cool), say) + points(replace(study, patterns=hot, loads=HOT_LOADS), say)
    speed = points(
        replace(study, shape="2x2x2", patterns=("uniform",), loads=(0.5,), window=500 if short else 20_000), lambda _: None
    )[0]
    saturation: Saturation = {"uniform_4x4x4": saturation_of(curves, "uniform", CUBE)}
    return {
        **files.base("bench torus"),
        "threads": study.threads,
        "link": {"efficiency_4096": of_bytes[4096], "efficiency_256": of_bytes[256], "wire_cycles": said["wire_cycles"]},
        "hop_cycles": {"min": least, "max": most, "spread": most - least},
        "put": put,
        "curves": curves,
        "reference": references_of(curves),
        "saturation": saturation,
        "cycles_per_wall_second": speed["node_cycles"] / 8 / speed["wall_s"],
        "problems": [*said["problems"], *put_problems, *problems_of([*curves, speed])],
    }


def put_of(study: Study) -> tuple[Put, list[str]]:
    """Small PUTs between neighbours, and what was not as it must be. Raises TorusError."""
    said = _say_of(
        study.program,
        ["--put", str(PUT_WIRE_CYCLES)],
        {"bytes", "puts", "min", "max", "wire_cycles", "host_read_cycles", "problems"},
    )
    rtl_cycles = said["max"] - said["wire_cycles"] - said["host_read_cycles"]
    put: Put = {
        "bytes": said["bytes"],
        "puts": said["puts"],
        "cycles": said["max"],
        "wire_cycles": said["wire_cycles"],
        "host_read_cycles": said["host_read_cycles"],
        "spread": said["max"] - said["min"],
        "rtl_ns": rtl_cycles * 1e3 / CLOCK_MHZ,
    }
    return put, said["problems"]


def faults(study: Study, rounds: int, say: Say) -> FaultsResult:
    """Each kind of cable is cut under the first load and comes back, so many times; each is said when it is there. Raises TorusError."""
    asked = [*study.arguments("uniform", study.loads[0]), "--faults", str(rounds)]
    found: list[Fault] = _say_of(study.program, asked, {"faults"})["faults"]
    for fault in found:
        say(fault_sentence(fault))
    return {
        **files.base("torus faults"),
        "threads": study.threads,
        "shape": study.shape,
        "offered": study.loads[0],
        "faults": found,
        "problems": [f"node {fault['node']}, port {fault['port']}: {text}" for fault in found for text in fault["problems"]],
    }


def fault_sentence(fault: Fault) -> str:
    """A cut cable in a line."""
    books = fault["books"]
    lost = ", ".join(f"{name} {count}" for name, count in books["losses"].items()) or "nothing lost"
    return (
        f"node {fault['node']:2} port {fault['port']}: known after {fault['silent_cycles']} cycles; {books['injected']} packets: "
        f"{books['good']} good, {books['flagged']} flagged, {books['wrong']} wrong, {lost}; {fault['packets_after']} over the cable afterwards"
    )


def points(study: Study, say: Say) -> list[Point]:
    """A load each; each is said when it is there."""
    found: list[Point] = []
    for pattern in study.patterns:
        for load in study.loads:
            keys = set(Point.__annotations__)
            (point,) = _say_of(study.program, study.arguments(pattern, load), {"curves"})["curves"]
            if set(point) != keys:
                raise TorusError(f"{study.program.name} gives no result (keys {sorted(set(point) ^ keys)}) build it again")
            found.append(point)
            say(sentence(point))
    return found


def sentence(point: Point) -> str:
    """A load in a line."""
    latency = point["latency_cycles"]
    cycles = "no packet" if latency is None else f"{latency['mean']:.1f} cycles, p99 {latency['p99']}"
    return (
        f"{point['pattern']:10} {point['shape']} offered {point['offered']:.2f}: accepted {point['accepted']:.3f}, "
        f"worst node {point['accepted_worst_node']:.3f}, {'saturated' if point['is_saturated'] else cycles}"
    )


def problems_of(curves: Sequence[Point]) -> list[str]:
    """What is not as it must be."""
    return [f"{one['pattern']} {one['shape']} at {one['offered']:g}: {text}" for one in curves for text in one["problems"]]


def saturation_of(curves: Sequence[Point], pattern: str, shape: str) -> float | None:
    """What is accepted at a load of 1; None: it was not run."""
    found = [one["accepted"] for one in curves if (one["pattern"], one["shape"], one["offered"]) == (pattern, shape, 1.0)]
    return found[0] if found else None


def csv_rows(curves: Sequence[Point]) -> list[tuple[str, str, float, str]]:
    """Rows (case, name, value, unit) of `--csv`."""
    rows: list[tuple[str, str, float, str]] = []
    for one in curves:
        case = f"{one['pattern']} {one['shape']}, {one['payload_bytes']} B, offered {one['offered']:g}"
        rows.append((case, "accepted", one["accepted"], "words/node/cycle"))
        rows.append((case, "accepted_worst_node", one["accepted_worst_node"], "words/node/cycle"))
        if one["latency_cycles"] and not one["is_saturated"]:
            rows += [(case, f"latency_{name}", float(one["latency_cycles"][name]), "cycles") for name in ("mean", "p99", "max")]
    return rows


def _say_of(program: Path, arguments: Sequence[str], keys: set[str]) -> dict[str, Any]:
    """What the program says, which has these keys."""
    return dict(said_by(program, arguments, keys, TorusError, LONGEST_S, passes_errors=True))
