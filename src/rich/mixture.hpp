// SPDX-License-Identifier: Apache-2.0
// The mixture finder: up to four rings and uniform noise fitted to an event's hits together, by expectation and maximisation (EM).
//
// Model (docs/design/finder-mixture.md): hits are Poisson distributed with the density of the noise plus that of each ring, its hits spread about its
// circle. Each hit belongs to each ring and to the noise in proportion to their densities there. The rings that are found are those with
// the largest likelihood, where each must pay for its freedom (ring_penalty). Start circles go through triplets of hits.
// Our own reading of a common method: A. Dempster, N. Laird, D. Rubin, J. R. Stat. Soc. B 39 (1977) 1.
// Thread rules: pure functions; no allocation, no exception.
#pragma once

#include <span>

#include "nanet/host_device.hpp"
#include "nanet/rich/mixture_cuts.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/hit_plane.hpp"
#include "rich/mixture_kernels.hpp"
#include "rich/mixture_model.hpp"
#include "rich/mixture_search.hpp"
#include "rich/mixture_worker.hpp"

namespace nanet::rich {

// The rings of one event. `points`: kPmPoints, or its copy in the GPU's memory. Needs 40 KiB of stack.
NANET_HD inline EventRings find_mixture(event::Event event, const PmPoint* points, const MixtureCuts& cuts) {
  const MixtureSetup setup = prepare_mixture(cuts);
  MixtureWorker<MixtureScalarKernels> worker(setup);
  MixtureSearch search(setup, worker);
  EventRings found;
  search.find(event, points, found);
  return found;
}

// rings[k] becomes what is found in events[k], the same bits. `rings` must be at least as long as `events`.
void find_mixture(std::span<const event::Event> events, std::span<EventRings> rings, const MixtureCuts& cuts);

}  // namespace nanet::rich
