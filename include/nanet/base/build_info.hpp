// SPDX-License-Identifier: Apache-2.0
// Which nanet this is. Thread rules: constants.
#pragma once

namespace nanet::base {

struct BuildInfo {
  const char* name;        // "nanet 1.2.3": what a module must say that is loaded into this build
  const char* version;     // "1.2.3", or "1.2.3-4-g89abcdef" four commits after that tag
  const char* commit;      // "89abcdef0123", or "unknown"
  const char* compiler;    // "g++ 12.2.0"
  const char* build_type;  // "Release"
};

extern const BuildInfo kBuildInfo;

}  // namespace nanet::base
