// SPDX-License-Identifier: Apache-2.0
// An experiment: is it worth receiving payloads into the place that they probably have? Units of 1 MiB in packets of 8 KiB over a UDP socket on
// loopback, CPU time of the receiving thread for each packet.
//
//   bench_scatter [--seconds S] [--header BYTES]
//
// room: as the assembler does it: messages of the kernel into a room that stays in the second-level cache, from there each payload to its place.
// scatter: header and payload of each packet into a piece of the vector of their own, the payload at its expected place; the header says afterwards
// whether the guess was right, and if not, the payload is copied from there (counted as wrong). Both with super-packets (gro), which the kernel puts
// together, and without (single). The sender waits for the receiver, so that nothing is lost; `mixed` exchanges neighbouring packets in one of 16 units.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace {

constexpr std::uint32_t kPayload = 8192, kPackets = 128, kUnit = kPayload * kPackets, kBuffers = 64, kAhead = 512;
constexpr std::uint32_t kSuper = 65536, kHeaderMax = 128, kMessages = 32;

struct Header {
  std::uint64_t unit;
  std::uint32_t packet;
};

enum class Way { room_gro, scatter_gro, room_single, scatter_single };
constexpr const char* kNames[] = {"room, gro", "scatter, gro", "room, single", "scatter, single"};

int socket_on(sockaddr_in& address) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  int bytes = 64 << 20;
  if (::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) std::abort();
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return fd;
}

double thread_cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class Sender {
 public:
  Sender(const sockaddr_in& to, std::uint32_t header_bytes, bool mixed) : header_bytes_(header_bytes), mixed_(mixed) {
    fd_ = ::socket(AF_INET, SOCK_DGRAM, 0);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) std::abort();
    const int segment = static_cast<int>(header_bytes + kPayload);
    ::setsockopt(fd_, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment);
    thread_ = std::thread([this] { run(); });
  }
  ~Sender() {
    stop_ = true;
    thread_.join();
    ::close(fd_);
  }
  std::atomic<std::uint64_t> received{0};

 private:
  void run() {
    const std::uint32_t packet_bytes = header_bytes_ + kPayload;
    const std::uint32_t at_once = 65507 / packet_bytes;
    std::vector<std::byte> bytes(std::size_t{kPackets} * packet_bytes);
    std::uint64_t sent = 0;
    for (std::uint64_t unit = 0; !stop_; ++unit) {
      for (std::uint32_t k = 0; k < kPackets; ++k) {
        const Header header{unit, mixed_ && unit % 16 == 0 ? k ^ 1 : k};
        std::memcpy(bytes.data() + std::size_t{k} * packet_bytes, &header, sizeof header);
      }
      for (std::uint32_t k = 0; k < kPackets && !stop_;) {
        if (sent - received.load(std::memory_order_acquire) > kAhead) {
          std::this_thread::yield();
          continue;
        }
        const std::uint32_t count = std::min(at_once, kPackets - k);
        if (::send(fd_, bytes.data() + std::size_t{k} * packet_bytes, std::size_t{count} * packet_bytes, 0) < 0) continue;
        k += count;
        sent += count;
      }
    }
  }

  const std::uint32_t header_bytes_;
  const bool mixed_;
  int fd_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct Receiver {
  int fd;
  std::uint32_t header_bytes;
  std::vector<std::byte> buffers = std::vector<std::byte>(std::size_t{kBuffers} * kUnit);
  std::vector<std::byte> room = std::vector<std::byte>(4 * kSuper);
  std::vector<std::byte> headers = std::vector<std::byte>(std::size_t{64} * kHeaderMax);
  std::uint64_t next = 0;  // number of the packet that is expected
  std::uint64_t packets = 0, wrong = 0, last_unit = 0, gaps = 0;

  // A few buffers are in use, as with a consumer that keeps pace: the newest units have those that came back last.
  std::byte* place_of(std::uint64_t number) {
    return buffers.data() + std::size_t{number / kPackets % 4} * kUnit + std::size_t{number % kPackets} * kPayload;
  }
  std::uint64_t number_of(const std::byte* header) {
    Header read;
    std::memcpy(&read, header, sizeof read);
    gaps += read.unit > last_unit + 1 ? 1 : 0;
    last_unit = std::max(last_unit, read.unit);
    return read.unit * kPackets + read.packet;
  }

  void from_room(const std::byte* at, std::uint32_t bytes) {
    const std::uint32_t packet_bytes = header_bytes + kPayload;
    for (; bytes >= packet_bytes; at += packet_bytes, bytes -= packet_bytes) {
      std::memcpy(place_of(number_of(at)), at + header_bytes, kPayload);
      ++packets;
    }
  }

  // What a guess has put into a wrong place goes to a scratch first, since places may be exchanged.
  void checked(const std::byte* header, std::uint64_t guessed, std::vector<std::byte>& scratch, std::vector<std::uint64_t>& numbers) {
    const std::uint64_t number = number_of(header);
    if (number != guessed) {
      ++wrong;
      scratch.insert(scratch.end(), place_of(guessed), place_of(guessed) + kPayload);
      numbers.push_back(number);
    }
    next = number + 1;
    ++packets;
  }

  void mend(std::vector<std::byte>& scratch, std::vector<std::uint64_t>& numbers) {
    for (std::size_t k = 0; k < numbers.size(); ++k) std::memcpy(place_of(numbers[k]), scratch.data() + k * kPayload, kPayload);
    scratch.clear();
    numbers.clear();
  }

  void poll(Way way) {
    static thread_local std::vector<std::byte> scratch;
    static thread_local std::vector<std::uint64_t> numbers;
    if (way == Way::room_gro) {
      for (std::uint32_t k = 0; k < 4; ++k) {
        const ssize_t bytes = ::recv(fd, room.data() + std::size_t{k} * kSuper, kSuper, MSG_DONTWAIT);
        if (bytes <= 0) return;
        from_room(room.data() + std::size_t{k} * kSuper, static_cast<std::uint32_t>(bytes));
      }
    } else if (way == Way::scatter_gro) {
      const std::uint32_t count = kSuper / (header_bytes + kPayload);
      std::array<iovec, 17> pieces;
      for (std::uint32_t k = 0; k < count; ++k) {
        pieces[2 * k] = {headers.data() + std::size_t{k} * kHeaderMax, header_bytes};
        pieces[2 * k + 1] = {place_of(next + k), kPayload};
      }
      pieces[2 * count] = {room.data(), kSuper};
      msghdr message{};
      message.msg_iov = pieces.data();
      message.msg_iovlen = 2 * count + 1;
      const ssize_t bytes = ::recvmsg(fd, &message, MSG_DONTWAIT);
      if (bytes <= 0) return;
      const std::uint64_t first = next;
      const std::uint32_t came = static_cast<std::uint32_t>(bytes) / (header_bytes + kPayload);
      for (std::uint32_t k = 0; k < came; ++k) checked(headers.data() + std::size_t{k} * kHeaderMax, first + k, scratch, numbers);
      mend(scratch, numbers);
    } else {
      std::array<mmsghdr, kMessages> messages{};
      std::array<std::array<iovec, 2>, kMessages> pieces;
      const bool scatters = way == Way::scatter_single;
      const std::uint32_t slots = scatters ? kMessages : 4 * kSuper / (kHeaderMax + kPayload);
      const std::uint32_t count = std::min(slots, kMessages);
      for (std::uint32_t k = 0; k < count; ++k) {
        std::byte* const slot = room.data() + std::size_t{k} * (header_bytes + kPayload);
        pieces[k][0] = {scatters ? headers.data() + std::size_t{k} * kHeaderMax : slot,
                        scatters ? header_bytes : header_bytes + kPayload};
        pieces[k][1] = {place_of(next + k), kPayload};
        messages[k].msg_hdr.msg_iov = pieces[k].data();
        messages[k].msg_hdr.msg_iovlen = scatters ? 2 : 1;
      }
      const int came = ::recvmmsg(fd, messages.data(), count, MSG_DONTWAIT, nullptr);
      const std::uint64_t first = next;
      for (int k = 0; k < came; ++k) {
        const auto i = static_cast<std::uint32_t>(k);
        if (scatters) {
          checked(headers.data() + std::size_t{i} * kHeaderMax, first + i, scratch, numbers);
        } else {
          from_room(room.data() + std::size_t{i} * (header_bytes + kPayload), messages[i].msg_len);
        }
      }
      if (scatters) mend(scratch, numbers);
    }
  }
};

struct Figures {
  double ns_a_packet, wrong_share;
  std::uint64_t gaps;
};

Figures measure(Way way, std::uint32_t header_bytes, bool mixed, double seconds) {
  sockaddr_in address;
  Receiver receiver{.fd = socket_on(address), .header_bytes = header_bytes};
  const int on = 1;
  if (way == Way::room_gro || way == Way::scatter_gro) ::setsockopt(receiver.fd, SOL_UDP, UDP_GRO, &on, sizeof on);
  Sender sender(address, header_bytes, mixed);
  const auto work = [&](double for_s) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(for_s);
    double busy_s = 0;
    const std::uint64_t before = receiver.packets;
    while (std::chrono::steady_clock::now() < end) {
      const std::uint64_t last = receiver.packets;
      const double start_s = thread_cpu_s();
      receiver.poll(way);
      if (receiver.packets != last) busy_s += thread_cpu_s() - start_s;  // turns that found nothing are not counted
      sender.received.store(receiver.packets, std::memory_order_release);
    }
    return 1e9 * busy_s / static_cast<double>(std::max<std::uint64_t>(1, receiver.packets - before));
  };
  work(seconds / 4);
  double best = 1e9;
  for (int repeat = 0; repeat < 5; ++repeat) best = std::min(best, work(seconds / 5));
  const Figures figures{
      best, static_cast<double>(receiver.wrong) / static_cast<double>(std::max<std::uint64_t>(1, receiver.packets)), receiver.gaps};
  ::close(receiver.fd);
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 1;
  std::vector<std::uint32_t> headers{48, 64};  // JUNGFRAU, SPEAD
  for (int k = 1; k + 1 < argc; k += 2) {
    const std::string option = argv[k];
    if (option == "--seconds") seconds = std::atof(argv[k + 1]);
    if (option == "--header") headers = {std::min(kHeaderMax, static_cast<std::uint32_t>(std::atoi(argv[k + 1])))};
  }
  std::printf("%6s  %-6s  %-16s %12s %8s %6s\n", "header", "order", "way", "ns/packet", "wrong", "gaps");
  for (const std::uint32_t header : headers) {
    for (const bool mixed : {false, true}) {
      for (const Way way : {Way::room_gro, Way::scatter_gro, Way::room_single, Way::scatter_single}) {
        const auto [ns, wrong, gaps] = measure(way, header, mixed, seconds);
        std::printf("%6u  %-6s  %-16s %12.0f %7.1f%% %6llu\n", header, mixed ? "mixed" : "ascend", kNames[static_cast<int>(way)],
                    ns, 100 * wrong, static_cast<unsigned long long>(gaps));
        std::fflush(stdout);
      }
    }
  }
  return 0;
}
