// SPDX-License-Identifier: Apache-2.0
// Counts every allocation of the test program that includes this, which exactly one of its files does: an operator new can
// be replaced once a program. All forms are replaced, so that no memory is taken by one allocator and freed by another.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace nanet::test {

inline std::atomic<std::uint64_t> allocation_count{0};

inline void* count_allocation(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) noexcept {
  allocation_count.fetch_add(1, std::memory_order_relaxed);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

inline void* count_allocation_or_throw(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
  if (void* memory = count_allocation(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace nanet::test

void* operator new(std::size_t bytes) { return nanet::test::count_allocation_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return nanet::test::count_allocation_or_throw(bytes); }
void* operator new(std::size_t bytes, std::align_val_t a) {
  return nanet::test::count_allocation_or_throw(bytes, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return nanet::test::count_allocation_or_throw(bytes, static_cast<std::size_t>(a));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return nanet::test::count_allocation(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return nanet::test::count_allocation(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
