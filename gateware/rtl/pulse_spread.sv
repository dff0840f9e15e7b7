// SPDX-License-Identifier: Apache-2.0
// Makes of numbers that come the pulses that a counter takes: as many as was said, one in each cycle.
//
// Contract
//   * `pulse` comes a cycle after `amount` at the earliest; none is lost while what waits is less than 2**WAITING_BITS. So amounts have to come at one a cycle
//     or fewer, in the mean. More than that makes as many pulses as can wait, and no more.
module pulse_spread #(
    parameter int AMOUNT_BITS = 2,
    parameter int WAITING_BITS = 2
) (
    input logic clk,
    input logic rst,

    input  logic [AMOUNT_BITS-1:0] amount,
    output logic                   pulse
);
  if (AMOUNT_BITS < 1 || WAITING_BITS < AMOUNT_BITS) begin : g_check
    $fatal(1, "WAITING_BITS must be AMOUNT_BITS or more (instance %m)");
  end
  logic [WAITING_BITS-1:0] waiting;
  wire [WAITING_BITS:0] sum = (WAITING_BITS + 1)'(waiting) - (WAITING_BITS + 1)'(pulse) + (WAITING_BITS + 1)'(amount);
  assign pulse = waiting != '0;
  always_ff @(posedge clk) waiting <= rst ? '0 : sum[WAITING_BITS] ? '1 : sum[WAITING_BITS-1:0];
endmodule
