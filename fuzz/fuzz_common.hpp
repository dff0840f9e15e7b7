// SPDX-License-Identifier: Apache-2.0
// What every fuzz target needs: inputs in a heap block of exactly their size, and a check that ends the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

namespace nanet::fuzz {

// Also in release builds, unlike assert().
inline void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "fuzz target: %s\n", what);
  std::abort();
}

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : size_(size), bytes_(new std::byte[size]) {
    if (size != 0) std::memcpy(bytes_.get(), data, size);
  }
  std::span<std::byte> bytes() { return {bytes_.get(), size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace nanet::fuzz
