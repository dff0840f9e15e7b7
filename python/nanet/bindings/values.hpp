// SPDX-License-Identifier: Apache-2.0
// From what Python has read of a file to a piece of configuration.
#pragma once

#include "bindings.hpp"
#include "nanet/config/value.hpp"

namespace nanet::bindings {

// None, bool, int, float, str, list and dict with texts as keys. Throws SetupError for anything else.
config::Value value_of(nb::handle object);

// The other way round.
nb::object python_of(const config::Value& value);

}  // namespace nanet::bindings
