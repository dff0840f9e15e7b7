# SPDX-License-Identifier: Apache-2.0
"""Frames as they stand on GMII: a byte a cycle, with the preamble before and error marks among them."""

from collections.abc import Iterable

from cocotbext.eth import GmiiFrame

PREAMBLE_BYTES, GAP_BYTES = 8, 12


def gmii_frame(frame: bytes, *, preamble_bytes: int = PREAMBLE_BYTES, error_at: Iterable[int] = ()) -> GmiiFrame:
    """frame: with its check sequence; preamble_bytes: 1 is the start-of-frame delimiter alone; error_at: places in the frame, those of the
    preamble below zero."""
    data = bytes([0x55] * (preamble_bytes - 1) + [0xD5]) + frame
    errors = [0] * len(data)
    for place in error_at:
        errors[preamble_bytes + place] = 1
    return GmiiFrame(data, errors)
