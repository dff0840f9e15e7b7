// SPDX-License-Identifier: Apache-2.0
// Port: a link, its CLOP and its completions for a program that processes the data itself. Runs in the caller's thread.
//
// Thread rules: one thread.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nanet/engine/config.hpp"
#include "nanet/engine/receiver.hpp"
#include "nanet/flow/completion_queue.hpp"
#include "nanet/flow/payload_memory.hpp"
#include "nanet/gpu/pinned_memory.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/udp.hpp"

namespace nanet::engine {

// A unit as its consumer sees it. Holes, between what is present, have bytes of no meaning.
struct Unit {
  const UnitHead& head;
  std::span<const UnitRange> present;
  std::span<const std::byte> bytes;

  bool is_complete() const { return head.bytes_missing == 0 && head.packet_count > 0; }
};

// A unit as rows of numbers where they lie, and which of them came. What a format says of its samples the program says here: T, and the order of a
// number's bytes. Valid as long as the unit's completion is held.
template <std::unsigned_integral T, std::endian order = std::endian::native>
class UnitView {
 public:
  // None: the unit's length is no multiple of a row.
  static std::optional<UnitView> of(const Unit& unit, std::size_t columns) {
    if (columns == 0 || unit.bytes.size() % (columns * sizeof(T)) != 0) return std::nullopt;
    return UnitView(unit, columns);
  }

  std::size_t rows() const { return bytes_.size() / (columns_ * sizeof(T)); }
  std::size_t columns() const { return columns_; }

  // Where they lie, in the order of the host.
  std::span<const T> row(std::size_t r) const requires(order == std::endian::native) {
    return {reinterpret_cast<const T*>(bytes_.data()) + r * columns_, columns_};
  }

  T at(std::size_t r, std::size_t c) const {
    std::byte bytes[sizeof(T)];
    std::copy_n(bytes_.data() + place(r, c), sizeof(T), bytes);
    if constexpr (order != std::endian::native) std::reverse(bytes, bytes + sizeof(T));
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    return value;
  }

  // Whether all of it came: a search among the unit's ranges.
  bool has(std::size_t r, std::size_t c) const { return is_present(place(r, c), sizeof(T)); }
  bool has_row(std::size_t r) const { return is_present(place(r, 0), columns_ * sizeof(T)); }

 private:
  UnitView(const Unit& unit, std::size_t columns) : bytes_(unit.bytes), present_(unit.present), columns_(columns) {}

  std::size_t place(std::size_t r, std::size_t c) const { return (r * columns_ + c) * sizeof(T); }

  bool is_present(std::size_t begin, std::size_t bytes) const {
    const auto after = std::upper_bound(present_.begin(), present_.end(), begin,
                                        [](std::size_t place, const UnitRange& range) { return place < range.begin; });
    return after != present_.begin() && begin + bytes <= std::prev(after)->end;
  }

  std::span<const std::byte> bytes_;
  std::span<const UnitRange> present_;
  std::size_t columns_;
};

class Port {
 public:
  // Binds the socket and allocates everything. Where the endpoint has several queues, a port is over config.queue of them: they are opened in
  // order, and all but the first listen on local() of that one. memory: host_pinned registers the CLOP with CUDA, so that a GPU reads it in place.
  // Throws SetupError; always for memory device, as the kernel writes into host memory only.
  explicit Port(const LinkConfig& config, MemoryKind memory = MemoryKind::host);

  // The next completion, or nullptr when none came within timeout_ns. Valid until release(). Several may be held at once: each
  // call gives a newer one.
  const Completion* poll(std::uint64_t timeout_ns);

  // Returns the oldest buffer that poll() gave. Nothing in it may be trusted afterwards: new packets will be written there.
  void release();

  std::span<const std::byte> bytes(const Completion& completion) const {
    return clop_.buffer(completion.buffer_index).first(completion.bytes);
  }
  // One packet of the completion's buffer, wherever it lies.
  std::span<const std::byte> payload(const Completion& completion, const PacketRef& ref) const {
    return flow::payload_of(completion, clop_.buffer(completion.buffer_index), ref);
  }
  std::span<const PacketRef> packet_index(const Completion& completion) const {
    return clop_.packet_index(completion.buffer_index).first(completion.packet_count);
  }

  // Of a completion with status::unit.
  Unit unit(const Completion& completion) const;

  // The books of each stream of units; empty for packets that are not pieces of some.
  std::vector<StreamBooks> streams() const { return receiver_->streams(); }

  // How a GPU sees the buffers; nullptr with memory host.
  const gpu::PinnedMemory* pinned() const { return pinned_.get(); }

  // Index of a destination for send(). The same URL gives the same index.
  std::uint32_t add_destination(const std::string& url);

  // Sends one packet at once. False: the kernel did not take it.
  bool send(std::uint32_t destination, std::span<const std::byte> payload);

  link::Endpoint local() const { return link_->local(); }
  link::LinkStats stats() const { return link_->stats(); }
  std::uint64_t total(flow::Counter counter) const;
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::uint64_t longest_wait_ns(std::uint64_t timeout_ns) const;

  const LinkConfig config_;
  std::unique_ptr<link::Link> link_;
  flow::Clop clop_;
  std::unique_ptr<gpu::PinnedMemory> pinned_;
  flow::CompletionQueue queue_;
  std::unique_ptr<Receiver> receiver_;
  std::vector<std::string> destination_urls_;
  std::vector<std::unique_ptr<link::UdpLink>> destinations_;
  std::vector<std::string> notes_;
  std::vector<Completion> held_;  // given by poll() and not released, oldest first
  std::size_t held_first_ = 0;
  std::size_t held_count_ = 0;
};

}  // namespace nanet::engine
