// SPDX-License-Identifier: Apache-2.0
// Refused: output b_out is of b_clk and comes from a_clk
module output_of_another (
    input  logic a_clk,
    input  logic b_clk,
    input  logic a_in,
    output logic b_out
);
  always_ff @(posedge a_clk) b_out <= a_in;
  wire unused = b_clk;
endmodule
