// SPDX-License-Identifier: Apache-2.0
#include "emulate/tel62.hpp"

#include <algorithm>

namespace nanet::emulate {
namespace {

constexpr std::uint32_t kMessageBytesMax = 65507;  // of one UDP message to the kernel, however it is cut up later

// Packets of one batch. With detectors, not more than happens in one of their frames, so that boards that catch up do not outrun them.
std::uint32_t batch_max(const EmulatorConfig& config, std::uint32_t packet_bytes) {
  std::uint32_t most = std::min(Tel62::kBatchMax, kMessageBytesMax / packet_bytes);
  if (config.in_flight_packets_max != 0) most = std::min(most, config.in_flight_packets_max);
  if (config.detectors) {
    const double in_frame = config.rate_events_per_s * config.detectors->frame_us * 1e-6 / config.events_per_packet;
    most = static_cast<std::uint32_t>(std::clamp(in_frame, 1.0, static_cast<double>(most)));
    most = std::max(most, config.burst_packets);
  }
  return most;
}

}  // namespace

Tel62::Tel62(const EmulatorConfig& config, const Schedule& schedule, Sample& sample, AnswerBook& book, link::Link& link)
    : schedule_(schedule),
      sample_(sample),
      book_(book),
      link_(link),
      source_id_(config.source_id),
      first_sub_id_(config.first_sub_id),
      layout_(config.layout),
      pacing_(config.rate_events_per_s > 0 ? Pacing::paced : Pacing::unpaced),
      burst_packets_(config.burst_packets),
      batch_max_(batch_max(config, sample.packet_bytes())) {}

void Tel62::send_markers(MarkerKind kind, std::uint64_t now_ns) {
  wire::MgpHeader header;
  header.source_id = source_id_;
  header.layout = layout_;
  header.run_start = kind == MarkerKind::start;
  header.run_end = kind == MarkerKind::end;
  header.sequence = static_cast<std::uint32_t>(next_packet_);
  header.send_time_ns = static_cast<std::uint32_t>(now_ns);
  for (std::uint32_t board = 0; board < sample_.boards(); ++board) {
    header.source_sub_id = static_cast<std::uint8_t>(first_sub_id_ + board);
    std::array<std::byte, wire::kMgpMarkerBytes> room;
    const auto marker = wire::make_marker(room, header, next_packet_ * sample_.events_per_packet());
    const link::TxPacket packet{marker.data(), static_cast<std::uint32_t>(marker.size()), board};
    link_.send({&packet, 1}, now_ns);
  }
  markers_sent_.store(markers_sent() + sample_.boards(), std::memory_order_relaxed);
}

bool Tel62::prepare(std::uint64_t now_ns) {
  if (board_ == 0) {
    const std::uint64_t elapsed_ns = now_ns > start_ns_ ? now_ns - start_ns_ : 0;
    if (elapsed_ns < next_due_ns_) return false;
    begin_batch(elapsed_ns);
    if (batch_count_ == 0) return false;
  }
  for (std::uint32_t i = 0; i < batch_count_; ++i) {
    sample_.prepare(board_, batch_[i].pool_packet, next_packet_ + i, batch_[i].shift_units);
    tx_packets_[i] = {sample_.packet(board_, batch_[i].pool_packet).data(), sample_.packet_bytes(), board_};
  }
  return true;
}

void Tel62::begin_batch(std::uint64_t elapsed_ns) {
  batch_count_ = schedule_.ready(next_packet_, elapsed_ns, burst_packets_, batch_max_);
  for (std::uint32_t i = 0; i < batch_count_; ++i) batch_[i] = schedule_.packet(next_packet_ + i);
}

void Tel62::send(std::uint64_t now_ns) {
  sample_.stamp(board_, batch_[0].pool_packet, batch_count_, static_cast<std::uint32_t>(now_ns));
  for (std::uint32_t i = 0; i < batch_count_; ++i) {
    if (board_ == 0) {
      book_.sent(next_packet_ + i, batch_[i].pool_packet, batch_[i].shift_units, now_ns);
    } else {
      book_.resent(next_packet_ + i, now_ns);
    }
  }
  link_.send({tx_packets_.data(), batch_count_}, now_ns);
  if (++board_ < sample_.boards()) return;

  board_ = 0;
  if (pacing_ == Pacing::paced) record_lateness(now_ns - start_ns_);
  next_packet_ += batch_count_;
  next_due_ns_ = next_packet_ < schedule_.packet_count() ? schedule_.packet(next_packet_).due_ns : ~std::uint64_t{0};
  packets_sent_.store(next_packet_, std::memory_order_relaxed);
}

// A packet that waits for its burst is not late: it could leave when the last one of its burst was due.
void Tel62::record_lateness(std::uint64_t elapsed_ns) {
  for (std::uint32_t first = 0; first < batch_count_; first += burst_packets_) {
    const std::uint32_t end = std::min(first + burst_packets_, batch_count_);
    const std::uint64_t due_ns = batch_[end - 1].due_ns;
    lateness_.record(elapsed_ns > due_ns ? elapsed_ns - due_ns : 0, end - first);
  }
}

}  // namespace nanet::emulate
