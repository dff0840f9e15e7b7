// SPDX-License-Identifier: Apache-2.0
// Two ends of a link, a and b, each an `apelink` above its lanes, and between them eight fibres of bits: late by any number of bits, cut, crossed, with wrong bits
// and strange commas. After each link-up each end sends `burst` packets like `packet` and compares what comes with it.
module bench_top #(
    parameter int DELAY_WORDS = 10,
    parameter int SKIP_PERIOD_WORDS = 1024,
    parameter int ATTEMPT_CYCLES = 4096,
    parameter int LINE_BITS = 40,
    localparam int SLIP_BITS = apelane_pkg::slip_bits(LINE_BITS)
) (
    input logic clk,    // of a
    input logic b_clk,
    input logic rst,    // of a
    input logic b_rst,

    // Of each fibre, those from a to b low.
    input logic [ 71:0] late,        // by so many bits
    input logic [  7:0] cut,
    input logic         crossed,     // b has lanes 1 and 2 in each other's place
    input logic [  7:0] half_phase,  // the clock of the receiver is half a cycle off
    input logic [  7:0] hit,         // as it changes, one word is other: the bits of hit_mask are turned, or are those of hit_bits
    input logic         hit_turns,
    input  logic [LINE_BITS-1:0] hit_mask,
    input  logic [LINE_BITS-1:0] hit_bits,

    input logic [511:0] packet,          // header, two words of payload, footer
    input logic [ 31:0] burst,           // 0: without end

    output logic [4*LINE_BITS-1:0] a_bits,  // what a sends
    output logic [ 7:0] sessions,
    output logic [ 1:0] up,
    output logic [ 1:0] first_good,      // the first packet since link-up came, whole
    output logic [ 7:0] locked,
    output logic [8*SLIP_BITS-1:0] slips,
    output logic [ 1:0] in_step,
    output logic [32*20-1:0] a_totals,
    output logic [32*20-1:0] b_totals
);
  localparam int HISTORY = 512;  // bits
  wire [1:0] clks = {b_clk, clk};
  wire [1:0] rsts = {b_rst, rst};

  logic [1:0][4*LINE_BITS-1:0] tx_bits, rx_bits;
  assign a_bits = tx_bits[0];
  logic [1:0][3:0] rx_clk;
  // --- fibres: from end f to the other one; the receiver's clock is the sender's ---
  localparam int PLACE_BITS = $clog2(DELAY_WORDS);
  for (genvar f = 0; f < 2; f++) begin : g_from
    logic [PLACE_BITS-1:0] place;
    always_ff @(posedge clks[f]) place <= int'(place) >= DELAY_WORDS - 1 ? '0 : place + 1'b1;
    localparam int TO = 1 - f;
    for (genvar l = 0; l < 4; l++) begin : g_lane
      localparam int N = 4 * f + l;  // of the fibre: those from a come first
      logic [HISTORY-1:0] history;   // the newest bit highest
      logic hit_seen;
      logic [LINE_BITS-1:0] ring[DELAY_WORDS];
      wire [LINE_BITS-1:0] sent = tx_bits[f][LINE_BITS*l+:LINE_BITS];
      wire [LINE_BITS-1:0] other = (sent & ~hit_mask) | ((hit_turns ? ~sent : hit_bits) & hit_mask);
      always_ff @(posedge clks[f]) begin
        hit_seen <= hit[N];
        ring[place] <= hit[N] != hit_seen ? other : sent;
        history <= {ring[place], history[HISTORY-1:LINE_BITS]};
      end
      wire half = half_phase[N];
      assign rx_clk[TO][l] = clks[f] ^ half;
      localparam int FROM = f == 0 && l == 1 ? 2 : f == 0 && l == 2 ? 1 : l;
      logic [LINE_BITS-1:0] straight;
      assign straight = history[HISTORY-LINE_BITS-int'(late[9*N+:9])+:LINE_BITS];
      logic [LINE_BITS-1:0] bits;
      always_ff @(posedge rx_clk[TO][l]) bits <= cut[N] ? '0 : straight;
      assign rx_bits[TO][LINE_BITS*l+:LINE_BITS] = crossed && FROM != l ? g_from[f].g_lane[FROM].bits : bits;
    end
  end

  assign {b_totals, a_totals} = {g_end[1].totals, g_end[0].totals};
  for (genvar e = 0; e < 2; e++) begin : g_end
    wire c = clks[e];
    wire r = rsts[e];
    logic link_up, tx_valid, tx_ready, rx_valid;
    logic [127:0] tx_data, rx_data;
    logic [3:0] lanes_locked, error_code;
    logic lanes_astray, count_up, down_lanes, down_silent, down_other, failed_lane, failed_order, failed_skew, failed_call, error_overflow;
    apelink_lanes #(
        .SKIP_PERIOD_WORDS(SKIP_PERIOD_WORDS),
        .ATTEMPT_CYCLES(ATTEMPT_CYCLES),
        .LINE_BITS(LINE_BITS)
    ) dut (
        .clk(c),
        .rst(r),
        .link_up,
        .link_tx_valid(tx_valid),
        .link_tx_ready(tx_ready),
        .link_tx_data(tx_data),
        .link_rx_valid(rx_valid),
        .link_rx_data(rx_data),
        .tx_bits(tx_bits[e]),
        .rx_clk(rx_clk[e]),
        .rx_bits(rx_bits[e]),
        .rx_slip(slips[4*SLIP_BITS*e+:4*SLIP_BITS]),
        .lanes_in_step(in_step[e]),
        .*
    );
    assign up[e] = link_up;
    assign sessions[4*e+:4] = dut.call.session;
    assign locked[4*e+:4] = lanes_locked;

    // --- a packet after the other ---
    logic [1:0] word;
    logic [31:0] begun;  // packets, since link-up
    logic s_axis_tready, count_sent, drop_down, count_good, count_flagged, error_crc, error_cut, drop_header, noise;
    logic [9:0] drop_lost;
    logic [255:0] m_axis_tdata;
    logic [1:0] m_axis_tvalid, m_axis_tlast;
    wire s_axis_tvalid = link_up && (burst == '0 || begun < burst || word != '0);
    apelink #(
        .SILENCE_CYCLES(2048)
    ) i_apelink (
        .clk(c),
        .rst(r),
        .link_up,
        .silent(),
        .node_state('0),
        .neighbour_state(),
        .s_axis_tdata(packet[128*word+:128]),
        .s_axis_tvalid(s_axis_tvalid || word != '0),
        .s_axis_tready,
        .s_axis_tlast(word == 2'd3),
        .space_0(),
        .space_1(),
        .m_axis_tdata,
        .m_axis_tvalid,
        .m_axis_tready(2'b11),
        .m_axis_tlast,
        .link_tx_valid(tx_valid),
        .link_tx_ready(tx_ready),
        .link_tx_data(tx_data),
        .link_rx_valid(rx_valid),
        .link_rx_data(rx_data),
        .header_corrected(),
        .*
    );
    always_ff @(posedge c) begin
      if (s_axis_tready && (s_axis_tvalid || word != '0)) begin
        word <= word + 1'b1;
        if (word == 2'd3) begun <= begun + 1'b1;
      end
      if (r || !link_up) begun <= '0;
      if (r) word <= '0;
    end

    // --- and what comes of it ---
    logic [1:0] place;
    logic same, is_first, was_up, wrong, good;
    assign first_good[e] = good;
    wire [127:0] wanted = place == '0 ? {8'd0, packet[119:0]} : packet[128*place+:128];
    wire [127:0] covered = place == '0 ? {18'd0, {110{1'b1}}} : '1;  // no CRC covers the hops, and one wrong bit on a lane is several in a byte
    wire fits = ((m_axis_tdata[127:0] ^ wanted) & covered) == '0 && m_axis_tlast[0] == (place == 2'd3);
    wire flagged = m_axis_tdata[127:32] == apenet_pkg::FOOTER_FLAGGED;
    wire ends = m_axis_tvalid[0] && m_axis_tlast[0];
    always_ff @(posedge c) begin
      if (m_axis_tvalid[0]) begin
        place <= m_axis_tlast[0] ? '0 : place + 1'b1;
        same <= m_axis_tlast[0] || (same && fits);
      end
      wrong <= ends && !flagged && !(same && fits) && !r;
      if (ends) is_first <= 1'b0;
      if (ends && is_first && same && fits) good <= 1'b1;
      was_up <= link_up;
      if (link_up && !was_up) {is_first, good} <= 2'b10;
      if (r) {is_first, good, was_up, place, same} <= 6'b000001;
    end
    wire [19:0][31:0] more = {
      32'(noise),
      32'(drop_lost),
      32'(drop_header),
      32'(error_cut),
      32'(error_crc),
      32'(wrong),
      32'(count_good),
      32'(count_sent),
      32'(error_overflow),
      32'($countones(error_code)),
      32'(failed_call),
      32'(failed_skew),
      32'(failed_order),
      32'(failed_lane),
      32'(down_other),
      32'(down_silent),
      32'(down_lanes),
      32'(count_up),
      32'(drop_down),
      32'(count_flagged)
    };
    logic [19:0][31:0] totals;
    always_ff @(posedge c) begin
      for (int n = 0; n < 20; n++) totals[n] <= r ? '0 : totals[n] + more[n];
    end
  end

  // --- the rule: who has seen it go down does not see it up again before the other has seen it down; and who is up together is so in the same sessions ---
  logic [1:0] was, waits;
  always_ff @(posedge clk) begin
    was <= up;
    for (int e = 0; e < 2; e++) begin
      waits[e] <= up[1-e] && (waits[e] || (was[e] && !up[e]));
      if (!rst && !b_rst) assert (!(up[e] && !was[e] && waits[e]));
    end
    if (!rst && !b_rst && up == '1 && was == '1) assert (g_end[0].dut.call.session == g_end[1].dut.call.heard && g_end[1].dut.call.session == g_end[0].dut.call.heard);
    if (rst && b_rst) {was, waits} <= '0;
  end
endmodule
