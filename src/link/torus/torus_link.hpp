// SPDX-License-Identifier: Apache-2.0
// A host of a simulated torus. See nanet/link/torus.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "link/rx_room.hpp"
#include "link/torus/torus_slots.hpp"
#include "nanet/link/torus.hpp"

namespace nanet::link {

class TorusLink final : public Link {
 public:
  explicit TorusLink(const TorusConfig& config);  // throws SetupError
  ~TorusLink() override;

  std::size_t min_room_bytes() const override { return slot_bytes_; }
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) override;
  void send(std::span<const TxPacket> packets, std::uint64_t now_ns) override;
  void wait(std::uint64_t timeout_ns) override;
  LinkStats stats() const override;
  std::vector<NicCounts> nic_counts() const override;
  bool finished() const override;
  bool keeps_packets() const override { return true; }
  Endpoint local() const override { return *config_.listen; }
  std::string path() const override;
  std::vector<std::string> notes() const override;

 private:
  enum class Fate : std::uint8_t { gone, no_receiver, unsendable, no_credit };

  std::uint32_t reserve(std::uint32_t slots);  // throws SetupError
  void open_slots();
  void open_inbox(std::uint32_t sender, std::uint8_t key);
  void open_windows();
  void pump();
  void take(const Completion& one);
  void take_news(std::uint32_t from, TorusNumber process, TorusNumber value);
  void give_credits();
  bool take_oldest(TorusArrivals& arrivals, RxRoom& out);
  Fate put(TorusWindow& window, const TxPacket& packet);
  bool tell(TorusNews news, std::uint32_t to, std::uint32_t generation, TorusNumber value);
  void probe(const TorusWindow& window);
  void count(Fate fate, std::uint64_t bytes);
  std::uint64_t held() const;
  std::uint64_t unacknowledged(bool has_ended) const;
  void add_registers(std::vector<NicCounts>& all) const;
  std::uint64_t counted(Fate fate) const { return fates_[static_cast<std::size_t>(fate)]; }
  TorusArrivals* arrivals_of(std::uint32_t node);

  const TorusConfig config_;
  TorusFile file_;
  TorusHost& host_;
  std::span<std::byte> memory_;
  const std::uint32_t slot_bytes_;
  std::uint32_t used_bytes_ = 0;  // of the memory
  mutable std::mutex mutex_;      // over all that follows
  std::vector<TorusArrivals> arrivals_;
  std::vector<TorusWindow> windows_;
  std::size_t next_sender_ = 0;
  LinkStats own_;
  std::uint64_t stray_ = 0, failed_ = 0, stale_ = 0;  // of what came: payloads, messages, news
  std::array<std::uint64_t, 4> fates_{};              // by Fate: of what was to go
  std::uint64_t credits_ = 0, asks_ = 0;
};

}  // namespace nanet::link
