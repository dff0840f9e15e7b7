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

// The same at an address that is a multiple of the word's size: a GPU loads it in one piece.
template <class Word>
NANET_HD inline Word load_le_aligned(const std::byte* from) {
#ifdef __CUDA_ARCH__
  return *reinterpret_cast<const Word*>(from);
#else
  return load_le<Word>(from);
#endif
}

// Eight bytes at any address in two or three loads of aligned 4-byte words, which is what a GPU can do. Touches no such word that
// holds none of the eight bytes.
NANET_HD inline std::uint64_t load_le64_by_words(const std::byte* from) {
  const auto skipped_bytes = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(from) & 3u);
  const std::byte* const words = from - skipped_bytes;
  const std::uint64_t low = load_le_aligned<std::uint32_t>(words) | std::uint64_t{load_le_aligned<std::uint32_t>(words + 4)} << 32;
  if (skipped_bytes == 0) return low;
  return low >> 8 * skipped_bytes | std::uint64_t{load_le_aligned<std::uint32_t>(words + 8)} << (64 - 8 * skipped_bytes);
}

template <class Word>
NANET_HD inline void store_le(std::byte* to, Word word) {
  std::memcpy(to, &word, sizeof word);
}

}  // namespace nanet::wire
