# SPDX-License-Identifier: Apache-2.0
"""An emulated tower over the fibres of the simulated KM3NeT node: the events of the engine are those of the link over plain sockets, byte for byte."""

from __future__ import annotations

import time
from typing import Any

import nanet
import yaml
from loops import ROOT, free_ports
from nanet.config import EngineConfig
from nanet.config.components import Tower
from nanet.run import km3_tower
from nanet.run.process import EngineProcess
from test_gateware import is_built

FLOORS, SLICES, SLICE_MS = 2, 5, 1
NODE = {"tower": 1, "floors": FLOORS, "slice_us": 1000 * SLICE_MS}  # of a millisecond: it is simulated cycle by cycle


def tower(port: int) -> Tower:
    """Two floors with much light, the same in each run, over a long time."""
    return Tower.model_validate({
        "destinations": [f"udp://127.0.0.1:{port}"], "floors": FLOORS, "duration_s": SLICES * SLICE_MS / 1000, "slice_ms": SLICE_MS,
        "speed": 0.02, "hydrophones": True, "instruments": True, "muons": {"rate_hz": 5000, "radius_m": 20, "light_pe_m": 200},
    })  # fmt: skip


def engine(port: int, events: int, link: dict[str, Any]) -> EngineConfig:
    """The example's engine, at either kind of link; nothing times out where packets are simulated."""
    plain: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "km3.yaml").read_text())
    plain["links"][0] |= {"packet_bytes_max": 8960, "assemble": {"units_open": 4, "timeout_us": 60_000_000}} | link
    trigger = {"slice_ns": SLICE_MS * 1e6, "event_ns_max": 2e5, "seeds_min": 2}
    plain["processor"]["km3"] = {"floors": FLOORS, "trigger": trigger, "timeout_ms": 60_000, "slices_open": 4}
    plain["answers"] = {"endpoint": f"udp://127.0.0.1:{events}"}
    plain["waiting"] = {"spin": 200}
    plain["run"] = {"budget_us": 60_000_000}
    return EngineConfig.model_validate(plain)


def events_of(port: int, link: dict[str, Any]) -> tuple[dict[int, bytes], Any]:
    """The tower's events by number, and the engine's result."""
    (events,) = free_ports(1)
    found: dict[int, bytes] = {}
    with nanet.open(
        f"udp://127.0.0.1:{events}", protocol="km3-event", buffer_count=64, assemble={"timeout_us": 20_000_000}
    ) as receiver:
        with EngineProcess(engine(port, events, link)) as process:
            km3_tower.run(tower(port))
            end_s = time.monotonic() + 120
            while process.counters().get("units_used", 0) < FLOORS * SLICES and time.monotonic() < end_s:
                time.sleep(0.05)
            result = process.stop()
        end_s = time.monotonic() + 20
        while len(found) < result["counters"]["events_triggered"] and time.monotonic() < end_s:
            for completion in receiver.completions(0.2):
                unit = completion.unit
                assert unit is not None
                assert unit.complete
                found[unit.number] = unit.array().tobytes()
    return found, result


def counts(result: Any, name: str, counter: str) -> list[int]:
    """Of each port, or of the whole node."""
    return [group["counts"][counter] for group in result["links"][0]["nic_counts"] if group["name"] == name]


def test_events_over_the_fibres_are_those_over_sockets() -> None:
    (port,) = free_ports(1)
    if not is_built(port):
        return
    expected, plain = events_of(port, {"endpoint": f"udp://127.0.0.1:{port}"})
    found, result = events_of(port, {"endpoint": f"gateware://127.0.0.1:{port}", "gateware": {"floors": NODE}})
    assert len(expected) > 3
    assert found == expected
    for name in ("units_used", "hits", "seeds", "events_triggered"):
        if name in plain["counters"]:
            assert result["counters"][name] == plain["counters"][name], name
    assert (result["losses"], result["refusals"], result["balance"]["unexplained_packets"]) == ({}, {}, 0)
    assert result["links"][0]["path"].startswith("simulated node with links of 2 floors at 800 Mb/s")
    assert counts(result, "floor", "frames") == counts(result, "km3", "placed") == [SLICES * SLICE_MS * 10] * FLOORS
    assert counts(result, "fibre", "carried") == counts(result, "fibre", "received")
    hops = [hop["hop"] for hop in result["balance"]["hops"]]
    assert hops[0] == "tower, packets to the fibres"
    assert hops[5] == "tower, packets to the host"
