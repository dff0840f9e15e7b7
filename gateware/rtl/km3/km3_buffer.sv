// SPDX-License-Identifier: Apache-2.0
// From the recovered clock of a floor's link into the core's: whole good frames wait here, in words of 8 bytes, until they are taken. What the link
// counts comes over too.
//
// Contract
//   * rx_clk: up_* and counts as of km3_shore. Where clk is slower than rx_clk, a frame that does not come whole leaves nothing, and is `overrun` if it was
//     good. No count is lost: of each kind up to 2 ** WAITING_BITS - 1 wait until there is room, which is enough while clk does not stand.
//   * A frame's tower, and whether its hits are sampled, are what the settings say together with its floor, now or before they said another one.
//   * A frame's slots are in GROUPS, one after the other, of which each makes a packet: as many optical modules as fit into PACKET_WORDS, then each of the
//     other slots. A group begins with a word of its own; a frame whose last group ends with a full word, or that has no words, ends with one whose
//     m_axis_tkeep is 0. m_meta says how many words of 16 bits each group has, and stands beside a frame from its first word to its last.
//   * Good frames = those that come out + overrun + full.
module km3_buffer #(
    parameter int OPTICAL_WORDS = 610,
    parameter int PACKET_WORDS = 4470,  // of 16 bits, of the payload of a packet
    parameter int DEPTH_WORDS = 4096,   // [8 B]; a power of two
    parameter int FRAMES = 16,          // at once; a power of two
    parameter int WAITING_BITS = 6,
    localparam int SLOT_BITS = $clog2(km3_pkg::UP_SLOTS + 1),
    localparam int TOGETHER = 6 * OPTICAL_WORDS <= PACKET_WORDS ? 6 : 3 * OPTICAL_WORDS <= PACKET_WORDS ? 3 : 2 * OPTICAL_WORDS <= PACKET_WORDS ? 2 : 1,
    localparam int OPTICAL_GROUPS = 6 / TOGETHER,
    localparam int GROUPS = OPTICAL_GROUPS + 4,
    localparam int META_BITS = km3_pkg::FRAME_META_BITS + 16 * GROUPS
) (
    input logic rx_clk,
    input logic rx_rst,  // of reset_sync, from rst
    input logic                           up_head,
    input km3_pkg::head_t                 head,
    input logic                           up_valid,
    input logic           [SLOT_BITS-1:0] up_slot,
    input logic           [         15:0] up_data,
    input logic                           up_end,
    input logic                           up_good,
    input km3_pkg::rx_counts_t            rx_counts,

    input logic clk,
    input logic rst,
    input logic [63:0] now_cycles,
    input logic [ 7:0] floor,
    input logic [ 7:0] tower,
    input logic        sampled,

    output logic [         63:0] m_axis_tdata,
    output logic [          7:0] m_axis_tkeep,
    output logic                 m_axis_tvalid,
    input  logic                 m_axis_tready,
    output logic                 m_axis_tlast,
    output logic [META_BITS-1:0] m_meta,  // words of each group, the first lowest, then km3_pkg::frame_meta_t

    output km3_pkg::rx_counts_t counts,  // a pulse of each; lost is at most 1
    output logic                overrun,
    output logic                full
);
  if (OPTICAL_WORDS > PACKET_WORDS || PACKET_WORDS > 65535) begin : g_check
    $fatal(1, "PACKET_WORDS must hold a slot (instance %m)");
  end

  // --- of rx_clk: all of a cycle is one entry; a head has no word beside it ---
  localparam int COUNTS = 18;  // those of the link but `lost`, and overrun
  typedef struct packed {
    logic head;
    logic valid;
    logic ends;
    logic good;
    logic [SLOT_BITS-1:0] slot;
    km3_pkg::head_t data;
    logic [COUNTS-1:0] counts;
    logic [15:0] lost;
  } entry_t;
  localparam int ENTRY_BITS = 4 + SLOT_BITS + 64 + COUNTS + 16;
  entry_t pushed, came;
  logic takes, came_valid;

  // Where a part of a frame finds no room nothing more of it is pushed: the next head that is closes it as bad.
  logic kept_head, kept_valid, kept_end, kept_good, broken;
  logic [SLOT_BITS-1:0] kept_slot;
  km3_pkg::head_t kept_data;
  wire part = kept_head || ((kept_valid || kept_end) && !broken);
  wire overruns = kept_end && kept_good && (broken || !takes);
  always_ff @(posedge rx_clk) begin
    {kept_head, kept_valid, kept_end} <= rx_rst ? '0 : {up_head, up_valid, up_end};
    kept_good <= up_good;
    kept_slot <= up_slot;
    kept_data <= up_head ? head : 64'(up_data);
    if (kept_head || (part && !takes)) broken <= !takes;
    if (rx_rst) broken <= 1'b1;
  end

  // Counts go with the next entry that finds room, one of each kind at a time.
  logic [COUNTS-1:0][WAITING_BITS-1:0] waiting;
  logic [COUNTS-1:0] arise, some;
  logic [15:0] waiting_lost;
  wire [16:0] more_lost = {1'b0, takes ? 16'd0 : waiting_lost} + {1'b0, rx_counts.lost};
  assign arise = {overruns, rx_counts[$bits(km3_pkg::rx_counts_t)-1:16]};
  always_comb for (int c = 0; c < COUNTS; c++) some[c] = waiting[c] != '0;
  always_ff @(posedge rx_clk) begin
    for (int c = 0; c < COUNTS; c++) begin
      if (arise[c] && !(some[c] && takes) && waiting[c] != '1) waiting[c] <= waiting[c] + 1'b1;
      if (!arise[c] && some[c] && takes) waiting[c] <= waiting[c] - 1'b1;
    end
    waiting_lost <= more_lost[16] ? '1 : more_lost[15:0];
    if (rx_rst) begin
      waiting <= '0;
      waiting_lost <= '0;
    end
  end
  assign pushed = '{kept_head, kept_valid && !broken, kept_end && !broken, kept_good, kept_slot, kept_data, some, waiting_lost};
  wire pushes = part || some != '0 || waiting_lost != '0;
  async_fifo #(
      .WIDTH(ENTRY_BITS),
      .DEPTH(16)
  ) i_crossing (
      .s_clk(rx_clk),
      .s_rst(rx_rst),
      .s_data(pushed),
      .s_valid(pushes),
      .s_ready(takes),
      .m_clk(clk),
      .m_rst(rst),
      .m_data(came),
      .m_valid(came_valid),
      .m_ready(1'b1),
      .m_more()
  );

  // --- counts: pulses, and frames that are lost one after the other ---
  logic [15:0] lost;
  wire [16:0] lost_next = {1'b0, lost} + (came_valid ? {1'b0, came.lost} : '0) - 17'(lost != '0);
  always_ff @(posedge clk) begin
    {overrun, counts} <= {came_valid && !rst ? came.counts : '0, 16'(lost != '0 && !rst)};
    lost <= lost_next[16] ? '1 : lost_next[15:0];
    if (rst) lost <= '0;
  end

  // --- words of 8 bytes ---
  logic [GROUPS-1:0] group, held_group;  // one of them
  logic [GROUPS-1:0][15:0] words;
  logic [47:0] held;
  logic [1:0] held_words;
  logic open;
  logic [7:0] now_floor, now_tower, tower_before;
  logic now_sampled, sampled_before;
  km3_pkg::frame_meta_t about;
  logic [63:0] w_tdata;
  logic [7:0] w_tkeep;
  logic w_tvalid, w_tlast, w_tuser;
  always_comb begin
    for (int g = 0; g < GROUPS; g++) begin
      group[g] = g < OPTICAL_GROUPS ? int'(came.slot) / TOGETHER == g && int'(came.slot) < 6 : int'(came.slot) == 6 + g - OPTICAL_GROUPS;
    end
  end
  wire begins = came_valid && came.head;
  wire word = came_valid && came.valid && open;
  wire ends = came_valid && came.ends && open;
  wire other = group != held_group;
  wire fills = word && held_words == 2'd3 && !other;
  wire flushes = word && held_words != '0 && other;
  wire [15:0] data = came.data.at.number;
  always_ff @(posedge clk) begin
    if (word) begin
      held_group <= group;
      if (fills) held_words <= '0;
      else if (other || held_words == '0) begin
        held_words <= 2'd1;
        held[15:0] <= data;
      end else begin
        held_words <= held_words + 1'b1;
        if (held_words == 2'd1) held[31:16] <= data;
        if (held_words == 2'd2) held[47:32] <= data;
      end
      for (int g = 0; g < GROUPS; g++) if (group[g]) words[g] <= words[g] + 1'b1;
    end
    if (begins) begin
      open <= 1'b1;
      held_words <= '0;
      words <= '0;
      about.head <= came.data;
      {about.tower, about.sampled} <= came.data.floor == now_floor ? {now_tower, now_sampled} : {tower_before, sampled_before};
      about.start_cycle <= now_cycles;
    end else if (ends) open <= 1'b0;
    if (ends) about.parsed_cycle <= now_cycles;
    w_tdata <= {data, held};
    w_tkeep <= fills ? '1 : {2'b00, {2{held_words == 2'd3}}, {2{held_words[1]}}, {2{held_words != '0}}};
    w_tvalid <= (fills || flushes || ends || (begins && open)) && !rst;
    w_tlast <= ends || (begins && open);
    w_tuser <= !(ends && came.good);
    {now_floor, now_tower, now_sampled} <= {floor, tower, sampled};
    if (floor != now_floor) {tower_before, sampled_before} <= {now_tower, now_sampled};
    if (rst) open <= 1'b0;
  end
  frame_fifo #(
      .DEPTH_WORDS(DEPTH_WORDS),
      .PACKETS(FRAMES),
      .META_BITS(META_BITS)
  ) i_fifo (
      .clk,
      .rst,
      .s_axis_tdata(w_tdata),
      .s_axis_tkeep(w_tkeep),
      .s_axis_tvalid(w_tvalid),
      .s_axis_tlast(w_tlast),
      .s_axis_tuser(w_tuser),
      .s_meta({about, words}),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .m_meta,
      .fill_words(),
      .count_good(),
      .count_bad(),
      .drop_full(full)
  );
endmodule
