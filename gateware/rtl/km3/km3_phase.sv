// SPDX-License-Identifier: Apache-2.0
// By how much the edges of one clock come after those of another of the same rate: a digital dual mixer. A third clock samples both, whose period is one in STEPS
// longer, so that its edges move along theirs by a step of a STEPS-th of a cycle.
//
// Contract
//   * Both clocks come as a flip-flop that changes at each of their edges. clk has STEPS periods in the time of STEPS + 1 of theirs.
//   * `phase`: b after a, in steps from 0 to STEPS - 1. A pulse of `valid` with each, every STEPS cycles; none while one of the two stands, or moves.
module km3_phase #(
    parameter int STEPS = 40,
    localparam int BITS = $clog2(STEPS)
) (
    input logic clk,
    input logic rst,

    input  logic            a_toggle,
    input  logic            b_toggle,
    output logic            valid,
    output logic [BITS-1:0] phase
);
  if (STEPS < 8 || STEPS > 255) begin : g_check
    $fatal(1, "STEPS must be 8 to 255 (instance %m)");
  end

  logic [1:0] now, last, still;
  sync_bits #(
      .WIDTH(2)
  ) i_sync (
      .s_bits({b_toggle, a_toggle}),
      .m_clk (clk),
      .m_rst (rst),
      .m_bits(now)
  );
  // Between two samples lies one edge of each; once in STEPS samples two, after which the level is as it was.
  always_ff @(posedge clk) begin
    last <= now;
    still <= ~(now ^ last);
    if (rst) still <= '0;
  end

  // Cycles since that of each. Another number than STEPS between two of them: it stands, or was moved.
  logic [1:0][7:0] since;
  logic steady;  // a: its last beat was STEPS after the one before
  wire [1:0] beats = still;
  always_ff @(posedge clk) begin
    for (int c = 0; c < 2; c++) begin
      if (beats[c]) since[c] <= 8'd1;
      else if (since[c] != '1) since[c] <= since[c] + 1'b1;
    end
    if (beats[0]) steady <= int'(since[0]) == STEPS;
    valid <= beats[1] && int'(since[1]) == STEPS && (beats[0] ? int'(since[0]) == STEPS : steady && int'(since[0]) < STEPS) && !rst;
    phase <= beats[0] ? '0 : BITS'(since[0]);
    if (rst) begin
      since <= '1;
      steady <= 1'b0;
    end
  end

  // --- what must hold ---
  always_ff @(posedge clk) if (!rst && valid) assert (int'(phase) < STEPS);
endmodule
