// SPDX-License-Identifier: Apache-2.0
// Setting up AF_XDP, its faults, and what is left behind.
#include <signal.h>

#include "xdp_rig.hpp"

namespace nanet::link::test {
namespace {

TEST(Xdp, RefusesWithoutTheBackEnd) {
  if (has_xdp()) return;
  expect_says(error_of(listening_here()), "libnanet_link_xdp.so is neither in");
}

TEST(Xdp, InterfaceGoesDownAndComesBack) {
  if (cannot_run()) return;
  const Hosts hosts;
  XdpConfig config = listening_here();
  config.destinations = {Endpoint{"xdp", kThere, 5001}};
  const auto link = open_xdp(config);
  std::optional<HostSocket> peer;
  hosts.there([&] { peer.emplace(kThere, 5001); });
  const Bytes data = payload(5, 100);
  const TxPacket packet{data.data(), 100, 0};
  Collector collector;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(run("ip link set nanet0 down"), 0);
    std::vector<Got> nothing;
    collector.receive_once(*link, nothing);
    link->wait(1'000'000);
    link->send({&packet, 1}, 0);  // waits in the ring
    EXPECT_TRUE(nothing.empty());
    EXPECT_EQ(run("ip link set nanet0 up"), 0);
    link->send({&packet, 1}, 0);
    ASSERT_TRUE(peer->receive());
    ASSERT_TRUE(peer->receive());
    hosts.meet();
    hosts.there([&] {
      HostSocket sender(kThere, 5000);
      for (std::uint32_t i = 0; i < 10; ++i) sender.send(kHere, kPort, payload(i, 1168));
    });
    expect_in_order(collector.collect(*link, 10), 0, 10, 1168);
  }
  EXPECT_EQ(link->stats().tx_packets, 6u);
  EXPECT_EQ(run("ip link del nanet0"), 0);  // for good: nothing hangs, nothing crashes
  std::vector<Got> nothing;
  collector.receive_once(*link, nothing);
  link->wait(1'000'000);
  link->send({&packet, 1}, 0);
  EXPECT_EQ(link->stats().tx_packets + link->stats().tx_dropped, 7u);
}

TEST(Xdp, OneProgramAnInterfaceAndNothingLeftBehind) {
  if (cannot_run()) return;
  const Hosts hosts;
  {
    const auto link = open_xdp(listening_here());
    expect_says(attached(), "prog/xdp");
    const std::string error = error_of(listening_here(kPort + 1));
    expect_says(error, "cannot have interface nanet0 (the XDP program 'steer' with id ");
    expect_says(error, "is attached to it)");
  }
  EXPECT_EQ(attached(), "");
  XdpConfig config = listening_here();
  config.queues = {0, 7};
  expect_says(error_of(config), "cannot open queue 7 of nanet0 (Invalid argument: there may be no such queue)");
  EXPECT_EQ(attached(), "");

  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto link = open_xdp(listening_here());
    const char yes = 'y';
    if (::write(ready[1], &yes, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char answer = 0;
  ::close(ready[1]);
  EXPECT_EQ(::read(ready[0], &answer, 1), 1);
  ::close(ready[0]);
  expect_says(attached(), "prog/xdp");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (int i = 0; i < 200 && !attached().empty(); ++i) ::usleep(10'000);  // the kernel's clean-up lags
  EXPECT_EQ(attached(), "");
  open_xdp(listening_here());
}

TEST(Xdp, EachFaultOfTheSetUpIsSaid) {
  if (cannot_run()) return;
  const Hosts hosts;
  const auto with = [](const std::function<void(XdpConfig&)>& change) {
    XdpConfig config = listening_here();
    change(config);
    return error_of(config);
  };
  expect_says(with([](auto& c) { c.interface = "nanet9"; }), "cannot use interface nanet9 (No such device) see `ip link`");
  expect_says(with([](auto& c) { c.listen->address = 0x01020304; }), "no interface has the address to listen on");
  expect_says(with([](auto& c) { c.interface = "lo"; }), "it does not have the address of xdp://10.77.0.1:6200");
  expect_says(with([](auto& c) { c.listen->address = 0; }), "cannot have no interface");
  expect_says(with([](auto& c) { c.packet_bytes_max = 1473; }), "its MTU of 1500 is too small for packets of 1473 bytes");
  expect_says(with([](auto& c) { c.packet_bytes_max = 9015; }), "it is not 1 to 9014");
  expect_says(with([](auto& c) { c.frame_count = 1000; }), "no power of two");
  expect_says(with([](auto& c) { c.queues = {0, 0}; }), "queue 0 is named again");
  expect_says(with([](auto& c) { c.zero_copy = XdpZeroCopy::required; }), "its driver has no zero copy");
  expect_says(with([](auto& c) { c.listen.reset(); }), "has nothing to do");
  expect_says(with([](auto& c) { c.listen->scheme = "dpdk"; }), "scheme 'dpdk' is not xdp");
  expect_says(with([](auto& c) { c.destinations = {Endpoint{"xdp", kHere, 9}}; }), "the address is this machine's own");
  expect_says(with([](auto& c) { c.destinations = {Endpoint{"xdp", kThere, 0}}; }), "it has no address or no port");
  EXPECT_EQ(attached(), "");
  run("ip link set nanet0 down");
  expect_says(error_of(listening_here()), "cannot use interface nanet0 (it is down) ip link set nanet0 up");
  run("ip link set nanet0 up");
  const HostSocket other(kHere, kPort);
  EXPECT_TRUE(says(open_xdp(listening_here())->notes(), "a socket of the kernel has port 6200 too"));
}

TEST(Xdp, AnMtuTooLargeForOneBufferTakesTheOtherProgram) {
  if (cannot_run()) return;
  const Hosts hosts(1, 9000);
  const auto link = open_xdp(listening_here());
  EXPECT_EQ(link->path(), "AF_XDP, driver mode, copied, queue 0");
  hosts.there([&] { HostSocket(kThere, 5000).send(kHere, kPort, payload(0, 1472)); });
  Collector collector;
  expect_in_order(collector.collect(*link, 1), 0, 1, 1472);
}

TEST(Xdp, ADriverWithoutXdpTakesGenericModeAndSaysSo) {
  if (cannot_run()) return;
  const Hosts hosts;
  XdpConfig config = listening_here();
  config.listen->address = INADDR_LOOPBACK;
  config.attach = XdpAttach::driver;
  expect_says(error_of(config), "cannot attach its XDP program to lo (");
  config.attach = XdpAttach::automatic;
  const auto link = open_xdp(config);
  EXPECT_EQ(link->path(), "AF_XDP, generic mode, copied, queue 0");
  EXPECT_TRUE(says(link->notes(), "the XDP program runs behind the driver of lo"));
  HostSocket(INADDR_LOOPBACK, 5000).send(INADDR_LOOPBACK, kPort, payload(0, 1168));
  Collector collector;
  const std::vector<Got> got = collector.collect(*link, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].data, payload(0, 1168));
}

TEST(Xdp, WithoutPrivilege) {
  if (cannot_run()) return;
  const Hosts hosts;
  int result[2];
  ASSERT_EQ(::pipe(result), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool dropped = ::setgid(65534) == 0 && ::setuid(65534) == 0;
    const std::string error = dropped ? error_of(listening_here()) : "still root";
    ::_exit(::write(result[1], error.data(), error.size()) == static_cast<ssize_t>(error.size()) ? 0 : 1);
  }
  ::close(result[1]);
  std::string error(1000, '\0');
  error.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(result[0], error.data(), error.size()))));
  ::close(result[0]);
  ::waitpid(child, nullptr, 0);
  expect_says(error, "cannot attach its XDP program to nanet0 (Operation not permitted");
  expect_says(error, "run as root or with CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_PERFMON");
}

TEST(Xdp, WorksOnAfterRootIsGivenUp) {
  if (cannot_run()) return;
  const Hosts hosts;
  std::optional<HostSocket> peer;
  hosts.there([&] { peer.emplace(kThere, 5001); });
  const pid_t child = ::fork();
  if (child == 0) {
    XdpConfig config = listening_here();
    config.destinations = {Endpoint{"xdp", kThere, 5001}};
    const auto link = open_xdp(config);
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
    const Bytes data = payload(1, 100);
    const TxPacket packet{data.data(), 100, 0};
    link->send({&packet, 1}, 0);
    Collector collector;
    const bool good = collector.collect(*link, 1).size() == 1 && link->stats().rx_packets == 1 &&
                      link->stats().rx_kernel_dropped == 0;
    ::_exit(good ? 0 : 2);
  }
  const auto from = peer->receive(5000);
  ASSERT_TRUE(from);
  EXPECT_TRUE(peer->send(kHere, kPort, payload(2, 100)));
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Xdp, APortOfTheKernelsChoiceIsKept) {
  if (cannot_run()) return;
  const Hosts hosts;
  const auto link = open_xdp(listening_here(0));
  const std::uint16_t port = link->local().port;
  ASSERT_NE(port, 0);
  hosts.there([&] { HostSocket(kThere, 5000).send(kHere, port, payload(0, 100)); });
  Collector collector;
  expect_in_order(collector.collect(*link, 1), 0, 1, 100);
}

TEST(Xdp, BusyPollIsAskedFor) {
  if (cannot_run()) return;
  const Hosts hosts;
  XdpConfig config = listening_here();
  config.busy_poll_us = 20;
  const auto link = open_xdp(config);
  EXPECT_TRUE(says(link->notes(), "polled by the receiving thread"));
  hosts.there([&] { HostSocket(kThere, 5000).send(kHere, kPort, payload(0, 100)); });
  Collector collector;
  expect_in_order(collector.collect(*link, 1), 0, 1, 100);
}

}  // namespace
}  // namespace nanet::link::test
