// SPDX-License-Identifier: Apache-2.0
// Two ends of a link, a and b, and a wire of DELAY_WORDS each way that pauses, loses, flips and doubles words. What each end counts is added up.
module bench_top #(
    parameter int DELAY_WORDS = 150,
    parameter int DATA_WORDS = 1024,
    parameter int HEADER_WORDS = 256,
    parameter int CREDIT_PERIOD_WORDS = 192,
    parameter int SKIP_PERIOD_WORDS = 0
) (
    input logic clk,
    input logic rst,

    input logic         link_up,
    input logic         pauses,       // of the wire
    input logic         lose_a,       // every word that a sends
    input logic         lose_b,
    input logic         fault_arm,    // counts a's words from 0 on
    input logic [  1:0] fault_kind,   // 1 flips, 2 loses, 3 doubles
    input logic [ 15:0] fault_at,
    input logic [127:0] fault_flips,

    input  logic [127:0] a_s_axis_tdata,
    input  logic         a_s_axis_tvalid,
    output logic         a_s_axis_tready,
    input  logic         a_s_axis_tlast,
    input  logic [127:0] b_s_axis_tdata,
    input  logic         b_s_axis_tvalid,
    output logic         b_s_axis_tready,
    input  logic         b_s_axis_tlast,

    output logic [127:0] a_m0_axis_tdata,
    output logic         a_m0_axis_tvalid,
    input  logic         a_m0_axis_tready,
    output logic         a_m0_axis_tlast,
    output logic [127:0] a_m1_axis_tdata,
    output logic         a_m1_axis_tvalid,
    input  logic         a_m1_axis_tready,
    output logic         a_m1_axis_tlast,
    output logic [127:0] b_m0_axis_tdata,
    output logic         b_m0_axis_tvalid,
    input  logic         b_m0_axis_tready,
    output logic         b_m0_axis_tlast,
    output logic [127:0] b_m1_axis_tdata,
    output logic         b_m1_axis_tvalid,
    input  logic         b_m1_axis_tready,
    output logic         b_m1_axis_tlast,

    output logic         a_word_valid,  // what a gives to the wire
    output logic [127:0] a_word,
    input  logic [  7:0] a_state,
    input  logic [  7:0] b_state,
    output logic [  7:0] a_neighbour,   // what it was told
    output logic [  7:0] b_neighbour,
    output logic         a_silent,
    output logic         b_silent,
    output logic [319:0] a_totals,      // 32 bits each: sent, down, good, flagged, crc, cut, header, lost, noise, corrected
    output logic [319:0] b_totals
);
  logic [31:0] random;
  always_ff @(posedge clk) random <= rst ? 32'd1 : {random[30:0], random[31] ^ random[21] ^ random[1] ^ random[0]};

  // --- the wire ---
  logic [1:0] tx_valid, tx_ready, rx_valid;
  logic [1:0][127:0] tx_data, rx_data;
  logic doubles;  // the word of the cycle before comes once more
  logic [127:0] doubled;
  logic [15:0] word_number;
  wire hit = !fault_arm && fault_kind != '0 && word_number == fault_at && tx_valid[0] && tx_ready[0];
  assign tx_ready[0] = !(pauses && random[0]) && !doubles;
  assign tx_ready[1] = !(pauses && random[5]);
  assign a_word_valid = tx_valid[0] && tx_ready[0];
  assign a_word = tx_data[0];
  always_ff @(posedge clk) begin
    doubles <= hit && fault_kind == 2'd3;
    doubled <= tx_data[0];
    if (fault_arm) word_number <= '0;
    else if (tx_valid[0] && tx_ready[0]) word_number <= word_number + 1'b1;
    if (rst) word_number <= '0;
  end
  wire [1:0] wire_valid = {tx_valid[1] && tx_ready[1] && !lose_b, ((tx_valid[0] && tx_ready[0] && !(hit && fault_kind == 2'd2)) || doubles) && !lose_a};
  wire [1:0][127:0] wire_data = {tx_data[1], doubles ? doubled : tx_data[0] ^ (hit && fault_kind == 2'd1 ? fault_flips : '0)};
  localparam int PLACE_BITS = $clog2(DELAY_WORDS);
  logic [PLACE_BITS-1:0] place;
  always_ff @(posedge clk) place <= rst || place == PLACE_BITS'(DELAY_WORDS - 1) ? '0 : place + 1'b1;
  for (genvar d = 0; d < 2; d++) begin : g_delay
    logic [128:0] words[DELAY_WORDS];
    logic [15:0] filled;  // after reset
    always_ff @(posedge clk) begin
      words[place] <= {wire_valid[d], wire_data[d]};
      {rx_valid[d], rx_data[d]} <= words[place];
      if (filled != 16'(DELAY_WORDS)) begin
        filled <= filled + 1'b1;
        rx_valid[d] <= 1'b0;
      end
      if (rst) filled <= '0;
      if (rst) rx_valid[d] <= 1'b0;
    end
  end

  // --- the ends ---
  wire [1:0][127:0] s_axis_tdata = {b_s_axis_tdata, a_s_axis_tdata};
  wire [1:0] s_axis_tvalid = {b_s_axis_tvalid, a_s_axis_tvalid};
  wire [1:0] s_axis_tlast = {b_s_axis_tlast, a_s_axis_tlast};
  logic [1:0] s_axis_tready, silent;
  assign {b_s_axis_tready, a_s_axis_tready} = s_axis_tready;
  assign {b_silent, a_silent} = silent;
  logic [3:0][127:0] m_axis_tdata;
  logic [3:0] m_axis_tvalid, m_axis_tlast;
  wire [3:0] m_axis_tready = {b_m1_axis_tready, b_m0_axis_tready, a_m1_axis_tready, a_m0_axis_tready};
  assign {b_m1_axis_tdata, b_m0_axis_tdata, a_m1_axis_tdata, a_m0_axis_tdata} = m_axis_tdata;
  assign {b_m1_axis_tvalid, b_m0_axis_tvalid, a_m1_axis_tvalid, a_m0_axis_tvalid} = m_axis_tvalid;
  assign {b_m1_axis_tlast, b_m0_axis_tlast, a_m1_axis_tlast, a_m0_axis_tlast} = m_axis_tlast;
  logic [1:0][7:0] neighbour;
  assign {b_neighbour, a_neighbour} = neighbour;
  logic [1:0][319:0] totals;
  assign {b_totals, a_totals} = totals;

  for (genvar e = 0; e < 2; e++) begin : g_end
    logic count_sent, drop_down, count_good, count_flagged, error_crc, error_cut, drop_header, noise, header_corrected;
    logic [9:0] drop_lost;
    apelink #(
        .DATA_WORDS(DATA_WORDS),
        .HEADER_WORDS(HEADER_WORDS),
        .CREDIT_PERIOD_WORDS(CREDIT_PERIOD_WORDS),
        .SKIP_PERIOD_WORDS(SKIP_PERIOD_WORDS),
        .SILENCE_CYCLES(4 * CREDIT_PERIOD_WORDS)  // the wire pauses for every other word
    ) dut (
        .clk,
        .rst,
        .link_up,
        .silent(silent[e]),
        .node_state(e == 0 ? a_state : b_state),
        .neighbour_state(neighbour[e]),
        .s_axis_tdata(s_axis_tdata[e]),
        .s_axis_tvalid(s_axis_tvalid[e]),
        .s_axis_tready(s_axis_tready[e]),
        .s_axis_tlast(s_axis_tlast[e]),
        .space_0(),
        .space_1(),
        .m_axis_tdata(m_axis_tdata[2*e+:2]),
        .m_axis_tvalid(m_axis_tvalid[2*e+:2]),
        .m_axis_tready(m_axis_tready[2*e+:2]),
        .m_axis_tlast(m_axis_tlast[2*e+:2]),
        .link_tx_valid(tx_valid[e]),
        .link_tx_ready(tx_ready[e]),
        .link_tx_data(tx_data[e]),
        .link_rx_valid(rx_valid[1-e]),
        .link_rx_data(rx_data[1-e]),
        .*
    );
    wire [9:0][31:0] more = {
      32'(header_corrected),
      32'(noise),
      32'(drop_lost),
      32'(drop_header),
      32'(error_cut),
      32'(error_crc),
      32'(count_flagged),
      32'(count_good),
      32'(drop_down),
      32'(count_sent)
    };
    always_ff @(posedge clk) begin
      for (int c = 0; c < 10; c++) totals[e][32*c+:32] <= rst ? '0 : totals[e][32*c+:32] + more[c];
    end
  end
endmodule
