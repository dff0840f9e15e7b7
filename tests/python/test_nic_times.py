# SPDX-License-Identifier: Apache-2.0
"""What people read of the time that packets took in a NIC."""

from __future__ import annotations

from made_up_nic import nic_times
from nanet.result.nic_times import lines


def test_a_line_a_stage_with_cycles_and_ns() -> None:
    links = [{"name": "plain", "nic_times": None}, {"name": "boards", "nic_times": nic_times()}]
    assert list(lines(links)) == [
        "boards: time before the engine (made up, a cycle of 6.4 ns)",
        "  written           min 16  mean 916.0  max 9,000 cycles = 102.4  5,862.4  57,600.0 ns, 10 packets",
        "  completed         nothing",
    ]


def test_nothing_without_such_a_link() -> None:
    assert not list(lines([{"name": "plain", "nic_times": None}]))
