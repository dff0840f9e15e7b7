// SPDX-License-Identifier: Apache-2.0
// tx_fifo under any packets and any pauses: it never overruns, each word leaves as it was written, its halves in order, and with its own packet, whose bytes
// and meta are those that came, in their order; a packet begins when all of it is there, has no gap, and ends with its last byte; one marked bad leaves no
// word, and nothing but it is said to be bad.
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
  // Any one packet: what comes out of it is what went in.
  logic [1:0] watched;  // its number, and stays
  logic [8:0] watched_packet;
  logic is_head;
  wire [1:0] place = watched - dut.packets_out;
  wire loads = (!dut.head_valid || dut.ends) && dut.packets_in != dut.packets_out;
  logic [5:0] words_out;  // of 8 bytes, of the packet that leaves
  wire [5:0] bytes_left = m_meta_bytes - {words_out[2:0], 3'd0};
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
    watched <= watched;
    if (take && s_axis_tlast && dut.packets_in == watched) watched_packet <= {s_axis_tuser, s_meta_bytes, s_meta};
    if (loads) is_head <= dut.packets_out == watched;
    if (m_axis_tvalid && m_axis_tready) words_out <= m_axis_tlast ? '0 : words_out + 6'd1;
    if (rst) {s_inside, taken, out_inside, waits, is_head, words_out} <= '0;
    else begin
      assert (!out_inside || m_axis_tvalid);                         // no gap
      assert (!waits || (m_axis_tvalid && m_axis_tdata == data));     // a waiting word stays
      assert (out_inside == (dut.in_packet || dut.high));
      assert (place >= 2'(dut.packets_in - dut.packets_out) || dut.packets[watched[0]] == watched_packet);
      assert (!is_head || !dut.head_valid || (watched == dut.packets_out - 2'd1 && {dut.head_bad, m_meta_bytes, m_meta} == watched_packet));
      assert (m_bad_valid == (dut.head_valid && dut.head_bad) && !(m_bad_valid && m_axis_tvalid));
      if (m_axis_tvalid) begin
        assert (m_axis_tdata == (words_out[0] ? dut.word[127:64] : dut.word[63:0]));
        assert (m_axis_tlast == (bytes_left <= 6'd8));
        assert (m_axis_tkeep == (bytes_left >= 6'd8 ? 8'hFF : ~(8'hFF << bytes_left)));
      end
      assert (words_out[0] == dut.high && (out_inside == (words_out != '0)));
      if (dut.in_packet) assert (dut.left_before == m_meta_bytes - {words_out[2:1], 4'd0});
      if (out_inside) assert ({words_out, 3'd0} < 9'(m_meta_bytes) && dut.head_valid && !dut.head_bad);
      assert (dut.in_packet == (words_out > 6'd1));
      assert (s_inside || taken == '0);
      assert (!s_inside || taken < 4'((bytes + 6'd15) >> 4));
      assert (4'(3'(dut.written - dut.whole)) == taken);
    end
  end
endmodule
