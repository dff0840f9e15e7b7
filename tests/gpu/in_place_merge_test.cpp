// SPDX-License-Identifier: Apache-2.0
// Event building from payloads in place: as from ordinary buffers, and parts in packets that the GPU refuses are counted and not merged.
#include <random>
#include <string>

#include "merge_pair.hpp"
#include "nanet/wire/m2egp.hpp"
#include "nanet/wire/mgp.hpp"

namespace nanet::gpu {
namespace {

using namespace rig;
using namespace rig::merging;

constexpr Placing kPlacings[] = {Placing::host, Placing::device};

std::string say(const Way& way, Placing placing, const std::string& what) {
  return std::string(way.name) + ", " + name_of(placing) + ", " + what;
}

TEST(InPlaceMerge, events_of_four_sources_are_whole) {
  for (const Way& way : ways()) {
    for (const Placing placing : kPlacings) {
      const auto expect = [&](Format format, std::uint32_t events, std::uint32_t packets, std::uint32_t hole, const char* what) {
        expect_merged(way, format, events, packets, hole, 6, say(way, placing, what), placing);
      };
      expect(Format::packed, 16, 4, 0, "an event in a buffer");
      expect(Format::packed, 16, 3, 1, "an event in two buffers");
      expect(Format::packed, 40, 24, 3, "large packets");
      expect(Format::padded, 16, 24, 7, "padded");
      expect(Format::merged, 20, 12, 10, "M2EGP");
      expect(Format::packed, 5, 32, 13, "small packets");
    }
  }
}

TEST(InPlaceMerge, a_bad_network_gives_the_events_of_the_cpu) {
  for (const Way& way : ways()) {
    for (const Placing placing : kPlacings) {
      run_bad_network(way, IncompletePolicy::process, 4, check::under_sanitizer() ? 20 : 150, say(way, placing, "few packets"),
                      placing);
      run_bad_network(way, IncompletePolicy::drop, 32, check::under_sanitizer() ? 15 : 40, say(way, placing, "many packets"),
                      placing);
    }
  }
}

// Each finder's kernels have their own number of threads.
TEST(InPlaceMerge, every_finder_judges_merged_events) {
  for (const Way& way :
       {Way{"persistent", {.runtime = Runtime::persistent, .blocks = 16}}, Way{"launch", {.runtime = Runtime::launch}}}) {
    for (std::uint32_t k = 0; k < rich::kFinderCount; ++k) {
      EventProcessorConfig config = config_of(way);
      config.finder.kind = static_cast<rich::FinderKind>(k);
      Pair pair(config, {.placing = {Placing::device}});
      Boards boards(40 + k, Boards::Hits::in_one_part);
      for (std::uint32_t b = 0; b < (check::under_sanitizer() ? 1u : 4u); ++b) {
        BadNetwork network({}, 0, b);
        for (std::uint32_t p = 0; p < (check::under_sanitizer() ? 1u : 4u); ++p) network.send(boards.next(Format::packed, 16));
        pair.feed(network.arrive(16), kStartNs + b * 1000, 5);
      }
      pair.end(std::string(way.name) + ", " + rich::finder_name(config.finder.kind));
    }
  }
}

// A byte of a body is changed, and the packet marked if no view accepts it any more.
void spoil(PartPacket& packet, std::mt19937& random) {
  Payload& payload = packet.payload;
  if (payload.size() <= 24) return;
  const bool merged = wire::is_m2egp(payload);
  payload[24 + random() % (payload.size() - 24)] ^= static_cast<std::byte>(1 + random() % 255);
  wire::MgpView mgp;
  wire::M2egpView m2egp;
  packet.bad_body = (merged ? wire::M2egpView::parse(payload, m2egp) : wire::MgpView::parse(payload, mgp)) != wire::ParseError::none;
}

// Parts that are refused are missing in their events, and in the books under their own name. Boards restart in between, so that some buffers are worked on
// in two goes, and nothing may be counted twice.
TEST(InPlaceMerge, parts_in_bad_packets_are_refused_and_counted) {
  for (const Way& way : ways()) {
    for (const std::uint32_t packets : {3u, 13u, 40u}) {
      const std::string what = std::string(way.name) + ", " + std::to_string(packets) + " packets a buffer";
      Pair pair(config_of(way, packets == 13 ? IncompletePolicy::drop : IncompletePolicy::process),
                {.tx_capacity = 16, .placing = {Placing::device}});
      Boards boards(41);
      BadNetwork network({}, 0, 41);
      std::mt19937 random(41);
      std::uint64_t parts = 0;
      for (std::uint32_t run = 0; run < 4; ++run) {
        for (std::uint32_t k = 0; k < 12 + run; ++k) {
          std::vector<PartPacket> sent = boards.next(k % 3 == 0   ? Format::padded
                                                     : k % 3 == 1 ? Format::packed
                                                                  : Format::merged,
                                                     16);
          for (PartPacket& packet : sent) {
            parts += static_cast<std::uint64_t>(packet.payload[3]);
            if (random() % 5 == 0) spoil(packet, random);
          }
          network.send(std::move(sent));
        }
        boards.restart();
      }
      for (std::uint64_t now_ns = kStartNs; !network.is_empty(); now_ns += 1000) pair.feed(network.arrive(packets), now_ns, 9);
      pair.end(what);
      const Totals totals = pair.rig.processor().totals();
      EXPECT_GT(totals.packets_bad_body, 20u) << what;
      EXPECT_GT(totals.merger.events_missing_parts, 0u) << what;
      EXPECT_EQ(totals.merger.parts_merged + totals.merger.parts_late + totals.merger.parts_duplicate +
                    totals.merger.parts_no_room + totals.events_bad_body,
                parts)
          << what << ", books";
    }
  }
}

// The control: the host has checked the same packets, and they are merged.
TEST(InPlaceMerge, a_body_is_checked_where_the_host_could_not) {
  for (const Way& way : ways()) {
    for (const Placing placing : kPlacings) {
      const std::string what = say(way, placing, "a spoiled hit");
      Pair pair(config_of(way), {.placing = {placing}});
      Boards boards(42);
      std::vector<PartPacket> packets = boards.next(Format::padded, 16);
      packets[2].payload[24] ^= std::byte{1};
      packets[2].bad_body = placing == Placing::device;
      pair.feed(packets, kStartNs);
      pair.end(what);
      EXPECT_EQ(pair.rig.processor().totals().events_bad_body, placing == Placing::device ? 16u : 0u) << what;
      EXPECT_EQ(pair.rig.processor().totals().merger.events_complete, placing == Placing::device ? 0u : 16u) << what;
    }
  }
}

}  // namespace
}  // namespace nanet::gpu
