// SPDX-License-Identifier: Apache-2.0
// Which functions of CUDA this process calls, counted by name, as CUPTI sees them; and how often it allocates.
//
// Functions of the runtime and of the driver are counted both, also those that the one calls of the other. CUPTI is loaded when it is asked for:
// it comes with the CUDA toolkit (extras/CUPTI), and a program that is traced is slower.
#pragma once

#include <cupti.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::bench {

class CallTrace {
 public:
  // Throws SetupError where there is no CUPTI. One at a time.
  CallTrace() : library_(open()) {
    check(function<decltype(cuptiSubscribe)>("cuptiSubscribe")(&subscriber_, &CallTrace::on_call, this), "cuptiSubscribe");
    const auto enable = function<decltype(cuptiEnableDomain)>("cuptiEnableDomain");
    check(enable(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API), "cuptiEnableDomain");
    check(enable(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API), "cuptiEnableDomain");
  }
  ~CallTrace() { function<decltype(cuptiUnsubscribe)>("cuptiUnsubscribe")(subscriber_); }
  CallTrace(const CallTrace&) = delete;
  CallTrace& operator=(const CallTrace&) = delete;

  // Calls are counted between these two.
  void begin() {
    for (auto& domain : counts_)
      for (auto& count : domain) count.store(0, std::memory_order_relaxed);
    counting_.store(true, std::memory_order_release);
  }
  void end() { counting_.store(false, std::memory_order_release); }

  // Those of the last span, by name.
  std::map<std::string, std::uint64_t> calls() const {
    std::map<std::string, std::uint64_t> found;
    for (std::size_t domain = 0; domain < kDomains; ++domain) {
      for (std::size_t id = 0; id < kFunctions; ++id) {
        if (const std::uint64_t count = counts_[domain][id].load(std::memory_order_relaxed)) found[name(domain, id)] += count;
      }
    }
    return found;
  }

 private:
  static constexpr std::size_t kDomains = 2;  // runtime, driver
  static constexpr std::size_t kFunctions = 2048;

  static void* open() {
    for (const char* name : {"libcupti.so.13", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", "libcupti.so"}) {
      if (void* library = dlopen(name, RTLD_NOW)) return library;
    }
    throw SetupError("no trace of CUDA's functions", dlerror(), "install CUPTI, or set LD_LIBRARY_PATH to its folder");
  }

  template <typename Function>
  Function* function(const char* name) const {
    auto* found = reinterpret_cast<Function*>(dlsym(library_, name));
    if (found == nullptr) throw SetupError("CUPTI cannot be used", dlerror(), "use that of CUDA 13");
    return found;
  }

  static void check(CUptiResult result, const char* what) {
    if (result != CUPTI_SUCCESS)
      throw SetupError(std::string(what) + " failed", "CUPTI's error " + std::to_string(result),
                       "end other programs that trace this GPU");
  }

  static void CUPTIAPI on_call(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
    auto* trace = static_cast<CallTrace*>(self);
    if (!trace->counting_.load(std::memory_order_relaxed) || id >= kFunctions) return;
    if (static_cast<const CUpti_CallbackData*>(data)->callbackSite != CUPTI_API_ENTER) return;
    trace->counts_[domain == CUPTI_CB_DOMAIN_DRIVER_API ? 1 : 0][id].fetch_add(1, std::memory_order_relaxed);
  }

  std::string name(std::size_t domain, std::size_t id) const {
    const char* text = nullptr;
    const auto of = domain == 1 ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
    const auto result = function<decltype(cuptiGetCallbackName)>("cuptiGetCallbackName")(of, static_cast<std::uint32_t>(id), &text);
    return result == CUPTI_SUCCESS && text != nullptr ? text : "function " + std::to_string(id);
  }

  void* library_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::atomic<bool> counting_{false};
  std::array<std::array<std::atomic<std::uint64_t>, kFunctions>, kDomains> counts_{};
};

}  // namespace nanet::bench
