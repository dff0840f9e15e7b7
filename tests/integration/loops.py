# SPDX-License-Identifier: Apache-2.0
"""What the integration tests share: free ports, small configurations, and a run of emulator against engine process."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from nanet.config import EngineConfig
from nanet.config.emulator import EmulatorConfig
from nanet.machine.ports import unused_port
from nanet.run import emulate
from nanet.run.process import EngineProcess

ROOT = Path(__file__).parents[2]
PATIENT = {"window_us": 900_000, "open_events_max": 1 << 18}  # a busy machine may stop the boards between two packets
BAD_PACKETS = (
    "packets_bad_length",
    "packets_bad_format",
    "packets_bad_checksum",
    "packets_truncated",
    "packets_unknown_source",
    "packets_unknown_sender",
)


def free_ports(count: int = 2) -> list[int]:
    """UDP ports of 127.0.0.1 that no one uses just now."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(unused_port())
    return list(ports)


def free_row(count: int) -> int:
    """The first of as many UDP ports of 127.0.0.1, one after the other, that no one uses just now."""
    for _ in range(1000):
        port = free_ports(1)[0]
        with contextlib.ExitStack() as others:
            try:
                for further in range(1, count):
                    others.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)).bind(("127.0.0.1", port + further))
            except (OSError, OverflowError):
                continue
            return port
    raise AssertionError(f"no {count} free ports in a row")


def free_pair() -> int:
    """A port such that it and those 100, 200 and 300 above are free: what the commands take as --port."""
    for _ in range(1000):
        port = free_ports(1)[0]
        with contextlib.ExitStack() as others:
            try:
                for above in (100, 200, 300):
                    others.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)).bind(("127.0.0.1", port + above))
            except (OSError, OverflowError):
                continue
            return port
    raise AssertionError("no four free ports 100 apart")


def engine_config(port: int, answers: int | None, boards: int = 1, **changes: Any) -> EngineConfig:
    """An engine for `boards` boards. changes: `link` and `processor` are merged into those, others replace keys."""
    sources = [{"name": f"board{n}", "source_id": 0x1C, "source_sub_id": n} for n in range(boards)]
    link = {"name": "boards", "endpoint": f"udp://127.0.0.1:{port}", "memory_region": "rich", "sources": sources}
    processor = {"kind": "rich", "merge": PATIENT if boards > 1 else None}
    plain: dict[str, Any] = {
        "version": 1, "name": "test", "memory_regions": [{"name": "rich"}], "links": [link | changes.pop("link", {})],
        "processor": processor | changes.pop("processor", {}),
        "answers": {"endpoint": f"udp://127.0.0.1:{answers}"} if answers else None,
        "waiting": {"spin": 200}, "run": {"budget_us": 60_000_000},
    }  # fmt: skip
    return EngineConfig.model_validate(plain | changes)


def emulator_config(port: int, answers: int | None, boards: int = 1, **changes: Any) -> EmulatorConfig:
    """An emulator for such an engine; it does not pin itself and waits long for late answers."""
    plain: dict[str, Any] = {
        "boards": boards, "destinations": [f"udp://127.0.0.1:{port}"], "answers": f"udp://127.0.0.1:{answers}" if answers else None,
        "rate_events_per_s": 5e5, "duration_s": 60.0, "events_total": 200_000, "drain_ms": 1500, "pool_events": 4096,
    }  # fmt: skip
    return EmulatorConfig.model_validate(plain | changes)


def run(engine: EngineConfig, emulator: EmulatorConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """(emulator's result, engine's result) of one run, the engine in a process of its own."""
    with EngineProcess(engine) as process:
        sent = emulate.run(emulator)
        return sent, process.stop()


def nanet(*arguments: str | Path, expect: int | None = 0, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """Runs the command line to its end."""
    command = [sys.executable, "-m", "nanet", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert expect is None or done.returncode == expect, done.stdout + done.stderr
    return done


def sender(port: int, address: str = "127.0.0.1") -> socket.socket:
    """A socket that sends to a port of this address."""
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.connect((address, port))
    return one


def wait_for(condition: Any, what: str, within_s: float = 20.0) -> None:
    """Waits until condition() is true; fails with `what` otherwise."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {within_s:g} s"
        time.sleep(0.01)


def check_packet_books(emulated: dict[str, Any], engine: dict[str, Any], strangers: int = 0) -> None:
    """Books 1 and 2 of docs/design/books.md. strangers: datagrams that others than the emulator sent."""
    boards = emulated["config"]["boards"]
    assert engine["balance"]["unexplained_packets"] == 0, engine["balance"]
    link = engine["links"][0]
    for source in engine["sources"]:
        c = source["counters"]
        expected = c["packets_accepted"] + c["packets_clop_full"] + c["packets_lost_kernel"] + c["packets_lost_network"]
        assert expected == emulated["packets_sent"] // boards
    c = engine["counters"]
    ended = sum(
        c[name] for name in ("packets_accepted", "packets_clop_full", "packets_duplicate", "packets_late", "packets_marker")
    )
    ended += sum(c[name] for name in BAD_PACKETS)
    delivered = link["stats"]["rx_packets"]
    if link["faults"]:
        faults = link["faults"]
        assert sum(count for name, count in faults.items() if name != "held") == delivered
        delivered += faults["duplicated"] - faults["lost"] - faults["held"]
    assert ended == delivered
    if not c["packets_lost_kernel"]:
        assert link["stats"]["rx_packets"] == emulated["packets_sent"] + emulated["markers_sent"] + strangers


def check_event_books(emulated: dict[str, Any], engine: dict[str, Any]) -> None:
    """Books 3 to 5, and that every answer written was received."""
    c, sent = engine["counters"], emulated["sent"]
    for source in engine["sources"]:
        assert source["counters"]["events_received"] + source["counters"]["events_lost"] == sent
    if emulated["config"]["boards"] > 1:
        assert c["events_received"] == c["parts_merged"] + c["parts_late"] + c["parts_duplicate"]
        closed = c["events_complete"] + c["events_missing_parts"] + c["events_overflow"]
        assert closed == c["events_answered"] + c["events_discarded"]
        assert sent == closed + c["events_unseen"]
    else:
        assert sent == c["events_answered"] + c["events_lost"]
    assert emulated["answered"] == c["events_answered"]
    wrong = {name: count for name, count in emulated["mistakes"].items() if count}
    assert set(wrong) <= ({"wrong_answers"} if c["events_missing_parts"] else set())
