// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/km3_slots.hpp"

#include <algorithm>
#include <bit>
#include <utility>
namespace nanet::link::gateware {
namespace {

constexpr std::uint32_t kFloorMagic = 0x4B4D3346, kFloorHeadBytes = 32, kSecondTicks = 62'500'000, kTickNs = 16;
constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint8_t kLastOfUnit = 1, kUntimedUnit = 2;
constexpr std::uint8_t kSampledHits = 2;
constexpr std::size_t kHitsKind = 0, kModules = 6;
constexpr std::size_t kSlotOfKind = 5;  // of hydrophone 0, which is kind 1 here; the next ones follow

// Whole records of each slot: a hit of 6 B, two samples, a value of 12 B, an answer of 28 B.
constexpr std::array<std::uint32_t, nanet::gateware::kFloorSlots> kRecordWords{3, 3, 3, 3, 3, 3, 3, 3, 6, 14};

std::uint16_t slot_word(std::span<const std::byte> bytes, std::size_t at) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[at]) | std::to_integer<unsigned>(bytes[at + 1]) << 8U);
}

}  // namespace

Km3Slots::Km3Slots(const Floors& floors, const nanet::gateware::FloorGeometry& geometry)
    : floors_(floors), geometry_(geometry), streams_(floors.count), carried_(floors.count) {}

std::optional<Km3Slots::Head> Km3Slots::head_of(std::span<const std::byte> packet) {
  if (packet.size() < kFloorHeadBytes) return std::nullopt;
  const auto u8 = [&](std::size_t at) { return std::to_integer<std::uint8_t>(packet[at]); };
  const auto u32 = [&](std::size_t at) {
    return std::uint32_t{u8(at)} << 24U | std::uint32_t{u8(at + 1)} << 16U | std::uint32_t{u8(at + 2)} << 8U | u8(at + 3);
  };
  const Head head{u8(4), u8(5), u8(6), u8(7), u32(8), u32(12), u32(16), u32(20), u32(24)};
  const bool is_good = u32(0) == kFloorMagic && head.floor != 0 && head.kind >= 1 && head.kind <= 5 &&
                       head.flags <= (kLastOfUnit | kUntimedUnit) && head.run >> 31U == 0 && head.tick < kSecondTicks;
  return is_good ? std::optional(head) : std::nullopt;
}

// With the second in which its first slice begins; nothing: it does not begin with one.
std::optional<Km3Run> Km3Slots::run_of(const Head& head) const {
  const std::uint64_t at_ns = head.second * kSecondNs + std::uint64_t{head.tick} * kTickNs;
  const std::uint64_t since_ns = head.slice * (kSecondNs / geometry_.frames_per_s * floors_.slice_frames);
  if (at_ns < since_ns || (at_ns - since_ns) % kSecondNs != 0) return std::nullopt;
  return Km3Run{head.run, static_cast<std::uint32_t>((at_ns - since_ns) / kSecondNs), floors_.slice_frames};
}

void Km3Slots::take(std::span<const std::byte> packet, std::uint64_t now_ns) {
  ++received_;
  arrived_ns_ = now_ns;
  const std::optional<Head> head = head_of(packet);
  if (!head) return end(Km3Fate::bad_head);
  if (head->tower != floors_.tower || head->floor < floors_.first || head->floor - floors_.first >= static_cast<int>(floors_.count)) {
    return end(Km3Fate::wrong_floor);
  }
  if (head->kind == kSampledHits) return end(Km3Fate::no_slot);
  if ((head->flags & kUntimedUnit) != 0) return end(Km3Fate::untimed);
  const std::optional<Km3Run> run = run_of(*head);
  const bool is_ours = run_ && run_->run == head->run;
  if (!run || (is_ours && run->second != run_->second)) return end(Km3Fate::wrong_time);
  if (!is_ours) return propose(*head, *run, packet);
  drop_candidate();  // those that spoke of another run were wrong
  place(*head, packet.subspan(kFloorHeadBytes));
}

void Km3Slots::propose(const Head& head, const Km3Run& run, std::span<const std::byte> packet) {
  if (candidate_ && (candidate_->run.run != run.run || candidate_->run.second != run.second)) drop_candidate();
  if (!candidate_) candidate_ = Candidate{run, 0, {}};
  candidate_->floors |= std::uint64_t{1} << (head.floor - floors_.first);
  candidate_->packets.emplace_back(packet.begin(), packet.end());
  ++held_;
  held_bytes_ += packet.size();
}

void Km3Slots::drop_candidate() {
  if (!candidate_) return;
  for (const Bytes& packet : candidate_->packets) held_bytes_ -= packet.size();
  held_ -= candidate_->packets.size();
  end(Km3Fate::wrong_run, candidate_->packets.size());
  candidate_.reset();
}

std::optional<Km3Run> Km3Slots::next_run() const {
  const auto enough = static_cast<int>(std::min(2U, floors_.count));
  if (!candidate_ || std::popcount(candidate_->floors) < enough || held_ != candidate_->packets.size()) return std::nullopt;
  return candidate_->run;
}

void Km3Slots::begin_run() {
  Candidate begun = *std::exchange(candidate_, std::nullopt);
  run_ = begun.run;
  next_ = 0;
  is_settled_ = false;
  for (auto& kinds : streams_) kinds = {};
  for (const Bytes& packet : begun.packets) {
    --held_;
    held_bytes_ -= packet.size();
    place(*head_of(packet), std::span(packet).subspan(kFloorHeadBytes));
  }
}

bool Km3Slots::Unit::is_whole() const {
  std::uint64_t at = 0;
  for (const auto& [offset, bytes] : pieces) {
    if (offset != at) return false;
    at += bytes.size();
  }
  return end && at == *end;
}

bool Km3Slots::Unit::add(const Head& head, std::span<const std::byte> payload) {
  const std::uint64_t to = head.offset + std::uint64_t{payload.size()};
  const auto after = pieces.lower_bound(head.offset);
  if (after != pieces.end() && (after->first < to || after->first == head.offset)) return false;
  if (after != pieces.begin()) {
    const auto& [offset, bytes] = *std::prev(after);
    if (offset + bytes.size() > head.offset) return false;
  }
  const bool is_last = (head.flags & kLastOfUnit) != 0;
  if (to > 0xFFFF'FFFF || (end && (is_last || to > *end)) || (is_last && after != pieces.end())) return false;
  pieces.emplace(head.offset, Bytes(payload.begin(), payload.end()));
  if (is_last) end = static_cast<std::uint32_t>(to);
  return true;
}

void Km3Slots::place(const Head& head, std::span<const std::byte> payload) {
  if (head.slice < next_) return end(Km3Fate::too_late);
  const auto floor = static_cast<std::size_t>(head.floor - floors_.first);
  Stream& stream = streams_[floor][head.kind == 1 ? kHitsKind : head.kind - 2U];
  if (!stream.units[head.slice].add(head, payload)) return end(Km3Fate::again);
  stream.is_known = true;
  stream.is_silent = false;
  stream.newest = std::max(stream.newest, head.slice);
  ++held_;
  held_bytes_ += kFloorHeadBytes + payload.size();
}

bool Km3Slots::ready(std::uint64_t now_ns, bool at_end) {
  if (!run_ || held_ == (candidate_ ? candidate_->packets.size() : 0)) return false;
  bool all = true, is_over = is_settled_;
  const auto waits = [&](Stream& stream) {
    if (!stream.is_known || stream.is_silent || stream.newest > next_) return false;
    const auto unit = stream.units.find(next_);
    return unit == stream.units.end() || !unit->second.is_whole();
  };
  for (auto& kinds : streams_) {
    for (Stream& stream : kinds) {
      all = all && !waits(stream);
      is_over = is_over || (stream.is_known && stream.newest > next_);
    }
  }
  if (all && is_over) return true;
  const bool is_next = candidate_ && std::popcount(candidate_->floors) >= static_cast<int>(std::min(2U, floors_.count));
  if (!at_end && !is_next && now_ns - arrived_ns_ < kPatienceNs) return false;
  for (auto& kinds : streams_) {
    for (Stream& stream : kinds) stream.is_silent = stream.is_silent || waits(stream);
  }
  return true;
}

bool Km3Slots::is_quiet(std::uint64_t now_ns) const {
  return run_ && held_ == 0 && !next_run() && now_ns - arrived_ns_ >= kQuietNs;
}

bool Km3Slots::may_answer(std::size_t floor, std::uint32_t place) const {
  return carried_[floor].left_out == floors_.slice_frames && place == 0 && floors_.slice_frames > 1;
}

// The words of a unit's records by slot; nothing: it has others. Of sound, whose places are times, what comes before a hole.
std::optional<Km3Slots::Words> Km3Slots::words_of(const Unit& unit, std::size_t kind) {
  const bool is_sound = kind == 1 || kind == 2;
  const std::size_t slot = kind == kHitsKind ? 0 : kSlotOfKind + kind, record = 2 * kRecordWords[slot];
  Bytes bytes;
  for (const auto& [offset, piece] : unit.pieces) {
    if (is_sound && offset != bytes.size()) break;
    if (!is_sound && piece.size() % record != 0) return std::nullopt;
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  }
  if (unit.is_whole() && bytes.size() % record != 0) return std::nullopt;
  bytes.resize(bytes.size() / record * record);
  Words words;
  for (std::size_t at = 0; at < bytes.size(); at += 2) {
    const std::size_t module = kind == kHitsKind ? std::to_integer<std::size_t>(bytes[at / record * record]) : 0;
    if (module >= kModules) return std::nullopt;
    words[slot + module].push_back(slot_word(bytes, at));
  }
  return words;
}

bool Km3Slots::fits(const Words& words, std::uint32_t frames) const {
  for (std::size_t slot = 0; slot < words.size(); ++slot) {
    const std::size_t records = words[slot].size() / kRecordWords[slot], most = geometry_.slot_words[slot] / kRecordWords[slot];
    if (records > most * frames) return false;
  }
  return true;
}

void Km3Slots::carry_unit(Unit unit, std::size_t kind, Carried& to) {
  for (const auto& [offset, bytes] : unit.pieces) held_bytes_ -= kFloorHeadBytes + bytes.size();
  held_ -= unit.pieces.size();
  const std::uint32_t frames = floors_.slice_frames - to.left_out;
  const std::optional<Words> words = words_of(unit, kind);
  if (!words) return end(Km3Fate::bad_record, unit.pieces.size());
  if (frames == 0) return end(Km3Fate::no_frame, unit.pieces.size());
  if (!fits(*words, frames)) return end(Km3Fate::no_room, unit.pieces.size());
  end(Km3Fate::carried, unit.pieces.size());
  for (std::size_t slot = 0; slot < words->size(); ++slot) {
    to.words[slot].insert(to.words[slot].end(), (*words)[slot].begin(), (*words)[slot].end());
  }
}

void Km3Slots::carry(std::size_t floor) {
  Carried& to = carried_[floor] = {};
  bool is_there = false, is_whole = true;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Stream& stream = streams_[floor][kind];
    const auto unit = stream.units.find(next_);
    const bool has = unit != stream.units.end();
    is_there = is_there || has;
    if (!has) {
      is_whole = is_whole && kind != kHitsKind && !stream.is_known;  // a kind that a floor never sends is not missing, but for hits
      continue;
    }
    const std::optional<Words> words = words_of(unit->second, kind);
    is_whole = is_whole && unit->second.is_whole() && words && fits(*words, floors_.slice_frames);
  }
  to.left_out = !is_there ? floors_.slice_frames : is_whole ? 0 : 1;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    auto found = streams_[floor][kind].units.extract(next_);
    if (!found.empty()) carry_unit(std::move(found.mapped()), kind, to);
  }
}

void Km3Slots::open_slice() {
  for (std::size_t floor = 0; floor < streams_.size(); ++floor) carry(floor);
  is_settled_ = true;
  ++next_;
}

std::optional<nanet::gateware::FloorFrame> Km3Slots::frame(std::size_t floor, std::uint32_t place) const {
  if (floor >= carried_.size() || place < carried_[floor].left_out) return std::nullopt;
  const Carried& from = carried_[floor];
  const std::uint64_t frames = floors_.slice_frames - from.left_out, k = place - from.left_out;
  nanet::gateware::FloorFrame frame{.floor = static_cast<std::uint8_t>(floors_.first + floor), .slots = {}, .spoiled = {}};
  for (std::size_t slot = 0; slot < from.words.size(); ++slot) {
    const std::size_t record = kRecordWords[slot], records = from.words[slot].size() / record;
    const auto begin = from.words[slot].begin();
    frame.slots[slot].assign(begin + static_cast<std::ptrdiff_t>(records * k / frames * record),
                             begin + static_cast<std::ptrdiff_t>(records * (k + 1) / frames * record));
  }
  return frame;
}

}  // namespace nanet::link::gateware
