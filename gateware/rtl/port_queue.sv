// SPDX-License-Identifier: Apache-2.0
// Between a port's last stage and the router: whole good packets wait here, in words of 16 bytes, until the router takes them.
//
// Contract
//   * The input never waits; s_meta stands beside a packet from its first word to its last. A packet that finds no room is dropped whole (drop_full). One that ends
//     with s_axis_tuser is thrown away; who set it has counted it.
//   * m_meta and m_destination hold from a packet's first word to its last. A packet begins to leave when it has come whole, and then has no gap.
//   * m_destination: the router's output. The host is output PORTS; what has no route has destination 255.
module port_queue #(
    parameter int PORTS = 4,
    parameter int DEPTH_WORDS = 1024,  // [16 B]; a power of two
    parameter int PACKETS = 128        // at once; a power of two
) (
    input logic clk,
    input logic rst,

    input logic [63:0] s_axis_tdata,
    input logic [ 7:0] s_axis_tkeep,
    input logic        s_axis_tvalid,
    input logic        s_axis_tlast,
    input logic        s_axis_tuser,
    input port_pkg::routed_t s_meta,

    output logic [127:0] m_axis_tdata,
    output logic [ 15:0] m_axis_tkeep,
    output logic         m_axis_tvalid,
    input  logic         m_axis_tready,
    output logic         m_axis_tlast,
    output port_pkg::payload_t m_meta,
    output logic [7:0]         m_destination,

    output logic drop_full
);
  wire is_port = s_meta.route >= port_pkg::ROUTE_PORT_0 && int'(s_meta.route) < int'(port_pkg::ROUTE_PORT_0) + PORTS;
  wire [7:0] destination = s_meta.route == port_pkg::ROUTE_HOST ? 8'(PORTS) : is_port ? 8'(s_meta.route - port_pkg::ROUTE_PORT_0) : 8'hFF;

  logic [127:0] wide_tdata;
  logic [15:0] wide_tkeep;
  logic wide_tvalid, wide_tlast;
  words_to_wide i_wide (
      .clk,
      .rst,
      .s_axis_tdata,
      .s_axis_tkeep,
      .s_axis_tvalid,
      .s_axis_tready(),  // always
      .s_axis_tlast,
      .m_axis_tdata(wide_tdata),
      .m_axis_tkeep(wide_tkeep),
      .m_axis_tvalid(wide_tvalid),
      .m_axis_tready(1'b1),
      .m_axis_tlast(wide_tlast)
  );

  frame_fifo #(
      .DEPTH_WORDS(DEPTH_WORDS),
      .PACKETS(PACKETS),
      .META_BITS(port_pkg::PAYLOAD_META_BITS + 8),
      .DATA_BITS(128)
  ) i_fifo (
      .clk,
      .rst,
      .s_axis_tdata(wide_tdata),
      .s_axis_tkeep(wide_tkeep),
      .s_axis_tvalid(wide_tvalid),
      .s_axis_tlast(wide_tlast),
      .s_axis_tuser,
      .s_meta({destination, s_meta.payload}),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .m_meta({m_destination, m_meta}),
      .fill_words(),
      .count_good(),
      .count_bad(),
      .drop_full
  );
endmodule
