// SPDX-License-Identifier: Apache-2.0
// A frame's time in nanoseconds, and the ticks of 16 ns in the second of another: products with constants, a bit a cycle.
//
// Contract: `start` begins with what stands at `at` and `number` then; `done` is a pulse LATENCY_CYCLES later, and ns and ticks hold until the next start.
module km3_frame_time #(
    parameter int FRAMES_PER_S = 10000
) (
    input logic clk,
    input logic rst,

    input  logic                  start,
    input  km3_pkg::time_t        at,
    input  logic           [15:0] number,
    output logic                  done,
    output logic           [63:0] ns,
    output logic           [25:0] ticks
);
  localparam int LATENCY_CYCLES = 34;
  localparam int FRAME_NS = 1000000000 / FRAMES_PER_S;
  localparam int FRAME_TICKS = 62500000 / FRAMES_PER_S;
  if (FRAME_NS * FRAMES_PER_S != 1000000000 || FRAME_TICKS * FRAMES_PER_S != 62500000) begin : g_check
    $fatal(1, "FRAMES_PER_S must divide a second into whole ticks of 16 ns (instance %m)");
  end

  logic [31:0] seconds, numbers, others;
  logic [63:0] of_second, of_number;
  logic [5:0] left;  // cycles
  always_ff @(posedge clk) begin
    done <= left == 6'd1 && !rst;
    if (start) begin
      seconds <= at.second;
      numbers <= 32'(at.number);
      others <= 32'(number);
      {of_second, of_number, ticks} <= '0;
      left <= 6'd33;
    end else if (left > 6'd1) begin
      seconds <= seconds << 1;
      numbers <= numbers << 1;
      others <= others << 1;
      of_second <= {of_second[62:0], 1'b0} + (seconds[31] ? 64'd1000000000 : 64'd0);
      of_number <= {of_number[62:0], 1'b0} + (numbers[31] ? 64'(FRAME_NS) : 64'd0);
      ticks <= {ticks[24:0], 1'b0} + (others[31] ? 26'(FRAME_TICKS) : 26'd0);
      left <= left - 1'b1;
    end else if (left == 6'd1) begin
      ns <= of_second + of_number;
      left <= '0;
    end
    if (rst) left <= '0;
  end

  // --- what must hold ---
  logic [LATENCY_CYCLES-1:0] begun;
  always_ff @(posedge clk) begin
    begun <= rst ? '0 : {start ? '0 : begun[LATENCY_CYCLES-2:0], start};
    if (!rst) assert (done == begun[LATENCY_CYCLES-1]);
  end
endmodule
