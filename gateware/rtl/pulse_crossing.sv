// SPDX-License-Identifier: Apache-2.0
// Pulses of one clock as pulses of another: each one that came leaves once, in a cycle of its own.
//
// Contract: s_pulses things happen in a cycle, none to three. They leave as fast as m_ready and the clocks allow, about one in two cycles of the slower; those
// that have not left wait, up to 2 ** WAITING_BITS - 1. Of more the rest is forgotten: so many in a row come only while m_clk stands.
module pulse_crossing #(
    parameter int WAITING_BITS = 8
) (
    input logic       s_clk,
    input logic       s_rst,
    input logic [1:0] s_pulses,

    input  logic m_clk,
    input  logic m_rst,
    output logic m_pulse,
    input  logic m_ready
);
  logic [WAITING_BITS-1:0] waiting;
  logic leaves;
  wire [WAITING_BITS:0] waiting_next = {1'b0, waiting} + (WAITING_BITS + 1)'(s_pulses) - (WAITING_BITS + 1)'(leaves && waiting != '0);
  always_ff @(posedge s_clk) begin
    waiting <= waiting_next[WAITING_BITS] ? '1 : waiting_next[WAITING_BITS-1:0];
    if (s_rst) waiting <= '0;
  end

  async_fifo #(
      .WIDTH(1),
      .DEPTH(4)
  ) fifo (
      .s_clk,
      .s_rst,
      .s_data (1'b1),
      .s_valid(waiting != '0),
      .s_ready(leaves),
      .m_clk,
      .m_rst,
      .m_data (),
      .m_valid(m_pulse),
      .m_ready,
      .m_more ()
  );
endmodule
