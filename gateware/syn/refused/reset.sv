// SPDX-License-Identifier: Apache-2.0
// Refused: is of b_clk and its reset is not
module reset (
    input  logic a_clk,
    input  logic b_clk,
    input  logic a_in,
    input  logic b_in,
    output logic b_out
);
  logic a_rst;
  always_ff @(posedge a_clk) a_rst <= a_in;
  always_ff @(posedge b_clk or posedge a_rst) begin
    if (a_rst) b_out <= 1'b0;
    else b_out <= b_in;
  end
endmodule
