// SPDX-License-Identifier: Apache-2.0
// The packet buffers of both directions, side by side: one build for two benches. Their inputs are set from outside.
module bench_top #(
    parameter int WORDS = 64,
    parameter int PACKETS = 8
) (
    input logic clk,
    input logic rst
);
  localparam int META_BITS = 20, BYTES_MAX = 900, BYTES_BITS = $clog2(BYTES_MAX + 1);

  if (1) begin : g_rx_fifo
    logic [63:0] s_axis_tdata;
    logic s_axis_tvalid, s_axis_tlast, s_axis_tuser, m_axis_tvalid, m_axis_tready, m_axis_tlast, m_bad, drop_overflow;
    logic [3:1] m_soon;
    logic [META_BITS-1:0] s_meta, m_meta, drop_meta;
    logic [BYTES_BITS-1:0] s_meta_bytes, m_meta_bytes;
    logic [127:0] m_axis_tdata;
    rx_fifo #(.WORDS(WORDS), .PACKETS(PACKETS), .META_BITS(META_BITS), .BYTES_MAX(BYTES_MAX)) dut (.*);
  end

  if (1) begin : g_tx_fifo
    logic [127:0] s_axis_tdata;
    logic s_axis_tvalid, s_axis_tready, s_axis_tlast, s_axis_tuser, m_axis_tvalid, m_axis_tready, m_axis_tlast, m_bad_valid, m_bad_ready;
    logic [META_BITS-1:0] s_meta, m_meta;
    logic [BYTES_BITS-1:0] s_meta_bytes, m_meta_bytes;
    logic [63:0] m_axis_tdata;
    logic [7:0] m_axis_tkeep;
    tx_fifo #(.WORDS(WORDS), .PACKETS(PACKETS), .META_BITS(META_BITS), .BYTES_MAX(BYTES_MAX)) dut (.*);
  end
endmodule
