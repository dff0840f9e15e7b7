// SPDX-License-Identifier: Apache-2.0
#include "gpu/tables.hpp"

#include <array>

#include "gpu/kernels/packed_points.hpp"

namespace nanet::gpu {
namespace {

std::array<PackedPoint, rich::kPmPointRows> packed_points() {
  std::array<PackedPoint, rich::kPmPointRows> packed{};
  for (std::size_t row = 0; row < packed.size(); ++row) {
    const rich::PmPoint& point = rich::kPmPoints[row];
    if (point.mapped != 0) packed[row] = pack_point(point.i, point.j);
  }
  return packed;
}

std::array<std::uint16_t, kCellRows> cells() {
  std::array<std::uint16_t, kCellRows> cells{};
  for (std::uint32_t z = 0; z < kCellRows; ++z) cells[z] = cell_of(rich::radius_bin(static_cast<std::int32_t>(z)));
  return cells;
}

}  // namespace

Tables::Tables()
    : points_(rich::kPmPoints.data(), rich::kPmPoints.size()),
      packed_(packed_points().data(), rich::kPmPointRows),
      cells_(cells().data(), kCellRows) {}

}  // namespace nanet::gpu
