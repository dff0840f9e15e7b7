// SPDX-License-Identifier: Apache-2.0
// Refused: is of b_clk and takes a signal of a_clk
module memory (
    input  logic       a_clk,
    input  logic       b_clk,
    input  logic [3:0] a_address,
    input  logic [7:0] a_data,
    input  logic [3:0] b_address,
    output logic [7:0] b_data
);
  logic [7:0] words[16];
  always_ff @(posedge a_clk) words[a_address] <= a_data;
  always_ff @(posedge b_clk) b_data <= words[b_address];
endmodule
