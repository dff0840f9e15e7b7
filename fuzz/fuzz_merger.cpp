// SPDX-License-Identifier: Apache-2.0
// Any sequence of calls: the merger must do what its model does, call by call.
//
// Input: 4 bytes of configuration, then one byte an operation with up to 4 bytes of arguments.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../tests/unit/event/merger_model.hpp"
#include "fuzz_common.hpp"

namespace {

using namespace nanet::event;
using nanet::fuzz::Bytes;

constexpr std::size_t kInputBytesMax = 96;  // enough to fill the smallest memory and to make it forget; longer ones are only slower

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "merger and model differ: %s\n", what.c_str());
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
  config.open_events_max = 1u << (bytes.take() % 6);
  config.hits_max = bytes.take() % kHitsMax + 1;
  Merger merger(config);
  require(merger.memory_events() >= 1024, "the memory's least size");
  MergerModel model(config);
  std::uint64_t now_ns = 0;
  std::uint64_t parts_added = 0;
  std::uint64_t events_delivered = 0;
  std::uint64_t run_key = 0;

  const auto add = [&](std::uint32_t source, std::uint64_t key, std::size_t hit_count) {
    const std::vector<std::uint16_t> hits(hit_count, static_cast<std::uint16_t>(parts_added));
    std::vector<std::uint16_t> padded((hit_count / kHitsPad + 1) * kHitsPad, static_cast<std::uint16_t>(parts_added));
    const auto count = static_cast<std::uint32_t>(hit_count);
    const PartResult is = parts_added % 2 == 0 ? merger.add_part(source, key, hits.data(), count, now_ns)
                                               : merger.add_padded_part(source, key, padded.data(), count, now_ns);
    require(is == model.add_part(source, key, hits, now_ns), "result of part " + std::to_string(parts_added));
    ++parts_added;
  };
  const auto clear_ready = [&] {  // each event is looked at once, when it is taken
    const std::string difference = model.difference(merger);
    require(difference.empty(), difference);
    events_delivered += merger.ready().size();
    merger.clear_ready();
    model.ready.clear();
  };
  while (!bytes.empty()) {
    const std::uint8_t operation = bytes.take();
    const std::uint32_t source = (operation >> 4) % config.source_count;
    switch (operation & 15) {
      default: add(source, key_from(bytes), operation >> 6); break;
      case 8: add(source, key_from(bytes), bytes.take()); break;
      case 9:  // a run of events, complete or of one source; many of them fill the memory
        for (int i = 0; i < 24; ++i) {
          run_key = (run_key + 3) & kKeyMask;
          for (std::uint32_t s = 0; s < config.source_count; ++s) {
            if ((operation & 0x80) != 0 || s == source) add(s, run_key, 1);
          }
        }
        clear_ready();
        break;
      case 10: run_key = key_from(bytes); break;
      case 11: now_ns += std::uint64_t{bytes.take()} * 1'000; break;
      case 12:
        now_ns += std::uint64_t{bytes.take()} << 23;  // up to 2 s
        break;
      case 13:
        merger.expire(now_ns);
        model.expire(now_ns);
        break;
      case 14:
        if ((operation & 0x10) != 0) {
          merger.drain(now_ns);
          model.drain(now_ns);
        } else {
          merger.flush();
          model.flush();
        }
        break;
      case 15: clear_ready(); break;
    }
    const std::string difference = model.difference_of_counts(merger);
    require(difference.empty(), difference);
  }
  clear_ready();
  merger.flush();
  events_delivered += merger.ready().size();
  const MergerStats& s = merger.stats();
  require(parts_added == s.parts_merged + s.parts_late + s.parts_duplicate + s.parts_no_room, "books of parts");
  require(s.events_opened == s.events_complete + s.events_missing_parts + s.events_overflow, "books of events");
  require(s.events_opened == events_delivered, "delivered exactly once");
  return 0;
}
