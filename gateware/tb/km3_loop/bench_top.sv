// SPDX-License-Identifier: Apache-2.0
// km3_shore and km3_fcm joined by two fibres of whole words, with deserialisers that begin anywhere in a word and slide bit by bit. The floor's clock is the recovered one of both
// ends, of any phase. Serialisers' dividers stand where they must, or where they must not. Short frames: 100 words, 500 of them a second.
module bench_top (
    input logic clk,
    input logic floor_clk,
    input logic help_clk,
    input logic rst,
    input logic link_rst,
    input logic floor_rst,

    input logic        gps_set,
    input logic [31:0] gps_second,
    input logic [ 7:0] floor,
    input logic [ 7:0] floor_there,  // what the floor's own number is

    input  logic              control_valid,
    output logic              control_ready,
    input  logic [15:0]       control_data,
    input  logic              express_valid,
    output logic              express_ready,
    input  logic [ 7:0]       express,
    input  logic [ 9:0]       s_valid,
    output logic [ 9:0]       s_ready,
    input  logic [ 9:0][15:0] s_data,
    input  logic              up_express_in_valid,
    output logic              up_express_in_ready,
    input  logic [ 7:0]       up_express_in,

    // the fibres
    input logic [ 5:0] lag,  // words, of each, to 62
    input logic [ 4:0] down_begin,  // where in a word a deserialiser begins
    input logic [ 4:0] up_begin,
    input logic [19:0] down_flip,
    input logic [19:0] up_flip,
    input logic        down_dark,
    input logic        up_dark,
    input logic        up_is_own,  // the shore hears itself
    input logic        div_wrong,  // the dividers of both ends

    output logic           [39:0] events,  // test_km3_loop.py names them
    output km3_pkg::head_t        head,
    output logic           [ 7:0] up_since,
    output logic           [ 3:0] up_slot,
    output logic           [15:0] up_data,
    output logic                  up_good,
    output logic           [ 7:0] up_express,
    output km3_pkg::rx_counts_t   counts,
    output km3_pkg::time_t        at,
    output logic           [31:0] trip,
    output logic           [ 5:0] phase,
    output logic           [ 4:0] rx_slip,
    output logic           [ 5:0] tx_moved,
    output logic           [15:0] control_out,
    output logic                  control_good,
    output km3_pkg::head_t        down_head,
    output logic           [ 7:0] down_express,
    output logic           [15:0] floor_word,
    output km3_pkg::time_t        floor_at,
    output logic           [ 4:0] floor_slip,
    output km3_pkg::rx_counts_t   floor_counts,
    output logic           [ 5:0] floor_moved,
    output logic           [ 4:0] up  // shore: locked, sends; floor: locked, sends, timed
);
  localparam int LINE_MBPS = 1;
  localparam int FRAMES_PER_S = 500;
  localparam int OPTICAL_WORDS = 6;
  localparam int HYDROPHONE_WORDS = 4;
  localparam int INSTRUMENT_WORDS = 5;
  localparam int CONTROL_WORDS = 7;
  localparam int FIFO_WORDS = 32;
  localparam int GAP_CYCLES = 8;
  localparam int SEARCH_CYCLES = 400;

  // --- fibres and deserialisers, with the recovered clock ---
  logic [19:0] down_codes, up_codes, down_bits, up_bits;
  logic shore_on, floor_on, shore_slide, floor_slide, shore_slid, floor_slid;
  logic [63:0][19:0] down_words, up_words;
  logic [4:0] down_place, up_place;
  always_ff @(posedge floor_clk) begin
    down_words <= {down_words[62:0], down_dark || !shore_on ? 20'd0 : down_codes ^ down_flip};
    up_words <= {up_words[62:0], up_is_own ? down_codes : up_dark || !floor_on ? 20'd0 : up_codes ^ up_flip};
    down_bits <= 20'({down_words[lag], down_words[lag+1]} >> down_place);
    up_bits <= 20'({up_words[lag], up_words[lag+1]} >> up_place);
    {shore_slid, floor_slid} <= {shore_slide, floor_slide};
    if (floor_slide && !floor_slid) down_place <= down_place == 5'd19 ? '0 : down_place + 1'b1;
    if (shore_slide && !shore_slid) up_place <= up_place == 5'd19 ? '0 : up_place + 1'b1;
    if (rst) {down_place, up_place} <= {down_begin, up_begin};
  end

  // --- both ends ---
  logic up_head, up_valid, up_end, up_express_valid, start, error_gps, error_cut, trip_valid, error_second, error_trip, phase_valid, error_phase;
  logic error_tx_phase, error_tx_failed, tx_slide, rx_restart, rx_locked;
  logic control_out_valid, control_end, down_head_valid, down_express_valid, timed, floor_start, floor_locked, error_jump, error_silent, floor_cut;
  logic floor_tx_phase, floor_tx_failed, floor_tx_slide, floor_restart;
  km3_shore #(
      .LINE_MBPS(LINE_MBPS),
      .FRAMES_PER_S(FRAMES_PER_S),
      .OPTICAL_WORDS(OPTICAL_WORDS),
      .HYDROPHONE_WORDS(HYDROPHONE_WORDS),
      .INSTRUMENT_WORDS(INSTRUMENT_WORDS),
      .CONTROL_WORDS(CONTROL_WORDS),
      .FIFO_WORDS(FIFO_WORDS),
      .GAP_CYCLES(GAP_CYCLES),
      .SEARCH_CYCLES(SEARCH_CYCLES)
  ) i_shore (
      .rx_clk(floor_clk),
      .control_last(1'b0),
      .control_took(),
      .control_took_last(),
      .frame_ends(),
      .hears(),
      .div_clk(clk ^ !div_wrong),
      .tx_codes(down_codes),
      .tx_on(shore_on),
      .rx_bits(up_bits),
      .rx_slide(shore_slide),
      .phase(phase_now),
      .word(),
      .*
  );
  km3_fcm #(
      .LINE_MBPS(LINE_MBPS),
      .FRAMES_PER_S(FRAMES_PER_S),
      .OPTICAL_WORDS(OPTICAL_WORDS),
      .HYDROPHONE_WORDS(HYDROPHONE_WORDS),
      .INSTRUMENT_WORDS(INSTRUMENT_WORDS),
      .CONTROL_WORDS(CONTROL_WORDS),
      .FIFO_WORDS(FIFO_WORDS),
      .GAP_CYCLES(GAP_CYCLES),
      .SEARCH_CYCLES(SEARCH_CYCLES)
  ) i_fcm (
      .clk(floor_clk),
      .rst(floor_rst),
      .help_clk,
      .div_clk(floor_clk ^ !div_wrong),
      .floor(floor_there),
      .rx_bits(down_bits),
      .rx_slide(floor_slide),
      .rx_restart(floor_restart),
      .tx_codes(up_codes),
      .tx_on(floor_on),
      .tx_slide(floor_tx_slide),
      .s_valid,
      .s_ready,
      .s_data,
      .express_valid(up_express_in_valid),
      .express_ready(up_express_in_ready),
      .express(up_express_in),
      .control_valid(control_out_valid),
      .control_data(control_out),
      .control_end,
      .control_good,
      .down_head_valid,
      .down_head,
      .down_express_valid,
      .down_express,
      .timed,
      .word(floor_word),
      .at(floor_at),
      .start(floor_start),
      .rx_locked(floor_locked),
      .rx_slip(floor_slip),
      .counts(floor_counts),
      .error_jump,
      .error_silent,
      .error_cut(floor_cut),
      .tx_moved(floor_moved),
      .error_tx_phase(floor_tx_phase),
      .error_tx_failed(floor_tx_failed)
  );
  assign up = {rx_locked, shore_on, floor_locked, floor_on, timed};

  // The meter's clock has pulses of its own: one of clk's for each.
  logic [7:0] help_levels, help_now, help_last;
  logic [5:0] help_toggles, phase_now;
  always_ff @(posedge help_clk) begin
    if (phase_valid) phase <= phase_now;
    help_toggles <= help_toggles ^ {phase_valid, error_phase, error_tx_phase, error_tx_failed, floor_tx_phase, floor_tx_failed};
    if (rst) help_toggles <= '0;
  end
  assign help_levels = {2'd0, help_toggles};
  always_ff @(posedge clk) {help_last, help_now} <= rst ? '0 : {help_now, help_levels};
  wire [5:0] help_events = help_now[5:0] ^ help_last[5:0];
  assign events = {
    {up_head, up_valid, up_end, up_express_valid},
    {start, error_gps, error_cut, trip_valid, error_second, error_trip},
    {control_out_valid, control_end, down_head_valid, down_express_valid},
    {floor_start, error_jump, error_silent, floor_cut},
    help_events,
    {tx_slide, floor_tx_slide, rx_restart, floor_restart},
    {counts != '0, floor_counts != '0},
    10'd0
  };
endmodule
