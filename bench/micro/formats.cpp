// SPDX-License-Identifier: Apache-2.0
// How long a declared decoder takes beside a hand-written one: MGP padded, the packet judged and all of its events read, as a receiver and an event
// builder do; and other declared formats alone. In turns, the fastest of each counts: others share the machine.
//
//   bench_formats [--csv FILE]      packets are 16 events of 0 to 32 hits
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "../../tests/unit/format/mgp_declaration.hpp"
#include "format/event_reader.hpp"
#include "nanet/wire/mgp.hpp"

namespace {

using namespace nanet;
using Packets = std::vector<std::vector<std::byte>>;

constexpr int kTurns = 41;
constexpr int kLaps = 200;
constexpr std::size_t kPackets = 64;

Packets mgp_packets() {
  std::mt19937 random(1);
  Packets made;
  std::vector<std::byte> room(wire::kMgpPaddedBytes);
  for (std::size_t k = 0; k < kPackets; ++k) {
    wire::MgpBuilder builder(room);
    builder.begin(wire::MgpLayout::padded);
    for (int event = 0; event < 16; ++event) {
      std::vector<std::uint16_t> hits(random() % 33);
      for (std::uint16_t& hit : hits) hit = static_cast<std::uint16_t>(random());
      builder.add_event({.timestamp = static_cast<std::uint32_t>(random())}, hits);
    }
    const auto packet = builder.finish({.source_id = 0x1C, .sequence = static_cast<std::uint32_t>(k)});
    made.emplace_back(packet.begin(), packet.end());
  }
  return made;
}

// Packets accepted and a sum over their content, so that nothing is left out.
struct Seen {
  std::uint64_t packets = 0;
  std::uint64_t sum = 0;
};

Seen by_hand(const Packets& packets) {
  Seen seen;
  for (const auto& packet : packets) {
    wire::MgpView view;
    if (wire::MgpView::parse(packet, view) != wire::ParseError::none) continue;
    ++seen.packets;
    seen.sum += view.header().sequence + view.header().source_id + view.first_event_number();
    const wire::MgpView again = wire::MgpView::from_checked(packet);  // the event builder opens it once more
    for (std::size_t i = 0; i < again.header().event_count; ++i) {
      const wire::MgpEvent event = again.event(i);
      seen.sum += event.timestamp + event.fine_time + event.hit_count + (event.hit_count > 0 ? again.slot_hits(i)[0] : 0);
    }
  }
  return seen;
}

Seen declared(format::Decoder& decoder, const format::EventReader& reader, const Packets& packets) {
  Seen seen;
  for (const auto& bytes : packets) {
    format::Packet packet;
    if (decoder.decode(bytes, packet) != format::Refusal::none) continue;
    ++seen.packets;
    seen.sum += packet.sequence + (packet.stream >> 8) + packet.first_event;
    const auto none = []() -> std::uint16_t* { return nullptr; };
    format::EventReader::for_each_event(reader.open(bytes), none, [&](const format::ReadEvent& event) {
      seen.sum += event.timestamp + event.fine_time + event.hit_count + (event.hit_count > 0 ? event.hits[0] : 0);
    });
  }
  return seen;
}

template <class Work>
double ns_per_packet(const Work& work, Seen& seen) {
  const auto begin = std::chrono::steady_clock::now();
  for (int lap = 0; lap < kLaps; ++lap) {
    const Seen one = work();
    seen.packets += one.packets;
    seen.sum += one.sum;
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
  return spent.count() / (kLaps * static_cast<double>(kPackets));
}

Packets copies(const format::test::Bytes& packet) { return Packets(kPackets, {packet.begin(), packet.end()}); }

double alone(const format::Declaration& declaration, const format::test::Bytes& one) {
  format::Decoder decoder(declaration);
  const Packets packets = copies(one);
  Seen seen;
  double best = 1e9;
  for (int turn = 0; turn < kTurns; ++turn) {
    best = std::min(best, ns_per_packet(
                              [&] {
                                Seen lap;
                                for (const auto& bytes : packets) {
                                  format::Packet packet;
                                  lap.packets += decoder.decode(bytes, packet) == format::Refusal::none;
                                  lap.sum += packet.place;
                                }
                                return lap;
                              },
                              seen));
  }
  if (seen.packets != std::uint64_t{kTurns} * kLaps * kPackets) std::printf("error: packets were refused\n");
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  using format::test::packet;
  const Packets packets = mgp_packets();
  format::Decoder decoder(format::test::mgp());
  const format::EventReader reader(decoder);
  double hand = 1e9;
  double ours = 1e9;
  Seen seen_hand;
  Seen seen_ours;
  for (int turn = 0; turn < kTurns; ++turn) {
    hand = std::min(hand, ns_per_packet([&] { return by_hand(packets); }, seen_hand));
    ours = std::min(ours, ns_per_packet([&] { return declared(decoder, reader, packets); }, seen_ours));
  }
  if (seen_hand.sum != seen_ours.sum || seen_hand.packets != seen_ours.packets || seen_hand.packets == 0) {
    std::printf("error: the declared decoder read something else\n");
    return 1;
  }
  auto spead = packet(
      {{0x5304020600000004, 8}, {0x8001000000000007, 8}, {0x8002000000001000, 8}, {0x8003000000000400, 8}, {0x8004000000000200, 8}},
      512);
  auto ejfat = packet({{0x10, 1}, {0, 1}, {7, 2}, {0, 4}, {1024, 4}, {1, 8}}, 1024);
  auto jungfrau = packet({{1, 8}, {1, 4}, {5, 4}, {0, 8}, {1, 8}, {0, 2}, {3, 2}, {9, 2}, {0, 2}, {0, 4}, {0, 2}, {3, 1}, {2, 1}},
                         8192, format::ByteOrder::little);
  struct Row {
    const char* name;
    double value;
    const char* unit;
  };
  const Row rows[] = {{"mgp padded by hand", hand, "ns/packet"},
                      {"mgp padded declared", ours, "ns/packet"},
                      {"declared over hand-written", ours / hand, "ratio"},
                      {"ejfat", alone(format::test::ejfat(), ejfat), "ns/packet"},
                      {"spead-64-48, same order of items", alone(format::test::spead(), spead), "ns/packet"},
                      {"jungfrau", alone(format::test::jungfrau(), jungfrau), "ns/packet"}};
  std::ofstream csv;
  if (argc == 3 && std::strcmp(argv[1], "--csv") == 0) csv.open(argv[2]);
  for (const Row& row : rows) {
    std::printf("%-36s %8.2f %s\n", row.name, row.value, row.unit);
    if (csv) csv << row.name << ',' << row.value << ',' << row.unit << '\n';
  }
  return 0;
}
