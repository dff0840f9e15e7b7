// SPDX-License-Identifier: Apache-2.0
// The camera as a plug-in: own_camera.yaml names what is added at the end, and `nanet run` does the rest.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bright.hpp"
#include "camera.hpp"
#include "nanet/engine/plugin.hpp"
#include "nanet/setup_error.hpp"

namespace camera {
namespace {

using engine::Kinds;
using engine::LinkConfig;
using engine::LinkKind;
using engine::LinkParts;
using engine::ProcessorKind;
using engine::ProcessorSettings;

// --- what a configuration says under settings: -------------------------------------------------------------------------

void check_keys(const config::Value& settings, std::initializer_list<std::string_view> known) {
  const auto* const map = settings.as<config::Value::Map>();
  for (const auto& [key, value] : map != nullptr ? *map : config::Value::Map{}) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    throw SetupError("settings: unknown key '" + key + "'", "the camera has no such setting", "remove it");
  }
}

std::uint32_t number(const config::Value& settings, const std::string& key, std::uint32_t otherwise) {
  const config::Value* const value = settings.find(key);
  if (value == nullptr) return otherwise;
  const auto* const whole = value->as<std::int64_t>();
  if (whole == nullptr || *whole < 1 || *whole > 1'000'000'000)
    throw SetupError("settings: " + key + " is not usable", "it is a number from 1 to 1,000,000,000", "write one");
  return static_cast<std::uint32_t>(*whole);
}

// --- the link: camera://7 is camera 7, which is made up here -----------------------------------------------------------

class CameraLink final : public link::Link {
 public:
  CameraLink(std::uint8_t camera, std::uint32_t packets, std::uint32_t packets_per_s)
      : camera_(camera), packets_(packets), packets_per_s_(packets_per_s) {}

  std::size_t min_room_bytes() const override { return kPacketBytes; }
  link::RxBatch receive(std::span<std::byte> room, std::span<link::RxPacket> packets, std::uint64_t now_ns) override {
    if (start_ns_ == 0) start_ns_ = now_ns;
    const std::uint32_t made = made_.load(std::memory_order_relaxed);
    const auto due = static_cast<std::uint32_t>(
        std::min(1e-9 * static_cast<double>(now_ns - start_ns_) * packets_per_s_, static_cast<double>(packets_)));
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>({due - made, packets.size(), room.size() / kPacketBytes}));
    for (std::uint32_t k = 0; k < count; ++k) {
      const auto offset = static_cast<std::uint32_t>(k * kPacketBytes);
      write_packet(room.subspan(offset, kPacketBytes), camera_, made + k);
      packets[k] = {.offset = offset, .bytes = kPacketBytes, .peer_port = 0, .peer_address = 0, .flags = 0, .reserved = 0};
    }
    made_.store(made + count, std::memory_order_relaxed);
    return {.packet_count = count, .bytes_used = static_cast<std::uint32_t>(count * kPacketBytes)};
  }
  void send(std::span<const link::TxPacket>, std::uint64_t) override {}  // LinkKind::sends is false
  void wait(std::uint64_t timeout_ns) override {
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min<std::uint64_t>(timeout_ns, 100'000)));
  }
  link::LinkStats stats() const override {
    link::LinkStats stats;
    stats.rx_packets = made_.load(std::memory_order_relaxed);
    stats.rx_bytes = stats.rx_packets * kPacketBytes;
    return stats;
  }
  bool finished() const override { return made_.load(std::memory_order_relaxed) == packets_; }
  bool keeps_packets() const override { return true; }
  link::Endpoint local() const override { return {.scheme = "camera", .address = 0, .port = camera_}; }
  std::string path() const override { return "made-up camera"; }
  std::vector<std::string> notes() const override { return {}; }

 private:
  const std::uint8_t camera_;
  const std::uint32_t packets_;
  const std::uint32_t packets_per_s_;
  std::uint64_t start_ns_ = 0;
  std::atomic<std::uint32_t> made_{0};
};

std::unique_ptr<link::Link> open_camera(const LinkConfig& config, LinkParts) {
  const std::string place = config.endpoint.substr(std::string_view("camera://").size());
  std::uint8_t camera = 0;
  const auto [end, error] = std::from_chars(place.data(), place.data() + place.size(), camera);
  if (error != std::errc{} || end != place.data() + place.size())
    throw SetupError("link " + config.name + ": '" + place + "' is no camera", "cameras have numbers up to 255", "write camera://7");
  check_keys(config.settings, {"packets", "packets_per_s"});
  return std::make_unique<CameraLink>(camera, number(config.settings, "packets", 1000),
                                      number(config.settings, "packets_per_s", 10'000));
}

std::shared_ptr<engine::Processor> make_bright(const ProcessorSettings& settings) {
  check_keys(settings.settings, {"bright_pixels"});
  return std::make_shared<BrightProcessor>(
      BrightConfig{.bright_pixels = number(settings.settings, "bright_pixels", 3), .answers = settings.has_destination});
}

}  // namespace
}  // namespace camera

NANET_PLUGIN([](nanet::engine::Kinds& kinds) {
  using namespace camera;
  kinds.add(kCamera);
  kinds.add(ProcessorKind{.name = "bright", .make = make_bright, .sends = true});
  kinds.add(LinkKind{.name = "camera", .open = open_camera, .sends = false, .names_senders = false});
});
