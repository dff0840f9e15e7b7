// SPDX-License-Identifier: Apache-2.0
// The shore's end of one floor's link: sends the reference clock, time and slow control, and takes the floor's frames apart. It measures the whole loop.
//
// Contract
//   * clk is the reference (GPS); rx_clk is recovered from what the floor sends, so of the same rate and, when aligned, of one phase. help_clk is of km3_phase.
//   * gps_set: the second gps_second begins in the next cycle. A second that does not begin where the last one ends is a pulse of error_gps. Frames are sent once time
//     was set.
//   * floor: whose link it is; of a flip-flop or a pin. A frame that comes in while it is changed may be refused.
//   * link_rst begins the link anew, and is of a flip-flop of clk: serialiser and deserialiser are to be reset with it. Time, what the monitors keep and the name of
//     the frame that it cuts stay. The receiver also begins anew when rx_clk has stood, for some 64 cycles of clk.
//   * hears, of clk: the receiver is aligned, and its clock runs. The floor is told.
//   * control_*: words of slow control, control_last beside the last one of a payload. What becomes of them is told as by km3_tx.
//   * Of rx_clk: what comes up, and `counts`. Of clk: round trip, with its monitor. Of help_clk: phase of rx_clk behind clk in steps of km3_phase while the link is up, with its monitor, and what the
//     sender's divider does.
module km3_shore #(
    parameter int LINE_MBPS = 800,
    parameter int FRAMES_PER_S = 10000,
    parameter int OPTICAL_WORDS = 610,      // of a slot
    parameter int HYDROPHONE_WORDS = 64,
    parameter int INSTRUMENT_WORDS = 60,
    parameter int CONTROL_WORDS = 128,
    parameter int FIFO_WORDS = 1024,
    parameter int PHASE_STEPS = 40,
    parameter int SLIDE_BITS = 1,
    parameter int GAP_CYCLES = 32,
    parameter int SEARCH_CYCLES = 20000,
    localparam int PHASE_BITS = $clog2(PHASE_STEPS),
    localparam int SLOT_BITS = $clog2(km3_pkg::UP_SLOTS + 1)
) (
    input logic clk,
    input logic rst,
    input logic link_rst,
    input logic help_clk,
    input logic div_clk,
    input logic rx_clk,

    input logic        gps_set,
    input logic [31:0] gps_second,
    input logic [ 7:0] floor,

    input  logic        control_valid,
    output logic        control_ready,
    input  logic [15:0] control_data,
    input  logic        control_last,
    output logic        control_took,
    output logic        control_took_last,
    output logic        frame_ends,
    input  logic        express_valid,
    output logic        express_ready,
    input  logic [ 7:0] express,

    output logic [19:0] tx_codes,
    output logic        tx_on,
    output logic        tx_slide,
    input  logic [19:0] rx_bits,
    output logic        rx_slide,
    output logic        rx_restart,

    output logic                           rx_locked,
    output logic           [          4:0] rx_slip,
    output logic                           up_head,
    output km3_pkg::head_t                 head,
    output logic           [          7:0] up_since,  // cycles from its first word to up_head
    output logic                           up_valid,
    output logic           [SLOT_BITS-1:0] up_slot,
    output logic           [         15:0] up_data,
    output logic                           up_end,
    output logic                           up_good,
    output logic                           up_express_valid,
    output logic           [          7:0] up_express,
    output km3_pkg::rx_counts_t            counts,

    output logic           hears,
    output logic           start,
    output km3_pkg::time_t at,
    output logic [15:0]    word,         // of the frame `at`
    output logic           error_gps,
    output logic           error_cut,
    output logic           trip_valid,
    output logic [31:0]    trip,         // frames, words
    output logic           error_second,
    output logic           error_trip,

    output logic                  phase_valid,
    output logic [PHASE_BITS-1:0] phase,
    output logic                  error_phase,
    output logic [PHASE_BITS-1:0] tx_moved,
    output logic                  error_tx_phase,
    output logic                  error_tx_failed
);
  // verilator lint_off SYNCASYNCNET
  localparam int SLOTS = km3_pkg::UP_SLOTS;
  localparam int FRAME_WORDS = LINE_MBPS * 1000 / 20 * 1000 / FRAMES_PER_S;
  localparam int USED_WORDS = 6 * OPTICAL_WORDS + 2 * HYDROPHONE_WORDS + INSTRUMENT_WORDS + CONTROL_WORDS + km3_pkg::UP_OTHER_WORDS;
  localparam logic [SLOTS-1:0][15:0] UP_WORDS = {
    16'(CONTROL_WORDS), 16'(INSTRUMENT_WORDS), {2{16'(HYDROPHONE_WORDS)}}, {6{16'(OPTICAL_WORDS)}}
  };
  if (USED_WORDS > FRAME_WORDS || FRAME_WORDS * FRAMES_PER_S / 1000 * 20 != LINE_MBPS * 1000) begin : g_check
    $fatal(1, "the slots must fit into a frame, and whole frames into a second of the line (instance %m)");
  end

  // --- resets ---
  // What names frames and takes them apart is not reset with the link: that its clock is gone must not hide the frame that it cut.
  logic rst_kept, anew, rx_runs, rx_rst, rx_link_rst, mon_help_rst;
  wire down_rst = rst || link_rst;
  initial {rst_kept, anew} = '1;  // an FPGA begins so
  always_ff @(posedge clk) begin
    rst_kept <= rst;
    anew <= rst || link_rst || !rx_runs;
  end
  reset_sync i_rx_reset (
      .clk(rx_clk),
      .rst_async(rst_kept),
      .rst(rx_rst)
  );
  reset_sync i_rx_link_reset (
      .clk(rx_clk),
      .rst_async(anew),
      .rst(rx_link_rst)
  );
  km3_clock_watch i_rx_watch (
      .s_clk (rx_clk),
      .s_rst (rx_rst),
      .m_clk (clk),
      .m_rst (rst_kept),
      .m_runs(rx_runs)
  );
  reset_sync i_help_reset (
      .clk(help_clk),
      .rst_async(rst_kept),
      .rst(mon_help_rst)
  );

  // --- down ---
  logic timed, starts_next, begins, agrees;
  km3_time #(
      .FRAME_WORDS (FRAME_WORDS),
      .FRAMES_PER_S(FRAMES_PER_S)
  ) i_time (
      .clk,
      .rst,
      .load(gps_set),
      .load_word('0),
      .load_at({gps_second, 16'd0}),
      .agrees,
      .word,
      .at,
      .start(begins),
      .starts_next
  );
  assign start = begins && timed && tx_on && !down_rst;
  km3_pkg::head_t down_head;
  assign down_head = '{'{6'd0, timed, hears}, floor, at};
  always_ff @(posedge clk) begin
    error_gps <= gps_set && timed && !agrees && !rst;
    timed <= (timed || gps_set) && !rst;
  end
  km3_tx #(
      .SLOTS(km3_pkg::DOWN_SLOTS),
      .SLOT_WORDS(16'(CONTROL_WORDS)),
      .KIND(km3_pkg::KIND_DOWN),
      .FIFO_WORDS(FIFO_WORDS),
      .PHASE_STEPS(PHASE_STEPS)
  ) i_tx (
      .clk,
      .rst(down_rst),
      .help_clk,
      .div_clk,
      .hold(down_rst),
      .start,
      .starts_next(starts_next || gps_set),
      .head(down_head),
      .s_valid(control_valid),
      .s_ready(control_ready),
      .s_data(control_data),
      .s_last(control_last),
      .took(control_took),
      .took_last(control_took_last),
      .express_valid,
      .express_ready,
      .express,
      .tx_codes,
      .tx_on,
      .tx_slide,
      .ends(frame_ends),
      .cut(error_cut),
      .moved(tx_moved),
      .error_phase(error_tx_phase),
      .failed(error_tx_failed)
  );

  // --- up ---
  logic [7:0] rx_floor;
  sync_bits #(
      .WIDTH(8)
  ) i_floor (
      .s_bits(floor),
      .m_clk (rx_clk),
      .m_rst (rx_rst),
      .m_bits(rx_floor)
  );
  km3_rx #(
      .SLOTS(SLOTS),
      .SLOT_WORDS(UP_WORDS),
      .KIND(km3_pkg::KIND_UP),
      .OTHER_KIND(km3_pkg::KIND_DOWN),
      .FRAMES_PER_S(FRAMES_PER_S),
      .SLIDE_BITS(SLIDE_BITS),
      .GAP_CYCLES(GAP_CYCLES),
      .SEARCH_CYCLES(SEARCH_CYCLES)
  ) i_rx (
      .clk(rx_clk),
      .rst(rx_rst),
      .link_rst(rx_link_rst),
      .s_bits(rx_bits),
      .slide(rx_slide),
      .restart(rx_restart),
      .locked(rx_locked),
      .slip(rx_slip),
      .floor(rx_floor),
      .m_head(up_head),
      .head,
      .since(up_since),
      .m_valid(up_valid),
      .m_slot(up_slot),
      .m_data(up_data),
      .m_end(up_end),
      .m_good(up_good),
      .express_valid(up_express_valid),
      .express(up_express),
      .counts
  );

  // --- the loop: how long it is in words, and where in a word the third clock stands ---
  logic came;
  logic [7:0] came_since;
  km3_pkg::time_t came_at;
  async_fifo #(  // is reset with the link: while the clock moves, a head that crosses would be measured wrong
      .WIDTH(56),
      .DEPTH(4)
  ) i_heads (
      .s_clk(rx_clk),
      .s_rst(rx_link_rst),
      .s_data({up_since, head.at}),
      .s_valid(up_head),
      .s_ready(),
      .m_clk(clk),
      .m_rst(anew),
      .m_data({came_since, came_at}),
      .m_valid(came),
      .m_ready(1'b1),
      .m_more()
  );
  km3_round_trip #(
      .FRAME_WORDS (FRAME_WORDS),
      .FRAMES_PER_S(FRAMES_PER_S)
  ) i_trip (
      .clk,
      .rst,
      .word,
      .at,
      .s_valid(came),
      .s_since(came_since),
      .s_at(came_at),
      .m_valid(trip_valid),
      .frames(trip[31:16]),
      .words(trip[15:0]),
      .error_second
  );
  km3_monitor #(
      .BITS(32)
  ) i_trip_monitor (
      .clk,
      .rst,
      .forget(1'b0),
      .valid(trip_valid),
      .value(trip),
      .known(),
      .first(),
      .error(error_trip),
      .other()
  );
  logic told_locked, locked_help, anew_help, toggle, rx_toggle, read_valid;
  always_ff @(posedge rx_clk) told_locked <= rx_locked && !rx_link_rst;
  sync_bits i_locked_here (
      .s_bits(told_locked),
      .m_clk (clk),
      .m_rst (anew),
      .m_bits(hears)
  );
  sync_bits #(
      .WIDTH(2)
  ) i_locked_help (
      .s_bits({anew, told_locked}),
      .m_clk (help_clk),
      .m_rst (mon_help_rst),
      .m_bits({anew_help, locked_help})
  );
  always_ff @(posedge clk) toggle <= !toggle && !rst_kept;
  always_ff @(posedge rx_clk) rx_toggle <= !rx_toggle && !rx_rst;
  logic [7:0] settles;
  km3_phase #(
      .STEPS(PHASE_STEPS)
  ) i_phase (
      .clk(help_clk),
      .rst(mon_help_rst),
      .a_toggle(toggle),
      .b_toggle(rx_toggle),
      .valid(read_valid),
      .phase
  );
  // A reading counts once no slide can be in it.
  always_ff @(posedge help_clk) begin
    if (!locked_help || anew_help || mon_help_rst) settles <= 8'(2 * PHASE_STEPS + 8);
    else if (settles != '0) settles <= settles - 1'b1;
  end
  assign phase_valid = read_valid && settles == '0;
  km3_monitor #(
      .BITS(PHASE_BITS)
  ) i_phase_monitor (
      .clk(help_clk),
      .rst(mon_help_rst),
      .forget(1'b0),
      .valid(phase_valid),
      .value(phase),
      .known(),
      .first(),
      .error(error_phase),
      .other()
  );
endmodule
