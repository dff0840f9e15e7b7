// SPDX-License-Identifier: Apache-2.0
#include "km3_emulate/slow_control.hpp"

#include <algorithm>
#include <utility>

#include "nanet/km3/hit.hpp"

namespace nanet::km3_emulate {
namespace {

constexpr std::uint32_t kRequest = 0x4B4D3343;
constexpr std::uint32_t kAnswer = 0x4B4D3341;
enum Command : std::uint8_t { kGet = 1, kSet = 2, kRunStart = 3, kRunStop = 4, kPing = 5 };

std::uint32_t u32(std::span<const std::byte> packet, std::size_t at) {
  return static_cast<std::uint32_t>(km3::load_be32(&packet[at]));
}
std::uint16_t u16(std::span<const std::byte> packet, std::size_t at) { return static_cast<std::uint16_t>(u32(packet, at) >> 16); }

void put(ControlPacket& packet, std::size_t at, std::uint32_t value) { km3::store_be(&packet[at], value); }

// The parameters that can be set: what they change, and up to which value.
struct Place {
  std::int32_t* value;
  std::int32_t most;
};

std::optional<Place> place(std::uint16_t parameter, FloorSettings& settings) {
  if (parameter < kPms) return Place{&settings.voltage[parameter], 20'000};
  if (parameter >= 16 && parameter < 16 + kPms) return Place{&settings.threshold[parameter - 16u], 1000};
  if (parameter == 32 || parameter == 33) return Place{&settings.hydrophone_on[parameter - 32u], 1};
  return std::nullopt;
}

}  // namespace

std::optional<ControlPacket> SlowControl::answer(std::span<const std::byte> request, const std::string& from, std::uint64_t gps_ns,
                                                 FloorState& state) {
  if (request.size() != kControlBytes || u32(request, 0) != kRequest) {
    ++counts_.bad;
    return std::nullopt;
  }
  ++counts_.requests;
  ControlPacket asked;
  std::ranges::copy(request, asked.begin());
  const auto before = std::ranges::find_if(done_, [&](const Done& one) { return one.from == from && one.request == asked; });
  if (before != done_.end()) {
    ++counts_.repeated;
    return before->answer;
  }
  const bool mine = std::to_integer<std::uint8_t>(request[4]) == tower_ && std::to_integer<std::uint8_t>(request[5]) == floor_;
  const auto value = static_cast<std::int32_t>(u32(request, 16));
  const Outcome outcome = mine ? act(std::to_integer<std::uint8_t>(request[6]), u16(request, 12), value, state)
                               : Outcome{ControlStatus::another_floor, 0};
  ControlPacket reply = asked;
  put(reply, 0, kAnswer);
  reply[4] = static_cast<std::byte>(tower_);
  reply[5] = static_cast<std::byte>(floor_);
  reply[7] = static_cast<std::byte>(outcome.status);
  put(reply, 16, static_cast<std::uint32_t>(outcome.value));
  put(reply, 20, static_cast<std::uint32_t>(gps_ns / 1'000'000'000));
  put(reply, 24, static_cast<std::uint32_t>(gps_ns % 1'000'000'000 / 16));
  done_.push_back({from, asked, reply});
  if (done_.size() > kRemembered) done_.pop_front();
  return reply;
}

SlowControl::Outcome SlowControl::act(std::uint8_t command, std::uint16_t parameter, std::int32_t value, FloorState& state) const {
  const auto now = static_cast<std::int32_t>(state.run.value_or(0));
  switch (command) {
    case kGet: return get(parameter, state);
    case kSet: return set(parameter, value, state);
    case kPing: return {ControlStatus::done, 0};
    case kRunStart:
      if (parameter != 0) return {ControlStatus::no_parameter, 0};
      if (state.run && *state.run != static_cast<std::uint32_t>(value)) return {ControlStatus::not_now, now};
      if (state.tower_run && *state.tower_run != static_cast<std::uint32_t>(value)) {
        return {ControlStatus::not_now, static_cast<std::int32_t>(*state.tower_run)};
      }
      state.run = static_cast<std::uint32_t>(value);
      return {ControlStatus::done, value};
    case kRunStop:
      if (parameter != 0) return {ControlStatus::no_parameter, 0};
      if (!state.run) return {ControlStatus::not_now, 0};
      state.run.reset();
      return {ControlStatus::done, now};
    default: return {ControlStatus::no_command, 0};
  }
}

SlowControl::Outcome SlowControl::get(std::uint16_t parameter, const FloorState& state) const {
  FloorSettings settings = state.settings;
  if (const auto found = place(parameter, settings)) return {ControlStatus::done, *found->value};
  if (std::ranges::find(kInstruments, parameter) != std::end(kInstruments)) {
    return {ControlStatus::done, units_.instrument(state.slice, index_, parameter)};
  }
  if (parameter >= 80 && parameter < 80 + kPms)
    return {ControlStatus::done, static_cast<std::int32_t>(state.rates[parameter - 80u])};
  return {ControlStatus::no_parameter, 0};
}

SlowControl::Outcome SlowControl::set(std::uint16_t parameter, std::int32_t value, FloorState& state) const {
  const auto found = place(parameter, state.settings);
  if (!found) return {ControlStatus::no_parameter, 0};
  if (value < 0 || value > found->most) return {ControlStatus::out_of_bounds, *found->value};
  *found->value = value;
  return {ControlStatus::done, value};
}

}  // namespace nanet::km3_emulate
