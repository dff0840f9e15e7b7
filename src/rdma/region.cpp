// SPDX-License-Identifier: Apache-2.0
#include "nanet/rdma/region.hpp"

#include <ucm/api/ucm.h>

#include <sys/statvfs.h>

#include <cstdlib>
#include <cstring>

#include "nanet/flow/region.hpp"
#include "rdma/messages.hpp"
#include "rdma/worker_state.hpp"

namespace nanet::rdma {
namespace detail {

Mapping::Mapping(std::shared_ptr<ContextState> context, const ucp_mem_map_params_t& params, const std::string& name)
    : context_(std::move(context)), registered_(static_cast<std::byte*>(params.address), params.address ? params.length : 0) {
  check(ucp_mem_map(context_->get(), &params, &memory_),
        "cannot register region " + name + " of " + std::to_string(params.length) + " bytes",
        "raise the limit of locked memory (ulimit -l), or of /dev/shm, or make it smaller");
}

Mapping::~Mapping() {
  ucp_mem_unmap(context_->get(), memory_);
  if (registered_.empty()) return;
  // UCX keeps the registration in a cache, and so the key is good. Told that the memory is gone, it ends both, with its next registration.
  ucm_vm_munmap(registered_.data(), registered_.size());
  static std::byte any[64];
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = any;
  params.length = sizeof any;
  if (ucp_mem_h next = nullptr; ucp_mem_map(context_->get(), &params, &next) == UCS_OK) ucp_mem_unmap(context_->get(), next);
}

std::span<std::byte> Mapping::span() const {
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
  check(ucp_mem_query(memory_, &attributes), "cannot ask where a region is", "use UCX 1.18 or newer");
  return {static_cast<std::byte*>(attributes.address), attributes.length};
}

ucs_memory_type_t Mapping::type() const {
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_MEM_TYPE;
  check(ucp_mem_query(memory_, &attributes), "cannot ask what a region is", "use UCX 1.18 or newer");
  return attributes.mem_type;
}

std::vector<std::byte> Mapping::remote_key() const {
  void* packed = nullptr;
  std::size_t bytes = 0;
  check(ucp_rkey_pack(context_->get(), memory_, &packed, &bytes), "cannot make a remote key", "name fewer transports");
  const auto* first = static_cast<const std::byte*>(packed);
  std::vector<std::byte> key(first, first + bytes);
  ucp_rkey_buffer_release(packed);
  if (key.size() > KEY_BYTES_MAX)
    throw SetupError("the remote key has " + std::to_string(key.size()) + " bytes", "more than " + std::to_string(KEY_BYTES_MAX),
                     "name fewer transports");
  return key;
}

RegionState::RegionState(const Worker& worker, const RegionConfig& config)
    : name_(config.name), kind_(config.kind), context_(worker.state()->context()) {
  if (config.bytes == 0) throw SetupError("region " + name_ + " has 0 bytes", "nothing to expose", "give 1 or more");
  check_kind();
  if (kind_ == RegionKind::cuda_device || kind_ == RegionKind::cuda_pinned)
    throw SetupError("region " + name_ + " of kind " + std::string(rdma::name(kind_)) + " cannot be allocated here",
                     "this library allocates by no GPU's driver", "allocate it with CUDA, and give its address");
  if (config.kind == RegionKind::host) {
    auto memory = std::make_shared<flow::Region>(
        flow::RegionConfig{.name = config.name, .bytes = config.bytes, .huge_pages = config.huge_pages, .locked = config.locked});
    span_ = memory->span().first(config.bytes);
    memory_ = std::move(memory);
    return;
  }
  check_room(config.bytes);
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  params.length = config.bytes;
  params.flags = UCP_MEM_MAP_ALLOCATE;
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  allocated_ = std::make_shared<Mapping>(context_, params, name_);
  local_ = allocated_;
  span_ = allocated_->span().first(config.bytes);
  std::memset(span_.data(), 0, span_.size());  // and every page is there
}

RegionState::RegionState(const Worker& worker, const RegionConfig& config, std::span<std::byte> memory)
    : name_(config.name), kind_(config.kind), context_(worker.state()->context()), span_(memory) {
  const std::string problem = "region " + name_ + " of kind " + std::string(rdma::name(kind_));
  if (memory.empty() || (config.bytes != 0 && config.bytes != memory.size()))
    throw SetupError("region " + name_ + " has " + std::to_string(memory.size()) + " bytes",
                     config.bytes == 0 ? "nothing to expose" : std::to_string(config.bytes) + " are said", "give the whole of it");
  check_kind();
  if (kind_ == RegionKind::host_shared)
    throw SetupError(problem + " cannot be given", "UCX has to allocate it", "let it be allocated here, or use kind host");
  if (kind_ == RegionKind::cuda_device && !context_->has_cuda())
    throw SetupError(problem + " cannot be used",
                     "UCX " + ucx_version() + " has no CUDA here: not built in, not among the transports, or no driver",
                     "take a UCX with CUDA, name no transports or cuda_copy and cuda_ipc among them, and see nvidia-smi");
  local_ = map(UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_LOCAL_WRITE);
  const ucs_memory_type_t expected = kind_ == RegionKind::cuda_device ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
  const ucs_memory_type_t seen = local_->type();
  if (seen != expected)
    throw SetupError(problem + " is none", std::string("UCX sees memory of type ") + ucs_memory_type_names[seen], "say what it is");
}

// UCX would fill it to the last byte before it says so, or take memory that no one can map.
void RegionState::check_room(std::size_t bytes) const {
  const char* given = std::getenv("UCX_POSIX_DIR");
  const std::string folder = given ? given : "/dev/shm";
  struct statvfs found {};
  if (::statvfs(folder.c_str(), &found) != 0 || bytes / found.f_frsize < found.f_bavail) return;
  throw SetupError("region " + name_ + " of " + std::to_string(bytes) + " bytes cannot be made",
                   folder + " has " + std::to_string(found.f_bavail * found.f_frsize) + " bytes free",
                   "make it smaller, or give the folder more (mount -o remount,size=...)");
}

void RegionState::check_kind() const {
  if (kind_ == RegionKind::cuda_managed)
    throw SetupError("region " + name_ + " cannot be of kind cuda_managed",
                     "it moves between host and GPU while a NIC or another process writes to it", "use cuda_device or cuda_pinned");
}

std::shared_ptr<Mapping> RegionState::map(unsigned protection) const {
  if (allocated_) return allocated_;
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_PROT;
  params.address = span_.data();
  params.length = span_.size();
  params.prot = protection;
  return std::make_shared<Mapping>(context_, params, name_);
}

}  // namespace detail

Region::Region(const Worker& worker, const RegionConfig& config) : state_(std::make_shared<detail::RegionState>(worker, config)) {}
Region::Region(const Worker& worker, const RegionConfig& config, std::span<std::byte> memory)
    : state_(std::make_shared<detail::RegionState>(worker, config, memory)) {}
Region::~Region() = default;
Region::Region(Region&&) noexcept = default;
Region& Region::operator=(Region&&) noexcept = default;
std::byte* Region::data() const { return state_->span().data(); }
RegionKind Region::kind() const { return state_->kind(); }
std::size_t Region::bytes() const { return state_->span().size(); }

}  // namespace nanet::rdma
