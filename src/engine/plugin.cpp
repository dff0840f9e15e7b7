// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/plugin.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

// What a plug-in's code throws reaches others only as a SetupError that names it: `name` cannot do something.
template <class Call>
auto guarded(const std::string& name, const std::string& cannot, Call&& call) -> decltype(call()) {
  const std::string what = name + " " + cannot;
  try {
    return call();
  } catch (const SetupError& error) {
    throw SetupError(name, error);
  } catch (const std::exception& error) {
    throw SetupError(what, "it threw: " + std::string(error.what()), "see what the plug-in's author says of that");
  } catch (...) {
    throw SetupError(what, "it threw what is no std::exception", "ask the plug-in's author");
  }
}

// The same of what makes an object: it must give one.
template <class Make>
auto guarded_make(const std::string& name, const std::string& cannot, Make&& make) -> decltype(make()) {
  auto made = guarded(name, cannot, std::forward<Make>(make));
  if (made == nullptr) throw SetupError(name + " " + cannot, "it gave none", "ask the plug-in's author");
  return made;
}

class GuardedProcessor final : public Processor {
 public:
  GuardedProcessor(std::string name, std::shared_ptr<Processor> inner) : name_(std::move(name)), inner_(std::move(inner)) {}

  void check(const EngineConfig& config) const override {
    guarded(name_, "cannot check the configuration", [&] { inner_->check(config); });
  }
  ProcessorNeeds needs() const override {
    return guarded(name_, "cannot say what it needs", [&] { return inner_->needs(); });
  }
  std::unique_ptr<Consumer> make_consumer(LaneParts parts) override {
    return guarded_make(name_, "cannot make its consumer", [&] { return inner_->make_consumer(std::move(parts)); });
  }

 private:
  const std::string name_;
  const std::shared_ptr<Processor> inner_;
};

ProcessorKind guarded_kind(ProcessorKind kind, const std::string& plugin) {
  if (!kind.make) return kind;  // Kinds::add() refuses it
  const std::string name = "processor " + kind.name + " of plug-in " + plugin;
  kind.make = [name, make = std::move(kind.make)](const ProcessorSettings& settings) -> std::shared_ptr<Processor> {
    return std::make_shared<GuardedProcessor>(name, guarded_make(name, "cannot be made", [&] { return make(settings); }));
  };
  return kind;
}

LinkKind guarded_kind(LinkKind kind, const std::string& plugin) {
  kind.open = [plugin, open = std::move(kind.open)](const LinkConfig& config, LinkParts parts) {
    const std::string name = "link " + config.name + " of plug-in " + plugin;
    return guarded_make(name, "cannot be opened", [&] { return open(config, std::move(parts)); });
  };
  LinkKind plain;  // what is for nanet's own links
  plain.name = std::move(kind.name);
  plain.open = std::move(kind.open);
  plain.sends = kind.sends;
  plain.names_senders = kind.names_senders;
  if (!kind.gpu_bytes) return plain;
  plain.gpu_bytes = [plugin, gpu_bytes = std::move(kind.gpu_bytes)](const LinkConfig& config) {
    return guarded("link " + config.name + " of plug-in " + plugin, "cannot say what memory it needs",
                   [&] { return gpu_bytes(config); });
  };
  return plain;
}

const Plugin& load(const std::string& path, const std::string& plugin) {
  const std::filesystem::path file = std::filesystem::path(path).has_parent_path() ? path : "./" + path;
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) {
    const std::string why = error ? error.message() : std::strerror(ENOENT);
    throw SetupError("plug-in " + plugin + " cannot be read",
                     std::filesystem::absolute(file).lexically_normal().string() + ": " + why, "give the path of a shared library");
  }
  if (::geteuid() == 0 && (status.permissions() & std::filesystem::perms::others_write) != std::filesystem::perms::none) {
    throw SetupError("plug-in " + plugin + " is not loaded as root", "any account may write it", "chmod o-w " + file.string());
  }
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    throw SetupError("plug-in " + plugin + " does not load", ::dlerror(), "build it as a shared library (CMake: nanet_plugin)");
  }
  const auto* const entry = static_cast<const Plugin*>(::dlsym(library, kPluginSymbol));
  if (entry == nullptr) {
    throw SetupError(plugin + " is no plug-in of nanet", std::string("it has no ") + kPluginSymbol,
                     "write NANET_PLUGIN(...) in one of its sources");
  }
  return *entry;
}

// abi comes first: nothing else is known about another version.
void check_built(const Plugin& entry, const std::string& plugin) {
  const std::string what = "plug-in " + plugin + " does not fit this nanet";
  if (entry.abi != kPluginAbi) {
    throw SetupError(what, "its ABI version is " + std::to_string(entry.abi) + ", this is " + std::to_string(kPluginAbi),
                     "build it again, with the nanet that shall load it");
  }
  if (std::strcmp(*entry.nanet, base::kBuildInfo.name) != 0) {
    throw SetupError(what, std::string("it was built with ") + *entry.nanet + ", this is " + base::kBuildInfo.name,
                     "build it again, with the nanet that shall load it");
  }
  if (std::strcmp(entry.built_with, kBuiltWith.text()) != 0) {
    throw SetupError(what, std::string("it has ") + entry.built_with + ", this nanet " + kBuiltWith.text(),
                     "build it again, with the same compiler and options");
  }
}

}  // namespace

void add_plugin(Kinds& kinds, const std::string& path) {
  const std::string plugin = std::filesystem::path(path).filename().string();
  const Plugin& entry = load(path, plugin);
  check_built(entry, plugin);
  Kinds all = kinds;
  Kinds theirs;
  guarded("plug-in " + plugin, "cannot tell its kinds", [&] { entry.add(theirs); });
  try {
    for (const Protocol* protocol : theirs.protocols()) all.add(*protocol);
    for (const ProcessorKind& kind : theirs.processors()) all.add(guarded_kind(kind, plugin));
    for (const std::shared_ptr<const LinkKind>& kind : theirs.links()) all.add(guarded_kind(*kind, plugin));
  } catch (const SetupError& error) {
    throw SetupError("plug-in " + plugin, error);
  }
  kinds = std::move(all);
}

}  // namespace nanet::engine
