# SPDX-License-Identifier: Apache-2.0
"""What a NIC, or a kernel that stamps packets, says of the time that they took, for people: `links[].nic_times` of a result, docs/json.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nanet.result.keys.engine import LinkReading, NicStage


def lines(links: Iterable[LinkReading]) -> Iterator[str]:
    """A head for each link that is timed, and a line a stage: cycles of the NIC's clock, and the same in ns."""
    for link in links:
        times = link["nic_times"]
        if times is None:
            continue
        yield f"{link['name']}: time before the engine ({times['clock']}, a cycle of {times['cycle_ns']:g} ns)"
        yield from (_line(stage, times["cycle_ns"]) for stage in times["stages"])


def _line(stage: NicStage, cycle_ns: float) -> str:
    name, count = f"  {stage['name']:18}", stage["count"]
    if not count:
        return f"{name}nothing"
    least, mean, most = stage["min_cycles"], stage["sum_cycles"] / count, stage["max_cycles"]
    return (
        f"{name}min {least:,}  mean {mean:,.1f}  max {most:,} cycles = {least * cycle_ns:,.1f}  {mean * cycle_ns:,.1f}"
        f"  {most * cycle_ns:,.1f} ns, {count:,} {stage['sample']}s"
    )
