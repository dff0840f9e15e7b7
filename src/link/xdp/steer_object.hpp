// SPDX-License-Identifier: Apache-2.0
// The compiled XDP program (steer.bpf.c), as an ELF file in memory. Made by back_end.cmake.
#pragma once

#include <span>

namespace nanet::link {

extern const std::span<const unsigned char> kSteerObject;

}  // namespace nanet::link
