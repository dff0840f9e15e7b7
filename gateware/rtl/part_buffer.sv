// SPDX-License-Identifier: Apache-2.0
// The parts of one link that wait for those of the others: headers in one queue, hits in words of eight in another, so that who chooses events need not
// wait for who sends them.
//
// Contract
//   * A part is taken as decompressor gives it, and shows at the head when its last word is in; its hits are there then. Hits of each part begin a new word; of
//     the last one as many count as the header says.
//   * A head is there two cycles after the part's last word came in, if none was before it.
//   * full: there may be no room for another part of the largest size.
module part_buffer #(
    parameter int DEPTH_WORDS = 512,  // [8 hits], and as many headers; a power of two
    localparam int KEY_BITS = event_pkg::KEY_BITS
) (
    input logic clk,
    input logic rst,

    input logic [31:0] now,

    input  logic [63:0] s_axis_tdata,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,

    output logic                head_valid,
    input  logic                head_pop,
    output logic [KEY_BITS-1:0] head_key,
    output logic [        15:0] head_number,
    output logic [         7:0] head_hits,
    output logic [        31:0] head_came,    // `now` with its last word

    output logic         hits_valid,
    input  logic         hits_pop,
    output logic [127:0] hits,

    output logic full
);
  localparam int ADDRESS_BITS = $clog2(DEPTH_WORDS);
  localparam int PART_WORDS_MAX = 32;  // 255 hits

  if (DEPTH_WORDS != 1 << ADDRESS_BITS || DEPTH_WORDS <= PART_WORDS_MAX) begin : g_check
    $fatal(1, "DEPTH_WORDS must be a power of two, more than 32 (instance %m)");
  end

  typedef struct packed {
    logic [31:0]         came;
    logic [15:0]         number;
    logic [7:0]          hits;
    logic [KEY_BITS-1:0] key;
  } head_t;

  // Pointers run one bit further than addresses, so that full and empty differ.
  head_t heads[DEPTH_WORDS];
  logic [127:0] words[DEPTH_WORDS];
  logic [ADDRESS_BITS:0] heads_written, heads_read, words_written, words_read;
  logic in_part, upper;  // upper: the lower half of a word of hits is in
  logic [63:0] header, lower;
  wire [ADDRESS_BITS:0] heads_held = heads_written - heads_read;
  wire [ADDRESS_BITS:0] words_held = words_written - words_read;
  assign s_axis_tready = heads_held != (ADDRESS_BITS + 1)'(DEPTH_WORDS) && words_held != (ADDRESS_BITS + 1)'(DEPTH_WORDS);
  wire takes = s_axis_tvalid && s_axis_tready;
  wire [63:0] header_now = in_part ? header : s_axis_tdata;
  wire writes_word = takes && in_part && (upper || s_axis_tlast);
  wire writes_head = takes && s_axis_tlast;

  always_ff @(posedge clk) begin
    if (takes && !in_part) header <= s_axis_tdata;
    if (takes && !upper) lower <= s_axis_tdata;
    if (writes_word) words[words_written[ADDRESS_BITS-1:0]] <= {s_axis_tdata, upper ? lower : s_axis_tdata};
    if (writes_head) heads[heads_written[ADDRESS_BITS-1:0]] <= '{now, header_now[63:48], header_now[47:40], {header_now[31:0], header_now[39:32]}};
  end

  head_t head;
  assign {head_came, head_number, head_hits, head_key} = head;
  wire reads_head = heads_held != '0 && (!head_valid || head_pop);
  wire reads_word = words_held != '0 && (!hits_valid || hits_pop);
  always_ff @(posedge clk) begin
    if (reads_head) head <= heads[heads_read[ADDRESS_BITS-1:0]];
    if (reads_word) hits <= words[words_read[ADDRESS_BITS-1:0]];
  end

  always_ff @(posedge clk) begin
    if (takes) begin
      in_part <= !s_axis_tlast;
      upper <= in_part && !upper && !s_axis_tlast;
    end
    if (writes_word) words_written <= words_written + 1'b1;
    if (writes_head) heads_written <= heads_written + 1'b1;
    if (reads_head) heads_read <= heads_read + 1'b1;
    if (reads_word) words_read <= words_read + 1'b1;
    if (!head_valid || head_pop) head_valid <= reads_head;
    if (!hits_valid || hits_pop) hits_valid <= reads_word;
    full <= int'(words_held) > DEPTH_WORDS - PART_WORDS_MAX || int'(heads_held) > DEPTH_WORDS - 2;
    if (rst) begin
      {in_part, upper, head_valid, hits_valid} <= '0;
      heads_written <= '0;
      heads_read <= '0;
      words_written <= '0;
      words_read <= '0;
    end
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!head_pop || head_valid);
      assert (!hits_pop || hits_valid);
      assert (int'(heads_held) <= DEPTH_WORDS && int'(words_held) <= DEPTH_WORDS);
      assert (!upper || in_part);
    end
  end
endmodule
