// SPDX-License-Identifier: Apache-2.0
// Packets out of commands and of what was read for them: header, message word, data in the lanes of where it goes, footer. A packet waits until it is whole.
//
// Contract
//   * Reads come in the order of the commands. What could not be read makes no packet (count_unreadable), and its message is never complete.
//   * gone_valid tells of each job of the ring once: all of its memory has been read, or it could not be (gone_bad).
//   * A word a cycle; of a packet with data five cycles more at the most, of one without two.
module rdma_pack #(
    parameter int FIFO_WORDS = 1024,  // a power of two
    parameter int COMMANDS = 8        // that wait, so many reads are under way; a power of two
) (
    input logic clk,
    input logic rst,

    input  logic               s_valid,
    output logic               s_ready,
    input  rdma_pkg::command_t s_command,

    input  logic [127:0] read_tdata,
    input  logic         read_tvalid,
    output logic         read_tready,
    input  logic         read_tlast,
    input  logic         read_tuser,

    output logic [127:0] m_axis_tdata,
    output logic         m_axis_tvalid,
    input  logic         m_axis_tready,
    output logic         m_axis_tlast,

    output logic        gone_valid,
    input  logic        gone_ready,
    output logic        gone_bad,
    output logic [63:0] gone_tag,

    output logic count_packet,
    output logic count_unreadable
);
  localparam int BITS = $clog2(COMMANDS);
  localparam int PACKET_WORDS_MAX = apenet_pkg::PAYLOAD_WORDS_MAX + 2;

  if (COMMANDS < 2 || COMMANDS != 2 ** BITS || FIFO_WORDS < 2 * PACKET_WORDS_MAX) begin : g_check
    $fatal(1, "COMMANDS must be a power of two from 2, FIFO_WORDS two packets or more (instance %m)");
  end

  // --- commands that wait ---
  rdma_pkg::command_t commands[COMMANDS];
  rdma_pkg::command_t command;
  logic [BITS:0] came, went;
  typedef enum logic [2:0] {IDLE, HEADER, MESSAGE, LANDING, DATA, FOOTER} state_t;
  state_t state;
  logic [$clog2(FIFO_WORDS):0] fill;
  logic has_room;
  assign s_ready = came - went != (BITS + 1)'(COMMANDS);
  wire loads = state == IDLE && came != went && has_room && !gone_valid;
  wire is_get = command.header.packet_type == rdma_pkg::TYPE_GET;
  wire is_event = command.header.packet_type == rdma_pkg::TYPE_EVENT;
  wire is_send = command.header.packet_type == rdma_pkg::TYPE_SEND;
  always_ff @(posedge clk) begin
    if (s_valid && s_ready) commands[came[BITS-1:0]] <= s_command;
    if (s_valid && s_ready) came <= came + 1'b1;
    if (loads) command <= commands[went[BITS-1:0]];
    if (loads) went <= went + 1'b1;
    if (rst) {came, went} <= '0;
  end

  // --- data from its lanes in memory to its lanes in the packet: words are turned, and each word out is of two of them ---
  wire [3:0] turn = command.lane_out - command.lane_in;
  wire early = command.lane_out < command.lane_in;  // the first word out needs two
  logic [127:0] turned, older, merged;
  logic turned_valid, skips;
  logic [7:0] ins, outs;  // words that have moved
  logic ins_done, first;
  wire [255:0] twice = {read_tdata, read_tdata};
  wire [127:0] turns = twice[128-8*int'(turn)+:128];
  assign read_tready = state == DATA && !ins_done;
  wire fetches = read_tvalid && read_tready;
  wire moves = state == DATA && (turned_valid || ins_done);
  wire gives = moves && !skips;
  wire last_out = outs == command.words_out;
  wire [15:0] from = first ? 16'hFFFF << command.lane_out : 16'hFFFF;
  wire [15:0] to = last_out && command.lane_end != '0 ? ~(16'hFFFF << command.lane_end) : 16'hFFFF;
  wire [15:0] of_turned = 16'hFFFF << turn;
  for (genvar b = 0; b < 16; b++) begin : g_lane
    assign merged[8*b+:8] = !(from[b] && to[b]) ? 8'd0 : of_turned[b] ? turned[8*b+:8] : older[8*b+:8];
  end
  logic bad;  // it could not be read
  always_ff @(posedge clk) begin
    if (state == HEADER) begin
      {ins, outs} <= '0;
      {ins_done, turned_valid, bad} <= '0;
      first <= 1'b1;
      skips <= early;
    end
    if (state == DATA) turned_valid <= fetches;
    if (fetches) begin
      turned <= turns;
      ins <= ins + 1'b1;
      ins_done <= ins == command.words_in;
      bad <= bad || (read_tlast && read_tuser);
    end
    if (moves) begin
      older <= turned;
      skips <= 1'b0;
    end
    if (gives) begin
      outs <= outs + 1'b1;
      first <= 1'b0;
    end
  end

  // --- one word after the other ---
  logic word_valid, word_last, is_footer, word_bad;
  logic [127:0] word;
  logic message_bad;  // a packet before of the same message
  always_ff @(posedge clk) begin
    word_valid <= gives;
    is_footer <= 1'b0;
    word_last <= 1'b0;
    word <= merged;
    count_unreadable <= 1'b0;
    case (state)
      IDLE: if (loads) state <= HEADER;
      HEADER: begin
        word <= {8'd0, command.header};
        word_valid <= !command.refused;
        state <= command.refused || is_event ? FOOTER : is_send ? DATA : MESSAGE;
      end
      MESSAGE: begin
        word <= command.message;
        word_valid <= 1'b1;
        state <= is_get ? LANDING : DATA;
      end
      LANDING: begin
        word <= command.landing;
        word_valid <= 1'b1;
        state <= FOOTER;
      end
      DATA: if (gives && last_out) state <= FOOTER;
      default: begin  // FOOTER
        {word_valid, word_last, is_footer} <= {3{!command.refused}};
        count_unreadable <= bad;
        word_bad <= bad;
        message_bad <= !command.final_ && (message_bad || bad);
        if (command.own && command.final_) begin
          gone_valid <= 1'b1;
          gone_bad <= bad || message_bad || command.refused;
          gone_tag <= command.tag;
        end
        state <= IDLE;
      end
    endcase
    if (gone_valid && gone_ready) gone_valid <= 1'b0;
    if (rst) begin
      state <= IDLE;
      word_valid <= 1'b0;
      word_last <= 1'b0;
      message_bad <= 1'b0;
      gone_valid <= 1'b0;
      count_unreadable <= 1'b0;
    end
  end

  logic [31:0] crc, crc_next;
  logic amid;
  crc32_wide i_crc (
      .crc(amid ? crc : '1),
      .data(word),
      .crc_next
  );
  always_ff @(posedge clk) begin
    if (word_valid) crc <= crc_next;
    if (word_valid) amid <= !word_last;
    has_room <= int'(fill) <= FIFO_WORDS - 2 * PACKET_WORDS_MAX;
    if (rst) amid <= 1'b0;
    if (rst) has_room <= 1'b0;
  end

  logic full;
  frame_fifo #(
      .DEPTH_WORDS(FIFO_WORDS),
      .PACKETS(FIFO_WORDS / 2),
      .DATA_BITS(128)
  ) i_fifo (
      .clk,
      .rst,
      .s_axis_tdata(is_footer ? {apenet_pkg::FOOTER_GOOD, ~crc} : word),
      .s_axis_tkeep('1),
      .s_axis_tvalid(word_valid),
      .s_axis_tlast(word_last),
      .s_axis_tuser(word_last && word_bad),
      .s_meta('0),
      .m_axis_tdata,
      .m_axis_tkeep(),
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .m_meta(),
      .fill_words(fill),
      .count_good(count_packet),
      .count_bad(),
      .drop_full(full)
  );

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!full);
      assert (!fetches || read_tlast == (ins == command.words_in));
    end
  end
endmodule
