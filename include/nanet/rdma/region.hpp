// SPDX-License-Identifier: Apache-2.0
// Memory that can be exposed to remote nodes, or that the data of transfers is read from or written to.
//
// Either allocated here, once, and zeroed; or given by its address, and of any kind: then it belongs to the caller, is left as it is, and has
// to live as long as the region and every exposure of it. A thread that uses device memory needs a current CUDA context (UCX's rule).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "nanet/rdma/worker.hpp"

namespace nanet::rdma {

namespace detail {
class RegionState;
}

enum class RegionKind : std::uint8_t {
  host,  // private memory of flow::Region: huge pages, locked. One-sided over RDMA hardware only, not for processes of this machine
  host_shared,   // shared memory made by UCX: a process of the same machine writes it with its own stores, atomics included
  cuda_device,   // of a GPU: only given. No CPU may touch it, so there are no atomics
  cuda_pinned,   // of the host, pinned by CUDA: only given
  cuda_managed,  // refused: it moves between host and GPU while a NIC or another process writes to it
};

constexpr std::string_view name(RegionKind kind) {
  constexpr std::string_view NAMES[] = {"host", "host_shared", "cuda_device", "cuda_pinned", "cuda_managed"};
  return NAMES[static_cast<std::size_t>(kind)];
}

struct RegionConfig {
  std::string name = "region";  // what errors call it
  std::size_t bytes = 0;        // more than 0; of memory that is given: as long as it is, or 0
  RegionKind kind = RegionKind::host_shared;
  bool huge_pages = false;  // of kind host; host_shared takes them where UCX can (UCX_POSIX_HUGETLB_MODE)
  bool locked = true;       // of kind host
};

class Region {
 public:
  Region(const Worker& worker, const RegionConfig& config);  // allocates; throws SetupError
  // Memory of kind host, cuda_device or cuda_pinned. Throws SetupError, also where UCX sees memory of another kind or cannot use CUDA's.
  Region(const Worker& worker, const RegionConfig& config, std::span<std::byte> memory);
  ~Region();
  Region(Region&&) noexcept;
  Region& operator=(Region&&) noexcept;

  std::byte* data() const;  // of cuda_device: an address of the GPU
  std::size_t bytes() const;
  RegionKind kind() const;
  std::span<std::byte> span() const { return {data(), bytes()}; }

  const std::shared_ptr<detail::RegionState>& state() const { return state_; }

 private:
  std::shared_ptr<detail::RegionState> state_;
};

}  // namespace nanet::rdma
