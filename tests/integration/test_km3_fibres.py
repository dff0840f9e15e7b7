# SPDX-License-Identifier: Apache-2.0
"""An emulated tower over the fibres of the simulated KM3NeT node: the events of the engine are those of the link over plain sockets, byte for byte, also while
the server asks and sets the floors over the same fibres."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nanet
import yaml
from loops import ROOT, free_ports, free_row
from made_up_km3 import MadeUpFloor
from nanet.config import EngineConfig
from nanet.config.components import Tower
from nanet.config.km3_server import Km3ServerConfig
from nanet.km3.messages import Floor
from nanet.km3.server import Server
from nanet.km3.store import Store
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


@contextlib.contextmanager
def nothing_else() -> Iterator[None]:
    yield


def events_of(
    port: int, link: dict[str, Any], beside: Callable[[], contextlib.AbstractContextManager[None]] = nothing_else
) -> tuple[dict[int, bytes], Any]:
    """The tower's events by number, and the engine's result. beside: what goes on from before the first packet until after the last."""
    (events,) = free_ports(1)
    found: dict[int, bytes] = {}
    with nanet.open(
        f"udp://127.0.0.1:{events}", protocol="km3-event", buffer_count=64, assemble={"timeout_us": 20_000_000}
    ) as receiver:
        with EngineProcess(engine(port, events, link)) as process:
            with beside():
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


class Asking:
    """The server over the fibres: it configures and starts the floors before there are data, asks them while there are, and stops them after the last."""

    def __init__(self, config: Km3ServerConfig, floors: list[MadeUpFloor]) -> None:
        self.config, self.floors = config, floors
        self.outcomes: list[str] = []
        self.books: dict[str, Any] = {}
        self.trips_words: list[int | None] = []  # of express codes, before and after there were data
        self._ends = threading.Event()

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with Server(self.config) as server:
            assert server.order({"do": "run start", "run": 1}) == {"run": 1, "not_running": []}
            assert [floor.run for floor in self.floors] == [1] * FLOORS
            self.trips_words = [server.order({"do": "express", "floor": 1, "code": 255})["words"]]
            assert [floor.values[33] for floor in self.floors] == [1] * FLOORS  # its second hydrophone
            thread = threading.Thread(target=self._ask, args=(server,))
            thread.start()
            yield
            self._ends.set()
            thread.join()
            assert server.order({"do": "set", "floor": 2, "parameter": "high_voltage_3", "value": 1250.5})["outcome"] == "done"
            self.trips_words += [server.order({"do": "express", "floor": 1, "code": code})["words"] for code in (0x5A, 0)]
            assert server.order({"do": "run stop"}) == {"run": 1, "not_stopped": []}
            self.books = server.books()

    def _ask(self, server: Server) -> None:
        asked = 0
        while not self._ends.is_set():
            asked += 1
            done = server.order({"do": "get", "floor": 1 + asked % FLOORS, "parameter": "temperature"})
            self.outcomes.append(done["outcome"])


def test_floors_are_asked_over_the_fibres_beside_their_data(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    if not is_built(port):
        return
    host, programs, data = free_row(FLOORS), free_row(FLOORS), free_ports(1)[0]
    link = {
        "endpoint": f"gateware://127.0.0.1:{port}",
        "gateware": {"floors": NODE | {"control": f"udp://127.0.0.1:{host}", "floor_control": f"udp://127.0.0.1:{programs}"}},
    }
    config = Km3ServerConfig.model_validate({
        "data": {"endpoint": f"udp://127.0.0.1:{data}", "buffer_count": 32, "buffer_bytes": 65536}, "monitor": None,
        "floors": [{"floor": 1 + k, "control": f"udp://127.0.0.1:{host + k}", "hydrophones": [True, True]} for k in range(FLOORS)],
        "control": {"timeout_ms": 10000, "ping_s": 0.5}, "store": {"url": f"sqlite:///{tmp_path}/km3.db"}, "commands": str(tmp_path / "s"),
    })  # fmt: skip
    expected, _ = events_of(port, {"endpoint": f"udp://127.0.0.1:{port}"})
    with contextlib.ExitStack() as stack:
        floors = [stack.enter_context(MadeUpFloor(1 + k, port=programs + k)) for k in range(FLOORS)]
        asking = Asking(config, floors)
        found, result = events_of(port, link, asking)
        assert floors[1].values[3] == 12505
        heard = [len(floor.heard) for floor in floors]
    assert len(expected) > 3
    assert found == expected
    assert len(asking.outcomes) > 1
    assert set(asking.outcomes) == {"done"}
    assert asking.books["control"]["answered"] > 10
    assert len(asking.trips_words) == 3
    assert len(set(asking.trips_words) - {None}) == 1, "one latency"
    assert (
        counts(result, "km3", "express_sent")
        == counts(result, "km3", "express_taken")
        == counts(result, "slow_control", "express")
        == [3, 0]
    )
    history = Store(f"sqlite:///{tmp_path}/km3.db", 5.0).history(limit=1000)
    assert {(row["command"], row["outcome"]) for row in history} >= {("set", "done"), ("run_start", "done"), ("run_stop", "done")}
    assert (result["losses"], result["refusals"], result["balance"]["unexplained_packets"]) == ({}, {}, 0)
    # A request that is on its way when the run begins may be cut, and is sent again: what came is told, not how often it was sent.
    asked, cut = counts(result, "slow_control", "down"), counts(result, "km3", "to_floor_cut")
    assert asked == [came + lost for came, lost in zip(heard, cut, strict=False)]
    assert counts(result, "slow_control", "heard") == heard
    assert counts(result, "slow_control", "returned") == counts(result, "slow_control", "answers") == heard
    assert counts(result, "slow_control", "no_asker") == counts(result, "slow_control", "torn") == [0] * FLOORS
    assert Floor(1, 2) in {Floor(one["tower"], one["floor"]) for one in asking.books["floors"]}
