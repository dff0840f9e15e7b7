# SPDX-License-Identifier: Apache-2.0
"""Histograms against the HdrHistogram package, which is not ours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from hypothesis import given
from hypothesis import strategies as st
from nanet.result.histogram import COUNTS, HIGHEST_NS, HIGHEST_OF_BUCKET_NS, LOWEST_NS, Histogram, write_hlog

VALUES = st.lists(st.integers(0, HIGHEST_NS) | st.integers(0, 100_000), min_size=1, max_size=200)


def reference(values: list[int]) -> HdrHistogram:
    histogram = HdrHistogram(1, HIGHEST_NS, 3)
    for value in values:
        histogram.record_value(value)
    return histogram


@given(VALUES)
def test_encoding_is_read_by_hdrhistogram(values: list[int]) -> None:
    decoded = HdrHistogram.decode(Histogram.from_values(values).encode())
    expected = reference(values)
    assert decoded.get_total_count() == len(values)
    for q in (0.0, 50.0, 90.0, 99.0, 99.9, 100.0):
        assert decoded.get_value_at_percentile(q) == expected.get_value_at_percentile(q)


@given(VALUES)
def test_their_encoding_is_read_by_us(values: list[int]) -> None:
    ours = Histogram.decode(reference(values).encode().decode())
    assert np.array_equal(ours.counts, Histogram.from_values(values).counts)


@given(VALUES, st.floats(0.0, 100.0))
def test_percentile_is_a_value_that_so_many_do_not_exceed(values: list[int], q: float) -> None:
    histogram = Histogram.from_values(values)
    found = histogram.percentile(q)
    assert found <= max(values)
    at_most = sum(value <= found for value in values)
    assert at_most >= q / 100.0 * len(values) - 1e-6
    below = sum(value < found * (1 - 1e-3) - 1 for value in values)
    assert below <= max(q / 100.0 * len(values), 1)


def test_layout() -> None:
    assert len(LOWEST_NS) == COUNTS == HdrHistogram(1, HIGHEST_NS, 3).counts_len
    assert LOWEST_NS[:3].tolist() == [0, 1, 2]
    assert (LOWEST_NS[2047], LOWEST_NS[2048], LOWEST_NS[2049]) == (2047, 2048, 2050)
    assert np.all(HIGHEST_OF_BUCKET_NS[:-1] + 1 == LOWEST_NS[1:])


def test_sum_and_survival() -> None:
    both = Histogram.from_values([1, 2, 3]) + Histogram.from_values([1000, 5000])
    assert (both.count, both.min, both.max) == (5, 1, 5000)
    assert both.mean == pytest.approx((1 + 2 + 3 + 1000 + 5000) / 5)
    us, share = both.survival()
    assert share.tolist() == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2])
    assert us[-1] == 5.0
    assert (Histogram() + both).count == 5


def test_exact_extremes_survive_the_encoding() -> None:
    histogram = Histogram.from_values([31_509_001, 17])
    again = Histogram.decode(histogram.encode(), histogram.summary_us())
    assert (again.min, again.max, again.mean) == (17, 31_509_001, pytest.approx(histogram.mean))
    assert again.percentile(100) == 31_509_001


def test_empty() -> None:
    assert Histogram().percentile(99) == 0
    assert Histogram.decode(Histogram().encode()).count == 0
    assert Histogram.decode(None).count == 0


def test_log_is_read_by_hdrhistogram(tmp_path: Path) -> None:
    path = tmp_path / "run.hlog"
    first, second = Histogram.from_values([1_000, 2_000, 3_000_000]), Histogram.from_values([5])
    write_hlog(path, [("answer", 0.0, 10.0, first), ("engine", 0.0, 10.0, second)], note="test")
    reader = HistogramLogReader(str(path), HdrHistogram(1, HIGHEST_NS, 3))
    found = []
    while (histogram := reader.get_next_interval_histogram()) is not None:
        found.append(histogram)
    assert [h.get_total_count() for h in found] == [3, 1]
    assert [h.get_tag() for h in found] == ["answer", "engine"]
    assert found[0].get_value_at_percentile(100) == HdrHistogram(1, HIGHEST_NS, 3).get_highest_equivalent_value(3_000_000)


def test_native_layout_is_the_same() -> None:
    from nanet import _core

    native = _core.LatencyHistogram()
    values = [0, 1, 2047, 2048, 2049, 12_345, 10**6 + 7, 3 * 10**9, HIGHEST_NS]
    for value in values:
        native.record(value)
    assert np.array_equal(native.buckets(), LOWEST_NS)
    copied = Histogram.from_native(native)
    assert np.array_equal(copied.counts, Histogram.from_values(values).counts)
    assert (copied.count, copied.min, copied.max) == (len(values), 0, HIGHEST_NS)
    for q in (10.0, 50.0, 90.0):
        assert min(native.percentile(q), HIGHEST_NS) == copied.percentile(q)
