// SPDX-License-Identifier: Apache-2.0
// The number of the cycle of one clock, as another clock sees it.
//
// Contract: gray_pkg::number(m_halfway), in a cycle of m_clk or kept in a register since, is the number of the cycle of s_clk in which the edge of m_clk before the
// last one fell, modulo 2 ** BITS. Where that edge falls together with one of s_clk it is the number before or after: at most one cycle of s_clk too low, never
// too high. s_cycles goes up by one at each edge.
module cycle_crossing #(
    parameter int BITS = 16  // at most 16
) (
    input logic            s_clk,
    input logic            s_rst,
    input logic [BITS-1:0] s_cycles,

    input  logic            m_clk,
    input  logic            m_rst,
    output logic [BITS-1:0] m_halfway
);
  // The Gray code of the number, in the same cycle as the number itself.
  logic [BITS-1:0] s_gray, m_gray;
  wire [BITS-1:0] s_next = s_cycles + 1'b1;
  always_ff @(posedge s_clk) s_gray <= s_rst ? '0 : s_next ^ (s_next >> 1);

  sync_bits #(
      .WIDTH(BITS)
  ) to_reader (
      .s_bits(s_gray),
      .m_clk,
      .m_rst,
      .m_bits(m_gray)
  );
  assign m_halfway = BITS'(gray_pkg::half(16'(m_gray)));
endmodule
