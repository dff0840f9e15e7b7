// SPDX-License-Identifier: Apache-2.0
// The receiver of a link with one latency, from the deserialiser's words to frames: km3_align, dec_8b10b, km3_frame_rx. All of it in the recovered clock.
//
// Contract: that of the three. From s_bits to a word's place in km3_frame_rx it is always LATENCY_CYCLES. link_rst, of reset_sync, begins the alignment anew; what
// was counted then and is counted because of it is not lost.
module km3_rx #(
    parameter int SLOTS = 2,
    parameter logic [SLOTS-1:0][15:0] SLOT_WORDS = {16'd8, 16'd8},
    parameter logic [7:0] KIND = km3_pkg::KIND_UP,
    parameter logic [7:0] OTHER_KIND = km3_pkg::KIND_DOWN,
    parameter int FRAMES_PER_S = 10000,
    parameter int SLIDE_BITS = 1,
    parameter int COMMA_BITS = 10,  // km3_align
    parameter int GAP_CYCLES = 32,
    parameter int SEARCH_CYCLES = 20000,
    localparam int SLOT_BITS = $clog2(SLOTS + 1)
) (
    input logic clk,
    input logic rst,
    input logic link_rst,

    input  logic [19:0] s_bits,
    output logic        slide,
    output logic        restart,
    output logic        locked,
    output logic [ 4:0] slip,

    input  logic           [          7:0] floor,
    output logic                           m_head,
    output km3_pkg::head_t                 head,
    output logic           [          7:0] since,
    output logic                           m_valid,
    output logic           [SLOT_BITS-1:0] m_slot,
    output logic           [         15:0] m_data,
    output logic                           m_end,
    output logic                           m_good,
    output logic                           express_valid,
    output logic           [          7:0] express,

    output km3_pkg::rx_counts_t counts
);
  logic [19:0] codes;
  logic [1:0] k, code_errors, disparity_errors;
  logic [15:0] data;
  wire error = (code_errors | disparity_errors) != '0;
  logic bad, lost_lock, error_place, was_locked;
  always_ff @(posedge clk) bad <= error && !link_rst;
  km3_align #(
      .SLIDE_BITS(SLIDE_BITS),
      .COMMA_BITS(COMMA_BITS),
      .GAP_CYCLES(GAP_CYCLES),
      .SEARCH_CYCLES(SEARCH_CYCLES)
  ) i_align (
      .clk,
      .rst(link_rst),
      .s_bits,
      .m_codes(codes),
      .bad,
      .slide,
      .restart,
      .locked,
      .slip,
      .lost(lost_lock),
      .error_place,
      .place()
  );
  dec_8b10b #(
      .SYMBOLS(2)
  ) i_dec (
      .clk,
      .rst(link_rst),
      .s_codes(codes),
      .m_k(k),
      .m_data(data),
      .code_error(code_errors),
      .disparity_error(disparity_errors)
  );
  logic count_good, drop_head, drop_floor, drop_cut, drop_code, drop_symbol, drop_crc;
  logic error_code, error_order, error_direction, error_stray, error_express, error_time;
  logic [15:0] lost;
  km3_frame_rx #(
      .SLOTS(SLOTS),
      .SLOT_WORDS(SLOT_WORDS),
      .KIND(KIND),
      .OTHER_KIND(OTHER_KIND),
      .FRAMES_PER_S(FRAMES_PER_S)
  ) i_frames (
      .s_k(k),
      .s_data(data),
      .error,
      .*
  );
  always_ff @(posedge clk) was_locked <= locked && !rst;
  always_comb begin
    counts.count_up = locked && !was_locked && !rst;
    counts.count_down = lost_lock;
    counts.restarts = restart;
    counts.count_good = count_good;
    counts.drop_head = drop_head;
    counts.drop_floor = drop_floor;
    counts.drop_cut = drop_cut;
    counts.drop_code = drop_code;
    counts.drop_symbol = drop_symbol;
    counts.drop_crc = drop_crc;
    counts.error_place = error_place;
    counts.error_code = error_code;
    counts.error_order = error_order;
    counts.error_direction = error_direction;
    counts.error_stray = error_stray;
    counts.error_express = error_express;
    counts.error_time = error_time;
    counts.lost = lost;
  end
endmodule
