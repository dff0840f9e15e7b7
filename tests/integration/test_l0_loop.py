# SPDX-License-Identifier: Apache-2.0
"""Engine, L0 trigger processor and emulator, each in its process: books, decisions that come back, and the plain model on the same packets."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Self

import numpy as np
import yaml
from l0tp_reference import L0tpModel
from loops import emulator_config, engine_config, free_ports, nanet
from nanet.config import Answers
from nanet.config.emulator import EmulatorConfig
from nanet.config.l0tp import L0tpConfig
from nanet.run import emulate
from nanet.run.process import EngineProcess, L0tpProcess
from nanet.wire import l0 as decision_packet
from test_commands import CheckKeys

RICH_FOUND = "xx_xxxx_x1_xx_xxxxxx"
THERE = "x1xx_xxxx_xxxx_xxxx"
VETO = "0000_0000_0000_0000"
MASKS: list[dict[str, Any]] = [
    {"name": "any", "bits": {}, "downscaling": 3},
    {"name": "ring", "bits": {"RICH": RICH_FOUND, "CHOD": THERE}},
    {"name": "no-muon", "bits": {"RICH": RICH_FOUND, "MUV3": VETO}, "downscaling": 2},
]


def l0tp_config(listen: int, decisions: int, **changes: Any) -> L0tpConfig:
    plain = {
        "listen": f"udp://127.0.0.1:{listen}", "decisions": f"udp://127.0.0.1:{decisions}", "fine_time_bits": 0, "read_lag_us": 204.0,
        "waiting": {"spin": 0, "sleep_us": 1000, "gather_us": 100}, "masks": MASKS,
    }  # fmt: skip
    return L0tpConfig.model_validate(plain | changes)


def run(emulator: EmulatorConfig, l0tp: L0tpConfig, port: int, answers: int, copies: str) -> tuple[dict[str, Any], ...]:
    """Results of emulator, engine and L0 trigger processor."""
    plain = engine_config(port, answers)
    engine = plain.model_copy(update={"answers": Answers(endpoint=f"udp://127.0.0.1:{answers}", copies=(copies,))})
    with L0tpProcess(l0tp) as trigger, EngineProcess(engine) as process:
        emulated = emulate.run(emulator)
        return emulated, process.stop(), trigger.stop()


def check_l0_books(l0: dict[str, Any]) -> None:
    """docs/design/l0tp.md, and what the process adds."""
    counters = l0["counters"]
    assert counters["packets"] == l0["link"]["rx_packets"]
    bad = ("packets_bad_length", "packets_bad_format", "packets_unknown_source")
    assert counters["packets"] == counters["packets_good"] + sum(counters[name] for name in bad)
    for one in l0["inputs"]:
        c = one["counters"]
        lost = sum(c[name] for name in ("late", "out_of_range", "duplicates", "calibrations_no_room"))
        assert c["primitives"] == c["stored"] + c["calibrations"] + lost
    reference = l0["inputs"][0]["counters"]
    assert l0["pending"] == 0
    assert reference["stored"] == reference["overwritten"] + counters["decided"]
    assert reference["matched"] == counters["decided"] + counters["triggers_calibration"]
    assert l0["triggers_sent"] == counters["triggers_physics"] + counters["triggers_calibration"]
    assert l0["decision_packets"] == l0["link"]["tx_packets"] + l0["link"]["tx_dropped"]


def test_three_processes() -> None:
    """Two seconds at 100 kHz: every RICH primitive is decided on or named, and every decision comes back to its event."""
    port, answers, listen, decisions = free_ports(4)
    copies = f"udp://127.0.0.1:{listen}"
    emulator = emulator_config(
        port, answers, rate_events_per_s=1e5, events_total=0, duration_s=2.0, decisions=f"udp://127.0.0.1:{decisions}",
        detectors={"endpoint": copies, "frame_us": 64.0},
    )  # fmt: skip
    emulated, engine, l0 = run(emulator, l0tp_config(listen, decisions), port, answers, copies)
    assert emulated["lost"] == 0
    check_l0_books(l0)
    assert l0["link"]["rx_kernel_dropped"] == 0
    by_name = {one["name"]: one["counters"] for one in l0["inputs"]}
    rich, counters = by_name["RICH"], l0["counters"]
    assert rich["primitives"] == engine["counters"]["events_answered"] == emulated["sent"] > 150_000
    named = sum(rich[name] for name in ("late", "out_of_range", "duplicates", "overwritten"))
    assert rich["primitives"] == counters["decided"] + named
    assert counters["decided"] > emulated["sent"] // 20  # how many are late is the machine's affair

    assert len(emulated["detectors"]) == 6
    for detector in emulated["detectors"]:
        received = by_name[detector["name"]]
        assert (received["packets"], received["primitives"]) == (detector["packets"], detector["primitives"])
        assert detector["packets"] >= 2e6 // 64 - 2
        assert detector["events_shown"] == emulated["sent"]
        seen = detector["events_seen"] + detector["accidentals"]
        assert seen - detector["primitives"] in range(100)  # what a last frame left over
    back = emulated["decisions"]
    assert back["packets"] == l0["decision_packets"]
    assert (back["physics"], back["calibration"]) == (l0["triggers_sent"], 0)
    strange = ("packets_bad_length", "packets_bad_format", "unknown", "stale", "missing", "out_of_order", "kernel_dropped")
    assert {name: back[name] for name in strange} == dict.fromkeys(strange, 0)
    assert emulated["decision_latency_us"]["p50"] > emulated["latency_us"]["min"]
    any_mask = l0["masks"][0]
    assert any_mask["matched"] == counters["decided"]
    assert any_mask["fired"] == counters["decided"] // 3


class Tap:
    """Passes datagrams on to the L0 trigger processor, and keeps them: it gets them in this order."""

    def __init__(self, to: int) -> None:
        self.datagrams: list[bytes] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.05)
        self._to = ("127.0.0.1", to)
        self.port = int(self._socket.getsockname()[1])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._pass_on)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._socket.close()

    def _pass_on(self) -> None:
        while not self._stop.is_set():
            try:
                datagram = self._socket.recv(2048)
            except TimeoutError:
                continue
            self.datagrams.append(datagram)
            self._socket.sendto(datagram, self._to)


def test_the_model_says_the_same() -> None:
    """The trigger words that leave are those of the plain model, which is given what the processor was given."""
    # On a busy machine most primitives of RICH are late, and few words leave: then once more.
    assert any(compared_with_the_model() > 10 for _ in range(5))


def compared_with_the_model() -> int:
    """One run; how many trigger words both said."""
    port, answers, listen = free_ports(3)
    with Tap(listen) as tap, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as triggers:
        triggers.bind(("127.0.0.1", 0))
        triggers.settimeout(0.2)
        # No silence: what is decided depends on the packets and their order alone.
        l0tp = l0tp_config(listen, triggers.getsockname()[1], silence_us=0)
        copies = f"udp://127.0.0.1:{tap.port}"
        emulator = emulator_config(
            port, answers, rate_events_per_s=2e4, events_total=256, pool_events=256, events_per_packet=4,
            detectors={"endpoint": copies, "frame_us": 192.0},
        )  # fmt: skip
        _, _, l0 = run(emulator, l0tp, port, answers, copies)
        entries = receive_triggers(triggers)

    model = L0tpModel(l0tp.model_dump(mode="json"))
    decided = []
    for datagram in tap.datagrams:
        model.take(datagram, 0)
        decided += model.decide(0)
    decided += model.flush()
    expected = [(d.time, d.matched_inputs, d.trigger_word) for d in decided if d.trigger_word]
    times = entries["timestamp"].astype(np.int64) << 8 | entries["fine_time"]
    assert list(zip(times.tolist(), entries["matched_kind"].tolist(), entries["trigger_word"].tolist(), strict=True)) == expected
    counters = model.counters()
    assert [one["counters"] for one in l0["inputs"]] == counters["inputs"]
    assert {name: counters[name] for name in l0["counters"]} == l0["counters"]
    check_l0_books(l0)
    return len(expected)


def receive_triggers(triggers: socket.socket) -> Any:
    """All entries that wait in the socket; their numbers follow one another."""
    entries = np.zeros(0, decision_packet.ENTRY)
    while True:
        try:
            packet = decision_packet.parse(triggers.recv(2048))
        except TimeoutError:
            return entries
        assert packet.first_trigger_number == len(entries)
        entries = np.concatenate([entries, packet.entries])


def test_the_command(tmp_path: Path, check_keys: CheckKeys) -> None:
    """`nanet l0tp` in a terminal: says when it listens, ends in order, and writes what docs/json.md promises."""
    listen, decisions = free_ports(2)
    (tmp_path / "l0tp.yaml").write_text(yaml.safe_dump(l0tp_config(listen, decisions).model_dump(mode="json")))
    command = [sys.executable, "-m", "nanet", "l0tp", str(tmp_path / "l0tp.yaml"), "--json", str(tmp_path / "l0tp.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"ready: listening on udp://127.0.0.1:{listen}\n"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"no primitives", ("127.0.0.1", listen))
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert "1 packets, 0 primitives decided" in out
    assert "packets_bad_length 1" in out
    result = json.loads((tmp_path / "l0tp.json").read_text())
    check_keys(result, "l0tp")
    check_l0_books(result)
    (tmp_path / "wrong.yaml").write_text("{listen: 'udp://127.0.0.1:1', decisions: 'udp://127.0.0.1:1'}")
    done = nanet("validate", "--l0tp", tmp_path / "wrong.yaml", expect=2)
    assert "listen and decisions are both udp://127.0.0.1:1 (triggers are not primitives) change one" in done.stderr
