// SPDX-License-Identifier: Apache-2.0
// The serialiser's divider begins at any bit after a reset. It is moved until it takes its words TARGET steps after the edge of the word clock, always the same: so what
// is sent has one latency, and no buffer is needed between the two.
//
// Contract
//   * km3_phase says the phase of the divider behind the word clock. A pulse of `slide` makes one period of the divider a bit longer, so the phase two steps more.
//   * `aligned`: two readings in a row were TARGET, or one step beside it where the steps are odd. Once aligned it stays so; another reading is a pulse of error_phase, and the search
//     begins anew.
//   * Of a divider that was moved all the way TRIES times and is not there, `failed` tells; the search goes on.
module km3_tx_align #(
    parameter int STEPS = 40,
    parameter int TARGET = 20,
    parameter int GAP_CYCLES = 8,
    localparam int BITS = $clog2(STEPS)
) (
    input logic clk,  // of km3_phase
    input logic rst,

    input  logic            valid,
    input  logic [BITS-1:0] phase,
    output logic            slide,

    output logic            aligned,
    output logic            error_phase,
    output logic            failed,
    output logic [BITS-1:0] moved         // bits, since reset
);
  localparam int SETTLE_CYCLES = 2 * STEPS + 8;  // until no reading is of before
  localparam int TRIES = 4;
  if (STEPS % 2 != 0 || STEPS < 8 || STEPS > 120 || TARGET >= STEPS || GAP_CYCLES < 4 || GAP_CYCLES > 200) begin : g_check
    $fatal(1, "STEPS must be even and 8 to 120, TARGET below it, GAP_CYCLES 4 to 200 (instance %m)");
  end

  logic [7:0] waits;
  logic [BITS-1:0] left;
  logic confirmed;
  logic [2:0] tries;
  wire [BITS:0] short_of = int'(phase) <= TARGET ? (BITS + 1)'(TARGET) - {1'b0, phase} : (BITS + 1)'(TARGET + STEPS) - {1'b0, phase};
  wire there = short_of <= (BITS + 1)'(1);
  always_ff @(posedge clk) begin
    {slide, error_phase, failed} <= '0;
    if (waits != '0) waits <= waits - 1'b1;
    if (left != '0 && waits == '0) begin
      slide <= 1'b1;
      left <= left - 1'b1;
      moved <= int'(moved) == STEPS / 2 - 1 ? '0 : moved + 1'b1;
      waits <= left == BITS'(1) ? 8'(SETTLE_CYCLES) : 8'(GAP_CYCLES);
    end else if (valid && waits == '0) begin
      if (there) begin
        confirmed <= 1'b1;
        aligned   <= confirmed;
        tries     <= '0;
      end else begin
        error_phase <= aligned;
        {confirmed, aligned} <= '0;
        left <= short_of[BITS:1];
        tries <= int'(tries) == TRIES ? '0 : tries + 1'b1;
        failed <= int'(tries) == TRIES;
      end
    end
    if (rst) begin
      {slide, error_phase, failed, aligned, confirmed} <= '0;
      {left, moved} <= '0;
      tries <= '0;
      waits <= 8'(SETTLE_CYCLES);
    end
  end

  // --- what must hold ---
  always_ff @(posedge clk) if (!rst) assert (int'(moved) < STEPS / 2);
endmodule
