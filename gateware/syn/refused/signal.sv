// SPDX-License-Identifier: Apache-2.0
// Refused: is of b_clk and takes a signal of a_clk
module signal (
    input  logic a_clk,
    input  logic b_clk,
    input  logic a_in,
    output logic b_out
);
  logic held;
  always_ff @(posedge a_clk) held <= a_in;
  always_ff @(posedge b_clk) b_out <= held && b_out;
endmodule
