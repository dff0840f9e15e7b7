// SPDX-License-Identifier: Apache-2.0
// rx_merged with the XGMII of each link under names of its own, as the XGMII source of the bench wants them, and with clocks of its own.
module bench_top #(
    parameter int LINKS = 2
) (
    input logic clk,
    input logic rst,

    input logic [      47:0] local_mac,
    input logic [      31:0] local_address,
    input logic [ LINKS-1:0] match_write,
    input logic [      15:0] match_port,
    input logic              cfg_table,
    input logic              table_write,
    input logic [      10:0] table_index,
    input logic [      15:0] table_hit,
    input logic [ LINKS-1:0] cfg_links,
    input logic [      31:0] cfg_window_cycles,
    input logic [      31:0] cfg_lapse_cycles,
    input logic [      31:0] cfg_flush_cycles,
    input logic              cfg_parts,
    input logic [      63:0] xgmii_0_rxd,
    input logic [       7:0] xgmii_0_rxc,
    input logic [      63:0] xgmii_1_rxd,
    input logic [       7:0] xgmii_1_rxc,

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast,
    output logic [15:0] m_meta_payload_bytes,
    output logic [ 7:0] m_meta_event_count,

    output logic [LINKS-1:0] drop_any_frame,
    output logic [LINKS-1:0] drop_length,
    output logic [LINKS-1:0] drop_format,
    output logic [LINKS-1:0] drop_checksum,
    output logic [LINKS-1:0] drop_full,
    output logic [LINKS-1:0] count_packet,
    output logic [LINKS-1:0] count_marker,
    output logic [LINKS-1:0] count_part,
    output logic [LINKS-1:0] drop_late,
    output logic [LINKS-1:0] drop_jump,
    output logic [LINKS-1:0] drop_disabled,
    output logic             count_complete,
    output logic             count_missing,
    output logic             count_overflow,
    output logic             drop_incomplete,
    output logic             count_cut,
    output logic             count_merged_packet
);
  logic [63:0] now_cycles = '0;
  logic [31:0] now_ns = '0;
  always_ff @(posedge clk) begin
    now_cycles <= now_cycles + 64'd1;
    now_ns <= now_ns + 32'd7;
  end

  nic_counts_pkg::frame_drops_t [LINKS-1:0] frame_drops;
  nic_counts_pkg::request_ends_t [LINKS-1:0] request_ends;
  for (genvar link = 0; link < LINKS; link++) begin : g_link
    assign drop_any_frame[link] = |{frame_drops[link], request_ends[link]};
  end

  rx_merged #(
      .LINKS(LINKS)
  ) dut (
      .*,
      .m_reply_tdata(),
      .m_reply_tkeep(),
      .m_reply_tvalid(),
      .m_reply_tready('1),
      .m_reply_tlast(),
      .local_mac({LINKS{local_mac}}),
      .local_address({LINKS{local_address}}),
      .match_index('0),
      .match_enable(1'b1),
      .match_source_address('0),
      .match_source_mask('0),
      .cfg_jump(40'd1 << 30),
      .cfg_complete_only(1'b0),
      .forget(1'b0),
      .cfg_source_id(8'h1C),
      .cfg_source_sub_id(8'd0),
      .xgmii_rxd({xgmii_1_rxd, xgmii_0_rxd}),
      .xgmii_rxc({xgmii_1_rxc, xgmii_0_rxc})
  );
endmodule
