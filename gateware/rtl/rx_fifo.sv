// SPDX-License-Identifier: Apache-2.0
// Packets wait here until a fixed time after they came, and leave in words twice as wide: what follows may be busy with one packet for as long as the
// shortest takes to come, and none is later for it.
//
// Contract
//   * The input cannot be held up. A packet for which there is no room when its first word comes is dropped whole: one pulse of drop_overflow.
//   * A packet's first word is offered PLAYOUT_CYCLES after it came in, or as soon as the one before has left if that is later. Its other
//     words follow as they come.
//   * s_meta and s_meta_bytes belong to the first word; m_meta and m_meta_bytes hold from the first word to the last. A packet has the words
//     that its bytes need, or fewer if it is bad.
//   * m_soon: a packet's first word will be offered within SOON_CYCLES, or is.
module rx_fifo #(
    parameter int WORDS = 2048,         // room [16 B]
    parameter int PACKETS = 256,        // at most as many wait
    parameter int PLAYOUT_CYCLES = 16,  // 5 to 32767
    parameter int SOON_CYCLES = 3,
    parameter int META_BITS = 1,
    parameter int BYTES_MAX = 9000,     // of a packet [B]
    localparam int BYTES_BITS = $clog2(BYTES_MAX + 1)
) (
    input logic clk,
    input logic rst,

    input logic [          63:0] s_axis_tdata,
    input logic                  s_axis_tvalid,
    input logic                  s_axis_tlast,
    input logic                  s_axis_tuser,  // with tlast: the packet is bad
    input logic [ META_BITS-1:0] s_meta,
    input logic [BYTES_BITS-1:0] s_meta_bytes,

    output logic [         127:0] m_axis_tdata,
    output logic                  m_axis_tvalid,
    input  logic                  m_axis_tready,
    output logic                  m_axis_tlast,
    output logic                  m_axis_tuser,
    output logic [ META_BITS-1:0] m_meta,
    output logic [BYTES_BITS-1:0] m_meta_bytes,
    output logic                  m_soon,

    output logic drop_overflow
);
  localparam int WORD_BITS = $clog2(WORDS);
  localparam int PACKET_BITS = $clog2(PACKETS);

  if (2 ** WORD_BITS != WORDS || 2 ** PACKET_BITS != PACKETS || WORDS * 16 < BYTES_MAX) begin : g_check_room
    $fatal(1, "WORDS and PACKETS must be powers of two, WORDS enough for a packet of BYTES_MAX (instance %m)");
  end
  if (PLAYOUT_CYCLES < 5 || PLAYOUT_CYCLES >= 2 ** 15 || SOON_CYCLES >= PLAYOUT_CYCLES) begin : g_check_playout
    $fatal(1, "PLAYOUT_CYCLES must be 5 to 32767 and more than SOON_CYCLES (instance %m)");
  end

  logic [129:0] words[WORDS];  // {tuser, tlast, tdata}
  logic [META_BITS+BYTES_BITS+15:0] packets[PACKETS];  // {meta, bytes, when it came}
  logic [15:0] now;
  always_ff @(posedge clk) now <= rst ? '0 : now + 16'd1;

  // --- in: two words make one ---
  logic [WORD_BITS:0] written, read;  // one bit more than an address
  logic [PACKET_BITS:0] packets_in, packets_out;
  logic in_packet, dropping, half;
  logic [63:0] low;
  wire [BYTES_BITS:0] words_needed = ((BYTES_BITS + 1)'(s_meta_bytes) + (BYTES_BITS + 1)'(15)) >> 4;
  wire [WORD_BITS:0] words_held = written - read;
  wire fits = int'(words_needed) + int'(words_held) <= WORDS && packets_in - packets_out != (PACKET_BITS + 1)'(PACKETS);
  wire take_first = s_axis_tvalid && !in_packet && fits;
  wire take = in_packet ? s_axis_tvalid && !dropping : take_first;
  wire write = take && (half || s_axis_tlast);

  always_ff @(posedge clk) begin
    drop_overflow <= s_axis_tvalid && !in_packet && !fits;
    if (s_axis_tvalid) begin
      in_packet <= !s_axis_tlast;
      if (!in_packet) dropping <= !fits;
    end
    if (take) begin
      half <= !half && !s_axis_tlast;
      low <= s_axis_tdata;
    end
    if (write) begin
      words[written[WORD_BITS-1:0]] <= {s_axis_tuser, s_axis_tlast, s_axis_tdata, half ? low : s_axis_tdata};
      written <= written + 1'b1;
    end
    if (take_first) begin
      packets[packets_in[PACKET_BITS-1:0]] <= {s_meta, s_meta_bytes, now};
      packets_in <= packets_in + 1'b1;
    end
    if (rst) begin
      in_packet <= 1'b0;
      dropping <= 1'b0;
      half <= 1'b0;
      written <= '0;
      packets_in <= '0;
      drop_overflow <= 1'b0;
    end
  end

  // --- out: the next word is fetched when the one before leaves ---
  logic next_valid;
  wire leaves = m_axis_tvalid && m_axis_tready;
  wire fetch = read != written && (!next_valid || leaves);
  always_ff @(posedge clk) begin
    if (fetch) {m_axis_tuser, m_axis_tlast, m_axis_tdata} <= words[read[WORD_BITS-1:0]];
    if (fetch || leaves) next_valid <= fetch;
    if (fetch) read <= read + 1'b1;
    if (rst) begin
      next_valid <= 1'b0;
      read <= '0;
    end
  end

  // --- the packet at the head, and whether it is time ---
  logic [15:0] came;
  logic head_valid, due;
  wire [15:0] age = now - came;
  wire next_head = !head_valid || (leaves && m_axis_tlast);
  always_ff @(posedge clk) begin
    if (head_valid && age >= 16'(PLAYOUT_CYCLES - 1)) due <= 1'b1;  // and stays so, however long it waits then
    if (next_head) begin
      due <= 1'b0;
      head_valid <= packets_in != packets_out;
      if (packets_in != packets_out) begin
        {m_meta, m_meta_bytes, came} <= packets[packets_out[PACKET_BITS-1:0]];
        packets_out <= packets_out + 1'b1;
      end
    end
    if (rst) begin
      head_valid <= 1'b0;
      due <= 1'b0;
      packets_out <= '0;
    end
  end
  assign m_axis_tvalid = next_valid && due;
  assign m_soon = head_valid && (due || age >= 16'(PLAYOUT_CYCLES - SOON_CYCLES));

`ifndef SYNTHESIS
  logic [BYTES_BITS:0] words_in, words_due;  // of the packet
  wire [BYTES_BITS:0] words_whole = ((BYTES_BITS + 1)'(s_meta_bytes) + (BYTES_BITS + 1)'(7)) >> 3;
  always_ff @(posedge clk) begin
    if (s_axis_tvalid) words_in <= s_axis_tlast ? '0 : words_in + 1'b1;
    if (s_axis_tvalid && !in_packet) words_due <= words_whole;
    if (rst) words_in <= '0;
    else begin
      if (s_axis_tvalid && s_axis_tlast) begin
        a_length : assert (words_in + 1'b1 == (in_packet ? words_due : words_whole) || s_axis_tuser);
        a_not_longer : assert (words_in < (in_packet ? words_due : words_whole));
      end
      a_no_overrun : assert (int'(words_held) <= WORDS);
    end
  end
`endif

`ifdef FORMAL
  // For induction. What the packet that comes in will still write has its place; each packet that began has its entry, at the head or behind it; and any
  // one place of the memory: what is read from it is what was written.
  logic [BYTES_BITS:0] to_write;  // words [16 B] of the packet that comes in
  wire coming = in_packet && !dropping;
  wire [BYTES_BITS:0] words_left = words_due - words_in;
  logic [PACKET_BITS+WORD_BITS:0] ends;
  logic [WORD_BITS:0] watched;  // any, and stays
  logic [129:0] watched_word;
  logic shown, inside_out;
  always_comb begin
    ends = (PACKET_BITS + WORD_BITS + 1)'(coming) + (PACKET_BITS + WORD_BITS + 1)'(next_valid && m_axis_tlast);
    for (int place = 0; place < WORDS; place++) begin
      if (place < int'(words_held) && words[read[WORD_BITS-1:0]+WORD_BITS'(place)][128]) ends += 1'b1;
    end
  end
  always_ff @(posedge clk) begin
    if (take_first) to_write <= words_needed - (BYTES_BITS + 1)'(write);
    else if (write) to_write <= to_write - 1'b1;
    watched <= watched;
    if (write && written == watched) watched_word <= {s_axis_tuser, s_axis_tlast, s_axis_tdata, half ? low : s_axis_tdata};
    if (fetch) shown <= read == watched;
    if (leaves) inside_out <= !m_axis_tlast;
    if (rst) {shown, inside_out} <= '0;
    else begin
      assert (!coming || int'(words_held) + int'(to_write) <= WORDS);
      assert (!coming || 2 * int'(to_write) == int'(words_left) + int'(half) || 2 * int'(to_write) == int'(words_left) + int'(half) + 1);
      assert (in_packet ? words_in != '0 && words_in < words_due : words_in == '0);
      assert (!half || coming);
      assert (!coming || half == words_in[0]);
      assert (int'((PACKET_BITS + 1)'(packets_in - packets_out)) <= PACKETS);
      assert (int'(ends) == int'((PACKET_BITS + 1)'(packets_in - packets_out)) + int'(head_valid));
      assert (!due || head_valid);
      assert (!inside_out || (head_valid && due));
      assert ((WORD_BITS + 1)'(watched - read) >= words_held || words[watched[WORD_BITS-1:0]] == watched_word);
      assert (!shown || !next_valid || (watched == read - 1'b1 && {m_axis_tuser, m_axis_tlast, m_axis_tdata} == watched_word));
    end
  end
`endif
endmodule
