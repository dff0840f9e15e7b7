// SPDX-License-Identifier: Apache-2.0
// Where each photomultiplier (PM) of NA62's RICH sits: 1952 PMs on two disks, generated from the strips of supercells.
//
// Terms
//   channel    0..2047 = board * 512 + PM id in the board; ids 488..511 have no PM.
//   board      0..3 = disk * 2 + upDown (disk 0 Jura, 1 Saleve; upDown 0 upper half, 1 lower half).
//   supercell  8 PMs read out together, 61 a board; PM id in the board = supercell * 8 + PM in the supercell.
//   lattice    integers i, j of a PM: x = 9 i mm, y = 9 sqrt(3) j mm in the disk's own coordinates, i + j always odd.
//              i is in -33..33, j in -19..19. PMs touch: the nearest neighbours (i +- 2, j) and (i +- 1, j +- 1) are 18 mm away.
// Both disks have the same pattern in their own coordinates, so a ring whose light is shared by both mirrors is one circle.
// Everything here is constant and may be read by any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace nanet::rich {

inline constexpr int kChannelCount = 2048;
inline constexpr int kBoardCount = 4;
inline constexpr int kChannelsPerBoard = 512;
inline constexpr int kPmsPerBoard = 488;
inline constexpr int kPmsPerDisk = 976;
inline constexpr int kPmCount = 1952;
inline constexpr int kMaxI = 33;  // largest |i| of a PM
inline constexpr int kMaxJ = 19;  // largest |j| of a PM
inline constexpr double kSqrt3 = 1.7320508075688772;
inline constexpr double kUnitXMm = 9.0;
inline constexpr double kUnitYMm = 9.0 * kSqrt3;
inline constexpr double kPmPitchMm = 18.0;
inline constexpr std::uint16_t kNoChannel = 0xffff;

// A hit word: bits 10..0 channel, bits 15..11 time. Any 16 bits are a valid hit.
inline constexpr std::uint16_t kChannelMask = 0x07ff;

struct Pm {
  std::int8_t i = 0;
  std::int8_t j = 0;
  std::uint8_t disk = 0;
  bool mapped = false;  // false: no PM at this channel, the other fields mean nothing

  constexpr double x_mm() const { return kUnitXMm * i; }
  constexpr double y_mm() const { return kUnitYMm * j; }
};

namespace detail {

struct Strip {
  int i0, j0, supercells;  // supercell k of a strip starts at (i0 + 5 k, j0 - k)
};
inline constexpr std::array<std::array<Strip, 6>, 2> kStrips{{
    {{{-29, 6, 12}, {-28, 9, 12}, {-22, 11, 11}, {-21, 14, 11}, {-15, 16, 9}, {-4, 17, 6}}},     // upper half
    {{{-30, 3, 12}, {-31, 0, 12}, {-32, -3, 11}, {-33, -6, 11}, {-29, -10, 9}, {-25, -14, 6}}},  // lower half
}};
inline constexpr std::array<std::array<int, 2>, 8> kSupercell{{{0, 0}, {2, 0}, {4, 0}, {1, 1}, {3, 1}, {0, 2}, {2, 2}, {4, 2}}};

constexpr std::array<Pm, kChannelCount> make_pm_map() {
  std::array<Pm, kChannelCount> map{};
  for (int board = 0; board < kBoardCount; ++board) {
    int channel = board * kChannelsPerBoard;
    for (const Strip& strip : kStrips[static_cast<std::size_t>(board % 2)]) {
      for (int k = 0; k < strip.supercells; ++k) {
        for (const auto& [di, dj] : kSupercell) {
          map[static_cast<std::size_t>(channel++)] = Pm{static_cast<std::int8_t>(strip.i0 + 5 * k + di),
                                                        static_cast<std::int8_t>(strip.j0 - k + dj),
                                                        static_cast<std::uint8_t>(board / 2), true};
        }
      }
    }
  }
  return map;
}

// Channel in disk 0 of each lattice point, or kNoChannel.
inline constexpr int kGridColumns = 2 * kMaxI + 1;
inline constexpr int kGridRows = 2 * kMaxJ + 1;
constexpr auto make_grid(const std::array<Pm, kChannelCount>& map) {
  std::array<std::uint16_t, kGridColumns * kGridRows> grid{};
  for (auto& channel : grid) channel = kNoChannel;
  for (std::size_t channel = 0; channel < kChannelCount / 2; ++channel) {
    const Pm& pm = map[channel];
    if (pm.mapped)
      grid[static_cast<std::size_t>((pm.j + kMaxJ) * kGridColumns + pm.i + kMaxI)] = static_cast<std::uint16_t>(channel);
  }
  return grid;
}

}  // namespace detail

// PM of each channel.
inline constexpr std::array<Pm, kChannelCount> kPmMap = detail::make_pm_map();

namespace detail {
inline constexpr auto kGrid = make_grid(kPmMap);
}

// Channel of the PM at a lattice point of a disk (0 or 1), or kNoChannel.
constexpr std::uint16_t channel_at(int i, int j, int disk) {
  if (i < -kMaxI || i > kMaxI || j < -kMaxJ || j > kMaxJ) return kNoChannel;
  const std::uint16_t channel = detail::kGrid[static_cast<std::size_t>((j + kMaxJ) * detail::kGridColumns + i + kMaxI)];
  return channel == kNoChannel ? kNoChannel : static_cast<std::uint16_t>(channel + disk * (kChannelCount / 2));
}

// Channel of the PM whose hexagon holds a point of a disk's plane (disk 0 or 1), or kNoChannel where no PM is.
std::uint16_t nearest_channel(double x_mm, double y_mm, int disk);

}  // namespace nanet::rich
