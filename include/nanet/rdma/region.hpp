// SPDX-License-Identifier: Apache-2.0
// Memory that can be exposed to remote nodes: allocated once, zeroed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "nanet/rdma/worker.hpp"

namespace nanet::rdma {

namespace detail {
class RegionState;
}

enum class RegionKind : std::uint8_t {
  host,  // private memory of flow::Region: huge pages, locked. One-sided over RDMA hardware only, not for processes of this machine
  host_shared,  // shared memory made by UCX: a process of the same machine writes it with its own stores, atomics included
};

struct RegionConfig {
  std::string name = "region";  // what errors call it
  std::size_t bytes = 0;        // more than 0
  RegionKind kind = RegionKind::host_shared;
  bool huge_pages = false;  // of kind host; host_shared takes them where UCX can (UCX_POSIX_HUGETLB_MODE)
  bool locked = true;       // of kind host
};

class Region {
 public:
  Region(const Worker& worker, const RegionConfig& config);  // throws SetupError
  ~Region();
  Region(Region&&) noexcept;
  Region& operator=(Region&&) noexcept;

  std::byte* data() const;
  std::size_t bytes() const;
  std::span<std::byte> span() const { return {data(), bytes()}; }

  const std::shared_ptr<detail::RegionState>& state() const { return state_; }

 private:
  std::shared_ptr<detail::RegionState> state_;
};

}  // namespace nanet::rdma
