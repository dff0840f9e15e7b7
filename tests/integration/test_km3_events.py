# SPDX-License-Identifier: Apache-2.0
"""Events of an engine that judges an emulated tower, put together by a port that knows their format from its declaration alone."""

from __future__ import annotations

import struct
import time
from typing import Any

import nanet
import numpy as np
import yaml
from loops import ROOT, free_ports
from nanet.config import EngineConfig
from nanet.config.components import Tower
from nanet.run import km3_tower
from nanet.run.process import EngineProcess

FLOORS = 3
HIT = np.dtype([("tower", "u1"), ("floor", "u1"), ("pm", "u1"), ("charge", "u1"), ("time", ">i8")])


def test_a_port_puts_events_together() -> None:
    data, events = free_ports(2)
    tower = Tower.model_validate({
        "destinations": [f"udp://127.0.0.1:{data}"], "floors": FLOORS, "duration_s": 0.4, "slice_ms": 50, "speed": 0.5, "hydrophones": False,
        "instruments": False, "muons": {"rate_hz": 100, "radius_m": 20},
    })  # fmt: skip
    plain: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "km3.yaml").read_text())
    plain["links"][0]["endpoint"] = f"udp://127.0.0.1:{data}"
    plain["processor"]["km3"] = {"floors": FLOORS, "trigger": {"slice_ns": 50e6, "seeds_min": 3}, "event_packet_bytes": 400}
    plain["answers"] = {"endpoint": f"udp://127.0.0.1:{events}"}
    plain["waiting"] = {"spin": 200}
    found: dict[int, tuple[int, Any]] = {}
    with nanet.open(
        f"udp://127.0.0.1:{events}", protocol="km3-event", buffer_count=64, assemble={"timeout_us": 20_000_000}
    ) as receiver:
        with EngineProcess(EngineConfig.model_validate(plain)) as process:
            km3_tower.run(tower)
            counters = process.stop()["counters"]
        end_s = time.monotonic() + 20
        while len(found) < counters["events_triggered"] and time.monotonic() < end_s:
            for completion in receiver.completions(0.2):
                unit = completion.unit
                assert unit is not None
                assert unit.complete
                found[unit.number] = (unit.packet_count, unit.array().tobytes())
        refused = {name: count for name, count in receiver.counters().items() if count and name.startswith("packets_bad")}
    assert not refused
    assert counters["events_triggered"] == len(found) > 5
    assert max(packets for packets, _ in found.values()) > 1  # some are longer than a packet
    for _, whole in found.values():
        count, seeds, kinds, is_cut, begin = struct.unpack_from(">4Iq", whole)
        assert len(whole) == 24 + 12 * count
        assert seeds >= 3
        assert 1 <= kinds <= 7
        assert is_cut in (0, 1)
        hits = np.frombuffer(whole, HIT, count, 24)
        assert set(hits["floor"].tolist()) <= {1, 2, 3}
        assert set((hits["pm"] & 31).tolist()) <= set(range(6))
        assert np.count_nonzero(hits["pm"] >> 5) >= seeds  # hits that began a triggered seed
        assert np.bitwise_or.reduce(hits["pm"] >> 5) == kinds
        assert int(hits["time"].min()) >= begin
