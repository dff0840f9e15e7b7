// SPDX-License-Identifier: Apache-2.0
// tx_fifo under any packets and any pauses: it never overruns, each word leaves as it was written and with its own packet, a packet begins when all of
// it is there and then has no gap, one marked bad leaves no word.
module tx_fifo_formal #(
    parameter int WORDS = 4,
    parameter int BYTES_MAX = 48
) (
    input logic         clk,
    input logic         rst,
    input logic [127:0] s_axis_tdata,
    input logic         s_axis_tvalid,
    input logic         s_axis_tlast,
    input logic         s_axis_tuser,
    input logic [  5:0] s_meta_bytes,
    input logic [  1:0] s_meta,
    input logic         m_axis_tready,
    input logic         m_bad_ready
);
  logic s_axis_tready, m_axis_tvalid, m_axis_tlast, m_bad_valid;
  logic [63:0] m_axis_tdata;
  logic [7:0] m_axis_tkeep;
  logic [5:0] m_meta_bytes;
  logic [1:0] m_meta;
  tx_fifo #(.WORDS(WORDS), .PACKETS(2), .META_BITS(2), .BYTES_MAX(BYTES_MAX)) dut (.*);

  // Packets have the words that their bytes need, bad ones as many or fewer; the meta stands still.
  logic running, s_inside;
  logic [5:0] bytes;
  logic [1:0] meta;
  logic [3:0] taken;  // words of the packet that comes in
  wire [3:0] needed = 4'((s_meta_bytes + 6'd15) >> 4);
  wire take = s_axis_tvalid && s_axis_tready;
  logic out_inside, waits;
  logic [63:0] data;
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    {bytes, meta} <= {s_meta_bytes, s_meta};
    assume (s_meta_bytes != '0 && s_meta_bytes <= 6'(BYTES_MAX));
    if (s_inside) assume ({bytes, meta} == {s_meta_bytes, s_meta});
    if (s_axis_tvalid) assume (s_axis_tlast ? taken + 4'd1 == needed || s_axis_tuser : taken + 4'd1 < needed);
    if (take) begin
      s_inside <= !s_axis_tlast;
      taken <= s_axis_tlast ? '0 : taken + 4'd1;
    end
    if (m_axis_tvalid && m_axis_tready) out_inside <= !m_axis_tlast;
    waits <= m_axis_tvalid && !m_axis_tready;
    data <= m_axis_tdata;
    if (rst) {s_inside, taken, out_inside, waits} <= '0;
    else begin
      assert (!out_inside || m_axis_tvalid);                         // no gap
      assert (!waits || (m_axis_tvalid && m_axis_tdata == data));     // a waiting word stays
      assert (out_inside == (dut.in_packet || dut.high));
      assert (s_inside || taken == '0);
      assert (!s_inside || taken < 4'((bytes + 6'd15) >> 4));
      assert (4'(3'(dut.written - dut.whole)) == taken);
    end
  end
endmodule
