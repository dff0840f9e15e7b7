// SPDX-License-Identifier: Apache-2.0
// Remote memory where one side or both are a GPU's, between two workers of this process: every byte is checked, on any path of UCX. The
// paths are printed: which they are depends on the machine. Between processes: tests/python/test_rdma_gpu.py.
#include <cuda_runtime.h>

#include <atomic>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include "check.hpp"
#include "nanet/rdma/connection.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::rdma {
namespace {

constexpr std::size_t kBytes = 4 << 20;

enum class Where { host, pinned, device };

// Memory of CUDA, or of the host.
class Memory {
 public:
  explicit Memory(Where where) : where_(where) {
    void* place = nullptr;
    if (where == Where::device && cudaMalloc(&place, kBytes) != cudaSuccess) throw SetupError("no device memory", "cudaMalloc", "");
    if (where == Where::pinned && cudaMallocHost(&place, kBytes) != cudaSuccess)
      throw SetupError("no pinned memory", "cudaMallocHost", "");
    if (where == Where::host) host_.resize(kBytes), place = host_.data();
    place_ = static_cast<std::byte*>(place);
  }
  ~Memory() {
    if (where_ == Where::device) cudaFree(place_);
    if (where_ == Where::pinned) cudaFreeHost(place_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::span<std::byte> span() const { return {place_, kBytes}; }
  RegionKind kind() const {
    return where_ == Where::device ? RegionKind::cuda_device : where_ == Where::pinned ? RegionKind::cuda_pinned : RegionKind::host;
  }
  void write(std::span<const std::byte> data) const {
    EXPECT_EQ(cudaMemcpy(place_, data.data(), data.size(), cudaMemcpyDefault), cudaSuccess);
  }
  std::vector<std::byte> read() const {
    std::vector<std::byte> data(kBytes);
    EXPECT_EQ(cudaMemcpy(data.data(), place_, kBytes, cudaMemcpyDefault), cudaSuccess);
    return data;
  }

 private:
  Where where_;
  std::byte* place_ = nullptr;
  std::vector<std::byte> host_;
};

std::vector<std::byte> pattern(unsigned seed) {
  std::vector<std::byte> data(kBytes);
  for (std::size_t at = 0; at < kBytes; ++at) data[at] = static_cast<std::byte>((at * 2654435761u + seed * 40503u) >> 13);
  return data;
}

// A target in a thread of its own until it goes.
class Serving {
 public:
  Serving(const Memory& memory) : region_(worker_, {.name = "gpu", .kind = memory.kind()}, memory.span()), target_(worker_, {}) {
    target_.expose(region_, {.name = "gpu", .permissions = {.read = true, .write = true}, .token = 3});
    thread_ = std::thread([this] {
      cudaSetDevice(0);
      while (!is_over_) worker_.progress();
    });
  }
  ~Serving() {
    is_over_ = true;
    thread_.join();
  }
  std::uint16_t port() const { return target_.port(); }

 private:
  Worker worker_;
  Region region_;
  Target target_;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

TEST(Rdma, bytes_are_put_and_got_between_host_and_device_memory) {
  constexpr const char* kNames[] = {"host", "pinned", "device"};
  for (const Where there : {Where::host, Where::pinned, Where::device}) {
    for (const Where here : {Where::host, Where::pinned, Where::device}) {
      const Memory remote(there), local(here);
      const Serving serving(remote);
      Worker worker;
      const Region region(worker, {.name = "local", .kind = local.kind()}, local.span());
      Connection connection(worker, {.address = "127.0.0.1", .port = serving.port(), .region = "gpu", .token = 3, .local = &region});
      const bool has_device = there == Where::device || here == Where::device;
      EXPECT_TRUE(connection.path().probe.has_value() == has_device);
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{4096}, kBytes}) {
        const auto sent = pattern(static_cast<unsigned>(bytes)), other = pattern(99);
        local.write(sent);
        remote.write(other);
        EXPECT_EQ(static_cast<int>(connection.put(0, Connection::Part{region, 0, bytes})), 0) << connection.error();
        EXPECT_EQ(static_cast<int>(connection.flush()), 0) << connection.error();
        const auto seen = remote.read();
        EXPECT_TRUE(std::equal(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(bytes), sent.begin())) << kNames[int(here)];
        EXPECT_TRUE(std::equal(seen.begin() + static_cast<std::ptrdiff_t>(bytes), seen.end(),
                               other.begin() + static_cast<std::ptrdiff_t>(bytes)));
        local.write(other);
        EXPECT_EQ(static_cast<int>(connection.get(0, Connection::Part{region, 0, bytes})), 0) << connection.error();
        EXPECT_TRUE(local.read() == seen) << kNames[int(here)] << " from " << kNames[int(there)];
      }
      if (there == Where::device) {
        EXPECT_EQ(static_cast<int>(connection.atomic_add(0, 1).status), static_cast<int>(Status::not_permitted));
      }
      std::printf("%s here, %s there: %s\n", kNames[int(here)], kNames[int(there)], connection.path().text().c_str());
      for (const Way& way : connection.ways())
        std::printf("  %s of %llu bytes: %s\n", way.operation == Way::Operation::put ? "put" : "get",
                    static_cast<unsigned long long>(way.bytes), way.text.c_str());
      EXPECT_EQ(connection.ways().size(), 6u);  // put and get of three sizes: none of them kept UCX from telling
      EXPECT_EQ(static_cast<int>(connection.close()), 0);
    }
  }
}

TEST(Rdma, memory_is_what_it_is_said_to_be) {
  const Memory device(Where::device), host(Where::host);
  void* managed = nullptr;
  ASSERT_EQ(cudaMallocManaged(&managed, kBytes), cudaSuccess);
  Worker worker;
  EXPECT_THROW(Region(worker, {.kind = RegionKind::host}, device.span()), SetupError);
  EXPECT_THROW(Region(worker, {.kind = RegionKind::cuda_device}, host.span()), SetupError);
  EXPECT_THROW(Region(worker, {.kind = RegionKind::cuda_device}, std::span(static_cast<std::byte*>(managed), kBytes)), SetupError);
  cudaFree(managed);
}

}  // namespace
}  // namespace nanet::rdma
