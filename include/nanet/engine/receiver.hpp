// SPDX-License-Identifier: Apache-2.0
// Receiver: fills the buffers of one CLOP from one link, checks and accounts for every packet, and writes a completion for
// each buffer it hands over. This is the software NIC of the contract.
//
// A link whose payloads stay where they are (Link::payload_memory) gets back a buffer's payloads when the buffer is filled again, those not kept at
// once, and the rest when the receiver is destroyed; no one may read a buffer then. docs/design/payloads-in-place.md.
//
// Thread rules: one thread calls poll and flush; counters may be read from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "nanet/engine/config.hpp"
#include "nanet/engine/sender_filter.hpp"
#include "nanet/flow/clop.hpp"
#include "nanet/flow/completion_queue.hpp"
#include "nanet/flow/counters.hpp"
#include "nanet/flow/router.hpp"
#include "nanet/link/link.hpp"

namespace nanet::engine {

struct ReceiverConfig {
  std::uint32_t batch_size = 128;  // packets per receive call; more: fewer calls, larger bursts
  std::uint64_t timeout_ns = 0;    // hand a buffer over when its oldest packet is this old; 0: after every batch

  // But not while the consumer already has this many to do: then the buffer keeps filling, and a slow consumer gets fewer, fuller
  // buffers instead of running out of them.
  std::uint32_t backlog_max = 2;

  std::vector<SenderNetwork> senders;  // who may send; none: anyone

  // Bytes of a packet, at most. A longer one counts as truncated, even where the link had room for all of it.
  std::uint32_t packet_bytes_max = 65'535;

  std::optional<AssembleConfig> assemble;  // protocols whose packets are pieces of units; none: the defaults
};

// The books of one stream of units, as they are now.
struct StreamBooks {
  std::uint64_t stream;
  std::uint64_t packets_accepted;
  std::uint64_t packets_refused;
  std::uint64_t packets_lost;
  std::uint64_t units_complete;
  std::uint64_t units_incomplete;
  std::uint64_t units_no_buffer;
  std::uint64_t units_lost;
};

class Receiver {
 public:
  virtual ~Receiver() = default;

  // Takes one batch from the link. Returns the number of packets that came, good or not.
  virtual std::uint32_t poll(std::uint64_t now_ns) = 0;

  // Hands over whatever the current buffer holds.
  virtual void flush() = 0;

  // Whether packets wait in a buffer that is not handed over yet.
  virtual bool holds_packets() const = 0;

  // Packets that cannot be attributed to a source (refused ones).
  virtual const flow::Counters& link_counters() const = 0;
  virtual const flow::Counters& source_counters(std::size_t source) const = 0;

  // Of packets that are put together to units: the books of each stream. Empty for others.
  virtual std::vector<StreamBooks> streams() const { return {}; }
};

// What a receiver works on. link, clop and queue must outlive it, and the queue must have room for all buffers of all CLOPs that complete into it.
struct ReceiverParts {
  link::Link& link;
  flow::Clop& clop;
  flow::CompletionQueue& queue;
  flow::Router router;  // resolves the sources of this link to 0 .. source_count - 1
  std::size_t source_count;
};

}  // namespace nanet::engine
