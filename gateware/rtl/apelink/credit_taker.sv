// SPDX-License-Identifier: Apache-2.0
// How many words may still be sent: the sender's half of the credits of one memory. Nothing, until the first limit has come.
module credit_taker (
    input logic clk,
    input logic rst,

    input  logic                              sends,      // a word
    input  logic                              told,
    input  logic [apenet_pkg::COUNT_BITS-1:0] told_limit,
    output logic [apenet_pkg::COUNT_BITS-1:0] sent,
    output logic [apenet_pkg::COUNT_BITS-1:0] space
);
  logic [apenet_pkg::COUNT_BITS-1:0] limit;
  assign space = limit - sent;
  always_ff @(posedge clk) begin
    if (sends) sent <= sent + 1'b1;
    if (told) limit <= told_limit;
    if (rst) begin
      sent  <= '0;
      limit <= '0;
    end
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) assert (!sends || space != '0);
  end
endmodule
