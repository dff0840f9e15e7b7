// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/region.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include "nanet/setup_error.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace nanet::flow {
namespace {

constexpr std::size_t kBasePageBytes = 4096;

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

std::string reason_of(int error) { return std::strerror(error); }

std::string note(const std::string& problem, const std::string& why, const std::string& suggestion) {
  return problem + " (" + why + ") " + suggestion;
}

// Gives every page its memory now. 0, or errno: unlike a write, the call fails cleanly when there is no page.
int populate(std::byte* data, std::size_t bytes) {
  if (madvise(data, bytes, MADV_POPULATE_WRITE) == 0) return 0;
  return errno;
}

void touch(std::byte* data, std::size_t bytes) {
  for (std::size_t offset = 0; offset < bytes; offset += kBasePageBytes) {
    *static_cast<volatile std::byte*>(data + offset) = std::byte{0};
  }
}

// Bytes of the mapping that holds `data` which the kernel backs with transparent huge pages; -1: it does not say.
long transparent_huge_kib(const std::byte* data) {
  std::ifstream smaps("/proc/self/smaps");
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t begin = 0, end = 0;
    long kib = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) {
      inside = begin <= address && address < end;
    } else if (inside && std::sscanf(line.c_str(), "AnonHugePages: %ld kB", &kib) == 1) {
      return kib;
    }
  }
  return -1;
}

std::string memlock_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "the memlock limit is not known";
  if (limit.rlim_cur == RLIM_INFINITY) return "the memlock limit is unlimited";
  return "the memlock limit is " + std::to_string(limit.rlim_cur) + " bytes";
}

}  // namespace

Region::Region(const RegionConfig& config) : bytes_(config.bytes) {
  if (config.kind != MemoryKind::host) {
    throw SetupError("region '" + config.name + "' cannot be made", "only host memory is made here",
                     "use memory kind host, or a back-end that has device memory");
  }
  if (config.bytes == 0) {
    throw SetupError("region '" + config.name + "' cannot be made", "it has 0 bytes", "give it a size");
  }
  if (!config.huge_pages || !map_huge(config.name)) map_plain(config);
  if (config.locked) lock(config.name);
}

Region::~Region() { unmap(); }

Region::Region(Region&& other) noexcept { *this = std::move(other); }

Region& Region::operator=(Region&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  mapped_bytes_ = std::exchange(other.mapped_bytes_, 0);
  page_kind_ = other.page_kind_;
  is_locked_ = std::exchange(other.is_locked_, false);
  notes_ = std::move(other.notes_);
  return *this;
}

bool Region::map_huge(const std::string& name) {
  const std::size_t bytes = round_up(bytes_, kHugePageBytes);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (21 << MAP_HUGE_SHIFT);
  void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  int error = mapping == MAP_FAILED ? errno : 0;
  if (error == 0) {
    // A kernel before 5.14 lacks the call; the pages were reserved by mmap, so a write finds them.
    error = populate(static_cast<std::byte*>(mapping), bytes);
    if (error == EINVAL) {
      touch(static_cast<std::byte*>(mapping), bytes);
      error = 0;
    }
    if (error != 0) munmap(mapping, bytes);
  }
  if (error != 0) {
    notes_.push_back(note("region '" + name + "' has no reserved huge pages",
                          std::to_string(bytes / kHugePageBytes) + " of 2 MiB were asked for: " + reason_of(error),
                          "reserve them, for all regions together: sysctl -w vm.nr_hugepages=64"));
    return false;
  }
  data_ = static_cast<std::byte*>(mapping);
  mapped_bytes_ = bytes;
  page_kind_ = PageKind::huge;
  return true;
}

void Region::map_plain(const RegionConfig& config) {
  const std::size_t unit = config.huge_pages ? kHugePageBytes : kBasePageBytes;
  const std::size_t bytes = round_up(bytes_, unit);
  // Room to cut a mapping that begins on a huge page out of it.
  const std::size_t room = config.huge_pages ? bytes + unit : bytes;
  void* mapping = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    throw SetupError("region '" + config.name + "' of " + std::to_string(bytes_) + " bytes cannot be mapped", reason_of(errno),
                     "make it smaller, or free memory");
  }
  auto* first = static_cast<std::byte*>(mapping);
  const std::size_t head = (unit - reinterpret_cast<std::uintptr_t>(first) % unit) % unit;
  if (head != 0) munmap(first, head);
  if (room - head > bytes) munmap(first + head + bytes, room - head - bytes);
  data_ = first + head;
  mapped_bytes_ = bytes;

  int advice_error = 0;
  if (config.huge_pages && madvise(data_, bytes, MADV_HUGEPAGE) != 0) advice_error = errno;
  const int error = populate(data_, bytes);
  if (error == ENOMEM || error == EFAULT || error == EHWPOISON) {
    unmap();
    throw SetupError("region '" + config.name + "' of " + std::to_string(bytes_) + " bytes cannot be had", reason_of(error),
                     "make it smaller, or free memory");
  }
  if (error != 0) touch(data_, bytes);
  if (!config.huge_pages) return;

  const long huge_kib = advice_error == 0 ? transparent_huge_kib(data_) : 0;
  if (huge_kib > 0) {
    page_kind_ = PageKind::transparent_huge;
    if (static_cast<std::size_t>(huge_kib) * 1024 >= bytes) return;
  }
  const std::string why = advice_error != 0 ? "madvise: " + reason_of(advice_error)
                          : huge_kib < 0    ? std::string("the kernel does not say")
                                            : std::to_string(huge_kib) + " of " + std::to_string(bytes / 1024) + " KiB are";
  notes_.push_back(note("region '" + config.name + "' is not all on transparent huge pages", why,
                        "allow them: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"));
}

void Region::lock(const std::string& name) {
  if (mlock(data_, mapped_bytes_) == 0) {
    is_locked_ = true;
    return;
  }
  notes_.push_back(note("region '" + name + "' of " + std::to_string(mapped_bytes_) + " bytes is not locked",
                        reason_of(errno) + ", " + memlock_limit(),
                        "raise it: ulimit -l unlimited, LimitMEMLOCK=infinity or CAP_IPC_LOCK"));
}

void Region::unmap() {
  if (data_ != nullptr) munmap(data_, mapped_bytes_);
  data_ = nullptr;
}

}  // namespace nanet::flow
