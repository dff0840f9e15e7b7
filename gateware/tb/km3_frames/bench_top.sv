// SPDX-License-Identifier: Apache-2.0
// km3_frame_tx, and km3_frame_rx behind it: what goes over is seen, and words of it can be exchanged for others. Frames of three slots.
module bench_top #(
    parameter int FRAME_WORDS = 96,
    parameter int FRAMES_PER_S = 50,
    localparam int SLOTS = 3
) (
    input logic clk,
    input logic rst,

    // the time base, and its setting
    input logic        load,
    input logic [15:0] load_word,
    input logic [47:0] load_at,     // second, number
    input logic        sends,
    input logic [ 7:0] sent_floor,

    input  logic [SLOTS-1:0]       s_valid,
    output logic [SLOTS-1:0]       s_ready,
    input  logic [SLOTS-1:0][15:0] s_data,
    input  logic                   express_in_valid,
    output logic                   express_in_ready,
    input  logic [            7:0] express_in,

    output logic        agrees,
    output logic        start,
    output logic [15:0] word,
    output logic [47:0] at,
    output logic        ends,
    output logic        cut,
    output logic [ 1:0] tx_k,
    output logic [15:0] tx_data,

    // what the receiver gets in its place
    input logic        other,
    input logic [ 1:0] other_k,
    input logic [15:0] other_data,
    input logic        error,
    input logic        locked,
    input logic [ 7:0] floor,

    output logic        m_head,
    output logic [63:0] head,
    output logic [ 7:0] since,
    output logic        m_valid,
    output logic [ 1:0] m_slot,
    output logic [15:0] m_data,
    output logic        m_end,
    output logic        m_good,
    output logic        express_valid,
    output logic [ 7:0] express,

    output logic count_good,
    output logic drop_head,
    output logic drop_floor,
    output logic drop_cut,
    output logic drop_code,
    output logic drop_symbol,
    output logic drop_crc,
    output logic error_code,
    output logic error_order,
    output logic error_direction,
    output logic error_stray,
    output logic error_express,
    output logic error_time,
    output logic [15:0] lost
);
  localparam logic [SLOTS-1:0][15:0] SLOT_WORDS = {16'd5, 16'd1, 16'd20};
  logic begins, starts_next;
  km3_pkg::time_t now;
  assign at = now;
  km3_time #(
      .FRAME_WORDS (FRAME_WORDS),
      .FRAMES_PER_S(FRAMES_PER_S)
  ) i_time (
      .clk,
      .rst,
      .load,
      .load_word,
      .load_at,
      .agrees,
      .word,
      .at(now),
      .start(begins),
      .starts_next
  );
  assign start = begins && sends;
  logic [SLOTS-1:0][15:0] waiting, slot_data;
  logic [SLOTS-1:0] takes;
  for (genvar s = 0; s < SLOTS; s++) begin : g_slot
    km3_slot #(
        .WORDS(32)
    ) i_slot (
        .clk,
        .rst,
        .s_valid(s_valid[s]),
        .s_ready(s_ready[s]),
        .s_data (s_data[s]),
        .waiting(waiting[s]),
        .m_take (takes[s]),
        .m_data (slot_data[s])
    );
  end
  km3_frame_tx #(
      .SLOTS(SLOTS),
      .SLOT_WORDS(SLOT_WORDS),
      .KIND(km3_pkg::KIND_UP)
  ) i_tx (
      .clk,
      .rst,
      .start,
      .starts_next,
      .head('{'{6'd0, 1'b1, 1'b0}, sent_floor, now}),
      .s_waiting(waiting),
      .s_take(takes),
      .s_data(slot_data),
      .express_valid(express_in_valid),
      .express_ready(express_in_ready),
      .express(express_in),
      .m_k(tx_k),
      .m_data(tx_data),
      .ends,
      .cut
  );
  km3_frame_rx #(
      .SLOTS(SLOTS),
      .SLOT_WORDS(SLOT_WORDS),
      .KIND(km3_pkg::KIND_UP),
      .OTHER_KIND(km3_pkg::KIND_DOWN),
      .FRAMES_PER_S(FRAMES_PER_S)
  ) i_rx (
      .s_k(other ? other_k : tx_k),
      .s_data(other ? other_data : tx_data),
      .*
  );
endmodule
