// SPDX-License-Identifier: Apache-2.0
// What carries things from s_clk to m_clk, side by side: one build for several tests. Both resets come from `rst`.
module bench_top #(
    parameter int WIDTH = 20,
    parameter int DEPTH = 16
) (
    input logic s_clk,
    input logic m_clk,
    input logic rst
);
  logic s_rst, m_rst;
  reset_sync s_reset (
      .clk(s_clk),
      .rst_async(rst),
      .rst(s_rst)
  );
  reset_sync m_reset (
      .clk(m_clk),
      .rst_async(rst),
      .rst(m_rst)
  );

  if (1) begin : g_async_fifo
    logic [WIDTH-1:0] s_axis_tdata, m_axis_tdata;
    logic s_axis_tvalid, s_axis_tready, m_axis_tvalid, m_axis_tready;
    logic [$clog2(DEPTH):0] m_more;
    async_fifo #(
        .WIDTH(WIDTH),
        .DEPTH(DEPTH)
    ) dut (
        .*,
        .s_data (s_axis_tdata),
        .s_valid(s_axis_tvalid),
        .s_ready(s_axis_tready),
        .m_data (m_axis_tdata),
        .m_valid(m_axis_tvalid),
        .m_ready(m_axis_tready)
    );
  end

  if (1) begin : g_pulse_crossing
    logic [1:0] s_pulses;
    logic m_pulse, m_ready;
    pulse_crossing #(.WAITING_BITS(6)) dut (.*);
    // Counted here, which costs the bench nothing in each cycle.
    int came, left;
    always_ff @(posedge s_clk) came <= s_rst ? 0 : came + 32'(s_pulses);
    always_ff @(posedge m_clk) left <= m_rst ? 0 : left + 32'(m_pulse && m_ready);
  end

  if (1) begin : g_cycle_crossing
    logic [7:0] s_cycles, m_halfway, m_cycles;
    always_ff @(posedge s_clk) s_cycles <= s_rst ? '0 : s_cycles + 1'b1;
    cycle_crossing #(.BITS(8)) dut (.*);
    assign m_cycles = 8'(gray_pkg::number(16'(m_halfway)));
  end

  if (1) begin : g_clock_watch
    logic m_runs;
    km3_clock_watch #(
        .EDGES(8),
        .SILENCE_CYCLES(64)
    ) dut (
        .*
    );
  end

  if (1) begin : g_sync_bits
    logic [3:0] s_bits, m_bits;
    sync_bits #(.WIDTH(4)) dut (.*);
  end
endmodule
