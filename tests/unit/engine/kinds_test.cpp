// SPDX-License-Identifier: Apache-2.0
// Kinds by name, and what is refused of a plug-in's file. tests/integration/test_plugins.py has plug-ins that load.
#include "nanet/engine/kinds.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/set_up.hpp"
#include "nanet/engine/plugin.hpp"
#include "nanet/link/gateware.hpp"
#include "nanet/link/xdp.hpp"
#include "nanet/na62/kinds.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const SetupError& error) {
    return error.what();
  }
  return "none";
}

Kinds all_kinds() {
  Kinds kinds = built_in_kinds();
  na62::add_kinds(kinds, {.rich = [] { return na62::RichConfig{}; }, .forward = [] { return na62::ForwardConfig{}; }});
  return kinds;
}

TEST(Kinds, AreFoundByName) {
  const Kinds kinds = all_kinds();
  EXPECT_EQ(kinds.protocol("raw").name, "raw");
  EXPECT_TRUE(kinds.protocol("mgp").numbered);
  EXPECT_FALSE(kinds.protocol("raw").numbered);
  EXPECT_TRUE(kinds.processor("rich").on_gpu);
  EXPECT_FALSE(kinds.processor("count").done.has_value());
  EXPECT_NE(kinds.processor("forward").make({}), nullptr);
  EXPECT_FALSE(kinds.link("pcap")->sends);
  EXPECT_FALSE(kinds.link("ucx")->names_senders);
  EXPECT_TRUE(kinds.link("udp")->sends);
  EXPECT_EQ(kinds.link("udp")->sends_to, "udp");
  EXPECT_EQ(kinds.link("torus")->sends_to, "torus");
}

TEST(Kinds, AnUnknownOneIsRefusedWithTheNearestAndAll) {
  const Kinds kinds = all_kinds();
  EXPECT_EQ(error_of([&] { kinds.protocol("mpg"); }),
            "no protocol has the name 'mpg' (neither nanet's own nor a plug-in's) did you mean 'mgp'? known: raw, mgp, m2egp");
  EXPECT_EQ(error_of([&] { kinds.processor("bright"); }),
            "no processor has the name 'bright' (neither nanet's own nor a plug-in's) known: count, rich, forward");
  EXPECT_EQ(
      error_of([&] { kinds.link("upd"); }),
      "no link has the name 'upd' (neither nanet's own nor a plug-in's) did you mean 'udp'? known: udp, xdp, dpdk, ucx, gateware, "
      "torus, pcap");
}

TEST(Kinds, ANameTwiceOrNoneIsRefused) {
  Kinds kinds = all_kinds();
  const auto make = [](const ProcessorSettings&) -> std::shared_ptr<Processor> { return std::make_shared<CountProcessor>(); };
  const auto open = [](const LinkConfig&, LinkParts) -> std::unique_ptr<link::Link> { return nullptr; };
  EXPECT_EQ(error_of([&] { kinds.add(ProcessorKind{.name = "rich", .make = make}); }),
            "there are two kinds of processor with the name rich (a configuration could mean either) rename one");
  EXPECT_EQ(error_of([&] { kinds.add(LinkKind{.name = "udp", .open = open}); }),
            "there are two kinds of link with the name udp (a configuration could mean either) rename one");
  EXPECT_EQ(error_of([&] { kinds.add(kRaw); }),
            "there are two kinds of protocol with the name raw (a configuration could mean either) rename one");
  for (const char* name : {"", "1st", "a b", "a/b"}) {
    EXPECT_EQ(error_of([&] { kinds.add(LinkKind{.name = name, .open = open}); }).find("is no name of a link (one has letters"),
              std::string(name).size() + 3)
        << name;
  }
  EXPECT_EQ(error_of([&] { kinds.add(ProcessorKind{.name = "mine"}); }),
            "processor mine cannot be made (its kind has no function for it) give it one");
}

std::string broken_by(LinkConfig config) {
  const auto broken = broken_rule(config);
  return broken ? broken->key + ": " + broken->problem + " (" + broken->why + ") " + broken->suggestion : "";
}

TEST(Kinds, ALinkIsRefusedKeysThatItsKindHasNoUseFor) {
  LinkConfig config{.name = "a", .endpoint = "ucx://127.0.0.1:6200"};
  EXPECT_EQ(broken_by(config), "");
  config.interface = "eth1";
  EXPECT_EQ(broken_by(config), "interface: link 'a' has interface (UCX chooses it) remove interface");
  config.interface.clear();
  config.gro = false;
  EXPECT_EQ(broken_by(config), "gro: link 'a' has gro (ucx has no socket buffer and no super-packets) remove gro");
  config.endpoint = "udp://127.0.0.1:6200";
  EXPECT_EQ(broken_by(config), "");
  config.kind = std::make_shared<LinkKind>(LinkKind{.name = "mine"});
  config.endpoint = "mine://x";
  EXPECT_EQ(broken_by(config), "gro: link 'a' has gro (mine is of a plug-in) remove gro, or see its settings");
}

TEST(Kinds, ASectionOfAnotherKindIsRefused) {
  const LinkConfig config{.name = "a", .endpoint = "dpdk://127.0.0.1:6200", .section = link::XdpConfig{}};
  EXPECT_EQ(error_of([&] { broken_rule(config); }),
            "link a has the section of another kind (its endpoint is dpdk://127.0.0.1:6200) give it one of its own kind");
}

TEST(Kinds, OnlyKindsThatSendAreSentBy) {
  LinkConfig config{.name = "a", .endpoint = "gateware://10.0.0.1:6200"};
  EXPECT_FALSE(cannot_send(config));
  config.section = link::GatewareConfig{
      .card = link::GatewareCard{.card = "0000:65:00.0", .mac = "02:00:00:00:00:01", .next_hop = ""}};
  ASSERT_TRUE(cannot_send(config));
  EXPECT_EQ(cannot_send(config)->why, "its card answers ARP but does not ask where they go");
  config = {.name = "a", .endpoint = "pcap://a.pcap"};
  ASSERT_TRUE(cannot_send(config));
  EXPECT_EQ(cannot_send(config)->why, "pcap only receives");
}

TEST(Kinds, ALinksKindIsItsOwnOrThatOfItsScheme) {
  LinkConfig config;
  config.endpoint = "pcap://a.pcap";
  EXPECT_EQ(kind_of(config)->name, "pcap");
  config.kind = std::make_shared<LinkKind>(LinkKind{.name = "mine"});
  EXPECT_EQ(kind_of(config)->name, "mine");
  config.kind = nullptr;
  config.endpoint = "127.0.0.1:6200";
  EXPECT_NE(error_of([&] { kind_of(config); }).find("the scheme is missing"), std::string::npos);
  config.endpoint = "mine://x";
  EXPECT_NE(error_of([&] { open_link(config); }).find("no link has the name 'mine'"), std::string::npos);
}

TEST(Kinds, APluginsFileMustBeOne) {
  Kinds kinds = built_in_kinds();
  EXPECT_EQ(error_of([&] { add_plugin(kinds, "/nowhere/libmine.so"); }),
            "plug-in libmine.so cannot be read (/nowhere/libmine.so: No such file or directory) give the path of a shared library");
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "no_library.so";
  std::ofstream(file) << "text";
  const std::string text = error_of([&] { add_plugin(kinds, file.string()); });
  EXPECT_TRUE(text.starts_with("plug-in no_library.so does not load (")) << text;
  EXPECT_TRUE(text.ends_with(") build it as a shared library (CMake: nanet_plugin)")) << text;
  EXPECT_EQ(kinds.links().size(), built_in_kinds().links().size());
}

TEST(Kinds, WhatAPluginIsBuiltWithIsAText) {
  const std::string text = kBuiltWith.text();
  EXPECT_TRUE(text.starts_with("libstdc++ ABI 1, sizes 8 32 ")) << text;
}

}  // namespace
}  // namespace nanet::engine
