// SPDX-License-Identifier: Apache-2.0
// nanet_encap as a node's encapsulation stage: 32 bytes in front of each payload. Its streams are the sources of the match table, modulo STREAMS.
//
// Contract: that of a stage (docs/design/gateware-node.md); between two packets lie at least the four cycles that nanet_encap asks for, as after udp_rx.
module stage_encap #(
    parameter int STREAMS = 16  // a power of two
) (
    input logic clk,
    input logic rst,

    input logic [63:0] now_cycles,
    input logic [63:0] now_ns,

    input logic [63:0] s_axis_tdata,
    input logic [ 7:0] s_axis_tkeep,
    input logic        s_axis_tvalid,
    input logic        s_axis_tlast,
    input logic        s_axis_tuser,
    input port_pkg::routed_t s_meta,

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,
    output port_pkg::routed_t m_meta,

    output logic drop_refused  // not as long as its sideband says
);
  if (STREAMS != 1 << $clog2(STREAMS) || STREAMS < 2) begin : g_check
    $fatal(1, "STREAMS must be a power of two from 2 (instance %m)");
  end

  port_pkg::routed_t meta;
  logic in_packet;
  logic [15:0] bytes;

  nanet_encap #(
      .STREAMS(STREAMS)
  ) i_encap (
      .clk,
      .rst,
      .now_cycles,
      .now_ns,
      .restart('0),
      .s_axis_tdata,
      .s_axis_tkeep,
      .s_axis_tvalid,
      .s_axis_tlast,
      .s_axis_tuser,
      .s_meta_stream(s_meta.payload.source[$clog2(STREAMS)-1:0]),
      .s_meta_payload_bytes(s_meta.payload.bytes),
      .s_meta_start_cycle(s_meta.payload.start_cycle),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tlast,
      .m_axis_tuser,
      .m_meta_stream(),
      .m_meta_bytes(bytes),
      .m_meta_start_cycle(),
      .count_good(),
      .drop_length(drop_refused)
  );

  // The sideband of the packet that leaves: it begins a cycle after the payload does, and ends before the next one comes.
  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      in_packet <= !s_axis_tlast;
      if (!in_packet) meta <= s_meta;
    end
    if (rst) in_packet <= 1'b0;
  end
  always_comb begin
    m_meta = meta;
    m_meta.payload.bytes = bytes;
  end
endmodule
