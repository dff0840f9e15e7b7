// SPDX-License-Identifier: Apache-2.0
#include "emulate/recording.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "nanet/setup_error.hpp"
#include "nanet/wire/m2egp.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::emulate {
namespace {

constexpr int kEndMarkers = 3;  // as the boards send
constexpr int kHitTimeMin = -16;
constexpr int kHitTimeMax = 15;
constexpr std::uint32_t kHalfRange = std::numeric_limits<std::uint32_t>::max() / 2;
constexpr std::uint32_t kBurstStep = 1u << 22;  // timestamps; a time further back than this (0.1 s) is that of a new burst

bool is_mep(std::span<const std::byte> file) {
  const std::size_t bytes = wire::mep_bytes(file);
  wire::MepView view;
  return bytes > 0 && bytes <= file.size() && wire::MepView::parse(file.first(bytes), view) == wire::ParseError::none;
}

}  // namespace

std::unique_ptr<link::ReplaySource> open_recording(const RecordingConfig& config) {
  auto file = std::make_unique<link::MappedFile>(config.path);
  if (is_mep(file->bytes())) return std::make_unique<MepSource>(std::move(file), config);
  return std::make_unique<link::PcapSource>(std::move(file), config.path, config.only_port, &events_in);
}

std::uint32_t events_in(std::span<const std::byte> payload) {
  if (payload.size() < wire::kMgpHeaderBytes) return 0;
  const unsigned layout = static_cast<unsigned>(payload[2]) & 0x0Fu;
  return layout >= 1 && layout <= wire::kM2egpLayout ? static_cast<std::uint32_t>(payload[3]) : 0;
}

MepSource::MepSource(std::unique_ptr<link::MappedFile> file, const RecordingConfig& config)
    : file_(std::move(file)),
      config_(config),
      memory_(kPacketsMax * kPacketBytes),
      boards_(wire::kBoardsMax),
      tdc_hits_(wire::kTdcWordsMax) {
  if (!is_mep(file_->bytes())) {
    throw SetupError("cannot replay " + config.path, "it does not begin with a packet of raw data", "check the file");
  }
  made_.reserve(kPacketsMax);
  hits_.reserve(wire::kMgpPackedHitsMax);
}

std::size_t MepSource::next(std::span<link::ReplayPacket> packets) {
  while (given_ == made_.size()) {
    if (!make_packets()) return 0;
  }
  const std::size_t count = std::min(packets.size(), made_.size() - given_);
  for (std::size_t p = 0; p < count; ++p, ++given_) {
    const Made& made = made_[given_];
    packets[p] = {std::span(&memory_[given_ * kPacketBytes], made.bytes), wire::ns_from_ticks(time_ticks_), made.event_count};
  }
  return count;
}

void MepSource::rewind() {
  made_.clear();
  given_ = 0;
  offset_ = 0;
  ended_ = false;
  boards_.assign(boards_.size(), {});
  time_ticks_ = 0;
  has_time_ = false;
  meps_ = meps_bad_ = meps_other_ = events_ = events_bad_ = hits_played_ = hits_cut_ = hits_moved_ = bytes_damaged_ = 0;
}

link::ReplaySource::Counts MepSource::counts() const {
  return {{"meps", meps_},         {"meps_bad", meps_bad_},     {"meps_other", meps_other_},
          {"events", events_},     {"events_bad", events_bad_}, {"hits", hits_played_},
          {"hits_cut", hits_cut_}, {"hits_moved", hits_moved_}, {"bytes_damaged", bytes_damaged_}};
}

// Of the next MEP, of which there may be none; after the last one the markers. False at the end.
bool MepSource::make_packets() {
  made_.clear();
  given_ = 0;
  if (ended_) return false;
  const std::span<const std::byte> rest = file_->bytes().subspan(offset_);
  const std::size_t bytes = wire::mep_bytes(rest);
  if (bytes < wire::kMepHeaderBytes || bytes > rest.size()) {  // the end, or nothing that says where the next one begins
    bytes_damaged_ = rest.size();
    end_run();
    return true;
  }
  offset_ += bytes;
  wire::MepView mep;
  if (wire::MepView::parse(rest.first(bytes), mep) != wire::ParseError::none) {
    ++meps_bad_;
  } else if (mep.header().source_id != config_.source_id || mep.header().source_sub_id >= boards_.size()) {
    ++meps_other_;
  } else {
    ++meps_;
    convert(mep);
  }
  return true;
}

void MepSource::convert(const wire::MepView& mep) {
  const std::uint8_t sub_id = mep.header().source_sub_id;
  Board& board = boards_[sub_id];
  if (!std::exchange(board.seen, true)) add_marker(board, sub_id, Marker::start);
  wire::for_each_event(mep, [&](const wire::MepEvent& mep_event) {
    advance_time(mep_event.timestamp);
    const std::span<const std::uint16_t> hits = convert_hits(mep_event, sub_id);
    const wire::MgpEvent event{.timestamp = mep_event.timestamp,
                               .fine_time = config_.fine_time,
                               .event_number = static_cast<std::uint16_t>(board.next_event)};
    if (builder_ && !builder_->add_event(event, hits)) finish_packet(board, sub_id);
    if (!builder_) {
      builder_.emplace(room());
      builder_->begin(config_.layout);
      builder_->add_event(event, hits);  // an empty packet has room for any event
    }
    ++board.next_event;
    ++events_;
  });
  if (builder_) finish_packet(board, sub_id);
}

std::span<const std::uint16_t> MepSource::convert_hits(const wire::MepEvent& event, unsigned board) {
  hits_.clear();
  wire::TdcView view;
  if (wire::TdcView::parse(event.data, view) != wire::ParseError::none) {
    ++events_bad_;  // played without hits, so that event numbers stay what they are
    return hits_;
  }
  const std::size_t count = wire::tdc_hits(view, event.timestamp, board, tdc_hits_);
  const std::size_t hits_max = config_.layout == wire::MgpLayout::padded ? wire::kMgpHitsMax : wire::kMgpPackedHitsMax;
  for (const wire::MepHit& hit : std::span(tdc_hits_).first(std::min(count, hits_max))) {
    const int time = (hit.time_ticks - config_.fine_time) >> 1;
    const int kept = std::clamp(time, kHitTimeMin, kHitTimeMax);
    hits_moved_ += kept != time;
    hits_.push_back(wire::make_hit(hit.channel, kept));
  }
  hits_played_ += hits_.size();
  hits_cut_ += count - hits_.size();
  return hits_;
}

void MepSource::finish_packet(Board& board, std::uint8_t sub_id) {
  const auto event_count = static_cast<std::uint32_t>(builder_->event_count());
  const auto payload = builder_->finish({.source_id = config_.source_id, .source_sub_id = sub_id, .sequence = board.sequence++},
                                        kPacketBytes);
  made_.push_back({payload.size(), event_count});
  builder_.reset();
}

void MepSource::add_marker(const Board& board, std::uint8_t sub_id, Marker kind) {
  const wire::MgpHeader header{.source_id = config_.source_id,
                               .source_sub_id = sub_id,
                               .layout = config_.layout,
                               .run_start = kind == Marker::start,
                               .run_end = kind == Marker::end,
                               .sequence = board.sequence};
  made_.push_back({wire::make_marker(room(), header, board.next_event).size(), 0});
}

void MepSource::end_run() {
  ended_ = true;
  for (int repeat = 0; repeat < kEndMarkers; ++repeat) {
    for (std::size_t b = 0; b < boards_.size(); ++b) {
      if (boards_[b].seen) add_marker(boards_[b], static_cast<std::uint8_t>(b), Marker::end);
    }
  }
}

// The boards' MEPs follow one another and cover the same time; only what is later than all before is new time.
void MepSource::advance_time(std::uint32_t timestamp) {
  const std::uint32_t step = timestamp - last_timestamp_;
  const std::uint32_t back = last_timestamp_ - timestamp;
  const bool is_later = step <= kHalfRange;
  if (has_time_ && !is_later && back < kBurstStep) return;
  if (has_time_ && is_later) time_ticks_ += std::uint64_t{step} << 8;
  has_time_ = true;
  last_timestamp_ = timestamp;
}

}  // namespace nanet::emulate
