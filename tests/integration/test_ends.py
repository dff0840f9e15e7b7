# SPDX-License-Identifier: Apache-2.0
"""Runs that lose their ends leave nothing unexplained: a few of those that `ends.py --runs 100` makes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import ends
import pytest
from loops import check_packet_books, engine_config, free_ports, sender, wait_for
from nanet import wire
from nanet.run.process import EngineProcess


@pytest.mark.parametrize("boards", [1, 4])
@pytest.mark.parametrize("kind", ends.KINDS)
def test_every_lost_event_has_a_name(kind: str, boards: int) -> None:
    emulated, engine = ends.run(kind, boards, seed=boards)
    assert emulated["lost"] > 0  # else nothing was tried
    assert ends.losses(emulated, engine)["unexplained"] == 0
    assert not engine["verdict"]["kept"]
    assert not engine["counters"]["packets_duplicate"]
    check_packet_books(emulated, engine)
    if boards == 1:
        assert engine["losses"]["events_lost"] == emulated["lost"]


def state_of(pid: int) -> str:
    """One letter, as in ps."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_an_end_that_no_marker_tells_of_is_named_all_the_same() -> None:
    """Real boards may be silent after their last packet: then the socket's count of drops is all that is known, and the promise is broken."""
    port, _ = free_ports()
    event = wire.EventRecord(timestamp=1000, fine_time=7, event_number=0, hits=[100])
    config = engine_config(port, None, link={"socket_buffer_bytes": 4096}, processor={"kind": "count"})
    with EngineProcess(config) as process, sender(port) as out:
        os.kill(process.pid, signal.SIGSTOP)
        wait_for(lambda: state_of(process.pid) == "T", "the stop of the engine")
        for number in range(200):
            out.send(wire.build_mgp([event] * 16, source_id=0x1C, source_sub_id=0, sequence=number))
        os.kill(process.pid, signal.SIGCONT)
        engine = process.stop()
    accepted = engine["counters"]["packets_accepted"]
    assert 0 < accepted < 200
    assert engine["losses"] == {"kernel_dropped_unseen": 200 - accepted}
    assert engine["verdict"]["reasons"] == [f"lost kernel_dropped_unseen {200 - accepted}"]
    assert engine["exit_code"] == 1
