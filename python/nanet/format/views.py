# SPDX-License-Identifier: Apache-2.0
"""The fields of a declared header, as numpy sees them: a structured dtype, and those of a few bits from their words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nanet.config.components import Format
from nanet.format.layout import parts_of, width_of

__all__ = ["field_of", "header_dtype"]


def header_dtype(declared: Format) -> np.dtype[Any]:
    """The fields that every packet has at the same place, as a structured dtype for `Completion.array` of packets that come as they are
    (protocol raw). Of a field of bits its whole word is there; `field_of` takes the bits."""
    fixed = [part for part in parts_of(declared, declared.header) if part.at is not None and part.at.strip().isdecimal()]
    if not fixed:
        raise ValueError("no field of the format has a fixed place (all are items, or at computed places) read packets one by one")
    return np.dtype(
        {
            "names": [part.name for part in fixed],
            "formats": [f"{'>' if part.big else '<'}u{part.word_bytes}" for part in fixed],
            "offsets": [int(str(part.at)) for part in fixed],
        }
    )


def field_of(declared: Format, records: NDArray[Any], name: str) -> NDArray[Any]:
    """A field of many packets, whose headers are `records` of `header_dtype`: no copy of a whole word, else its bits. Raises ValueError."""
    part = next((one for one in parts_of(declared, declared.header) if one.name == name), None)
    if part is None or name not in (records.dtype.names or ()):
        raise ValueError(f"no field '{name}' at a fixed place (there are {', '.join(records.dtype.names or ())}) name one of these")
    words: NDArray[Any] = records[name]
    if width_of(part) == 8 * part.word_bytes:
        return words
    bits: NDArray[Any] = words.astype(words.dtype.newbyteorder("=")) >> part.low & ((1 << width_of(part)) - 1)
    return bits
