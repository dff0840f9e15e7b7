// SPDX-License-Identifier: Apache-2.0
// What wraps a link reads and changes payloads in the room of receive(), so it refuses one whose payloads are elsewhere.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <functional>

#include "nanet/link/fault_injector.hpp"
#include "nanet/link/recorder.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

class Lender final : public Link {
 public:
  std::size_t min_room_bytes() const override { return sizeof(PlacedPacket); }
  RxBatch receive(std::span<std::byte>, std::span<RxPacket>, std::uint64_t) override { return {}; }
  flow::PayloadMemory payload_memory() const override { return {.memory = memory_}; }
  void send(std::span<const TxPacket>, std::uint64_t) override {}
  void wait(std::uint64_t) override {}
  LinkStats stats() const override { return {}; }
  Endpoint local() const override { return {}; }
  std::string path() const override { return "a lender"; }
  std::vector<std::string> notes() const override { return {}; }

 private:
  mutable std::array<std::byte, 64> memory_{};
};

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const SetupError& error) {
    return error.what();
  }
  return "no error";
}

TEST(InPlace, FaultsAreRefused) {
  EXPECT_EQ(error_of([] { FaultInjector(std::make_unique<Lender>(), {}); }),
            "faults cannot be put into what comes from a lender (its payloads stay where the NIC wrote them, and are not harmed "
            "there) set "
            "payloads: copied, or remove faults");
}

TEST(InPlace, ARecordingIsRefusedAndNoFileIsMade) {
  const std::string path = "/tmp/nanet_in_place_test.pcap";
  EXPECT_EQ(error_of([&] { Recorder(std::make_unique<Lender>(), {.path = path}); }),
            "cannot record what comes from a lender (its payloads stay where the NIC wrote them, and are read by others only) set "
            "payloads: "
            "copied, or remove record");
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace nanet::link
