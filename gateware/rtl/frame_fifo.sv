// SPDX-License-Identifier: Apache-2.0
// A buffer of whole packets: what comes without waiting is stored, and only good packets leave, each without a gap.
//
// Contract
//   * The input never waits. A packet that finds no room is dropped whole (drop_full). One that ends with s_axis_tuser is thrown away
//     (count_bad: whoever set tuser has counted it as dropped). Nothing of either leaves. Every packet gives one pulse of one counter.
//   * A packet begins to leave once it has come in whole, LATENCY_CYCLES after its last word if the buffer was empty, and then offers a word
//     in every cycle.
//   * Sideband is taken with the last word and stands beside the packet from its first word to its last.
//   * A packet of more than DEPTH_WORDS can never leave: it is dropped as drop_full.
module frame_fifo #(
    parameter int DEPTH_WORDS = 512,   // a power of two
    parameter int PACKETS = 64,        // in the buffer at once; a power of two
    parameter int META_BITS = 1,
    parameter int DATA_BITS = 64,
    localparam int KEEP_BITS = DATA_BITS / 8
) (
    input logic clk,
    input logic rst,

    input logic [DATA_BITS-1:0] s_axis_tdata,
    input logic [KEEP_BITS-1:0] s_axis_tkeep,
    input logic                 s_axis_tvalid,
    input logic                 s_axis_tlast,
    input logic                 s_axis_tuser,
    input logic [META_BITS-1:0] s_meta,

    output logic [DATA_BITS-1:0] m_axis_tdata,
    output logic [KEEP_BITS-1:0] m_axis_tkeep,
    output logic                 m_axis_tvalid,
    input  logic                 m_axis_tready,
    output logic                 m_axis_tlast,
    output logic [META_BITS-1:0] m_meta,

    output logic [$clog2(DEPTH_WORDS):0] fill_words,  // in the buffer, those of a packet still coming among them
    output logic                         count_good,
    output logic                         count_bad,
    output logic                         drop_full
);
  localparam int LATENCY_CYCLES = 2;
  localparam int ADDRESS_BITS = $clog2(DEPTH_WORDS);
  localparam int PACKET_BITS = $clog2(PACKETS);
  localparam int WORD_BITS = DATA_BITS + KEEP_BITS + 1;  // the top bit: the last of its packet

  if (DEPTH_WORDS < 4 || DEPTH_WORDS != 1 << ADDRESS_BITS) begin : g_check_depth
    $fatal(1, "DEPTH_WORDS must be a power of two, at least 4 (instance %m)");
  end
  if (PACKETS < 2 || PACKETS != 1 << PACKET_BITS) begin : g_check_packets
    $fatal(1, "PACKETS must be a power of two, at least 2 (instance %m)");
  end

  // Pointers run one bit further than addresses, so that full and empty differ. What lies from committed to written is not whole yet.
  logic [WORD_BITS-1:0] words[DEPTH_WORDS];
  logic [META_BITS-1:0] metas[PACKETS];
  logic [ADDRESS_BITS:0] written, committed, read;
  logic [PACKET_BITS:0] metas_written, metas_read;
  logic losing;  // the packet that comes in has found no room
  wire full = written - read == (ADDRESS_BITS + 1)'(DEPTH_WORDS);
  wire packets_full = metas_written - metas_read == (PACKET_BITS + 1)'(PACKETS);
  wire lost = losing || full || (s_axis_tlast && packets_full);
  wire ends = s_axis_tvalid && s_axis_tlast;
  wire commits = ends && !s_axis_tuser && !lost;
  assign fill_words = written - read;

  always_ff @(posedge clk) begin
    if (s_axis_tvalid && !lost) words[written[ADDRESS_BITS-1:0]] <= {s_axis_tlast, s_axis_tkeep, s_axis_tdata};
    if (commits) metas[metas_written[PACKET_BITS-1:0]] <= s_meta;
  end

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      losing <= lost && !s_axis_tlast;
      written <= lost || (ends && s_axis_tuser) ? committed : written + 1'b1;
    end
    if (commits) begin
      committed <= written + 1'b1;
      metas_written <= metas_written + 1'b1;
    end
    count_good <= commits && !rst;
    count_bad <= ends && s_axis_tuser && !rst;
    drop_full <= ends && !s_axis_tuser && lost && !rst;
    if (rst) begin
      losing <= 1'b0;
      written <= '0;
      committed <= '0;
      metas_written <= '0;
    end
  end

  // --- out: the register behind the memory is the output ---
  logic fresh;  // nothing was read since reset
  wire reads = (!m_axis_tvalid || m_axis_tready) && read != committed;

  always_ff @(posedge clk) begin
    if (reads) {m_axis_tlast, m_axis_tkeep, m_axis_tdata} <= words[read[ADDRESS_BITS-1:0]];
    if (reads && (fresh || m_axis_tlast)) m_meta <= metas[metas_read[PACKET_BITS-1:0]];
  end

  always_ff @(posedge clk) begin
    if (reads) begin
      fresh <= 1'b0;
      read <= read + 1'b1;
      if (fresh || m_axis_tlast) metas_read <= metas_read + 1'b1;
    end
    if (!m_axis_tvalid || m_axis_tready) m_axis_tvalid <= reads;
    if (rst) begin
      fresh <= 1'b1;
      read <= '0;
      metas_read <= '0;
      m_axis_tvalid <= 1'b0;
    end
  end

  // --- what must hold ---
  logic waits, m_inside, s_inside;
  logic [LATENCY_CYCLES-1:0] came;
  wire [ADDRESS_BITS:0] fill_committed = committed - read;
  always_ff @(posedge clk) begin
    waits <= !rst && m_axis_tvalid && !m_axis_tready;
    came <= rst ? '0 : {came[LATENCY_CYCLES-2:0], commits && committed == read && !m_axis_tvalid};
    if (rst) begin
      m_inside <= 1'b0;
      s_inside <= 1'b0;
    end else begin
      if (m_axis_tvalid && m_axis_tready) m_inside <= !m_axis_tlast;
      if (s_axis_tvalid) s_inside <= !s_axis_tlast;
      assert (!waits || m_axis_tvalid);
      assert (!m_inside || m_axis_tvalid);  // no gap in a packet
      assert (!came[LATENCY_CYCLES-1] || m_axis_tvalid);
      assert (fill_words <= (ADDRESS_BITS + 1)'(DEPTH_WORDS));
      assert (fill_committed <= fill_words);
      assert (s_inside || written == committed);  // only a packet that is coming in is not whole
      assert (!losing || (s_inside && written == committed));
      assert ($onehot0({count_good, count_bad, drop_full}));
    end
  end

`ifdef FORMAL
  // For induction. Any one place of the memory: what is read from it is what was written. And whole packets lie in it, a sideband for each.
  (* anyconst *) logic [ADDRESS_BITS:0] watched;
  logic [WORD_BITS-1:0] watched_word;
  logic shown;  // the word in the output is that of the watched place
  logic [ADDRESS_BITS:0] lasts;  // of the packets that are whole
  logic early;                   // one in the packet that is not
  wire [ADDRESS_BITS:0] watched_place = watched - read;
  wire [PACKET_BITS:0] metas_held = metas_written - metas_read;
  wire between = fresh || m_axis_tlast;  // the next word to be read is the first of a packet

  always_comb begin
    lasts = '0;
    early = 1'b0;
    for (int place = 0; place < DEPTH_WORDS; place++) begin
      if (words[read[ADDRESS_BITS-1:0]+ADDRESS_BITS'(place)][WORD_BITS-1]) begin
        if (place < int'(fill_committed)) lasts += 1'b1;
        else if (place < int'(fill_words)) early = 1'b1;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (s_axis_tvalid && !lost && written == watched) watched_word <= {s_axis_tlast, s_axis_tkeep, s_axis_tdata};
    if (reads) shown <= read == watched;
    if (rst) shown <= 1'b0;
    else begin
      assert (watched_place >= fill_words || words[watched[ADDRESS_BITS-1:0]] == watched_word);
      assert (!shown || (watched == read - 1'b1 && {m_axis_tlast, m_axis_tkeep, m_axis_tdata} == watched_word));
      assert (m_axis_tvalid || m_inside == !between);
      assert (fill_committed == '0 || words[committed[ADDRESS_BITS-1:0]-1'b1][WORD_BITS-1]);
      assert (fill_committed != '0 || between);
      assert (!early);
      assert (int'(metas_held) + int'(!between) == int'(lasts));
      assert (int'(metas_held) <= PACKETS);
      assert (!m_axis_tvalid || !fresh);
    end
  end
`endif
endmodule
