# SPDX-License-Identifier: Apache-2.0
"""Latency histograms: the HdrHistogram layout as a numpy array, and its log format, so that its tools read our files.

Layout as HdrHistogram(1, 3600e9, 3): index i < 2048 counts the value i; above, each doubling of the value has 1024
buckets, so a value is known to better than one part in a thousand. Values are nanoseconds. Format of the log and of the
encoded counts: HdrHistogram log version 1.3 with V2 compressed encoding, described at http://hdrhistogram.org.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nanet.result import outputs

HIGHEST_NS = 3600 * 10**9
SIGNIFICANT_DIGITS = 3
SUB_BUCKETS = 2048
COUNTS = 33 * SUB_BUCKETS // 2  # 2048 << 31 is the first power of two times 2048 above HIGHEST_NS
PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99_9": 99.9, "p99_99": 99.99}

_V2_COOKIE = 0x1C849303 | 0x10
_V2_COMPRESSED_COOKIE = 0x1C849304 | 0x10


class NativeHistogram(Protocol):
    """What the native module gives."""

    count: int
    min: int
    max: int
    mean: float

    def counts(self) -> Any: ...


def _lowest_values() -> NDArray[np.int64]:
    index = np.arange(COUNTS, dtype=np.int64)
    bucket = np.maximum(index // (SUB_BUCKETS // 2) - 1, 0)
    sub_bucket = np.where(bucket > 0, index % (SUB_BUCKETS // 2) + SUB_BUCKETS // 2, index)
    return np.left_shift(sub_bucket, bucket, dtype=np.int64)


LOWEST_NS = _lowest_values()
"""Lowest value of each bucket [ns], shape (33792,)."""
HIGHEST_OF_BUCKET_NS = np.append(LOWEST_NS[1:] - 1, LOWEST_NS[-1] + (1 << 31) - 1)
"""Highest value of each bucket [ns], shape (33792,)."""


class Histogram:
    """Counts of latencies [ns] with exact count, min, max and mean. Add two with `+`."""

    def __init__(self, counts: NDArray[np.int64] | None = None, *, low: int = 0, high: int = 0, mean: float = 0.0) -> None:
        self.counts = np.zeros(COUNTS, dtype=np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
        if self.counts.shape != (COUNTS,):
            raise ValueError(f"a histogram has {COUNTS} counts, not {self.counts.shape} (another layout) check its range")
        self._cumulative: NDArray[np.int64] | None = None  # made once: the live table asks for five percentiles each second
        self.count = int(self.counts.sum())
        self.min = int(low)
        self.max = int(high)
        self.mean = float(mean)

    @classmethod
    def from_native(cls, native: NativeHistogram) -> Histogram:
        """A copy of a native LatencyHistogram."""
        return cls(np.asarray(native.counts()).view(np.int64), low=native.min, high=native.max, mean=native.mean)

    @classmethod
    def from_values(cls, values_ns: Iterable[int] | NDArray[Any]) -> Histogram:
        """A histogram of these values [ns]."""
        values = np.asarray(list(values_ns) if not isinstance(values_ns, np.ndarray) else values_ns, dtype=np.int64)
        if values.size == 0:
            return cls()
        values = np.clip(values, 0, HIGHEST_NS)
        index = np.searchsorted(LOWEST_NS, values, side="right") - 1
        counts = np.bincount(index, minlength=COUNTS).astype(np.int64)
        return cls(counts, low=int(values.min()), high=int(values.max()), mean=float(values.mean()))

    def __add__(self, other: Histogram) -> Histogram:
        if not self.count or not other.count:
            return self if self.count else other
        mean = (self.mean * self.count + other.mean * other.count) / (self.count + other.count)
        return Histogram(self.counts + other.counts, low=min(self.min, other.min), high=max(self.max, other.max), mean=mean)

    def percentile(self, q: float) -> int:
        """The value [ns] that q per cent of all values do not exceed; the highest of its bucket, never above max."""
        if self.count == 0:
            return 0
        wanted = max(1, int(np.ceil(q / 100.0 * self.count - 1e-9)))
        if self._cumulative is None:
            self._cumulative = np.cumsum(self.counts)
        index = int(np.searchsorted(self._cumulative, wanted))
        return min(int(HIGHEST_OF_BUCKET_NS[index]), self.max)

    def summary_us(self) -> dict[str, float]:
        """Percentiles, mean, min and max in microseconds, under the names of the JSON output."""
        values = {name: self.percentile(q) / 1e3 for name, q in PERCENTILES.items()}
        return values | {"max": self.max / 1e3, "mean": self.mean / 1e3, "min": self.min / 1e3}

    def survival(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Latency [us] and the share of values at or above it, for each bucket with entries: the complementary cumulative."""
        used = np.flatnonzero(self.counts)
        if used.size == 0:
            return np.zeros(0), np.zeros(0)
        counts = self.counts[used]
        at_or_above = self.count - np.cumsum(counts) + counts
        values = np.minimum(LOWEST_NS[used], self.max) / 1e3
        values[-1] = self.max / 1e3
        return values, at_or_above / self.count

    def encode(self) -> str:
        """V2 compressed encoding in base64, as it stands in a log and in our JSON."""
        used = np.flatnonzero(self.counts)
        payload = _zigzag_counts(self.counts[: used[-1] + 1] if used.size else self.counts[:0])
        head = struct.pack(">iiiiqqd", _V2_COOKIE, len(payload), 0, SIGNIFICANT_DIGITS, 1, HIGHEST_NS, 1.0)
        packed = zlib.compress(head + payload, 6)
        return base64.b64encode(struct.pack(">ii", _V2_COMPRESSED_COOKIE, len(packed)) + packed).decode("ascii")

    @classmethod
    def decode(cls, text: str | None, exact_us: Mapping[str, float] | None = None) -> Histogram:
        """The histogram from `encode`; empty from None. exact_us: its `summary_us`, for the exact min, max and mean."""
        if not text:
            return cls()
        data = base64.b64decode(text)
        raw = zlib.decompress(data[8:])
        cookie, length, _, _, _, _, _ = struct.unpack(">iiiiqqd", raw[:40])
        if cookie != _V2_COOKIE:
            raise ValueError(f"cookie {cookie:#x} is unknown (not V2 encoding) encode it again")
        counts = _unzigzag(raw[40 : 40 + length])
        used = np.flatnonzero(counts)
        if used.size == 0:
            return cls()
        middle = (LOWEST_NS[used] + HIGHEST_OF_BUCKET_NS[used]) / 2
        mean = float(np.average(middle, weights=counts[used]))
        if exact_us:
            low, high = round(exact_us["min"] * 1e3), round(exact_us["max"] * 1e3)
            return cls(counts, low=low, high=high, mean=exact_us["mean"] * 1e3)
        return cls(counts, low=int(LOWEST_NS[used[0]]), high=int(HIGHEST_OF_BUCKET_NS[used[-1]]), mean=mean)


def write_hlog(path: Path, intervals: Sequence[tuple[str, float, float, Histogram]], note: str = "") -> None:
    """Writes an HdrHistogram log.

    path: file to (over)write.
    intervals: (tag, start, length, histogram) in seconds since the start of the run; a tag has no comma or space.
    note: a comment line.
    """
    lines = ["#[Histogram log format version 1.3]"]
    lines += [f"#[{note}]"] if note else []
    lines += ["#[Values are nanoseconds; Interval_Max is in microseconds]", "#[StartTime: 0.000 (seconds since epoch)]"]
    lines += ['"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"']
    for tag, start_s, length_s, histogram in intervals:
        prefix = f"Tag={tag}," if tag else ""
        lines.append(f"{prefix}{start_s:.3f},{length_s:.3f},{histogram.max / 1e3:.3f},{histogram.encode()}")
    outputs.write(path, ("\n".join(lines) + "\n").encode("ascii"))


def _zigzag_counts(counts: NDArray[np.int64]) -> bytes:
    out = bytearray()
    zeros = 0
    for count in counts.tolist():
        if count == 0:
            zeros += 1
            continue
        if zeros:
            _leb128(out, 2 * zeros - 1)  # zigzag of -zeros
            zeros = 0
        _leb128(out, 2 * count)
    if zeros:
        _leb128(out, 2 * zeros - 1)
    return bytes(out)


def _leb128(out: bytearray, value: int) -> None:
    for _ in range(8):  # the ninth byte of this variant carries eight bits
        if value < 0x80:
            out.append(value)
            return
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _unzigzag(data: bytes) -> NDArray[np.int64]:
    counts = np.zeros(COUNTS, dtype=np.int64)
    index = position = 0
    while position < len(data):
        value = shift = 0
        for byte_number in range(9):
            byte = data[position]
            position += 1
            value |= (byte if byte_number == 8 else byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if value & 1:
            index += (value + 1) >> 1
        else:
            counts[index] = value >> 1
            index += 1
    return counts
