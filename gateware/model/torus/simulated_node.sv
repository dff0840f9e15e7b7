// SPDX-License-Identifier: Apache-2.0
// apenet_node for the harness of this folder: with a register before each input, the last of the wire's, and with all that takes its outputs always ready.
// So nothing is computed from inputs alone, which a simulator would do once more in each cycle, and every output is a register.
module simulated_node (
    input logic clk,
    input logic rst,

    input apenet_pkg::place_t  at,
    input apenet_pkg::shape_t  shape,
    input logic          [5:0] link_up,

    input  logic [127:0] s_axis_tdata,   // virtual channel 0 of the local port
    input  logic         s_axis_tvalid,
    output logic         s_axis_tready,
    input  logic         s_axis_tlast,
    output logic [127:0] m_axis_tdata,
    output logic         m_axis_tvalid,
    output logic         m_axis_tlast,

    output logic [  5:0] link_tx_valid,
    output logic [767:0] link_tx_data,
    input  logic [  5:0] link_rx_valid,
    input  logic [767:0] link_rx_data,
    output logic [  5:0] silent,
    output logic [195:0] ways,  // of each stream in, 14 bits: to which outputs and virtual channels packets of it were granted

    output logic [13:0] count_good,
    output logic [13:0] drop_length,
    output logic [13:0] drop_outside,
    output logic [13:0] drop_turn,
    output logic [13:0] drop_port,
    output logic [13:0] drop_hops,
    output logic [ 5:0] link_sent,
    output logic [ 5:0] drop_down,
    output logic [ 5:0] link_good,
    output logic [ 5:0] link_flagged,
    output logic [ 5:0] error_crc,
    output logic [ 5:0] error_cut,
    output logic [ 5:0] drop_header,
    output logic [59:0] drop_lost,
    output logic [ 5:0] noise,
    output logic [ 5:0] header_corrected
);
  logic reset, unused_ready;
  apenet_pkg::place_t node_at;
  apenet_pkg::shape_t torus_shape;
  logic [5:0] up, rx_valid;
  logic [767:0] rx_data;
  always_ff @(posedge clk) begin
    reset <= rst;
    node_at <= at;
    torus_shape <= shape;
    up <= link_up;
    rx_valid <= link_rx_valid;
    rx_data <= link_rx_data;
  end

  apenet_node i_node (
      .clk,
      .rst(reset),
      .at(node_at),
      .shape(torus_shape),
      .s_axis_tdata({128'd0, s_axis_tdata}),
      .s_axis_tvalid({1'b0, s_axis_tvalid}),
      .s_axis_tready({unused_ready, s_axis_tready}),
      .s_axis_tlast({1'b0, s_axis_tlast}),
      .m_axis_tdata,
      .m_axis_tvalid,
      .m_axis_tready(1'b1),
      .m_axis_tlast,
      .m_space('1),
      .link_up(up),
      .silent,
      .node_state('0),
      .neighbour_state(),
      .link_tx_valid,
      .link_tx_ready('1),
      .link_tx_data,
      .link_rx_valid(rx_valid),
      .link_rx_data(rx_data),
      .count_good,
      .drop_length,
      .drop_outside,
      .drop_turn,
      .drop_port,
      .drop_hops,
      .link_sent,
      .drop_down,
      .link_good,
      .link_flagged,
      .error_crc,
      .error_cut,
      .drop_header,
      .drop_lost,
      .noise,
      .header_corrected
  );

  always_ff @(posedge clk) begin
    for (int i = 0; i < 14; i++) begin
      if (i_node.i_router.granted[i]) ways[14*i+:14] <= ways[14*i+:14] | i_node.i_router.offers[i];
    end
    if (reset) ways <= '0;
  end
endmodule
