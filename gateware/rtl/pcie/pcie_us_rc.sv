// SPDX-License-Identifier: Apache-2.0
// Completions of the NIC's reads from the requester completion (RC) interface of the UltraScale+ PCIe block, 128 bits, Dword-aligned, into answers
// as dma_read takes them: completions of different reads in any order, those of one read in order, each cut by the host where it likes.
//
// Contract
//   * Every read that was issued is answered with exactly issued_words words, the last one marked, when the block says that it is completed. What a
//     poisoned, refused, overdue, short or misplaced completion leaves open is filled up, and the last word says error.
//   * From a word on this interface to the answer: one cycle. The interface waits while an answer is filled up.
//   * count_unexpected: a completion, or a rest of one, for which no read is open; it is thrown away.
module pcie_us_rc #(
    parameter int READ_REQUEST_BYTES_MAX = 128,
    parameter int READ_TAGS = 32,
    localparam int TAG_BITS = $clog2(READ_TAGS),
    localparam int ANSWER_BITS = $clog2(READ_REQUEST_BYTES_MAX / 16 + 1)
) (
    input logic clk,
    input logic rst,

    input logic                   issued,
    input logic [   TAG_BITS-1:0] issued_tag,
    input logic [ANSWER_BITS-1:0] issued_words,

    input  logic [127:0] s_axis_rc_tdata,
    input  logic [  3:0] s_axis_rc_tkeep,
    input  logic         s_axis_rc_tvalid,
    output logic         s_axis_rc_tready,
    input  logic         s_axis_rc_tlast,
    input  logic [ 74:0] s_axis_rc_tuser,

    output logic                answer_valid,
    output logic [TAG_BITS-1:0] answer_tag,
    output logic [       127:0] answer_data,
    output logic                answer_last,
    output logic                answer_error,

    output logic count_unexpected
);
  localparam int DISCONTINUE = 42;  // of tuser: the block could not read its own memory, this packet is bad

  // --- the read of each tag ---
  logic [READ_TAGS-1:0] bad;
  logic [ANSWER_BITS-1:0] words_left[READ_TAGS];  // 0: no read is open

  // --- the packet in flight ---
  typedef enum logic [1:0] {HEAD, DATA, REST, FILL} state_t;
  state_t state;
  logic [TAG_BITS-1:0] tag_held;
  logic [8:0] dwords_left;   // of its data, those of words that are out not counted
  logic [31:0] carry;        // first Dword of the next word
  logic is_last_held;        // the block says that the read is completed with this packet
  logic skip_held;           // its data are not to be used
  logic known_held;          // it is for a read of ours

  wire at_head = state == HEAD;
  wire take = s_axis_rc_tvalid && s_axis_rc_tready;
  assign s_axis_rc_tready = at_head || state == DATA;

  // Of the descriptor.
  wire [7:0] head_tag = s_axis_rc_tdata[71:64];
  wire [3:0] head_error = s_axis_rc_tdata[15:12];
  wire [10:0] head_dwords = s_axis_rc_tdata[42:32];
  wire head_is_last = s_axis_rc_tdata[30];
  wire head_aligned = s_axis_rc_tdata[3:0] == '0;

  wire [TAG_BITS-1:0] tag = at_head ? head_tag[TAG_BITS-1:0] : tag_held;
  wire [ANSWER_BITS-1:0] left = words_left[tag];
  wire is_open = left != '0 && (at_head ? {24'd0, head_tag} < 32'(READ_TAGS) : known_held);
  wire is_last = at_head ? head_is_last : is_last_held;
  wire discontinue = take && s_axis_rc_tuser[DISCONTINUE];
  wire bad_head = take && at_head && (head_error != '0 || (head_dwords != '0 && !head_aligned));
  wire bad_now = bad[tag] || discontinue || bad_head;
  wire skip = at_head ? bad_now || !is_open : skip_held;

  // A word is whole with the first three Dwords of the next beat; the last one may end in its first beat.
  wire word_there = (take && state == DATA) || state == REST;
  wire gives = (word_there && !skip && is_open) || state == FILL;
  wire ends = take ? s_axis_rc_tlast : state == REST;
  wire rest_comes = take && state == DATA && s_axis_rc_tlast && dwords_left > 9'd4;  // more than the word that is whole now
  wire head_alone = take && at_head && s_axis_rc_tlast;
  wire rest_of_head = head_alone && head_dwords != '0;
  wire packet_ends = ends && !rest_comes && !rest_of_head;
  wire [ANSWER_BITS-1:0] left_after = left - ANSWER_BITS'(gives);
  wire fills = packet_ends && is_last && is_open && left_after != '0;

  always_ff @(posedge clk) begin
    answer_valid <= gives;
    answer_tag <= tag;
    answer_data <= state == FILL ? '0 : {s_axis_rc_tdata[95:0], carry};
    answer_last <= gives && left == ANSWER_BITS'(1);
    answer_error <= gives && left == ANSWER_BITS'(1) && (bad_now || state == FILL);
    count_unexpected <= (take && at_head && !is_open) || (word_there && !skip && !is_open);

    if (take) carry <= s_axis_rc_tdata[127:96];
    if (take && at_head) begin
      tag_held <= tag;
      is_last_held <= head_is_last;
      skip_held <= skip;
      known_held <= is_open;
      dwords_left <= head_dwords[8:0];
    end
    if (take && state == DATA) dwords_left <= dwords_left - 9'd4;
    if (word_there && !is_open) skip_held <= 1'b1;  // once is enough to count

    if (is_open && (discontinue || bad_head)) bad[tag] <= 1'b1;
    if (gives) words_left[tag] <= left_after;
    if (issued) begin
      words_left[issued_tag] <= issued_words;
      bad[issued_tag] <= 1'b0;
    end

    if (fills) state <= FILL;
    else if (rest_comes || rest_of_head) state <= REST;
    else if (packet_ends || (state == FILL && left == ANSWER_BITS'(1))) state <= HEAD;
    else if (take && at_head) state <= DATA;

    if (rst) begin
      answer_valid <= 1'b0;
      count_unexpected <= 1'b0;
      state <= HEAD;
      for (int t = 0; t < READ_TAGS; t++) words_left[t] <= '0;
    end
  end
  wire unused = &{1'b0, s_axis_rc_tkeep, s_axis_rc_tuser[74:43], s_axis_rc_tuser[41:0], head_dwords[10:9]};

  // --- what must hold ---
`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst) begin
      if (issued) a_tag_free : assert (words_left[issued_tag] == '0);
      if (gives) a_open : assert (is_open);
    end
  end
`endif
endmodule
