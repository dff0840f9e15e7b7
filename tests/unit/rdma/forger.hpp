// SPDX-License-Identifier: Apache-2.0
// A peer that knows the token, and then says and does what this library's connections never would.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rdma/introduction.hpp"
#include "rdma/messages.hpp"
#include "target_process.hpp"

namespace nanet::test {

class Forger {
 public:
  Forger(const std::string& transports, std::uint16_t port, const std::string& region) : worker_(worker_config(transports)) {
    ucx_ = state().calling();
    introduced_ = rdma::detail::introduce(
        state(), ucx_->address(),
        {.address = target_address(), .port = port, .region = region, .token = TARGET_TOKEN, .timeout_ms = 20000},
        rdma::detail::deadline_ns(20000));
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(answer().worker_address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = [](void*, ucp_ep_h, ucs_status_t) {
    };  // the transfer says it too; without a handler UCX would end the process
    rdma::detail::check(ucp_ep_create(ucx_->get(), &params, &endpoint_), "no endpoint", "");
  }
  ~Forger() {
    state().close(endpoint_, UCP_EP_CLOSE_FLAG_FORCE, ucx_);
    state().run_until([this] { return !state().is_closing(); }, rdma::detail::deadline_ns(5000));
  }
  Forger(const Forger&) = delete;
  Forger& operator=(const Forger&) = delete;

  bool send(std::span<const std::byte> message) { return introduced_.socket.send(message); }

  // What the target answers; empty if it closes the channel instead, or is silent for five seconds.
  std::vector<std::byte> ask(std::span<const std::byte> message) {
    using Got = rdma::detail::FrameSocket::Got;
    std::vector<std::byte> answer;
    Got got = send(message) ? Got::nothing : Got::gone;
    const auto is_there = [&] { return got != Got::nothing || (got = introduced_.socket.receive(64, answer)) != Got::nothing; };
    state().run_until(is_there, rdma::detail::deadline_ns(5000));
    return got == Got::frame ? answer : std::vector<std::byte>{};
  }

  rdma::Answer answer() const { return *rdma::parse_answer(introduced_.answer); }
  rdma::detail::WorkerState& state() { return *worker_.state(); }
  ucp_ep_h endpoint() const { return endpoint_; }

 private:
  rdma::Worker worker_;
  std::shared_ptr<rdma::detail::UcxWorker> ucx_;
  rdma::detail::Introduced introduced_;
  ucp_ep_h endpoint_ = nullptr;
};

}  // namespace nanet::test
