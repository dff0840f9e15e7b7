// SPDX-License-Identifier: Apache-2.0
// Packets to be sent wait here until all of them is there, since a MAC cannot pause within a frame; words of 16 bytes in, of 8 out.
//
// Contract
//   * s_axis_tready falls while there is no room. A packet of up to BYTES_MAX always fits into an empty FIFO.
//   * A packet with tuser at its end is thrown away: its meta comes out by itself with m_meta_bad, without a word (m_bad_valid, m_bad_ready).
//   * m_meta belongs to the packet whose words are offered.
module tx_fifo #(
    parameter int WORDS = 1024,  // room [16 B]
    parameter int PACKETS = 64,
    parameter int META_BITS = 1,
    parameter int BYTES_MAX = 9000,  // of a packet [B]
    localparam int BYTES_BITS = $clog2(BYTES_MAX + 1)
) (
    input logic clk,
    input logic rst,

    input  logic [         127:0] s_axis_tdata,
    input  logic                  s_axis_tvalid,
    output logic                  s_axis_tready,
    input  logic                  s_axis_tlast,
    input  logic                  s_axis_tuser,
    input  logic [BYTES_BITS-1:0] s_meta_bytes,   // from the first word to the last, as s_meta
    input  logic [ META_BITS-1:0] s_meta,

    output logic [          63:0] m_axis_tdata,
    output logic [           7:0] m_axis_tkeep,
    output logic                  m_axis_tvalid,
    input  logic                  m_axis_tready,
    output logic                  m_axis_tlast,
    output logic [BYTES_BITS-1:0] m_meta_bytes,
    output logic [ META_BITS-1:0] m_meta,

    output logic m_bad_valid,  // the packet that m_meta belongs to was thrown away
    input  logic m_bad_ready
);
  localparam int WORD_BITS = $clog2(WORDS);
  localparam int PACKET_BITS = $clog2(PACKETS);

  if (2 ** WORD_BITS != WORDS || 2 ** PACKET_BITS != PACKETS || WORDS * 16 < BYTES_MAX + 15) begin : g_check_room
    $fatal(1, "WORDS and PACKETS must be powers of two, WORDS enough for a packet of BYTES_MAX (instance %m)");
  end

  logic [127:0] words[WORDS];
  logic [META_BITS+BYTES_BITS:0] packets[PACKETS];  // {bad, bytes, meta}

  // --- in: what is written counts when its packet is whole ---
  logic [WORD_BITS:0] written, whole, read;  // one bit more than an address
  logic [PACKET_BITS:0] packets_in, packets_out;
  wire has_word = written - read != (WORD_BITS + 1)'(WORDS);
  wire has_packet = packets_in - packets_out != (PACKET_BITS + 1)'(PACKETS);
  assign s_axis_tready = has_word && has_packet;
  wire take = s_axis_tvalid && s_axis_tready;
  always_ff @(posedge clk) begin
    if (take) words[written[WORD_BITS-1:0]] <= s_axis_tdata;
    if (take) written <= s_axis_tlast && s_axis_tuser ? whole : written + 1'b1;
    if (take && s_axis_tlast) begin
      packets[packets_in[PACKET_BITS-1:0]] <= {s_axis_tuser, s_meta_bytes, s_meta};
      packets_in <= packets_in + 1'b1;
      if (!s_axis_tuser) whole <= written + 1'b1;
    end
    if (rst) begin
      written <= '0;
      whole <= '0;
      packets_in <= '0;
    end
  end

  // --- the packet at the head ---
  logic head_valid, head_bad;
  wire leaves = m_axis_tvalid && m_axis_tready;
  wire ends = head_valid && (head_bad ? m_bad_ready : leaves && m_axis_tlast);
  always_ff @(posedge clk) begin
    if (!head_valid || ends) begin
      head_valid <= packets_in != packets_out;
      if (packets_in != packets_out) begin
        {head_bad, m_meta_bytes, m_meta} <= packets[packets_out[PACKET_BITS-1:0]];
        packets_out <= packets_out + 1'b1;
      end
    end
    if (rst) begin
      head_valid <= 1'b0;
      packets_out <= '0;
    end
  end
  assign m_bad_valid = head_valid && head_bad;

  // --- its words: each is fetched once and leaves in two halves ---
  logic [127:0] word;
  logic word_valid, high;
  logic [BYTES_BITS-1:0] left, left_before;  // of the packet, with this word's bytes
  logic in_packet;
  wire [BYTES_BITS-1:0] half_left = high ? left - BYTES_BITS'(8) : left;
  wire word_ends = leaves && (high || m_axis_tlast);
  wire fetch = read != whole && (!word_valid || word_ends);
  always_ff @(posedge clk) begin
    if (fetch) begin
      word <= words[read[WORD_BITS-1:0]];
      read <= read + 1'b1;
    end
    if (fetch || word_ends) word_valid <= fetch;
    if (leaves) high <= !high && !m_axis_tlast;
    if (word_ends) left_before <= left - BYTES_BITS'(16);
    if (rst) begin
      word_valid <= 1'b0;
      read <= '0;
      high <= 1'b0;
    end
  end
  always_ff @(posedge clk) begin
    if (word_ends) in_packet <= !m_axis_tlast;
    if (rst) in_packet <= 1'b0;
  end
  assign left = in_packet ? left_before : m_meta_bytes;
  assign m_axis_tvalid = word_valid && head_valid && !head_bad;
  assign m_axis_tdata = high ? word[127:64] : word[63:0];
  assign m_axis_tlast = half_left <= BYTES_BITS'(8);
  assign m_axis_tkeep = m_axis_tlast ? 8'(9'h1 << half_left[3:0]) - 8'h1 : 8'hFF;

`ifdef FORMAL
  // For induction, for PACKETS = 2: the words that are whole are those of the good packets that wait and what is left of the one at the head. And
  // any one place of the memory: what is read from it is what was written.
  localparam int ROOM_BITS = WORD_BITS + 2;
  logic [ROOM_BITS-1:0] owed;
  logic [WORD_BITS:0] watched;  // any, and stays
  logic [127:0] watched_word;
  logic shown;
  wire [WORD_BITS:0] watched_place = watched - read;
  wire [PACKET_BITS:0] packets_held = packets_in - packets_out;
  wire [ROOM_BITS-1:0] head_words = head_valid && !head_bad ? ROOM_BITS'((left + BYTES_BITS'(15)) >> 4) : '0;
  always_comb begin
    owed = head_words;
    for (int p = 0; p < PACKETS; p++) begin
      logic [META_BITS+BYTES_BITS:0] entry;
      logic [BYTES_BITS-1:0] bytes;
      entry = packets[packets_out[PACKET_BITS-1:0]+PACKET_BITS'(p)];
      bytes = entry[META_BITS+:BYTES_BITS];
      if (p < int'(packets_held) && !entry[META_BITS+BYTES_BITS]) owed += ROOM_BITS'((bytes + BYTES_BITS'(15)) >> 4);
    end
  end
  always_ff @(posedge clk) begin
    watched <= watched;
    if (take && written == watched) watched_word <= s_axis_tdata;
    if (fetch) shown <= read == watched;
    if (rst) shown <= 1'b0;
    else begin
      assert (int'(packets_held) <= PACKETS);
      assert (int'((WORD_BITS + 1)'(written - read)) <= WORDS);
      assert ((WORD_BITS + 1)'(whole - read) <= (WORD_BITS + 1)'(written - read));
      assert (ROOM_BITS'((WORD_BITS + 1)'(whole - read)) + ROOM_BITS'(word_valid) == owed);
      assert (!in_packet || (head_valid && !head_bad && left_before != '0));
      assert (!high || (word_valid && head_valid && !head_bad && left > BYTES_BITS'(8)));
      assert (!head_valid || (m_meta_bytes != '0 && int'(m_meta_bytes) <= BYTES_MAX && left <= m_meta_bytes));
      for (int p = 0; p < PACKETS; p++) begin
        logic [BYTES_BITS-1:0] bytes;
        bytes = packets[packets_out[PACKET_BITS-1:0]+PACKET_BITS'(p)][META_BITS+:BYTES_BITS];
        if (p < int'(packets_held)) assert (bytes != '0 && int'(bytes) <= BYTES_MAX);
      end
      assert (watched_place >= (WORD_BITS + 1)'(written - read) || words[watched[WORD_BITS-1:0]] == watched_word);
      assert (!shown || !word_valid || (watched == read - 1'b1 && word == watched_word));
    end
  end
`endif
endmodule
