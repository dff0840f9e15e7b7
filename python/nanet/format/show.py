# SPDX-License-Identifier: Apache-2.0
"""`nanet format show`: the header of each variant as a picture, four bytes a row, and what the fields are for."""

from __future__ import annotations

from collections.abc import Iterator

from nanet.config.formats import DeclaredFormat
from nanet.format.layout import Part, Variant, number, parts_of, variants_of, width_of

__all__ = ["lines"]

ROW_BYTES = 8
BYTE_LETTERS = 10
ROLES = ("header_bytes", "packet_bytes", "place", "packet_index", "unit_bytes", "unit_packets", "next_event")


def lines(declared: DeclaredFormat) -> Iterator[str]:
    """The picture, line by line."""
    said = declared.declaration
    yield f"{declared.name}: {said.about or 'no description'}"
    yield f"words are {said.byte_order}-endian" + "".join(
        f"; {key} {', '.join(values)}" for key, values in (("stream", said.stream), ("unit", said.unit)) if values
    )
    if said.optional_before is not None:
        yield from ("", f"in front, if it is there ({said.optional_before.bytes} bytes)")
        yield from _picture(list(parts_of(said, said.optional_before.header)))
    for variant in variants_of(said):
        yield ""
        if variant.own is not None:
            when = ", ".join(f"{name} = {value}" for name, value in variant.when.items())
            yield f"variant {variant.index}: {when or 'all others'}"
        yield from _picture(variant.parts)
        yield from _roles(variant)
    if said.time:
        yield f"time: {' + '.join(f'{one.field} x {one.unit}' for one in said.time)}"


def _picture(parts: list[Part]) -> Iterator[str]:
    """Rows of eight bytes with the words in them, then the bits of words that have several fields."""
    fixed = [part for part in parts if part.at is not None and part.at.isdigit()]
    words = sorted({(number(part.at or "0"), part.word_bytes) for part in fixed})
    ends = [(at, size) for at, size in words if not any((o, s) != (at, size) and o <= at and at + size <= o + s for o, s in words)]
    yield "  byte " + "".join(f"{byte:<{BYTE_LETTERS}}" for byte in range(ROW_BYTES)).rstrip()
    last = max((at + size for at, size in ends), default=0)
    for row in range(0, last, ROW_BYTES):
        cells, byte = "", row
        while byte < row + ROW_BYTES:
            word = next(((at, size) for at, size in ends if at <= byte < at + size), None)
            end = min(row + ROW_BYTES, word[0] + word[1] if word else byte + 1)
            names = [
                part.name for part in fixed if word is not None and number(part.at or "0") == word[0] and part.word_bytes == word[1]
            ]
            text = names[0] if len(names) == 1 else f"{len(names)} fields" if names else "-" if byte < last else ""
            cells += "|" + text[: (end - byte) * BYTE_LETTERS - 1].ljust((end - byte) * BYTE_LETTERS - 1)
            byte = end
        yield f"  {row:4} {cells}|"
    for part in parts:
        yield "       " + _said(part)


def _said(part: Part) -> str:
    place = f"byte {part.at}" if part.at is not None else f"item {part.field.item}"
    whole = part.low == 0 and part.high == 8 * part.word_bytes - 1
    bits = "" if whole or part.at is None else f", bits {part.high}..{part.low}"
    rules = [
        f"{text} {value}" + (f" ({number(value):#x})" if text == "=" and number(value) > 9 else "")
        for text, value in (("=", part.field.equals), (">=", part.field.least), ("<", part.field.below))
        if value is not None
    ]
    return f"{part.name:<16} {place}, {width_of(part)} bits{bits}" + (f"  {' and '.join(rules)}" if rules else "")


def _roles(variant: Variant) -> Iterator[str]:
    for key in ROLES:
        if (text := getattr(variant, key)) is not None:
            yield f"  {key:<14} {text}"
    if variant.payload_bytes is not None:
        yield f"  {'payload bytes':<14} {variant.payload_bytes}"
    samples = (variant.own or variant.format).payload.samples or variant.format.payload.samples
    if samples is not None:
        shape = f" [{', '.join(map(str, samples.shape))}]" if samples.shape else ""
        yield f"  {'samples':<14} {samples.bits} bits, {samples.kind}, {samples.order}{shape}"
    events = variant.events
    if events is not None:
        yield f"  events: {events.count} of them, each"
        yield from _picture(list(parts_of(variant.format, events.header)))
