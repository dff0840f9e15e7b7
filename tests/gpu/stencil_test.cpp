// SPDX-License-Identifier: Apache-2.0
// Sweeps on a GPU: the bits, and the norms, of the CPU's library, whatever the shape, sweeps per pass, GPUs and path of the tile.
#include "stencil_gpu/stencil.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "nanet/setup_error.hpp"
#include "stencil/jacobi.hpp"

namespace nanet::gpu {
namespace {

using Shape = std::pair<std::size_t, std::size_t>;

template <class T>
std::vector<T> made_up_field(Shape shape) {
  std::mt19937_64 random(shape.first * 1000 + shape.second);
  std::uniform_real_distribution<double> value(-1.0, 1.0);
  std::vector<T> field(shape.first * shape.second);
  for (T& cell : field) cell = static_cast<T>(value(random) * std::exp2(20.0 * value(random)));
  return field;
}

template <class T>
struct Swept {
  std::vector<T> field;
  std::vector<stencil::ChangeNorm> norms;
};

template <class T>
Swept<T> swept_by_the_cpu(const std::vector<T>& field, Shape shape, std::uint64_t sweeps, std::uint64_t norm_every) {
  stencil::Jacobi<T> jacobi({.rows = shape.first, .columns = shape.second, .norm_every = norm_every, .team = {.thread_count = 2}});
  jacobi.load(field.data());
  Swept<T> result{std::vector<T>(field.size()), std::vector<stencil::ChangeNorm>(jacobi.norm_count(sweeps))};
  jacobi.run(sweeps, result.norms);
  jacobi.store(result.field.data());
  return result;
}

std::string text_of(Shape shape, std::uint64_t sweeps, std::uint32_t sweeps_per_pass, std::size_t gpus) {
  return std::to_string(shape.first) + " x " + std::to_string(shape.second) + ", " + std::to_string(sweeps) + " sweeps, " +
         std::to_string(sweeps_per_pass) + " a pass, " + std::to_string(gpus) + " shares";
}

template <class T>
void expect_same_bits(const std::vector<T>& found, const std::vector<T>& wanted, const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size());
  std::size_t first = 0;
  while (first < found.size() && std::memcmp(&found[first], &wanted[first], sizeof(T)) == 0) ++first;
  EXPECT_EQ(first, found.size()) << what << ": the first cell that differs";
}

void expect_same_norms(const std::vector<stencil::ChangeNorm>& found, const std::vector<stencil::ChangeNorm>& wanted,
                       const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    EXPECT_EQ(found[k].sweep, wanted[k].sweep) << what;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(found[k].max), std::bit_cast<std::uint64_t>(wanted[k].max))
        << what << ": " << found[k].max;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(found[k].l2), std::bit_cast<std::uint64_t>(wanted[k].l2)) << what << ": " << found[k].l2;
  }
}

template <class T>
void expect_the_bits_of_the_cpu(Shape shape, std::uint64_t sweeps, const JacobiConfig& schedule) {
  JacobiConfig config = schedule;
  config.rows = shape.first;
  config.columns = shape.second;
  const std::string what = text_of(shape, sweeps, config.sweeps_per_pass, config.devices.size());
  const std::vector<T> field = made_up_field<T>(shape);
  const Swept<T> wanted = swept_by_the_cpu(field, shape, sweeps, config.norm_every);
  Jacobi<T> jacobi(config);
  jacobi.load(field.data());
  Swept<T> found{std::vector<T>(field.size()), std::vector<stencil::ChangeNorm>(jacobi.norm_count(sweeps))};
  jacobi.run(sweeps, found.norms);
  jacobi.store(found.field.data());
  expect_same_bits(found.field, wanted.field, what);
  expect_same_norms(found.norms, wanted.norms, what);
}

std::vector<Shape> shapes() {
  if (check::under_sanitizer()) return {{1, 1}, {3, 3}, {17, 131}, {70, 260}};
  return {{1, 1}, {1, 40},  {40, 1},   {2, 9},     {3, 3},     {3, 1001},  {1001, 3},
          {4, 4}, {17, 23}, {31, 130}, {257, 128}, {300, 121}, {130, 2051}};
}

template <class T>
void expect_every_schedule_has_the_bits(std::uint32_t band_rows) {
  for (const Shape& shape : shapes()) {
    for (std::uint32_t sweeps_per_pass = 1; sweeps_per_pass <= kSweepsPerPassMax; ++sweeps_per_pass) {
      expect_the_bits_of_the_cpu<T>(shape, 19, {.sweeps_per_pass = sweeps_per_pass, .band_rows = band_rows});
    }
  }
}

TEST(Stencil, has_the_bits_of_the_cpu_in_fp32) { expect_every_schedule_has_the_bits<float>(0); }
TEST(Stencil, has_the_bits_of_the_cpu_in_fp64) { expect_every_schedule_has_the_bits<double>(0); }

TEST(Stencil, bands_of_any_height_give_the_same_bits) {
  for (const std::uint32_t band_rows : {1u, 5u, 1000000000u}) {
    expect_every_schedule_has_the_bits<float>(band_rows);
    expect_every_schedule_has_the_bits<double>(band_rows);
  }
}

TEST(Stencil, norms_have_the_bits_of_the_cpu) {
  for (const std::uint64_t norm_every : {1u, 4u, 5u}) {
    for (const std::uint32_t sweeps_per_pass : {1u, 4u, 8u}) {
      for (const Shape& shape : {Shape{2, 5}, Shape{21, 75}, Shape{200, 333}}) {
        expect_the_bits_of_the_cpu<float>(shape, 17, {.sweeps_per_pass = sweeps_per_pass, .norm_every = norm_every});
        expect_the_bits_of_the_cpu<double>(shape, 17, {.sweeps_per_pass = sweeps_per_pass, .norm_every = norm_every});
      }
    }
  }
}

TEST(Stencil, a_number_that_is_none_is_seen_in_both_norms) {
  std::vector<float> field = made_up_field<float>({9, 40});
  field[4 * 40 + 7] = std::numeric_limits<float>::quiet_NaN();
  Jacobi<float> jacobi({.rows = 9, .columns = 40, .norm_every = 1});
  jacobi.load(field.data());
  std::vector<stencil::ChangeNorm> norms(2);
  jacobi.run(2, norms);
  EXPECT_TRUE(std::isnan(norms[0].max));
  EXPECT_TRUE(std::isnan(norms[0].l2));
}

TEST(Stencil, runs_go_on_where_the_last_ended) {
  const Shape shape{50, 300};
  const std::vector<double> field = made_up_field<double>(shape);
  Jacobi<double> jacobi({.rows = shape.first, .columns = shape.second, .sweeps_per_pass = 3, .norm_every = 4});
  jacobi.load(field.data());
  std::vector<std::uint64_t> sweeps_with_norm;
  for (const std::uint64_t sweeps : {1u, 2u, 3u, 0u, 7u}) {
    std::vector<stencil::ChangeNorm> norms(jacobi.norm_count(sweeps));
    jacobi.run(sweeps, norms);
    for (const stencil::ChangeNorm& norm : norms) sweeps_with_norm.push_back(norm.sweep);
    EXPECT_GE(jacobi.copy().bytes, 2 * field.size() * sizeof(double));  // is no sweep, and changes nothing
  }
  std::vector<double> result(field.size());
  jacobi.store(result.data());
  expect_same_bits(result, swept_by_the_cpu(field, shape, 13, 0).field, "13 sweeps in five runs");
  EXPECT_TRUE(sweeps_with_norm == (std::vector<std::uint64_t>{4, 8, 12}));
  EXPECT_EQ(jacobi.sweeps_done(), 13u);
}

// Shares of the rows: on the GPUs that are there, and always on one that is named several times.
void expect_shares_have_the_bits(const std::vector<int>& devices) {
  for (const Shape& shape : {Shape{18, 40}, Shape{26, 300}, Shape{101, 257}, Shape{500, 130}}) {
    for (const std::uint32_t sweeps_per_pass : {1u, 3u, 4u, 8u}) {
      if ((shape.first - 2) / devices.size() < sweeps_per_pass) continue;  // refused, see below
      for (const std::uint64_t norm_every : {0u, 3u}) {
        const JacobiConfig config{.sweeps_per_pass = sweeps_per_pass, .norm_every = norm_every, .devices = devices};
        expect_the_bits_of_the_cpu<float>(shape, 50, config);
        expect_the_bits_of_the_cpu<double>(shape, 50, config);
      }
    }
  }
}

TEST(Stencil, shares_on_one_gpu_have_the_bits_of_the_cpu) {
  expect_shares_have_the_bits({0, 0});
  expect_shares_have_the_bits({0, 0, 0});
}

TEST(Stencil, shares_on_several_gpus_have_the_bits_of_the_cpu) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  if (count < 2) {
    check::not_run("(there is one GPU) run it on a machine with two");
    return;
  }
  std::vector<int> devices;
  for (int k = 0; k < count; ++k) devices.push_back(k);
  expect_shares_have_the_bits({0, 1});
  expect_shares_have_the_bits({1, 0});
  expect_shares_have_the_bits(devices);
}

template <class T>
void expect_tiles_have_the_bits() {
  for (const Shape& shape : shapes()) {
    for (const std::uint32_t sweeps_per_pass : {1u, 4u, 7u}) {
      for (const std::uint64_t sweeps : {0u, 1u, 9u, 30u}) {
        const std::vector<T> field = made_up_field<T>(shape);
        const std::vector<T> wanted = swept_by_the_cpu(field, shape, sweeps, 0).field;
        std::vector<T> tile = field;
        // Chunks of the fewest rows there are, so that every field of more than 16 is several.
        JacobiTile<T> mover({.rows = shape.first, .columns = shape.second, .sweeps_per_pass = sweeps_per_pass, .chunk_bytes = 1},
                            tile);
        const TileTimes streamed = mover.stream(sweeps);
        expect_same_bits(tile, wanted, "streamed " + text_of(shape, sweeps, sweeps_per_pass, 1));
        EXPECT_GE(streamed.total_seconds, streamed.out_seconds);
        mover.transfer();
        expect_same_bits(tile, wanted, "moved only " + text_of(shape, sweeps, sweeps_per_pass, 1));
        std::copy(field.begin(), field.end(), tile.begin());
        mover.move_sweep_move(sweeps);
        expect_same_bits(tile, wanted, "moved, swept, moved " + text_of(shape, sweeps, sweeps_per_pass, 1));
      }
    }
  }
}

TEST(Stencil, tiles_that_move_have_the_bits_of_the_cpu_in_fp32) { expect_tiles_have_the_bits<float>(); }
TEST(Stencil, tiles_that_move_have_the_bits_of_the_cpu_in_fp64) { expect_tiles_have_the_bits<double>(); }

TEST(Stencil, refuses_what_it_cannot_sweep) {
  std::vector<float> tile(12);
  EXPECT_THROW(Jacobi<float>({.rows = 0, .columns = 4}), SetupError);
  EXPECT_THROW(Jacobi<float>({.rows = 4, .columns = 4, .sweeps_per_pass = 9}), SetupError);
  EXPECT_THROW(Jacobi<float>({.rows = 4, .columns = 4, .sweeps_per_pass = 0}), SetupError);
  EXPECT_THROW(Jacobi<float>({.rows = 4, .columns = 4, .devices = {}}), SetupError);
  EXPECT_THROW(Jacobi<float>({.rows = 4, .columns = 4, .devices = {99}}), SetupError);
  EXPECT_THROW(Jacobi<float>({.rows = 9, .columns = 4, .sweeps_per_pass = 4, .devices = {0, 0}}), SetupError);
  EXPECT_THROW(JacobiTile<float>({.rows = 4, .columns = 4}, tile), SetupError);
  EXPECT_THROW(JacobiTile<float>({.rows = 3, .columns = 4, .device = -1}, tile), SetupError);
}

}  // namespace
}  // namespace nanet::gpu
