# SPDX-License-Identifier: Apache-2.0
"""nanet.wire.l0 against the vectors that the C++ tests read too, and against literal bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nanet.wire import ParseError, WireError, l0

VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "wire_l0_decision.txt"


def read_vectors() -> dict[str, tuple[dict[str, list[str]], bytes]]:
    """Values and payload by name; the file format is told at its head."""
    found: dict[str, tuple[dict[str, list[str]], bytes]] = {}
    name = ""
    for line in VECTORS.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            name = line[1 : line.index("]")]
            found[name] = ({}, b"")
            continue
        values, payload = found[name]
        key, value = line.split(" = ")
        if key in ("hex", "zeros"):
            found[name] = (values, payload + (bytes.fromhex(value) if key == "hex" else bytes(int(value))))
        else:
            values.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize("name", read_vectors())
def test_vector(name: str) -> None:
    values, payload = read_vectors()[name]
    expected = ParseError[values["expect"][0]]
    assert l0.check(payload) == expected
    if expected != ParseError.none:
        with pytest.raises(WireError):
            l0.parse(payload)
        return
    found = l0.parse(payload)
    assert found.source_sub_id == int(values["source_sub_id"][0], 0)
    assert found.first_trigger_number == int(values["first_trigger_number"][0], 0)
    assert len(found.entries) == int(values["entry_count"][0], 0)
    lines = [tuple(int(word, 0) for word in line.split()) for line in values.get("entry", [])]
    assert found.entries.tolist()[: len(lines)] == lines
    again = l0.build(found.entries, source_sub_id=found.source_sub_id, first_trigger_number=found.first_trigger_number)
    assert again == payload


def test_literal_bytes() -> None:
    entries = np.array([(0x01020304, 0x99, 0x83, 0xC0DE)], l0.ENTRY)
    built = l0.build(entries, source_sub_id=7, first_trigger_number=0x5512345678)
    assert built == bytes([0x78, 0x56, 0x34, 0x40, 16, 0, 1, 7, 4, 3, 2, 1, 0x99, 0x83, 0xDE, 0xC0])


def test_too_many_entries() -> None:
    with pytest.raises(ValueError, match="room for 183"):
        l0.build(np.zeros(184, l0.ENTRY), source_sub_id=0, first_trigger_number=0)
