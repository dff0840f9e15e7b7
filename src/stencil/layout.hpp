// SPDX-License-Identifier: Apache-2.0
// How the cells of a field lie in memory, so that fields of two owners can be moved as they are.
//
// Row after row; a row takes whole lines, an odd number of them, so that rows do not fall onto the same sets of a cache. Cell (0, 0) lies
// kOriginBytes after the beginning of a line: column 1, where the inner cells begin, is at the beginning of one in every row.
#pragma once

#include <cstddef>

namespace nanet::stencil {

inline constexpr std::size_t kLineBytes = 64;

template <class T>
inline constexpr std::size_t kOriginBytes = kLineBytes - sizeof(T);

// Cells from one row to the next.
template <class T>
constexpr std::size_t stride_of(std::size_t columns) {
  const std::size_t lines = (columns * sizeof(T) + kLineBytes + kLineBytes - 1) / kLineBytes;
  return (lines | 1) * kLineBytes / sizeof(T);
}

// Of memory that begins at a line and holds a field, and the line that its last vector may touch.
template <class T>
constexpr std::size_t field_bytes(std::size_t rows, std::size_t columns) {
  return stride_of<T>(columns) * rows * sizeof(T) + kLineBytes;
}

}  // namespace nanet::stencil
