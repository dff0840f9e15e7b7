-- SPDX-License-Identifier: Apache-2.0
-- Wireshark dissectors of the packets that nanet receives and sends: MGP, M2EGP, MTP, L0 decisions and MEP with TDC words.
--
-- Copy this one file into the folder that Help > About Wireshark > Folders calls "Personal Lua Plugins", or name it on the command
-- line: tshark -X lua_script:nanet.lua. docs/wireshark.md of nanet says what is shown; docs/formats.md says what the bytes mean.
--
--   protocol     filter         UDP ports (a preference)
--   MGP          nanet.mgp      6200
--   M2EGP        nanet.m2egp    none
--   MTP          nanet.mtp      6300, 6400
--   L0 decision  nanet.l0       6500
--   MEP          nanet.mep      none
--
-- Any port can be given to a protocol with "Decode As". Nothing is guessed from the content unless the preference "heuristic" of MGP or
-- M2EGP is switched on. A packet is judged as nanet's own readers judge it: by the same rules in the same order.
--
-- It needs Wireshark 4.0 or newer and keeps to what Lua 5.2 to 5.4 have in common: no bit operators, no integer division.

local TIMESTAMP_NS = 24.951059536
local TICK_NUMERATOR = 1559441221 -- a tick, 1/256 of a timestamp, is exactly 1559441221 / 16e9 ns
local TICK_DENOMINATOR = 16000000000
local MASK_32 = 4294967296
local WINDOW_PACKETS = 1024 -- packets known by themselves, and the largest gap that is believed: as in nanet's sequence tracker
local GAP_PACKETS_MAX = 67108864
local PMS_PER_BOARD = 488 -- ids 488..511 of a board's 512 have no photomultiplier

local SOURCES = {
  [0x04] = "CEDAR", [0x08] = "GTK", [0x0C] = "CHANTI", [0x10] = "LAV", [0x14] = "STRAW", [0x18] = "CHOD", [0x1C] = "RICH",
  [0x20] = "NewCHOD", [0x24] = "LKr", [0x28] = "MUV1", [0x2C] = "MUV2", [0x30] = "MUV3", [0x34] = "SAC", [0x3C] = "HASC",
  [0x40] = "L0TP",
}
local LAYOUTS = { [1] = "padded", [2] = "packed", [3] = "merged" }
local REFUSALS = { [0] = "nothing", [1] = "length", [2] = "format", [3] = "checksum" }
local GOOD, BAD_LENGTH, BAD_FORMAT, BAD_CHECKSUM = 0, 1, 2, 3
local CHECKSUM_STATES = { [0] = "bad", [1] = "good", [2] = "not verified" }
local EDGES = { [4] = "leading edge", [5] = "trailing edge" }

-- --- numbers in a payload, which is a Lua string; offsets count from 0 ------------------------------------------------------------

local function u8(raw, offset) return raw:byte(offset + 1) end
local function u16(raw, offset)
  local a, b = raw:byte(offset + 1, offset + 2)
  return a + 256 * b
end
local function u24(raw, offset)
  local a, b, c = raw:byte(offset + 1, offset + 3)
  return a + 256 * b + 65536 * c
end
local function u32(raw, offset) return u16(raw, offset) + 65536 * u16(raw, offset + 2) end
local function bits(value, first, count) return math.floor(value / 2 ^ first) % 2 ^ count end
local function source_name(id) return SOURCES[id] or string.format("source 0x%02x", id) end
local function plural(count, word) return string.format("%d %s%s", count, word, count == 1 and "" or "s") end

-- Fletcher-32 of the payload without bytes 12..15, as 16-bit little-endian words. Doubles hold both sums exactly up to 500 kB.
local checked, checked_sum -- the last payload asked for
local function checksum_of(raw)
  if raw == checked then return checked_sum end
  local first, second = 0, 0
  for offset = 1, #raw - 1, 2 do
    if offset ~= 13 and offset ~= 15 then
      local low, high = raw:byte(offset, offset + 1)
      first = first + low + 256 * high
      second = second + first
    end
  end
  checked, checked_sum = raw, (second % 65535) * 65536 + first % 65535
  return checked_sum
end

-- Time since timestamp 0, rounded to the nearest nanosecond. In parts, so that doubles hold every number exactly.
local function time_of(timestamp, fine_time)
  local ticks = timestamp * 256 + fine_time
  local low = math.fmod(ticks, 262144)
  local high = (ticks - low) / 262144 * TICK_NUMERATOR
  local rest = math.fmod(high, TICK_DENOMINATOR)
  local below = rest * 262144 + low * TICK_NUMERATOR + TICK_DENOMINATOR / 2
  local ns = (high - rest) / TICK_DENOMINATOR * 262144 + (below - math.fmod(below, TICK_DENOMINATOR)) / TICK_DENOMINATOR
  local fraction = math.fmod(ns, 1000000000)
  return NSTime.new(math.floor((ns - fraction) / 1000000000), math.floor(fraction))
end

-- --- what the protocols share: fields, expert infos, preferences, gaps ---------------------------------------------------------------

local protocols = {}

-- what: name (of the filter, below "nanet."), short, title, ports, header_bytes, fields(prefix) giving a table of ProtoFields,
-- check(p, raw) giving why nanet refuses a payload, prefs. `show` is set later, see dissect().
local function new_protocol(what)
  local p, prefix = what, "nanet." .. what.name
  p.proto, p.fields, p.sources, p.found, p.piece = Proto.new(prefix, p.title), p.fields(prefix), {}, {}, 0
  p.fields.refused = ProtoField.uint8(prefix .. ".refused", "Refused for", base.DEC, REFUSALS, 0, "Why nanet refuses this packet")
  p.proto.fields = p.fields
  local function expert_info(what, text, group, severity)
    return ProtoExpert.new(prefix .. "." .. what, text, expert.group[group], expert.severity[severity])
  end
  p.experts = {
    [BAD_LENGTH] = expert_info("bad_length", "nanet refuses this packet for its length", "MALFORMED", "ERROR"),
    [BAD_FORMAT] = expert_info("bad_format", "nanet refuses this packet for its format", "PROTOCOL", "ERROR"),
    [BAD_CHECKSUM] = expert_info("bad_checksum", "nanet refuses this packet for its checksum", "CHECKSUM", "ERROR"),
    cut = expert_info("cut", "Captured in part only: not judged", "UNDECODED", "NOTE"),
    gap = expert_info("gap", "Missing before this packet", "SEQUENCE", "WARN"),
    duplicate = expert_info("duplicate", "Came before", "SEQUENCE", "NOTE"),
    reordered = expert_info("reordered", "Came late: a later one came first", "SEQUENCE", "NOTE"),
    restart = expert_info("restart", "The numbers start anew without a marker", "SEQUENCE", "NOTE"),
    data = expert_info("bad_data", "Data that cannot be read", "UNDECODED", "WARN"),
  }
  local listed = {}
  for _, info in pairs(p.experts) do listed[#listed + 1] = info end
  p.proto.experts = listed

  local example = "UDP ports whose packets are " .. p.short .. ", as in 6200,6210-6213"
  p.proto.prefs.ports = Pref.range("UDP ports", p.ports, example, 65535)
  for name, pref in pairs(p.prefs or {}) do p.proto.prefs[name] = Pref.bool(pref[1], pref[2], pref[3]) end
  local udp, set_ports = DissectorTable.get("udp.port"), ""
  function p.apply_ports()
    local wanted = tostring(p.proto.prefs.ports)
    if wanted == set_ports then return end
    if set_ports ~= "" then udp:remove(set_ports, p.proto) end
    if wanted ~= "" then udp:add(wanted, p.proto) end
    set_ports = wanted
  end
  p.proto.prefs_changed = p.apply_ports
  function p.proto.init() p.sources, p.found = {}, {} end
  protocols[#protocols + 1] = p
  return p
end

local function said(tree, field, range, value) return tree:add(field, range, value):set_generated() end

-- The item "refused", and the expert info that goes with it. code nil: captured in part.
local function show_judgement(p, tree, range, code, why)
  if code == nil then return tree:add_proto_expert_info(p.experts.cut, "Captured in part only (" .. why .. "): not judged") end
  local item = said(tree, p.fields.refused, range, code)
  if code ~= GOOD then item:add_proto_expert_info(p.experts[code], "nanet refuses this packet for its " .. REFUSALS[code] .. ": " .. why) end
end

local function has_port(p, port)
  for first, last in tostring(p.proto.prefs.ports):gmatch("(%d+)%-?(%d*)") do
    if port >= tonumber(first) and port <= (tonumber(last) or tonumber(first)) then return true end
  end
  return false
end

-- Wireshark also asks by the source port. A packet from a port of ours to a port of another of these protocols is the other's.
local function is_of_another(p, pinfo)
  if not has_port(p, pinfo.src_port) or has_port(p, pinfo.dst_port) then return false end
  for _, other in ipairs(protocols) do
    if other ~= p and has_port(other, pinfo.dst_port) then return true end
  end
  return false
end

-- One packet. p.show(top, tvb, raw, pinfo, code, why) makes the items of one with a whole header, code being nil when it was
-- captured in part; it returns what the packet list says, and may return another code and why.
local function show_packet(p, tvb, raw, pinfo, tree, cut_to)
  local top, text = tree:add(p.proto, tvb()), p.short
  local code, why = p.check(p, raw)
  if cut_to then code, why = nil, #raw .. " of " .. cut_to .. " bytes" end
  if #raw >= p.header_bytes then
    local new_code, new_why
    text, new_code, new_why = p.show(top, tvb, raw, pinfo, code, why)
    if new_code then code, why = new_code, new_why end
  end
  show_judgement(p, top, tvb(), code, why)
  text = text .. (code == nil and " [cut]" or code ~= GOOD and " [refused: " .. REFUSALS[code] .. "]" or "")
  top:append_text(", " .. text)
  return text
end

-- A capture on a host may hold several packets of one size in one, the last perhaps shorter: the kernel or the NIC parts or joins them
-- elsewhere (GSO, GRO). Returns that size; nil when this is no such super-packet. In one that could be a packet all pieces must be good.
local function super_packet(p, raw)
  local bytes = not p.is_good(p, raw) and p.piece_bytes and p.piece_bytes(p, raw)
  if not bytes or bytes >= #raw then return nil end
  for offset = #raw > p.bytes_max and #raw or bytes, #raw - 1, bytes do
    if not p.is_good(p, raw:sub(offset + 1, offset + bytes)) then return nil end
  end
  return bytes
end

local function dissect(p, tvb, pinfo, tree)
  local raw, reported = tvb:raw(), tvb:reported_len()
  pinfo.cols.protocol = p.short
  p.piece = 0
  local bytes = reported == #raw and super_packet(p, raw) or nil
  if not bytes then
    pinfo.cols.info = show_packet(p, tvb, raw, pinfo, tree, reported > #raw and reported or nil)
    return
  end
  local first
  for offset = 0, #raw - 1, bytes do
    local range = tvb(offset, math.min(bytes, #raw - offset))
    local text = show_packet(p, range:tvb(), raw:sub(offset + 1, offset + bytes), pinfo, tree)
    first = first or text
    p.piece = p.piece + 1
  end
  pinfo.cols.info = plural(p.piece, "packet") .. " in one, the first: " .. first
end

local function conversation(pinfo, source_id, sub_id)
  return table.concat({ tostring(pinfo.src), pinfo.src_port, tostring(pinfo.dst), pinfo.dst_port, source_id, sub_id }, " ")
end

-- A frame holds one packet, or the pieces of a super-packet.
local function packet_key(p, pinfo) return pinfo.number * 65536 + p.piece end

-- Where a good packet stands among those of its source: {kind, missing, previous frame, frame it repeats}. Numbers count modulo
-- `modulus`; `count` is by how many this packet moves them on (0: a marker). Packets are looked at once, in the order of the file.
local function place(p, pinfo, key, number, count, modulus, marker)
  if pinfo.visited then return p.found[packet_key(p, pinfo)] or {} end
  local s = p.sources[key]
  local found = { previous = s and s.frame }
  if not s then
    s = { next = number, seen = {} }
    p.sources[key] = s
  end
  local ahead, behind = (number - s.next) % modulus, (s.next - number) % modulus
  if marker == "start" then
    if s.ended or behind > WINDOW_PACKETS then s.next, s.seen = number, {} end -- else a repeated one that packets overtook
    s.ended = false
  elseif ahead <= GAP_PACKETS_MAX and ahead * 2 < modulus then
    if ahead > 0 then found.kind, found.missing = "gap", ahead end
    s.next, s.ended = (number + count) % modulus, marker == "end"
  elseif marker == nil and behind <= WINDOW_PACKETS then
    local seen = s.seen[number % WINDOW_PACKETS]
    local again = seen and seen.number == number
    found.kind, found.repeats = again and "duplicate" or "reordered", again and seen.frame or nil
  elseif marker == nil then
    found.kind = "restart"
    s.next, s.seen, s.ended = (number + count) % modulus, {}, false
  end
  if marker == nil and found.kind ~= "duplicate" then
    s.seen[number % WINDOW_PACKETS] = { number = number, frame = pinfo.number }
  end
  s.frame = pinfo.number
  p.found[packet_key(p, pinfo)] = found
  return found
end

-- Items and expert info of what place() found. Returns what the packet list says of it.
local function show_place(p, tree, range, item, found, word)
  local fields = p.fields
  if found.previous then said(tree, fields.previous, range, found.previous) end
  if found.kind == "gap" then
    said(tree, fields.missing, range, found.missing)
    item:add_proto_expert_info(p.experts.gap, plural(found.missing, word) .. " missing before this packet")
  elseif found.kind == "duplicate" then
    said(tree, fields.repeats, range, found.repeats)
    item:add_proto_expert_info(p.experts.duplicate, "Came before, in frame " .. found.repeats)
  elseif found.kind then
    item:add_proto_expert_info(p.experts[found.kind])
  end
  return found.kind == "gap" and string.format(" [%.0f missing before]", found.missing) or found.kind and " [" .. found.kind .. "]" or ""
end

local function add_place_fields(f, prefix)
  f.missing = ProtoField.uint32(prefix .. ".missing", "Missing before this packet", base.DEC)
  f.previous = ProtoField.framenum(prefix .. ".previous_frame", "Previous packet of this source")
  f.repeats = ProtoField.framenum(prefix .. ".repeats_frame", "Came before in")
end

-- --- MGP and M2EGP ---------------------------------------------------------------------------------------------------------------------

local function mgp_fields(prefix)
  local f = {}
  local function add(name, kind, ...) f[name] = ProtoField[kind](prefix .. "." .. name, ...) end
  local yes = { "yes", "no" }
  add("source_id", "uint8", "Source ID", base.HEX, SOURCES)
  add("source_sub_id", "uint8", "Source sub-ID", base.DEC)
  add("format", "uint8", "Format", base.HEX)
  add("layout", "uint8", "Layout", base.DEC, LAYOUTS, 0x0F)
  add("run_start", "bool", "Start of run", 8, yes, 0x10)
  add("run_end", "bool", "End of run", 8, yes, 0x20)
  add("reserved", "uint8", "Always zero", base.HEX, nil, 0xC0)
  add("event_count", "uint8", "Events", base.DEC)
  add("sequence", "uint32", "Sequence", base.DEC)
  add("send_time_ns", "uint32", "Send time", base.UNIT_STRING, { " ns" }, 0, "Sender's CLOCK_MONOTONIC, modulo 2^32")
  add("checksum", "uint32", "Checksum", base.HEX)
  f.checksum_status = ProtoField.uint8(prefix .. ".checksum.status", "Checksum status", base.DEC, CHECKSUM_STATES)
  f.checksum_calculated = ProtoField.uint32(prefix .. ".checksum_calculated", "Calculated checksum", base.HEX)
  add("next_event_number", "uint64", "Number of the next event", base.DEC)
  add("run_events", "uint64", "Events of this run", base.DEC)
  add("event", "none", "Event")
  local e = prefix .. ".event"
  f.event_timestamp = ProtoField.uint32(e .. ".timestamp", "Timestamp", base.HEX_DEC, nil, 0, "In units of 24.951059536 ns")
  f.event_fine_time = ProtoField.uint8(e .. ".fine_time", "Fine time", base.DEC, nil, 0, "1/256 of a timestamp, 97.465 ps")
  f.event_time = ProtoField.relative_time(e .. ".time", "Time since timestamp 0")
  f.event_hit_count = ProtoField.uint8(e .. ".hit_count", "Hits", base.DEC)
  f.event_number = ProtoField.uint16(e .. ".number", "Event number", base.DEC, nil, 0, "Of this source since start of run, modulo 65536")
  add("hit", "uint16", "Hit", base.HEX)
  local h = prefix .. ".hit"
  f.hit_id = ProtoField.uint16(h .. ".id", "PM id in the board", base.DEC)
  f.hit_channel = ProtoField.uint16(h .. ".channel", "Channel", base.DEC, nil, 0x07FF)
  f.hit_channel_made = ProtoField.uint16(h .. ".channel", "Channel", base.DEC)
  f.hit_board = ProtoField.uint8(h .. ".board", "Board", base.DEC)
  f.hit_time = ProtoField.int16(h .. ".time", "Time (2/256 of a timestamp)", base.DEC, nil, 0xF800)
  f.hit_time_ns = ProtoField.float(h .. ".time_ns", "Time relative to the event [ns]")
  add("unused", "bytes", "Unused")
  add_place_fields(f, prefix)
  return f
end

local function data_bytes(layout, hit_count) -- of an event's hits
  return layout == 1 and 64 or layout == 2 and math.ceil(9 * hit_count / 8) or 2 * hit_count
end
local function hit_limit(layout) return layout == 1 and 32 or layout == 2 and 255 or 128 end

local function check_mgp_events(raw, layout, event_count)
  if layout == 1 and #raw ~= 1168 then return BAD_LENGTH, "a padded packet has 1168 bytes, not " .. #raw end
  if layout == 1 and event_count > 16 then return BAD_FORMAT, "a padded packet has 16 events at most, not " .. event_count end
  local offset, many = 16, nil
  for i = 0, event_count - 1 do
    if #raw - offset < 8 then return BAD_LENGTH, "event " .. i .. " is not inside" end
    local hit_count = u8(raw, offset + 5)
    offset = offset + 8 + data_bytes(layout, hit_count)
    if offset > #raw then return BAD_LENGTH, "event " .. i .. " is not inside" end
    if hit_count > hit_limit(layout) then many = many or string.format("event %d has %d hits", i, hit_count) end
  end
  if many then return BAD_FORMAT, many .. ", at most " .. hit_limit(layout) .. " are allowed" end
  return GOOD
end

-- All but the checksum.
local function check_mgp(p, raw)
  if #raw < 16 or #raw > p.bytes_max or #raw % 2 == 1 then
    return BAD_LENGTH, "16 to " .. p.bytes_max .. " bytes and an even number are allowed, not " .. #raw
  end
  local format, event_count = u8(raw, 2), u8(raw, 3)
  local layout, run_bits = format % 16, math.floor(format / 16)
  if not p.layouts[layout] then
    local other = layout >= 1 and layout <= 3 and "; this looks like " .. (layout == 3 and "M2EGP" or "MGP") or ""
    return BAD_FORMAT, "layout " .. layout .. " is not one of " .. p.short .. other
  end
  if run_bits > 3 then return BAD_FORMAT, "bit 6 or 7 is set" end
  if layout == 2 and u8(raw, 1) > 3 then return BAD_FORMAT, "packed, and the sub-ID is no board 0 to 3" end
  if event_count == 0 then
    if run_bits ~= 1 and run_bits ~= 2 then return BAD_FORMAT, "no event, and not exactly one of start and end of run" end
    if #raw ~= 24 then return BAD_LENGTH, "a run marker has 24 bytes, not " .. #raw end
    return GOOD
  end
  return check_mgp_events(raw, layout, event_count)
end

local function is_good_mgp(p, raw) return check_mgp(p, raw) == GOOD and checksum_of(raw) == u32(raw, 12) end

-- Length of the packet that a super-packet begins with: the one whose checksum is right.
local function first_mgp_bytes(p, raw)
  if #raw < 24 then return nil end
  local first, second, wanted = 0, 0, u32(raw, 12)
  for offset = 1, math.min(#raw, p.bytes_max) - 1, 2 do
    if offset ~= 13 and offset ~= 15 then
      local low, high = raw:byte(offset, offset + 1)
      first = first + low + 256 * high
      second = second + first
      local right = (second % 65535) * 65536 + first % 65535 == wanted
      if right and check_mgp(p, raw:sub(1, offset + 1)) == GOOD then return offset + 1 end
    end
  end
end

local function mgp_protocol(name, short, title, ports, bytes_max, layouts)
  return new_protocol({
    name = name, short = short, title = title, ports = ports, header_bytes = 16, fields = mgp_fields, check = check_mgp,
    is_good = is_good_mgp, piece_bytes = first_mgp_bytes, bytes_max = bytes_max, layouts = layouts,
    prefs = {
      hits = { "Show hits", true, "An item for each hit, channel and time in it. Switch it off to open large files faster." },
      checksum = { "Verify checksum", true, "Calculate the checksum of each packet and compare" },
      heuristic = { "Heuristic", false, "Look for such packets on every UDP port: those whose checksum is right" },
    },
  })
end
local mgp = mgp_protocol("mgp", "MGP", "MGP, packets of a RICH readout board", "6200", 1472, { [1] = true, [2] = true })
local m2egp = mgp_protocol("m2egp", "M2EGP", "M2EGP, packets of merged events", "", 8972, { [3] = true })

local function hit_text(channel)
  local board, id = math.floor(channel / 512), channel % 512
  return string.format("channel %d (board %d, id %d%s)", channel, board, id, id >= PMS_PER_BOARD and ", no photomultiplier" or "")
end

local function show_wide_hits(f, tree, tvb, raw, offset, hit_count)
  for i = 0, hit_count - 1 do
    local range, hit = tvb(offset + 2 * i, 2), u16(raw, offset + 2 * i)
    local channel, time = hit % 2048, math.floor(hit / 2048)
    if time >= 16 then time = time - 32 end
    local ns = time * 2 * TIMESTAMP_NS / 256
    local item = tree:add_le(f.hit, range)
    item:set_text(string.format("Hit %d: %s, %+.3f ns", i, hit_text(channel), ns))
    item:add_le(f.hit_channel, range)
    said(item, f.hit_board, range, math.floor(channel / 512))
    said(item, f.hit_id, range, channel % 512)
    item:add_le(f.hit_time, range)
    said(item, f.hit_time_ns, range, ns)
  end
end

local function show_packed_hits(f, tree, tvb, raw, offset, hit_count, board)
  for i = 0, hit_count - 1 do
    local at = offset + math.floor(9 * i / 8)
    local id = bits(u16(raw, at), 9 * i % 8, 9) -- nine bits always reach into a second byte
    local channel = board * 512 + id
    local range = tvb(at, 2)
    local item = tree:add(f.hit_id, range, id)
    item:set_text(string.format("Hit %d: %s", i, hit_text(channel)))
    said(item, f.hit_channel_made, range, channel)
    said(item, f.hit_board, range, board)
  end
end

-- Events as far as they lie in the packet. Returns how many hits they have and where they end.
local function show_mgp_events(p, tree, tvb, raw, layout)
  local f, offset, hits = p.fields, 16, 0
  for i = 0, u8(raw, 3) - 1 do
    if #raw - offset < 8 then break end
    local hit_count = u8(raw, offset + 5)
    local bytes = data_bytes(layout, hit_count)
    if offset + 8 + bytes > #raw then break end
    local shown = math.min(hit_count, layout == 1 and 32 or 255)
    local event = tree:add(f.event, tvb(offset, 8 + bytes))
    event:set_text(string.format("Event %d: number %d, %s", i, u16(raw, offset + 6), plural(hit_count, "hit")))
    event:add_le(f.event_timestamp, tvb(offset, 4)):append_text(" x 24.951059536 ns")
    event:add_le(f.event_fine_time, tvb(offset + 4, 1)):append_text(" / 256 of it")
    said(event, f.event_time, tvb(offset, 5), time_of(u32(raw, offset), u8(raw, offset + 4)))
    event:add_le(f.event_hit_count, tvb(offset + 5, 1))
    event:add_le(f.event_number, tvb(offset + 6, 2))
    if p.proto.prefs.hits and layout == 2 then
      show_packed_hits(f, event, tvb, raw, offset + 8, shown, u8(raw, 1) % 4)
    elseif p.proto.prefs.hits then
      show_wide_hits(f, event, tvb, raw, offset + 8, shown)
    end
    if layout == 1 and shown < 32 then event:add(f.unused, tvb(offset + 8 + 2 * shown, 64 - 2 * shown)) end
    hits, offset = hits + hit_count, offset + 8 + bytes
  end
  return hits, offset
end

local function show_mgp_checksum(p, tree, tvb, raw, cut)
  local f, range = p.fields, tvb(12, 4)
  local item = tree:add_le(f.checksum, range)
  if cut or not p.proto.prefs.checksum then
    said(tree, f.checksum_status, range, 2)
    return true
  end
  local calculated = checksum_of(raw)
  local right = calculated == u32(raw, 12)
  item:append_text(right and " (correct)" or string.format(" (wrong, should be 0x%08x)", calculated))
  said(tree, f.checksum_status, range, right and 1 or 0)
  said(tree, f.checksum_calculated, range, calculated)
  return right, calculated
end

-- Returns the item of the sequence, and whether the checksum is right (or was not looked at) and what it should be.
local function show_mgp_header(p, tree, tvb, raw, cut)
  local f = p.fields
  tree:add(f.source_id, tvb(0, 1))
  tree:add(f.source_sub_id, tvb(1, 1))
  local format = tree:add(f.format, tvb(2, 1))
  for _, name in ipairs({ "layout", "run_start", "run_end", "reserved" }) do format:add(f[name], tvb(2, 1)) end
  tree:add(f.event_count, tvb(3, 1))
  local sequence = tree:add_le(f.sequence, tvb(4, 4))
  tree:add_le(f.send_time_ns, tvb(8, 4))
  return sequence, show_mgp_checksum(p, tree, tvb, raw, cut)
end

-- Events between the start marker and the end marker of a run, where both were captured. 64-bit numbers as in the packet.
local function count_run(p, pinfo, key, marker, number)
  local found = p.found[packet_key(p, pinfo)]
  if pinfo.visited then return found and found.run_events end
  local s = p.sources[key]
  if marker == "start" then s.run_begin = number end
  local events = marker == "end" and s.run_begin and number - s.run_begin or nil
  found.run_events = events
  return events
end

local function show_marker(p, top, tvb, raw, pinfo, good, marker)
  local text = marker .. " of run"
  if #raw < 24 then return text end
  top:add_le(p.fields.next_event_number, tvb(16, 8))
  local number = tvb(16, 8):le_uint64()
  text = text .. ", next event " .. tostring(number)
  local events = good and count_run(p, pinfo, conversation(pinfo, u8(raw, 0), u8(raw, 1)), marker, number)
  if not events then return text end
  said(top, p.fields.run_events, tvb(16, 8), events)
  return text .. ", " .. tostring(events) .. " events sent"
end

local function show_mgp(p, top, tvb, raw, pinfo, code, why)
  local format, event_count = u8(raw, 2), u8(raw, 3)
  local layout, marker = format % 16, nil
  if event_count == 0 then marker = bits(format, 4, 1) == 1 and "start" or "end" end
  local sequence, right, should = show_mgp_header(p, top, tvb, raw, code == nil)
  if code == GOOD and not right then code, why = BAD_CHECKSUM, string.format("it is not 0x%08x", should) end
  local standing = ""
  if code == GOOD then
    local key = conversation(pinfo, u8(raw, 0), u8(raw, 1))
    local found = place(p, pinfo, key, u32(raw, 4), marker and 0 or 1, MASK_32, marker)
    standing = show_place(p, top, tvb(4, 4), sequence, found, "packet")
  end
  local text = plural(event_count, "event")
  if marker then
    text = show_marker(p, top, tvb, raw, pinfo, code == GOOD, marker)
  else
    local hits, used = 0, 16
    if LAYOUTS[layout] then hits, used = show_mgp_events(p, top, tvb, raw, layout) end
    if used < #raw then top:add(p.fields.unused, tvb(used)) end
    text = text .. ", " .. plural(hits, "hit")
  end
  local head = string.format("%s %s %d", LAYOUTS[layout] or "layout " .. layout, source_name(u8(raw, 0)), u8(raw, 1))
  return string.format("%s: sequence %.0f, %s%s", head, u32(raw, 4), text, standing), code, why
end

for _, p in ipairs({ mgp, m2egp }) do
  function p.show(...) return show_mgp(p, ...) end
  p.proto:register_heuristic("udp", function(tvb, pinfo, tree)
    if not p.proto.prefs.heuristic or tvb:len() < 16 or tvb:reported_len() > tvb:len() then return false end
    local raw = tvb:raw()
    if not is_good_mgp(p, raw) and not super_packet(p, raw) then return false end
    dissect(p, tvb, pinfo, tree)
    return true
  end)
end

-- --- MTP -----------------------------------------------------------------------------------------------------------------------------

-- MTP and L0 decisions say their length, and have no checksum.
local function is_good_by_format(p, raw) return p.check(p, raw) == GOOD end
local function said_bytes(p, raw)
  local bytes = #raw >= 8 and u16(raw, 4) or 0
  return bytes >= 8 and bytes < #raw and p.check(p, raw:sub(1, bytes)) == GOOD and bytes or nil
end

-- The 8 header bytes of NA62's packets: a number of 24 bits, source, length, count, sub-ID.
local function add_header_fields(f, prefix, count, count_label)
  f.source_id = ProtoField.uint8(prefix .. ".source_id", "Source ID", base.HEX, SOURCES)
  f.length = ProtoField.uint16(prefix .. ".length", "Length", base.UNIT_STRING, { " byte", " bytes" })
  f.count = ProtoField.uint8(prefix .. "." .. count, count_label, base.DEC)
  f.source_sub_id = ProtoField.uint8(prefix .. ".source_sub_id", "Source sub-ID", base.DEC)
end
local function show_header(f, top, tvb, number_field)
  local number = top:add_le(number_field, tvb(0, 3))
  top:add(f.source_id, tvb(3, 1))
  top:add_le(f.length, tvb(4, 2))
  top:add(f.count, tvb(6, 1))
  top:add(f.source_sub_id, tvb(7, 1))
  return number
end

local function mtp_fields(prefix)
  local f = {}
  local function add(name, kind, ...) f[name] = ProtoField[kind](prefix .. "." .. name, ...) end
  add("timestamp_high", "uint24", "Timestamp, high 24 bits", base.HEX_DEC, nil, 0, "In units of 6.387 us")
  add("first_timestamp", "uint32", "First timestamp, low 8 bits zero", base.HEX_DEC, nil, 0, "In units of 24.951059536 ns")
  add_header_fields(f, prefix, "primitive_count", "Primitives")
  add("timestamp_word", "uint24", "Timestamp word, high 24 bits", base.HEX_DEC)
  add("primitive", "none", "Primitive")
  local q = prefix .. ".primitive"
  f.fine_time = ProtoField.uint8(q .. ".fine_time", "Fine time", base.DEC, nil, 0, "1/256 of a timestamp, 97.465 ps")
  f.timestamp_low = ProtoField.uint8(q .. ".timestamp_low", "Timestamp, low 8 bits", base.HEX_DEC)
  f.timestamp = ProtoField.uint32(q .. ".timestamp", "Timestamp", base.HEX_DEC, nil, 0, "In units of 24.951059536 ns")
  f.time = ProtoField.relative_time(q .. ".time", "Time since timestamp 0")
  f.id = ProtoField.uint16(q .. ".id", "Primitive ID", base.HEX)
  local yes = { "yes", "no" }
  f.multiplicity = ProtoField.uint16(q .. ".multiplicity", "Multiplicity (hits, saturating at 63)", base.DEC, nil, 0x003F)
  f.ring_count = ProtoField.uint16(q .. ".ring_count", "Rings (saturating at 3)", base.DEC, nil, 0x00C0)
  f.ring_found = ProtoField.bool(q .. ".ring_found", "Ring found", 16, yes, 0x0100)
  f.electron_like = ProtoField.bool(q .. ".electron_like", "Electron", 16, yes, 0x0200)
  f.radius_class = ProtoField.uint16(q .. ".radius_class", "Radius class (16 mm), or conditions", base.DEC, nil, 0x3C00)
  f.always_one = ProtoField.bool(q .. ".always_one", "Always set by nanet", 16, yes, 0x4000)
  f.calibration = ProtoField.bool(q .. ".calibration", "Calibration", 16, yes, 0x8000)
  return f
end

local function check_mtp(_, raw)
  if #raw < 8 or #raw > 1472 or #raw % 4 ~= 0 then return BAD_LENGTH, "8 to 1472 bytes in whole words are allowed, not " .. #raw end
  if u16(raw, 4) ~= #raw then return BAD_LENGTH, "it has " .. #raw .. " bytes, not the " .. u16(raw, 4) .. " that it says" end
  local count = 0
  for offset = 8, #raw - 4, 4 do
    if u8(raw, offset + 3) ~= 0 then count = count + 1 end
  end
  if count ~= u8(raw, 6) then return BAD_FORMAT, "it holds " .. plural(count, "primitive") .. ", not the " .. u8(raw, 6) .. " that it says" end
  return GOOD
end

local function show_primitive(f, tree, tvb, raw, offset, time_high, index)
  local timestamp, fine_time, id = time_high * 256 + u8(raw, offset + 1), u8(raw, offset), u16(raw, offset + 2)
  local item = tree:add(f.primitive, tvb(offset, 4))
  item:set_text(string.format("Primitive %d: ID 0x%04x, %s, %s", index, id, plural(bits(id, 0, 6), "hit"), plural(bits(id, 6, 2), "ring")))
  item:add(f.fine_time, tvb(offset, 1)):append_text(" / 256 of a timestamp")
  item:add(f.timestamp_low, tvb(offset + 1, 1))
  said(item, f.timestamp, tvb(offset, 2), timestamp):append_text(" x 24.951059536 ns")
  said(item, f.time, tvb(offset, 2), time_of(timestamp, fine_time))
  local range = tvb(offset + 2, 2)
  local meaning = item:add_le(f.id, range)
  for _, name in ipairs({ "multiplicity", "ring_count", "ring_found", "electron_like", "radius_class", "always_one", "calibration" }) do
    meaning:add_le(f[name], range)
  end
end

local mtp = new_protocol({
  name = "mtp", short = "MTP", title = "MTP, trigger primitives", ports = "6300,6400", header_bytes = 8, fields = mtp_fields,
  check = check_mtp, is_good = is_good_by_format, piece_bytes = said_bytes, bytes_max = 1472,
})

function mtp.show(top, tvb, raw)
  local f, time_high, count = mtp.fields, u24(raw, 0), 0
  show_header(f, top, tvb, f.timestamp_high)
  said(top, f.first_timestamp, tvb(0, 3), time_high * 256):append_text(" x 24.951059536 ns")
  for offset = 8, #raw - 4, 4 do
    if u8(raw, offset + 3) == 0 then
      time_high = u24(raw, offset)
      top:add_le(f.timestamp_word, tvb(offset, 3))
    else
      show_primitive(f, top, tvb, raw, offset, time_high, count)
      count = count + 1
    end
  end
  return string.format("%s %d: %s", source_name(u8(raw, 3)), u8(raw, 7), plural(u8(raw, 6), "primitive"))
end

-- --- L0 decisions ----------------------------------------------------------------------------------------------------------------------

local function l0_fields(prefix)
  local f = {}
  local function add(name, kind, ...) f[name] = ProtoField[kind](prefix .. "." .. name, ...) end
  add("first_trigger_number", "uint24", "First trigger number", base.DEC)
  add_header_fields(f, prefix, "entry_count", "Entries")
  add("entry", "none", "Entry")
  local e = prefix .. ".entry"
  f.number = ProtoField.uint24(e .. ".trigger_number", "Trigger number", base.DEC)
  f.timestamp = ProtoField.uint32(e .. ".timestamp", "Timestamp", base.HEX_DEC, nil, 0, "In units of 24.951059536 ns")
  f.fine_time = ProtoField.uint8(e .. ".fine_time", "Fine time", base.DEC, nil, 0, "1/256 of a timestamp, 97.465 ps")
  f.time = ProtoField.relative_time(e .. ".time", "Time since timestamp 0")
  f.matched = ProtoField.uint8(e .. ".matched", "Inputs with a primitive", base.HEX, nil, 0x7F)
  f.calibration = ProtoField.bool(e .. ".calibration", "Calibration", 8, { "yes", "no" }, 0x80)
  f.trigger_word = ProtoField.uint16(e .. ".trigger_word", "Trigger word", base.HEX, nil, 0, "Physics: bit i is mask i. Calibration: the primitive ID")
  add_place_fields(f, prefix)
  return f
end

local function check_l0(_, raw)
  if #raw < 8 or #raw > 1472 or #raw % 8 ~= 0 then return BAD_LENGTH, "8 to 1472 bytes in steps of 8 are allowed, not " .. #raw end
  if u16(raw, 4) ~= #raw then return BAD_LENGTH, "it has " .. #raw .. " bytes, not the " .. u16(raw, 4) .. " that it says" end
  if u8(raw, 3) ~= 0x40 then return BAD_FORMAT, "its source is not the L0TP" end
  if u8(raw, 6) ~= (#raw - 8) / 8 then return BAD_FORMAT, "it has room for " .. plural((#raw - 8) / 8, "trigger") .. ", not the " .. u8(raw, 6) .. " that it says" end
  return GOOD
end

local function show_decision(f, tree, tvb, raw, offset, number)
  local calibration, word = u8(raw, offset + 5) >= 128, u16(raw, offset + 6)
  local item = tree:add(f.entry, tvb(offset, 8))
  item:set_text(string.format("Trigger %d: %s 0x%04x", number, calibration and "calibration, primitive ID" or "physics, masks", word))
  said(item, f.number, tvb(0, 3), number)
  item:add_le(f.timestamp, tvb(offset, 4)):append_text(" x 24.951059536 ns")
  item:add(f.fine_time, tvb(offset + 4, 1)):append_text(" / 256 of it")
  said(item, f.time, tvb(offset, 5), time_of(u32(raw, offset), u8(raw, offset + 4)))
  item:add(f.matched, tvb(offset + 5, 1))
  item:add(f.calibration, tvb(offset + 5, 1))
  item:add_le(f.trigger_word, tvb(offset + 6, 2))
end

local l0 = new_protocol({
  name = "l0", short = "L0", title = "L0 decisions", ports = "6500", header_bytes = 8, fields = l0_fields, check = check_l0,
  is_good = is_good_by_format, piece_bytes = said_bytes, bytes_max = 1472,
})

function l0.show(top, tvb, raw, pinfo, code)
  local f, first, count, standing = l0.fields, u24(raw, 0), math.floor((#raw - 8) / 8), ""
  local number = show_header(f, top, tvb, f.first_trigger_number)
  if code == GOOD then
    local found = place(l0, pinfo, conversation(pinfo, u8(raw, 3), u8(raw, 7)), first, count, 16777216)
    standing = show_place(l0, top, tvb(0, 3), number, found, "trigger")
  end
  for i = 0, count - 1 do show_decision(f, top, tvb, raw, 8 + 8 * i, (first + i) % 16777216) end
  return string.format("%s %d: %s from number %d%s", source_name(u8(raw, 3)), u8(raw, 7), plural(u8(raw, 6), "trigger"), first, standing)
end

-- --- MEP -------------------------------------------------------------------------------------------------------------------------------

local function mep_fields(prefix)
  local f = {}
  local function add(name, kind, ...) f[name] = ProtoField[kind](prefix .. "." .. name, ...) end
  add("first_event_number", "uint24", "First event number", base.DEC)
  add_header_fields(f, prefix, "event_count", "Events")
  add("event", "none", "Event")
  local e = prefix .. ".event"
  f.event_length = ProtoField.uint16(e .. ".length", "Length", base.UNIT_STRING, { " byte", " bytes" })
  f.event_number_low = ProtoField.uint8(e .. ".number_low", "Event number, low byte", base.DEC)
  f.event_number = ProtoField.uint24(e .. ".number", "Event number", base.DEC)
  f.event_last = ProtoField.bool(e .. ".last_of_burst", "Last event of the burst", 8, { "yes", "no" }, 0x80)
  f.event_timestamp = ProtoField.uint32(e .. ".timestamp", "Timestamp", base.HEX_DEC, nil, 0, "In units of 24.951059536 ns")
  f.event_data = ProtoField.bytes(e .. ".data", "Data")
  local t = prefix .. ".tdc"
  f.fpga_flags = ProtoField.uint8(t .. ".fpga_flags", "FPGA flags", base.HEX)
  f.trigger_type = ProtoField.uint8(t .. ".trigger_type", "Trigger type", base.HEX)
  f.data_sub_id = ProtoField.uint8(t .. ".source_sub_id", "Source sub-ID", base.DEC)
  f.data_format = ProtoField.uint8(t .. ".format", "Format", base.HEX)
  f.fpga = ProtoField.uint8(t .. ".fpga", "FPGA", base.DEC)
  f.frame_count = ProtoField.uint8(t .. ".frame_count", "Frames", base.DEC)
  f.error_flags = ProtoField.uint8(t .. ".error_flags", "Error flags", base.HEX)
  f.frame_time = ProtoField.uint16(t .. ".frame_timestamp", "Frame timestamp, low 16 bits", base.HEX)
  f.frame_words = ProtoField.uint16(t .. ".frame_words", "Words, with this one", base.DEC)
  f.word = ProtoField.uint32(t .. ".word", "TDC word", base.HEX)
  f.word_time = ProtoField.uint32(t .. ".time", "Time (97.46 ps, modulo 2^19)", base.DEC, nil, 0x0007FFFF)
  f.word_channel = ProtoField.uint32(t .. ".channel", "Channel of the TDC", base.DEC, nil, 0x00F80000)
  f.word_tdc = ProtoField.uint32(t .. ".tdc", "TDC", base.DEC, nil, 0x03000000)
  f.word_kind = ProtoField.uint32(t .. ".kind", "Kind", base.DEC, EDGES, 0xF0000000)
  f.board_channel = ProtoField.uint16(t .. ".board_channel", "Channel in the board", base.DEC)
  f.error_words = ProtoField.bytes(t .. ".error_words", "Error words")
  return f
end

local function check_mep(_, raw)
  if #raw < 8 then return BAD_LENGTH, "it has no whole header" end
  if u16(raw, 4) ~= #raw then return BAD_LENGTH, "it has " .. #raw .. " bytes, not the " .. u16(raw, 4) .. " that it says" end
  local offset, wrong = 8, nil
  for i = 0, u8(raw, 6) - 1 do
    if #raw - offset < 8 or u16(raw, offset) < 8 or #raw - offset < u16(raw, offset) then return BAD_LENGTH, "event " .. i .. " is not inside" end
    if u8(raw, offset + 2) ~= (u24(raw, 0) + i) % 256 then wrong = wrong or "the number of event " .. i .. " does not fit" end
    offset = offset + u16(raw, offset)
  end
  if offset ~= #raw then return BAD_LENGTH, "its events are not exactly its content" end
  if wrong then return BAD_FORMAT, wrong end
  return GOOD
end

local function show_tdc_word(f, tree, tvb, raw, at, fpga)
  local range = tvb(at, 4)
  local kind, channel = bits(u8(raw, at + 3), 4, 4), (fpga * 4 + u8(raw, at + 3) % 4) * 32 + bits(u32(raw, at), 19, 5)
  local item = tree:add_le(f.word, range)
  for _, name in ipairs({ "word_time", "word_channel", "word_tdc", "word_kind" }) do item:add_le(f[name], range) end
  if not EDGES[kind] then return item:set_text("Word of kind " .. kind .. ", passed over") end
  said(item, f.board_channel, range, channel)
  item:set_text(string.format("Channel %d, %s, time %d", channel, EDGES[kind], u32(raw, at) % 524288))
end

-- Frames of one FPGA from `at` on. Returns where they end, or nil and what is wrong.
local function show_frames(f, tree, tvb, raw, at, last, fpga, count)
  for _ = 1, count do
    if last - at < 4 then return nil, "a frame is not inside" end
    local words = u16(raw, at + 2)
    if words == 0 then return nil, "a frame of 0 words" end
    if last - at < 4 * words then return nil, "a frame is not inside" end
    local frame = tree:add_le(f.frame_time, tvb(at, 2))
    frame:add_le(f.frame_words, tvb(at + 2, 2))
    for word = 1, words - 1 do show_tdc_word(f, frame, tvb, raw, at + 4 * word, fpga) end
    at = at + 4 * words
  end
  return at
end

-- Data of a board with TDCs in bytes at .. last-1. Returns what is wrong with it, if anything is.
local function show_tdc_data(f, tree, tvb, raw, at, last)
  if last - at < 4 or (last - at) % 4 ~= 0 then return "no whole words" end
  local flags, fpgas = u8(raw, at), 0
  tree:add(f.fpga_flags, tvb(at, 1))
  tree:add(f.trigger_type, tvb(at + 1, 1))
  tree:add(f.data_sub_id, tvb(at + 2, 1))
  tree:add(f.data_format, tvb(at + 3, 1))
  while flags >= 2 ^ fpgas do fpgas = fpgas + 1 end -- blocks up to the highest flag
  if fpgas < 1 or fpgas > 4 then return "no flags of one to four FPGAs" end
  at = at + 4
  for _ = 1, fpgas do
    if last - at < 4 then return "an FPGA block is not inside" end
    local fpga = u8(raw, at + 2)
    local block = tree:add(f.fpga, tvb(at + 2, 1))
    block:add(f.frame_count, tvb(at, 1))
    block:add(f.error_flags, tvb(at + 3, 1))
    if fpga > 3 then return "FPGA " .. fpga .. " of four" end
    local errors, why = u8(raw, at + 3) % 2 == 1, nil
    at, why = show_frames(f, block, tvb, raw, at + 4, last, fpga, u8(raw, at))
    if not at then return why end
    if errors and at < last then -- a block of error words; some boards set the flag at the very end without one
      local words = u16(raw, at + 2)
      if last - at < 4 * words then return "the error words are not inside" end
      if words > 0 then block:add(f.error_words, tvb(at, 4 * words)) end
      at = at + 4 * words
    end
  end
end

local mep = new_protocol({
  name = "mep", short = "MEP", title = "MEP, recorded raw data", ports = "", header_bytes = 8, fields = mep_fields, check = check_mep,
  is_good = is_good_by_format,
})

local function show_mep_event(f, top, tvb, raw, offset, length, index, number)
  local event = top:add(f.event, tvb(offset, length))
  event:set_text(string.format("Event %d: number %d, %d bytes", index, number, length))
  event:add_le(f.event_length, tvb(offset, 2))
  event:add(f.event_number_low, tvb(offset + 2, 1))
  said(event, f.event_number, tvb(offset + 2, 1), number)
  event:add(f.event_last, tvb(offset + 3, 1))
  event:add_le(f.event_timestamp, tvb(offset + 4, 4)):append_text(" x 24.951059536 ns")
  if length == 8 then return end
  local data = event:add(f.event_data, tvb(offset + 8, length - 8))
  local wrong = show_tdc_data(f, data, tvb, raw, offset + 8, offset + length)
  if wrong then data:add_proto_expert_info(mep.experts.data, "Not the data of a board with TDCs: " .. wrong) end
end

function mep.show(top, tvb, raw)
  local f, first, offset = mep.fields, u24(raw, 0), 8
  show_header(f, top, tvb, f.first_event_number)
  for i = 0, u8(raw, 6) - 1 do
    local length = #raw - offset >= 8 and u16(raw, offset) or 0
    if length < 8 or #raw - offset < length then break end
    show_mep_event(f, top, tvb, raw, offset, length, i, (first + i) % 16777216)
    offset = offset + length
  end
  return string.format("%s %d: %s from number %d", source_name(u8(raw, 3)), u8(raw, 7), plural(u8(raw, 6), "event"), first)
end

-- ---------------------------------------------------------------------------------------------------------------------------------------

for _, p in ipairs(protocols) do
  function p.proto.dissector(tvb, pinfo, tree)
    if is_of_another(p, pinfo) then return 0 end
    dissect(p, tvb, pinfo, tree)
  end
  DissectorTable.get("udp.port"):add_for_decode_as(p.proto)
  p.apply_ports()
end
