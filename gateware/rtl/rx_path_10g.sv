// SPDX-License-Identifier: Apache-2.0
// From XGMII to UDP payloads: mac_10g_rx and rx_path. Each counter of both comes out; the books of the whole: frames that began = count_good +
// answered_arp + answered_echo + every drop.
//
// Contract: that of rx_path for payloads and answers, of mac_10g_rx for the input.
module rx_path_10g #(
    parameter int FRAME_BYTES_MAX = 9022,  // FCS and tag included [B]
    parameter int MATCH_ENTRIES = 16,
    parameter int ECHO_BYTES_MAX = 1472
) (
    input logic clk,
    input logic rst,

    input logic [                     63:0] now_cycles,
    input logic [                     47:0] local_mac,
    input logic [                     31:0] local_address,
    input logic                             table_write,
    input logic [$clog2(MATCH_ENTRIES)-1:0] table_index,
    input logic                             table_enable,
    input logic [                     15:0] table_port,
    input logic [                     31:0] table_source_address,
    input logic [                     31:0] table_source_mask,

    input logic [63:0] xgmii_rxd,
    input logic [ 7:0] xgmii_rxc,

    output logic [                     63:0] m_axis_tdata,
    output logic [                      7:0] m_axis_tkeep,
    output logic                             m_axis_tvalid,
    output logic                             m_axis_tlast,
    output logic                             m_axis_tuser,
    output logic [$clog2(MATCH_ENTRIES)-1:0] m_meta_match_index,
    output logic [                     31:0] m_meta_source_address,
    output logic [                     15:0] m_meta_source_port,
    output logic [                     15:0] m_meta_payload_bytes,
    output logic [                     63:0] m_meta_start_cycle,

    // Answers to ARP and echo requests: frames without check sequence.
    output logic [63:0] m_reply_tdata,
    output logic [ 7:0] m_reply_tkeep,
    output logic        m_reply_tvalid,
    input  logic        m_reply_tready,
    output logic        m_reply_tlast,

    output logic count_good,
    output logic drop_preamble,
    output logic drop_control,
    output logic drop_oversize,
    output logic drop_runt,
    output logic drop_fcs,
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
  logic [63:0] mac_tdata, mac_start_cycle;
  logic [7:0] mac_tkeep;
  logic mac_tvalid, mac_tlast, mac_tuser;

  mac_10g_rx #(
      .FRAME_BYTES_MAX(FRAME_BYTES_MAX)
  ) mac (
      .clk,
      .rst,
      .now_cycles,
      .xgmii_rxd,
      .xgmii_rxc,
      .m_axis_tdata(mac_tdata),
      .m_axis_tkeep(mac_tkeep),
      .m_axis_tvalid(mac_tvalid),
      .m_axis_tlast(mac_tlast),
      .m_axis_tuser(mac_tuser),
      .m_meta_start_cycle(mac_start_cycle),
      .count_good(),
      .drop_preamble,
      .drop_control,
      .drop_oversize,
      .drop_runt,
      .drop_fcs
  );

  rx_path #(
      .MATCH_ENTRIES(MATCH_ENTRIES),
      .ECHO_BYTES_MAX(ECHO_BYTES_MAX)
  ) path (
      .clk,
      .rst,
      .local_mac,
      .local_address,
      .table_write,
      .table_index,
      .table_enable,
      .table_port,
      .table_source_address,
      .table_source_mask,
      .s_axis_tdata(mac_tdata),
      .s_axis_tkeep(mac_tkeep),
      .s_axis_tvalid(mac_tvalid),
      .s_axis_tlast(mac_tlast),
      .s_axis_tuser(mac_tuser),
      .s_meta_start_cycle(mac_start_cycle),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tlast,
      .m_axis_tuser,
      .m_meta_match_index,
      .m_meta_source_address,
      .m_meta_source_port,
      .m_meta_payload_bytes,
      .m_meta_start_cycle,
      .m_reply_tdata,
      .m_reply_tkeep,
      .m_reply_tvalid,
      .m_reply_tready,
      .m_reply_tlast,
      .count_good,
      .drop_mac_address,
      .drop_ethertype,
      .drop_short,
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
      .drop_udp_checksum,
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
endmodule
