// SPDX-License-Identifier: Apache-2.0
// What every fuzz target needs: inputs in a heap block of exactly their size, a reader of their bytes, and a check that ends the program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
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
  explicit Input(std::size_t size) : size_(size), bytes_(new std::byte[size]()) {}
  explicit Input(std::span<const std::byte> bytes) : Input(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()) {}
  std::span<std::byte> bytes() { return {bytes_.get(), size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte[]> bytes_;
};

// Whether set-up is refused: throws, with a reason.
template <typename Call>
bool is_refused(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    require(std::strlen(error.what()) != 0, "a refusal says why");
    return true;
  }
  return false;
}

// Numbers and pieces from the front of an input; zeros after its end.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : next_(data), end_(data + size) {}
  bool empty() const { return next_ == end_; }
  std::uint8_t take() { return empty() ? std::uint8_t{0} : *next_++; }
  template <typename Number>
  Number take_as() {
    Number number{};
    const auto piece = take(sizeof number);
    if (!piece.empty()) std::memcpy(&number, piece.data(), piece.size());
    return number;
  }
  std::span<const std::byte> take(std::size_t count) {
    const std::span<const std::byte> taken(reinterpret_cast<const std::byte*>(next_),
                                           std::min(count, static_cast<std::size_t>(end_ - next_)));
    next_ += taken.size();
    return taken;
  }
  std::span<const std::byte> rest() { return take(static_cast<std::size_t>(end_ - next_)); }

 private:
  const std::uint8_t* next_;
  const std::uint8_t* end_;
};

}  // namespace nanet::fuzz
