# SPDX-License-Identifier: Apache-2.0
"""The numbers that a declaration sees in a unit, as a numpy array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nanet.config.components import Format, FormatSamples

__all__ = ["SampleView", "sample_view"]

KINDS = {"unsigned": "u", "signed": "i", "float": "f"}


@dataclass(frozen=True)
class SampleView:
    """How the bytes of a unit are seen. dtype: None where numpy has none that fits, and numbers are unpacked, which copies."""

    dtype: np.dtype[Any] | None
    shape: tuple[int, ...]
    samples: FormatSamples | None
    big: bool

    def array(self, data: NDArray[np.uint8]) -> NDArray[Any]:
        """The numbers in `data`. No copy unless they have to be unpacked. Raises ValueError when they do not fit."""
        numbers = data.view(self.dtype) if self.dtype is not None else self._unpacked(data)
        return numbers.reshape(self.shape)

    def mask(self, size_bytes: int, present: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """True for each number of which a bit lies in a hole."""
        bits = self.samples.bits if self.samples is not None else 8
        missing = np.ones(size_bytes * 8 // bits, dtype=np.bool_)
        for begin, end in present.tolist():
            missing[-(-begin * 8 // bits) : end * 8 // bits] = False
        return missing.reshape(self.shape)

    def _unpacked(self, data: NDArray[np.uint8]) -> NDArray[Any]:
        assert self.samples is not None
        bits = self.samples.bits
        msb_first = self.big if bits % 8 == 0 else self.samples.order == "msb_first"
        width = next(width for width in (8, 16, 32, 64) if width >= bits)
        every = np.unpackbits(data, bitorder="big" if msb_first else "little")
        loose = every[: every.size // bits * bits].reshape(-1, bits)
        padded = np.zeros((len(loose), width), dtype=np.uint8)
        padded[:, slice(width - bits, None) if msb_first else slice(0, bits)] = loose
        packed = np.packbits(padded, axis=1, bitorder="big" if msb_first else "little")
        values = packed.view(np.dtype(f"{'>' if msb_first else '<'}u{width // 8}")).ravel().astype(f"u{width // 8}")
        if self.samples.kind == "unsigned":
            return values
        top = np.array(1 << (bits - 1), dtype=values.dtype)
        flipped = values if self.samples.kind == "offset_binary" else values ^ top
        signed: NDArray[Any] = (flipped - top).view(f"i{width // 8}")
        return signed


def sample_view(declared: Format) -> SampleView:
    """Of a format's units. The first dimension grows with the number of payloads in a unit."""
    samples = declared.payload.samples
    if samples is None:
        return SampleView(np.dtype(np.uint8), (-1,), None, False)
    big = (samples.byte_order or declared.byte_order) == "big"
    whole = samples.kind in KINDS and samples.bits in (8, 16, 32, 64)
    dtype = np.dtype(f"{'>' if big else '<'}{KINDS[samples.kind]}{samples.bits // 8}") if whole else None
    return SampleView(dtype, (-1, *samples.shape[1:]), samples, big)
