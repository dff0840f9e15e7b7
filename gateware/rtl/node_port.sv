// SPDX-License-Identifier: Apache-2.0
// One Ethernet port of a node with its four stages: eth_port is link and protocol, then data processing and encapsulation as the parameters say, then the queue
// before the router. What is to be merged leaves before these, to stage_merge.
//
// Contract: that of eth_port for the wire, of stage_merge's input for event_*, of port_queue for m_axis_*. Payloads to send come in words of 16 bytes, whole or as
// fast as the wire takes them; of s_meta, source is the destination in this port's table.
//
// Books: parsed = to_events, refused, full, and what leaves by m_axis_*.
module node_port #(
    parameter int PORTS = 4,            // of the node
    parameter int LINE_GBPS = 10,
    parameter bit OWN_CLOCKS = 1'b0,    // as of mac_cdc
    parameter bit MERGE = 1'b1,
    parameter int PROCESSING = 0,       // 0 none, 1 stage_template
    parameter int ENCAPSULATION = 0,    // 0 none, 1 stage_encap
    parameter int QUEUE_WORDS = 1024,   // [16 B]
    parameter int FRAME_BYTES_MAX = 9022,
    parameter int MATCH_ENTRIES = 16,
    parameter int GROUPS = 4,
    parameter int DESTINATIONS = 16
) (
    input logic clk,
    input logic rst,
    input logic rx_clk,
    input logic tx_clk,

    input logic [63:0] now_ns,
    input logic [63:0] now_cycles,
    input port_pkg::settings_t settings,
    /* verilator lint_off UNUSEDSIGNAL */
    input logic [63:0] cfg_value,  // of stage_template, where it is
    input logic [63:0] cfg_mask,
    /* verilator lint_on UNUSEDSIGNAL */

    // --- wire, as of mac_cdc ---
    input  logic [63:0] xgmii_rxd,
    input  logic [ 7:0] xgmii_rxc,
    output logic [63:0] xgmii_txd,
    output logic [ 7:0] xgmii_txc,
    input  logic [ 7:0] gmii_rxd,
    input  logic        gmii_rx_dv,
    input  logic        gmii_rx_er,
    output logic [ 7:0] gmii_txd,
    output logic        gmii_tx_en,
    output logic        gmii_tx_er,

    // --- to stage_merge ---
    output logic [63:0] event_tdata,
    output logic [ 7:0] event_tkeep,
    output logic        event_tvalid,
    output logic        event_tlast,
    output logic        event_tuser,

    // --- to the router ---
    output logic [127:0] m_axis_tdata,
    output logic [ 15:0] m_axis_tkeep,
    output logic         m_axis_tvalid,
    input  logic         m_axis_tready,
    output logic         m_axis_tlast,
    output port_pkg::payload_t m_meta,
    output logic [7:0]         m_destination,

    // --- from the router ---
    input  logic [127:0] s_axis_tdata,
    input  logic [ 15:0] s_axis_tkeep,
    input  logic         s_axis_tvalid,
    output logic         s_axis_tready,
    input  logic         s_axis_tlast,
    /* verilator lint_off UNUSEDSIGNAL */
    input  port_pkg::payload_t s_meta,
    /* verilator lint_on UNUSEDSIGNAL */

    output nic_counts_pkg::path_counts_t  path_counts,
    output nic_counts_pkg::reply_counts_t reply_counts,
    output nic_counts_pkg::sending_ends_t ends,
    output logic count_to_events,
    output logic count_sent_to,
    output logic drop_refused,
    output logic drop_full
);
  // --- link and protocol ---
  logic [63:0] rx_tdata, tx_tdata, stage_tdata, queue_tdata;
  logic [7:0] rx_tkeep, tx_tkeep, stage_tkeep, queue_tkeep;
  logic rx_tvalid, rx_tlast, rx_tuser, stage_tvalid, stage_tlast, stage_tuser, queue_tvalid, queue_tlast, queue_tuser;
  logic tx_tvalid, tx_tready, tx_tlast;
  port_pkg::routed_t rx_meta, stage_meta, queue_meta;
  port_pkg::sending_t tx_meta;
  logic stage_refused, encap_refused;

  eth_port #(
      .LINE_GBPS(LINE_GBPS),
      .OWN_CLOCKS(OWN_CLOCKS),
      .FRAME_BYTES_MAX(FRAME_BYTES_MAX),
      .MATCH_ENTRIES(MATCH_ENTRIES),
      .GROUPS(GROUPS),
      .DESTINATIONS(DESTINATIONS)
  ) i_eth_port (
      .clk,
      .rst,
      .rx_clk,
      .tx_clk,
      .now_ns,
      .now_cycles,
      .settings,
      .xgmii_rxd,
      .xgmii_rxc,
      .xgmii_txd,
      .xgmii_txc,
      .gmii_rxd,
      .gmii_rx_dv,
      .gmii_rx_er,
      .gmii_txd,
      .gmii_tx_en,
      .gmii_tx_er,
      .m_axis_tdata(rx_tdata),
      .m_axis_tkeep(rx_tkeep),
      .m_axis_tvalid(rx_tvalid),
      .m_axis_tlast(rx_tlast),
      .m_axis_tuser(rx_tuser),
      .m_meta(rx_meta.payload),
      .m_route(rx_meta.route),
      .s_axis_tdata(tx_tdata),
      .s_axis_tkeep(tx_tkeep),
      .s_axis_tvalid(tx_tvalid),
      .s_axis_tready(tx_tready),
      .s_axis_tlast(tx_tlast),
      .s_meta(tx_meta),
      .path_counts,
      .reply_counts,
      .ends
  );

  // --- what is to be merged parts here ---
  wire to_events = MERGE && rx_meta.route == port_pkg::ROUTE_EVENTS;
  assign event_tdata = rx_tdata;
  assign event_tkeep = rx_tkeep;
  assign event_tvalid = rx_tvalid && to_events;
  assign event_tlast = rx_tlast;
  assign event_tuser = rx_tuser;

  // --- data processing ---
  if (PROCESSING == 1) begin : g_processing
    stage_template i_stage (
        .clk,
        .rst,
        .cfg_value,
        .cfg_mask,
        .s_axis_tdata(rx_tdata),
        .s_axis_tkeep(rx_tkeep),
        .s_axis_tvalid(rx_tvalid && !to_events),
        .s_axis_tlast(rx_tlast),
        .s_axis_tuser(rx_tuser),
        .s_meta(rx_meta),
        .m_axis_tdata(stage_tdata),
        .m_axis_tkeep(stage_tkeep),
        .m_axis_tvalid(stage_tvalid),
        .m_axis_tlast(stage_tlast),
        .m_axis_tuser(stage_tuser),
        .m_meta(stage_meta),
        .drop_refused(stage_refused)
    );
  end else begin : g_processing
    assign stage_tdata = rx_tdata;
    assign stage_tkeep = rx_tkeep;
    assign stage_tvalid = rx_tvalid && !to_events;
    assign stage_tlast = rx_tlast;
    assign stage_tuser = rx_tuser;
    assign stage_meta = rx_meta;
    assign stage_refused = 1'b0;
  end

  // --- encapsulation ---
  if (ENCAPSULATION == 1) begin : g_encapsulation
    stage_encap #(
        .STREAMS(MATCH_ENTRIES)
    ) i_stage (
        .clk,
        .rst,
        .now_cycles,
        .now_ns,
        .s_axis_tdata(stage_tdata),
        .s_axis_tkeep(stage_tkeep),
        .s_axis_tvalid(stage_tvalid),
        .s_axis_tlast(stage_tlast),
        .s_axis_tuser(stage_tuser),
        .s_meta(stage_meta),
        .m_axis_tdata(queue_tdata),
        .m_axis_tkeep(queue_tkeep),
        .m_axis_tvalid(queue_tvalid),
        .m_axis_tlast(queue_tlast),
        .m_axis_tuser(queue_tuser),
        .m_meta(queue_meta),
        .drop_refused(encap_refused)
    );
  end else begin : g_encapsulation
    assign queue_tdata = stage_tdata;
    assign queue_tkeep = stage_tkeep;
    assign queue_tvalid = stage_tvalid;
    assign queue_tlast = stage_tlast;
    assign queue_tuser = stage_tuser;
    assign queue_meta = stage_meta;
    assign encap_refused = 1'b0;
  end

  port_queue #(
      .PORTS(PORTS),
      .DEPTH_WORDS(QUEUE_WORDS)
  ) i_queue (
      .clk,
      .rst,
      .s_axis_tdata(queue_tdata),
      .s_axis_tkeep(queue_tkeep),
      .s_axis_tvalid(queue_tvalid),
      .s_axis_tlast(queue_tlast),
      .s_axis_tuser(queue_tuser),
      .s_meta(queue_meta),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .m_meta,
      .m_destination,
      .drop_full
  );

  // --- from the router to the wire ---
  wide_to_words i_words (
      .clk,
      .rst,
      .s_axis_tdata,
      .s_axis_tkeep,
      .s_axis_tvalid,
      .s_axis_tready,
      .s_axis_tlast,
      .m_axis_tdata(tx_tdata),
      .m_axis_tkeep(tx_tkeep),
      .m_axis_tvalid(tx_tvalid),
      .m_axis_tready(tx_tready),
      .m_axis_tlast(tx_tlast)
  );
  assign tx_meta.destination = s_meta.source[7:0];
  assign tx_meta.bytes = s_meta.bytes;

  always_ff @(posedge clk) begin
    count_to_events <= event_tvalid && event_tlast && !event_tuser && !rst;
    count_sent_to <= s_axis_tvalid && s_axis_tready && s_axis_tlast && !rst;
  end
  assign drop_refused = stage_refused || encap_refused;
endmodule
