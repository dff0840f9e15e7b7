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
endmodule
