// SPDX-License-Identifier: Apache-2.0
// rx_fifo under any packets and any pauses of the reader: a packet that was let in has room to its end, each word leaves once, as it was written, and
// under its own packet's entry; a word that waits stays.
module rx_fifo_formal #(
    parameter int WORDS = 4,
    parameter int BYTES_MAX = 64
) (
    input logic        clk,
    input logic        rst,
    input logic [63:0] s_axis_tdata,
    input logic        s_axis_tvalid,
    input logic        s_axis_tlast,
    input logic        s_axis_tuser,
    input logic [ 1:0] s_meta,
    input logic [ 6:0] s_meta_bytes,
    input logic        m_axis_tready
);
  logic [127:0] m_axis_tdata;
  logic m_axis_tvalid, m_axis_tlast, m_axis_tuser, m_soon, drop_overflow;
  logic [1:0] m_meta;
  logic [6:0] m_meta_bytes;
  rx_fifo #(.WORDS(WORDS), .PACKETS(2), .PLAYOUT_CYCLES(5), .META_BITS(2), .BYTES_MAX(BYTES_MAX)) dut (.*);

  logic running, waits, began, dropped;
  logic [138:0] offered;
  wire [138:0] offers = {m_axis_tdata, m_axis_tlast, m_axis_tuser, m_meta, m_meta_bytes};
  wire [7:0] words_due = dut.in_packet ? dut.words_due : dut.words_whole;
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    assume (s_meta_bytes != '0 && s_meta_bytes <= 7'(BYTES_MAX));
    // A packet has the words that its bytes need, or fewer if it is bad.
    if (s_axis_tvalid) assume (s_axis_tlast ? dut.words_in + 8'd1 == words_due || (s_axis_tuser && dut.words_in < words_due) : dut.words_in + 8'd1 < words_due);
    waits <= m_axis_tvalid && !m_axis_tready && !rst;
    offered <= offers;
    began <= s_axis_tvalid && !dut.in_packet && !rst;
    dropped <= s_axis_tvalid && !dut.in_packet && !dut.fits && !rst;
    if (!rst) begin
      assert (!waits || (m_axis_tvalid && offers == offered));
      assert (drop_overflow == dropped);
      assert (!began || dropped == dut.dropping);
    end
  end
endmodule
