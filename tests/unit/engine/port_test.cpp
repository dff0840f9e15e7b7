// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/port.hpp"
#include "nanet/engine/protocol.hpp"

#include <gtest/gtest.h>

#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

LinkConfig any_free_port() {
  LinkConfig config;
  config.name = "port";
  config.endpoint = "udp://127.0.0.1:0";
  config.protocol = &kRaw;
  config.memory_region = {.name = "port", .huge_pages = false, .buffer_count = 4};
  return config;
}

std::string why_not(MemoryKind memory) {
  try {
    const Port port(any_free_port(), memory);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

TEST(Port, memory_of_the_host_needs_no_gpu) {
  const Port port(any_free_port());
  EXPECT_EQ(port.pinned(), nullptr);
}

TEST(Port, device_memory_is_refused_because_the_kernel_writes_into_host_memory) {
  EXPECT_NE(why_not(MemoryKind::device).find("(the kernel copies packets into host memory"), std::string::npos);
}

#ifndef NANET_CUDA
TEST(Port, pinned_memory_needs_a_build_with_cuda) {
  EXPECT_NE(why_not(MemoryKind::host_pinned).find("CLOP 'port' cannot be made visible to a GPU (nanet was built without CUDA)"),
            std::string::npos);
}
#endif

}  // namespace
}  // namespace nanet::engine
