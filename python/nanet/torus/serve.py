# SPDX-License-Identifier: Apache-2.0
"""A torus that is simulated for engines: their torus:// links are the hosts of its nodes, in processes of their own."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nanet.torus.torus import native_torus, refused

__all__ = ["ServedTorus"]


class ServedTorus:
    """A torus shared as a file, which goes with it. Nothing is simulated but in serve, and there only while there is traffic."""

    def __init__(self, shape: str, file: str | Path, wire_cycles: int = 16) -> None:
        """shape, wire_cycles: as of Torus. file: engines name it as `torus: {file: ...}`; readable by its owner only.

        Raises SetupError, also where another torus runs at that file, or something else lies there.
        """
        native = native_torus()
        self._native: Any = refused(lambda: native.SharedTorus(shape, str(file), wire_cycles))
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

    def report(self) -> list[str]:
        """What was simulated, how long PUTs took from their host to their completion, and what each node counted, as lines."""
        cycle, busy_s = int(self._native.cycle), float(self._native.busy_s)
        count, least, total, most = self._native.flights
        speed = f", {cycle / busy_s:.0f} a second" if busy_s else ""
        lines = [f"simulated: {cycle} cycles in {busy_s:.2f} s{speed}"]
        if count:
            lines.append(f"PUTs: {count}, from job to completion {least} to {most} cycles, mean {total / count:.0f}")
        for node in range(self.size):
            counted = {name: value for name, value in self.counters(node).items() if value}
            lines.append(f"node {node}: " + (", ".join(f"{name} {value}" for name, value in counted.items()) or "nothing"))
        return lines
