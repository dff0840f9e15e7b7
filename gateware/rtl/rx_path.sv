// SPDX-License-Identifier: Apache-2.0
// From frames to UDP payloads: eth_rx and udp_rx in a row, and, with REPLIER, replier beside udp_rx. Each counter of the three comes out; the books: frames
// that the MAC found good = count_good + answered_arp + answered_echo + every drop, and bad ones have been counted by the MAC.
//
// Contract: frames in words of eight bytes as mac_10g_rx makes them, or with pauses between the words; that of udp_rx for the payloads, of
// replier for the answers. No word of a payload waits for anything but the frame itself.
module rx_path #(
    parameter int MATCH_ENTRIES = 16,
    parameter int TARGET_BITS = 4,
    parameter int PAYLOAD_BYTES_MAX = 8976,
    parameter bit REPLIER = 1'b1,  // 0: ARP and ICMP are drops as any other
    parameter int ECHO_BYTES_MAX = 1472,
    parameter int GROUPS = 4  // IPv4 groups that the station may be a member of; 0: none
) (
    input logic clk,
    input logic rst,

    input logic [                     47:0] local_mac,
    input logic [                     31:0] local_address,
    input logic                             group_write,  // of group_table
    input logic [                      7:0] group_index,
    input logic [                     31:0] group_address,
    input logic                             table_write,
    input logic [$clog2(MATCH_ENTRIES)-1:0] table_index,
    input logic                             table_enable,
    input logic [                     15:0] table_port,
    input logic [                     31:0] table_source_address,
    input logic [                     31:0] table_source_mask,
    input logic [          TARGET_BITS-1:0] table_target,

    input logic [63:0] s_axis_tdata,
    input logic [ 7:0] s_axis_tkeep,
    input logic        s_axis_tvalid,
    input logic        s_axis_tlast,
    input logic        s_axis_tuser,
    input logic [63:0] s_meta_start_cycle,

    output logic [           63:0] m_axis_tdata,
    output logic [            7:0] m_axis_tkeep,
    output logic                   m_axis_tvalid,
    output logic                   m_axis_tlast,
    output logic                   m_axis_tuser,
    output logic [TARGET_BITS-1:0] m_meta_target,
    output logic [           31:0] m_meta_source_address,
    output logic [           15:0] m_meta_source_port,
    output logic [           15:0] m_meta_payload_bytes,
    output logic [           63:0] m_meta_start_cycle,

    // Answers to ARP and echo requests: frames without check sequence.
    output logic [63:0] m_reply_tdata,
    output logic [ 7:0] m_reply_tkeep,
    output logic        m_reply_tvalid,
    input  logic        m_reply_tready,
    output logic        m_reply_tlast,

    output logic count_good,
    output logic drop_mac_address,      // eth_rx: drop_address
    output logic drop_ethertype,
    output logic drop_short,            // of eth_rx and udp_rx
    output logic drop_version,
    output logic drop_options,
    output logic drop_header_checksum,
    output logic drop_fragment,
    output logic drop_protocol,
    output logic drop_address,
    output logic drop_length,
    output logic drop_empty,
    output logic drop_no_match,
    output logic drop_truncated,
    output logic drop_udp_checksum,
    output logic answered_arp,
    output logic answered_echo,
    output logic drop_arp_malformed,
    output logic drop_arp_other,
    output logic drop_icmp_length,
    output logic drop_icmp_checksum,
    output logic drop_icmp_other,
    output logic drop_echo_large,
    output logic drop_busy              // no room for an answer
);
  logic [63:0] eth_tdata;
  logic [7:0] eth_tkeep;
  logic eth_tvalid, eth_tlast, eth_tuser;
  logic [63:0] eth_start_cycle;
  logic [15:0] eth_ethertype;
  logic [47:0] eth_source_mac;
  logic eth_short, udp_short, for_replier, eth_group;

  localparam int SLOTS = GROUPS == 0 ? 1 : GROUPS;
  logic [SLOTS-1:0] group_valid;
  logic [SLOTS-1:0][nanet_pkg::IPV4_GROUP_BITS-1:0] groups;
  logic [SLOTS-1:0][nanet_pkg::MAC_GROUP_BITS-1:0] group_macs;
  always_comb for (int g = 0; g < SLOTS; g++) group_macs[g] = groups[g][nanet_pkg::MAC_GROUP_BITS-1:0];

  group_table #(
      .GROUPS(GROUPS)
  ) member_of (
      .clk,
      .rst,
      .write(group_write),
      .index(group_index),
      .address(group_address),
      .valid(group_valid),
      .groups
  );

  eth_rx #(
      .GROUPS(GROUPS)
  ) eth (
      .clk,
      .rst,
      .local_mac,
      .group_valid,
      .group_macs,
      .s_axis_tdata,
      .s_axis_tkeep,
      .s_axis_tvalid,
      .s_axis_tlast,
      .s_axis_tuser,
      .s_meta_start_cycle,
      .m_axis_tdata(eth_tdata),
      .m_axis_tkeep(eth_tkeep),
      .m_axis_tvalid(eth_tvalid),
      .m_axis_tlast(eth_tlast),
      .m_axis_tuser(eth_tuser),
      .m_meta_source_mac(eth_source_mac),
      .m_meta_ethertype(eth_ethertype),
      .m_meta_start_cycle(eth_start_cycle),
      .m_meta_group(eth_group),
      .count_good(),
      .drop_address(drop_mac_address),
      .drop_short(eth_short)
  );

  udp_rx #(
      .MATCH_ENTRIES(MATCH_ENTRIES),
      .TARGET_BITS(TARGET_BITS),
      .PAYLOAD_BYTES_MAX(PAYLOAD_BYTES_MAX),
      .REPLIER(REPLIER),
      .GROUPS(GROUPS)
  ) udp (
      .clk,
      .rst,
      .local_address,
      .group_valid,
      .groups,
      .table_write,
      .table_index,
      .table_enable,
      .table_port,
      .table_source_address,
      .table_source_mask,
      .table_target,
      .s_axis_tdata(eth_tdata),
      .s_axis_tkeep(eth_tkeep),
      .s_axis_tvalid(eth_tvalid),
      .s_axis_tlast(eth_tlast),
      .s_axis_tuser(eth_tuser),
      .s_meta_ethertype(eth_ethertype),
      .s_meta_start_cycle(eth_start_cycle),
      .s_meta_group(eth_group),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tlast,
      .m_axis_tuser,
      .m_meta_target,
      .m_meta_source_address,
      .m_meta_source_port,
      .m_meta_payload_bytes,
      .m_meta_start_cycle,
      .for_replier,
      .count_good,
      .drop_ethertype,
      .drop_short(udp_short),
      .drop_version,
      .drop_options,
      .drop_header_checksum,
      .drop_fragment,
      .drop_protocol,
      .drop_address,
      .drop_length,
      .drop_empty,
      .drop_no_match,
      .drop_truncated,
      .drop_udp_checksum
  );

  if (REPLIER) begin : g_replier
    replier #(
        .ECHO_BYTES_MAX(ECHO_BYTES_MAX)
    ) replies (
        .clk,
        .rst,
        .local_mac,
        .local_address,
        .s_axis_tdata(eth_tdata),
        .s_axis_tkeep(eth_tkeep),
        .s_axis_tvalid(eth_tvalid),
        .s_axis_tlast(eth_tlast),
        .s_axis_tuser(eth_tuser),
        .s_meta_source_mac(eth_source_mac),
        .s_meta_ethertype(eth_ethertype),
        .s_for_replier(for_replier),
        .m_axis_tdata(m_reply_tdata),
        .m_axis_tkeep(m_reply_tkeep),
        .m_axis_tvalid(m_reply_tvalid),
        .m_axis_tready(m_reply_tready),
        .m_axis_tlast(m_reply_tlast),
        .answered_arp,
        .answered_echo,
        .drop_arp_malformed,
        .drop_arp_other,
        .drop_icmp_length,
        .drop_icmp_checksum,
        .drop_icmp_other,
        .drop_echo_large,
        .drop_busy
    );
  end else begin : g_replier
    assign {m_reply_tdata, m_reply_tkeep, m_reply_tvalid, m_reply_tlast} = '0;
    assign {answered_arp, answered_echo, drop_arp_malformed, drop_arp_other} = '0;
    assign {drop_icmp_length, drop_icmp_checksum, drop_icmp_other, drop_echo_large, drop_busy} = '0;
    wire unused = &{1'b0, eth_source_mac, for_replier, m_reply_tready};
  end

  assign drop_short = eth_short || udp_short;
endmodule
