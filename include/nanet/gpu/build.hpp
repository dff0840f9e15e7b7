// SPDX-License-Identifier: Apache-2.0
// What the GPU code of this build was compiled for. Asks no driver, so it answers on a machine without a GPU too.
#pragma once

namespace nanet::gpu {

struct Build {
  int cuda_version;           // of the runtime linked in: 1000 * major + 10 * minor
  const char* architectures;  // as CMake names them, separated by blanks: "80-real 90" is machine code for 8.x and 9.0, and PTX of 9.0
};

Build build();

}  // namespace nanet::gpu
