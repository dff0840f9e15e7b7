// SPDX-License-Identifier: Apache-2.0
// Memory for CLOPs and rings: mapped once, on huge pages where there are any, prefaulted, locked, zeroed.
//
// What cannot be had is done without and reported in notes(), one line each: problem (why) suggestion. Only memory that
// cannot be mapped at all, or a kind of memory that this class does not make, throws.
// Thread rules: made and destroyed by one thread; the memory itself may be used by any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nanet/contract.hpp"

namespace nanet::flow {

struct RegionConfig {
  std::string name = "region";         // what the notes and errors call it
  std::size_t bytes = 0;               // more than 0; rounded up to whole pages inside
  MemoryKind kind = MemoryKind::host;  // anything else throws: it belongs to a back-end
  bool huge_pages = false;             // ask for 2 MiB pages; pays off from about 2 MiB on
  bool locked = true;                  // never paged out; counts against the memlock limit
};

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

enum class PageKind : std::uint8_t {
  plain,             // base pages
  transparent_huge,  // base pages that the kernel made huge, at least in part
  huge,              // reserved huge pages (hugetlbfs)
};

class Region {
 public:
  explicit Region(const RegionConfig& config);  // throws SetupError
  ~Region();
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::byte* data() const { return data_; }     // aligned to at least 4096
  std::size_t bytes() const { return bytes_; }  // as asked for
  std::span<std::byte> span() const { return {data_, bytes_}; }
  PageKind page_kind() const { return page_kind_; }
  bool is_locked() const { return is_locked_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  bool map_huge(const std::string& name);
  void map_plain(const RegionConfig& config);
  void lock(const std::string& name);
  void unmap();

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t mapped_bytes_ = 0;
  PageKind page_kind_ = PageKind::plain;
  bool is_locked_ = false;
  std::vector<std::string> notes_;
};

}  // namespace nanet::flow
