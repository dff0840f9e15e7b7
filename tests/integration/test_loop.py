# SPDX-License-Identifier: Apache-2.0
"""Boards, engine and L0 trigger processor over real sockets, the engine in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from loops import (
    ROOT,
    check_event_books,
    check_packet_books,
    emulator_config,
    engine_config,
    free_ports,
    run,
    sender,
    wait_for,
)  # fmt: skip
from nanet import wire
from nanet.run import emulate
from nanet.run.process import EngineError, EngineProcess

PACKETS = 1_000_000
ONE_PERCENT_EACH = dict.fromkeys(("loss", "duplicate", "reorder", "corrupt", "truncate", "delay"), 0.01)


def check_books(emulated: dict[str, Any], engine: dict[str, Any]) -> None:
    check_packet_books(emulated, engine)
    check_event_books(emulated, engine)


@pytest.mark.parametrize("topology", ["run_to_completion", "pipelined"])
@pytest.mark.parametrize(("boards", "layout"), [(1, "padded"), (4, "padded"), (4, "packed")])
def test_every_event_is_answered(topology: str, boards: int, layout: str) -> None:
    port, answers = free_ports()
    # A second of room: on a busy machine a thread of the pipeline may not run for long while others do.
    deep = (
        {"memory_regions": [{"name": "rich", "buffer_count": 256}], "link": {"timeout_us": 5000}} if topology == "pipelined" else {}
    )
    emulated, engine = run(
        engine_config(port, answers, boards, topology=topology, **deep), emulator_config(port, answers, boards, layout=layout)
    )
    check_books(emulated, engine)
    assert emulated["sent"] == 200_000
    assert (emulated["lost"], engine["exit_code"], engine["verdict"]["kept"]) == (0, 0, True)
    assert engine["counters"]["rings_found"] > 0.9 * emulated["sent"]
    assert emulated["latency_us"]["max"] >= engine["latency_us"]["p50"] > 0


@pytest.mark.parametrize(("boards", "incomplete"), [(1, "drop"), (4, "drop"), (4, "process")])
def test_books_balance_under_every_fault(boards: int, incomplete: str) -> None:
    port, answers = free_ports()
    processor = {"merge": {"window_us": 2000, "incomplete": incomplete}} if boards > 1 else {}
    emulated, engine = run(
        engine_config(port, answers, boards, link={"faults": ONE_PERCENT_EACH | {"delay_us": 300}}, processor=processor),
        emulator_config(
            port,
            answers,
            boards,
            events_total=PACKETS // boards * 16,
            rate_events_per_s=4e6 / boards,
            burst_packets=8,
            pool_events=65536,
        ),
    )
    assert emulated["packets_sent"] == PACKETS
    check_books(emulated, engine)
    faults = engine["links"][0]["faults"]
    injected = ("lost", "duplicated", "reordered", "corrupted", "truncated", "delayed")
    # What came to the injector, markers too: a busy machine's kernel drops packets before it.
    received = faults["passed"] + sum(faults[name] for name in injected)
    assert PACKETS / 2 < received < 1.01 * PACKETS
    for name in injected:
        assert 0.009 < faults[name] / received < 0.011, name
    assert engine["exit_code"] == 1
    c = engine["counters"]
    if incomplete == "drop":
        assert emulated["lost"] > 0
    else:  # answered from the parts that came, some of them with another ring
        assert emulated["lost"] == c["events_unseen"]
        assert c["events_missing_parts"] > 0
        assert emulated["mistakes"]["wrong_answers"] > 0
    assert c["packets_reordered"] > 0
    assert c["packets_duplicate"] > 0
    assert c["packets_bad_checksum"] + c["packets_bad_format"] > 0
    assert c["packets_bad_length"] > 0


def test_start_under_traffic() -> None:
    """The engine starts while the boards send: what came before is nobody's loss, everything after is answered."""
    port, answers = free_ports()
    first = emulator_config(port, None, events_total=50_000)
    emulate.run(first)  # into the void
    emulated, engine = run(engine_config(port, answers), emulator_config(port, answers, events_total=50_000))
    check_books(emulated, engine)
    assert emulated["lost"] == 0


def test_two_runs_of_the_boards_in_one_of_the_engine() -> None:
    port, answers = free_ports()
    with EngineProcess(engine_config(port, answers)) as process:
        first = emulate.run(emulator_config(port, answers, events_total=32_000))
        second = emulate.run(emulator_config(port, answers, events_total=16_000))
        engine = process.stop()
    assert (first["lost"], second["lost"]) == (0, 0)
    assert engine["counters"]["events_answered"] == 48_000
    assert engine["counters"]["events_lost"] == 0


def test_nobody_takes_the_answers() -> None:
    """L0TP gone: its packets are refused and counted, the engine goes on to the end."""
    port, answers = free_ports()
    emulated, engine = run(engine_config(port, answers), emulator_config(port, None))
    c = engine["counters"]
    assert c["events_answered"] == emulated["sent"] == 200_000
    assert engine["losses"]["answers_refused"] > 0
    assert set(engine["losses"]) <= {"answers_refused", "answers_dropped"}
    assert engine["exit_code"] == 1
    assert "answers_refused" in engine["verdict"]["reasons"][0]


@pytest.mark.parametrize("protocol", ["mgp", "raw"])
def test_counting_only(protocol: str) -> None:
    port, _ = free_ports()
    link: dict[str, Any] = {"protocol": protocol} | ({"sources": []} if protocol == "raw" else {})
    config = engine_config(port, None, link=link, processor={"kind": "count"})
    emulated, engine = run(config, emulator_config(port, None))
    c = engine["counters"]
    markers = emulated["markers_sent"] if protocol == "raw" else 0  # to raw, a marker is a datagram like any other
    assert emulated["markers_sent"] > 6  # no one answers, so the end is said again and again
    assert c["packets_accepted"] == emulated["packets_sent"] + markers
    assert c["bytes_accepted"] == 1168 * emulated["packets_sent"] + 24 * markers
    assert c["events_answered"] == 0
    assert engine["exit_code"] == 0


def test_sigterm_drains() -> None:
    """Packets that still wait in a buffer when SIGTERM comes are processed, answered and reported."""
    port, answers = free_ports()
    event = wire.EventRecord(timestamp=1000, fine_time=7, event_number=0, hits=[100, 200, 300, 400])
    packet = wire.build_mgp([event] * 16, source_id=0x1C, source_sub_id=0)
    config = engine_config(port, answers, link={"timeout_us": 1_000_000})
    with EngineProcess(config) as process, sender(port) as out:
        out.send(packet)
        wait_for(lambda: process.counters().get("packets_accepted") == 1, "the packet's arrival")
        os.kill(process.pid, signal.SIGTERM)
        engine = process.stop()
    assert engine["counters"]["events_answered"] == 16
    assert engine["counters"]["packets_accepted"] == 1


def test_engine_dies_with_its_parent() -> None:
    port, answers = free_ports()
    code = (
        "import sys, os; sys.path.insert(0, sys.argv[1]); import loops; from nanet.run.process import EngineProcess\n"
        f"engine = EngineProcess(loops.engine_config({port}, {answers})).__enter__(); print(engine.pid, flush=True); os._exit(0)"
    )
    folder = str(ROOT / "tests" / "integration")
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, timeout=60, check=True)
    pid = int(done.stdout)

    def gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"

    wait_for(gone, "the end of the engine")


def test_a_port_that_is_taken() -> None:
    port, answers = free_ports()
    with EngineProcess(engine_config(port, answers)):
        with pytest.raises(EngineError) as caught, EngineProcess(engine_config(port, answers)):
            pass
        text = str(caught.value)
    assert text.startswith("nanet: ")
    assert str(port) in text
    assert "(" in text
    assert "\n" not in text
