// SPDX-License-Identifier: Apache-2.0
// part_buffer under any parts and any reader: it never overruns; heads leave in the order of the parts, each once, with the key, the number, the hits and the
// time that came; hits leave in the order in which they came, eight a word, each part's from a new word on; a part's head is not there before its hits.
module part_buffer_formal #(
    parameter int DEPTH_WORDS = 64
) (
    input logic        clk,
    input logic        rst,
    input logic [31:0] now,
    input logic [63:0] s_axis_tdata,
    input logic        s_axis_tvalid,
    input logic        s_axis_tlast,
    input logic        head_pop,
    input logic        hits_pop
);
  localparam int BITS = $clog2(DEPTH_WORDS);
  logic s_axis_tready, head_valid, hits_valid, full;
  logic [39:0] head_key;
  logic [15:0] head_number;
  logic [7:0] head_hits;
  logic [31:0] head_came;
  logic [127:0] hits;
  part_buffer #(.DEPTH_WORDS(DEPTH_WORDS)) dut (.*);

  logic running, in_part, odd;  // odd: the lower half of a word of hits has come
  logic [63:0] header, lower;
  wire takes = s_axis_tvalid && s_axis_tready;
  wire ends = takes && s_axis_tlast;
  wire [63:0] first = in_part ? header : s_axis_tdata;
  wire brings_word = takes && in_part && (odd || s_axis_tlast);
  // Any one part and any one word of hits, by their numbers: what leaves is what came. In a word that ends early nothing is said of the upper half.
  logic [BITS:0] parts, words, parts_out, words_out;  // that came, that were taken
  logic [BITS:0] watched_part, watched_word;          // and stay
  logic [95:0] watched_head;
  logic [127:0] watched_hits;
  logic watched_half;
  logic [BITS:0] words_of_watched;  // that had come when its head was written
  wire [BITS:0] parts_held = parts - parts_out, words_held = words - words_out;
  wire [BITS:0] part_place = watched_part - parts_out, word_place = watched_word - words_out;
  wire [BITS:0] heads_waiting = dut.heads_written - dut.heads_read, words_waiting = dut.words_written - dut.words_read;
  wire same_hits = hits[63:0] == watched_hits[63:0] && (watched_half || hits[127:64] == watched_hits[127:64]);
  wire [127:0] stored_hits = dut.words[watched_word[BITS-1:0]];
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    assume (!head_pop || head_valid);
    assume (!hits_pop || hits_valid);
    {watched_part, watched_word} <= {watched_part, watched_word};
    if (takes) begin
      in_part <= !s_axis_tlast;
      if (!in_part) header <= s_axis_tdata;
      odd <= in_part && !odd && !s_axis_tlast;
      if (!odd) lower <= s_axis_tdata;
    end
    if (brings_word) words <= words + 1'b1;
    if (ends) parts <= parts + 1'b1;
    if (head_pop) parts_out <= parts_out + 1'b1;
    if (hits_pop) words_out <= words_out + 1'b1;
    if (ends && parts == watched_part) begin
      watched_head <= {now, first[63:48], first[47:40], first[31:0], first[39:32]};
      words_of_watched <= words + (BITS + 1)'(brings_word) - words_out - (BITS + 1)'(hits_pop);
    end else if (hits_pop) words_of_watched <= words_of_watched == '0 ? '0 : words_of_watched - 1'b1;
    if (brings_word && words == watched_word) begin
      watched_hits <= {s_axis_tdata, odd ? lower : s_axis_tdata};
      watched_half <= !odd;
    end
    if (rst) {in_part, odd, parts, words, parts_out, words_out} <= '0;
    else begin
      if (head_valid && watched_part == parts_out) begin
        assert ({head_came, head_number, head_hits, head_key} == watched_head);
        assert (words_held >= words_of_watched);  // its hits have come
      end
      if (hits_valid && watched_word == words_out) assert (same_hits);
      assert (!head_valid || parts_held != '0);
      assert (!hits_valid || words_held != '0);
      // For induction: those that came are at the output or in the memory.
      assert (dut.in_part == in_part && dut.upper == odd && (!odd || in_part) && (!in_part || dut.header == header) && (!odd || dut.lower == lower));
      assert (parts == dut.heads_written && words == dut.words_written);
      assert (parts_held == heads_waiting + (BITS + 1)'(head_valid) && words_held == words_waiting + (BITS + 1)'(hits_valid));
      assert (heads_waiting <= (BITS + 1)'(DEPTH_WORDS) && words_waiting <= (BITS + 1)'(DEPTH_WORDS));
      if (part_place < parts_held) begin
        assert (words_of_watched <= words_held);
        if (part_place >= (BITS + 1)'(head_valid)) assert (dut.heads[watched_part[BITS-1:0]] == watched_head);
      end
      if (word_place < words_held && word_place >= (BITS + 1)'(hits_valid)) begin
        assert (stored_hits[63:0] == watched_hits[63:0] && (watched_half || stored_hits[127:64] == watched_hits[127:64]));
      end
    end
  end
endmodule
