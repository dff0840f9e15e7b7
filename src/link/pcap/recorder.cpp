// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/recorder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <mutex>

#include "link/pcap/file_layout.hpp"
#include "link/tally.hpp"
#include "link/udp_frame.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

// All numbers of the file little-endian here.
constexpr std::uint32_t kLinkTypeRaw = 101;
constexpr std::uint32_t kSnapBytes = 262'144;
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

void put_le(std::byte* out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<std::byte>(value >> (8 * i));
  }
}

std::uint32_t get_le(const std::byte* in) {
  std::uint32_t value = 0;
  for (std::uint32_t i = 0; i < 4; ++i) value |= std::to_integer<std::uint32_t>(in[i]) << (8 * i);
  return value;
}

}  // namespace

struct Recorder::File {
  explicit File(const RecorderConfig& c);
  ~File();
  void record(const IpUdpFlow& flow, const std::byte* payload, std::size_t bytes, const timespec& time);
  void write_out();
  void give_up(std::size_t written, int error);
  std::vector<std::string> notes() const;

  RecorderConfig config;
  int fd;
  Tally recorded, unrecorded;  // as in stats, for those who must not wait for the mutex
  mutable std::mutex mutex;    // guards all below
  std::vector<std::byte> buffer;
  std::size_t buffered = 0;
  std::uint64_t file_bytes = 0;  // written, whole records only
  RecorderStats stats;
  std::uint16_t next_id = 0;
  bool stopped = false;
  std::string note;  // why
};

Recorder::File::File(const RecorderConfig& c)
    : config(c), fd(::open(c.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (fd < 0) {
    throw SetupError("cannot record to '" + c.path + "'", std::strerror(errno),
                     "choose a file in a directory that exists and may be written");
  }
  if (c.max_bytes < kPcapFileHeaderBytes) {
    ::close(fd);
    throw SetupError("cannot record " + std::to_string(c.max_bytes) + " bytes", "the file's header alone takes 24",
                     "raise max_bytes");
  }
  buffer.resize(kBufferBytes);
  put_le(&buffer[0], kPcapMagicNs, 4);
  put_le(&buffer[4], 2, 2);  // version 2.4
  put_le(&buffer[6], 4, 2);
  put_le(&buffer[8], 0, 8);
  put_le(&buffer[16], kSnapBytes, 4);
  put_le(&buffer[20], kLinkTypeRaw, 4);
  buffered = kPcapFileHeaderBytes;
  stats.bytes_recorded = kPcapFileHeaderBytes;
}

Recorder::File::~File() {
  write_out();
  ::close(fd);
}

void Recorder::File::record(const IpUdpFlow& flow, const std::byte* payload, std::size_t bytes, const timespec& time) {
  const bool is_ipv6 = flow.to_address.is_ipv6() || flow.from_address.is_ipv6();
  const std::size_t header_bytes = is_ipv6 ? kIpv6UdpHeaderBytes : kIpUdpHeaderBytes;
  const std::size_t record_bytes = kPcapRecordHeaderBytes + header_bytes + bytes;
  if (!stopped && stats.bytes_recorded + record_bytes > config.max_bytes) {
    stopped = true;
    note = "the recording " + config.path +
           " stopped before the end (a packet more would be over bytes_max = " + std::to_string(config.max_bytes) +
           ") raise bytes_max; unrecorded counts the packets that are not in it";
  }
  if (!stopped && buffered + record_bytes > buffer.size()) write_out();
  if (stopped || bytes > kUdpPayloadMax) {
    unrecorded.set(++stats.packets_unrecorded);
    return;
  }
  std::byte* out = &buffer[buffered];
  put_le(out, static_cast<std::uint64_t>(time.tv_sec), 4);
  put_le(out + 4, static_cast<std::uint64_t>(time.tv_nsec), 4);
  put_le(out + 8, header_bytes + bytes, 4);
  put_le(out + 12, header_bytes + bytes, 4);
  if (is_ipv6) {
    write_ipv6_udp_headers(out + kPcapRecordHeaderBytes, flow, {payload, bytes});
  } else {
    write_ipv4_udp_headers(out + kPcapRecordHeaderBytes,
                           {flow.from_address.ipv4(), flow.to_address.ipv4(), flow.from_port, flow.to_port}, {payload, bytes},
                           next_id++);
  }
  if (bytes != 0) {
    std::memcpy(out + kPcapRecordHeaderBytes + header_bytes, payload, bytes);
  }
  buffered += record_bytes;
  recorded.set(++stats.packets_recorded);
  stats.bytes_recorded += record_bytes;
}

void Recorder::File::write_out() {
  std::size_t done = 0;
  while (done < buffered) {
    const ssize_t written = ::write(fd, &buffer[done], buffered - done);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      give_up(done, errno);
      return;
    }
    done += static_cast<std::size_t>(written);
  }
  file_bytes += buffered;
  buffered = 0;
}

// So many bytes of the buffer are in the file. It ends after the last whole record of them, and the books say no more than is there.
void Recorder::File::give_up(std::size_t written, int error) {
  std::size_t whole = 0;
  std::uint64_t lost = 0;
  for (std::size_t at = file_bytes == 0 ? kPcapFileHeaderBytes : 0; at <= buffered;) {
    if (at <= written) whole = at;
    if (at == buffered) break;
    const std::size_t next = at + kPcapRecordHeaderBytes + get_le(&buffer[at + 8]);
    lost += next > written ? 1 : 0;
    at = next;
  }
  stopped = true;
  file_bytes += whole;
  const bool is_cut = ::ftruncate(fd, static_cast<off_t>(file_bytes)) != 0 && whole != written;  // into a pipe
  note = "the recording " + config.path + " stopped before the end (" + std::strerror(error) +
         (is_cut ? ", and its last packet is cut" : "") +
         ") record to a disk with room; unrecorded counts the packets that are not in it";
  stats.packets_recorded -= lost;
  stats.packets_unrecorded += lost;
  stats.bytes_recorded = file_bytes;
  recorded.set(stats.packets_recorded);
  unrecorded.set(stats.packets_unrecorded);
  buffered = 0;
}

std::vector<std::string> Recorder::File::notes() const {
  const std::lock_guard lock(mutex);
  return stopped ? std::vector<std::string>{note} : std::vector<std::string>{};
}

namespace {

std::unique_ptr<Link> copied_for_recorder(std::unique_ptr<Link> inner) {
  if (!inner->payload_memory().in_place()) return inner;
  throw SetupError("cannot record what comes from " + inner->path(),
                   "its payloads stay where the NIC wrote them, and are read by others only",
                   "set payloads: copied, or remove record");
}

}  // namespace

Recorder::Recorder(std::unique_ptr<Link> inner, const RecorderConfig& config)
    : inner_(copied_for_recorder(std::move(inner))), file_(std::make_unique<File>(config)) {}

Recorder::~Recorder() = default;

std::size_t Recorder::min_room_bytes() const { return inner_->min_room_bytes(); }

RxBatch Recorder::receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) {
  const RxBatch batch = inner_->receive(room, packets, now_ns);
  if (batch.packet_count == 0) {
    return batch;
  }
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  const Endpoint& local = file_->config.local;
  const std::span<const IpAddress> ipv6_peers = inner_->peers();
  const std::lock_guard lock(file_->mutex);
  for (const RxPacket& packet : packets.first(batch.packet_count)) {
    const IpAddress peer = ipv6_peers.empty() ? IpAddress(packet.peer_address) : ipv6_peers[packet.peer_address];
    file_->record({peer, local.address, packet.peer_port, local.port}, room.data() + packet.offset, packet.bytes, time);
  }
  return batch;
}

void Recorder::send(std::span<const TxPacket> packets, std::uint64_t now_ns) {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  inner_->send(packets, now_ns);
  const Endpoint& local = file_->config.local;
  const std::lock_guard lock(file_->mutex);
  for (const TxPacket& packet : packets) {
    const auto& table = file_->config.destinations;
    const Endpoint destination = packet.destination < table.size() ? table[packet.destination] : Endpoint{};
    file_->record({local.address, destination.address, local.port, destination.port}, packet.data, packet.bytes, time);
  }
}

void Recorder::wait(std::uint64_t timeout_ns) { inner_->wait(timeout_ns); }

LinkStats Recorder::stats() const {
  LinkStats stats = inner_->stats();
  stats.recorded = file_->recorded.value();
  stats.unrecorded = file_->unrecorded.value();
  return stats;
}

std::optional<NicTimes> Recorder::nic_times() const { return inner_->nic_times(); }
std::vector<NicCounts> Recorder::nic_counts() const { return inner_->nic_counts(); }

bool Recorder::finished() const { return inner_->finished(); }

Endpoint Recorder::local() const { return inner_->local(); }

std::string Recorder::path() const { return inner_->path() + ", recorded"; }

std::vector<std::string> Recorder::notes() const {
  std::vector<std::string> notes = inner_->notes();
  for (std::string& note : file_->notes()) notes.push_back(std::move(note));
  return notes;
}

void Recorder::flush() {
  const std::lock_guard lock(file_->mutex);
  file_->write_out();
}

RecorderStats Recorder::recorder_stats() const {
  const std::lock_guard lock(file_->mutex);
  return file_->stats;
}

}  // namespace nanet::link
