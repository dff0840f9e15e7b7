// SPDX-License-Identifier: Apache-2.0
// Linux: Documentation/networking/timestamping.rst (SIOCSHWTSTAMP, ETHTOOL_GET_TS_INFO), Documentation/driver-api/ptp.rst.
#include "link/udp/nic_clock.hpp"

#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>

#include "link/socket.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

constexpr unsigned kReadings = 5;

std::uint64_t to_ns(const ptp_clock_time& time) { return static_cast<std::uint64_t>(time.sec) * 1'000'000'000u + time.nsec; }

void take_if_better(std::optional<ClockReading>& best, const ptp_clock_time& before, const ptp_clock_time& nic,
                    const ptp_clock_time& after) {
  const std::uint64_t begin_ns = to_ns(before);
  const std::uint64_t end_ns = to_ns(after);
  if (end_ns < begin_ns) return;  // the clock was set back in between
  const std::uint64_t error_ns = (end_ns - begin_ns + 1) / 2;
  if (!best || error_ns < best->error_ns) best = {to_ns(nic), begin_ns + (end_ns - begin_ns) / 2, error_ns};
}

[[noreturn]] void refuse(const UdpConfig& config, const std::string& why, const std::string& suggestion) {
  throw SetupError("link " + config.name + " cannot have stamps by the NIC", why, suggestion);
}

std::string interface_of(const UdpConfig& config) {
  if (!config.interface.empty()) return config.interface;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) == 0) {
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, &::freeifaddrs);
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      const int family = entry->ifa_addr != nullptr ? entry->ifa_addr->sa_family : AF_UNSPEC;
      if (family != AF_INET && family != AF_INET6) continue;
      SocketAddress address;
      std::memcpy(address.data(), entry->ifa_addr, family == AF_INET ? sizeof address.v4 : sizeof address.v6);
      if (address.endpoint().address.bytes() != config.listen->address.bytes()) continue;
      const std::string name = entry->ifa_name;
      return name.substr(0, name.find(':'));  // "eth0:1" is a label of eth0
    }
  }
  refuse(config, "no interface has the address of " + to_string(*config.listen) + ", so it is not known which NIC",
         "name one in `interface`");
}

class InterfaceRequest {
 public:
  explicit InterfaceRequest(const std::string& name) {
    std::memcpy(request_.ifr_name, name.data(), std::min(name.size(), sizeof request_.ifr_name - 1));
  }
  // False: errno says why.
  bool ask(unsigned long what, void* data) {
    request_.ifr_data = static_cast<char*>(data);
    return ::ioctl(socket_.fd(), what, &request_) == 0;
  }

 private:
  Socket socket_;
  ifreq request_{};
};

// The number of the NIC's clock.
int check_abilities(const UdpConfig& config, const std::string& interface, InterfaceRequest& request) {
  constexpr std::uint32_t kNeeded = SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
  const std::string who = "interface " + interface;
  ethtool_ts_info able{};
  able.cmd = ETHTOOL_GET_TS_INFO;
  if (!request.ask(SIOCETHTOOL, &able)) refuse(config, who + ": " + std::strerror(errno), "set timestamps: software");
  if ((able.so_timestamping & kNeeded) != kNeeded || able.phc_index < 0) {
    refuse(config, who + " has no clock that stamps packets, see ethtool -T " + interface, "set timestamps: software");
  }
  if ((able.rx_filters & (1u << HWTSTAMP_FILTER_ALL)) == 0) {
    refuse(config, who + " stamps packets of PTP only, see ethtool -T " + interface, "set timestamps: software, or use another NIC");
  }
  return able.phc_index;
}

void have_all_stamped(const UdpConfig& config, const std::string& interface, InterfaceRequest& request,
                      std::vector<std::string>& notes) {
  hwtstamp_config stamping{};
  const bool is_known = request.ask(SIOCGHWTSTAMP, &stamping);
  if (is_known && stamping.rx_filter == HWTSTAMP_FILTER_ALL) return;
  if (!is_known) stamping = {.flags = 0, .tx_type = HWTSTAMP_TX_OFF, .rx_filter = 0};
  stamping.rx_filter = HWTSTAMP_FILTER_ALL;  // what is sent goes on as ptp4l may want it
  if (!request.ask(SIOCSHWTSTAMP, &stamping)) {
    const bool is_forbidden = errno == EPERM || errno == EACCES;
    refuse(config, "interface " + interface + " does not switch them on: " + std::strerror(errno),
           is_forbidden ? "run as root, or run before: hwstamp_ctl -i " + interface + " -r 1" : "set timestamps: software");
  }
  if (stamping.rx_filter != HWTSTAMP_FILTER_ALL) {
    refuse(config, "interface " + interface + " stamps some packets only", "set timestamps: software, or use another NIC");
  }
  notes.push_back("link " + config.name + ": interface " + interface +
                  " stamps every packet from now on (also when this program has ended) hwstamp_ctl -i " + interface +
                  " -r 0 switches it off");
}

}  // namespace

std::optional<ClockReading> best_of(const ptp_sys_offset_extended& readings) {
  std::optional<ClockReading> best;
  for (unsigned i = 0; i < std::min<unsigned>(readings.n_samples, PTP_MAX_SAMPLES); ++i) {
    take_if_better(best, readings.ts[i][0], readings.ts[i][1], readings.ts[i][2]);
  }
  return best;
}

// The system's clock, the NIC's, the system's, the NIC's, and so on.
std::optional<ClockReading> best_of(const ptp_sys_offset& readings) {
  std::optional<ClockReading> best;
  for (unsigned i = 0; i < std::min<unsigned>(readings.n_samples, PTP_MAX_SAMPLES); ++i) {
    take_if_better(best, readings.ts[2 * i], readings.ts[2 * i + 1], readings.ts[2 * i + 2]);
  }
  return best;
}

void NicToRealtime::add(const ClockReading& reading) {
  const auto nic_passed = static_cast<std::int64_t>(reading.nic_ns - last_.nic_ns);
  const auto passed = static_cast<std::int64_t>(reading.realtime_ns - last_.realtime_ns);
  const double gained = nic_passed > 0 ? static_cast<double>(passed - nic_passed) / static_cast<double>(nic_passed) : 0.0;
  constexpr double kGainMost = 1e-3;  // more than that is a clock that was set, not one that runs wrongly
  ns_per_ns_ = has_one_ && std::abs(gained) <= kGainMost ? gained : 0.0;
  last_ = reading;
  has_one_ = true;
}

std::uint64_t NicToRealtime::realtime_ns(std::uint64_t nic_ns) const {
  const auto since = static_cast<std::int64_t>(nic_ns - last_.nic_ns);
  const auto gained = static_cast<std::int64_t>(std::llround(static_cast<double>(since) * ns_per_ns_));
  return last_.realtime_ns + static_cast<std::uint64_t>(since + gained);
}

NicClock::NicClock(const UdpConfig& config, std::vector<std::string>& notes) {
  const std::string interface = interface_of(config);
  InterfaceRequest request(interface);
  const std::string clock = "/dev/ptp" + std::to_string(check_abilities(config, interface, request));
  have_all_stamped(config, interface, request, notes);
  fd_ = ::open(clock.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) {
    refuse(config, "its clock " + clock + " cannot be opened: " + std::strerror(errno),
           "let this user read it (chmod o+r " + clock + "), or run as root");
  }
  const std::optional<ClockReading> reading = read();
  if (!reading) {
    const std::string why = std::strerror(errno);
    ::close(fd_);
    refuse(config, "its clock " + clock + " cannot be compared with the system's: " + why, "set timestamps: software");
  }
  notes.push_back("link " + config.name + ": stamps of the NIC are off by " + std::to_string(reading->error_ns) +
                  " ns at most against this machine's clock (half the time that a reading of " + clock +
                  " takes) phc2sys does not make that smaller");
}

NicClock::~NicClock() { ::close(fd_); }

std::optional<ClockReading> NicClock::read() const {
  ptp_sys_offset_extended close{};
  close.n_samples = kReadings;
  if (::ioctl(fd_, PTP_SYS_OFFSET_EXTENDED, &close) == 0) return best_of(close);
  ptp_sys_offset wide{};  // older drivers: the kernel reads the system's clock around the driver's whole call
  wide.n_samples = kReadings;
  if (::ioctl(fd_, PTP_SYS_OFFSET, &wide) == 0) return best_of(wide);
  return std::nullopt;
}

}  // namespace nanet::link
