// SPDX-License-Identifier: Apache-2.0
// Packets wait here until a fixed time after they came, and leave in words twice as wide: what follows may be busy with one packet for as long as the
// shortest takes to come, and none is later for it.
//
// Contract
//   * The input cannot be held up. A packet for which there is no room when its first word comes is dropped whole: one pulse of drop_overflow at
//     its end, with drop_meta, unless it is bad, which was counted before.
//   * A packet's first word is offered PLAYOUT_CYCLES after it came in, or as soon as the one before has left if that is later. Its other
//     words follow as they come. One of a single word, which udp_rx gives away SINGLE_CYCLES later than it would a first word, waits so much less.
//   * s_meta and s_meta_bytes belong to the first word; m_meta and m_meta_bytes hold from the first word to the last.
//   * What leaves as good has the words that its bytes need. A packet of fewer or more leaves as a bad one, of no more words than that (one if it
//     is announced to have no bytes).
//   * m_bad: the packet at the output has ended and is bad, though its last word may not be there yet. It is up with that word at the latest, and
//     holds until it has left.
//   * m_soon[n]: a packet's first word will be offered within n cycles, or is.
module rx_fifo #(
    parameter int WORDS = 2048,         // room [16 B]
    parameter int PACKETS = 256,        // at most as many are here
    parameter int PLAYOUT_CYCLES = 16,  // 32767 at most, SOON_CYCLES + SINGLE_CYCLES + 4 at least
    parameter int SOON_CYCLES = 3,
    parameter int SINGLE_CYCLES = 3,
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
    output logic [ META_BITS-1:0] m_meta,
    output logic [BYTES_BITS-1:0] m_meta_bytes,
    output logic [SOON_CYCLES:1]  m_soon,
    output logic                  m_bad,

    output logic                 drop_overflow,
    output logic [META_BITS-1:0] drop_meta
);
  localparam int WORD_BITS = $clog2(WORDS);
  localparam int PACKET_BITS = $clog2(PACKETS);
  localparam int HEAD_CYCLES = 4;  // from a packet's first word until it is known at the output, if none is before it

  if (2 ** WORD_BITS != WORDS || 2 ** PACKET_BITS != PACKETS || WORDS * 16 < BYTES_MAX) begin : g_check_room
    $fatal(1, "WORDS and PACKETS must be powers of two, WORDS enough for a packet of BYTES_MAX (instance %m)");
  end
  if (PLAYOUT_CYCLES >= 2 ** 15 || SOON_CYCLES + SINGLE_CYCLES + HEAD_CYCLES > PLAYOUT_CYCLES) begin : g_check_playout
    $fatal(1, "PLAYOUT_CYCLES must be at most 32767, and at least SOON_CYCLES + SINGLE_CYCLES + 4 (instance %m)");
  end

  logic [128:0] words[WORDS];  // {tlast, tdata}
  logic [META_BITS+BYTES_BITS+15:0] packets[PACKETS];  // {meta, bytes, when it came}
  logic [15:0] now;
  always_ff @(posedge clk) now <= rst ? '0 : now + 16'd1;

  // --- in: two words make one ---
  logic [WORD_BITS:0] written, read;  // one bit more than an address
  logic [PACKET_BITS:0] packets_in, packets_out;
  logic ended_bad[PACKETS];  // and what has not ended is not
  logic in_packet, storing, dropping, half;
  logic head_valid;  // the packet at the output has come in
  logic [63:0] low;
  logic [BYTES_BITS-3:0] words_left;  // that the packet may still bring [8 B]
  logic [WORD_BITS:0] room;           // [16 B]
  wire nothing_told = !in_packet && s_meta_bytes == '0;
  wire last_due = in_packet ? words_left == (BYTES_BITS - 2)'(1) : s_meta_bytes <= BYTES_BITS'(8);  // after this word none may follow
  wire [BYTES_BITS-1:0] bytes_after = s_meta_bytes - 1'b1;  // [B] a word follows the first for each eight of these
  logic [PACKET_BITS:0] packets_held;  // that at the head among them
  wire fits = room != '0 && int'(s_meta_bytes) <= int'({room, 4'd0}) && packets_held != (PACKET_BITS + 1)'(PACKETS);
  wire take_first = s_axis_tvalid && !in_packet && fits;
  wire take = in_packet ? s_axis_tvalid && storing : take_first;
  wire last = s_axis_tlast || last_due;
  wire bad = !s_axis_tlast || !last_due || s_axis_tuser || nothing_told;
  wire write = take && (half || last);
  wire [PACKET_BITS-1:0] write_packet = in_packet ? PACKET_BITS'(packets_in - 1'b1) : PACKET_BITS'(packets_in);

  always_ff @(posedge clk) begin
    drop_overflow <= s_axis_tvalid && s_axis_tlast && !s_axis_tuser && (in_packet ? dropping : !fits);
    if (s_axis_tvalid) begin
      in_packet <= !s_axis_tlast;
      words_left <= in_packet ? words_left - 1'b1 : nothing_told ? '0 : (BYTES_BITS - 2)'(bytes_after >> 3);
      if (!in_packet) begin
        dropping <= !fits;
        drop_meta <= s_meta;
      end
    end
    if (take) begin
      storing <= !last;
      half <= !half && !last;
      low <= s_axis_tdata;
    end
    if (write) begin
      words[written[WORD_BITS-1:0]] <= {last, s_axis_tdata, half ? low : s_axis_tdata};
      written <= written + 1'b1;
    end
    if (take_first) begin
      packets[packets_in[PACKET_BITS-1:0]] <= {s_meta, s_meta_bytes, now - (s_axis_tlast ? 16'(SINGLE_CYCLES) : 16'd0)};
      packets_in <= packets_in + 1'b1;
    end
    if (take_first || (take && last)) ended_bad[write_packet] <= last && bad;
    if (rst) begin
      in_packet <= 1'b0;
      storing <= 1'b0;
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
    if (fetch) {m_axis_tlast, m_axis_tdata} <= words[read[WORD_BITS-1:0]];
    if (fetch || leaves) next_valid <= fetch;
    if (fetch) read <= read + 1'b1;
    room <= room + (WORD_BITS + 1)'(fetch) - (WORD_BITS + 1)'(write);
    packets_held <= packets_held + (PACKET_BITS + 1)'(take_first) - (PACKET_BITS + 1)'(leaves && m_axis_tlast);
    if (rst) begin
      next_valid <= 1'b0;
      read <= '0;
      room <= (WORD_BITS + 1)'(WORDS);
      packets_held <= '0;
    end
  end

  // --- the packet at the head, and whether it is time: the one after it is read ahead, so no path begins in the table ---
  logic [PACKET_BITS:0] packets_read;
  logic [META_BITS-1:0] ahead_meta;
  logic [BYTES_BITS-1:0] ahead_bytes;
  logic [15:0] ahead_came, ahead_age, age;  // the ages in cycles
  logic ahead_known;  // its age is
  logic due;
  wire ahead_valid = packets_read != packets_out;
  wire next_head = !head_valid || (leaves && m_axis_tlast);
  wire take_ahead = next_head && ahead_known;
  wire read_ahead = packets_in != packets_read && (!ahead_valid || take_ahead);
  always_ff @(posedge clk) begin
    if (read_ahead) begin
      {ahead_meta, ahead_bytes, ahead_came} <= packets[packets_read[PACKET_BITS-1:0]];
      packets_read <= packets_read + 1'b1;
    end
    ahead_age <= now + 16'd1 - ahead_came;
    ahead_known <= ahead_valid && !take_ahead;
    age <= (next_head ? ahead_age : age) + 16'd1;
    for (int n = 1; n <= SOON_CYCLES; n++) begin
      m_soon[n] <= next_head ? ahead_known && ahead_age >= 16'(PLAYOUT_CYCLES - 1 - n) : due || age >= 16'(PLAYOUT_CYCLES - 1 - n);
    end
    if (age >= 16'(PLAYOUT_CYCLES - 1)) due <= 1'b1;  // and stays so, however long it waits then
    if (next_head) begin
      due <= 1'b0;
      head_valid <= ahead_known;
    end
    if (take_ahead) begin
      {m_meta, m_meta_bytes} <= {ahead_meta, ahead_bytes};
      packets_out <= packets_out + 1'b1;
    end
    if (rst) begin
      head_valid <= 1'b0;
      due <= 1'b0;
      m_soon <= '0;
      ahead_known <= 1'b0;
      packets_read <= '0;
      packets_out <= '0;
    end
  end
  assign m_axis_tvalid = next_valid && due;
  assign m_bad = head_valid && ended_bad[PACKET_BITS'(packets_out-1'b1)];

`ifndef SYNTHESIS
  wire [WORD_BITS:0] words_held = written - read;
  always_ff @(posedge clk) begin
    if (!rst) begin
      a_no_overrun : assert (int'(words_held) <= WORDS && int'(room) == WORDS - int'(words_held));
      a_packets_held : assert (packets_held == packets_in - packets_out + (PACKET_BITS + 1)'(head_valid));
      for (int n = 1; n <= SOON_CYCLES; n++) begin
        if (age != '0) a_soon : assert (m_soon[n] == (head_valid && (due || age >= 16'(PLAYOUT_CYCLES - n))));
      end
    end
  end
`endif

`ifdef FORMAL
  // For induction. What the packet that comes in will still write has its place; each packet that began has its entry, at the head or after it; and any
  // one place of the memory: what is read from it is what was written.
  wire coming = in_packet && storing;
  wire [BYTES_BITS-2:0] to_write = ((BYTES_BITS - 1)'(words_left) + (BYTES_BITS - 1)'(half) + 1'b1) >> 1;  // words [16 B] of the packet that comes in
  logic [PACKET_BITS+WORD_BITS:0] ends;
  logic [WORD_BITS:0] watched;  // any, and stays
  logic [128:0] watched_word;
  logic shown, inside_out;
  always_comb begin
    ends = (PACKET_BITS + WORD_BITS + 1)'(coming) + (PACKET_BITS + WORD_BITS + 1)'(next_valid && m_axis_tlast);
    for (int place = 0; place < WORDS; place++) begin
      if (place < int'(words_held) && words[read[WORD_BITS-1:0]+WORD_BITS'(place)][128]) ends += 1'b1;
    end
  end
  always_ff @(posedge clk) begin
    watched <= watched;
    if (write && written == watched) watched_word <= {last, s_axis_tdata, half ? low : s_axis_tdata};
    if (fetch) shown <= read == watched;
    if (leaves) inside_out <= !m_axis_tlast;
    if (rst) {shown, inside_out} <= '0;
    else begin
      assert (!coming || int'(words_held) + int'(to_write) <= WORDS);
      assert (!coming || words_left != '0);
      assert (!half || coming);
      assert (!coming || !dropping);
      assert (!coming || !ended_bad[write_packet]);
      assert (int'((PACKET_BITS + 1)'(packets_in - packets_out)) + int'(head_valid) <= PACKETS);
      assert (packets_read - packets_out <= (PACKET_BITS + 1)'(1) && packets_in - packets_read <= packets_in - packets_out);
      assert (!ahead_valid || {ahead_meta, ahead_bytes, ahead_came} == packets[packets_out[PACKET_BITS-1:0]]);
      assert (!ahead_known || (ahead_valid && ahead_age == now - ahead_came));
      assert (ends == (PACKET_BITS + WORD_BITS + 1)'(packets_held));
      assert (!due || head_valid);
      assert (!inside_out || (head_valid && due));
      assert ((WORD_BITS + 1)'(watched - read) >= words_held || words[watched[WORD_BITS-1:0]] == watched_word);
      assert (!shown || !next_valid || (watched == read - 1'b1 && {m_axis_tlast, m_axis_tdata} == watched_word));
    end
  end
`endif
endmodule
