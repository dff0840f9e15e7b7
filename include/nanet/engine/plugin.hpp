// SPDX-License-Identifier: Apache-2.0
// A plug-in is a shared library with protocols, processors and links that a configuration can name (`plugins: [./libmine.so]`). The one source
// file of it that includes this header ends with
//
//   NANET_PLUGIN([](nanet::engine::Kinds& kinds) { kinds.add(kCamera); kinds.add(ProcessorKind{.name = "bright", .make = make_bright}); })
//
// It is built against an installed nanet (CMake: find_package(nanet), nanet_plugin(mine mine.cpp)), and must be the same nanet that loads it:
// C++ objects cross the border. What both were built with is compared before anything in the plug-in is called.
//
// A plug-in is linked to nanet's static libraries and exports no symbol but nanet_plugin, so it shares no variable with its loader. Exceptions may
// leave what set-up calls (the function above, make, open, Processor's functions), those that are no SetupError are reported as one. What threads
// call while data moves must not throw. It stays loaded until the process ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nanet/base/build_info.hpp"
#include "nanet/contract.hpp"
#include "nanet/engine/kinds.hpp"
#include "nanet/engine/processor.hpp"
#include "nanet/flow/counters.hpp"

namespace nanet::engine {

// The version of Plugin itself, and of what its members mean.
inline constexpr std::uint32_t kPluginAbi = 2;
inline constexpr const char* kPluginSymbol = "nanet_plugin";

// The entry point, a constant. The first member keeps its place and type in every version.
struct Plugin {
  std::uint32_t abi;          // kPluginAbi
  const char* built_with;     // kBuiltWith
  const char* const* nanet;   // the name of the libraries that it is linked to: "nanet 1.2.3"
  void (*add)(Kinds& kinds);  // may throw
};

// The C++ library and the layout of what crosses the border, as text. Made when the plug-in is compiled, and again when nanet is.
class BuiltWith {
 public:
  constexpr BuiltWith() {
#ifdef _GLIBCXX_USE_CXX11_ABI
    add("libstdc++ ABI ");
    add(_GLIBCXX_USE_CXX11_ABI);
#else
    add("another C++ library");
#endif
    add(", sizes");
    for (const std::size_t bytes : {sizeof(void*),
                                    sizeof(std::string),
                                    sizeof(config::Value),
                                    sizeof(Plugin),
                                    sizeof(Kinds),
                                    sizeof(Protocol),
                                    sizeof(ProcessorKind),
                                    sizeof(ProcessorSettings),
                                    sizeof(LinkKind),
                                    sizeof(LinkParts),
                                    sizeof(LinkConfig),
                                    sizeof(EngineConfig),
                                    sizeof(ProcessorNeeds),
                                    sizeof(LaneParts),
                                    sizeof(EventBuilder),
                                    sizeof(ReceiverConfig),
                                    sizeof(ReceiverParts),
                                    sizeof(Completion),
                                    sizeof(flow::Clop),
                                    sizeof(flow::TxRing),
                                    sizeof(flow::CompletionQueue),
                                    sizeof(flow::Counters),
                                    sizeof(link::RxPacket),
                                    sizeof(link::TxPacket),
                                    sizeof(link::LinkStats)}) {
      add(" ");
      add(bytes);
    }
  }
  constexpr const char* text() const { return text_.data(); }

 private:
  constexpr void add(std::string_view more) {
    for (const char c : more) text_[length_++] = c;  // too long is an error at compile time
  }
  constexpr void add(std::size_t number) {
    if (number >= 10) add(number / 10);
    text_[length_++] = static_cast<char>('0' + number % 10);
  }

  std::array<char, 256> text_{};
  std::size_t length_ = 0;
};
inline constexpr BuiltWith kBuiltWith;

// Adds what the plug-in in a file has. If it throws SetupError it has added nothing. path: as for dlopen(), but one without '/' is a file
// in the working directory.
void add_plugin(Kinds& kinds, const std::string& path);

}  // namespace nanet::engine

#define NANET_PLUGIN(...)                                                                                         \
  extern "C" {                                                                                                    \
  [[gnu::visibility("default")]] extern constinit const nanet::engine::Plugin nanet_plugin;                       \
  constinit const nanet::engine::Plugin nanet_plugin{nanet::engine::kPluginAbi, nanet::engine::kBuiltWith.text(), \
                                                     &nanet::base::kBuildInfo.name, +(__VA_ARGS__)};              \
  }                                                                                                               \
  static_assert(true)
