// SPDX-License-Identifier: Apache-2.0
// The field that stays: shares of rows on one GPU or several. A share has its own rows and, at a seam, as many of its neighbour's as a pass has sweeps (the
// halo), so that a pass needs nothing of the neighbour. Of a pass, first the rows that a neighbour's halo shows are swept, on the urgent stream, and sent;
// meanwhile the other stream sweeps the rest. Milestones keep the two and the neighbours in order:
//
//   rest of pass k   after the seams of pass k-1                              (it reads them, and writes what they read)
//   seams of pass k  after the rest of pass k-1, and the halos of pass k-1    (they read both)
//   halo of pass k   into a neighbour after that one's seams of pass k-1      (they read what it overwrites)
#include "stencil_gpu/stencil.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "gpu/cuda_types.hpp"
#include "nanet/setup_error.hpp"
#include "stencil_gpu/part.hpp"

namespace nanet::gpu {
namespace {

// Norms in flight: the GPU goes on while the host adds up the rows of one.
constexpr std::size_t kNormsUnderWay = 2;

// GPU a reaches the memory of GPU b.
bool reaches(int a, int b) {
  if (a == b) return true;
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, a, b), "cudaDeviceCanAccessPeer");
  if (can == 0) return false;
  const CurrentDevice current(a);
  const cudaError_t error = cudaDeviceEnablePeerAccess(b, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();  // is no error; take it back
    return true;
  }
  check(error, "cudaDeviceEnablePeerAccess");
  return true;
}

template <class T>
struct Share {
  Share(int on, std::int32_t rows, std::int32_t columns, RowRange of, RowRange memory, bool with_norms)
      : device(on),
        own(of),
        field(rows, columns, memory),
        changes(with_norms ? kNormsUnderWay * static_cast<std::size_t>(of.count()) : 0),
        host_changes(std::max<std::size_t>(changes.count(), 1)),
        rest(WorkStream::Priority::normal),
        seams(WorkStream::Priority::urgent) {}

  RowChange* changes_of(std::size_t norm) const {
    return changes.get() + norm % kNormsUnderWay * static_cast<std::size_t>(own.count());
  }
  RowChange* host_changes_of(std::size_t norm) const {
    return host_changes.host() + norm % kNormsUnderWay * static_cast<std::size_t>(own.count());
  }

  int device;
  RowRange own;  // inner rows
  FieldPart<T> field;
  DeviceArray<RowChange> changes;
  PinnedArray<RowChange> host_changes;
  WorkStream rest;
  WorkStream seams;
  Milestone rest_done;
  Milestone seams_done;
  Milestone halos_sent;
  std::array<Milestone, kNormsUnderWay> norm_here;
  Event begin;
  Event end;
};

}  // namespace

template <class T>
struct Jacobi<T>::Parts {
  explicit Parts(const JacobiConfig& wanted);

  struct Pass {
    std::uint32_t sweeps;
    bool has_norm;
  };

  Pass next_pass(std::uint64_t done, std::uint64_t left) const;
  void sweep(int from, std::uint32_t sweeps);
  void sweep_seams(std::size_t index, int from, std::uint32_t sweeps);
  void send_halos(std::size_t index, int from);
  void sweep_rest(std::size_t index, int from, std::uint32_t sweeps);
  void take_changes(int from, std::size_t norm);
  void add_rows(std::size_t norm, stencil::ChangeNorm& result) const;
  void wait() const;

  bool has_above(std::size_t index) const { return index > 0; }
  bool has_below(std::size_t index) const { return index + 1 < shares.size(); }
  RowRange above(const Share<T>& share) const { return {share.own.begin, std::min(share.own.begin + halo, share.own.end)}; }
  RowRange below(const Share<T>& share) const { return {std::max(share.own.end - halo, share.own.begin), share.own.end}; }

  JacobiConfig config;
  std::int32_t halo;
  std::vector<std::unique_ptr<Share<T>>> shares;
  bool direct = false;
  int current = 0;
  std::uint64_t done = 0;
};

template <class T>
Jacobi<T>::Parts::Parts(const JacobiConfig& wanted) : config(wanted), halo(static_cast<std::int32_t>(wanted.sweeps_per_pass)) {
  check_field(config.rows, config.columns, config.sweeps_per_pass);
  const auto count = static_cast<std::int64_t>(config.devices.size());
  if (count == 0) throw SetupError("GPU: none to sweep on", "the list of devices is empty", "name one, such as 0");
  for (const int device : config.devices) check_device(device);
  const auto rows = static_cast<std::int32_t>(config.rows);
  const std::int64_t inner = std::max(rows - 2, 0);
  if (count > 1 && inner / count < halo) {
    throw SetupError(std::to_string(rows) + " rows cannot be shared by " + std::to_string(count) + " GPUs",
                     "each would have fewer rows than its neighbour's halo, which are " + std::to_string(halo),
                     "take fewer GPUs, or fewer sweeps a pass");
  }
  for (std::int64_t k = 0; k < count; ++k) {
    const RowRange own{static_cast<std::int32_t>(1 + inner * k / count), static_cast<std::int32_t>(1 + inner * (k + 1) / count)};
    const RowRange memory{k == 0 ? 0 : own.begin - halo, k + 1 == count ? rows : own.end + halo};
    const int device = config.devices[static_cast<std::size_t>(k)];
    const CurrentDevice current_device(device);
    shares.push_back(
        std::make_unique<Share<T>>(device, rows, static_cast<std::int32_t>(config.columns), own, memory, config.norm_every != 0));
  }
  direct = count > 1;
  for (std::size_t k = 1; k < shares.size(); ++k) {
    const bool both = reaches(shares[k - 1]->device, shares[k]->device) && reaches(shares[k]->device, shares[k - 1]->device);
    direct = direct && both;
  }
}

template <class T>
Jacobi<T>::Jacobi(const JacobiConfig& config) : parts_(std::make_unique<Parts>(config)) {}

template <class T>
Jacobi<T>::~Jacobi() = default;

template <class T>
void Jacobi<T>::load(const T* field) {
  for (const auto& share : parts_->shares) {
    const CurrentDevice current(share->device);
    share->field.copy_in(0, share->field.memory(), field, share->rest.get());
    share->field.copy_across(0, share->field.memory(), share->rest.get());
  }
  parts_->wait();
  parts_->current = 0;
  parts_->done = 0;
}

// The boundary rows come from the first and the last share.
template <class T>
void Jacobi<T>::store(T* field) const {
  for (const auto& share : parts_->shares) {
    const CurrentDevice current(share->device);
    RowRange rows = share->own;
    if (share == parts_->shares.front()) rows.begin = 0;
    if (share == parts_->shares.back()) rows.end = share->field.memory().end;
    share->field.copy_out(parts_->current, rows, field, share->rest.get());
  }
  parts_->wait();
}

template <class T>
std::size_t Jacobi<T>::norm_count(std::uint64_t sweeps) const {
  const std::uint64_t every = parts_->config.norm_every;
  return every == 0 ? 0 : static_cast<std::size_t>((parts_->done + sweeps) / every - parts_->done / every);
}

template <class T>
void Jacobi<T>::run(std::uint64_t sweeps, std::span<stencil::ChangeNorm> norms) {
  Parts& parts = *parts_;
  std::size_t started = 0;
  std::size_t added = 0;
  const auto add_next = [&] {
    parts.add_rows(added, norms[added]);
    ++added;
  };
  for (std::uint64_t made = 0; made < sweeps;) {
    const typename Parts::Pass pass = parts.next_pass(parts.done + made, sweeps - made);
    parts.sweep(parts.current, pass.sweeps);
    made += pass.sweeps;
    if (pass.has_norm) {
      if (started - added == kNormsUnderWay) add_next();
      norms[started].sweep = parts.done + made;
      parts.take_changes(parts.current, started++);
    }
    parts.current = 1 - parts.current;
  }
  while (added < started) add_next();
  parts.wait();
  parts.done += sweeps;
}

template <class T>
CopyTime Jacobi<T>::copy() {
  CopyTime time{0, 0};
  for (const auto& share : parts_->shares) {
    const CurrentDevice current(share->device);
    share->begin.record(share->rest.get());
    share->field.copy_across(parts_->current, share->field.memory(), share->rest.get());
    share->end.record(share->rest.get());
    time.bytes += 2 * static_cast<std::size_t>(share->field.memory().count()) * share->field.row_bytes();
  }
  parts_->wait();
  for (const auto& share : parts_->shares) time.seconds = std::max(time.seconds, share->end.seconds_since(share->begin));
  return time;
}

template <class T>
bool Jacobi<T>::is_direct() const {
  return parts_->direct;
}

template <class T>
std::uint64_t Jacobi<T>::sweeps_done() const {
  return parts_->done;
}

template <class T>
const JacobiConfig& Jacobi<T>::config() const {
  return parts_->config;
}

template <class T>
typename Jacobi<T>::Parts::Pass Jacobi<T>::Parts::next_pass(std::uint64_t so_far, std::uint64_t left) const {
  std::uint64_t sweeps = std::min<std::uint64_t>(config.sweeps_per_pass, left);
  if (config.norm_every != 0) {
    const std::uint64_t to_norm = config.norm_every - so_far % config.norm_every;
    if (to_norm == 1) return {1, true};
    sweeps = std::min(sweeps, to_norm - 1);
  }
  return {static_cast<std::uint32_t>(sweeps), false};
}

// A wait is for the last mark that was set before it was asked for, so the order of these calls is part of what they mean.
template <class T>
void Jacobi<T>::Parts::sweep(int from, std::uint32_t sweeps) {
  for (const auto& share : shares) share->seams_done.hold(share->rest.get());
  for (std::size_t k = 0; k < shares.size(); ++k) sweep_seams(k, from, sweeps);
  for (std::size_t k = 0; k < shares.size(); ++k) sweep_rest(k, from, sweeps);
  for (std::size_t k = 0; k < shares.size(); ++k) send_halos(k, from);
}

template <class T>
void Jacobi<T>::Parts::sweep_seams(std::size_t index, int from, std::uint32_t sweeps) {
  if (shares.size() == 1) return;
  const Share<T>& share = *shares[index];
  const CurrentDevice current_device(share.device);
  const cudaStream_t stream = share.seams.get();
  share.rest_done.hold(stream);
  if (has_above(index)) {
    shares[index - 1]->halos_sent.hold(stream);
    share.field.sweep(from, above(share), sweeps, config.band_rows, stream);
  }
  if (has_below(index)) {
    shares[index + 1]->halos_sent.hold(stream);
    share.field.sweep(from, below(share), sweeps, config.band_rows, stream);
  }
  share.seams_done.mark(stream);
}

template <class T>
void Jacobi<T>::Parts::sweep_rest(std::size_t index, int from, std::uint32_t sweeps) {
  const Share<T>& share = *shares[index];
  const CurrentDevice current_device(share.device);
  RowRange rows = share.own;
  if (has_above(index)) rows.begin = above(share).end;
  if (has_below(index)) rows.end = below(share).begin;
  share.field.sweep(from, rows, sweeps, config.band_rows, share.rest.get());
  share.rest_done.mark(share.rest.get());
}

template <class T>
void Jacobi<T>::Parts::send_halos(std::size_t index, int from) {
  if (shares.size() == 1) return;
  const Share<T>& share = *shares[index];
  const CurrentDevice current_device(share.device);
  const auto send = [&](RowRange rows, const Share<T>& to) {
    to.seams_done.hold(share.seams.get());
    check(cudaMemcpyPeerAsync(to.field.row(1 - from, rows.begin), to.device, share.field.row(1 - from, rows.begin), share.device,
                              static_cast<std::size_t>(rows.count()) * share.field.row_bytes(), share.seams.get()),
          "cudaMemcpyPeerAsync");
  };
  if (has_above(index)) send(above(share), *shares[index - 1]);
  if (has_below(index)) send(below(share), *shares[index + 1]);
  share.halos_sent.mark(share.seams.get());
}

// The rows of both fields may be written again when the rest is marked as done.
template <class T>
void Jacobi<T>::Parts::take_changes(int from, std::size_t norm) {
  for (const auto& share : shares) {
    const CurrentDevice current_device(share->device);
    const cudaStream_t stream = share->rest.get();
    share->seams_done.hold(stream);
    share->field.changes(from, share->own, share->changes_of(norm), stream);
    share->rest_done.mark(stream);
    check(cudaMemcpyAsync(share->host_changes_of(norm), share->changes_of(norm),
                          static_cast<std::size_t>(share->own.count()) * sizeof(RowChange), cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync");
    share->norm_here[norm % kNormsUnderWay].mark(stream);
  }
}

// In the order of the rows, whichever GPU swept them.
template <class T>
void Jacobi<T>::Parts::add_rows(std::size_t norm, stencil::ChangeNorm& result) const {
  double max = 0.0;
  double square_sum = 0.0;
  for (const auto& share : shares) {
    share->norm_here[norm % kNormsUnderWay].wait();
    const RowChange* const changes = share->host_changes_of(norm);
    for (std::int32_t r = 0; r < share->own.count(); ++r) {
      max = std::max(max, changes[r].max);
      square_sum += changes[r].square_sum;
    }
  }
  if (std::isnan(square_sum)) max = square_sum = std::numeric_limits<double>::quiet_NaN();
  result.max = max;
  result.l2 = std::sqrt(square_sum);
}

template <class T>
void Jacobi<T>::Parts::wait() const {
  for (const auto& share : shares) {
    share->seams.wait();
    share->rest.wait();
  }
}

template class Jacobi<float>;
template class Jacobi<double>;

}  // namespace nanet::gpu
