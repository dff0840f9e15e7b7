// SPDX-License-Identifier: Apache-2.0
// eth_port with its structures taken apart. The times are counted here, at different paces from different starts.
module bench_top #(
    parameter int LINE_GBPS = 10
) (
    input logic clk,
    input logic rst,

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

    // --- settings ---
    input logic [47:0] local_mac,
    input logic [31:0] local_address,
    input logic        group_write,
    input logic [ 7:0] group_index,
    input logic [31:0] group_address,
    input logic        match_write,
    input logic [ 7:0] match_index,
    input logic        match_enable,
    input logic [15:0] match_port,
    input logic [ 3:0] match_route,
    input logic [ 1:0] match_clop,
    input logic [15:0] match_source,
    input logic        match_counts_events,
    input logic        table_write,
    input logic [ 7:0] table_index,
    input logic        table_enable,
    input logic [47:0] table_mac,
    input logic [31:0] table_address,
    input logic [15:0] table_port,
    input logic [15:0] table_source_port,

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,
    output logic [ 3:0] m_route,
    output logic [ 1:0] m_meta_clop,
    output logic [15:0] m_meta_source,
    output logic [ 7:0] m_meta_event_count,
    output logic [15:0] m_meta_bytes,
    output logic [63:0] m_meta_arrival_ns,
    output logic [63:0] m_meta_start_cycle,
    output logic [63:0] m_meta_parsed_cycle,

    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic [ 7:0] s_meta_destination,
    input  logic [15:0] s_meta_bytes,

    output logic [63:0] now_cycles,
    output logic [63:0] now_ns,
    output logic parsed, preamble, control, oversize, runt, fcs, cut, mac_address, no_match, answered_arp, replied, framed, aborted, underrun, destination
);
  initial {now_cycles, now_ns} = {64'd100, 64'd5_000_000};
  always_ff @(posedge clk) begin
    now_cycles <= now_cycles + 64'd1;
    now_ns <= now_ns + 64'd7;
  end

  port_pkg::settings_t settings;
  /* verilator lint_off UNOPTFLAT */  // its event_count is told by its bytes: one structure, and no loop
  port_pkg::payload_t m_meta;
  /* verilator lint_on UNOPTFLAT */
  port_pkg::sending_t s_meta;
  nic_counts_pkg::path_counts_t path_counts;
  nic_counts_pkg::reply_counts_t reply_counts;
  nic_counts_pkg::sending_ends_t ends;
  assign settings = '{
      mac: local_mac,
      address: local_address,
      group_write: group_write,
      group_index: group_index,
      group_address: group_address,
      match_write: match_write,
      match_index: match_index,
      match_enable: match_enable,
      match_port: match_port,
      match_source_address: '0,
      match_source_mask: '0,
      match_route: match_route,
      match_clop: match_clop,
      match_source: match_source,
      match_counts_events: match_counts_events,
      destination_write: table_write,
      destination_index: table_index,
      destination_enable: table_enable,
      destination_mac: table_mac,
      destination_address: table_address,
      destination_port: table_port,
      destination_source_port: table_source_port
  };
  assign s_meta = '{destination: s_meta_destination, bytes: s_meta_bytes};
  assign m_meta_clop = m_meta.clop;
  assign m_meta_source = m_meta.source;
  assign m_meta_event_count = m_meta.event_count;
  assign m_meta_bytes = m_meta.bytes;
  assign m_meta_arrival_ns = m_meta.arrival_ns;
  assign m_meta_start_cycle = m_meta.start_cycle;
  assign m_meta_parsed_cycle = m_meta.parsed_cycle;
  assign parsed = path_counts.parsed;
  assign preamble = path_counts.preamble;
  assign control = path_counts.control;
  assign oversize = path_counts.oversize;
  assign runt = path_counts.runt;
  assign fcs = path_counts.fcs;
  assign cut = path_counts.cut;
  assign mac_address = path_counts.mac_address;
  assign no_match = path_counts.no_match;
  assign answered_arp = reply_counts.answered_arp;
  assign replied = reply_counts.replied;
  assign framed = ends.framed;
  assign aborted = ends.aborted;
  assign underrun = ends.underrun;
  assign destination = ends.destination;

  eth_port #(
      .LINE_GBPS(LINE_GBPS),
      .FRAME_BYTES_MAX(1522)
  ) dut (
      .*,
      .rx_clk(clk),
      .tx_clk(clk)
  );
endmodule
