# SPDX-License-Identifier: Apache-2.0
"""Build and forward over real sockets: boards, a node that builds events, a node that finds rings, L0 trigger processor."""

from __future__ import annotations

import pytest
from loops import check_packet_books, emulator_config, engine_config, free_ports
from nanet.run import emulate
from nanet.run.process import EngineProcess


@pytest.mark.parametrize("topology", ["run_to_completion", "pipelined"])
@pytest.mark.parametrize(("boards", "layout"), [(1, "padded"), (4, "packed")])
def test_events_built_here_are_answered_there(topology: str, boards: int, layout: str) -> None:
    port, between, answers = free_ports(3)
    deep = {"memory_regions": [{"name": "rich", "buffer_count": 256}], "link": {"timeout_us": 5000}, "topology": topology}
    forward = {"kind": "forward", "forward": {"endpoint": f"udp://127.0.0.1:{between}"}}
    first_config = engine_config(port, None, boards, processor=forward, **deep)
    second_config = engine_config(between, answers, link={"protocol": "m2egp"})
    with EngineProcess(second_config) as second_process, EngineProcess(first_config) as first_process:
        emulated = emulate.run(emulator_config(port, answers, boards, layout=layout, events_total=100_000))
        first = first_process.stop()
        second = second_process.stop()
    check_packet_books(emulated, first)
    c, d = first["counters"], second["counters"]
    assert emulated["sent"] == c["events_forwarded"] == d["events_received"] == d["events_answered"] == emulated["answered"]
    assert (first["losses"], second["losses"], emulated["lost"]) == ({}, {}, 0)
    assert not any(emulated["mistakes"].values())
    assert c["packets_forwarded"] == d["packets_accepted"] + d["packets_marker"]
    assert d["packets_marker"] == 6
    assert d["events_lost"] == 0
    assert [link["name"] for link in first["links"]] == ["boards", "forward"]


def test_nobody_takes_the_events() -> None:
    """The next node gone: its packets are refused and counted, the books of this one still close."""
    port, between = free_ports()
    forward = {"kind": "forward", "forward": {"endpoint": f"udp://127.0.0.1:{between}"}}
    with EngineProcess(engine_config(port, None, processor=forward)) as process:
        emulated = emulate.run(emulator_config(port, None, events_total=32_000))
        engine = process.stop()
    assert engine["counters"]["events_forwarded"] == emulated["sent"]
    assert engine["losses"]["answers_refused"] > 0
    assert engine["exit_code"] == 1
