// SPDX-License-Identifier: Apache-2.0
// Fletcher-32: the checksum of MGP packets.
//
// Definition, for little-endian 16-bit words w[0] .. w[n-1]; both sums start at 0 and are kept modulo 65535:
//     first  = w[0] + w[1] + ... + w[n-1]
//     second = n w[0] + (n-1) w[1] + ... + 1 w[n-1]      (the sum of all intermediate values of `first`)
//     checksum = second * 65536 + first
// Both halves are in 0 .. 65534. An odd number of bytes is read as if one zero byte followed.
// Test value: the eight ASCII bytes "abcdefgh" give 0xEBE19591; no bytes at all give 0.
//
// What it finds: every change inside one 16-bit word but one, so every single-bit error and every burst of up to 16 bits that
// lies in a word. What it cannot find: 0x0000 turned into 0xFFFF or back, because both are 0 modulo 65535.
//
// Thread rules: pure functions, no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nanet/host_device.hpp"
#include "nanet/wire/little_endian.hpp"

namespace nanet::wire {

inline constexpr std::size_t kChecksumOffset = 12;  // of the checksum in an MGP payload
inline constexpr std::size_t kChecksumBytes = 4;

// Of all bytes. One dispatch to the best vector unit for the whole call.
std::uint32_t fletcher32(std::span<const std::byte> bytes);

// Of all bytes but the four at `at`, which is even, as if these were not there at all.
std::uint32_t fletcher32_around(std::span<const std::byte> bytes, std::size_t at);

// Of an MGP payload of at least 16 bytes, without its bytes 12..15, as if these four were not there at all.
std::uint32_t mgp_checksum(std::span<const std::byte> payload);

// The same two without vectors, for GPU threads and as a second opinion. Good for up to 2^24 bytes.
struct FletcherSums {
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  // Takes the next bytes; all calls but the last need an even byte_count. The modulo waits until value().
  NANET_HD void add(const std::byte* data, std::size_t byte_count) {
    const std::size_t even_bytes = byte_count & ~std::size_t{1};
    for (std::size_t i = 0; i < even_bytes; i += 2) {
      first += load_le<std::uint16_t>(data + i);
      second += first;
    }
    if (byte_count != even_bytes) {
      first += static_cast<std::uint64_t>(data[even_bytes]);
      second += first;
    }
  }
  NANET_HD std::uint32_t value() const { return static_cast<std::uint32_t>((second % 65535u) << 16 | first % 65535u); }
};

NANET_HD inline std::uint32_t fletcher32_scalar(const std::byte* data, std::size_t byte_count) {
  FletcherSums sums;
  sums.add(data, byte_count);
  return sums.value();
}

NANET_HD inline std::uint32_t mgp_checksum_scalar(const std::byte* payload, std::size_t byte_count) {
  constexpr std::size_t kBodyOffset = kChecksumOffset + kChecksumBytes;
  FletcherSums sums;
  sums.add(payload, kChecksumOffset);
  sums.add(payload + kBodyOffset, byte_count - kBodyOffset);
  return sums.value();
}

}  // namespace nanet::wire
