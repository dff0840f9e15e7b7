// SPDX-License-Identifier: Apache-2.0
// The threads that simulate a torus. They live as long as their Team, so that a short turn does not pay for their start.
//
// Thread rules: one thread calls; it works as number 0.
#pragma once

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace nanet::torus {

class Team {
 public:
  // Takes a node from one cycle to before another.
  using Work = std::function<void(std::size_t node, std::uint64_t from, std::uint64_t to)>;

  Team(unsigned threads, std::size_t nodes);  // at least one thread, and no more than there are nodes
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  unsigned size() const { return static_cast<unsigned>(others_.size()) + 1; }
  // All nodes, from `begin` to before `end`; after every ahead_cycles the threads wait for each other. Throws what work threw, when all have stopped.
  void run(std::uint64_t begin, std::uint64_t end, std::uint64_t ahead_cycles, const Work& work);

 private:
  void live(unsigned thread);
  void do_share(unsigned thread);

  std::size_t nodes_;
  std::barrier<> all_there_;
  std::uint64_t begin_ = 0, end_ = 0, ahead_cycles_ = 1;
  const Work* work_ = nullptr;  // none: the threads end
  std::vector<std::exception_ptr> errors_;
  std::vector<std::thread> others_;
};

}  // namespace nanet::torus
