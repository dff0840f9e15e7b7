// SPDX-License-Identifier: Apache-2.0
// Nothing: the target that compiles tests/unit/headers.hpp needs a source.
