// SPDX-License-Identifier: Apache-2.0
// Refused: has a clock that is no input
module gated_clock (
    input  logic a_clk,
    input  logic b_clk,
    input  logic a_enable,
    input  logic a_in,
    output logic b_out
);
  wire gated = a_clk && a_enable;
  logic held;
  always_ff @(posedge gated) held <= a_in;
  assign b_out = b_clk && held;
endmodule
