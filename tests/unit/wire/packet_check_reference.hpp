// SPDX-License-Identifier: Apache-2.0
// The two that must say the same of every packet: a view, and the lanes of a GPU. And the checksum by its definition. For tests and for the fuzz target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/packet_check.hpp"

namespace nanet::wire::test {

// As a view that is made for the format says. A marker is no data packet.
inline ParseError by_view(std::span<const std::byte> payload) {
  MgpView mgp;
  M2egpView merged;
  ParseError error = MgpView::parse(payload, mgp);
  if (error == ParseError::none) return mgp.is_marker() ? ParseError::bad_format : error;
  if (payload.size() < kMgpHeaderBytes || payload.size() > kMgpPackedBytesMax || !is_m2egp(payload)) return error;
  error = M2egpView::parse(payload, merged);
  return error == ParseError::none && merged.is_marker() ? ParseError::bad_format : error;
}

// As so many lanes of a GPU do it.
inline ParseError by_lanes(std::span<const std::byte> payload, std::uint32_t lanes) {
  const auto bytes = static_cast<std::uint32_t>(payload.size());
  if (const ParseError error = check_data_header(payload.data(), bytes); error != ParseError::none) return error;
  ParseError events = ParseError::none;
  ChecksumShare sum;
  bool shares_are_small = true;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    const ParseError error = check_events(payload.data(), bytes, {lane, lanes});
    if (error != ParseError::none) events = error;
    const ChecksumShare share = checksum_share(payload.data(), bytes, {lane, lanes});
    shares_are_small &= share.first < 1u << 17 && share.second < 1u << 17;
    sum.first += share.first;
    sum.second += share.second;
  }
  if (!shares_are_small) return static_cast<ParseError>(255);  // equal to nothing: the promise of ChecksumShare is broken
  if (events != ParseError::none) return events;
  return checksum_matches(payload.data(), sum) ? ParseError::none : ParseError::bad_checksum;
}

// The definition, one word at a time, modulo at every step.
inline std::uint32_t slow_fletcher32(std::span<const std::byte> bytes) {
  unsigned first = 0;
  unsigned second = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    const unsigned low = static_cast<unsigned>(bytes[i]);
    const unsigned high = i + 1 < bytes.size() ? static_cast<unsigned>(bytes[i + 1]) : 0;
    first = (first + low + 256 * high) % 65535;
    second = (second + first) % 65535;
  }
  return second * 65536 + first;
}

inline std::uint32_t slow_mgp_checksum(std::span<const std::byte> payload) {
  std::vector<std::byte> rest(payload.begin(), payload.begin() + 12);
  rest.insert(rest.end(), payload.begin() + 16, payload.end());
  return slow_fletcher32(rest);
}

}  // namespace nanet::wire::test
