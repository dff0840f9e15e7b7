// SPDX-License-Identifier: Apache-2.0
#include "model/torus/rdma_node.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>

#include "Vsimulated_rdma_node.h"
#include "Vsimulated_rdma_node___024root.h"
#include "verilated.h"

namespace nanet::torus {
namespace {

constexpr int kClearCycles = 100;  // the RTL clears its table of messages
constexpr std::uint32_t kPageShift = 16, kPageBytes = 1u << kPageShift, kPages = kHostBytes / kPageBytes;
constexpr std::uint32_t kEntries = kPageBytes / sizeof(Completion);
constexpr std::uint64_t kBusBase = 0x12'0000'0000;  // the queue's page, and behind it those of the memory, last first
constexpr double kNsPerCycle = 1e3 / 175;

// Fields of job_t from its lowest bit on.
template <class Wide>
void pack_job(const RdmaJob& job, Wide& wide) {
  const std::uint64_t to = job.to.at[0] | job.to.at[1] << 6 | job.to.at[2] << 11;
  const std::array<std::pair<std::uint64_t, unsigned>, 12> fields{{{job.tag, 64},
                                                                   {job.bytes, 32},
                                                                   {job.local_nonce, 32},
                                                                   {job.local, 48},
                                                                   {job.offset, 40},
                                                                   {job.region, 8},
                                                                   {job.nonce, 32},
                                                                   {0, 16},
                                                                   {job.process, 16},
                                                                   {0, 4},
                                                                   {to, 16},
                                                                   {static_cast<std::uint64_t>(job.kind), 5}}};
  unsigned at = 0;
  for (unsigned k = 0; k < 10; ++k) wide[k] = 0;
  for (const auto& [value, width] : fields) {
    for (unsigned bit = 0; bit < width; ++bit, ++at) wide[at / 32] |= static_cast<std::uint32_t>(value >> bit & 1) << at % 32;
  }
}

}  // namespace

class VerilatedRdma {
 public:
  explicit VerilatedRdma(std::uint32_t seed) {
    context.randReset(2);
    context.randSeed(static_cast<int>(seed & 0x7FFF'FFFE) + 1);
    top = std::make_unique<Vsimulated_rdma_node>(&context);
  }
  ~VerilatedRdma() { top->final(); }

  VerilatedContext context;
  std::unique_ptr<Vsimulated_rdma_node> top;
};

RdmaNode::RdmaNode(const Shape& shape, std::uint32_t number, std::array<const Wire*, kLinks> in, std::array<Wire*, kLinks> out,
                   std::span<std::uint8_t> memory)
    : number_(number),
      in_(in),
      out_(out),
      own_memory_(memory.empty() ? kHostBytes : 0),
      memory_(memory.empty() ? std::span(own_memory_) : memory.first(kHostBytes)),
      queue_(kPageBytes),
      rtl_(std::make_unique<VerilatedRdma>(number)) {
  Vsimulated_rdma_node& top = *rtl_->top;
  const Place at = shape.place(number);
  top.at = static_cast<SData>(at.at[0] | at.at[1] << 6 | at.at[2] << 11);
  top.shape = shape.of(0) | shape.of(1) << 7 | shape.of(2) << 13;
  top.key_write = top.region_write = top.entry_write = top.job_valid = top.answer_valid = 0;
  top.link_up = top.link_rx_valid = 0;
  top.consumed = 0;
  top.bus_valid = 0;
  top.watch_period = top.host_beat = top.host_says = 0;
  top.completion_mask = kEntries - 1;
  top.rst = 1;
  for (int k = 0; k < kResetCycles; ++k) tick();
  top.rst = 0;
  set_up();
  std::uint32_t up = 0;
  for (std::size_t port = 0; port < kLinks; ++port) up |= in_[port] != nullptr ? 1u << port : 0u;
  top.link_up = static_cast<CData>(up);
}

RdmaNode::RdmaNode(RdmaNode&&) noexcept = default;
RdmaNode::~RdmaNode() = default;

void RdmaNode::tick() {
  Vsimulated_rdma_node& top = *rtl_->top;
  top.clk = 0;
  top.eval();
  top.clk = 1;
  top.eval();
}

void RdmaNode::set_up() {
  constexpr std::uint64_t kAllowed = 7;  // valid, readable, writable
  Vsimulated_rdma_node& top = *rtl_->top;
  top.entry_write = 1;
  for (std::uint32_t page = 0; page <= kPages; ++page) {
    top.entry_index = static_cast<CData>(page);
    top.entry_data = (kBusBase + (page == 0 ? 0 : std::uint64_t{kPages + 1 - page} * kPageBytes)) | kAllowed;
    tick();
  }
  top.entry_write = 0;
  top.region_write = 1;
  for (const std::uint32_t region : {0u, 1u}) {
    top.region_index = static_cast<CData>(region);
    top.region_first = static_cast<CData>(region);
    top.region_count = static_cast<CData>(region == 0 ? 1 : kPages);
    tick();
  }
  top.region_write = 0;
  for (int k = 0; k < kClearCycles; ++k) tick();
}

std::uint8_t* RdmaNode::at(std::uint64_t bus_address) {
  const std::uint64_t offset = bus_address - kBusBase, page = offset >> kPageShift, low = offset & (kPageBytes - 1);
  if (page > kPages) {
    std::ostringstream text;
    text << "node " << number_ << " asked the bus for 0x" << std::hex << bus_address
         << " (no memory of it is there) the page table or the network interface is broken";
    throw std::logic_error(text.str());
  }
  return page == 0 ? &queue_[low] : &memory_[(kPages - page) * kPageBytes + low];
}

void RdmaNode::step(std::uint64_t cycle) {
  Vsimulated_rdma_node& top = *rtl_->top;
  beat(cycle);
  if (!logic_lives_) {
    for (Wire* const out : out_) {
      if (out != nullptr) out->put(cycle, false, nullptr);
    }
    return;
  }
  take_outputs(cycle);
  look_at_neighbours(cycle);
  use_registers();
  give_inputs(cycle);
  const bool hands_over = top.job_room != 0 && keys_.empty() && !jobs_.empty();
  top.job_valid = hands_over;
  if (hands_over) {
    give_job();
    job_cycle_ = cycle;
  }
  top.key_write = !keys_.empty();
  if (!keys_.empty()) {
    const RdmaKey& key = keys_.front();
    top.key_index = key.index;
    top.key_valid = key.is_valid;
    top.key_readable = key.is_readable;
    top.key_writable = key.is_writable;
    top.key_nonce = key.nonce;
    top.key_start = device_address(key.offset);
    top.key_bytes = key.bytes;
    keys_.pop_front();
  }
  top.now_ns = static_cast<std::uint64_t>(static_cast<double>(cycle) * kNsPerCycle);
  top.rootp->__Vtrigprevexpr___TOP__clk__0 = 0;  // as in Node::step
  top.clk = 1;
  top.eval();
}

void RdmaNode::watch(std::uint32_t beat_cycles, std::uint32_t period_cycles) {
  beat_cycles_ = beat_cycles;
  rtl_->top->watch_period = period_cycles;
}

// The host: it beats, and looks whether the logic does.
void RdmaNode::beat(std::uint64_t cycle) {
  Vsimulated_rdma_node& top = *rtl_->top;
  const bool beats = host_lives_ && beat_cycles_ != 0 && cycle % beat_cycles_ == 0;
  top.host_beat = beats;
  top.host_says = host_says_;
  if (!beats) return;
  if (top.beats != beats_seen_) beats_cycle_ = cycle;
  beats_seen_ = top.beats;
  is_logic_silent_ = cycle - beats_cycle_ > 2ull * std::max(kBeatCycles, beat_cycles_);
}

void RdmaNode::look_at_neighbours(std::uint64_t cycle) {
  const Vsimulated_rdma_node& top = *rtl_->top;
  state_ = top.node_state;
  const std::uint64_t links = top.neighbours, change = links ^ links_;
  if (change == 0) return;
  links_ = links;
  constexpr unsigned kBits = 10, kUp = 1, kSilent = 2, kHostSilent = 4, kSaysAt = 3;
  for (std::size_t port = 0; port < kLinks; ++port) {
    if ((change >> kBits * port & ((1u << kBits) - 1)) == 0) continue;
    const auto bits = static_cast<unsigned>(links >> kBits * port & ((1u << kBits) - 1));
    neighbours_[port] = {.has_link = (bits & kUp) != 0,
                         .is_silent = (bits & kSilent) != 0,
                         .is_host_silent = (bits & kHostSilent) != 0,
                         .says = static_cast<std::uint8_t>(bits >> kSaysAt),
                         .since_cycle = cycle};
  }
}

void RdmaNode::use_registers() {
  Vsimulated_rdma_node& top = *rtl_->top;
  if (top.bus_done) {
    if (top.bus_error) throw std::logic_error("node " + std::to_string(number_) + " has not the registers of ape.rdl");
    registers_.done(top.bus_rdata);
  }
  const std::optional<RdmaRegisters::Access> next = registers_.next(top.irq != 0);
  top.bus_valid = next.has_value();
  if (!next) return;
  top.bus_write = next->is_write;
  top.bus_address = static_cast<SData>(next->address);
  top.bus_wdata = next->data;
}

void RdmaNode::give_job() {
  pack_job(jobs_.front(), rtl_->top->job);
  jobs_.pop_front();
}

void RdmaNode::give_inputs(std::uint64_t cycle) {
  Vsimulated_rdma_node& top = *rtl_->top;
  std::uint32_t valid = 0;
  for (std::size_t port = 0; port < kLinks; ++port) {
    const Word* word = in_[port] != nullptr ? in_[port]->get(cycle) : nullptr;
    if (word == nullptr) continue;
    valid |= 1u << port;
    for (std::size_t k = 0; k < kWordParts; ++k) top.link_rx_data[kWordParts * port + k] = (*word)[k];
  }
  top.link_rx_valid = static_cast<CData>(valid);
  top.answer_valid = !reads_.empty() && reads_.front().due <= cycle;
  if (top.answer_valid == 0) return;
  Read& read = reads_.front();
  std::array<std::uint32_t, kWordParts> data;
  std::memcpy(data.data(), at(read.address), sizeof(data));
  for (unsigned k = 0; k < kWordParts; ++k) top.answer_data[k] = data[k];
  top.answer_tag = static_cast<CData>(read.tag);
  top.answer_last = read.words == 1;
  read.address += kWordBytes;
  if (--read.words == 0) reads_.pop_front();
}

void RdmaNode::take_outputs(std::uint64_t cycle) {
  const Vsimulated_rdma_node& top = *rtl_->top;
  for (std::size_t port = 0; port < kLinks; ++port) {
    if (out_[port] != nullptr) out_[port]->put(cycle, (top.link_tx_valid >> port & 1) != 0, &top.link_tx_data[kWordParts * port]);
  }
  if (top.write_valid) {
    write_address_ = (top.write_first ? top.write_address : write_address_) & ~std::uint64_t{kWordBytes - 1};
    std::uint8_t* const to = at(write_address_);
    for (std::size_t byte = 0; byte < kWordBytes; ++byte) {
      if ((top.write_keep >> byte & 1) != 0) to[byte] = static_cast<std::uint8_t>(top.write_data[byte / 4] >> 8 * (byte % 4));
    }
    if (to >= queue_.data() && to < queue_.data() + queue_.size()) completion_cycle_ = cycle;
    write_address_ += kWordBytes;
  }
  if (top.read_valid) {
    const std::uint64_t low = top.read_address % kWordBytes;
    reads_.push_back({.due = cycle + kReadCycles,
                      .address = top.read_address - low,
                      .words = static_cast<std::uint32_t>((low + top.read_bytes + kWordBytes - 1) / kWordBytes),
                      .tag = top.read_tag});
  }
  count();
}

void RdmaNode::count() {
  const Vsimulated_rdma_node& top = *rtl_->top;
  for (std::size_t k = 0; k < counts_.packets.size(); ++k) counts_.packets[k] += top.counts >> k & 1;
  counts_.missed += top.missed;
  counts_.refused += top.refused;
  counts_.lost += top.lost;
  (top.gone_bad ? counts_.gone_bad : counts_.gone_good) += top.gone_valid;
}

std::vector<Completion> RdmaNode::take() {
  std::vector<Completion> found;
  while (true) {
    Completion one;
    std::memcpy(&one, &queue_[(taken_ % kEntries) * sizeof(Completion)], sizeof(one));
    if (one.sequence != taken_ + 1) break;
    found.push_back(one);
    ++taken_;
  }
  rtl_->top->consumed = taken_;
  return found;
}

}  // namespace nanet::torus
