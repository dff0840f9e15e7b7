// SPDX-License-Identifier: Apache-2.0
// Links on kernels that lack something: reported, and done by other means where there are any.
#include <linux/bpf.h>

#include "../refused_calls.hpp"
#include "xdp_rig.hpp"

namespace nanet::link::test {
namespace {

using nanet::test::RefusedCall;
using nanet::test::with_refused;

constexpr std::uint32_t kUdpGro = 104;

TEST(OldKernel, WithoutUdpGroItGoesPacketByPacket) {
  with_refused({{SYS_setsockopt, ENOPROTOOPT, 2, ~0u, kUdpGro}}, [] {
    UdpLink link(listening());
    ASSERT_EQ(link.notes().size(), 1u);
    EXPECT_NE(link.notes()[0].find("packets are not coalesced (no UDP_GRO) use Linux 5.0 or newer"), std::string::npos)
        << link.notes()[0];
    EXPECT_EQ(link.path(), "UDP socket, packet by packet");
    UdpLink sender(sending_to({link.local().port}));  // super-packets, which the kernel takes apart
    std::vector<Bytes> sent;
    for (std::uint32_t i = 0; i < 100; ++i) sent.push_back(payload(i, 1168));
    std::vector<TxPacket> packets;
    for (const Bytes& one : sent) packets.push_back({one.data(), static_cast<std::uint32_t>(one.size()), 0});
    sender.send(packets, 0);
    Collector collector;
    const std::vector<Got> got = collector.collect(link, 100);
    ASSERT_EQ(got.size(), 100u);
    for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(got[i].data, sent[i]);
  });
}

TEST(OldKernel, WithoutWhatAfXdpNeedsItIsSaid) {
  if (cannot_run()) return;
  XdpConfig config = listening_here();
  config.listen->address = INADDR_LOOPBACK;
  EXPECT_EQ(error_of(config), "no error");
  const auto error_with = [&](const RefusedCall& call) {
    std::string error;
    with_refused({call}, [&] { error = error_of(config); });
    return error;
  };
  expect_says(error_with({SYS_socket, EAFNOSUPPORT, 0, ~0u, AF_XDP}), "(this kernel has no AF_XDP) use udp://");
  expect_says(error_with({SYS_bpf, EINVAL, 0, ~0u, BPF_LINK_CREATE}), "it needs Linux 5.9 or newer; use udp://");
}

}  // namespace
}  // namespace nanet::link::test
