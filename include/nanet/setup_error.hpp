// SPDX-License-Identifier: Apache-2.0
// The one exception of set-up code. Its text reads: problem (why) suggestion. Data errors never throw: they are counted.
#pragma once

#include <stdexcept>
#include <string>

namespace nanet {

class SetupError : public std::runtime_error {
 public:
  SetupError(const std::string& problem, const std::string& why, const std::string& suggestion)
      : std::runtime_error(problem + " (" + why + ") " + suggestion) {}

  // The same, with where it comes from before it.
  SetupError(const std::string& from, const SetupError& error) : std::runtime_error(from + ": " + error.what()) {}
};

}  // namespace nanet
