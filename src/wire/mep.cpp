// SPDX-License-Identifier: Apache-2.0
#include "wire/mep.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace nanet::wire {
namespace {

constexpr std::uint32_t kTimeMask = (1u << 19) - 1;
constexpr unsigned kLastOfBurst = 0x80;
constexpr std::size_t kFramesMax = 255;  // of an FPGA block

// To the nearest of the values that are the same modulo 2^19.
std::int32_t nearest_time(std::uint32_t ticks) {
  const auto time = static_cast<std::int32_t>(ticks & kTimeMask);
  return time < kTdcTimeRange ? time : time - 2 * kTdcTimeRange;
}

void put(std::vector<std::byte>& to, std::uint32_t word) {
  std::array<std::byte, 4> bytes;
  store_le(bytes.data(), word);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

struct Edge {
  std::uint32_t fpga;
  std::int64_t time_ticks;  // from timestamp 0
  std::uint32_t word;
  std::int64_t frame() const { return time_ticks >> 8; }
};

void add_edge(std::vector<Edge>& edges, const MepHit& hit, std::int64_t time_ticks, TdcEdge edge) {
  const std::uint32_t channel = hit.channel % kTdcChannels;
  edges.push_back({channel / 128, time_ticks,
                   (static_cast<std::uint32_t>(time_ticks) & kTimeMask) | (channel & 31u) << 19 | (channel / 32 & 3u) << 24 |
                       static_cast<std::uint32_t>(edge) << 28});
}

// One FPGA's block of `edges`, which are in order of time. False when it has too many frames or words.
bool put_fpga(std::vector<std::byte>& to, std::uint32_t fpga, std::span<const Edge> edges) {
  const std::size_t header = to.size();
  std::uint32_t frames = 0;
  put(to, 0);
  while (!edges.empty()) {
    const auto end = std::ranges::find_if(edges, [&](const Edge& edge) { return edge.frame() != edges.front().frame(); });
    const auto words = static_cast<std::size_t>(end - edges.begin());
    if (++frames > kFramesMax || words >= 0xFFFF) return false;
    put(to, (static_cast<std::uint32_t>(edges.front().frame()) & 0xFFFFu) | static_cast<std::uint32_t>(words + 1) << 16);
    for (const Edge& edge : edges.first(words)) put(to, edge.word);
    edges = edges.subspan(words);
  }
  store_le(to.data() + header, frames | fpga << 16);
  return true;
}

}  // namespace

ParseError MepView::parse(std::span<const std::byte> payload, MepView& view) {
  if (payload.size() < kMepHeaderBytes || payload.size() > kMepBytesMax) return ParseError::bad_length;
  const auto first = load_le<std::uint32_t>(payload.data());
  const auto second = load_le<std::uint32_t>(payload.data() + 4);
  const MepHeader header{.first_event_number = first & 0xFFFFFFu,
                         .source_id = static_cast<std::uint8_t>(first >> 24),
                         .source_sub_id = static_cast<std::uint8_t>(second >> 24),
                         .event_count = static_cast<std::uint8_t>(second >> 16)};
  if ((second & 0xFFFFu) != payload.size()) return ParseError::bad_length;
  std::size_t offset = kMepHeaderBytes;
  bool numbers_good = true;
  for (std::uint32_t e = 0; e < header.event_count; ++e) {
    if (payload.size() - offset < kMepEventHeaderBytes) return ParseError::bad_length;
    const std::size_t bytes = load_le<std::uint16_t>(payload.data() + offset);
    if (bytes < kMepEventHeaderBytes || payload.size() - offset < bytes) return ParseError::bad_length;
    numbers_good &= static_cast<std::uint8_t>(payload[offset + 2]) == static_cast<std::uint8_t>(header.first_event_number + e);
    offset += bytes;
  }
  if (offset != payload.size()) return ParseError::bad_length;
  if (!numbers_good) return ParseError::bad_format;
  view.payload_ = payload;
  view.header_ = header;
  return ParseError::none;
}

ParseError TdcView::parse(std::span<const std::byte> data, TdcView& view) {
  const std::size_t words = data.size() / kTdcWordBytes;
  if (words == 0 || data.size() % kTdcWordBytes != 0) return ParseError::bad_length;
  const std::size_t fpgas = detail::fpga_count(data);
  if (fpgas == 0 || fpgas > kFpgasMax) return ParseError::bad_format;
  std::size_t next = 1;
  for (std::size_t f = 0; f < fpgas; ++f) {
    if (next >= words) return ParseError::bad_length;
    const std::uint32_t fpga = detail::tdc_load(data, next++);
    if ((fpga >> 16 & 0xFFu) >= kFpgasMax) return ParseError::bad_format;
    for (std::uint32_t frame = fpga & 0xFFu; frame > 0; --frame) {
      if (next >= words) return ParseError::bad_length;
      const std::size_t frame_words = detail::tdc_load(data, next) >> 16;
      if (frame_words == 0) return ParseError::bad_format;
      if (frame_words > words - next) return ParseError::bad_length;
      next += frame_words;
    }
    const std::size_t errors = detail::error_words(data, fpga, next);
    if (errors > words - next) return ParseError::bad_length;
    next += errors;
  }
  view.data_ = data;
  return ParseError::none;
}

std::size_t tdc_hits(const TdcView& view, std::uint32_t timestamp, unsigned board, std::span<MepHit> hits) {
  constexpr std::uint16_t kNone = 0xFFFF;
  static_assert(kTdcWordsMax < kNone);
  std::array<std::uint16_t, kTdcChannels> open;  // index of the channel's last hit that has no trailing edge
  open.fill(kNone);
  std::size_t count = 0;
  for_each_tdc_word(view, [&](const TdcWord& word) {
    const std::int32_t time_ticks = nearest_time(word.time_ticks - (timestamp << 8));
    if (word.edge == TdcEdge::leading) {
      if (count < hits.size()) {
        hits[count] = {static_cast<std::uint16_t>(board * kTdcChannels + word.channel), time_ticks, 0};
        open[word.channel] = static_cast<std::uint16_t>(count);
      } else {
        open[word.channel] = kNone;
      }
      ++count;
    } else if (open[word.channel] != kNone) {
      MepHit& hit = hits[open[word.channel]];
      // A trailing edge before its leading one belongs to a pulse that began before the readout window.
      if (time_ticks <= hit.time_ticks) return;
      hit.width_ticks = time_ticks - hit.time_ticks;
      open[word.channel] = kNone;
    }
  });
  return count;
}

void MepBuilder::begin(const MepHeader& header) {
  header_ = header;
  event_count_ = 0;
  bytes_.assign(kMepHeaderBytes, std::byte{0});
}

bool MepBuilder::add_event(std::uint32_t timestamp, std::span<const MepHit> hits, std::uint8_t trigger_type) {
  std::vector<Edge> edges;
  for (const MepHit& hit : hits) {
    const std::int64_t time_ticks = (std::int64_t{timestamp} << 8) + hit.time_ticks;
    add_edge(edges, hit, time_ticks, TdcEdge::leading);
    if (hit.width_ticks > 0) add_edge(edges, hit, time_ticks + hit.width_ticks, TdcEdge::trailing);
  }
  std::ranges::stable_sort(edges, {}, [](const Edge& edge) { return std::pair(edge.fpga, edge.time_ticks); });
  std::vector<std::byte> data;
  put(data, 0xFu | std::uint32_t{trigger_type} << 8 | std::uint32_t{header_.source_sub_id} << 16);
  std::span<const Edge> rest(edges);
  for (std::uint32_t fpga = 0; fpga < kFpgasMax; ++fpga) {
    const auto end = std::ranges::find_if(rest, [&](const Edge& edge) { return edge.fpga != fpga; });
    const auto count = static_cast<std::size_t>(end - rest.begin());
    if (!put_fpga(data, fpga, rest.first(count))) return false;
    rest = rest.subspan(count);
  }
  return add_event_data(timestamp, data);
}

bool MepBuilder::add_event_data(std::uint32_t timestamp, std::span<const std::byte> data) {
  const std::size_t bytes = kMepEventHeaderBytes + data.size();
  if (event_count_ == kMepEventsMax || bytes_.size() + bytes > kMepBytesMax) return false;
  last_event_offset_ = bytes_.size();
  const auto number = (header_.first_event_number + static_cast<std::uint32_t>(event_count_)) & 0xFFu;
  put(bytes_, static_cast<std::uint32_t>(bytes) | number << 16);
  put(bytes_, timestamp);
  bytes_.insert(bytes_.end(), data.begin(), data.end());
  ++event_count_;
  return true;
}

std::span<const std::byte> MepBuilder::finish(Burst last) {
  if (event_count_ > 0) {
    bytes_[last_event_offset_ + 3] = last == Burst::ends ? static_cast<std::byte>(kLastOfBurst) : std::byte{0};
  }
  store_le(bytes_.data(), (header_.first_event_number & 0xFFFFFFu) | std::uint32_t{header_.source_id} << 24);
  store_le(bytes_.data() + 4, static_cast<std::uint32_t>(bytes_.size()) | static_cast<std::uint32_t>(event_count_) << 16 |
                                  std::uint32_t{header_.source_sub_id} << 24);
  return bytes_;
}

}  // namespace nanet::wire
