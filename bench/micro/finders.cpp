// SPDX-License-Identifier: Apache-2.0
// bench_finders FINDER [EVENTS [SEED]]: quality and ns an event of one ring finder, on one core, with its default cuts.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "finder_quality.hpp"
#include "nanet/rich/finder.hpp"

using namespace nanet;

int main(int argc, char** argv) {
  const std::size_t events = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 20000;
  const std::uint64_t seed = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1;
  if (argc < 2 || events == 0) {
    std::fprintf(stderr, "usage: bench_finders FINDER [EVENTS [SEED]]\n");
    return 2;
  }
  for (std::uint32_t k = 0; k < rich::kFinderCount; ++k) {
    const rich::FinderConfig config{.kind = static_cast<rich::FinderKind>(k)};
    if (std::strcmp(argv[1], rich::finder_name(config.kind)) != 0) continue;
    bench::print_quality(
        argv[1], [&](auto hits, auto rings) { rich::find_rings(config, hits, rings); }, events, seed);
    return 0;
  }
  std::fprintf(stderr, "error: no finder %s (there are math, almagest, triplets, mixture ...) see rich/finder.hpp\n", argv[1]);
  return 2;
}
