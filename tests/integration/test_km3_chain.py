# SPDX-License-Identifier: Apache-2.0
"""An emulated tower and the engine: every byte that floors send is received, a floor that is gone has a name, slow control is answered, and light comes
when a formula that is written here says."""

from __future__ import annotations

import json
import math
import socket
import struct
from pathlib import Path
from typing import Any

import nanet
import numpy as np
import pytest
import yaml
from loops import ROOT, free_ports, free_row
from nanet.cli import km3_demo
from nanet.config import EngineConfig
from nanet.config.components import Tower
from nanet.km3.demo import problems
from nanet.result import books
from nanet.run import km3_tower
from nanet.run.process import EngineProcess

FLOORS = 3


def tower(port: int, **changes: Any) -> Tower:
    """A small tower, at half of its speed, so that a busy machine loses nothing."""
    plain: dict[str, Any] = {
        "destinations": [f"udp://127.0.0.1:{port}"],
        "floors": FLOORS,
        "duration_s": 0.6,
        "slice_ms": 50,
        "speed": 0.5,
    }
    return Tower.model_validate(plain | changes)


def engine(port: int) -> EngineConfig:
    """The example, at another port and for that tower."""
    plain = yaml.safe_load((ROOT / "examples" / "km3.yaml").read_text())
    plain["links"][0]["endpoint"] = f"udp://127.0.0.1:{port}"
    plain["processor"]["km3"] = {"floors": FLOORS, "trigger": {"slice_ns": 50e6}}
    plain["waiting"] = {"spin": 200}
    del plain["answers"]
    return EngineConfig.model_validate(plain)


def test_every_byte_of_every_unit_is_received() -> None:
    (port,) = free_ports(1)
    config = tower(port, samples=20)
    units = km3_tower.make_units(config)
    sender = km3_tower.make_tower(config)
    came: dict[tuple[int, int, int], bytes] = {}
    with nanet.open(
        f"udp://127.0.0.1:{port}", protocol="km3-floor", buffer_count=64, buffer_bytes=1 << 22, packet_bytes_max=8972,
        assemble={"units_open": 2, "timeout_us": 2_000_000},
    ) as receiver:  # fmt: skip
        sender.start()
        quiet = 0
        while len(came) < 12 * FLOORS * 5 and not (sender.snapshot()["slices"] == 12 and quiet > 3):
            quiet += 1
            for completion in receiver.completions(0.5):
                quiet = 0
                unit = completion.unit
                assert unit is not None
                assert not unit.mask(np.uint8).any()
                came[unit.number & 0xFFFFFFFF, unit.stream >> 3 & 255, unit.stream & 7] = unit.array().tobytes()
    sender.stop()
    assert sorted(came) == [(slice_, floor, kind) for slice_ in range(12) for floor in range(1, FLOORS + 1) for kind in range(1, 6)]
    for (slice_, floor, kind), data in came.items():
        assert data == units.unit(slice_, floor, kind), (slice_, floor, kind)


def test_a_floor_that_is_gone_has_a_name_and_the_others_go_on() -> None:
    (port,) = free_ports(1)
    config = tower(
        port,
        faults={
            "silent": [{"floor": 2, "slice": 4, "slices": 3}],
            "jumps": [{"floor": 3, "slice": 10}, {"floor": 1, "slice": 8, "jump_us": 0, "said": True}],
        },
    )
    with EngineProcess(engine(port)) as process:
        sent = km3_tower.run(config)
        counters = process.stop()["counters"]
    assert sent["faults"]["silent"] > 0
    assert counters["packets_accepted"] == sent["packets_sent"]
    assert counters["units_handed_over"] == (12 * FLOORS - 3) * 4
    assert counters["slices_whole"] == 12 - 3 - 4
    assert counters["slices_incomplete"] == 7
    assert counters["units_absent"] == 9
    assert counters["units_bad_time"] == 2 + 4
    assert counters["units_used"] == 12 * FLOORS - 9


def test_hits_older_than_their_slice_are_named_and_no_other_hit_is_touched() -> None:
    """One in fifty of noise is 300 ms older than it should be: six slices."""
    (port,) = free_ports(1)
    quiet = {"tail_share": 0, "charge_sigma_pe": 0}  # every hit is over threshold
    with EngineProcess(engine(port)) as process:
        sent = km3_tower.run(tower(port, hydrophones=False, instruments=False, noise=quiet, faults={"old_hits": 0.02}))
        ended = process.stop()
    counters = ended["counters"]
    assert counters["units_used"] == 12 * FLOORS
    assert sent["hits"] == counters["hits_used"] + counters["hits_bad_time"] + counters["hits_below_threshold"]
    old = 0.02 * sent["hits"]
    assert abs(counters["hits_bad_time"] - old) < 6 * math.sqrt(old)
    assert ended["losses"] == {"hits_bad_time": counters["hits_bad_time"]}


def test_packets_with_a_wrong_bit_in_any_field_are_named() -> None:
    """Of each field some: nothing is unexplained, and what the floors said else is judged. A bit in a hit no one can see, but what it makes of its time or its PM."""
    (port,) = free_ports(1)
    with EngineProcess(engine(port)) as process:
        sent = km3_tower.run(tower(port, duration_s=1.2, hydrophones=False, instruments=False, faults={"damage": 0.05}))
        ended = process.stop()
    counters = ended["counters"]
    damaged = sent["damaged_fields"]
    assert min(damaged.values()) > 0, damaged
    refused = sum(count for name, count in counters.items() if name in books.PACKET_REFUSALS)
    assert sent["packets_sent"] == counters["packets_accepted"] + refused
    assert refused >= damaged["magic"]
    assert ended["balance"]["unexplained_packets"] == 0
    assert counters["units_handed_over"] == sum(counters[name] for name in ("units_used", "units_passed_over", *books.UNITS_UNUSED))
    assert counters["hits_used"] + counters["hits_below_threshold"] + counters["hits_bad_time"] <= sent["hits"]
    whole = sent["hits"] / sent["packets_sent"] * (sent["packets_sent"] - sum(damaged.values()))
    assert counters["hits_used"] + counters["hits_below_threshold"] > 0.6 * whole


def test_slow_control_is_answered_and_starts_the_run() -> None:
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    receiver.settimeout(10)
    config = tower(
        receiver.getsockname()[1],
        control=f"udp://127.0.0.1:{free_row(FLOORS)}",
        waits_for_start=True,
        duration_s=0.1,
        slice_ms=50,
        gps_second=1_000_000,
    )
    running = km3_tower.make_tower(config)
    running.start()

    def ask(floor: int, command: int, value: int, sequence: int, parameter: int = 0) -> tuple[int, int]:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.settimeout(10)
            one.sendto(struct.pack(">IBBBBIHHiII", 0x4B4D3343, 1, floor, command, 0, sequence, parameter, 0, value, 0, 0),
                       ("127.0.0.1", running.control_ports[floor - 1]))  # fmt: skip
            answer = struct.unpack(">IBBBBIHHiII", one.recv(100))
            assert answer[:4] == (0x4B4D3341, 1, floor, command)
            assert answer[5] == sequence
            return answer[4], answer[8]

    assert ask(2, 2, 14_000, 1, parameter=3) == (0, 14_000)
    assert ask(2, 1, 0, 2, parameter=3) == (0, 14_000)
    assert ask(1, 2, 20_001, 3) == (3, 15_000)
    assert not running.wait(0.3)  # no run yet
    assert [ask(floor, 3, 5, 9) for floor in range(1, FLOORS + 1)] == [(0, 5)] * FLOORS
    assert running.wait(10.0)
    assert running.snapshot()["slices"] == 2
    running.stop()
    with receiver:
        run, slice_number, second, tick = struct.unpack_from(">IIII", receiver.recv(9000), 8)
    assert (run, slice_number, tick) == (5, 0, 0)  # a run begins with a second: not the one in which it was asked for
    assert second > 1_000_000


def test_light_comes_when_the_formula_says() -> None:
    units = km3_tower.make_units(tower(1, muons={"rate_hz": 500, "time_sigma_ns": 0, "scattered_share": 0, "cos_zenith_min": -1}))
    places = {(one["floor"], one["pm"]): one["position_m"] for one in units.places()}
    compared = 0
    for track in units.tracks(3):
        for hit in track["hits"]:
            to = [a - b for a, b in zip(places[hit["floor"], hit["pm"]], track["position_m"], strict=True)]
            along = sum(a * b for a, b in zip(to, track["direction"], strict=True))
            across = math.sqrt(max(0.0, sum(a * a for a in to) - along * along))
            angle = math.acos(1 / 1.38)
            light = across / math.sin(angle) * 1.38 - across / math.tan(angle)  # its way times n, less what the muon flew meanwhile
            assert abs(hit["time_ns"] - track["time_ns"] - (along + light) / 0.299792458) < 1e-6
            compared += 1
    assert compared > 20


def test_the_command_says_what_it_sent(tmp_path: Path, check_keys: Any) -> None:
    import h5py
    from loops import nanet as command

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        command("emulate", "km3", "--to", f"udp://127.0.0.1:{listener.getsockname()[1]}", "--floors", "2", "--duration", "0.4", "--muons", "50",
                "--truth", tmp_path / "truth.h5", "--json", tmp_path / "sent.json")  # fmt: skip
    result = json.loads((tmp_path / "sent.json").read_text())
    check_keys(result, "emulate km3")
    assert result["slices"] == 2
    with h5py.File(tmp_path / "truth.h5") as file:
        assert len(file["hits"]) == int(file["tracks"]["hits"].sum())
        assert len(file["places"]) == 12


def test_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check_keys: Any) -> None:
    """A small tower at half of its speed: all of it comes back, muons are found, and the page shows one. A lost packet would be a problem with a name."""
    (port,) = free_ports(1)

    def small(_: float, port: int, answers: str) -> tuple[EngineConfig, Tower]:
        plain = engine(port).model_dump(mode="json")
        plain["answers"] = {"endpoint": answers}
        sent = tower(port, hydrophones=False, instruments=False, muons={"rate_hz": 100, "radius_m": 20})
        plain["processor"]["km3"]["trigger"]["seeds_min"] = 3
        return EngineConfig.model_validate(plain), sent

    monkeypatch.setattr(km3_demo, "configs", small)
    result = km3_demo.demo(0.6, port, tmp_path, tmp_path / "result.json")
    assert km3_demo.show(result, tmp_path) == 0
    written = json.loads((tmp_path / "result.json").read_text())
    check_keys(written, "demo --detector km3")
    assert written["worked"]
    assert written["muons"]["sent"] > 30
    assert written["muons"]["found"] >= 0.7 * written["muons"]["with_5_seeds"] > 0
    assert written["events"] == written["engine"]["counters"]["events_triggered"] >= written["muons"]["found"]
    assert "The chain worked" in (tmp_path / "demo-km3.html").read_text()
    assert problems(written["tower"] | {"packets_sent": 1}, written["engine"]["counters"], 0, 2) == [
        f"packets sent and received: 1 and {written['tower']['packets_sent']:,}",
        f"events triggered and received: {written['events']:,} and 0",
        "events received in part: 2",
    ]
