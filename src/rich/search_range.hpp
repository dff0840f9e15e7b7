// SPDX-License-Identifier: Apache-2.0
// Where a finder looks for rings: everywhere that the cuts on rings allow, and kSearchMarginMm further. A ring that lies a little outside is
// then found as it is, and refused; a finder that stopped at the limit would fit another ring to its hits.
#pragma once

#include <string_view>
#include <type_traits>

#include "nanet/rich/decision.hpp"
#include "nanet/rich/finder.hpp"

namespace nanet::rich {

inline constexpr float kSearchMarginMm = 30.0F;

// Sets the limits of every finder's search, whatever they were. The grids of pomh, domh and hough hold radii from 57 to 222 mm, and centres up to
// their center_range_mm, no further.
inline void set_search_range(FinderConfig& finder, const RingCuts& cuts) {
  const float radius_min_mm = cuts.radius_min_mm > kSearchMarginMm ? cuts.radius_min_mm - kSearchMarginMm : 0.0F;
  const float radius_max_mm = cuts.radius_max_mm + kSearchMarginMm;
  finder.visit_cuts([&](const char*, auto& finder_cuts) {
    finder_cuts.visit([&](std::string_view name, auto& value, const config::Setting&) {
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(value)>, float>) {
        if (name == "radius_min_mm" || name == "triplet_radius_min_mm") value = radius_min_mm;
        if (name == "radius_max_mm" || name == "triplet_radius_max_mm") value = radius_max_mm;
        if (name == "center_max_mm") value = cuts.center_max_mm + kSearchMarginMm;
      }
    });
  });
}

}  // namespace nanet::rich
