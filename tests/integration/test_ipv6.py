# SPDX-License-Identifier: Apache-2.0
"""A whole run over IPv6 on ::1: data and answers, senders by network, and the recording of it played again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from loops import check_event_books, check_packet_books, emulator_config, engine_config, free_ports, nanet, run
from nanet.config.emulator import EmulatorConfig
from nanet.config.engine import EngineConfig


def over_ipv6(**link: Any) -> tuple[EngineConfig, EmulatorConfig]:
    port, answers = free_ports()
    engine = engine_config(port, answers, link={"endpoint": f"udp://[::1]:{port}"} | link).model_dump(mode="json")
    engine["answers"]["endpoint"] = f"udp://[::1]:{answers}"
    emulator = emulator_config(port, answers).model_dump(mode="json")
    emulator |= {"destinations": [f"udp://[::1]:{port}"], "answers": f"udp://[::1]:{answers}", "events_total": 20_000}
    emulator["rate_events_per_s"] = 1e5
    return EngineConfig.model_validate(engine), EmulatorConfig.model_validate(emulator)


@pytest.mark.parametrize("via", [None, "boards"])
def test_every_event_is_answered(via: str | None) -> None:
    engine, emulator = over_ipv6(senders=["::1"])
    plain = engine.model_dump(mode="json")
    plain["answers"]["via"] = via
    sent, received = run(EngineConfig.model_validate(plain), emulator)
    assert sent["answered"] == sent["sent"] > 19_000
    check_packet_books(sent, received)
    check_event_books(sent, received)


def test_strangers_are_counted() -> None:
    sent, received = run(*over_ipv6(senders=["2001:db8::/32", "127.0.0.1"]))
    assert sent["answered"] == 0
    assert received["counters"]["packets_unknown_sender"] == sent["packets_sent"] + sent["markers_sent"]


def test_a_recording_is_played(tmp_path: Path) -> None:
    recording = tmp_path / "run.pcap"
    engine, emulator = over_ipv6(record={"file": str(recording)})
    sent, received = run(engine, emulator)
    assert received["links"][0]["stats"]["recorded"] == sent["packets_sent"] + sent["markers_sent"]
    again = engine.model_dump(mode="json")
    again["links"][0] |= {"endpoint": f"pcap://{recording}", "record": None, "pcap": {"pace": "maximum"}, "senders": ["::1"]}
    again["answers"] = None
    path = tmp_path / "again.yaml"
    path.write_text(yaml.safe_dump(again))
    nanet("run", path, "--json", tmp_path / "again.json")
    played = json.loads((tmp_path / "again.json").read_text())
    assert played["counters"]["events_answered"] == sent["sent"]
    assert played["counters"]["packets_unknown_sender"] == 0
