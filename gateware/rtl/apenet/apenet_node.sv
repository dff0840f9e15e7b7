// SPDX-License-Identifier: Apache-2.0
// A node of the torus, above the lanes of its links: the router with an apelink at each of its links. docs/design/torus.md
//
// Contract
//   * Ports and streams are apenet_router's: of links 0 to 5 the words go over the wire, of local ports 6 and on the packets in and out are here, port 6 lowest.
//   * link_up of a link is the same at both ends, as apelink wants it. Packets for a link that is down are dropped there (drop_down), so they hold up no others.
module apenet_node #(
    parameter int LINKS = 63,
    parameter int LOCALS = 1,
    parameter int DATA_WORDS = 1024,
    parameter int HEADER_WORDS = 256,
    parameter int CREDIT_PERIOD_WORDS = 192,
    parameter int SKIP_PERIOD_WORDS = 0,
    parameter int SILENCE_CYCLES = 2 * CREDIT_PERIOD_WORDS,
    localparam int PORTS = 6 + LOCALS
) (
    input logic clk,
    input logic rst,

    input apenet_pkg::place_t at,
    input apenet_pkg::shape_t shape,

    input  logic [256*LOCALS-1:0] s_axis_tdata,
    input  logic [  2*LOCALS-1:0] s_axis_tvalid,
    output logic [  2*LOCALS-1:0] s_axis_tready,
    input  logic [  2*LOCALS-1:0] s_axis_tlast,
    output logic [128*LOCALS-1:0] m_axis_tdata,
    output logic [    LOCALS-1:0] m_axis_tvalid,
    input  logic [    LOCALS-1:0] m_axis_tready,
    output logic [    LOCALS-1:0] m_axis_tlast,
    input  logic [ 44*LOCALS-1:0] m_space,

    /* verilator lint_off UNUSEDSIGNAL */  // of links that there are not
    input  logic [  5:0] link_up,
    output logic [  5:0] silent,
    input  logic [  7:0] node_state,       // for all neighbours: lofamo's
    output logic [ 47:0] neighbour_state,  // a byte a link
    output logic [  5:0] link_tx_valid,
    input  logic [  5:0] link_tx_ready,
    output logic [767:0] link_tx_data,
    input  logic [  5:0] link_rx_valid,
    input  logic [767:0] link_rx_data,
    /* verilator lint_on UNUSEDSIGNAL */

    output logic [2*PORTS-1:0] count_good,        // of the router, by input
    output logic [2*PORTS-1:0] drop_length,
    output logic [2*PORTS-1:0] drop_outside,
    output logic [2*PORTS-1:0] drop_turn,
    output logic [2*PORTS-1:0] drop_port,
    output logic [2*PORTS-1:0] drop_hops,
    output logic [        5:0] link_sent,         // of the links: packets that went out,
    output logic [        5:0] drop_down,
    output logic [        5:0] link_good,         // and came in
    output logic [        5:0] link_flagged,
    output logic [        5:0] error_crc,
    output logic [        5:0] error_cut,
    output logic [        5:0] drop_header,
    output logic [       59:0] drop_lost,         // ten bits each
    output logic [        5:0] noise,
    output logic [        5:0] header_corrected
);
  localparam int UP_CYCLES = 8;  // what the router let out while the link was down has come to apelink, which drops it

  /* verilator lint_off UNUSEDSIGNAL */  // of links that there are not
  logic [256*PORTS-1:0] in_data;
  logic [2*PORTS-1:0] in_valid, in_ready, in_last;
  logic [128*PORTS-1:0] out_data;
  logic [PORTS-1:0] out_valid, out_ready, out_last;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [44*PORTS-1:0] out_space;
  assign in_data[256*6+:256*LOCALS] = s_axis_tdata;
  assign in_valid[12+:2*LOCALS] = s_axis_tvalid;
  assign in_last[12+:2*LOCALS] = s_axis_tlast;
  assign s_axis_tready = in_ready[12+:2*LOCALS];
  assign m_axis_tdata = out_data[128*6+:128*LOCALS];
  assign m_axis_tvalid = out_valid[6+:LOCALS];
  assign m_axis_tlast = out_last[6+:LOCALS];
  assign out_ready[6+:LOCALS] = m_axis_tready;
  assign out_space[44*6+:44*LOCALS] = m_space;

  apenet_router #(
      .LINKS(LINKS),
      .LOCALS(LOCALS)
  ) i_router (
      .clk,
      .rst,
      .at,
      .shape,
      .s_axis_tdata(in_data),
      .s_axis_tvalid(in_valid),
      .s_axis_tready(in_ready),
      .s_axis_tlast(in_last),
      .m_axis_tdata(out_data),
      .m_axis_tvalid(out_valid),
      .m_axis_tready(out_ready),
      .m_axis_tlast(out_last),
      .m_space(out_space),
      .count_good,
      .drop_length,
      .drop_outside,
      .drop_turn,
      .drop_port,
      .drop_hops
  );

  for (genvar p = 0; p < 6; p++) begin : g_link
    if (LINKS[p]) begin : g_is
      logic [UP_CYCLES-1:0] was_up;
      always_ff @(posedge clk) was_up <= rst || !link_up[p] ? '0 : {was_up[UP_CYCLES-2:0], 1'b1};
      apenet_pkg::counts_t space_0, space_1;
      assign out_space[44*p+:44] = link_up[p] ? {space_1, space_0} : '1;
      apelink #(
          .DATA_WORDS(DATA_WORDS),
          .HEADER_WORDS(HEADER_WORDS),
          .CREDIT_PERIOD_WORDS(CREDIT_PERIOD_WORDS),
          .SKIP_PERIOD_WORDS(SKIP_PERIOD_WORDS),
          .SILENCE_CYCLES(SILENCE_CYCLES)
      ) i_link (
          .clk,
          .rst,
          .link_up(link_up[p] && was_up[UP_CYCLES-1]),
          .silent(silent[p]),
          .node_state,
          .neighbour_state(neighbour_state[8*p+:8]),
          .s_axis_tdata(out_data[128*p+:128]),
          .s_axis_tvalid(out_valid[p]),
          .s_axis_tready(out_ready[p]),
          .s_axis_tlast(out_last[p]),
          .space_0,
          .space_1,
          .m_axis_tdata(in_data[256*p+:256]),
          .m_axis_tvalid(in_valid[2*p+:2]),
          .m_axis_tready(in_ready[2*p+:2]),
          .m_axis_tlast(in_last[2*p+:2]),
          .link_tx_valid(link_tx_valid[p]),
          .link_tx_ready(link_tx_ready[p]),
          .link_tx_data(link_tx_data[128*p+:128]),
          .link_rx_valid(link_rx_valid[p]),
          .link_rx_data(link_rx_data[128*p+:128]),
          .count_sent(link_sent[p]),
          .drop_down(drop_down[p]),
          .count_good(link_good[p]),
          .count_flagged(link_flagged[p]),
          .error_crc(error_crc[p]),
          .error_cut(error_cut[p]),
          .drop_header(drop_header[p]),
          .drop_lost(drop_lost[10*p+:10]),
          .noise(noise[p]),
          .header_corrected(header_corrected[p])
      );
    end else begin : g_none
      assign {in_data[256*p+:256], in_valid[2*p+:2], in_last[2*p+:2], out_ready[p], out_space[44*p+:44]} = '0;
      assign {silent[p], neighbour_state[8*p+:8], link_tx_valid[p], link_tx_data[128*p+:128]} = '0;
      assign {link_sent[p], drop_down[p], link_good[p], link_flagged[p], error_crc[p], error_cut[p], drop_header[p], drop_lost[10*p+:10]} = '0;
      assign {noise[p], header_corrected[p]} = '0;
    end
  end
endmodule
