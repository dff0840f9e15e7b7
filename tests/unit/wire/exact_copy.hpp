// SPDX-License-Identifier: Apache-2.0
// A copy of bytes in a heap block of exactly their size, so that the address sanitizer sees a read past either end.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

namespace nanet::wire::test {

class ExactCopy {
 public:
  explicit ExactCopy(std::span<const std::byte> bytes) : size_(bytes.size()), data_(new std::byte[bytes.size()]) {
    if (!bytes.empty()) std::memcpy(data_.get(), bytes.data(), bytes.size());
  }
  std::span<const std::byte> span() const { return {data_.get(), size_}; }
  std::span<std::byte> span() { return {data_.get(), size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte[]> data_;
};

}  // namespace nanet::wire::test
