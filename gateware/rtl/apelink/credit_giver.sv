// SPDX-License-Identifier: Apache-2.0
// How many words the sender at the other end of a link may have sent, counted as it counts: the receiver's half of the credits of one memory.
//
// Contract
//   * `told`: the sender, between two packets, has sent so many words, and all of them are in the memory (`written` counts them) or will never be. So
//     what was lost on the way gives its room back. Then at most as many words are written as the next packet announces.
//   * The limit never falls, and who keeps to it never sends more words than the memory has room for, however long they and the limits are in flight.
module credit_giver #(
    parameter int WORDS = 1024
) (
    input logic clk,
    input logic rst,

    input  logic                              told,
    input  logic [apenet_pkg::COUNT_BITS-1:0] told_sent,
    input  logic [apenet_pkg::COUNT_BITS-1:0] written,    // into the memory
    input  logic [apenet_pkg::COUNT_BITS-1:0] read,       // out of it
    output logic [apenet_pkg::COUNT_BITS-1:0] limit
);
  logic [apenet_pkg::COUNT_BITS-1:0] offset;  // of the sender's count to ours, and the memory
  assign limit = offset + read;
  always_ff @(posedge clk) begin
    if (told) offset <= told_sent + apenet_pkg::COUNT_BITS'(WORDS) - written;
    if (rst) offset <= apenet_pkg::COUNT_BITS'(WORDS);
  end
endmodule
