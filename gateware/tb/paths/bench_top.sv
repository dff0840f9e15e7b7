// SPDX-License-Identifier: Apache-2.0
// From the wire to payloads and from payloads to the wire: mac, rx_path and tx_path, at the rate of LINE_GBPS. Cycles are counted here, which costs the
// bench nothing in each of them.
module bench_top #(
    parameter int LINE_GBPS = 10,
    parameter bit REPLIER = 1'b1,
    parameter int GROUPS = 4
) (
    input logic clk,
    input logic rst,

    input  logic [47:0] local_mac,
    input  logic [31:0] local_address,
    input  logic        group_write,
    input  logic [ 7:0] group_index,
    input  logic [31:0] group_address,
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

    // --- as of rx_path, its table under another name ---
    input  logic        match_write,
    input  logic [ 3:0] match_index,
    input  logic        match_enable,
    input  logic [15:0] match_port,
    input  logic [31:0] match_source_address,
    input  logic [31:0] match_source_mask,
    input  logic [ 3:0] match_target,
    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,
    output logic [ 3:0] m_meta_target,
    output logic [31:0] m_meta_source_address,
    output logic [15:0] m_meta_source_port,
    output logic [15:0] m_meta_payload_bytes,
    output logic [63:0] m_meta_start_cycle,
    output logic [63:0] m_reply_tdata,
    output logic [ 7:0] m_reply_tkeep,
    output logic        m_reply_tvalid,
    input  logic        m_reply_tready,
    output logic        m_reply_tlast,

    // --- as of tx_path ---
    input  logic        table_write,
    input  logic [ 3:0] table_index,
    input  logic        table_enable,
    input  logic [47:0] table_mac,
    input  logic [31:0] table_address,
    input  logic [15:0] table_port,
    input  logic [15:0] table_source_port,
    input  logic        s_meta_tvalid,
    output logic        s_meta_tready,
    input  logic [ 3:0] s_meta_destination,
    input  logic [15:0] s_meta_payload_bytes,
    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,
    input  logic [63:0] s_reply_tdata,
    input  logic [ 7:0] s_reply_tkeep,
    input  logic        s_reply_tvalid,
    output logic        s_reply_tready,
    input  logic        s_reply_tlast,

    // --- what became of each frame that came, and of each that was to go ---
    output logic count_good, drop_preamble, drop_control, drop_oversize, drop_runt, drop_fcs, drop_mac_address, drop_ethertype, drop_short,
    output logic drop_version, drop_options, drop_header_checksum, drop_fragment, drop_protocol, drop_address, drop_length, drop_empty,
    output logic drop_no_match, drop_truncated, drop_udp_checksum, answered_arp, answered_echo, drop_arp_malformed, drop_arp_other,
    output logic drop_icmp_length, drop_icmp_checksum, drop_icmp_other, drop_echo_large, drop_busy,
    output logic count_framed, count_reply, drop_aborted, drop_underrun, drop_destination
);
  logic [63:0] now_cycles = '0;
  always_ff @(posedge clk) now_cycles <= now_cycles + 64'd1;

  logic [63:0] rx_tdata, rx_start_cycle, tx_tdata;
  logic [7:0] rx_tkeep, tx_tkeep;
  logic rx_tvalid, rx_tlast, rx_tuser, tx_tvalid, tx_tready, tx_tlast, tx_tuser;
  nic_counts_pkg::mac_drops_t drops;
  nic_counts_pkg::mac_ends_t ends;
  assign drop_preamble = drops.preamble;
  assign drop_control = drops.control;
  assign drop_oversize = drops.oversize;
  assign drop_runt = drops.runt;
  assign drop_fcs = drops.fcs;
  assign count_framed = ends.framed;
  assign drop_aborted = ends.aborted;
  assign drop_underrun = ends.underrun;

  mac #(
      .LINE_GBPS(LINE_GBPS)
  ) i_mac (
      .*,
      .rx_clk(clk),
      .rx_rst(rst),
      .tx_clk(clk),
      .tx_rst(rst),
      .m_axis_tdata(rx_tdata),
      .m_axis_tkeep(rx_tkeep),
      .m_axis_tvalid(rx_tvalid),
      .m_axis_tlast(rx_tlast),
      .m_axis_tuser(rx_tuser),
      .m_meta_start_cycle(rx_start_cycle),
      .s_axis_tdata(tx_tdata),
      .s_axis_tkeep(tx_tkeep),
      .s_axis_tvalid(tx_tvalid),
      .s_axis_tready(tx_tready),
      .s_axis_tlast(tx_tlast),
      .s_axis_tuser(tx_tuser)
  );

  rx_path #(
      .REPLIER(REPLIER),
      .GROUPS(GROUPS)
  ) i_rx_path (
      .*,
      .table_write(match_write),
      .table_index(match_index),
      .table_enable(match_enable),
      .table_port(match_port),
      .table_source_address(match_source_address),
      .table_source_mask(match_source_mask),
      .table_target(match_target),
      .s_axis_tdata(rx_tdata),
      .s_axis_tkeep(rx_tkeep),
      .s_axis_tvalid(rx_tvalid),
      .s_axis_tlast(rx_tlast),
      .s_axis_tuser(rx_tuser),
      .s_meta_start_cycle(rx_start_cycle)
  );

  tx_path #(
      .REPLIER(REPLIER)
  ) i_tx_path (
      .*,
      .m_axis_tdata(tx_tdata),
      .m_axis_tkeep(tx_tkeep),
      .m_axis_tvalid(tx_tvalid),
      .m_axis_tready(tx_tready),
      .m_axis_tlast(tx_tlast),
      .m_axis_tuser(tx_tuser)
  );
endmodule
