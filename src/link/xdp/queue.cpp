// SPDX-License-Identifier: Apache-2.0
#include "link/xdp/queue.hpp"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "link/socket.hpp"
#include "nanet/setup_error.hpp"

#ifndef SO_PREFER_BUSY_POLL  // Linux 5.11
#define SO_PREFER_BUSY_POLL 69
#define SO_BUSY_POLL_BUDGET 70
#endif

namespace nanet::link {
namespace {

constexpr int kBusyPollBudget = 64;  // packets a poll

std::string queue_text(const QueueConfig& config) { return "queue " + std::to_string(config.queue) + " of " + config.interface; }

}  // namespace

Queue::Queue(const QueueConfig& config, std::span<std::byte> frames, std::vector<std::string>& notes)
    : config_(config), frames_(frames) {
  try {
    open(notes);
  } catch (...) {
    close();
    throw;
  }
}

Queue::~Queue() { close(); }

void Queue::close() {
  if (tx_socket_ != nullptr) xsk_socket__delete(std::exchange(tx_socket_, nullptr));
  if (rx_socket_ != nullptr) xsk_socket__delete(std::exchange(rx_socket_, nullptr));
  if (umem_ != nullptr) xsk_umem__delete(std::exchange(umem_, nullptr));
}

void Queue::open(std::vector<std::string>& notes) {
  xsk_umem_config umem{};
  // The kernel shows what it has received a moment before it shows which places of the fill ring it has read. A frame given back in that moment
  // needs a place of its own: with as many places as frames there would be none.
  umem.fill_size = std::max(std::bit_ceil(2 * config_.rx_frames), 64u);
  umem.comp_size = std::max(config_.tx_frames, 64u);
  umem.frame_size = config_.frame_bytes;
  umem.frame_headroom = config_.headroom_bytes;
  const int error = xsk_umem__create(&umem_, frames_.data(), frames_.size(), &fill, &completion, &umem);
  if (error != 0) fail(-error);

  std::uint16_t flags = XDP_USE_NEED_WAKEUP;
  if (config_.zero_copy == XdpZeroCopy::required) flags |= XDP_ZEROCOPY;
  if (config_.zero_copy == XdpZeroCopy::off) flags |= XDP_COPY;
  if (config_.several_frames) flags |= kUseSeveralFrames;
  if (config_.rx_frames != 0) {
    // The kernel takes the first frames when the socket is bound, where the driver can: they have to be there.
    std::uint32_t index = 0;
    xsk_ring_prod__reserve(&fill, config_.rx_frames, &index);
    for (std::uint32_t i = 0; i < config_.rx_frames; ++i) {
      *xsk_ring_prod__fill_addr(&fill, index + i) = std::uint64_t{i} * config_.frame_bytes;
    }
    xsk_ring_prod__submit(&fill, config_.rx_frames);
    rx_socket_ = make_socket(&rx, nullptr, flags);
    rx_fd_ = xsk_socket__fd(rx_socket_);
  }
  if (config_.tx_frames != 0) {
    tx_socket_ = make_socket(nullptr, &tx, flags);
    tx_fd_ = xsk_socket__fd(tx_socket_);
    // In copied mode each packet in flight counts here, at its length and more.
    const int bytes = static_cast<int>(std::min(config_.tx_frames * 4096u, 1u << 30));
    if (::setsockopt(tx_fd_, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0) {
      ::setsockopt(tx_fd_, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    }
  }
  xdp_options options{};
  socklen_t bytes = sizeof options;
  const int fd = rx_fd_ >= 0 ? rx_fd_ : tx_fd_;
  zero_copy_ = ::getsockopt(fd, SOL_XDP, XDP_OPTIONS, &options, &bytes) == 0 && (options.flags & XDP_OPTIONS_ZEROCOPY) != 0;
  if (config_.busy_poll_us != 0 && rx_fd_ >= 0) busy_poll(notes);
}

xsk_socket* Queue::make_socket(xsk_ring_cons* rx_ring, xsk_ring_prod* tx_ring, std::uint16_t bind_flags) {
  xsk_socket_config socket{};
  socket.rx_size = std::bit_ceil(config_.rx_frames);  // never full: it has a place for every frame
  socket.tx_size = config_.tx_frames;
  socket.libbpf_flags = XSK_LIBBPF_FLAGS__INHIBIT_PROG_LOAD;
  socket.bind_flags = bind_flags;
  xsk_socket* made = nullptr;
  // The kernel clears up after a closed socket in its own time: a queue given back just now is busy for some milliseconds.
  for (int attempt = 1;; ++attempt) {
    constexpr int kAttempts = 100;
    constexpr std::uint64_t kPauseNs = 10'000'000;
    const int error = xsk_socket__create(&made, config_.interface.c_str(), config_.queue, umem_, rx_ring, tx_ring, &socket);
    if (error == 0) break;
    if (error != -EBUSY || attempt == kAttempts) fail(-error);
    wait_for(-1, 0, kPauseNs);
  }
  return made;
}

void Queue::busy_poll(std::vector<std::string>& notes) const {
  const auto set = [this](int option, int value) { return ::setsockopt(rx_fd_, SOL_SOCKET, option, &value, sizeof value) == 0; };
  if (!set(SO_PREFER_BUSY_POLL, 1) || !set(SO_BUSY_POLL, static_cast<int>(config_.busy_poll_us)) ||
      !set(SO_BUSY_POLL_BUDGET, kBusyPollBudget)) {
    notes.push_back("link " + config_.link_name + ": " + queue_text(config_) + " is not polled by the receiving thread (" +
                    std::strerror(errno) + ") it needs Linux 5.11 and CAP_NET_ADMIN");
    return;
  }
  notes.push_back("link " + config_.link_name + ": " + queue_text(config_) +
                  " is polled by the receiving thread (busy_poll_us) its interrupts stay away only with napi_defer_hard_irqs and "
                  "gro_flush_timeout in /sys/class/net/" +
                  config_.interface);
}

// In copied mode a packet that finds no frame is in rx_dropped and once more in rx_fill_ring_empty_descs; in zero copy the latter counts the driver's
// vain looks, not packets. So that number is in no sum.
Queue::Drops Queue::drops() const {
  xdp_statistics statistics{};
  socklen_t bytes = sizeof statistics;
  if (rx_fd_ < 0 || ::getsockopt(rx_fd_, SOL_XDP, XDP_STATISTICS, &statistics, &bytes) != 0) return {};
  return {statistics.rx_dropped + statistics.rx_ring_full, statistics.rx_invalid_descs};
}

void Queue::fail(int error) const {
  const std::string problem = "link " + config_.link_name + " cannot open " + queue_text(config_);
  const std::string why = std::strerror(error);
  switch (error) {
    case EPERM:
    case EACCES: throw SetupError(problem, why, "run as root or with CAP_NET_RAW");
    case EAFNOSUPPORT: throw SetupError(problem, "this kernel has no AF_XDP", "use udp://, or a kernel with CONFIG_XDP_SOCKETS");
    case ENOBUFS:
    case ENOMEM: {
      rlimit limit{};
      ::getrlimit(RLIMIT_MEMLOCK, &limit);
      throw SetupError(problem,
                       why + ", " + std::to_string(frames_.size()) + " bytes have to be locked, the memlock limit is " +
                           std::to_string(limit.rlim_cur),
                       "raise it (ulimit -l unlimited, or CAP_IPC_LOCK), or lower frame_count");
    }
    case EBUSY: throw SetupError(problem, "another AF_XDP socket has it", "end the program that uses it, or choose other queues");
    case EOPNOTSUPP:
      if (config_.zero_copy == XdpZeroCopy::required) {
        throw SetupError(problem,
                         "its driver has no zero copy" + std::string(config_.several_frames ? " for packets in several frames" : ""),
                         "use zero_copy: automatic, which copies where it must");
      }
      break;
    case EINVAL:
      if (config_.several_frames) {
        throw SetupError(problem, why + ": there may be no such queue, or no packets in several frames before Linux 6.6",
                         "see `ethtool -l " + config_.interface + "`, or lower packet_bytes_max to 3790");
      }
      throw SetupError(problem, why + ": there may be no such queue", "see `ethtool -l " + config_.interface + "`");
    default: break;
  }
  throw SetupError(problem, why, "see `ip -d link show " + config_.interface + "`, or use udp://");
}

}  // namespace nanet::link
