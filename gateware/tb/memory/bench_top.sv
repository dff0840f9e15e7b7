// SPDX-License-Identifier: Apache-2.0
// The three modules between device addresses and the bus, side by side: one build for three benches. Their inputs are set from outside.
module bench_top #(
    parameter int PIECE_BYTES = 64,  // of a request, either way
    parameter int TAGS = 4
) (
    input logic clk,
    input logic rst
);
  localparam int REGIONS = 4, ENTRIES = 64, OFFSET_BITS = 24, ADDRESS_BITS = 26, BYTES_MAX = 1000, TIMEOUT_CYCLES = 300;
  localparam int PIECE_BITS = $clog2(PIECE_BYTES + 1), BYTES_BITS = $clog2(BYTES_MAX + 1);

  logic region_write, region_valid, entry_write;
  logic [1:0] region_index;
  logic [4:0] region_page_shift;
  logic [5:0] region_first, entry_index;
  logic [6:0] region_count;
  logic [63:0] entry_data;

  if (1) begin : g_page_table
    logic enable, s_valid, s_is_write, m_valid, m_fault, m_gpu;
    logic [ADDRESS_BITS-1:0] s_address;
    logic [63:0] m_address;
    page_table #(.REGIONS(REGIONS), .ENTRIES(ENTRIES), .OFFSET_BITS(OFFSET_BITS)) dut (.*);
  end

  if (1) begin : g_dma_write
    logic s_valid, s_second, s_ready, s_last, s_cut, done, done_fault, m_valid, m_ready, m_first, m_last, m_gpu;
    logic [ADDRESS_BITS-1:0] s_address;
    logic [BYTES_BITS-1:0] s_bytes;
    logic [127:0] s_data, m_data;
    logic [2:0] s_tag, done_tag;
    logic [63:0] m_address;
    logic [PIECE_BITS-1:0] m_bytes;
    logic [15:0] m_keep;
    dma_write #(
        .PAYLOAD_BYTES_MAX(PIECE_BYTES),
        .WRITE_BYTES_MAX(BYTES_MAX),
        .REGIONS(REGIONS),
        .ENTRIES(ENTRIES),
        .OFFSET_BITS(OFFSET_BITS),
        .TAG_BITS(3)
    ) dut (.*);
  end

  if (1) begin : g_dma_read
    logic s_valid, s_ready, m_valid, m_ready, m_gpu, answer_valid, answer_last, answer_error, read_fault, read_error, read_stuck;
    logic m_axis_tvalid, m_axis_tready, m_axis_tlast, m_axis_tuser;
    logic [ADDRESS_BITS-1:0] s_address;
    logic [BYTES_BITS-1:0] s_bytes;
    logic [63:0] m_address;
    logic [PIECE_BITS-1:0] m_bytes;
    logic [$clog2(TAGS)-1:0] m_tag, answer_tag;
    logic [127:0] answer_data, m_axis_tdata;
    dma_read #(
        .REQUEST_BYTES_MAX(PIECE_BYTES),
        .TAGS(TAGS),
        .READ_BYTES_MAX(BYTES_MAX),
        .REGIONS(REGIONS),
        .ENTRIES(ENTRIES),
        .OFFSET_BITS(OFFSET_BITS),
        .TIMEOUT_CYCLES(TIMEOUT_CYCLES)
    ) dut (.*);
  end
endmodule
