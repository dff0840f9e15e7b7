// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/region.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "../refused_calls.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::flow {
namespace {

bool has_note(const Region& region, std::string_view text) {
  return std::ranges::any_of(region.notes(), [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

bool is_all_zero(const Region& region) {
  return std::ranges::all_of(region.span(), [](std::byte b) { return b == std::byte{0}; });
}

TEST(Region, IsZeroedAlignedAndWritable) {
  Region region({.name = "small", .bytes = 5000});
  EXPECT_EQ(region.bytes(), 5000u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(region.data()) % 4096, 0u);
  EXPECT_TRUE(is_all_zero(region));
  std::memset(region.data(), 0xA5, region.bytes());
  EXPECT_EQ(region.span()[4999], std::byte{0xA5});
  EXPECT_EQ(region.page_kind(), PageKind::plain);
}

TEST(Region, HugePagesAreThereOrTheirLackIsSaid) {
  const Region region({.name = "big", .bytes = 3u << 20, .huge_pages = true, .locked = false});
  EXPECT_TRUE(is_all_zero(region));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(region.data()) % (2u << 20), 0u);
  EXPECT_EQ(region.page_kind() != PageKind::huge, has_note(region, "'big' has no reserved huge pages ("));
  if (region.page_kind() == PageKind::plain) {
    EXPECT_TRUE(has_note(region, "not all on transparent huge pages ("));
  }
}

TEST(Region, LockIsThereOrItsLackIsSaid) {
  const Region region({.name = "held", .bytes = 4096});
  EXPECT_EQ(!region.is_locked(), has_note(region, "'held' of 4096 bytes is not locked ("));
  const Region free({.name = "free", .bytes = 4096, .locked = false});
  EXPECT_FALSE(free.is_locked());
  EXPECT_TRUE(free.notes().empty());
}

// As where no huge page is free, nothing may be locked, and the kernel is older than 5.14, which cannot fill a mapping at once.
TEST(Region, WithoutHugePagesAndLocksItWorksAndSaysSo) {
  constexpr std::uint32_t kPopulateWrite = 23;
  nanet::test::with_refused(
      {{SYS_mmap, ENOMEM, 3, MAP_HUGETLB, MAP_HUGETLB}, {SYS_mlock, EPERM}, {SYS_madvise, EINVAL, 2, ~0u, kPopulateWrite}}, [] {
        Region region({.name = "poor", .bytes = 3u << 20, .huge_pages = true});
        EXPECT_NE(region.page_kind(), PageKind::huge);
        EXPECT_TRUE(has_note(region, "'poor' has no reserved huge pages (2 of 2 MiB were asked for: Cannot allocate memory)"));
        EXPECT_TRUE(has_note(region, "sysctl -w vm.nr_hugepages"));
        // Sanitizers answer mlock themselves, and say that it is done.
        EXPECT_EQ(!region.is_locked(), has_note(region, "is not locked (Operation not permitted, the memlock limit is "));
        EXPECT_TRUE(is_all_zero(region));
        std::memset(region.data(), 0xA5, region.bytes());
        EXPECT_EQ(region.span()[region.bytes() - 1], std::byte{0xA5});
      });
}

TEST(Region, ThrowsWhatItCannotMake) {
  EXPECT_THROW(Region({.name = "none", .bytes = 0}), SetupError);
  EXPECT_THROW(Region({.name = "gpu", .bytes = 4096, .kind = MemoryKind::device}), SetupError);
  EXPECT_THROW(Region({.name = "pinned", .bytes = 4096, .kind = MemoryKind::host_pinned}), SetupError);
  try {
    Region({.name = "vast", .bytes = std::size_t{1} << 47});
    FAIL() << "2^47 bytes were mapped";
  } catch (const SetupError& error) {
    EXPECT_NE(std::string(error.what()).find("region 'vast' of 140737488355328 bytes cannot be mapped ("), std::string::npos);
  }
}

TEST(Region, MovesWithItsMemory) {
  Region first({.name = "first", .bytes = 4096});
  first.data()[7] = std::byte{42};
  std::byte* const data = first.data();
  Region second(std::move(first));
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(second.data()[7], std::byte{42});
  Region third({.name = "third", .bytes = 8192});
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.bytes(), 4096u);
}

}  // namespace
}  // namespace nanet::flow
