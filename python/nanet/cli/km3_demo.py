# SPDX-License-Identifier: Apache-2.0
"""`nanet demo --detector km3`: a tower, the engine that judges it, and what comes back, on this machine."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from nanet.config import EngineConfig
    from nanet.config.components import Tower
    from nanet.result.keys.km3 import Km3DemoResult

MUONS_HZ = 50.0
EVENTS_WITHIN_S = 10.0
RECEIVE_BYTES = 1 << 22


class _Events:
    """Packets of events, as they come."""

    def __init__(self) -> None:
        self.packets: list[bytes] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.1)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._receive)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        return f"udp://127.0.0.1:{self._socket.getsockname()[1]}"

    def _receive(self) -> None:
        while not self._ends.is_set():
            try:
                self.packets.append(self._socket.recv(1 << 16))
            except TimeoutError:
                continue

    def wait(self, events: int) -> None:
        """Until so many events have begun to come, or for EVENTS_WITHIN_S."""
        end_s = time.monotonic() + EVENTS_WITHIN_S
        while len({packet[4:16] for packet in self.packets}) < events and time.monotonic() < end_s:
            time.sleep(0.05)

    def close(self) -> None:
        self._ends.set()
        self._thread.join()
        self._socket.close()


def configs(duration_s: float, port: int, answers: str) -> tuple[EngineConfig, Tower]:
    """The example of a tower's engine, and the tower."""
    from nanet.config import EngineConfig
    from nanet.config.components import Tower
    from nanet.run.examples import example

    plain: dict[str, Any] = yaml.safe_load(example("km3").read_text(encoding="utf-8"))
    plain["links"][0]["endpoint"] = f"udp://127.0.0.1:{port}"
    plain["answers"] = {"endpoint": answers}
    plain["waiting"] = {"spin": 200}  # a sender of real rates has the other core
    tower = {
        "destinations": [plain["links"][0]["endpoint"]], "floors": plain["processor"]["km3"]["floors"], "duration_s": duration_s,
        "hydrophones": False, "instruments": False, "muons": {"rate_hz": MUONS_HZ},
    }  # fmt: skip
    return EngineConfig.model_validate(plain), Tower.model_validate(tower)


def demo(duration_s: float, port: int, out: Path, json_file: Path | None) -> Km3DemoResult:
    """Runs it and writes OUT/demo-km3.html and OUT/demo-km3.json. Raises SetupError, OutputError, EngineError."""
    from nanet.km3.demo import Found, muons_of, problems, truth_of
    from nanet.report import write_report
    from nanet.result import files, outputs
    from nanet.run import km3_tower
    from nanet.run.process import EngineProcess

    outputs.reserve_folder(out, "demo-km3.json", "demo-km3.html")
    events = _Events()
    try:
        engine, tower = configs(duration_s, port, events.endpoint)
        _say(f"nanet demo --detector km3 \u00b7 {tower.floors} floors, {MUONS_HZ:g} muons/s")
        with EngineProcess(engine) as process:
            sent = km3_tower.run(tower, say=_say)
            ended = process.stop()
        events.wait(ended["counters"]["events_triggered"])
    finally:
        events.close()
    truth = truth_of(tower)
    found = Found(events.packets, truth, tower.gps_second)
    muons, display = muons_of(truth, sent["slices"], found)
    why = problems(sent, ended["counters"], len(found.events), found.incomplete)
    result: Km3DemoResult = {
        **files.base("demo --detector km3"),
        "worked": not why, "problems": why, "notes": ended["notes"], "muons": muons, "events": len(found.events),
        "tower": dict(sent), "engine": ended, "display": display,
    }  # fmt: skip
    for path in {out / "demo-km3.json", json_file or out / "demo-km3.json"}:
        files.write_json(path, result)
    write_report(result, out / "demo-km3.html")
    return result


def show(result: Km3DemoResult, out: Path) -> int:
    """Says it, and the exit code: 0 when all of it worked."""
    muons, counters = result["muons"], result["engine"]["counters"]
    _say("")
    _say("The chain worked." if result["worked"] else "Error: the chain did not work: " + "; ".join(result["problems"]))
    _say(
        f"{counters['hits_used']:,} hits of {counters['units_used']:,} units judged; {result['events']:,} events came back; "
        f"{muons['found']:,} of {muons['with_5_seeds']:,} muons with 5 or more L1 seeds found"
    )
    for note in result["notes"]:
        _say(f"note: {note}")
    _say(f"report: {out / 'demo-km3.html'}   data: {out / 'demo-km3.json'}")
    return 0 if result["worked"] else 1


def _say(line: str) -> None:
    print(line, flush=True)
