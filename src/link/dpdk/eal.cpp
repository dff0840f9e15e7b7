// SPDX-License-Identifier: Apache-2.0
#include "eal.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>

#include "nanet/setup_error.hpp"

namespace nanet::link::dpdk {
namespace {

// What DPDK logs at level error. Kept, not printed: it explains why a set-up step failed. A driver may log while packets flow, so nothing is allocated.
struct Messages {
  std::mutex mutex;
  std::array<char, 2048> text;
  std::size_t bytes = 0;

  void add(const char* data, std::size_t count) {
    const std::lock_guard lock(mutex);
    count = std::min(count, text.size() - bytes);
    std::memcpy(text.data() + bytes, data, count);
    bytes += count;
  }
};

Messages& messages() {
  static auto* const kept = new Messages;  // drivers log until the process ends
  return *kept;
}

ssize_t keep_message(void* /*cookie*/, const char* data, std::size_t bytes) {
  messages().add(data, bytes);
  return static_cast<ssize_t>(bytes);
}

void catch_messages() {
  cookie_io_functions_t functions{};
  functions.write = keep_message;
  if (std::FILE* stream = fopencookie(nullptr, "w", functions)) {
    std::setvbuf(stream, nullptr, _IONBF, 0);
    rte_openlog_stream(stream);
  }
}

// "0@(2,3)": DPDK's first core is a number without meaning here, and may run wherever the calling thread may.
std::string core_argument() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  std::string text = "0@(";
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_SET(0, &cores);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores)) text.append(std::to_string(core)).append(1, ',');
  }
  text.back() = ')';
  return text;
}

std::vector<std::string> command_line(const EalArguments& arguments) {
  std::vector<std::string> line{
      "nanet",          "--lcores",      core_argument(), "-m",          std::to_string(arguments.memory_mib),
      "--no-telemetry", "--file-prefix", "nanet",         "--log-level", "error"};
  // Nothing is left on a file system, and no second process can take part.
  line.emplace_back(arguments.huge_pages ? "--in-memory" : "--no-shconf");
  if (!arguments.huge_pages) line.emplace_back("--no-huge");
  if (arguments.pci_device.empty()) {
    line.emplace_back("--no-pci");
  } else {  // only this one, else a driver would take every NIC that it knows
    line.insert(line.end(), {"-a", arguments.pci_device});
  }
  line.insert(line.end(), arguments.more.begin(), arguments.more.end());
  return line;
}

// In a thread of its own, because DPDK ties the thread that starts it to a core, and that one is the caller's to choose.
int start_elsewhere(std::vector<std::string> line) {
  int error = 0;
  std::thread([&] {
    std::vector<char*> pointers;
    for (std::string& argument : line) pointers.push_back(argument.data());
    const int count = static_cast<int>(pointers.size());
    pointers.push_back(nullptr);
    error = rte_eal_init(count, pointers.data()) < 0 ? rte_errno : 0;
  }).join();
  return error;
}

std::string start_advice(int error, const EalArguments& arguments) {
  if ((error == EACCES || error == EPERM) && ::geteuid() != 0) return "run as root";
  if (arguments.huge_pages) return "set huge_pages: false, or give the machine huge pages: sysctl -w vm.nr_hugepages=512";
  return "set a smaller memory_mib than " + std::to_string(arguments.memory_mib) + ", or look at eal_arguments";
}

struct Registration {
  bool tried = false;
  bool done = false;
  ~Registration() {
    if (done) rte_thread_unregister();
  }
};

}  // namespace

Eal& Eal::instance() {
  static auto* const eal = new Eal;  // never destroyed: links in static objects may outlive any order of destruction
  return *eal;
}

void Eal::start(const EalArguments& arguments, const std::string& link_name) {
  const std::lock_guard lock(control_);
  if (started_) {
    check_same(arguments, link_name);
    return;
  }
  if (!failure_.empty()) {
    throw SetupError("link " + link_name + " cannot start DPDK", "it failed before: " + failure_,
                     "mend that and start the program again: DPDK can be started once a process");
  }
  catch_messages();
  forget_messages();
  if (const int error = start_elsewhere(command_line(arguments))) {
    failure_ = first_message(rte_strerror(error));
    throw SetupError("link " + link_name + " cannot start DPDK", failure_, start_advice(error, arguments));
  }
  started_ = true;
  arguments_ = arguments;
}

bool Eal::take_memory(std::size_t bytes) {
  if (taken_bytes_ + bytes > std::size_t{arguments_.memory_mib} << 20) return false;
  taken_bytes_ += bytes;
  return true;
}

void Eal::check_same(const EalArguments& arguments, const std::string& link_name) const {
  const auto refuse = [&](const std::string& what, const std::string& advice) {
    throw SetupError("link " + link_name + " cannot share DPDK with the links opened before it", what, advice);
  };
  if (arguments.huge_pages != arguments_.huge_pages) {
    refuse(std::string("they use ") + (arguments_.huge_pages ? "huge pages" : "no huge pages"),
           "set huge_pages alike for all links");
  }
  if (arguments.memory_mib > arguments_.memory_mib) {
    refuse("DPDK was started with memory_mib = " + std::to_string(arguments_.memory_mib),
           "set memory_mib = " + std::to_string(arguments.memory_mib) + " or more for the first link");
  }
  if (!arguments.more.empty() && arguments.more != arguments_.more) {
    refuse("DPDK was started with other eal_arguments", "set them alike for all links, or for the first one only");
  }
  if (!arguments.pci_device.empty() && arguments_.pci_device.empty()) {
    refuse("they need no PCI device, so DPDK was started without PCI",
           "put the link with the device " + arguments.pci_device + " first");
  }
}

std::string first_message(const std::string& otherwise) {
  const std::lock_guard lock(messages().mutex);
  std::string_view text(messages().text.data(), messages().bytes);
  text = text.substr(0, text.find('\n'));
  for (const std::string_view begin : {"EAL: ", "ETHDEV: ", "MBUF: "}) {
    if (text.starts_with(begin)) text.remove_prefix(begin.size());
  }
  if (const std::size_t name_end = text.find("(): "); name_end != text.npos && text.find(' ') > name_end) {
    text.remove_prefix(name_end + 4);  // the driver's function
  }
  return text.empty() ? otherwise : "DPDK says: " + std::string(text);
}

void forget_messages() {
  const std::lock_guard lock(messages().mutex);
  messages().bytes = 0;
}

void register_this_thread() {
  thread_local Registration registration;
  if (registration.tried) return;
  registration.tried = true;
  // A refusal (more than 128 threads) costs speed only: pools without a cache.
  registration.done = rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0;
}

}  // namespace nanet::link::dpdk
