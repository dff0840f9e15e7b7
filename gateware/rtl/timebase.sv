// SPDX-License-Identifier: Apache-2.0
// Cycles since reset, and nanoseconds of a clock that the driver sets.
//
// A cycle is NS_NUMERATOR / NS_DENOMINATOR ns: 32 / 5 at 156.25 MHz, 8 / 1 at 125 MHz. now_ns never loses a fraction of it.
module timebase #(
    parameter int NS_NUMERATOR = 32,
    parameter int NS_DENOMINATOR = 5
) (
    input logic clk,
    input logic rst,

    input logic        set,    // now_ns becomes `set_ns` in the next cycle
    input logic [63:0] set_ns,

    output logic [63:0] now_ns,
    output logic [63:0] now_cycles
);
  localparam int WHOLE = NS_NUMERATOR / NS_DENOMINATOR;
  localparam int REST = NS_NUMERATOR % NS_DENOMINATOR;
  localparam int REST_BITS = $clog2(2 * NS_DENOMINATOR);

  if (NS_DENOMINATOR < 1 || NS_NUMERATOR < 1) begin : g_check
    $fatal(1, "NS_NUMERATOR and NS_DENOMINATOR must be at least 1 (instance %m)");
  end

  // With the rest of this cycle stands already whether it carries in the next one: so the sum does not wait for that.
  logic [REST_BITS-1:0] rest;  // denominators of a nanosecond
  logic carry;
  wire [REST_BITS-1:0] rest_next = carry ? rest + REST_BITS'(REST) - REST_BITS'(NS_DENOMINATOR) : rest + REST_BITS'(REST);

  always_ff @(posedge clk) begin
    now_cycles <= now_cycles + 64'd1;
    rest <= rest_next;
    carry <= int'(rest_next) + REST >= NS_DENOMINATOR;
    now_ns <= now_ns + 64'(WHOLE) + 64'(carry);
    if (set) begin
      now_ns <= set_ns;
      rest <= '0;
      carry <= 1'b0;
    end
    if (rst) begin
      now_cycles <= '0;
      now_ns <= '0;
      rest <= '0;
      carry <= 1'b0;
    end
  end
endmodule
