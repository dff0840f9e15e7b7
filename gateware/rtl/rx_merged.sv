// SPDX-License-Identifier: Apache-2.0
// Several links in, one stream of merged events out: a NaNet-10 in logic. On each link mac_10g_rx, rx_path, event_check, frame_fifo and decompressor,
// after them event_merger and event_packer.
//
// Contract
//   * XGMII as mac_10g_rx takes it, never held up. Each link brings the MGP packets of one source, its events in order of time.
//   * Packets of M2EGP leave as event_packer says. Configuration is as in event_merger, event_packer and decompressor; the tables are the same on all links.
//   * A packet that finds no room before the decompressor is dropped (drop_full).
//
// Books, of each link
//   frames that began = frame_drops + request_ends + drop_length + drop_format + drop_checksum + drop_full + count_packet + count_marker
//   and further on those of event_merger and event_packer.
module rx_merged #(
    parameter int LINKS = 2,
    parameter int FRAME_BYTES_MAX = 1522,    // FCS and tag included [B]
    parameter int MATCH_ENTRIES = 4,
    parameter int PACKET_WORDS = 2048,       // of packets that wait on each link [8 B]
    parameter int EVENT_WORDS = 1024,        // of parts that wait on each link [8 B]
    parameter int PACKET_BYTES_MAX = 1472    // of M2EGP
) (
    input logic clk,
    input logic rst,

    input logic [               63:0] now_cycles,
    input logic [               31:0] now_ns,
    input logic [       LINKS*48-1:0] local_mac,
    input logic [       LINKS*32-1:0] local_address,
    input logic [          LINKS-1:0] match_write,
    input logic [$clog2(MATCH_ENTRIES)-1:0] match_index,
    input logic                       match_enable,
    input logic [               15:0] match_port,
    input logic [               31:0] match_source_address,
    input logic [               31:0] match_source_mask,
    input logic                       cfg_table,
    input logic                       table_write,
    input logic [               10:0] table_index,
    input logic [               15:0] table_hit,
    input logic [          LINKS-1:0] cfg_links,
    input logic [               31:0] cfg_window_cycles,
    input logic [               39:0] cfg_jump,
    input logic [               31:0] cfg_lapse_cycles,
    input logic                       cfg_complete_only,
    input logic                       forget,
    input logic [                7:0] cfg_source_id,
    input logic [                7:0] cfg_source_sub_id,
    input logic [               31:0] cfg_flush_cycles,
    input logic                       cfg_parts,

    // Links stand side by side in each vector, link 0 lowest.
    input logic [LINKS*64-1:0] xgmii_rxd,
    input logic [ LINKS*8-1:0] xgmii_rxc,

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast,
    output logic [15:0] m_meta_payload_bytes,
    output logic [ 7:0] m_meta_event_count,

    // Answers to ARP and echo requests on each link, as of rx_path.
    output logic [LINKS*64-1:0] m_reply_tdata,
    output logic [ LINKS*8-1:0] m_reply_tkeep,
    output logic [   LINKS-1:0] m_reply_tvalid,
    input  logic [   LINKS-1:0] m_reply_tready,
    output logic [   LINKS-1:0] m_reply_tlast,

    // What became of each frame that is no packet for event_check.
    output nic_counts_pkg::frame_drops_t  [LINKS-1:0] frame_drops,
    output nic_counts_pkg::request_ends_t [LINKS-1:0] request_ends,

    output logic [            LINKS-1:0] drop_length,     // of MGP, as of event_check
    output logic [            LINKS-1:0] drop_format,
    output logic [            LINKS-1:0] drop_checksum,
    output logic [            LINKS-1:0] drop_full,
    output logic [            LINKS-1:0] count_packet,
    output logic [            LINKS-1:0] count_marker,
    output logic [            LINKS-1:0] count_part,
    output logic [            LINKS-1:0] drop_late,
    output logic [            LINKS-1:0] drop_jump,
    output logic [            LINKS-1:0] drop_disabled,
    output logic                         count_complete,
    output logic                         count_missing,
    output logic                         count_overflow,
    output logic                         drop_incomplete,
    output logic                         count_cut,
    output logic                         count_merged_packet
);
  logic [LINKS*64-1:0] part_tdata;
  logic [LINKS*8-1:0] part_tkeep;
  logic [LINKS-1:0] part_tvalid, part_tready, part_tlast;

  for (genvar link = 0; link < LINKS; link++) begin : g_link
    nic_counts_pkg::frame_drops_t drops;
    nic_counts_pkg::request_ends_t requests;
    logic [63:0] mac_tdata, mac_start_cycle, udp_tdata, mgp_tdata, packet_tdata;
    logic [7:0] mac_tkeep, udp_tkeep, mgp_tkeep, packet_tkeep;
    logic mac_tvalid, mac_tlast, mac_tuser;
    logic udp_tvalid, udp_tlast, udp_tuser, mgp_tvalid, mgp_tlast, mgp_tuser, packet_tvalid, packet_tready, packet_tlast;
    assign frame_drops[link] = drops;
    assign request_ends[link] = requests;

    mac_10g_rx #(
        .FRAME_BYTES_MAX(FRAME_BYTES_MAX)
    ) mac (
        .clk,
        .rst,
        .now_cycles,
        .xgmii_rxd(xgmii_rxd[64*link+:64]),
        .xgmii_rxc(xgmii_rxc[8*link+:8]),
        .m_axis_tdata(mac_tdata),
        .m_axis_tkeep(mac_tkeep),
        .m_axis_tvalid(mac_tvalid),
        .m_axis_tlast(mac_tlast),
        .m_axis_tuser(mac_tuser),
        .m_meta_start_cycle(mac_start_cycle),
        .count_good(),
        .drop_preamble(drops.preamble),
        .drop_control(drops.control),
        .drop_oversize(drops.oversize),
        .drop_runt(drops.runt),
        .drop_fcs(drops.fcs)
    );

    rx_path #(
        .MATCH_ENTRIES(MATCH_ENTRIES)
    ) path (
        .clk,
        .rst,
        .local_mac(local_mac[48*link+:48]),
        .local_address(local_address[32*link+:32]),
        .table_write(match_write[link]),
        .table_index(match_index),
        .table_enable(match_enable),
        .table_port(match_port),
        .table_source_address(match_source_address),
        .table_source_mask(match_source_mask),
        .s_axis_tdata(mac_tdata),
        .s_axis_tkeep(mac_tkeep),
        .s_axis_tvalid(mac_tvalid),
        .s_axis_tlast(mac_tlast),
        .s_axis_tuser(mac_tuser),
        .s_meta_start_cycle(mac_start_cycle),
        .m_axis_tdata(udp_tdata),
        .m_axis_tkeep(udp_tkeep),
        .m_axis_tvalid(udp_tvalid),
        .m_axis_tlast(udp_tlast),
        .m_axis_tuser(udp_tuser),
        .m_meta_match_index(),
        .m_meta_source_address(),
        .m_meta_source_port(),
        .m_meta_payload_bytes(),
        .m_meta_start_cycle(),
        .m_reply_tdata(m_reply_tdata[64*link+:64]),
        .m_reply_tkeep(m_reply_tkeep[8*link+:8]),
        .m_reply_tvalid(m_reply_tvalid[link]),
        .m_reply_tready(m_reply_tready[link]),
        .m_reply_tlast(m_reply_tlast[link]),
        .count_good(),
        .drop_mac_address(drops.mac_address),
        .drop_ethertype(drops.ethertype),
        .drop_short(drops.no_header),
        .drop_version(drops.version),
        .drop_options(drops.options),
        .drop_header_checksum(drops.header_checksum),
        .drop_fragment(drops.fragment),
        .drop_protocol(drops.protocol),
        .drop_address(drops.address),
        .drop_length(drops.length),
        .drop_empty(drops.empty),
        .drop_no_match(drops.no_match),
        .drop_truncated(drops.truncated),
        .drop_udp_checksum(drops.udp_checksum),
        .answered_arp(requests.answered_arp),
        .answered_echo(requests.answered_echo),
        .drop_arp_malformed(requests.arp_malformed),
        .drop_arp_other(requests.arp_other),
        .drop_icmp_length(requests.icmp_length),
        .drop_icmp_checksum(requests.icmp_checksum),
        .drop_icmp_other(requests.icmp_other),
        .drop_echo_large(requests.echo_large),
        .drop_busy(requests.busy)
    );

    event_check check (
        .clk,
        .rst,
        .s_axis_tdata(udp_tdata),
        .s_axis_tkeep(udp_tkeep),
        .s_axis_tvalid(udp_tvalid),
        .s_axis_tlast(udp_tlast),
        .s_axis_tuser(udp_tuser),
        .m_axis_tdata(mgp_tdata),
        .m_axis_tkeep(mgp_tkeep),
        .m_axis_tvalid(mgp_tvalid),
        .m_axis_tlast(mgp_tlast),
        .m_axis_tuser(mgp_tuser),
        .count_good(),
        .drop_length(drop_length[link]),
        .drop_format(drop_format[link]),
        .drop_checksum(drop_checksum[link])
    );

    frame_fifo #(
        .DEPTH_WORDS(PACKET_WORDS),
        .PACKETS(PACKET_WORDS / 4)
    ) packets (
        .clk,
        .rst,
        .s_axis_tdata(mgp_tdata),
        .s_axis_tkeep(mgp_tkeep),
        .s_axis_tvalid(mgp_tvalid),
        .s_axis_tlast(mgp_tlast),
        .s_axis_tuser(mgp_tuser),
        .s_meta(1'b0),
        .m_axis_tdata(packet_tdata),
        .m_axis_tkeep(packet_tkeep),
        .m_axis_tvalid(packet_tvalid),
        .m_axis_tready(packet_tready),
        .m_axis_tlast(packet_tlast),
        .m_meta(),
        .fill_words(),
        .count_good(),
        .count_bad(),
        .drop_full(drop_full[link])
    );

    decompressor unpack (
        .clk,
        .rst,
        .cfg_table,
        .table_write,
        .table_index,
        .table_hit,
        .s_axis_tdata(packet_tdata),
        .s_axis_tkeep(packet_tkeep),
        .s_axis_tvalid(packet_tvalid),
        .s_axis_tready(packet_tready),
        .s_axis_tlast(packet_tlast),
        .m_axis_tdata(part_tdata[64*link+:64]),
        .m_axis_tkeep(part_tkeep[8*link+:8]),
        .m_axis_tvalid(part_tvalid[link]),
        .m_axis_tready(part_tready[link]),
        .m_axis_tlast(part_tlast[link]),
        .count_packet(count_packet[link]),
        .count_marker(count_marker[link])
    );
  end

  logic [63:0] event_tdata;
  logic [7:0] event_tkeep;
  logic event_tvalid, event_tready, event_tlast;
  logic [LINKS-1:0] event_parts;

  event_merger #(
      .LINKS(LINKS),
      .DEPTH_WORDS(EVENT_WORDS)
  ) i_merger (
      .clk,
      .rst,
      .cfg_links,
      .cfg_window_cycles,
      .cfg_jump,
      .cfg_lapse_cycles,
      .cfg_complete_only,
      .forget,
      .s_axis_tdata(part_tdata),
      .s_axis_tkeep(part_tkeep),
      .s_axis_tvalid(part_tvalid),
      .s_axis_tready(part_tready),
      .s_axis_tlast(part_tlast),
      .m_axis_tdata(event_tdata),
      .m_axis_tkeep(event_tkeep),
      .m_axis_tvalid(event_tvalid),
      .m_axis_tready(event_tready),
      .m_axis_tlast(event_tlast),
      .m_meta_parts(event_parts),
      .count_part,
      .drop_late,
      .drop_jump,
      .drop_disabled,
      .count_complete,
      .count_missing,
      .count_overflow,
      .drop_incomplete,
      .count_cut
  );

  event_packer #(
      .PACKET_BYTES_MAX(PACKET_BYTES_MAX)
  ) i_packer (
      .clk,
      .rst,
      .cfg_source_id,
      .cfg_source_sub_id,
      .cfg_flush_cycles,
      .cfg_parts,
      .now_ns,
      .s_axis_tdata(event_tdata),
      .s_axis_tkeep(event_tkeep),
      .s_axis_tvalid(event_tvalid),
      .s_axis_tready(event_tready),
      .s_axis_tlast(event_tlast),
      .s_meta_parts(8'(event_parts)),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .m_meta_payload_bytes,
      .m_meta_event_count,
      .count_event(),
      .count_packet(count_merged_packet)
  );
endmodule
