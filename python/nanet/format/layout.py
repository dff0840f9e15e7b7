# SPDX-License-Identifier: Apache-2.0
"""The header of each variant of a declared format, for whoever shows, makes or dissects packets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nanet.config.components import Format, FormatField, FormatVariant

__all__ = ["Part", "Variant", "number", "parts_of", "variants_of", "width_of"]

WORD_BYTES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
OWN = ("payload", "events")


def number(text: str) -> int:
    """A constant of a declaration."""
    return int(text, 0) if text.startswith(("0x", "0X")) else int(text)


@dataclass(frozen=True)
class Part:
    """A field with where it is: at: an expression; None: it is the value of a tagged item."""

    name: str
    at: str | None
    word_bytes: int
    high: int
    low: int
    big: bool
    field: FormatField

    def limits(self) -> tuple[int, int]:
        """Least and most that it can be."""
        most = (1 << (self.high - self.low + 1)) - 1
        if self.field.equals is not None:
            return number(self.field.equals), number(self.field.equals)
        if self.field.below is not None:
            most = min(most, number(self.field.below) - 1)
        return (number(self.field.least) if self.field.least is not None else 0), most


@dataclass(frozen=True)
class Variant:
    """What the packets of one variant have, with what it takes from the format."""

    format: Format
    own: FormatVariant | None
    index: int

    def __getattr__(self, key: str) -> Any:
        """Of the variant, or else of the format."""
        said = getattr(self.own, key) if self.own is not None else None
        return said if said is not None else getattr(self.format, key)

    @property
    def payload_bytes(self) -> str | None:
        """The expression of the payload's length."""
        own = self.own.payload.bytes if self.own is not None else None
        return own if own is not None else self.format.payload.bytes

    @property
    def parts(self) -> list[Part]:
        """All fields of the header."""
        fields = [*self.format.header, *(self.own.header if self.own is not None else ())]
        return list(parts_of(self.format, fields))

    @property
    def when(self) -> dict[str, int]:
        """What its fields are."""
        return {name: number(text) for name, text in self.own.when.items()} if self.own is not None else {}


def parts_of(declared: Format, fields: Any) -> Iterator[Part]:
    """Fields with where they are."""
    for one in fields:
        big = (one.byte_order or declared.byte_order) == "big"
        if one.item is not None:
            items = declared.items
            assert items is not None
            high, low = one.bits or (items.value_bits[0] - items.value_bits[1], 0)
            first = items.value_bits[1]
            yield Part(one.name, None, WORD_BYTES[items.type], first + high, first + low, declared.byte_order == "big", one)
        else:
            word = WORD_BYTES[one.type]
            high, low = one.bits or (8 * word - 1, 0)
            yield Part(one.name, one.at, word, high, low, big, one)


def variants_of(declared: Format) -> list[Variant]:
    """Each variant; the format itself if it has none."""
    if not declared.variants:
        return [Variant(declared, None, 0)]
    return [Variant(declared, own, index) for index, own in enumerate(declared.variants)]


def width_of(part: Part) -> int:
    """In bits."""
    return part.high - part.low + 1
