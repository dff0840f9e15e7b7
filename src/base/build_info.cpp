// SPDX-License-Identifier: Apache-2.0
// The only source that is compiled again for another commit: version_text.hpp is made by cmake/VersionText.cmake.
#include "nanet/base/build_info.hpp"

#include "version_text.hpp"

#if defined(__clang__)
#define NANET_COMPILER "clang++ " __clang_version__
#else
#define NANET_COMPILER "g++ " __VERSION__
#endif

namespace nanet::base {

const BuildInfo kBuildInfo{"nanet " NANET_VERSION, NANET_VERSION, NANET_COMMIT, NANET_COMPILER, NANET_BUILD_TYPE};

}  // namespace nanet::base
