// SPDX-License-Identifier: Apache-2.0
#include "link/xdp/steering.hpp"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "link/xdp/steer.h"
#include "link/xdp/steer_object.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

constexpr std::size_t kMapBytes = 4096;  // a map of one number takes one page

// What libbpf would print, in the thread that sets a link up.
thread_local std::string* said = nullptr;

int keep_what_is_said(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG || said == nullptr || said->size() > 4096) return 0;
  char line[512];
  std::vsnprintf(line, sizeof line, format, arguments);
  *said += line;
  return 0;
}

class Listening {
 public:
  explicit Listening(std::string& text) : before_(libbpf_set_print(&keep_what_is_said)) { said = &text; }
  ~Listening() {
    said = nullptr;
    libbpf_set_print(before_);
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  libbpf_print_fn_t before_;
};

// Of this process: an interface has one program.
struct Shared {
  static inline std::mutex mutex;
  static inline std::map<int, std::weak_ptr<Steering>> by_interface;
};

std::string kernel_release() {
  utsname names{};
  return ::uname(&names) == 0 ? names.release : "unknown";
}

std::string program_name(std::uint32_t id) {
  const int fd = bpf_prog_get_fd_by_id(id);
  if (fd < 0) return {};
  bpf_prog_info info{};
  std::uint32_t bytes = sizeof info;
  const int result = bpf_obj_get_info_by_fd(fd, &info, &bytes);
  ::close(fd);
  return result == 0 && info.name[0] != 0 ? std::string(" '") + info.name + "'" : std::string();
}

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t last = text.rfind('\n');
  return last == std::string::npos ? text : text.substr(last + 1);
}

}  // namespace

Steering::Steering(const Config& config, const Interface& interface, std::vector<std::string>& notes) : config_(config) {
  refuse_if_taken(interface);
  try {
    if (config.attach != XdpAttach::generic) {
      if (!config.multi_buffer && try_attach(Program::plain, Mode::driver, interface)) return;
      if (!load_failed_ && try_attach(Program::frags, Mode::driver, interface)) return;
      if (config.attach == XdpAttach::driver || error_ == EPERM) fail(interface);
      const std::string why = error_ == ERANGE || error_ == EINVAL
                                  ? "the MTU of " + std::to_string(interface.mtu) + " is too large for it, or it knows no XDP"
                                  : std::string("it says: ") + std::strerror(error_);
      notes.push_back("link " + config.link_name + ": the XDP program runs behind the driver of " + interface.name +
                      ", which is slower (the driver does not take it: " + why +
                      ") lower the MTU if packets allow, or use another NIC");
    }
    if (!try_attach(Program::plain, Mode::generic, interface)) fail(interface);
  } catch (...) {
    close();
    throw;
  }
}

Steering::~Steering() { close(); }

std::shared_ptr<Steering> Steering::share(const Config& config, const Interface& interface, std::vector<std::string>& notes) {
  auto steering = std::make_shared<Steering>(config, interface, notes);
  const std::lock_guard lock(Shared::mutex);
  Shared::by_interface[interface.index] = steering;
  return steering;
}

std::shared_ptr<Steering> Steering::join(const Config& config, const Interface& interface) {
  const std::lock_guard lock(Shared::mutex);
  std::shared_ptr<Steering> steering = Shared::by_interface[interface.index].lock();
  if (!steering || steering->config_.address != config.address || steering->config_.port != config.port) {
    throw SetupError("link " + config.link_name + " cannot be opened", "the first queue of its endpoint is not open in this process",
                     "open the queues in order, and keep the first one open");
  }
  return steering;
}

void Steering::close() {
  if (missed_ != nullptr) ::munmap(const_cast<std::uint64_t*>(std::exchange(missed_, nullptr)), kMapBytes);
  if (link_fd_ >= 0) ::close(std::exchange(link_fd_, -1));  // detaches
  if (object_ != nullptr) bpf_object__close(std::exchange(object_, nullptr));
}

void Steering::add_socket(std::uint32_t queue, int socket_fd) {
  if (bpf_map_update_elem(sockets_fd_, &queue, &socket_fd, BPF_ANY) != 0) {
    throw SetupError("link " + config_.link_name + " cannot steer packets of queue " + std::to_string(queue), std::strerror(errno),
                     "run as root or with CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF");
  }
}

std::uint64_t Steering::count() const { return missed_ == nullptr ? 0 : __atomic_load_n(missed_, __ATOMIC_RELAXED); }

void Steering::refuse_if_taken(const Interface& interface) const {
  bpf_xdp_query_opts query{};
  query.sz = sizeof query;
  if (bpf_xdp_query(interface.index, 0, &query) != 0) return;  // attaching will say why
  const std::uint32_t id = std::max({query.prog_id, query.drv_prog_id, query.skb_prog_id, query.hw_prog_id});
  if (id == 0) return;
  throw SetupError("link " + config_.link_name + " cannot have interface " + interface.name,
                   "the XDP program" + program_name(id) + " with id " + std::to_string(id) + " is attached to it",
                   "end the program that uses it, or detach it: ip link set dev " + interface.name + " xdp off");
}

// True: attached. False: error_ and error_text_ say why not.
bool Steering::try_attach(Program program, Mode mode, const Interface& interface) {
  close();
  mode_ = mode;
  error_ = load(program);
  load_failed_ = error_ != 0 && program == Program::plain;
  if (error_ != 0) return false;
  bpf_program* loaded = bpf_object__find_program_by_name(object_, program == Program::frags ? "steer_frags" : "steer");
  bpf_link_create_opts options{};
  options.sz = sizeof options;
  options.flags = mode == Mode::driver ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
  link_fd_ = bpf_link_create(bpf_program__fd(loaded), interface.index, BPF_XDP, &options);
  error_ = link_fd_ < 0 ? -link_fd_ : 0;
  if (error_ == EBUSY || error_ == EEXIST) {
    refuse_if_taken(interface);
  }
  return error_ == 0;
}

// 0 or errno.
int Steering::load(Program program) {
  error_text_.clear();
  const Listening listening(error_text_);
  bpf_object_open_opts options{};
  options.sz = sizeof options;
  options.object_name = "nanet_steer";
  object_ = bpf_object__open_mem(kSteerObject.data(), kSteerObject.size(), &options);
  if (object_ == nullptr) return errno;
  bpf_program__set_autoload(bpf_object__find_program_by_name(object_, "steer"), program == Program::plain);
  bpf_program__set_autoload(bpf_object__find_program_by_name(object_, "steer_frags"), program == Program::frags);
  bpf_map* sockets = bpf_object__find_map_by_name(object_, "sockets");
  bpf_map* constants = nullptr;
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object_) {
    if (std::strstr(bpf_map__name(map), ".rodata") != nullptr) constants = map;
  }
  SteerConfig steer{.address = {htonl(config_.address.ipv4())}, .port = htons(config_.port), .is_ipv6 = config_.address.is_ipv6()};
  if (steer.is_ipv6 != 0) std::memcpy(steer.address, config_.address.bytes().data(), sizeof steer.address);
  if (int error = bpf_map__set_max_entries(sockets, config_.queue_limit)) return -error;
  if (int error = bpf_map__set_initial_value(constants, &steer, sizeof steer)) return -error;
  if (int error = bpf_object__load(object_)) return -error;
  sockets_fd_ = bpf_map__fd(sockets);
  void* mapping = ::mmap(nullptr, kMapBytes, PROT_READ, MAP_SHARED, bpf_map__fd(bpf_object__find_map_by_name(object_, "missed")), 0);
  if (mapping == MAP_FAILED) return errno;
  missed_ = static_cast<const std::uint64_t*>(mapping);
  return 0;
}

void Steering::fail(const Interface& interface) const {
  const std::string problem = "link " + config_.link_name + " cannot attach its XDP program to " + interface.name;
  const std::string text = error_text_.empty() ? std::string() : ": " + one_line(error_text_);
  const std::string why = std::strerror(error_) + text + ", Linux " + kernel_release();
  if (error_ == EPERM || error_ == EACCES) {
    throw SetupError(problem, why, "run as root or with CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_PERFMON");
  }
  if (config_.multi_buffer && config_.attach == XdpAttach::driver) {
    throw SetupError(
        problem, why,
        "packets in several buffers need Linux 6.6 and a driver that has them: use attach: generic, or smaller packets");
  }
  if (config_.attach == XdpAttach::driver) {
    throw SetupError(
        problem, why,
        "the driver may have no XDP, or none at an MTU of " + std::to_string(interface.mtu) + ": use attach: automatic");
  }
  throw SetupError(problem, why, "it needs Linux 5.9 or newer; use udp:// on this machine");
}

}  // namespace nanet::link
