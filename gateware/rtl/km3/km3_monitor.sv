// SPDX-License-Identifier: Apache-2.0
// Proves that a number is always the same: keeps the first, and tells of each that is another.
//
// Contract: `first` is kept from the first `valid` after reset or `forget` on, over everything that happens to the link. `error` is one pulse for each later value that is
// another; `other` is the last of these.
module km3_monitor #(
    parameter int BITS = 32
) (
    input logic clk,
    input logic rst,
    input logic forget,

    input  logic            valid,
    input  logic [BITS-1:0] value,
    output logic            known,
    output logic [BITS-1:0] first,
    output logic            error,
    output logic [BITS-1:0] other
);
  always_ff @(posedge clk) begin
    error <= valid && known && value != first && !forget && !rst;
    if (valid && known && value != first) other <= value;
    if (valid && !known) first <= value;
    if (valid) known <= 1'b1;
    if (rst || forget) known <= 1'b0;
  end
endmodule
