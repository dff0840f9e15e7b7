// SPDX-License-Identifier: Apache-2.0
// RecordFit: the bits of rich::fit_ring for every record, whatever stands in it.
#include "gpu/record_fit.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "check.hpp"
#include "rich/math_fit.hpp"

namespace nanet::gpu {
namespace {

// Hits on one board (nearly all have a PM), anywhere, or few that repeat; after the hits come others that must not count.
std::vector<EventRecord> any_records(std::size_t count) {
  std::mt19937 random(7);
  std::vector<EventRecord> records(count);
  for (std::size_t k = 0; k < count; ++k) {
    EventRecord& record = records[k];
    record.timestamp = static_cast<std::uint32_t>(random());
    record.fine_time = static_cast<std::uint8_t>(random());
    record.event_number = static_cast<std::uint16_t>(random());
    record.hit_count = static_cast<std::uint8_t>(k % 64 == 0 ? 29 + random() % 227 : random() % 29);
    for (std::uint16_t& hit : record.hits) {
      const auto time = static_cast<std::uint32_t>(random() & 0xf800u);
      const auto channel = static_cast<std::uint32_t>(k % 4 == 0   ? random() & 0x7ffu
                                                      : k % 4 == 1 ? 100 + random() % 3
                                                                   : random() % 488);
      hit = static_cast<std::uint16_t>(time | channel);
    }
  }
  return records;
}

void expect_same_bits(const std::vector<EventRecord>& records, std::size_t repeats) {
  RecordFit device(records, repeats);
  device.fit();
  const std::vector<FittedCircle> found = device.circles();
  ASSERT_EQ(found.size(), records.size() * repeats);
  for (std::size_t k = 0; k < found.size(); ++k) {
    const EventRecord& record = records[k % records.size()];
    const rich::Ring ring = rich::fit_ring({record.hits, std::min<std::uint32_t>(record.hit_count, kRecordHitsMax)});
    const FittedCircle expected{ring.x_mm, ring.y_mm, ring.radius_mm, ring.rms_mm};
    EXPECT_EQ(std::memcmp(&found[k], &expected, sizeof expected), 0)
        << "record " << k << " of " << +record.hit_count << " hits: radius " << found[k].radius_mm << ", on the CPU "
        << expected.radius_mm;
  }
}

TEST(RecordFit, gives_the_bits_of_the_cpu) { expect_same_bits(any_records(check::under_sanitizer() ? 500 : 100000), 1); }

// Not whole warps, less than one, and none.
TEST(RecordFit, takes_any_number_of_records) {
  for (const std::size_t count : {0u, 1u, 31u, 33u, 1000u}) expect_same_bits(any_records(count), 1);
  expect_same_bits(any_records(33), 3);
}

}  // namespace
}  // namespace nanet::gpu
