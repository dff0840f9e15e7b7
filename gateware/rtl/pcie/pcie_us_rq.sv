// SPDX-License-Identifier: Apache-2.0
// Memory requests of the NIC onto the requester request (RQ) interface of the UltraScale+ PCIe block, 128 bits, Dword-aligned.
//
// The block takes a packet only without a pause in it (PG213), and the NIC's words come with pauses, so a write waits here until it is whole. Writes are
// cut at every multiple of the host's maximum payload size; each piece is a packet. A read is one packet as it is.
//
// Contract
//   * Writes leave in the order in which they came, without the attribute that would let the host reorder them. Reads and writes take turns.
//   * A write begins at a multiple of 8 and does not cross a multiple of WRITE_REQUEST_BYTES_MAX; a read begins at a multiple of 16 and has at most
//     READ_REQUEST_BYTES_MAX, which no host may set lower than 128.
//   * While `bus_master` is low no packet begins: requests wait, and the NIC counts what it must drop for want of room.
//   * issued tells of a read when its packet stands on the interface: its tag, and how many words of 16 bytes the answer has.
//   * written_pieces counts pieces that were taken whole, modulo 64. Each packet carries as its sequence number how many pieces went before it
//     and with it, so who sees a number come back knows that so many are in order on the link.
module pcie_us_rq #(
    parameter int WRITE_REQUEST_BYTES_MAX = 256,
    parameter int READ_REQUEST_BYTES_MAX = 128,
    parameter int READ_TAGS = 32,                 // at most 32: more need extended tags
    parameter int FIFO_WORDS = 64,                // of 16 bytes, for writes
    localparam int WRITE_BITS = $clog2(WRITE_REQUEST_BYTES_MAX + 1),
    localparam int READ_BITS = $clog2(READ_REQUEST_BYTES_MAX + 1),
    localparam int TAG_BITS = $clog2(READ_TAGS),
    localparam int ANSWER_BITS = $clog2(READ_REQUEST_BYTES_MAX / 16 + 1)
) (
    input logic clk,
    input logic rst,

    input logic       bus_master,   // cfg_function_status[2]
    input logic [1:0] max_payload,  // cfg_max_payload: 128 B << this

    // As of dma_write and dma_read. No aperture: a GPU's memory is where its bus address says.
    input  logic                  write_valid,
    output logic                  write_ready,
    input  logic                  write_first,
    input  logic                  write_last,
    input  logic [          63:0] write_address,
    input  logic [WRITE_BITS-1:0] write_bytes,
    input  logic [         127:0] write_data,
    input  logic                  read_valid,
    output logic                  read_ready,
    input  logic [          63:0] read_address,
    input  logic [ READ_BITS-1:0] read_bytes,
    input  logic [  TAG_BITS-1:0] read_tag,

    output logic                   issued,
    output logic [   TAG_BITS-1:0] issued_tag,
    output logic [ANSWER_BITS-1:0] issued_words,
    output logic [            5:0] written_pieces,

    output logic [127:0] m_axis_rq_tdata,
    output logic [  3:0] m_axis_rq_tkeep,
    output logic         m_axis_rq_tvalid,
    input  logic         m_axis_rq_tready,
    output logic         m_axis_rq_tlast,
    output logic [ 61:0] m_axis_rq_tuser
);
  localparam int CUT_BITS = $clog2(WRITE_REQUEST_BYTES_MAX);
  localparam int WORD_BITS = $clog2(FIFO_WORDS);
  localparam int PIECES = 32;
  localparam int PIECE_BITS = $clog2(PIECES);
  localparam logic [3:0] MEMORY_READ = 4'b0000, MEMORY_WRITE = 4'b0001;

  if (WRITE_REQUEST_BYTES_MAX < 128 || WRITE_REQUEST_BYTES_MAX > 1024 || 2 ** CUT_BITS != WRITE_REQUEST_BYTES_MAX) begin : g_check_write
    $fatal(1, "WRITE_REQUEST_BYTES_MAX must be a power of two, 128 to 1024 (instance %m)");
  end
  if (READ_REQUEST_BYTES_MAX != 64 && READ_REQUEST_BYTES_MAX != 128) begin : g_check_read
    $fatal(1, "READ_REQUEST_BYTES_MAX must be 64 or 128, which every host allows (instance %m)");
  end
  if (READ_TAGS < 2 || READ_TAGS > 32) begin : g_check_tags
    $fatal(1, "READ_TAGS must be 2 to 32 (instance %m)");
  end
  if (2 ** WORD_BITS != FIFO_WORDS || FIFO_WORDS < 2 * WRITE_REQUEST_BYTES_MAX / 16) begin : g_check_fifo
    $fatal(1, "FIFO_WORDS must be a power of two with room for two requests (instance %m)");
  end

  typedef struct packed {
    logic [63:0]           address;
    logic [WRITE_BITS-1:0] bytes;
  } piece_t;

  // --- in: words into the FIFO, and where each piece begins ---
  logic [127:0] words[FIFO_WORDS];
  piece_t pieces[PIECES];
  logic [WORD_BITS:0] words_in, words_out;
  logic [PIECE_BITS:0] pieces_in, pieces_out;

  logic [63:0] base;               // of the request in flight
  logic [CUT_BITS-1:0] next_low;   // of the address of its next word
  logic [WRITE_BITS-1:0] next_left;
  logic in_piece;

  wire [63:0] request = write_first ? write_address : base;
  wire [CUT_BITS-1:0] low = write_first ? write_address[CUT_BITS-1:0] : next_low;
  wire [WRITE_BITS-1:0] left = write_first ? write_bytes : next_left;
  wire [4:0] lanes = 5'd16 - 5'(low[3:0]);
  wire [9:0] payload_mask = (10'd128 << max_payload) - 10'd1;  // of 1024 it is 1023
  wire [9:0] low_in_piece = 10'(low) & payload_mask;
  wire [10:0] to_cut = {1'b0, payload_mask} + 11'd1 - {1'b0, low_in_piece};
  wire [CUT_BITS-1:0] after = low + CUT_BITS'(lanes);
  wire begins = !in_piece;
  wire ends = write_last || (10'(after) & payload_mask) == '0;

  wire words_free = words_in - words_out != (WORD_BITS + 1)'(FIFO_WORDS);
  wire pieces_free = pieces_in - pieces_out != (PIECE_BITS + 1)'(PIECES);
  assign write_ready = words_free && pieces_free;
  wire take = write_valid && write_ready;

  always_ff @(posedge clk) begin
    if (take) begin
      words[words_in[WORD_BITS-1:0]] <= write_data;
      words_in <= words_in + 1'b1;
      if (begins) pieces[pieces_in[PIECE_BITS-1:0]] <= '{{request[63:CUT_BITS], low}, 11'(left) < to_cut ? left : WRITE_BITS'(to_cut)};
      if (ends) begin
        pieces_in <= pieces_in + 1'b1;
        written_pieces <= written_pieces + 6'd1;
      end
      in_piece <= !ends;
      base <= request;
      next_low <= after;
      next_left <= left - WRITE_BITS'(lanes);
    end
    if (rst) begin
      words_in <= '0;
      pieces_in <= '0;
      in_piece <= 1'b0;
      written_pieces <= '0;
    end
  end

  // --- out: a descriptor, then the words of a piece, moved down by 8 bytes if it begins in the middle of one ---
  piece_t piece;
  assign piece = pieces[pieces_out[PIECE_BITS-1:0]];
  wire [127:0] word = words[words_out[WORD_BITS-1:0]];
  wire whole_there = pieces_in != pieces_out;
  logic [6:0] beats_left;   // of the packet in flight, its descriptor not counted
  logic [1:0] last_dwords;  // in its last beat; 0: four
  logic moved;
  logic [63:0] held;        // of the word before
  logic write_was_last;     // the packet before was a write
  logic [WORD_BITS:0] words_due;  // of the pieces that began: words_out gets there

  wire advance = !m_axis_rq_tvalid || m_axis_rq_tready;
  wire at_start = beats_left == '0;
  wire can_write = bus_master && whole_there;
  wire can_read = bus_master && read_valid;
  wire choose_read = can_read && !(can_write && !write_was_last);
  wire start_write = advance && at_start && can_write && !choose_read;
  wire start_read = advance && at_start && choose_read;
  assign read_ready = start_read;

  // Of the packet that would begin.
  wire [10:0] bytes = choose_read ? 11'(read_bytes) : 11'(piece.bytes);
  wire [10:0] bytes_up = bytes + 11'd3;
  wire [10:0] dwords = bytes_up >> 2;
  wire [10:0] dwords_up = dwords + 11'd3;
  wire [10:0] answer_up = bytes + 11'd15;
  wire [10:0] words_up = bytes + 11'(piece.address[3:0]) + 11'd15;
  wire [3:0] end_enable = bytes[1:0] == 2'd0 ? 4'hF : (4'd1 << bytes[1:0]) - 4'd1;
  wire [3:0] first_enable = dwords == 11'd1 ? end_enable : 4'hF;
  wire [3:0] last_enable = dwords == 11'd1 ? 4'h0 : end_enable;
  wire [63:0] address = choose_read ? read_address : piece.address;
  logic [5:0] sent_pieces;
  wire [5:0] number = choose_read ? sent_pieces : sent_pieces + 6'd1;

  always_ff @(posedge clk) begin
    issued <= start_read;
    if (start_read) begin
      issued_tag <= read_tag;
      issued_words <= ANSWER_BITS'(answer_up >> 4);
    end
    if (advance) begin
      m_axis_rq_tvalid <= start_write || start_read || !at_start;
      m_axis_rq_tkeep <= 4'hF;
      m_axis_rq_tuser <= '0;
      if (at_start) begin
        m_axis_rq_tdata <= {8'd0, 16'd0, choose_read ? 8'(read_tag) : 8'd0,
                            16'd0, 1'b0, choose_read ? MEMORY_READ : MEMORY_WRITE, dwords,
                            address[63:2], 2'b00};
        m_axis_rq_tuser <= {number[5:4], 32'd0, number[3:0], 16'd0, last_enable, first_enable};
        m_axis_rq_tlast <= choose_read;
      end else begin
        m_axis_rq_tdata <= moved ? {word[63:0], held} : word;
        m_axis_rq_tlast <= beats_left == 7'd1;
        if (beats_left == 7'd1 && last_dwords != 2'd0) m_axis_rq_tkeep <= (4'd1 << last_dwords) - 4'd1;
        beats_left <= beats_left - 7'd1;
        held <= word[127:64];
        if (words_out != words_due) words_out <= words_out + 1'b1;
      end
      if (start_write || start_read) write_was_last <= start_write;
      if (start_write) begin
        pieces_out <= pieces_out + 1'b1;
        sent_pieces <= number;
        beats_left <= 7'(dwords_up >> 2);
        last_dwords <= dwords[1:0];
        moved <= piece.address[3];
        held <= word[127:64];
        words_out <= words_out + (WORD_BITS + 1)'(piece.address[3]);
        words_due <= words_due + (WORD_BITS + 1)'(words_up >> 4);
      end
    end
    if (rst) begin
      m_axis_rq_tvalid <= 1'b0;
      issued <= 1'b0;
      beats_left <= '0;
      pieces_out <= '0;
      words_out <= '0;
      words_due <= '0;
      sent_pieces <= '0;
      write_was_last <= 1'b0;
    end
  end

  // --- what must hold ---
`ifndef SYNTHESIS
  logic in_request, in_packet;
  always_ff @(posedge clk) begin
    if (take) in_request <= !write_last;
    in_packet <= m_axis_rq_tvalid && !(m_axis_rq_tready && m_axis_rq_tlast);
    if (rst) begin
      in_request <= 1'b0;
      in_packet <= 1'b0;
    end else begin
      if (in_packet) a_no_pause : assert (m_axis_rq_tvalid);
      if (take) a_first : assert (write_first == !in_request);
      if (take && begins) a_write_aligned : assert (low[2:0] == '0 && left != '0);
      if (read_valid) a_read_aligned : assert (read_address[3:0] == '0 && read_bytes != '0);
      if (start_write || start_read) a_in_page : assert ({1'b0, address[11:0]} + 13'(bytes) <= 13'd4096);
      if (at_start) a_words : assert (words_out == words_due);
    end
  end
`endif
endmodule
