# SPDX-License-Identifier: Apache-2.0
"""Runs one L0 trigger processor in this process until its time is over or a signal comes, then decides on the rest and reports."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nanet.config.base import online_cores
from nanet.config.l0tp import L0tpConfig
from nanet.machine.facts import keep_to
from nanet.machine.signals import StopSignals
from nanet.result import files
from nanet.result.histogram import Histogram
from nanet.result.keys.l0tp import InputCounters, L0tpResult, MaskCounters
from nanet.run.native import NativeNode, make_node

LOST = ("late", "out_of_range", "duplicates", "calibrations_no_room", "overwritten")
"""Counters of an input: what came and was not decided on."""
BAD = ("packets_bad_length", "packets_bad_format", "packets_unknown_source")


@dataclass(frozen=True)
class RunOptions:
    """How long, and where output goes."""

    duration_s: float | None = None
    json_path: Path | None = None
    quiet: bool = False
    ready_fd: int | None = None


def run(config: L0tpConfig, options: RunOptions) -> L0tpResult:
    """The result as `nanet l0tp --json` writes it. Raises nanet._core.SetupError."""
    parent = os.getppid()  # before it can know that we are ready, and end
    with StopSignals() as stop:
        if config.cpu_core is not None and len(online_cores()) > 1:
            keep_to(set(online_cores()) - {config.cpu_core})
        node = make_node(config)
        if not options.quiet:
            for note in node.notes:
                print(f"note: {note}", file=sys.stderr)
        node.start()
        gc.collect()
        gc.freeze()
        _say_ready(config, options)
        _control_loop(node, config, options, stop, parent)
        node.stop()
        result = make_result(config, node)
    files.write_json(options.json_path, result)
    return result


def make_result(config: L0tpConfig, node: NativeNode) -> L0tpResult:
    """What `nanet l0tp --json` writes."""
    snapshot = node.snapshot()
    counters = dict(snapshot["counters"])
    inputs: list[InputCounters] = counters.pop("inputs")
    masks: list[MaskCounters] = counters.pop("masks")
    histogram = Histogram.from_native(snapshot["latency_ns"])
    return {
        **files.base("l0tp"),
        "config": config.model_dump(mode="json"),
        "notes": list(node.notes),
        "elapsed_s": snapshot["elapsed_s"],
        "core_wait_s": snapshot["core_wait_s"],
        "counters": counters,
        "inputs": [{"name": one.name, "counters": of} for one, of in zip(config.inputs, inputs, strict=True)],
        "masks": [{"name": one.name, "downscaling": one.downscaling, **of} for one, of in zip(config.masks, masks, strict=True)],
        "pending": snapshot["pending"],
        "triggers_sent": snapshot["triggers_sent"],
        "decision_packets": snapshot["decision_packets"],
        "link": snapshot["link"],
        "latency_us": histogram.summary_us() if histogram.count else None,
        "latency_histogram": histogram.encode() if histogram.count else None,
    }


def lost(inputs: Iterable[InputCounters]) -> dict[str, int]:
    """Primitives of all inputs that came and were not decided on, by reason."""
    found = list(inputs)
    return {name: sum(int(one[name]) for one in found) for name in LOST}


def sentence(result: L0tpResult) -> str:
    """The run as one sentence."""
    counters = result["counters"]
    named = [f"{name} {count:,}" for name, count in lost(one["counters"] for one in result["inputs"]).items() if count]
    named += [f"{name} {counters[name]:,}" for name in BAD if counters[name]]
    fired = [f"{mask['name']} {mask['fired']:,}" for mask in result["masks"]]
    text = f"{counters['packets']:,} packets, {counters['decided']:,} primitives decided, {counters['triggers_physics']:,} triggers"
    text += f", {counters['triggers_calibration']:,} calibrations" if counters["triggers_calibration"] else ""
    text += f" ({', '.join(fired)})" if fired else ""
    return text + f"; not decided on: {', '.join(named) if named else 'nothing'}."


def _control_loop(node: NativeNode, config: L0tpConfig, options: RunOptions, stop: StopSignals, parent: int) -> None:
    start = then = time.monotonic()
    end = start + options.duration_s if options.duration_s else float("inf")
    decided_before = 0
    while node.running and time.monotonic() < end:
        if stop.wait(min(1.0, max(0.0, end - time.monotonic()))):
            return
        if options.ready_fd is not None and os.getppid() != parent:
            return  # who started us is gone
        if options.quiet:
            continue
        snapshot, now = node.snapshot(), time.monotonic()
        counters = snapshot["counters"]
        rate, decided_before, then = (counters["decided"] - decided_before) / (now - then), counters["decided"], now
        named = lost(counters["inputs"])
        print(
            f"{now - start:7.1f} s  {rate / 1e6:.3f} M/s decided  {snapshot['triggers_sent']:,} triggers sent"
            f"  not decided on {sum(named.values()):,}",
            flush=True,
        )


def _say_ready(config: L0tpConfig, options: RunOptions) -> None:
    if options.ready_fd is not None:
        os.write(options.ready_fd, b"ready\n")
        os.close(options.ready_fd)
    if not options.quiet:
        print(f"ready: listening on {config.listen}", flush=True)
