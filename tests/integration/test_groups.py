# SPDX-License-Identifier: Apache-2.0
"""Whole runs over multicast groups between two network namespaces: data and answers, senders that are joined, and strangers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from loops import check_event_books, check_packet_books, emulator_config, engine_config
from nanet.config.emulator import EmulatorConfig
from nanet.config.engine import EngineConfig
from nanet.machine.netns import VethPair
from nanet.run import emulate
from nanet.run.process import EngineProcess
from test_bench_links import a_pair

PORT, ANSWERS = 6200, 6300
DATA, BACK = "239.77.1.1", "239.77.1.2"


@pytest.fixture
def pair() -> Iterator[VethPair | None]:
    """Two hosts that know where groups are; None, said aloud, where the machine does not allow namespaces."""
    with a_pair() as made:
        for end in (made.boards, made.engine) if made is not None else ():
            route = ["route", "add", "224.0.0.0/4", "dev", end.interface]
            subprocess.run(["ip", "-n", end.namespace.name, *route], check=True)
        yield made


def run_between(pair: VethPair, engine: EngineConfig, emulator: EmulatorConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """(emulator's result, engine's result), the engine at one end of the cable and the boards at the other."""
    with pair.engine.namespace.entered():
        process = EngineProcess(engine)
        process.__enter__()
    try:
        with pair.boards.namespace.entered():
            sent = emulate.run(emulator)
        return sent, process.stop()
    finally:
        process.__exit__(None, None, None)


def configs(**link: Any) -> tuple[EngineConfig, EmulatorConfig]:
    plain = engine_config(PORT, ANSWERS, link={"endpoint": f"udp://{DATA}:{PORT}"} | link).model_dump(mode="json")
    plain["answers"]["endpoint"] = f"udp://{BACK}:{ANSWERS}"
    emulator = emulator_config(PORT, ANSWERS).model_dump(mode="json")
    emulator |= {"destinations": [f"udp://{DATA}:{PORT}"], "answers": f"udp://{BACK}:{ANSWERS}", "events_total": 20_000}
    emulator["rate_events_per_s"] = 1e5
    return EngineConfig.model_validate(plain), EmulatorConfig.model_validate(emulator)


@pytest.mark.parametrize("senders", [[], ["10.77.0.1"], ["10.77.0.0/24"]])
def test_every_event_is_answered_through_groups(pair: VethPair | None, senders: list[str]) -> None:
    if pair is None:
        return
    sent, received = run_between(pair, *configs(senders=senders))
    assert sent["answered"] == sent["sent"] > 19_000
    check_packet_books(sent, received)
    check_event_books(sent, received)


def test_a_sender_that_is_not_joined_never_arrives(pair: VethPair | None) -> None:
    """Where senders are named by address the network or the kernel keeps others away; where by network, they are counted."""
    if pair is None:
        return
    sent, received = run_between(pair, *configs(senders=["10.77.0.99"]))
    assert sent["answered"] == 0
    assert received["links"][0]["stats"]["rx_packets"] == 0
    sent, received = run_between(pair, *configs(senders=["10.99.0.0/16"]))
    assert sent["answered"] == 0
    assert received["counters"]["packets_unknown_sender"] == sent["packets_sent"] + sent["markers_sent"]
