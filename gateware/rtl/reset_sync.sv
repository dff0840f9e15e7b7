// SPDX-License-Identifier: Apache-2.0
// A reset for one clock: up from power-on, and as soon as rst_async is, with or without a clock; down RELEASE_CYCLES edges of the clock after rst_async is down.
//
// Contract: rst_async comes from a flip-flop or a pin. The flip-flops of a crossing are reset by rst without a clock, all others at the next edge, as everywhere;
// so when a clock returns, what it drives is reset before it does anything.
module reset_sync #(
    parameter int RELEASE_CYCLES = 3
) (
    input  logic clk,
    input  logic rst_async,
    output logic rst
);
  // verilator lint_off SYNCASYNCNET
  if (RELEASE_CYCLES < 2) begin : g_check
    $fatal(1, "RELEASE_CYCLES must be at least 2 (instance %m)");
  end

  (* async_reg = "true" *)logic [RELEASE_CYCLES-1:0] stages;
  initial stages = '1;  // an FPGA begins so
  assign rst = stages[RELEASE_CYCLES-1];

  always_ff @(posedge clk or posedge rst_async) begin
    if (rst_async) stages <= '1;
    else stages <= {stages[RELEASE_CYCLES-2:0], 1'b0};
  end
endmodule
