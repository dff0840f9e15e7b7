// SPDX-License-Identifier: Apache-2.0
// Proofs that both ends of a set-up channel know one token, which itself is never sent: HMAC-SHA256 over random challenges of both.
//
// The connecting end proves itself first, so that a stranger who connects learns nothing that a token could be guessed from. The role is part of
// what is signed: what one end said proves nothing for the other. What comes after the proofs is neither encrypted nor signed: whoever can
// change packets between the two ends can change it.
#pragma once

#include <cstdint>
#include <string_view>

#include "rdma/messages.hpp"

namespace nanet::rdma::detail {

enum class Role : char { connects = 'c', listens = 'l' };

struct Conversation {
  std::uint16_t version = MESSAGE_VERSION;
  Challenge of_target{};
  Challenge of_connection{};
  std::string_view region;  // at most NAME_BYTES_MAX
};

Challenge new_challenge();  // throws SetupError if the kernel has no random numbers
Proof prove(Role role, std::uint64_t token, const Conversation& said);
bool is_same(const Proof& one, const Proof& other);  // takes as long wherever they differ

}  // namespace nanet::rdma::detail
