// SPDX-License-Identifier: Apache-2.0
// Bits of another clock, in this one: two flip-flops in a row for each, zero in reset.
//
// Contract: each bit of s_bits comes straight from a flip-flop. The bits may arrive in different cycles; so they have nothing to do with each
// other, or are a Gray code, of which one bit at most changes at each edge of its own clock.
module sync_bits #(
    parameter int WIDTH = 1
) (
    input  logic [WIDTH-1:0] s_bits,
    input  logic             m_clk,
    input  logic             m_rst,   // of reset_sync, or of a flip-flop
    output logic [WIDTH-1:0] m_bits
);
  // verilator lint_off SYNCASYNCNET
  (* async_reg = "true" *)logic [WIDTH-1:0] first, second;
  assign m_bits = second;

  always_ff @(posedge m_clk or posedge m_rst) begin
    if (m_rst) begin
      first  <= '0;
      second <= '0;
    end else begin
      first  <= s_bits;
      second <= first;
    end
  end
endmodule
