// SPDX-License-Identifier: Apache-2.0
#include "model/torus/team.hpp"

#include <algorithm>
#include <utility>

namespace nanet::torus {
namespace {

unsigned useful(unsigned threads, std::size_t nodes) {
  return static_cast<unsigned>(std::clamp<std::size_t>(threads, 1, std::max<std::size_t>(nodes, 1)));
}

}  // namespace

Team::Team(unsigned threads, std::size_t nodes)
    : nodes_(nodes), all_there_(useful(threads, nodes)), errors_(useful(threads, nodes)) {
  for (unsigned thread = 1; thread < errors_.size(); ++thread) others_.emplace_back(&Team::live, this, thread);
}

Team::~Team() {
  work_ = nullptr;
  all_there_.arrive_and_wait();
  for (std::thread& other : others_) other.join();
}

void Team::live(unsigned thread) {
  while (true) {
    all_there_.arrive_and_wait();
    if (work_ == nullptr) return;
    do_share(thread);
  }
}

void Team::run(std::uint64_t begin, std::uint64_t end, std::uint64_t ahead_cycles, const Work& work) {
  begin_ = begin;
  end_ = end;
  ahead_cycles_ = ahead_cycles;
  work_ = &work;
  all_there_.arrive_and_wait();
  do_share(0);
  for (std::exception_ptr& error : errors_) {
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
  }
}

// A thread whose work has thrown still meets the others, which would wait for it for ever.
void Team::do_share(unsigned thread) {
  const std::size_t threads = errors_.size(), first = nodes_ * thread / threads, last = nodes_ * (thread + 1) / threads;
  const std::uint64_t end = end_, ahead_cycles = ahead_cycles_;
  const Work& work = *work_;
  for (std::uint64_t from = begin_; from < end; from += ahead_cycles) {
    try {
      for (std::size_t n = first; n < last && !errors_[thread]; ++n) work(n, from, std::min(from + ahead_cycles, end));
    } catch (...) {
      errors_[thread] = std::current_exception();
    }
    all_there_.arrive_and_wait();
  }
}

}  // namespace nanet::torus
