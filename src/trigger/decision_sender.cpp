// SPDX-License-Identifier: Apache-2.0
#include "trigger/decision_sender.hpp"

namespace nanet::trigger {

DecisionSender::DecisionSender(link::Link& link, Destination destination, std::uint8_t source_sub_id)
    : link_(link), destination_(destination), source_sub_id_(source_sub_id), room_(kPacketsMax) {
  writers_.reserve(kPacketsMax);
  for (auto& bytes : room_) writers_.emplace_back(bytes);
}

bool DecisionSender::add(const l0tp::Decision& trigger) {
  const bool same_group = group_count_ > 0 && groups_[group_count_ - 1].arrived_ns == trigger.arrived_ns;
  if (!same_group && group_count_ == kGroupsMax) return false;
  if (destination_ == Destination::link) {
    if (writers_[packet_count_].entry_count() == wire::kL0DecisionEntriesMax) {
      if (packet_count_ + 1 == kPacketsMax) return false;
      close_packet();
    }
    wire::L0DecisionWriter& writer = writers_[packet_count_];
    if (writer.entry_count() == 0) writer.begin(source_sub_id_, trigger.trigger_number);
    const bool calibration = trigger.kind == l0tp::DecisionKind::calibration;
    const unsigned matched_kind = trigger.matched_inputs | (calibration ? unsigned{wire::kL0CalibrationBit} : 0u);
    writer.add({trigger.timestamp, trigger.fine_time, static_cast<std::uint8_t>(matched_kind), trigger.trigger_word});
  }
  if (!same_group) groups_[group_count_++] = {trigger.arrived_ns, 0};
  ++groups_[group_count_ - 1].count;
  return true;
}

void DecisionSender::close_packet() {
  const auto bytes = writers_[packet_count_].finish();
  packets_[packet_count_++] = {bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0};
}

void DecisionSender::give_to_link(std::uint64_t now_ns) {
  if (destination_ == Destination::none) return;
  close_packet();
  for (std::uint32_t i = 0; i < packet_count_; ++i) triggers_sent_ += writers_[i].entry_count();
  packets_sent_ += packet_count_;
  link_.send({packets_.data(), packet_count_}, now_ns);
  for (std::uint32_t i = 0; i < packet_count_; ++i) writers_[i].begin(source_sub_id_, 0);
  packet_count_ = 0;
}

void DecisionSender::record(std::uint64_t now_ns) {
  for (std::size_t i = 0; i < group_count_; ++i) {
    const Group& group = groups_[i];
    latency_.record(now_ns > group.arrived_ns ? now_ns - group.arrived_ns : 0, group.count);
  }
  group_count_ = 0;
}

}  // namespace nanet::trigger
