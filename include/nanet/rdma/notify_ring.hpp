// SPDX-License-Identifier: Apache-2.0
// Put with notification: a remote node fills a ring of this node's memory as a NIC does. First the payloads, then, once they are there, a
// notice for each; the reader polls the notices. No message, and no CPU of the reader's machine where the path is one-sided.
//
// Layout of a ring in its region, little-endian:
//   0    head      magic u64 | version u32 | slot_count u32 | payload_bytes_max u32 | slot_bytes u32
//   64   consumed  u64: how many payloads the reader has given back since start; the writer may be slot_count ahead
//   128  notices   slot_count x u64: sequence << 16 | bytes. The sequence of payload k (from 0) is k + 1, modulo 2^48; it lies in slot
//                  k modulo slot_count
//   ...  slots     slot_count x slot_bytes, each at a multiple of 64
//
// One writer a ring: expose its region with connection_count_max = 1. A writer that comes after another, even one that died, continues
// after the last payload that was notified; what the dead one put but did not notify, no one sees.
//
// A full ring loses nothing: send takes fewer. A caller that must not wait drops, and counts, on its own side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nanet/rdma/connection.hpp"

namespace nanet::rdma {

struct NotifyRingConfig {
  std::uint32_t slot_count = 1024;         // 1..1048576. Too few: the writer waits at every pause of the reader
  std::uint32_t payload_bytes_max = 1472;  // 1..65535
};

std::size_t notify_ring_bytes(const NotifyRingConfig& config);  // of the region; throws SetupError if the config is out of range

// The side whose memory it is. One thread.
class NotifyReader {
 public:
  NotifyReader(std::span<std::byte> memory, const NotifyRingConfig& config);  // writes the head; throws SetupError if it is too small

  // The oldest payload that was notified and not yet taken. It may be read, and changed, until it is given back.
  std::optional<std::span<std::byte>> take();
  // Of a payload that was taken: in any order; the writer gets its slots back in the order of the ring.
  void give_back(std::span<const std::byte> payload);

  std::uint64_t taken_count() const { return taken_; }
  std::uint64_t malformed_count() const {
    return malformed_;
  }  // notices of more bytes than a slot has: passed over, their slots given back

 private:
  void pass_back(std::uint64_t slot);

  std::span<std::byte> memory_;
  std::uint64_t slot_count_;
  std::uint64_t slot_bytes_;
  std::uint64_t payload_bytes_max_;
  std::size_t slots_at_;
  std::vector<std::uint8_t> is_given_back_;  // by slot
  std::uint64_t taken_ = 0;
  std::uint64_t consumed_ = 0;
  std::uint64_t malformed_ = 0;
};

// The side that fills it. One thread.
class NotifyWriter {
 public:
  // A connection to the region of a ring, with permission to read and to write. Throws SetupError if there is no ring.
  explicit NotifyWriter(Connection connection);

  struct Sent {
    Status status;
    std::size_t count;  // of the payloads, from the first: notified. Fewer than given and ok: the ring is full. Nothing is seen of the others
  };

  // Puts as many payloads as the ring has room for, and notifies them together; waits until they are in the target's memory, at most the
  // connection's time limit. The payloads' memory is free when it returns. The last notices may wait here until the next call or a flush.
  // A payload longer than payload_bytes_max: out_of_bounds, and none is sent.
  Sent send(std::span<const std::span<const std::byte>> payloads);

  Status flush();  // every notice is in the target's memory
  Status close();  // as Connection::close

  std::uint64_t sent_count() const { return next_ - first_; }  // notified by this writer
  std::uint32_t payload_bytes_max() const { return payload_bytes_max_; }
  std::uint32_t slot_count() const { return slot_count_; }
  const Connection& connection() const { return connection_; }

 private:
  std::uint64_t free_slots(Status& status, std::size_t wanted);
  Status put_payloads(std::span<const std::span<const std::byte>> payloads);
  Status notify(std::span<const std::span<const std::byte>> payloads);
  void find_next();

  Connection connection_;
  std::uint32_t slot_count_ = 0;
  std::uint32_t payload_bytes_max_ = 0;
  std::uint64_t slot_bytes_ = 0;
  std::uint64_t slots_at_ = 0;
  std::vector<std::uint64_t> notices_;
  std::uint64_t first_ = 0;     // the number of the first payload that this writer sends
  std::uint64_t next_ = 0;      // of the next one
  std::uint64_t consumed_ = 0;  // as last read
};

}  // namespace nanet::rdma
