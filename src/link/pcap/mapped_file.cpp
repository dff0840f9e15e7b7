// SPDX-License-Identifier: Apache-2.0
#include "link/pcap/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "nanet/setup_error.hpp"

namespace nanet::link {

MappedFile::MappedFile(const std::string& path) {
  const auto refuse = [&](const char* why) { throw SetupError("cannot read " + path, why, "check the path"); };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) refuse(std::strerror(errno));
  struct stat about {};
  if (::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    ::close(fd);
    refuse("it is not a file");
  }
  size_ = static_cast<std::size_t>(about.st_size);
  if (size_ > 0) {
    void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    ::close(fd);
    if (memory == MAP_FAILED) refuse(std::strerror(error));
    ::madvise(memory, size_, MADV_SEQUENTIAL);
    data_ = static_cast<const std::byte*>(memory);
  } else {
    ::close(fd);
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace nanet::link
