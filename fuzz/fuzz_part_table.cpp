// SPDX-License-Identifier: Apache-2.0
// Any sequence of calls within the contract: each answer of the part table must be possible, each event delivered must be what its
// parts were, and the books must balance.
//
// Input: 4 bytes of configuration, then one byte an operation with up to 4 bytes of arguments.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../tests/unit/event/part_table_watch.hpp"
#include "fuzz_common.hpp"

namespace {

using namespace nanet::event;
using nanet::fuzz::Bytes;

constexpr std::size_t kInputBytesMax = 160;  // enough to fill the smallest tables some times over; longer ones are only slower

void require_good(const PartTableWatch& watch) {
  if (watch.failure().empty()) return;
  std::fprintf(stderr, "part table: %s\n", watch.failure().c_str());
  std::abort();
}

// Few different keys, so that parts meet; anchors far apart, so that the circle of keys is used.
std::uint64_t key_from(Bytes& bytes) {
  static constexpr std::uint64_t anchors[] = {0, kKeyMask - 100, std::uint64_t{1} << 39, std::uint64_t{1} << 31};
  const std::uint8_t which = bytes.take();
  return (anchors[which & 3] + std::uint64_t{bytes.take()} + 256 * std::uint64_t{which} / 64) & kKeyMask;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kInputBytesMax) return 0;
  Bytes bytes(data, size);
  MergerConfig config;
  config.source_count = bytes.take() % 8 + 1;
  config.window_ns = 1'000 * (std::uint64_t{bytes.take()} + 1);
  const std::uint8_t shape = bytes.take();
  config.open_events_max = 1u << (shape % 8);
  config.hits_max = bytes.take() % kHitsMax + 1;
  PartTableWatch watch(config, 0u - 300u, shape / 64 + 1u);
  std::uint64_t now_ns = 0;
  std::uint64_t run_key = 0;
  std::uint16_t hit = 0;

  const auto add = [&](std::uint32_t source, std::uint64_t key, std::size_t hit_count) {
    std::vector<std::uint16_t> hits(hit_count);
    for (auto& one : hits) one = hit++;
    watch.add_part(source, key, hits, now_ns);
  };
  while (!bytes.empty()) {
    const std::uint8_t operation = bytes.take();
    const std::uint32_t source = (operation >> 4) % config.source_count;
    switch (operation & 15) {
      default: add(source, key_from(bytes), operation >> 6); break;
      case 8: add(source, key_from(bytes), bytes.take()); break;
      case 9:  // a run of events, complete or of one source, that fills the table
        for (int i = 0; i < 24; ++i) {
          run_key = (run_key + 3) & kKeyMask;
          for (std::uint32_t s = 0; s < config.source_count; ++s) {
            if ((operation & 0x80) != 0 || s == source) add(s, run_key, 1);
          }
        }
        break;
      case 10: run_key = key_from(bytes); break;
      case 11: now_ns += std::uint64_t{bytes.take()} * 1'000; break;
      case 12:
        now_ns += std::uint64_t{bytes.take()} << 23;  // up to 2 s
        break;
      case 13: watch.expire(now_ns); break;
      case 14:
        if ((operation & 0x10) != 0) {
          watch.drain(now_ns);
        } else {
          watch.flush();
        }
        break;
      case 15: watch.finish_round(now_ns); break;
    }
    require_good(watch);
  }
  watch.flush();
  watch.finish_round(now_ns);
  watch.expect_books();
  require_good(watch);
  return 0;
}
