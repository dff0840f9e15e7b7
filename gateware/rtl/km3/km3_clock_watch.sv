// SPDX-License-Identifier: Apache-2.0
// Whether a clock runs, as another one sees it.
//
// Contract
//   * m_runs goes up after 2 * EDGES edges of s_clk, at most, and some cycles of m_clk, and down some SILENCE_CYCLES of m_clk after the last edge. While s_rst is
//     up no edge counts.
//   * s_clk has at most EDGES / 2 edges in a cycle of m_clk, and at least EDGES in SILENCE_CYCLES.
module km3_clock_watch #(
    parameter int EDGES = 8,  // a power of two from 2
    parameter int SILENCE_CYCLES = 64
) (
    input  logic s_clk,
    input  logic s_rst,
    input  logic m_clk,
    input  logic m_rst,  // of a flip-flop
    output logic m_runs
);
  localparam int BITS = $clog2(EDGES);
  localparam int SILENCE_BITS = $clog2(SILENCE_CYCLES + 1);
  if (EDGES < 2 || EDGES != 1 << BITS || SILENCE_CYCLES < EDGES + 4) begin : g_check
    $fatal(1, "EDGES must be a power of two from 2, SILENCE_CYCLES at least four more (instance %m)");
  end

  logic [BITS:0] edges;
  always_ff @(posedge s_clk) edges <= s_rst ? '0 : edges + 1'b1;

  logic seen, was, moved;  // moved: since reset, in which it may have stood at either level
  logic [SILENCE_BITS-1:0] silence;
  sync_bits i_seen (
      .s_bits(edges[BITS]),
      .m_clk,
      .m_rst,
      .m_bits(seen)
  );
  always_ff @(posedge m_clk) begin
    was <= seen;
    if (seen != was) moved <= 1'b1;
    if (seen != was && moved) silence <= SILENCE_BITS'(SILENCE_CYCLES);
    else if (silence != '0) silence <= silence - 1'b1;
    m_runs <= silence != '0 && !m_rst;
    if (m_rst) {was, moved, silence} <= '0;
  end
endmodule
