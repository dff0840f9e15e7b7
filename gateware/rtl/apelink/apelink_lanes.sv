// SPDX-License-Identifier: Apache-2.0
// The four lanes of a link, between `apelink` and the transceivers: 8b/10b or 64b/66b, alignment, deskew, an elastic buffer, and link_up, the same at both ends. docs/design/apelink-lanes.md
//
// Contract
//   * LINE_BITS is 40, 8b/10b, or 33, 64b/66b: bits of a lane in a cycle.
//   * tx_bits are of `clk`; rx_bits of each lane are of its own rx_clk, cut anywhere. The first bit on the wire is the lowest, lane 0 low.
//   * The rx_clks are of one sender, so of one rate and any phases; that rate may be off `clk` by as much as one word in SKIP_PERIOD_WORDS.
//   * A word comes in some cycles only: link_rx_valid. A cycle without one is no fault. error_overflow: words came faster than they could leave for longer than the
//     buffer takes; the link goes down for it.
//   * rx_slip is of the rx_clks: by how many bits each lane was found to be cut late, of 40 bits or of a block's 66.
module apelink_lanes #(
    parameter int LINE_BITS = apelane_pkg::BITS_8B10B,
    parameter int SKIP_PERIOD_WORDS = 1024,
    parameter int SKEW_WORDS = LINE_BITS == apelane_pkg::BITS_8B10B ? 4 : 6,  // of the lanes one or two less: they are cut at a word's or at a block's begin
    parameter int ATTEMPT_CYCLES = 8192,
    localparam int SLIP_BITS = apelane_pkg::slip_bits(LINE_BITS)
) (
    input logic clk,
    input logic rst,

    output logic         link_up,
    input  logic         link_tx_valid,
    output logic         link_tx_ready,
    input  logic [127:0] link_tx_data,
    output logic         link_rx_valid,
    output logic [127:0] link_rx_data,

    output logic [4*LINE_BITS-1:0] tx_bits,
    input  logic [            3:0] rx_clk,
    input  logic [4*LINE_BITS-1:0] rx_bits,
    output logic [4*SLIP_BITS-1:0] rx_slip,

    output logic [3:0] lanes_locked,
    output logic       lanes_astray,
    output logic       lanes_in_step,

    output logic       count_up,
    output logic       down_lanes,
    output logic       down_silent,
    output logic       down_other,
    output logic       failed_lane,
    output logic       failed_order,
    output logic       failed_skew,
    output logic       failed_call,
    output logic [3:0] error_code,
    output logic       error_overflow
);
  // verilator lint_off SYNCASYNCNET
  if (LINE_BITS != apelane_pkg::BITS_8B10B && LINE_BITS != apelane_pkg::BITS_64B66B) begin : g_check
    $fatal(1, "LINE_BITS must be 40 (8b/10b) or 33 (64b/66b) (instance %m)");
  end
  localparam int LANES = apelane_pkg::LANES;
  localparam int ELASTIC_WORDS = 16;

  // --- resets of each clock: of each attempt, and of what counts, which has to tell why an attempt ended ---
  logic restart, restart_async, rst_async;
  always_ff @(posedge clk) restart_async <= restart || rst;
  always_ff @(posedge clk) rst_async <= rst;
  logic [LANES-1:0] rx_rst, count_rx_rst;
  logic own_rst, count_rst;
  reset_sync i_own_reset (
      .clk,
      .rst_async(restart_async),
      .rst(own_rst)
  );
  reset_sync i_count_reset (
      .clk,
      .rst_async,
      .rst(count_rst)
  );

  // --- each lane in its clock, then all in that of lane 0 ---
  logic [LANES-1:0] locked, told_locked, code_errors, lane_valid, lane_ready;
  apelane_pkg::lane_word_t [LANES-1:0] lane_words;
  for (genvar l = 0; l < LANES; l++) begin : g_lane
    reset_sync i_reset (
        .clk(rx_clk[l]),
        .rst_async(restart_async),
        .rst(rx_rst[l])
    );
    reset_sync i_count_reset (
        .clk(rx_clk[l]),
        .rst_async,
        .rst(count_rx_rst[l])
    );
    apelane_rx #(
        .LANE(l),
        .LINE_BITS(LINE_BITS)
    ) i_rx (
        .clk(rx_clk[l]),
        .rst(rx_rst[l]),
        .bits(rx_bits[LINE_BITS*l+:LINE_BITS]),
        .locked(locked[l]),
        .slip(rx_slip[SLIP_BITS*l+:SLIP_BITS]),
        .error_code(code_errors[l]),
        .m_clk(rx_clk[0]),
        .m_rst(rx_rst[0]),
        .m_valid(lane_valid[l]),
        .m_ready(lane_ready[l]),
        .m_word(lane_words[l])
    );
    always_ff @(posedge rx_clk[l]) told_locked[l] <= locked[l] && !rx_rst[l];
    sync_bits i_locked (
        .s_bits(told_locked[l]),
        .m_clk(clk),
        .m_rst(own_rst),
        .m_bits(lanes_locked[l])
    );
    pulse_crossing i_code_errors (
        .s_clk(rx_clk[l]),
        .s_rst(count_rx_rst[l]),
        .s_pulses({1'b0, code_errors[l]}),
        .m_clk(clk),
        .m_rst(count_rst),
        .m_pulse(error_code[l]),
        .m_ready(1'b1)
    );
  end

  logic column_valid, in_step, astray, overflows, elastic_ready;
  apelane_pkg::kind_t column_kind;
  apelane_pkg::call_t column_call;
  logic [127:0] column_data;
  apelane_deskew #(
      .SKEW_WORDS(SKEW_WORDS)
  ) i_deskew (
      .clk(rx_clk[0]),
      .rst(rx_rst[0]),
      .s_valid(lane_valid),
      .s_ready(lane_ready),
      .s_words(lane_words),
      .overflows,
      .m_valid(column_valid),
      .m_kind(column_kind),
      .m_call(column_call),
      .m_data(column_data),
      .in_step,
      .astray
  );
  logic told_in_step;
  always_ff @(posedge rx_clk[0]) told_in_step <= in_step && !rx_rst[0];
  sync_bits #(
      .WIDTH(2)
  ) i_status (
      .s_bits({astray, told_in_step}),
      .m_clk(clk),
      .m_rst(own_rst),
      .m_bits({lanes_astray, lanes_in_step})
  );

  // --- the elastic buffer: of marks that say nothing new only every 32nd in a row goes in, so there is room for every word ---
  logic [4:0] row;
  apelane_pkg::call_t last_call;
  wire column_marks = column_kind != apelane_pkg::WORD;
  wire news = !column_marks || column_kind == apelane_pkg::FIRST_MARK || column_call != last_call || row == '1;
  wire enters = column_valid && news;
  assign overflows = enters && !elastic_ready;
  always_ff @(posedge rx_clk[0]) begin
    if (column_valid) row <= column_marks ? row + 1'b1 : '0;
    if (enters && column_marks) last_call <= column_call;
    if (rx_rst[0]) row <= '0;
  end
  apelane_pkg::kind_t kind;
  logic came;
  logic [127:0] data;
  logic [1:0] kind_bits;
  assign kind = apelane_pkg::kind_t'(kind_bits);
  async_fifo #(
      .WIDTH(130),
      .DEPTH(ELASTIC_WORDS)
  ) i_elastic (
      .s_clk(rx_clk[0]),
      .s_rst(rx_rst[0]),
      .s_data({column_kind, column_data[127:8], column_marks ? column_call : column_data[7:0]}),
      .s_valid(enters),
      .s_ready(elastic_ready),
      .m_clk(clk),
      .m_rst(own_rst),
      .m_data({kind_bits, data}),
      .m_valid(came),
      .m_ready(1'b1),
      .m_more()
  );
  pulse_crossing i_overflows (
      .s_clk(rx_clk[0]),
      .s_rst(count_rx_rst[0]),
      .s_pulses({1'b0, overflows}),
      .m_clk(clk),
      .m_rst(count_rst),
      .m_pulse(error_overflow),
      .m_ready(1'b1)
  );

  // --- the link ---
  apelane_pkg::call_t call;
  logic opens;
  apelane_handshake #(
      .ATTEMPT_CYCLES(ATTEMPT_CYCLES)
  ) i_handshake (
      .clk,
      .rst,
      .s_valid(came),
      .s_kind(kind),
      .s_call(data[7:0]),
      .locked(lanes_locked),
      .astray(lanes_astray),
      .in_step(lanes_in_step),
      .call,
      .link_up,
      .opens,
      .restart,
      .*
  );
  assign link_rx_valid = came && link_up && kind == apelane_pkg::WORD;
  assign link_rx_data = data;
  apelane_tx #(
      .SKIP_PERIOD_WORDS(SKIP_PERIOD_WORDS),
      .LINE_BITS(LINE_BITS)
  ) i_tx (
      .clk,
      .rst,
      .opens,
      .call,
      .s_valid(link_tx_valid),
      .s_ready(link_tx_ready),
      .s_data(link_tx_data),
      .m_bits(tx_bits)
  );
endmodule
