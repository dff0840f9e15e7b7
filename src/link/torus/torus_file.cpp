// SPDX-License-Identifier: Apache-2.0
#include "link/torus/torus_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

constexpr std::uint64_t kTorusMagic = 0x7573'726f'7474'656e;
constexpr std::uint32_t kTorusVersion = 2;
constexpr std::size_t kTorusPage = 4096;
constexpr std::size_t kTorusHostBytes = (sizeof(TorusHost) + kTorusPage - 1) / kTorusPage * kTorusPage;

constexpr const char* kServe = "start nanet torus serve, or name its file";

// Why the system refused, within the brackets of an error line.
std::string refusal(int error) {
  std::string text = std::strerror(error);
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::size_t torus_file_bytes(std::uint32_t nodes) { return kTorusPage + nodes * (kTorusHostBytes + kTorusNodeBytes); }

bool is_torus(const TorusHead& head) { return head.magic == kTorusMagic; }

// Whether this description of the file has the byte now.
bool lock_byte(int file, off_t byte) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return ::fcntl(file, F_OFD_SETLK, &lock) == 0;
}

bool is_locked(int file, off_t byte) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

TorusHead read_head(int file) {
  TorusHead head;
  if (::pread(file, &head, sizeof head, 0) != static_cast<ssize_t>(sizeof head)) head.magic = 0;
  return head;
}

// What a simulation that has ended left at this path goes; nothing else does.
void remove_left(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) {
    if (errno == ENOENT) return;
    throw SetupError("the torus has no place at " + path, refusal(errno), "name another file");
  }
  const bool left = is_torus(read_head(file)), in_use = is_locked(file, 0);
  ::close(file);
  if (!left) throw SetupError("the torus has no place at " + path, "there is a file that is no torus", "name another file");
  if (in_use) throw SetupError("the torus has no place at " + path, "another one is running there", "end it, or name another file");
  ::unlink(path.c_str());
}

}  // namespace

std::string TorusHead::shape_text() const {
  return std::to_string(shape[0]) + 'x' + std::to_string(shape[1]) + 'x' + std::to_string(shape[2]);
}

std::uint32_t TorusHead::node_at(std::uint32_t place) const {
  const std::uint32_t x = place & 63, y = place >> 6 & 31, z = place >> 11 & 31;
  if (x >= shape[0] || y >= shape[1] || z >= shape[2]) return kTorusNodesMax;
  return x + shape[0] * (y + shape[1] * z);
}

TorusFile TorusFile::create(const std::string& path, const std::array<std::uint32_t, 3>& shape, std::uint32_t wire_cycles,
                            std::span<const std::string_view> count_names) {
  remove_left(path);
  TorusFile made(path, ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  const std::size_t bytes = torus_file_bytes(shape[0] * shape[1] * shape[2]);
  if (made.file_ < 0 || !lock_byte(made.file_, 0) || ::ftruncate(made.file_, static_cast<off_t>(bytes)) != 0)
    throw SetupError("the torus has no place at " + path, refusal(errno), "name another file, best in /dev/shm");
  made.is_owner_ = true;
  made.map(bytes);
  for (std::uint32_t node = 0; node < shape[0] * shape[1] * shape[2]; ++node)
    new (made.memory_.data() + kTorusPage + node * kTorusHostBytes) TorusHost();
  auto* const head = new (made.memory_.data()) TorusHead();
  head->version = kTorusVersion;
  head->host_bytes = sizeof(TorusHost);
  head->shape = shape;
  head->wire_cycles = wire_cycles;
  for (const std::string_view name : count_names.first(std::min<std::size_t>(count_names.size(), kTorusCountsMax)))
    name.copy(head->names[head->counts++].data(), head->names[0].size());
  std::atomic_ref<std::uint64_t>(head->magic).store(kTorusMagic, std::memory_order_release);
  return made;
}

TorusFile TorusFile::open(const std::string& path, const std::string& link) {
  const std::string problem = "link " + link + " has no torus";
  TorusFile found(path, ::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (found.file_ < 0) throw SetupError(problem, path + ": " + refusal(errno), kServe);
  const TorusHead head = read_head(found.file_);
  if (!is_torus(head)) throw SetupError(problem, path + " is none", kServe);
  if (head.version != kTorusVersion || head.host_bytes != sizeof(TorusHost))
    throw SetupError(problem, path + " is of another nanet", "start nanet torus serve of this one");
  struct stat about {};
  const bool fits = head.shape[0] <= kTorusNodesMax && head.shape[1] <= kTorusNodesMax && head.shape[2] <= kTorusNodesMax &&
                    head.nodes() >= 1 && head.nodes() <= kTorusNodesMax && ::fstat(found.file_, &about) == 0 &&
                    about.st_size == static_cast<off_t>(torus_file_bytes(head.nodes()));
  if (!fits) throw SetupError(problem, path + " is damaged", "start nanet torus serve again");
  if (!is_locked(found.file_, 0)) throw SetupError(problem, "the simulation of " + path + " has ended", kServe);
  found.map(torus_file_bytes(head.nodes()));
  return found;
}

void TorusFile::map(std::size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (at == MAP_FAILED)
    throw SetupError("the torus at " + path_ + " cannot be mapped", refusal(errno), "allow this process more memory");
  memory_ = {static_cast<std::byte*>(at), bytes};
}

TorusFile::TorusFile(TorusFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      is_owner_(std::exchange(other.is_owner_, false)),
      memory_(std::exchange(other.memory_, {})) {}

TorusFile::~TorusFile() {
  if (is_owner_) ::unlink(path_.c_str());
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
  if (file_ >= 0) ::close(file_);
}

void TorusFile::claim(std::uint32_t node, const std::string& link) {
  if (node >= head().nodes())
    throw SetupError("link " + link + " cannot be at node " + std::to_string(node),
                     "the torus of " + path_ + " is " + head().shape_text(),
                     "name one of 0 to " + std::to_string(head().nodes() - 1));
  if (!lock_byte(file_, 1 + static_cast<off_t>(node)))
    throw SetupError("link " + link + " cannot be at node " + std::to_string(node), "another link is", "name another node");
}

bool TorusFile::is_served() const { return is_locked(file_, 0); }

TorusHost& TorusFile::host(std::uint32_t node) const {
  return *std::launder(reinterpret_cast<TorusHost*>(memory_.data() + kTorusPage + node * kTorusHostBytes));
}

std::span<std::byte> TorusFile::memories() const { return memory_.subspan(kTorusPage + head().nodes() * kTorusHostBytes); }

std::span<std::byte> TorusFile::memory(std::uint32_t node) const {
  return memories().subspan(node * kTorusNodeBytes, kTorusNodeBytes);
}

}  // namespace nanet::link
