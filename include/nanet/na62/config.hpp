// SPDX-License-Identifier: Apache-2.0
// The configuration of NA62's processors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nanet/engine/config.hpp"
#include "nanet/gpu/config.hpp"
#include "nanet/rich/decision.hpp"
#include "nanet/rich/finder.hpp"

namespace nanet::na62 {

// Whether hot channels are masked when they are found.
enum class HotChannels : std::uint8_t { keep, mask };

// endpoint, copies and via: what the engine's SendConfig is made from, by send_config().
struct AnswerConfig {
  static constexpr config::Component component{"Answers", "Where primitives go, as MTP packets, and under which name."};

  std::string endpoint;
  std::vector<std::string> copies;
  std::uint8_t source_id = 0x1C;
  std::uint8_t source_sub_id = 0;
  std::uint32_t primitives_max = 255;
  std::string via;
  std::optional<link::TorusFrom> torus;
  link::GroupSending group_sending;

  template <class Visit>
  void visit(Visit&& v) {
    v("endpoint", endpoint,
      {.help = "Receiver of the answers: udp://ADDRESS:PORT of the L0 trigger processor, or a multicast group; from a torus "
               "torus://NODE",
       .form = "SendEndpoint",
       .required = true});
    v("copies", copies,
      {.help = "Up to three more receivers of the same packets, such as a monitor", .length_most = 3, .form = "SendEndpoint"});
    v("source_id", source_id, {.help = "Source ID in the MTP header", .least = 0, .most = 255});
    v("source_sub_id", source_sub_id, {.help = "Source sub-ID in the MTP header", .least = 0, .most = 255});
    v("primitives_max", primitives_max,
      {.help = "Most primitives in one MTP packet",
       .unit = "primitives",
       .least = 1,
       .most = 255,
       .too_small = "many small packets at high rates"});
    v("via", via,
      {.help = "Name of the link that sends them, from the address and port it listens on; null: a UDP socket of their own",
       .form = "Name",
       .nullable = true});
    v("torus", torus, {.help = "The node that they leave from, to torus://NODE; null: a socket, or via"});
    group_sending.visit(v);
  }

  engine::SendConfig send_config() const {
    engine::SendConfig send{.name = "answers", .endpoints = {endpoint}, .via = via, .torus = torus, .group_sending = group_sending};
    send.endpoints.insert(send.endpoints.end(), copies.begin(), copies.end());
    return send;
  }
};

struct RichConfig {
  std::optional<engine::MergeConfig> merge;
  rich::FinderConfig finder;
  rich::Decision decision;
  HotChannels hot_channels = HotChannels::keep;
  std::optional<AnswerConfig> answers;  // none: rings are found and counted, and nothing is sent
  gpu::GpuConfig gpu;                   // its runtime cpu: no GPU. Its device is not looked at, its devices are
};

// Events that are built here and judged elsewhere, as M2EGP packets.
struct ForwardConfig {
  static constexpr config::Component component{
      "Forward", "Where events that are built here and judged elsewhere are sent, as M2EGP packets, and under which name."};

  std::optional<engine::MergeConfig> merge;  // a section of its own
  std::string endpoint;
  std::string via;
  std::optional<link::TorusFrom> torus;
  std::uint8_t source_id = 0x1C;
  std::uint8_t source_sub_id = 0;
  std::uint32_t packet_bytes_max = 1472;  // at least 280: an event with the most hits has to fit

  template <class Visit>
  void visit(Visit&& v) {
    v("endpoint", endpoint,
      {.help = "Receiver of the events: udp://ADDRESS:PORT of a link with protocol: m2egp; from a torus torus://NODE",
       .form = "SendEndpoint",
       .required = true});
    v("via", via, {.help = "Name of the link that sends them; null: a UDP socket of their own", .form = "Name", .nullable = true});
    v("torus", torus, {.help = "The node that they leave from, to torus://NODE; null: a socket, or via"});
    v("source_id", source_id, {.help = "Source ID in the packet header", .least = 0, .most = 255});
    v("source_sub_id", source_sub_id, {.help = "Source sub-ID in the packet header: which node", .least = 0, .most = 255});
    v("packet_bytes_max", packet_bytes_max,
      {.help = "Longest packet, even; 1472 fits a 1500-byte MTU, 8972 a 9000-byte one",
       .unit = "bytes",
       .least = 280,
       .most = 8972,
       .multiple_of = 2,
       .too_small = "many small packets",
       .too_big = "packets that the network fragments or drops"});
  }

  engine::SendConfig send_config() const { return {.name = "forward", .endpoints = {endpoint}, .via = via, .torus = torus}; }
};

}  // namespace nanet::na62
