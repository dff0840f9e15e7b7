// SPDX-License-Identifier: Apache-2.0
// Where a thread runs and what it is called.
#pragma once

#include <string_view>

namespace nanet::flow {

// Ties the calling thread to one core and checks that it is so. Throws SetupError when it cannot: a thread that was asked to be
// pinned does not go on unpinned.
void pin_this_thread(int core);

// The name that top, perf and a debugger show; the kernel keeps the first 15 bytes.
void name_this_thread(std::string_view name);

}  // namespace nanet::flow
