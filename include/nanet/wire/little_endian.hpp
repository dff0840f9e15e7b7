// SPDX-License-Identifier: Apache-2.0
// Loads and stores of little-endian words at any address. All formats of this project are little-endian, and so are the
// machines it runs on: hits are handed out as pointers into the packet, which a big-endian machine could not do.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "nanet/host_device.hpp"

namespace nanet::wire {

static_assert(std::endian::native == std::endian::little, "packet views point into little-endian memory");

template <class Word>
NANET_HD inline Word load_le(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

template <class Word>
NANET_HD inline void store_le(std::byte* to, Word word) {
  std::memcpy(to, &word, sizeof word);
}

}  // namespace nanet::wire
