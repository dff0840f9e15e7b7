// SPDX-License-Identifier: Apache-2.0
// The floor control module's end: recovers clock and time from the down link, sends with that clock, and puts what the floor reads into the slots of its frames.
//
// Contract
//   * clk is the recovered clock, and the floor's; help_clk is of km3_phase, made from it. rst comes from anywhere.
//   * `word` of frame `at` is the floor's time while `timed` is up. It is taken up by two good heads in a row that agree, and lost with the alignment, with a head that
//     says another time (error_jump), and after HOLD_FRAMES frames without a good head (error_silent). A frame is only sent while it is up: none ever carries a wrong time.
//   * Word 0 of a frame is always the same number of cycles after the down frame's first word came in, and so many before the first word of the up frame goes out.
//   * Slots as km3_pkg says; the last one is slow control's answers. s_ready is down while the slot's FIFO is full.
//   * Once the receiver is not aligned, or is moved, the sender is off, and begins anew.
module km3_fcm #(
    parameter int LINE_MBPS = 800,
    parameter int FRAMES_PER_S = 10000,
    parameter int OPTICAL_WORDS = 610,
    parameter int HYDROPHONE_WORDS = 64,
    parameter int INSTRUMENT_WORDS = 60,
    parameter int CONTROL_WORDS = 128,
    parameter int FIFO_WORDS = 1024,
    parameter int PHASE_STEPS = 40,
    parameter int SLIDE_BITS = 1,
    parameter int COMMA_BITS = 10,  // km3_align
    parameter int GAP_CYCLES = 32,
    parameter int SEARCH_CYCLES = 20000,
    localparam int PHASE_BITS = $clog2(PHASE_STEPS),
    localparam int SLOTS = km3_pkg::UP_SLOTS
) (
    input logic clk,
    input logic rst,
    input logic help_clk,
    input logic div_clk,

    input logic [7:0] floor,

    input  logic [19:0] rx_bits,
    output logic        rx_slide,
    output logic        rx_restart,
    output logic [19:0] tx_codes,
    output logic        tx_on,
    output logic        tx_slide,

    input  logic [SLOTS-1:0]       s_valid,
    output logic [SLOTS-1:0]       s_ready,
    input  logic [SLOTS-1:0][15:0] s_data,
    input  logic                   express_valid,
    output logic                   express_ready,
    input  logic [            7:0] express,

    output logic        control_valid,
    output logic [15:0] control_data,
    output logic        control_end,
    output logic        control_good,
    output logic        down_head_valid,
    output km3_pkg::head_t down_head,
    output logic        down_express_valid,
    output logic [ 7:0] down_express,

    output logic                       timed,
    output logic                [15:0] word,
    output km3_pkg::time_t             at,
    output logic                       start,
    output logic                       rx_locked,
    output logic                [ 4:0] rx_slip,
    output km3_pkg::rx_counts_t        counts,
    output logic                       error_jump,
    output logic                       error_silent,
    output logic                       error_cut,

    output logic [PHASE_BITS-1:0] tx_moved,
    output logic                  error_tx_phase,
    output logic                  error_tx_failed
);
  // verilator lint_off SYNCASYNCNET
  localparam int HOLD_FRAMES = 8;
  localparam int FRAME_WORDS = LINE_MBPS * 1000 / 20 * 1000 / FRAMES_PER_S;
  localparam int USED_WORDS = 6 * OPTICAL_WORDS + 2 * HYDROPHONE_WORDS + INSTRUMENT_WORDS + CONTROL_WORDS + km3_pkg::UP_OTHER_WORDS;
  localparam logic [SLOTS-1:0][15:0] UP_WORDS = {
    16'(CONTROL_WORDS), 16'(INSTRUMENT_WORDS), {2{16'(HYDROPHONE_WORDS)}}, {6{16'(OPTICAL_WORDS)}}
  };
  if (USED_WORDS > FRAME_WORDS || FRAME_WORDS * FRAMES_PER_S / 1000 * 20 != LINE_MBPS * 1000) begin : g_check
    $fatal(1, "the slots must fit into a frame, and whole frames into a second of the line (instance %m)");
  end

  logic rx_rst;
  reset_sync i_reset (
      .clk,
      .rst_async(rst),
      .rst(rx_rst)
  );

  // --- down ---
  logic [7:0] since;
  km3_rx #(
      .SLOTS(km3_pkg::DOWN_SLOTS),
      .SLOT_WORDS(16'(CONTROL_WORDS)),
      .KIND(km3_pkg::KIND_DOWN),
      .OTHER_KIND(km3_pkg::KIND_UP),
      .FRAMES_PER_S(FRAMES_PER_S),
      .SLIDE_BITS(SLIDE_BITS),
      .COMMA_BITS(COMMA_BITS),
      .GAP_CYCLES(GAP_CYCLES),
      .SEARCH_CYCLES(SEARCH_CYCLES)
  ) i_rx (
      .clk,
      .rst(rx_rst),
      .link_rst(rx_rst),
      .s_bits(rx_bits),
      .slide(rx_slide),
      .restart(rx_restart),
      .locked(rx_locked),
      .slip(rx_slip),
      .floor,
      .m_head(down_head_valid),
      .head(down_head),
      .since,
      .m_valid(control_valid),
      .m_slot(),
      .m_data(control_data),
      .m_end(control_end),
      .m_good(control_good),
      .express_valid(down_express_valid),
      .express(down_express),
      .counts
  );

  // --- time ---
  logic agrees, begins, starts_next, loaded;
  logic [3:0] silent;  // frames
  wire told = down_head_valid && down_head.flags.timed;
  km3_time #(
      .FRAME_WORDS (FRAME_WORDS),
      .FRAMES_PER_S(FRAMES_PER_S)
  ) i_time (
      .clk,
      .rst(rx_rst),
      .load(told),
      .load_word({8'd0, since}),
      .load_at(down_head.at),
      .agrees,
      .word,
      .at,
      .start(begins),
      .starts_next
  );
  always_ff @(posedge clk) begin
    {error_jump, error_silent} <= '0;
    if (told) begin
      loaded <= 1'b1;
      timed <= loaded && agrees;
      error_jump <= timed && !agrees;
      silent <= '0;
    end else if (begins && timed) begin
      silent <= silent + 1'b1;
      if (int'(silent) == HOLD_FRAMES) begin
        error_silent <= 1'b1;
        {timed, loaded} <= '0;
      end
    end
    if (rx_rst || !rx_locked) begin
      {timed, loaded} <= '0;
      silent <= '0;
    end
    if (rx_rst) {error_jump, error_silent} <= '0;
  end

  // --- up ---
  logic hold;
  always_ff @(posedge clk) hold <= rx_rst || !rx_locked;
  assign start = begins && timed && tx_on && !hold;
  km3_pkg::head_t up_head;
  assign up_head = '{'{6'd0, timed, rx_locked}, floor, at};
  km3_tx #(
      .SLOTS(SLOTS),
      .SLOT_WORDS(UP_WORDS),
      .KIND(km3_pkg::KIND_UP),
      .FIFO_WORDS(FIFO_WORDS),
      .PHASE_STEPS(PHASE_STEPS)
  ) i_tx (
      .clk,
      .rst(rx_rst),
      .help_clk,
      .div_clk,
      .hold,
      .start,
      .starts_next,
      .head(up_head),
      .s_valid,
      .s_ready,
      .s_data,
      .s_last('0),
      .took(),
      .took_last(),
      .express_valid,
      .express_ready,
      .express,
      .tx_codes,
      .tx_on,
      .tx_slide,
      .ends(),
      .cut(error_cut),
      .moved(tx_moved),
      .error_phase(error_tx_phase),
      .failed(error_tx_failed)
  );
endmodule
