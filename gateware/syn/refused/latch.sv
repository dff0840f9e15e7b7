// SPDX-License-Identifier: Apache-2.0
// Refused: not a flip-flop with one clock
module latch (
    input  logic a_clk,
    input  logic b_clk,
    input  logic a_in,
    output logic a_out
);
  always_latch if (a_clk) a_out = a_in;
  wire unused = b_clk;
endmodule
