// SPDX-License-Identifier: Apache-2.0
#include "rdma/proof.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include "nanet/setup_error.hpp"

namespace nanet::rdma::detail {

Challenge new_challenge() {
  Challenge challenge;
  if (getrandom(challenge.data(), challenge.size(), 0) != static_cast<ssize_t>(challenge.size()))
    throw SetupError("no random numbers", "the kernel gives none", "see whether getrandom is forbidden here");
  return challenge;
}

Proof prove(Role role, std::uint64_t token, const Conversation& said) {
  struct {
    char purpose[12] = {'n', 'a', 'n', 'e', 't', ' ', 'r', 'd', 'm', 'a', 0, 0};
    std::uint16_t version = 0;
    char role = 0;
    std::uint8_t name_bytes = 0;
    Challenge of_target{}, of_connection{};
    char name[NAME_BYTES_MAX] = {};
  } text;
  static_assert(sizeof text == 12 + 4 + 32 + 32 + NAME_BYTES_MAX);
  text.version = said.version;
  text.role = static_cast<char>(role);
  text.name_bytes = static_cast<std::uint8_t>(said.region.size());
  text.of_target = said.of_target;
  text.of_connection = said.of_connection;
  said.region.copy(text.name, NAME_BYTES_MAX);
  Proof proof;
  unsigned bytes = 0;
  if (!HMAC(EVP_sha256(), &token, sizeof token, reinterpret_cast<const unsigned char*>(&text), sizeof text,
            reinterpret_cast<unsigned char*>(proof.data()), &bytes) ||
      bytes != proof.size())
    throw SetupError("a token cannot be proved", "OpenSSL has no HMAC-SHA256 here", "see openssl list -mac-algorithms");
  return proof;
}

bool is_same(const Proof& one, const Proof& other) { return CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0; }

}  // namespace nanet::rdma::detail
