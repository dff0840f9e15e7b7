// SPDX-License-Identifier: Apache-2.0
// clop_writer under any packets, any time-outs and flushes, any pauses of the bus and a consumer that returns buffers whenever it likes: it
// never writes into a buffer that was not returned, never beyond a buffer's end, and never hands over an empty one. For CLOPs that stay enabled.
module clop_writer_formal #(
    parameter int CLOPS = 2,
    parameter int ADDRESS_BITS = 12,
    parameter int BYTES_MAX = 100
) (
    input logic clk,
    input logic rst,
    input logic [63:0] now_ns,
    input logic [63:0] now_cycles,
    input logic [CLOPS-1:0] cfg_flush,
    input logic [CLOPS-1:0] cfg_footer,
    input logic [CLOPS-1:0][31:0] cfg_buffer_bytes,
    input logic [CLOPS-1:0][16:0] cfg_buffer_count,
    input logic [CLOPS-1:0][15:0] cfg_index_capacity,
    input logic [CLOPS-1:0][15:0] cfg_room_bytes,
    input logic [CLOPS-1:0][31:0] cfg_timeout_ns,
    input logic [CLOPS-1:0][31:0] cfg_consumed,
    input logic s_axis_tvalid,
    input logic s_axis_tlast,
    input logic s_axis_tuser,
    input logic [6:0] s_meta_bytes,
    input logic [0:0] s_meta_clop,
    input logic m_ready,
    input logic done_fault,
    input logic [0:0] done_clop
);
  logic s_axis_tready, m_valid, m_last, idle, count_stored, drop_disabled, drop_too_long, drop_no_buffer, drop_bad;
  logic m_is_completion, count_handed_over;
  logic [63:0] start_cycle, parsed_cycle, begin_cycle, end_cycle, completion_cycle;
  logic [ADDRESS_BITS-1:0] m_address;
  logic [7:0] m_bytes;
  logic [127:0] m_data;
  logic [0:0] m_clop;
  logic [CLOPS-1:0] clop_holds, clop_fault;
  logic [CLOPS-1:0][31:0] clop_handed_over;
  logic [31:0] completions_written;

  clop_writer #(.CLOPS(CLOPS), .ADDRESS_BITS(ADDRESS_BITS), .BYTES_MAX(BYTES_MAX)) dut (
      .cfg_enable('1),
      .cfg_buffers('0),
      .cfg_index('0),
      .cfg_completions('0),
      .cfg_completion_mask('1),
      .s_axis_tdata('0),
      .s_meta_source('0),
      .s_meta_event_count('0),
      .s_meta_arrival_ns(now_ns),
      .s_meta_start_cycle('0),
      .s_meta_parsed_cycle('0),
      .*
  );

  // The settings stand still, and what the consumer has returned is bounded in clop_writer itself.
  logic running;
  logic [CLOPS-1:0] footer;
  logic [CLOPS-1:0][31:0] buffer_bytes, timeout_ns;
  logic [CLOPS-1:0][16:0] buffer_count;
  logic [CLOPS-1:0][15:0] index_capacity, room_bytes;
  logic waits;
  logic [6:0] bytes;
  logic [0:0] clop;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    {footer, buffer_bytes, timeout_ns, buffer_count, index_capacity, room_bytes} <=
        {cfg_footer, cfg_buffer_bytes, cfg_timeout_ns, cfg_buffer_count, cfg_index_capacity, cfg_room_bytes};
    waits <= s_axis_tvalid && !(s_axis_tready && s_axis_tlast) && !rst;
    {bytes, clop} <= {s_meta_bytes, s_meta_clop};
    assume (rst == !running);
    if (running) begin
      assume (
          {footer, buffer_bytes, timeout_ns, buffer_count, index_capacity, room_bytes} ==
          {cfg_footer, cfg_buffer_bytes, cfg_timeout_ns, cfg_buffer_count, cfg_index_capacity, cfg_room_bytes});
    end
    for (int c = 0; c < CLOPS; c++) begin
      assume (cfg_buffer_bytes[c] <= 32'h4000_0000 && cfg_buffer_count[c] >= 17'd2 && cfg_buffer_count[c] <= 17'd65536);
      assume (cfg_index_capacity[c] != '0);
    end
    assume (!s_axis_tvalid || s_meta_bytes != '0);
    if (waits) assume ({bytes, clop} == {s_meta_bytes, s_meta_clop} && s_axis_tvalid);
  end
  initial running = 1'b0;
endmodule
