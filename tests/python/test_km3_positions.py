# SPDX-License-Identifier: Apache-2.0
"""`nanet km3 positions`: an emulated tower that is not where its detector file says, heard in recorded packets, is found within what is needed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from nanet.cli.app import app
from nanet.config.components import Tower
from nanet.config.errors import ConfigError, parse_document, validated
from nanet.config.km3_beacons import Beacons
from nanet.format.make import write_pcap
from nanet.km3 import positions
from nanet.km3.acoustics import HydrophoneKey, Motion
from nanet.km3.detector import Detector
from nanet.km3.recordings import packets_of
from nanet.km3.store import Store
from nanet.km3.units import Unit, packets
from nanet.run import km3_tower
from typer.testing import CliRunner

FLOORS, SLICES = 2, 7
NEEDED_M = 0.4
MOTIONS = {
    (1, 1): Motion((0, 0, 0), math.radians(9), (1.5, -2.0, 0.3)),
    (1, 2): Motion((0, 0, 0), math.radians(-4), (3.0, 1.0, -0.5)),
}
BEACONS: dict[str, Any] = {
    "speed_m_s": 1500,
    "beacons": [  # those of the emulator, by default
        {"name": "a", "x_m": 250, "y_m": 0, "z_m": 0},
        {"name": "b", "x_m": -125, "y_m": 216.5, "z_m": 0, "phase_s": 0.25},
        {"name": "c", "x_m": -125, "y_m": -216.5, "z_m": 0, "phase_s": 0.5},
        {"name": "d", "x_m": 300, "y_m": 300, "z_m": 50, "phase_s": 0.75},
    ],
}


def made_packets(config: Tower, *, silent: tuple[int, ...] = ()) -> Iterator[bytes]:
    """Of hydrophones, from the emulator's units."""
    units = km3_tower.make_units(config)
    for slice_ in range(SLICES):
        time_ns = config.gps_second * 10**9 + slice_ * 200_000_000
        for floor in range(1, FLOORS + 1):
            for kind in (3, 4):
                data = units.unit(slice_, floor, kind)
                unit = Unit(1, floor, kind, 1, slice_, time_ns // 10**9, time_ns % 10**9 // 16)
                if floor not in silent:
                    yield from (head + data[begin:end] for head, begin, end in packets(unit, len(data), [], 0))


@pytest.fixture(scope="module")
def nominal() -> Detector:
    return Detector.towers(1, FLOORS)


@pytest.fixture(scope="module")
def truth(nominal: Detector) -> Detector:
    return Detector.from_detx(positions.moved_detector(nominal, MOTIONS))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, nominal: Detector, truth: Detector) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    truth.write(folder / "truth.detx")
    nominal.write(folder / "nominal.detx")
    (folder / "beacons.yaml").write_text(yaml.safe_dump(BEACONS))
    config = Tower.model_validate({"floors": FLOORS, "detector": str(folder / "truth.detx"), "gps_second": 1_500_000_003})
    write_pcap(folder / "all.pcap", made_packets(config), 1e6, 7100)
    write_pcap(folder / "one.pcap", made_packets(config, silent=(2,)), 1e6, 7100)
    return folder


def far_m(found: Detector, truth: Detector) -> float:
    return max(math.dist([a[name] for name in ("x_m", "y_m", "z_m")], [b[name] for name in ("x_m", "y_m", "z_m")])
               for a, b in zip(found.pms, truth.pms, strict=True))  # fmt: skip


def run(folder: Path, recording: str, expect: int, *more: str) -> tuple[dict[str, Any], str]:
    arguments = [
        "km3",
        "positions",
        folder / recording,
        "--detector",
        folder / "nominal.detx",
        "--beacons",
        folder / "beacons.yaml",
    ]
    done = CliRunner().invoke(
        app, [*map(str, arguments), "--to", str(folder / "now.detx"), "--json", str(folder / "found.json"), *more]
    )
    assert done.exit_code == expect, done.output
    return json.loads((folder / "found.json").read_text()), done.output


@pytest.mark.slow
def test_every_pm_is_found(
    recorded: Path, nominal: Detector, truth: Detector, check_keys: Callable[[dict[str, Any], str], None]
) -> None:
    server, store = recorded / "server.yaml", f"sqlite:///{recorded}/km3.db"
    server.write_text(yaml.safe_dump({"floors": [{"floor": 1, "control": "udp://127.0.0.1:7300"}], "store": {"url": store}}))
    result, said = run(recorded, "all.pcap", 0, "--add", "tower", "--config", str(server))
    check_keys(result, "km3 positions")
    assert far_m(nominal, truth) > 2.0
    found = Detector.read(recorded / "now.detx")
    assert far_m(found, truth) < NEEDED_M
    for name in ("dx", "dy", "dz"):
        assert np.allclose(found.pms[name], truth.pms[name], atol=0.02)
    for name in ("id", "floor", "number", "status", "time_offset_ns"):
        assert (found.pms[name] == nominal.pms[name]).all()
    for one in result["floors"]:
        assert one["yaw_deg"] == pytest.approx(math.degrees(MOTIONS[1, one["floor"]].yaw_rad), abs=1.0)
    assert "1/2 hydrophone 1: " in said
    assert result["added"] == "tower 1"
    kept = Store(store).detector("tower")
    assert kept is not None
    assert kept[1] == (recorded / "now.detx").read_bytes()


@pytest.mark.slow
def test_a_floor_that_was_not_heard_stays_and_is_named(recorded: Path, nominal: Detector, truth: Detector) -> None:
    result, said = run(recorded, "one.pcap", 1)
    found = Detector.read(recorded / "now.detx")
    assert (found.pms[6:] == nominal.pms[6:]).all()
    assert far_m(Detector.read(recorded / "now.detx"), truth) > 2.0
    assert [one["refused"] for one in result["hydrophones"]] == ["", "", "too_few_beacons", "too_few_beacons"]
    assert "no place of floor 1/2" in said


def test_lost_packets_are_holes_and_doubled_ones_nothing(recorded: Path) -> None:
    whole = list(packets_of(recorded / "all.pcap"))
    some = [packet for number, packet in enumerate(whole) if number != 40]
    np.random.default_rng(1).shuffle(some)
    heard, all_heard = positions.hear([*some, some[0], b"", bytes(60)]), positions.hear(whole)
    assert heard.packets == {"accepted": len(whole) - 1, "duplicate": 1, "other": 2}
    assert heard.epoch_s == 1_500_000_003
    holes = 0
    for key, one in heard.recordings.items():
        same = all_heard.recordings[key]
        assert one.samples[one.is_there].tolist() == same.samples[one.is_there].tolist()
        assert same.is_there.all()
        holes += int((~one.is_there).sum())
    assert holes == (len(whole[40]) - 32) // 3
    assert set(heard.recordings) == {HydrophoneKey(1, floor, which) for floor in (1, 2) for which in (0, 1)}


def test_two_beacons_of_one_name_are_refused() -> None:
    plain = BEACONS | {"beacons": [*BEACONS["beacons"], BEACONS["beacons"][0]]}
    with pytest.raises(ConfigError, match="two beacons are called a"):
        validated(Beacons, parse_document(yaml.safe_dump(plain), "b.yaml"))
