// SPDX-License-Identifier: Apache-2.0
// One Ethernet port, both directions: mac (the link stage) and rx_path with tx_path (the protocol stage). Payloads on one side, the wire on the other.
//
// Contract
//   * Received payloads as of rx_path: a word in every cycle, no waiting; m_meta and m_route hold from a packet's first word to its last.
//   * Payloads to be sent as of tx_path: whole, or as fast as the wire takes them; s_meta stands beside a payload from its first word to its last.
//
// Books: frames that began = parsed, the drops of path_counts, and the requests of reply_counts. Payloads and answers to send = framed, aborted, destination.
module eth_port #(
    parameter int LINE_GBPS = 10,
    parameter bit OWN_CLOCKS = 1'b0,  // as of mac_cdc: the wire has rx_clk and tx_clk
    parameter int FRAME_BYTES_MAX = 9022,  // FCS and tag included [B]
    parameter int MATCH_ENTRIES = 16,
    parameter int DESTINATIONS = 16,
    parameter int GROUPS = 4,      // as of rx_path
    parameter bit REPLIER = 1'b1,  // as of rx_path
    localparam int BYTES_MAX = FRAME_BYTES_MAX - 46,  // of a payload: less Ethernet, IPv4 and UDP headers and FCS
    localparam int MATCH_BITS = $clog2(MATCH_ENTRIES),
    localparam int DESTINATION_BITS = $clog2(DESTINATIONS)
) (
    input logic clk,
    input logic rst,
    input logic rx_clk,
    input logic tx_clk,

    input logic [63:0] now_ns,
    input logic [63:0] now_cycles,
    input port_pkg::settings_t settings,

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

    // --- payloads that came ---
    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,
    output port_pkg::payload_t m_meta,
    output logic [port_pkg::ROUTE_BITS-1:0] m_route,  // as m_meta

    // --- payloads to send ---
    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  port_pkg::sending_t s_meta,

    output nic_counts_pkg::path_counts_t  path_counts,
    output nic_counts_pkg::reply_counts_t reply_counts,
    output nic_counts_pkg::sending_ends_t ends
);
  logic [63:0] frame_tdata, frame_start_cycle, sent_tdata, reply_tdata;
  logic [7:0] frame_tkeep, sent_tkeep, reply_tkeep;
  logic frame_tvalid, frame_tlast, frame_tuser, sent_tvalid, sent_tready, sent_tlast, sent_tuser, reply_tvalid, reply_tready, reply_tlast;
  nic_counts_pkg::mac_drops_t mac_drops;
  nic_counts_pkg::mac_ends_t mac_ends;
  // Where an entry's packets go.
  typedef struct packed {
    logic [port_pkg::ROUTE_BITS-1:0] route;
    logic                            counts_events;
    logic [1:0]                      clop;
    logic [15:0]                     source;
  } target_t;
  target_t match_target, target;
  assign match_target = '{settings.match_route, settings.match_counts_events, settings.match_clop, settings.match_source};

  mac_cdc #(
      .LINE_GBPS(LINE_GBPS),
      .FRAME_BYTES_MAX(FRAME_BYTES_MAX),
      .OWN_CLOCKS(OWN_CLOCKS)
  ) i_mac (
      .clk,
      .rst,
      .rx_clk,
      .tx_clk,
      .now_cycles,
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
      .m_axis_tdata(frame_tdata),
      .m_axis_tkeep(frame_tkeep),
      .m_axis_tvalid(frame_tvalid),
      .m_axis_tlast(frame_tlast),
      .m_axis_tuser(frame_tuser),
      .m_meta_start_cycle(frame_start_cycle),
      .drops(mac_drops),
      .s_axis_tdata(sent_tdata),
      .s_axis_tkeep(sent_tkeep),
      .s_axis_tvalid(sent_tvalid),
      .s_axis_tready(sent_tready),
      .s_axis_tlast(sent_tlast),
      .s_axis_tuser(sent_tuser),
      .ends(mac_ends)
  );
  assign path_counts.preamble = mac_drops.preamble;
  assign path_counts.control = mac_drops.control;
  assign path_counts.oversize = mac_drops.oversize;
  assign path_counts.runt = mac_drops.runt;
  assign path_counts.fcs = mac_drops.fcs;
  assign path_counts.cut = mac_drops.cut;
  assign ends.framed = mac_ends.framed;
  assign ends.aborted = mac_ends.aborted;
  assign ends.underrun = mac_ends.underrun;

  rx_path #(
      .MATCH_ENTRIES(MATCH_ENTRIES),
      .TARGET_BITS($bits(target_t)),
      .PAYLOAD_BYTES_MAX(BYTES_MAX),
      .REPLIER(REPLIER),
      .GROUPS(GROUPS)
  ) i_rx_path (
      .clk,
      .rst,
      .local_mac(settings.mac),
      .local_address(settings.address),
      .group_write(settings.group_write),
      .group_index(settings.group_index),
      .group_address(settings.group_address),
      .table_write(settings.match_write),
      .table_index(settings.match_index[MATCH_BITS-1:0]),
      .table_enable(settings.match_enable),
      .table_port(settings.match_port),
      .table_source_address(settings.match_source_address),
      .table_source_mask(settings.match_source_mask),
      .table_target(match_target),
      .s_axis_tdata(frame_tdata),
      .s_axis_tkeep(frame_tkeep),
      .s_axis_tvalid(frame_tvalid),
      .s_axis_tlast(frame_tlast),
      .s_axis_tuser(frame_tuser),
      .s_meta_start_cycle(frame_start_cycle),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tlast,
      .m_axis_tuser,
      .m_meta_target(target),
      .m_meta_source_address(),
      .m_meta_source_port(),
      .m_meta_payload_bytes(m_meta.bytes),
      .m_meta_start_cycle(m_meta.start_cycle),
      .m_reply_tdata(reply_tdata),
      .m_reply_tkeep(reply_tkeep),
      .m_reply_tvalid(reply_tvalid),
      .m_reply_tready(reply_tready),
      .m_reply_tlast(reply_tlast),
      .count_good(path_counts.parsed),
      .drop_mac_address(path_counts.mac_address),
      .drop_ethertype(path_counts.ethertype),
      .drop_short(path_counts.no_header),
      .drop_version(path_counts.version),
      .drop_options(path_counts.options),
      .drop_header_checksum(path_counts.header_checksum),
      .drop_fragment(path_counts.fragment),
      .drop_protocol(path_counts.protocol),
      .drop_address(path_counts.address),
      .drop_length(path_counts.length),
      .drop_empty(path_counts.empty),
      .drop_no_match(path_counts.no_match),
      .drop_truncated(path_counts.truncated),
      .drop_udp_checksum(path_counts.udp_checksum),
      .answered_arp(reply_counts.answered_arp),
      .answered_echo(reply_counts.answered_echo),
      .drop_arp_malformed(reply_counts.arp_malformed),
      .drop_arp_other(reply_counts.arp_other),
      .drop_icmp_length(reply_counts.icmp_length),
      .drop_icmp_checksum(reply_counts.icmp_checksum),
      .drop_icmp_other(reply_counts.icmp_other),
      .drop_echo_large(reply_counts.echo_large),
      .drop_busy(reply_counts.busy)
  );

  assign m_route = target.route;
  assign m_meta.clop = target.clop;
  assign m_meta.source = target.source;

  // --- what is known with the first word stays to the last ---
  logic in_payload;
  logic [7:0] event_count;
  logic [63:0] arrival_ns, parsed_cycle;
  always_ff @(posedge clk) begin
    if (m_axis_tvalid) begin
      in_payload <= !m_axis_tlast;
      event_count <= m_meta.event_count;
      arrival_ns <= m_meta.arrival_ns;
      parsed_cycle <= m_meta.parsed_cycle;
    end
    if (rst) in_payload <= 1'b0;
  end
  assign m_meta.event_count = in_payload ? event_count : target.counts_events && m_meta.bytes > 16'd3 ? m_axis_tdata[31:24] : 8'd0;
  assign m_meta.arrival_ns = in_payload ? arrival_ns : now_ns;
  assign m_meta.parsed_cycle = in_payload ? parsed_cycle : now_cycles;

  // --- the encapsulation makes a packet's headers while the one before leaves: else the wire waits for them ---
  port_pkg::sending_t meta;
  logic [63:0] payload_tdata;
  logic [7:0] payload_tkeep;
  logic meta_tvalid, meta_tready, payload_tvalid, payload_tready, payload_tlast;

  meta_ahead #(
      .META_BITS($bits(port_pkg::sending_t))
  ) i_meta_ahead (
      .clk,
      .rst,
      .s_axis_tdata,
      .s_axis_tkeep,
      .s_axis_tvalid,
      .s_axis_tready,
      .s_axis_tlast,
      .s_meta,
      .m_meta_tvalid(meta_tvalid),
      .m_meta_tready(meta_tready),
      .m_meta(meta),
      .m_axis_tdata(payload_tdata),
      .m_axis_tkeep(payload_tkeep),
      .m_axis_tvalid(payload_tvalid),
      .m_axis_tready(payload_tready),
      .m_axis_tlast(payload_tlast)
  );

  tx_path #(
      .DESTINATIONS(DESTINATIONS),
      .PAYLOAD_BYTES_MAX(BYTES_MAX),
      .REPLIER(REPLIER)
  ) i_tx_path (
      .clk,
      .rst,
      .local_mac(settings.mac),
      .local_address(settings.address),
      .table_write(settings.destination_write),
      .table_index(settings.destination_index[DESTINATION_BITS-1:0]),
      .table_enable(settings.destination_enable),
      .table_mac(settings.destination_mac),
      .table_address(settings.destination_address),
      .table_port(settings.destination_port),
      .table_source_port(settings.destination_source_port),
      .s_meta_tvalid(meta_tvalid),
      .s_meta_tready(meta_tready),
      .s_meta_destination(meta.destination[DESTINATION_BITS-1:0]),
      .s_meta_payload_bytes(meta.bytes),
      .s_axis_tdata(payload_tdata),
      .s_axis_tkeep(payload_tkeep),
      .s_axis_tvalid(payload_tvalid),
      .s_axis_tready(payload_tready),
      .s_axis_tlast(payload_tlast),
      .s_axis_tuser(1'b0),
      .s_reply_tdata(reply_tdata),
      .s_reply_tkeep(reply_tkeep),
      .s_reply_tvalid(reply_tvalid),
      .s_reply_tready(reply_tready),
      .s_reply_tlast(reply_tlast),
      .m_axis_tdata(sent_tdata),
      .m_axis_tkeep(sent_tkeep),
      .m_axis_tvalid(sent_tvalid),
      .m_axis_tready(sent_tready),
      .m_axis_tlast(sent_tlast),
      .m_axis_tuser(sent_tuser),
      .count_reply(reply_counts.replied),
      .drop_destination(ends.destination)
  );
endmodule
