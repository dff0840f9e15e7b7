// SPDX-License-Identifier: Apache-2.0
// Decompression: MGP packets in, events out, each a packet of its own with its header and hits of 16 bits, whichever way they were packed.
//
// Terms
//   event   8 bytes of header as in MGP (timestamp, fine time, hit count, event number), then hits of 16 bits, four a word.
//   table   what a hit of a packed packet becomes: entry board * 512 + PM id. While cfg_table is low it becomes its own index: the channel, as in software.
//           Hits of padded packets are handed on as they are.
//
// Contract
//   * A packet is one that event_check let through, and is there without gaps (frame_fifo). Anything else may be read wrongly.
//   * The output has a word in every cycle in which it is taken but for: 3 or 4 cycles a packet, and the empty slots of padded packets, which take as long to skip as
//     they took to come. So padded packets go at the rate of the wire; packed ones grow to 16/9, and their input waits.
//   * A word leaves two cycles after the last byte it needs was taken.
//   * Run markers make no event. Each packet gives one pulse of one counter.
//   * The table is written one entry a cycle, before cfg_table is set; it holds anything before.
module decompressor (
    input logic clk,
    input logic rst,

    input logic        cfg_table,
    input logic        table_write,
    input logic [10:0] table_index,
    input logic [15:0] table_hit,

    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast,

    output logic count_packet,  // of data
    output logic count_marker
);
  localparam int IDS = 4;  // hits a word

  typedef enum logic [2:0] {HEAD, REST, EVENT, HITS, SKIP, DRAIN} state_t;

  // --- the next eight bytes, wherever they begin ---
  logic [63:0] held;
  logic held_valid, held_last;
  logic [2:0] offset;
  wire [127:0] both = {s_axis_tdata, held};
  wire [63:0] view = 64'(both >> {offset, 3'b0});

  state_t state;
  logic padded, odd;  // odd: the next group of packed hits begins in mid-byte
  logic [1:0] board;
  logic [7:0] events_left, hits_left;
  logic [3:0] slot_left;  // words of a padded slot
  wire final_group = hits_left <= 8'(IDS);
  wire [2:0] group = final_group ? hits_left[2:0] : 3'(IDS);

  // Four ids are 36 bits: of two groups, the first takes four bytes and half of the fifth, the second the rest of nine.
  wire packed_hits = state == HITS && !padded;
  wire [3:0] need = !packed_hits ? 4'd8 : final_group ? 4'(group) + 4'd1 : 4'd5;
  wire [3:0] take = packed_hits && !final_group && !odd ? 4'd4 : need;
  wire gives = state == EVENT || state == HITS;
  wire move = !m_axis_tvalid || m_axis_tready;
  wire [4:0] end_of_need = 5'(offset) + 5'(need);
  wire step = held_valid && state != DRAIN && (end_of_need <= 5'd8 || (s_axis_tvalid && !held_last)) && (move || !gives);
  wire [3:0] after = 4'(offset) + take;  // 16 never: what begins in mid-word takes at most eight
  wire drains = held_valid && state == DRAIN;
  wire wants_next = !held_valid || (step && after[3] && !held_last) || drains;  // the held word is used up
  assign s_axis_tready = !held_valid || (step && after[3] && !held_last) || (drains && !held_last);

  always_ff @(posedge clk) begin
    if (s_axis_tvalid && s_axis_tready) begin
      held <= s_axis_tdata;
      held_last <= s_axis_tlast;
    end
    if (wants_next) held_valid <= s_axis_tvalid && s_axis_tready;
    if (!held_valid || drains) offset <= '0;
    else if (step) offset <= after[2:0];
    if (rst) held_valid <= 1'b0;
  end

  // --- what they are ---
  wire no_hits = view[47:40] == '0;
  wire event_ends = state == EVENT ? no_hits : final_group;
  wire was_last_event = state == EVENT ? events_left == 8'd1 : events_left == '0;
  wire state_t behind_event = was_last_event ? DRAIN : padded && (state == EVENT || slot_left != 4'd1) ? SKIP : EVENT;

  always_ff @(posedge clk) begin
    count_packet <= 1'b0;
    count_marker <= 1'b0;
    if (step) begin
      case (state)
        HEAD: begin
          state <= REST;
          board <= view[9:8];
          padded <= view[19:16] == event_pkg::LAYOUT_PADDED;
          events_left <= view[31:24];
        end
        REST: begin
          state <= events_left == '0 ? DRAIN : EVENT;
          count_packet <= events_left != '0 && !rst;
          count_marker <= events_left == '0 && !rst;
        end
        EVENT: begin
          state <= no_hits ? behind_event : HITS;
          events_left <= events_left - 8'd1;
          hits_left <= view[47:40];
          odd <= 1'b0;
          slot_left <= 4'd8;
        end
        HITS: begin
          if (final_group) state <= behind_event;
          hits_left <= hits_left - 8'(group);
          odd <= !odd;
          slot_left <= slot_left - 4'd1;
        end
        SKIP: begin
          if (slot_left == 4'd1) state <= EVENT;
          slot_left <= slot_left - 4'd1;
        end
        default: ;
      endcase
    end
    if (drains && held_last) state <= HEAD;
    if (rst) state <= HEAD;
  end

  // --- out: header, hits as they came, or what the table says of them; four copies of the table are read at once ---
  logic [63:0] plain;
  logic [16*IDS-1:0] looked_up;
  logic from_table;
  logic [11*IDS-1:0] channel;
  wire [35:0] ids = odd ? view[39:4] : view[35:0];

  for (genvar lane = 0; lane < IDS; lane++) begin : g_lane
    logic [15:0] hits[2048];
    assign channel[11*lane+:11] = {board, ids[9*lane+:9]};
    always_ff @(posedge clk) if (table_write) hits[table_index] <= table_hit;
    always_ff @(posedge clk) if (move) looked_up[16*lane+:16] <= hits[channel[11*lane+:11]];
  end

  always_ff @(posedge clk) begin
    if (move) begin
      m_axis_tvalid <= step && gives;
      m_axis_tlast <= event_ends;
      m_axis_tkeep <= state == EVENT ? '1 : event_pkg::keep_of(group);
      plain <= packed_hits ? {5'b0, channel[43:33], 5'b0, channel[32:22], 5'b0, channel[21:11], 5'b0, channel[10:0]} : view;
      from_table <= packed_hits && cfg_table;
    end
    if (rst) m_axis_tvalid <= 1'b0;
  end
  assign m_axis_tdata = event_pkg::kept(from_table ? looked_up : plain,
                                        event_pkg::halves(m_axis_tkeep));

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!held_valid || state == DRAIN || !held_last || end_of_need <= 5'd8);  // the packet does not end in mid-event
      assert (!s_axis_tvalid || s_axis_tlast || s_axis_tkeep == '1);
      assert (!(step && padded) || offset == '0);
      assert (state != HITS || hits_left != '0);
    end
  end
endmodule
