// SPDX-License-Identifier: Apache-2.0
// GVCP: AravisProject/aravis, arvgvcpprivate.h and arvgvcp.c; Wireshark, packet-gvcp.c.
#include "nanet/engine/resend.hpp"

#include <algorithm>

#include "nanet/link/endpoint.hpp"
#include "nanet/link/udp.hpp"

namespace nanet::engine {
namespace {

constexpr std::uint32_t kExtendedHeaderBytes = 20;
constexpr std::uint32_t kPacketIdMax = 0xFF'FFFF, kExtendedPacketIdMax = 0xFFFF'FFFF;
constexpr std::uint32_t kCommandKey = 0x42, kExtendedIds = 0x10, kPacketResend = 0x0040;

void put_be(std::byte* out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t k = 0; k < bytes; ++k) out[k] = static_cast<std::byte>(value >> (8 * (bytes - 1 - k)) & 0xFF);
}

class GvcpRequester final : public Requester {
 public:
  GvcpRequester(const ResendConfig& config, const std::string& name)
      : link_({.name = name + " resend", .destinations = {link::parse_endpoint(config.endpoint)}, .tx_wait_us = 0}) {}

  void ask(const MissingPart& part) override {
    if (count_ == kBatch) flush();
    const std::span<std::byte, kGvcpResendBytesMax> place(commands_[count_]);
    request_id_ = static_cast<std::uint16_t>(request_id_ == UINT16_MAX ? 1 : request_id_ + 1);  // 0 means an error
    const std::size_t bytes = write_gvcp_resend(place, part, request_id_);
    packets_[count_++] = {place.data(), static_cast<std::uint32_t>(bytes), 0};
  }

  void flush() override {
    if (count_ == 0) return;
    link_.send(std::span(packets_).first(count_), 0);
    count_ = 0;
  }

 private:
  static constexpr std::size_t kBatch = 64;

  link::UdpLink link_;
  std::array<std::array<std::byte, kGvcpResendBytesMax>, kBatch> commands_{};
  std::array<link::TxPacket, kBatch> packets_{};
  std::size_t count_ = 0;
  std::uint16_t request_id_ = 0;
};

}  // namespace

std::size_t write_gvcp_resend(std::span<std::byte, kGvcpResendBytesMax> out, const MissingPart& part, std::uint16_t request_id) {
  const bool is_extended = part.header_bytes >= kExtendedHeaderBytes;
  const std::uint32_t most = is_extended ? kExtendedPacketIdMax : kPacketIdMax;
  const std::uint64_t first = std::uint64_t{part.first_packet()} + 1;
  const std::uint64_t last = first + part.packet_count() - 1 + (part.open_end ? 1 : 0);
  const std::size_t data_bytes = is_extended ? 20 : 12;
  put_be(out.data(), kCommandKey, 1);
  put_be(out.data() + 1, is_extended ? kExtendedIds : 0, 1);  // no acknowledge: the packets are the answer
  put_be(out.data() + 2, kPacketResend, 2);
  put_be(out.data() + 4, data_bytes, 2);
  put_be(out.data() + 6, request_id, 2);
  put_be(out.data() + 8, is_extended ? 0 : part.unit & 0xFFFF, 4);  // stream channel 0, and the block
  put_be(out.data() + 12, std::min<std::uint64_t>(first, most), 4);
  put_be(out.data() + 16, std::min<std::uint64_t>(last, most), 4);
  if (is_extended) put_be(out.data() + 20, part.unit, 8);
  return 8 + data_bytes;
}

std::unique_ptr<Requester> make_requester(const ResendConfig& config, const std::string& name) {
  switch (config.by) {
    case ResendBy::gvcp: return std::make_unique<GvcpRequester>(config, name);
  }
  return nullptr;  // not covered: there are no others
}

}  // namespace nanet::engine
