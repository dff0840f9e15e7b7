// SPDX-License-Identifier: Apache-2.0
// Port: a link, its CLOP and its completions for a program that processes the data itself. Runs in the caller's thread.
//
// Thread rules: one thread.
#pragma once

#include <cstdint>
#include <memory>
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

class Port {
 public:
  // Binds the socket and allocates everything. memory: host_pinned registers the CLOP with CUDA, so that a GPU reads it in place.
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
