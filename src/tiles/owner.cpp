// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "nanet/rdma/target.hpp"
#include "stencil/layout.hpp"
#include "tiles/moved_tile.hpp"

namespace nanet::tiles {

template <class T>
struct Owner<T>::State {
  explicit State(const OwnerConfig& given)
      : config(given),
        worker({.transports = config.transports, .address = config.address, .trust_network = config.trust_network}),
        region(worker, {.name = "tile", .bytes = stencil::field_bytes<T>(config.rows, config.columns)}),
        target(worker, {.address = config.address, .connection_count_max = 4}) {
    target.expose(region, {.name = "tile", .permissions = {.read = true, .write = true}, .token = config.token});
  }
  T* row(std::size_t index) const {
    return reinterpret_cast<T*>(region.data() + stencil::kOriginBytes<T>) + index * stencil::stride_of<T>(config.columns);
  }

  OwnerConfig config;
  rdma::Worker worker;
  rdma::Region region;
  rdma::Target target;
};

template <class T>
Owner<T>::Owner(const OwnerConfig& config) : state_(std::make_unique<State>(config)) {}
template <class T>
Owner<T>::~Owner() = default;

template <class T>
std::uint16_t Owner<T>::port() const {
  return state_->target.port();
}

template <class T>
void Owner<T>::load(const T* cells, std::size_t row_begin, std::size_t row_count) {
  const std::size_t columns = state_->config.columns;
  for (std::size_t r = 0; r < row_count; ++r) std::copy_n(cells + r * columns, columns, state_->row(row_begin + r));
}

template <class T>
void Owner<T>::store(T* cells, std::size_t row_begin, std::size_t row_count) const {
  const std::size_t columns = state_->config.columns;
  for (std::size_t r = 0; r < row_count; ++r) std::copy_n(state_->row(row_begin + r), columns, cells + r * columns);
}

template <class T>
void Owner<T>::serve(std::uint32_t sleep_ms) {
  state_->worker.wait(sleep_ms);
}

template class Owner<float>;
template class Owner<double>;

}  // namespace nanet::tiles
