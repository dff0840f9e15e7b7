// SPDX-License-Identifier: Apache-2.0
#include "stencil/passes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "nanet/setup_error.hpp"
#include "stencil/layout.hpp"
#include "stencil/strips.hpp"

namespace nanet::stencil {
namespace {

const PassesConfig& checked(const PassesConfig& config) {
  if (config.columns == 0) throw SetupError("rows of 0 columns cannot be swept", "they have no cell", "give 1 or more");
  check_sweeps_per_pass(config.sweeps_per_pass);
  return config;
}

}  // namespace

template <class T>
struct Passes<T>::State {
  explicit State(const PassesConfig& config)
      : columns(static_cast<Index>(config.columns)),
        team(config.team),
        strips(columns, config.sweeps_per_pass, config.tile_bytes, team.size()) {}

  void work(int worker) const {
    const RowSpan share = share_of({static_cast<Index>(part.row_begin), static_cast<Index>(part.row_end)}, worker, team.size());
    const Tile<T> tile{.in = part.from,
                       .out = part.to,
                       .stride = static_cast<Index>(stride_of<T>(static_cast<std::size_t>(columns))),
                       .rows = static_cast<Index>(part.rows),
                       .columns = columns,
                       .levels = Index{part.sweeps},
                       .stores = part.stores};
    if (part.changes) {
      strips.sweep_with_changes(tile, share, part.changes);
    } else {
      strips.sweep(worker, tile, share);
    }
  }

  Index columns;
  Team team;
  Strips<T> strips;
  Part<T> part{};
};

template <class T>
Passes<T>::Passes(const PassesConfig& config) : state_(std::make_unique<State>(checked(config))) {}
template <class T>
Passes<T>::~Passes() {
  finish();
}

template <class T>
void Passes<T>::begin(const Part<T>& part) {
  state_->part = part;
  state_->team.begin([](void* state, int worker) { static_cast<State*>(state)->work(worker); }, state_.get());
}

template <class T>
bool Passes<T>::is_done() const {
  return state_->team.is_done();
}

template <class T>
void Passes<T>::finish() {
  state_->team.finish();
}

template class Passes<float>;
template class Passes<double>;

ChangeNorm norm_of_rows(std::span<const double> changes) {
  double max = 0.0;
  double square_sum = 0.0;
  for (std::size_t r = 0; r + 1 < changes.size(); r += 2) {
    max = std::max(max, changes[r]);
    square_sum += changes[r + 1];
  }
  if (std::isnan(square_sum)) max = square_sum = std::numeric_limits<double>::quiet_NaN();
  return {0, max, std::sqrt(square_sum)};
}

}  // namespace nanet::stencil
