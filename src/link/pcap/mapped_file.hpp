// SPDX-License-Identifier: Apache-2.0
// A file as read-only memory: the kernel fetches and drops its pages as they are used, so a file may be larger than the memory.
//
// Cutting the file short while it is mapped ends this program (SIGBUS): play files that no one writes to.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace nanet::link {

class MappedFile {
 public:
  explicit MappedFile(const std::string& path);  // throws SetupError
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace nanet::link
