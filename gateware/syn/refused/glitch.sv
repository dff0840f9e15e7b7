// SPDX-License-Identifier: Apache-2.0
// Refused: logic before a synchroniser
module glitch (
    input  logic a_clk,
    input  logic b_clk,
    input  logic b_rst,
    input  logic a_in,
    output logic b_out
);
  logic held, held_before;
  always_ff @(posedge a_clk) {held_before, held} <= {held, a_in};
  sync_bits crossing (
      .s_bits(held && !held_before),
      .m_clk (b_clk),
      .m_rst (b_rst),
      .m_bits(b_out)
  );
endmodule
