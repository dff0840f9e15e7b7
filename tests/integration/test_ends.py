# SPDX-License-Identifier: Apache-2.0
"""Runs that lose their ends leave nothing unexplained: a few of those that `ends.py --runs 100` makes."""

from __future__ import annotations

import ends
import pytest
from loops import check_packet_books


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
