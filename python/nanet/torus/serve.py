# SPDX-License-Identifier: Apache-2.0
"""A torus that is simulated for engines: their torus:// links are the hosts of its nodes, in processes of their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nanet.torus import registers
from nanet.torus.registers import NodeRegisters, TorusBooks, lost, torus_books
from nanet.torus.torus import native_torus, refused, whole_number

__all__ = ["Flights", "ServedTorus"]


THREADS_MAX = 64  # as many as nodes


@dataclass(frozen=True)
class Flights:
    """How long PUTs took, from the cycle in which the simulation took the job to that of the completion; 0 without any."""

    count: int
    min: int
    mean: float
    max: int


class ServedTorus:
    """A torus shared as a file, which goes with it. Nothing is simulated but in serve, and there only while there is traffic."""

    def __init__(self, shape: str, file: str | Path, wire_cycles: int = 16, threads: int = 1) -> None:
        """shape, wire_cycles: as of Torus. threads: of the simulation; how many changes nothing but its speed. file: engines name it as `torus: {file: ...}`; readable by its owner only.

        Raises SetupError, also where another torus runs at that file, or something else lies there.
        """
        native = native_torus()
        self._native: Any = refused(
            lambda: native.SharedTorus(shape, str(file), wire_cycles, whole_number("threads", threads, 1, THREADS_MAX))
        )
        self.shape: str = self._native.shape
        self.size: int = self._native.size
        """How many nodes there are."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._native = None  # its file goes

    def serve(self, seconds: float) -> None:
        """Simulates what hosts ask for, for so long."""
        self._native.serve(seconds)

    def counters(self, node: int) -> dict[str, int]:
        """As of Torus.counters."""
        found: dict[str, int] = self._native.counts(node)
        return found

    def registers(self) -> list[NodeRegisters]:
        """As of Torus.registers."""
        return registers.read(self._native, self.size)

    def books(self, nodes: list[NodeRegisters] | None = None) -> TorusBooks:
        """As of Torus.books."""
        x, y, z = map(int, self.shape.split("x"))
        return torus_books(nodes or self.registers(), (x, y, z))

    @property
    def threads(self) -> int:
        """That simulate: no more than there are nodes."""
        return int(self._native.threads)

    @property
    def cycle(self) -> int:
        """Cycles that were simulated."""
        return int(self._native.cycle)

    @property
    def busy_s(self) -> float:
        """Seconds that this took."""
        return float(self._native.busy_s)

    @property
    def flights(self) -> Flights:
        """Of PUTs from their host to their completion."""
        count, least, total, most = self._native.flights
        return Flights(count, least, total / count if count else 0.0, most)

    def report(self, nodes: list[NodeRegisters] | None = None) -> list[str]:
        """What was simulated, how long PUTs took from their host to their completion, what each node counted, and what was lost where, as lines."""
        speed = f", {self.cycle / self.busy_s:.0f} a second" if self.busy_s else ""
        lines = [f"simulated: {self.cycle} cycles in {self.busy_s:.2f} s{speed}"]
        puts = self.flights
        if puts.count:
            lines.append(f"PUTs: {puts.count}, from job to completion {puts.min} to {puts.max} cycles, mean {puts.mean:.0f}")
        for node in range(self.size):
            counted = {name: value for name, value in self.counters(node).items() if value}
            lines.append(f"node {node}: " + (", ".join(f"{name} {value}" for name, value in counted.items()) or "nothing"))
        nodes = nodes or self.registers()
        for node, found in enumerate(nodes):
            lines += [f"node {node}, {place}: {text}" for place, text in lost(found).items()]
        books = self.books(nodes)
        lines.append(
            f"packets: {books.injected} injected, {books.delivered} delivered, {sum(books.losses.values())} lost, {books.unexplained} unexplained"
        )
        return lines
