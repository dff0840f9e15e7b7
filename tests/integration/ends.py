# SPDX-License-Identifier: Apache-2.0
"""Runs that lose their ends: the engine stands still across the end of sending, or its socket is full then. What no one accounts for must be 0.

PYTHONPATH=python python tests/integration/ends.py --runs 100
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from typing import Any

from loops import emulator_config, engine_config, free_ports, sender
from nanet import _core
from nanet.result import books
from nanet.run import emulate
from nanet.run.process import EngineProcess

SOCKET_BYTES = 1 << 18  # a hundred packets
STOPPED_S = (0.3, 1.0)  # beyond the end of sending
KINDS = ("stopped", "overload")


def run(kind: str, boards: int, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the emulator's result, the engine's) of a run that lost its end at a random moment."""
    choose = random.Random(seed)
    port, answers = free_ports()
    engine = engine_config(port, answers, boards, link={"socket_buffer_bytes": SOCKET_BYTES})
    events = 16 * choose.randrange(2_000, 20_000)
    speed = {"rate_events_per_s": 4e5} if kind == "stopped" else {"rate_events_per_s": 0.0, "burst_packets": 48}
    config = emulator_config(port, answers, boards, **speed, events_total=events, drain_ms=500)
    with EngineProcess(engine) as process:
        emulator = _core.Emulator(config.model_dump(mode="json"))
        emulator.start()
        if kind == "stopped":
            stand_still(process.pid, port, emulator, round(choose.uniform(0.1, 0.9) * events), choose.uniform(*STOPPED_S))
        while not emulator.wait(0.1):
            pass
        emulator.stop()
        return emulate.make_result(config, emulator.snapshot()), process.stop()


def stand_still(pid: int, port: int, emulator: Any, events: int, for_s: float) -> None:
    """Stops a process when so many events were sent, until some time after the last one. Its socket is full then, even for markers.

    Where there is less room than a packet needs, some kernels still take a marker, so strangers' datagrams of one byte fill it.
    """
    while emulator.snapshot()["sent"] < events:
        time.sleep(0.001)
    os.kill(pid, signal.SIGSTOP)
    with sender(port) as stranger:
        for _ in range(1000):
            stranger.send(b"?")
    while emulator.snapshot()["phase"] in ("ready", "sending"):
        time.sleep(0.001)
    time.sleep(for_s)
    os.kill(pid, signal.SIGCONT)


def losses(emulated: dict[str, Any], engine: dict[str, Any]) -> dict[str, int]:
    """By name, as the demo's verdict has them."""
    merged = emulated["config"]["boards"] > 1
    return books.balance(emulated["sent"], emulated["answered"], engine["counters"], merged=merged)


def main() -> int:
    """Prints a line a run; 1 when any left something unexplained."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="runs, in turn stopped and overloaded, of one board and of four")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    holes = 0
    for number in range(options.runs):
        kind, boards = KINDS[number % 2], (1, 4)[number // 2 % 2]
        emulated, engine = run(kind, boards, options.seed + number)
        lost = losses(emulated, engine)
        holes += lost["unexplained"] != 0
        print(
            f"{number + 1:4}  {kind:8}  {boards} board(s)  sent {emulated['sent']:>9,}  lost {emulated['lost']:>9,}"
            f"  unexplained {lost['unexplained']:>9,}  engine: {books.lost_text(engine['losses'])}",
            flush=True,
        )
    print(f"{holes} of {options.runs} runs left something unexplained")
    return min(holes, 1)


if __name__ == "__main__":
    sys.exit(main())
