# SPDX-License-Identifier: Apache-2.0
"""`nanet format dissector`: a Wireshark plug-in for the packets of a declared format. It shows fields and payload, and marks what is not allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nanet.config.formats import DeclaredFormat
from nanet.format.layout import Part, Variant, variants_of, width_of

__all__ = ["source"]

HEAD = """-- SPDX-License-Identifier: Apache-2.0
-- Wireshark dissector of {name}, made by nanet format dissector. {about}
-- tshark -X lua_script:FILE -d udp.port==PORT,{filter} ...; or "Decode As" in Wireshark. Wireshark 4.0 or newer.
local proto = Proto("{filter}", "{name}")
local fields = {{}}
local bad = ProtoExpert.new("{filter}.refused", "Refused", expert.group.MALFORMED, expert.severity.ERROR)
proto.experts = {{ bad }}

-- The bits [high, low] of a word, as UInt64: all of Lua's versions have it.
local function bits(range, little, low, count)
  local word = UInt64(0, 0)
  local first, last, step = 0, range:len() - 1, 1
  if little then first, last, step = range:len() - 1, 0, -1 end
  for k = first, last, step do word = word:lshift(8):bor(UInt64(range(k, 1):uint(), 0)) end
  local mask = UInt64(0, 0)
  for k = 0, count - 1 do mask = mask:bor(UInt64(1, 0):lshift(k)) end
  return word:rshift(low):band(mask)
end
local function whole(number) return number:tonumber() end
"""


def source(declared: DeclaredFormat) -> str:
    """The plug-in's text."""
    prefix = "nanet_" + re.sub(r"[^a-z0-9]", "_", declared.name.lower())
    return "".join(f"{line}\n" for line in _lines(declared, prefix))


def _lines(declared: DeclaredFormat, prefix: str) -> Iterator[str]:
    said = declared.declaration
    yield HEAD.format(name=declared.name, about=" ".join(said.about.split()), filter=prefix).rstrip()
    variants = variants_of(said)
    names = dict.fromkeys(part.name for variant in variants for part in variant.parts)
    for name in names:
        yield f'fields["{name}"] = ProtoField.uint64("{prefix}.{name}", "{name}", base.DEC_HEX)'
    yield f'fields["payload_bytes_"] = ProtoField.bytes("{prefix}.payload", "payload")'
    yield "local list = {}"
    yield "for _, one in pairs(fields) do table.insert(list, one) end"
    yield "proto.fields = list"
    yield "local variants = {"
    for variant in variants:
        yield from _variant(variant)
    yield "}"
    yield from _dissect(declared, prefix)


def _variant(variant: Variant) -> Iterator[str]:
    when = " and ".join(f"v.{name} == {value}" for name, value in variant.when.items()) or "true"
    yield "  { when = function(v) return " + when + " end,"
    yield f"    header = function(v) return {_lua(variant.header_bytes)} end,"
    payload = variant.payload_bytes
    yield f"    payload = function(v, rest) return {_lua(payload) if payload is not None else 'rest'} end,"
    yield "    fields = {"
    for part in variant.parts:
        yield "      " + _field(part)
    yield "    } },"


def _field(part: Part) -> str:
    least, most = part.limits()
    high = f"{most}" if most < 2**53 else "math.huge"
    place = f"at = function(v) return {_lua(part.at)} end" if part.at is not None else f"item = {part.field.item}"
    little = "false" if part.big else "true"
    return (
        f'{{ name = "{part.name}", {place}, bytes = {part.word_bytes}, little = {little}, low = {part.low}, count = {width_of(part)},'
        f" least = {least if least < 2**53 else 0}, most = {high} }},"
    )


def _lua(text: str) -> str:
    """An expression with its fields as members of v."""
    return re.sub(r"\b([A-Za-z_]\w*)\b", r"v.\1", text)


def _dissect(declared: DeclaredFormat, prefix: str) -> Iterator[str]:
    said = declared.declaration
    before = said.optional_before
    yield "function proto.dissector(buffer, info, tree)"
    yield f'  info.cols.protocol = "{declared.name}"'
    yield "  local packet, v = buffer, {}"
    if before is not None:
        tests = [
            f"whole(bits(buffer({one.at}, {int(one.type[1:]) // 8}), {'true' if (one.byte_order or said.byte_order) == 'little' else 'false'},"
            f" {one.bits[1] if one.bits else 0}, {(one.bits[0] - one.bits[1] + 1) if one.bits else int(one.type[1:])})) == {one.equals}"
            for one in before.header
            if one.equals is not None
        ]
        yield f"  if buffer:len() > {before.bytes} and {' and '.join(tests)} then packet = buffer({before.bytes}):tvb() end"
    yield "  local top = tree:add(proto, packet())"
    items = said.items
    at, count = (items.at, _lua(items.count)) if items is not None else (0, "0")
    low, width = (items.id_bits[1], items.id_bits[0] - items.id_bits[1] + 1) if items is not None else (0, 1)
    size = int(items.type[1:]) // 8 if items is not None else 8
    little = "true" if said.byte_order == "little" else "false"
    yield f"""  -- A field, shown; false where the packet ends before it.
  local function show(one, place)
    if place < 0 or place + one.bytes > packet:len() then return false end
    local range = packet(place, one.bytes)
    local value = bits(range, one.little, one.low, one.count)
    v[one.name] = whole(value)
    local item = top:add(fields[one.name], range, value)
    if v[one.name] < one.least or v[one.name] > one.most then item:add_proto_expert_info(bad, one.name .. " is not allowed") end
    return true
  end
  local function find(one)
    for k = 0, {count} - 1 do
      local place = {at} + {size} * k
      if place + {size} > packet:len() then return end
      if whole(bits(packet(place, {size}), {little}, {low}, {width})) == one.item then return show(one, place) end
    end
  end
  -- Which variant: its own fields are looked at only after those that it is chosen by.
  local chosen
  for _, one in ipairs(variants) do
    local probe = {{}}
    for _, field in ipairs(one.fields) do
      local good, place = pcall(function() return field.at(probe) end)
      if good and field.at and place >= 0 and place + field.bytes <= packet:len() then
        probe[field.name] = whole(bits(packet(place, field.bytes), field.little, field.low, field.count))
      end
    end
    if one.when(probe) then chosen = one; break end
  end
  if chosen == nil then
    top:add_proto_expert_info(bad, "it fits no variant")
    return packet:len()
  end
  for _, one in ipairs(chosen.fields) do
    if one.item then
      find(one)
      if v[one.name] == nil then v[one.name] = 0 end
    elseif not show(one, one.at(v)) then
      top:add_proto_expert_info(bad, "the packet ends within its header")
      return packet:len()
    end
  end
  local header = chosen.header(v)
  local size = chosen.payload(v, packet:len() - header)
  if header > packet:len() or size < 0 or header + size > packet:len() then
    top:add_proto_expert_info(bad, "the payload does not lie in the packet")
  elseif size > 0 then
    top:add(fields["payload_bytes_"], packet(header, size))
  end
  info.cols.info = string.format("{declared.name}: %d bytes of payload", math.max(size, 0))
  return packet:len()
end
DissectorTable.get("udp.port"):add_for_decode_as(proto)"""
