// SPDX-License-Identifier: Apache-2.0
// rx_fifo under anything that comes in, announced rightly or not, and any pauses of the reader: a packet that was let in has room to its end, each
// word leaves once, as it was written, and under its own packet's entry, and the packet is bad if it was, or was not as announced; a word that
// waits stays.
module rx_fifo_formal #(
    parameter int WORDS = 4,
    parameter int PACKETS = 2,
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
  logic m_axis_tvalid, m_axis_tlast, m_bad, drop_overflow;
  logic [1:1] m_soon;
  logic [1:0] m_meta, drop_meta;
  logic [6:0] m_meta_bytes;
  rx_fifo #(.WORDS(WORDS), .PACKETS(PACKETS), .PLAYOUT_CYCLES(8), .SOON_CYCLES(1), .META_BITS(2), .BYTES_MAX(BYTES_MAX)) dut (.*);

  // What comes in, counted here: of a packet the words, and what became of it.
  logic running, amid, let_in;
  logic [7:0] words_before, told;
  logic [1:0] meta;
  wire first = s_axis_tvalid && !amid;
  wire ends = s_axis_tvalid && s_axis_tlast;
  wire [7:0] words = (amid ? words_before : 8'd0) + 8'd1;
  wire [7:0] words_told = amid ? told : (8'(s_meta_bytes) + 8'd7) >> 3;
  wire [7:0] words_taken = words_told == '0 ? 8'd1 : words_told;  // at most
  wire lets_in = amid ? let_in : dut.fits;
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    if (s_axis_tvalid) begin
      amid <= !s_axis_tlast;
      words_before <= words;
      told <= words_told;
      let_in <= lets_in;
      if (first) meta <= s_meta;
    end
    if (amid) assume (words_before < 8'd100);  // that the count here does not wrap
    if (rst) amid <= 1'b0;
  end

  // What must be dropped is, and told of once, at its end.
  logic dropped;
  logic [1:0] dropped_meta;
  always_ff @(posedge clk) begin
    dropped <= ends && !s_axis_tuser && !lets_in && !rst;
    dropped_meta <= first ? s_meta : meta;
    if (running && !rst) begin
      assert (drop_overflow == dropped);
      if (drop_overflow) assert (drop_meta == dropped_meta);
      assert (dut.in_packet == amid);
      if (amid) begin
        assert (dut.drop_meta == meta);
        assert (dut.dropping == !let_in);
        assert (words_before != '0);
        assert (dut.storing == (let_in && words_before < (told == '0 ? 8'd1 : told)));
        assert (!dut.storing || 8'(dut.words_left) == told - words_before);
        assert (!dut.storing || dut.half == words_before[0]);
      end else assert (!dut.storing && !dut.half);
    end
  end

  // Any one packet: its entry, its verdict and its words, seen as they leave.
  logic [7:0] number;  // of those let in; it stays
  logic [7:0] came, gone;
  logic came_bad, watched_there;
  logic [1:0] came_meta;
  logic [6:0] came_bytes;
  wire watched_in = (amid ? came - 8'd1 : came) == number;
  wire good = ends && !s_axis_tuser && words == words_told;
  always_ff @(posedge clk) begin
    if (first && lets_in) came <= came + 8'd1;
    if (s_axis_tvalid && lets_in && watched_in) begin
      if (first) {came_meta, came_bytes} <= {s_meta, s_meta_bytes};
      came_bad <= words > words_taken ? 1'b1 : (ends || words == words_taken) && !good;
      watched_there <= 1'b1;
    end
    if (m_axis_tvalid && m_axis_tready && m_axis_tlast) gone <= gone + 8'd1;
    number <= number;
    if (running && !rst && m_axis_tvalid && gone == number) begin
      assert (watched_there);
      assert (m_meta == came_meta && m_meta_bytes == came_bytes);
      if (m_axis_tlast) assert (m_bad == came_bad);
    end
    if (rst) {came, gone, watched_there} <= '0;
  end

  // For induction: where its entry lies.
  wire [7:0] here = came - gone;  // packets let in that have not left
  wire [7:0] place = number - gone;  // of the watched one among these
  wire [0:0] slot = 1'(dut.packets_out) + 1'(place) - 1'(dut.head_valid);
  wire at_head = place == '0 && dut.head_valid;
  wire [24:0] entry = dut.packets[slot];
  always_ff @(posedge clk) begin
    if (running && !rst) begin
      assert (here == 8'(dut.packets_held));
      if (place < here) begin
        assert (watched_there);
        assert ((at_head ? {m_meta, m_meta_bytes} : entry[24:16]) == {came_meta, came_bytes});
        assert (dut.ended_bad[slot] == came_bad);
        if (amid && let_in && watched_in) assert (came_bad == !dut.storing);
      end
      if (amid && let_in) assert (here != '0 || !dut.storing);
    end
  end

  logic waits;
  logic [138:0] offered;
  wire [138:0] offers = {m_axis_tdata, m_axis_tlast, m_axis_tlast && m_bad, m_meta, m_meta_bytes, m_bad};
  always_ff @(posedge clk) begin
    waits <= m_axis_tvalid && !m_axis_tready && !rst;
    offered <= offers;
    // A word that waits stays; that its packet is bad may come to be known.
    if (!rst && waits) assert (m_axis_tvalid && offers[138:1] == offered[138:1] && (m_bad || !offered[0]));
  end
endmodule
