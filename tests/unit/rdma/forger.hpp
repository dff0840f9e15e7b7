// SPDX-License-Identifier: Apache-2.0
// A peer that says and does what this library's connections never would: an endpoint to a target and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rdma/socket_address.hpp"
#include "rdma/worker_state.hpp"
#include "target_process.hpp"

namespace nanet::test {

class Forger {
 public:
  Forger(const std::string& transports, std::uint16_t port) : worker_({.transports = transports}) {
    const rdma::detail::SocketAddress to = rdma::detail::resolve(target_address(), port, 0);
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr = {reinterpret_cast<const sockaddr*>(&to.storage), to.bytes};
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = [](void*, ucp_ep_h, ucs_status_t) {
    };  // the transfer says it too; without a handler UCX would end the process
    rdma::detail::check(ucp_ep_create(state().get(), &params, &endpoint_), "no endpoint", "");
  }
  ~Forger() {
    state().close(endpoint_, UCP_EP_CLOSE_FLAG_FORCE);
    state().run_until([this] { return !state().is_closing(); }, rdma::detail::deadline_ns(5000));
  }
  Forger(const Forger&) = delete;
  Forger& operator=(const Forger&) = delete;

  void send(std::vector<std::byte> message) {
    state().send(endpoint_, rdma::detail::QUESTION_ID, std::move(message), UCP_AM_SEND_FLAG_REPLY);
  }

  // What the target answers; empty if it does not within that time.
  std::vector<std::byte> ask(std::vector<std::byte> message, std::uint64_t id, std::uint32_t timeout_ms = 5000) {
    std::vector<std::byte> answer;
    state().answers.emplace(id, &answer);
    send(std::move(message));
    state().run_until([&] { return !answer.empty(); }, rdma::detail::deadline_ns(timeout_ms));
    state().answers.erase(id);
    return answer;
  }

  rdma::detail::WorkerState& state() { return *worker_.state(); }
  ucp_ep_h endpoint() const { return endpoint_; }

 private:
  rdma::Worker worker_;
  ucp_ep_h endpoint_ = nullptr;
};

}  // namespace nanet::test
