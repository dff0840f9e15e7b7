# SPDX-License-Identifier: Apache-2.0
"""Units as Python sees them, and their books."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from nanet.port.port import Completion, Unit
from nanet.result import books, hops

HEAD = {
    "stream": 3,
    "unit": 9,
    "time": 0,
    "bytes": 24,
    "bytes_missing": 0,
    "packet_count": 3,
    "packets_missing": 0,
    "piece_bytes": 8,
}
UNIT, INCOMPLETE = 1 << 8, 1 << 9


def completion(present: list[tuple[int, int]], *, status: int = UNIT) -> Completion:
    missing = 24 - sum(end - begin for begin, end in present)
    view: Any = SimpleNamespace(
        bytes=24, packet_count=0, event_count=1, packets_lost=0, stride_bytes=0, first_packet_ns=1, last_packet_ns=2, status=status,
        buffer=np.arange(24, dtype=np.uint8), present=np.array(present, dtype=np.uint32), unit=HEAD | {"bytes_missing": missing},
    )  # fmt: skip
    port: Any = SimpleNamespace(_release=lambda: None, _wait_for_gpu=lambda: None)
    return Completion(port, view)


def unit_of(one: Completion) -> Unit:
    assert one.unit is not None
    return one.unit


def test_a_batch_of_packets_is_no_unit() -> None:
    assert completion([(0, 24)], status=1).unit is None


def test_an_array_without_a_copy() -> None:
    one = completion([(0, 24)])
    unit = unit_of(one)
    assert one.status == {"unit"}
    assert unit.complete
    pixels = unit.array(np.uint16, (3, 4))
    assert pixels.shape == (3, 4)
    assert pixels[1, 0] == 0x0908
    assert np.shares_memory(pixels, one.buffer)
    assert not unit.mask(np.uint16, (3, 4)).any()
    with pytest.raises(ValueError, match="reshape"):
        unit.array(np.uint16, (5, 5))


def test_holes_are_a_mask() -> None:
    unit = unit_of(completion([(0, 7), (12, 24)], status=UNIT | INCOMPLETE))
    assert not unit.complete
    assert unit.bytes_missing == 5
    assert unit.mask().nonzero()[0].tolist() == [7, 8, 9, 10, 11]
    # An element is there if all of its bytes are.
    assert unit.mask(np.uint16).nonzero()[0].tolist() == [3, 4, 5]
    assert unit.mask(np.uint32).nonzero()[0].tolist() == [1, 2]
    assert np.ma.masked_array(unit.array(np.uint32), unit.mask(np.uint32)).count() == 4
    with pytest.raises(ValueError, match="use a dtype that fits"):
        unit.mask(np.dtype("S5"))


def test_a_range_within_an_element_is_no_element() -> None:
    assert unit_of(completion([(1, 3)], status=UNIT | INCOMPLETE)).mask(np.uint32).all()


def test_a_released_unit_is_refused() -> None:
    one = completion([(0, 24)])
    unit = unit_of(one)
    one.release()
    with pytest.raises(ValueError, match="released"):
        unit.array()
    with pytest.raises(ValueError, match="released"):
        _ = unit.present


def test_every_unit_that_is_not_whole_is_a_loss() -> None:
    counters = {"units_complete": 5, "units_timed_out": 1, "units_overflow": 2, "units_no_buffer": 3, "units_lost": 4}
    assert books.engine_losses(counters, merged=False) == {
        "units_timed_out": 1, "units_overflow": 2, "units_no_buffer": 3, "units_lost": 4
    }  # fmt: skip


def test_the_hops_of_units() -> None:
    counters = {
        "units_begun": 10, "units_complete": 6, "units_timed_out": 1, "units_overflow": 2, "units_flushed": 0, "units_handed_over": 8,
        "units_discarded": 1,
    }  # fmt: skip
    assembling, units = hops.units(counters)
    assert (assembling.entered, assembling.left, assembling.unexplained) == (10, 6, 1)
    assert (units.entered, units.left, units.unexplained) == (9, 8, 0)
    assert hops.units({"units_begun": 0}) == []
