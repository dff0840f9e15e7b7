// SPDX-License-Identifier: Apache-2.0
// Back-ends as modules: this program is linked to none of them, so it needs none of their libraries until it opens such a link.
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "nanet/base/build_info.hpp"
#include "nanet/link/back_end.hpp"
#include "nanet/link/dpdk.hpp"
#include "nanet/link/gateware.hpp"
#include "nanet/link/ucx.hpp"
#include "nanet/link/xdp.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link::test {
namespace {

namespace fs = std::filesystem;

#ifdef NANET_LINK_DPDK_FILE
constexpr const char* kDpdkFile = NANET_LINK_DPDK_FILE;
#else
constexpr const char* kDpdkFile = nullptr;
#endif
#ifdef NANET_LINK_GATEWARE_FILE
constexpr const char* kGatewareFile = NANET_LINK_GATEWARE_FILE;
#else
constexpr const char* kGatewareFile = nullptr;
#endif
#ifdef NANET_LINK_XDP_FILE
constexpr const char* kXdpFile = NANET_LINK_XDP_FILE;
#else
constexpr const char* kXdpFile = nullptr;
#endif

#ifdef NANET_LINK_UCX_FILE
constexpr const char* kUcxFile = NANET_LINK_UCX_FILE;
#else
constexpr const char* kUcxFile = nullptr;
#endif

// Whether a shared library whose file's name begins so is in this process.
bool has_library(const std::string& begin) {
  struct Search {
    const std::string& begin;
    bool found = false;
  } search{begin};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        const std::string path = info->dlpi_name;
        wanted.found |= path.substr(path.rfind('/') + 1).starts_with(wanted.begin);
        return 0;
      },
      &search);
  return search.found;
}

DpdkConfig ring() {
  DpdkConfig config;
  config.device = "net_ring0";
  config.memory_mib = 64;
  config.listen = Endpoint{"dpdk", 0x0A4D0002, 6200};
  config.destinations = {*config.listen};
  return config;
}

std::string problem_of_dpdk() {
  try {
    open_dpdk(ring());
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

std::string problem_of_xdp() {
  XdpConfig config;
  config.listen = Endpoint{"xdp", 0x7F000001, 6200};
  config.interface = "nowhere";
  try {
    open_xdp(config);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

// A folder with a copy of this program, and what it says there.
class Elsewhere {
 public:
  Elsewhere() {
    char name[] = "/tmp/nanet_modules_XXXXXX";
    if (::mkdtemp(name) == nullptr) throw std::runtime_error("no folder in /tmp");
    folder_ = name;
    fs::copy_file("/proc/self/exe", folder_ / "program");
  }
  ~Elsewhere() { fs::remove_all(folder_); }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

  const fs::path& folder() const { return folder_; }
  std::string says() const {
    std::string text;
    FILE* pipe = ::popen((folder_.string() + "/program --gtest_filter=Report.* 2>&1").c_str(), "r");
    if (pipe == nullptr) return text;
    std::array<char, 512> part;
    while (const std::size_t bytes = std::fread(part.data(), 1, part.size(), pipe)) text.append(part.data(), bytes);
    ::pclose(pipe);
    return text;
  }

 private:
  fs::path folder_;
};

void expect_in(const std::string& part, const std::string& text) { EXPECT_NE(text.find(part), std::string::npos) << text; }

TEST(LinkModules, NothingIsLoadedBeforeItIsWanted) {
  EXPECT_FALSE(has_library("librte_"));
  EXPECT_FALSE(has_library("libxdp"));
  EXPECT_FALSE(has_library("libucp"));
  EXPECT_EQ(has_ucx(), kUcxFile != nullptr);
  EXPECT_FALSE(has_library("libucp"));
  EXPECT_EQ(has_dpdk(), kDpdkFile != nullptr);
  EXPECT_EQ(has_xdp(), kXdpFile != nullptr);
  EXPECT_FALSE(has_library("librte_"));
  EXPECT_FALSE(has_library("libxdp"));
}

TEST(LinkModules, TheSimulatedNicIsAModuleToo) {
  GatewareConfig config;
  config.destinations = {Endpoint{"udp", 0x7F000001, 6200}};
  EXPECT_EQ(has_gateware(), kGatewareFile != nullptr);
  if (kGatewareFile == nullptr) {
    expect_in("libnanet_link_gateware.so is neither in", back_end_problem(gateware_back_end()));
    return;
  }
  EXPECT_EQ(open_gateware(config)->path().substr(0, 13), "simulated NIC");
  EXPECT_TRUE(has_library("libnanet_link_gateware"));
  config.destinations.resize(17);
  EXPECT_THROW(open_gateware(config), SetupError);
}

// The next two leave libraries behind in the process: they come after the one above.
TEST(LinkModules, PacketsGoRoundThroughALoadedModule) {
  if (kDpdkFile == nullptr) {
    expect_in("cannot be opened (libnanet_link_dpdk.so is neither in", problem_of_dpdk());
    return;
  }
  const auto link = open_dpdk(ring());
  EXPECT_TRUE(has_library("librte_ethdev"));
  EXPECT_EQ(back_end_problem(dpdk_back_end()), "");
  const std::vector<std::byte> data(500, std::byte{7});
  const TxPacket packet{data.data(), 500, 0};
  link->send({&packet, 1}, 0);
  std::vector<std::byte> room(4096);
  RxPacket entry;
  ASSERT_EQ(link->receive(room, {&entry, 1}, 0).packet_count, 1u);
  EXPECT_EQ(entry.bytes, 500);
  EXPECT_EQ(room[499], std::byte{7});
  DpdkConfig wrong = ring();
  wrong.device = "";
  EXPECT_THROW(open_dpdk(wrong), SetupError);  // and this type is the same on both sides
}

TEST(LinkModules, ALinkOverUcxListensThroughItsModule) {
  UcxConfig config{.listen = Endpoint{"ucx", 0x7f000001, 0}};
  if (kUcxFile == nullptr) {
    expect_in("libnanet_link_ucx.so is neither in", back_end_problem(ucx_back_end()));
    return;
  }
  const auto link = open_ucx(config);
  EXPECT_TRUE(has_library("libucp"));
  EXPECT_NE(link->local().port, 0);
  std::vector<std::byte> room(4096);
  RxPacket entry;
  EXPECT_EQ(link->receive(room, {&entry, 1}, 0).packet_count, 0u);
  config.ring_count = 0;
  EXPECT_THROW(open_ucx(config), SetupError);  // this type too is the same on both sides
}

TEST(LinkModules, AModuleSaysWhatIsWrongWithALink) {
  if (kXdpFile == nullptr) {
    expect_in("cannot be opened (libnanet_link_xdp.so is neither in", problem_of_xdp());
  } else {
    expect_in("nowhere", problem_of_xdp());
    EXPECT_TRUE(has_library("libxdp"));
  }
}

TEST(LinkModules, AModuleThatIsNotThereIsNamed) {
  const Elsewhere elsewhere;
  const std::string said = elsewhere.says();
  expect_in("DPDK: 0 link dpdk cannot be opened (libnanet_link_dpdk.so is neither in " + elsewhere.folder().string() +
                "/ nor among the system's libraries) install libdpdk-dev, then run make links",
            said);
  expect_in("XDP: 0 link xdp cannot be opened (libnanet_link_xdp.so is neither in", said);
}

TEST(LinkModules, AModuleThatIsNoneIsNamed) {
  const Elsewhere elsewhere;
  std::ofstream(elsewhere.folder() / "libnanet_link_dpdk.so") << "not a library";
  expect_in("DPDK: 1 link dpdk cannot be opened (its module does not load: ", elsewhere.says());
}

// A copy of a module in which some bytes are others.
void copy_changed(const std::string& from, const fs::path& to, const std::string& old_text, const std::string& new_text) {
  std::ifstream in(from, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  ASSERT_EQ(old_text.size(), new_text.size());
  const std::size_t at = bytes.find(old_text);
  ASSERT_NE(at, bytes.npos) << old_text;
  bytes.replace(at, old_text.size(), new_text);
  std::ofstream(to, std::ios::binary) << bytes;
}

// As on a machine without DPDK: the module asks for a library that is not there.
TEST(LinkModules, ASystemLibraryThatIsNotThereIsNamed) {
  const Elsewhere elsewhere;
  if (kDpdkFile == nullptr) return expect_in("make links", elsewhere.says());
  copy_changed(kDpdkFile, elsewhere.folder() / "libnanet_link_dpdk.so", "librte_ethdev.so", "librte_absent.so");
  const std::string said = elsewhere.says();
  expect_in("DPDK: 1 link dpdk cannot be opened (its module does not load: librte_absent.so", said);
  expect_in("install what it was built with (Debian: dpdk)", said);
}

TEST(LinkModules, AModuleOfAnotherVersionIsRefused) {
  const Elsewhere elsewhere;
  if (kDpdkFile == nullptr) return expect_in("make links", elsewhere.says());
  const std::string mark = base::kBuildInfo.name;
  std::string other = mark;
  other.back() = 'x';
  copy_changed(kDpdkFile, elsewhere.folder() / "libnanet_link_dpdk.so", mark, other);
  expect_in("cannot be opened (libnanet_link_dpdk.so belongs to another nanet (", elsewhere.says());
}

// Prints what opening says: for copies of this program that lie elsewhere. The last, for it loads what there is.
TEST(Report, WhatOpeningSays) {
  std::printf("DPDK: %d %s\n", has_dpdk() ? 1 : 0, problem_of_dpdk().c_str());
  std::printf("XDP: %d %s\n", has_xdp() ? 1 : 0, problem_of_xdp().c_str());
}

}  // namespace
}  // namespace nanet::link::test
