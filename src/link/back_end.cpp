// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/back_end.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <mutex>

#include "nanet/base/build_info.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

using Entry = const BackEnd* (*)();

// The result of searching for a back-end: it, or why not and what to do.
struct Found {
  const BackEnd* back_end = nullptr;
  std::string why;
  std::string suggestion;
};

std::string file_of(const BackEndPlace& place) { return std::string("libnanet_link_") + place.name + ".so"; }

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

Found load(const BackEndPlace& place) {
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

Found find(const BackEndPlace& place) {
  if (place.linked != nullptr) return {place.linked(), "", ""};
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return load(place);
}

}  // namespace

bool has_back_end(const BackEndPlace& place) {
  if (place.linked != nullptr || ::access((own_folder() + file_of(place)).c_str(), F_OK) == 0) return true;
  return find(place).back_end != nullptr;
}

std::string back_end_problem(const BackEndPlace& place) {
  const Found found = find(place);
  return found.back_end != nullptr ? "" : found.why + "; " + found.suggestion;
}

std::unique_ptr<Link> open_back_end(const BackEndPlace& place, const std::string& name, const void* config) {
  const Found found = find(place);
  if (found.back_end == nullptr) throw SetupError("link " + name + " cannot be opened", found.why, found.suggestion);
  return found.back_end->open(config);
}

}  // namespace nanet::link
