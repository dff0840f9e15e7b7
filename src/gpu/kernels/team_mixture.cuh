// SPDX-License-Identifier: Apache-2.0
// The mixture finder with a warp an event: rich/mixture_team.hpp in the lanes of a GPU.
#pragma once

#include <cstdint>

#include "gpu/kernels/team.cuh"
#include "gpu/kernels/team_finder.cuh"
#include "rich/mixture_team.hpp"

namespace nanet::gpu {

// Functions for host and device call these, and only in kernels.
struct CudaWarp {
  // A place in shared memory, in 32 bits; a pointer made from it is known to point there, also in a function that is called.
  template <class T>
  struct Memory {
    std::uint32_t address;
    NANET_HD T& operator*() const { return *place(); }
    NANET_HD T* operator->() const { return place(); }

   private:
    NANET_HD T* place() const {
#ifdef __CUDA_ARCH__
      return static_cast<T*>(__cvta_shared_to_generic(address));
#else
      return nullptr;
#endif
    }
  };

#ifdef __CUDA_ARCH__
  using Lanes = Team<rich::kWarpLanes>;
  NANET_HD static std::uint32_t lane() { return Lanes::lane(); }
  NANET_HD static void sync() { Lanes::sync(); }
  NANET_HD static std::uint32_t ballot(bool vote) { return Lanes::ballot(vote); }
  template <class T>
  NANET_HD static T from_lane(T value, std::uint32_t lane) {
    return Lanes::from_lane(value, lane);
  }
  template <class T>
  NANET_HD static T from_other(T value, std::uint32_t mask) {
    return Lanes::from_other(value, mask);
  }
  NANET_HD static std::int32_t max(std::int32_t value) { return Lanes::max(value); }
  NANET_HD static void set_bits(std::uint32_t& word, std::uint32_t bits) { atomicOr(&word, bits); }
  NANET_HD static std::uint32_t bit_count(std::uint32_t word) { return static_cast<std::uint32_t>(__popc(word)); }
  NANET_HD static std::uint32_t first_bit(std::uint32_t word) {
    return static_cast<std::uint32_t>(__ffs(static_cast<int>(word)) - 1);
  }
  NANET_HD static std::uint32_t reversed(std::uint32_t word) { return __brev(word); }
#else
  static std::uint32_t lane();
  static void sync();
  static std::uint32_t ballot(bool);
  template <class T>
  static T from_lane(T, std::uint32_t);
  template <class T>
  static T from_other(T, std::uint32_t);
  static std::int32_t max(std::int32_t);
  static void set_bits(std::uint32_t&, std::uint32_t);
  static std::uint32_t bit_count(std::uint32_t);
  static std::uint32_t first_bit(std::uint32_t);
  static std::uint32_t reversed(std::uint32_t);
#endif
};

template <>
struct TeamFinder<rich::FinderKind::mixture> {
  static constexpr unsigned kLanes = 32;
  static constexpr unsigned kThreads = 128;
  static constexpr unsigned kBlocksAnSm = 6;
  static constexpr bool kMixtureInShared = true;
  using Shared = rich::MixtureTeamMemory;

  __device__ static rich::EventRings find(const rich::FinderConfig&, event::Event event, const DeviceTables& tables, Shared& shared) {
    const CudaWarp::Memory<Shared> memory{static_cast<std::uint32_t>(__cvta_generic_to_shared(&shared))};
    rich::find_mixture_together<CudaWarp>(event, tables.points, *tables.mixture, memory);
    rich::EventRings found;
    if (threadIdx.x % kLanes == 0) found = shared.found;
    return found;
  }
};

}  // namespace nanet::gpu
