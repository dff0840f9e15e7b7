// SPDX-License-Identifier: Apache-2.0
#include "payload_room.hpp"

#include <algorithm>
#include <cstring>

namespace nanet::gpu::rig {
namespace {

constexpr std::byte kJunk{0xEE};

}  // namespace

const char* name_of(Placing placing) {
  return placing == Placing::host ? "in place on the host" : placing == Placing::device ? "in place on the GPU" : "ordinary";
}

PayloadRoom::PayloadRoom(Placing placing, std::uint32_t buffer_count, std::uint32_t buffer_bytes)
    : placing_(placing), buffer_bytes_(buffer_bytes) {
  const std::size_t bytes = std::size_t{buffer_count} * buffer_bytes;
  if (placing == Placing::host) host_.emplace(flow::RegionConfig{.name = "payloads", .bytes = bytes, .locked = false});
  if (placing != Placing::device) return;
  device_ = DeviceArray<std::byte>(bytes);
  image_.resize(buffer_bytes);
  stream_ = std::make_unique<Stream>();
}

flow::PayloadMemory PayloadRoom::memory() const {
  if (placing_ == Placing::host) return {host_->span(), MemoryKind::host};
  return {{device_.get(), device_.bytes()}, MemoryKind::device};
}

std::vector<PlacedPacket> PayloadRoom::write(std::uint32_t buffer_index, std::span<const Payload> packets, std::uint32_t hole) {
  const std::uint32_t head_bytes = placing_ == Placing::device ? PlacedPacket::head_bytes_max : 0;
  const std::size_t first = std::size_t{buffer_index} * buffer_bytes_;
  std::byte* const to = placing_ == Placing::device ? image_.data() : host_->data() + first;
  const auto address = reinterpret_cast<std::uintptr_t>(placing_ == Placing::device ? device_.get() : host_->data()) + first;
  std::memset(to, static_cast<int>(kJunk), buffer_bytes_);
  std::vector<PlacedPacket> records(packets.size());
  std::size_t offset = hole;
  for (std::size_t p = 0; p < packets.size(); ++p) {
    const std::span<const std::byte> packet = packets[p];
    const auto rest = packet.subspan(head_bytes);
    if (offset + rest.size() > buffer_bytes_) throw SetupError("the room is full", "the test is wrong", "use fewer packets");
    std::ranges::copy(rest, to + offset);
    records[p] = {.head = {},
                  .address = address + offset,
                  .handle = p,
                  .bytes = static_cast<std::uint16_t>(packet.size()),
                  .head_bytes = static_cast<std::uint16_t>(head_bytes),
                  .reserved = 0};
    std::memset(records[p].head, static_cast<int>(kJunk), sizeof records[p].head);
    std::ranges::copy(packet.first(head_bytes), records[p].head);
    offset += rest.size() + hole;
  }
  if (placing_ != Placing::device) return records;
  check(cudaMemcpyAsync(device_.get() + first, image_.data(), image_.size(), cudaMemcpyHostToDevice, stream_->get()),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream_->get()), "cudaStreamSynchronize");
  return records;
}

}  // namespace nanet::gpu::rig
