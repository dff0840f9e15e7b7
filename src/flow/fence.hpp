// SPDX-License-Identifier: Apache-2.0
// One fence for all of the engine. Thread rules: any thread.
#pragma once

namespace nanet::flow {

// As std::atomic_thread_fence(std::memory_order_seq_cst), which GCC refuses under ThreadSanitizer.
inline void full_fence() { __sync_synchronize(); }

}  // namespace nanet::flow
