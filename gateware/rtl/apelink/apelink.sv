// SPDX-License-Identifier: Apache-2.0
// One end of a link, above the lanes: packets in and out, words of the link out and in. docs/design/apelink.md
//
// Contract
//   * `link_up` is the same at both ends: each sees it down before either sees it up again. The counts of both begin anew then.
//   * m_axis has a stream for each virtual channel, 0 low; a packet's header says its virtual channel, and its low 120 bits are all that is of use.
module apelink #(
    parameter int DATA_WORDS = 1024,
    parameter int HEADER_WORDS = 256,
    parameter int CREDIT_PERIOD_WORDS = 192,
    parameter int SKIP_PERIOD_WORDS = 0,
    parameter int SILENCE_CYCLES = 2 * CREDIT_PERIOD_WORDS
) (
    input logic clk,
    input logic rst,

    input  logic link_up,
    output logic silent,
    input  logic [7:0] node_state,       // 0 when it is well: told to the other end
    output logic [7:0] neighbour_state,  // and what that tells

    input  logic [127:0] s_axis_tdata,
    input  logic         s_axis_tvalid,
    output logic         s_axis_tready,
    input  logic         s_axis_tlast,
    output apenet_pkg::counts_t space_0,
    output apenet_pkg::counts_t space_1,

    output logic [255:0] m_axis_tdata,
    output logic [  1:0] m_axis_tvalid,
    input  logic [  1:0] m_axis_tready,
    output logic [  1:0] m_axis_tlast,

    output logic         link_tx_valid,
    input  logic         link_tx_ready,
    output logic [127:0] link_tx_data,
    input  logic         link_rx_valid,
    input  logic [127:0] link_rx_data,

    output logic       count_sent,
    output logic       drop_down,
    output logic       count_good,
    output logic       count_flagged,
    output logic       error_crc,
    output logic       error_cut,
    output logic       drop_header,
    output logic [9:0] drop_lost,
    output logic       noise,
    output logic       header_corrected
);
  apenet_pkg::counts_t own_limit_0, own_limit_1, told_limit_0, told_limit_1;
  logic told;

  apelink_tx #(
      .CREDIT_PERIOD_WORDS(CREDIT_PERIOD_WORDS),
      .SKIP_PERIOD_WORDS(SKIP_PERIOD_WORDS)
  ) i_tx (
      .m_valid(link_tx_valid),
      .m_ready(link_tx_ready),
      .m_data(link_tx_data),
      .*
  );
  apelink_rx #(
      .DATA_WORDS(DATA_WORDS),
      .HEADER_WORDS(HEADER_WORDS),
      .SILENCE_CYCLES(SILENCE_CYCLES)
  ) i_rx (
      .s_valid(link_rx_valid),
      .s_data(link_rx_data),
      .*
  );
endmodule
