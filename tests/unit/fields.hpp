// SPDX-License-Identifier: Apache-2.0
// Fields for tests of sweeps and tiles, and what they must become: the formula, cell after cell.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

namespace nanet::test {

template <class T>
std::vector<T> made_up_field(std::size_t rows, std::size_t columns) {
  std::mt19937_64 random(rows * 1000 + columns);
  std::uniform_real_distribution<double> value(-1.0, 1.0);
  std::vector<T> field(rows * columns);
  for (T& cell : field) cell = static_cast<T>(value(random) * std::exp2(20.0 * value(random)));
  return field;
}

template <class T>
std::vector<T> reference(std::vector<T> field, std::size_t rows, std::size_t columns, std::uint64_t sweeps) {
  std::vector<T> next = field;
  for (std::uint64_t sweep = 0; sweep < sweeps; ++sweep) {
    for (std::size_t i = 1; i + 1 < rows; ++i) {
      for (std::size_t j = 1; j + 1 < columns; ++j) {
        T sum = field[(i - 1) * columns + j];
        sum += field[(i + 1) * columns + j];
        sum += field[i * columns + j - 1];
        sum += field[i * columns + j + 1];
        next[i * columns + j] = sum / 4;
      }
    }
    std::swap(field, next);
  }
  return field;
}

template <class T>
bool same_bits(const std::vector<T>& one, const std::vector<T>& other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size() * sizeof(T)) == 0;
}

}  // namespace nanet::test
