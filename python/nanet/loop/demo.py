# SPDX-License-Identifier: Apache-2.0
"""The loop as `nanet demo` runs it: patient with a busy machine, and with a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from nanet.loop import host, l0
from nanet.loop.keys import DemoResult, LoopResult
from nanet.loop.run import Loop, loop_configs, run_loop
from nanet.machine.facts import plan_cores
from nanet.result import files
from nanet.result.histogram import Histogram, write_hlog

OK, BROKEN = 0, 1
# A busy machine stops a process for hundreds of milliseconds. Nothing of what that delays is lost in a demo.
DRAIN_MS, WINDOW_US = 30_000, 1_000_000


def demo(
    loop: Loop, out: Path, json_path: Path | None, write_report: Callable[[DemoResult, Path], None], *, show: bool = True
) -> DemoResult:
    """Runs the loop and writes OUT/demo.html, OUT/demo.json and OUT/demo.hlog. The result."""
    loop = replace(loop, drain_ms=DRAIN_MS, window_us=WINDOW_US)
    cores = plan_cores()
    engine_config, emulator_config = loop_configs(loop, cores)
    where = f"engine on core {cores.engine}, emulator on core {cores.emulator}" if cores.engine is not None else "cores shared"
    boards = "1 board" if loop.boards == 1 else f"{loop.boards} boards"
    title = f"nanet demo · {loop.rate_events_per_s / 1e6:g} Mevent/s · {boards}, {loop.layout} · {where}"
    title += "" if loop.runtime == "cpu" else f" · {engine_config.processor.place()}"
    l0tp_config = l0.l0tp_config(loop.port, cores) if loop.l0 else None
    ran = run_loop(engine_config, emulator_config, cores, title if show else None, l0tp_config, may_be_cut=True)
    l0_note = l0.note(cores) if loop.l0 else None
    notes = [note for note in (_early_note(ran), cores.note, l0_note, *ran["engine"]["notes"]) if note]
    result: DemoResult = {**ran, "notes": notes, "tune": host.to_mend()}
    for path in {out / "demo.json", json_path or out / "demo.json"}:
        files.write_json(path, result)
    write_hlog(out / "demo.hlog", _intervals(result), note=f"nanet demo, {result['date']}")
    write_report(result, out / "demo.html")
    return result


def _early_note(ran: LoopResult) -> str | None:
    emulator = ran["emulator"]
    if not emulator["stopped_early"]:
        return None
    of_s = emulator["config"]["duration_s"]
    return f"stopped after {emulator['elapsed_s']:.1f} of {of_s:g} s (a signal arrived) only that much was checked"


def exit_code(result: DemoResult, *, strict: bool) -> int:
    """0 when the loop worked; strict: when the budget was kept, too."""
    return OK if result["verdict"]["kept" if strict else "worked"] else BROKEN


def _intervals(result: DemoResult) -> list[tuple[str, float, float, Histogram]]:
    emulator, engine = result["emulator"], result["engine"]
    histograms = {
        "last-packet-to-answer": Histogram.decode(emulator["latency_histogram"], emulator["latency_us"]),
        "without-own-stalls": Histogram.decode(emulator["latency_clean_histogram"], emulator["latency_clean_us"]),
        "engine-residence": Histogram.decode(engine["latency_histogram"], engine["latency_us"]),
        "event-to-decision": Histogram.decode(emulator["decision_latency_histogram"], emulator["decision_latency_us"]),
    }
    return [(tag, 0.0, float(emulator["elapsed_s"]), histogram) for tag, histogram in histograms.items() if histogram.count]
