// SPDX-License-Identifier: Apache-2.0
// The MAC of a NIC's line, both directions: frames in words of eight bytes on one side; on the other XGMII with LINE_GBPS 10, or GMII with 1.
//
// Contract: that of mac_10g_rx and mac_10g_tx, or of mac_1g_rx with bytes_to_words behind it and of mac_1g_tx with words_to_bytes before it. The
// other line's outputs are idle, its inputs are not looked at. The two directions have nothing in common, so each has its clock; mac_cdc has both in a third one.
module mac #(
    parameter int LINE_GBPS = 10,
    parameter int FRAME_BYTES_MAX = 9022,  // FCS and tag included [B]
    parameter bit NOW_LATE = 1'b0          // as of mac_10g_rx and mac_1g_rx
) (
    input logic rx_clk,  // each of 156.25 MHz; or that of GMII, 125 MHz
    input logic rx_rst,
    input logic tx_clk,
    input logic tx_rst,

    input logic [63:0] now_cycles,  // of rx_clk

    // --- wire ---
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

    // --- frames that came, without check sequence ---
    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,
    output logic [63:0] m_meta_start_cycle,
    // One pulse for each bad frame, with its last word if it has words, and never later; control: a control character, or gmii_rx_er.
    output nic_counts_pkg::mac_drops_t drops,

    // --- frames to send ---
    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,
    output nic_counts_pkg::mac_ends_t ends
);
  if (LINE_GBPS != 1 && LINE_GBPS != 10) begin : g_check_line
    $fatal(1, "LINE_GBPS must be 1 or 10 (instance %m)");
  end

  if (LINE_GBPS == 10) begin : g_line
    mac_10g_rx #(
        .FRAME_BYTES_MAX(FRAME_BYTES_MAX),
        .NOW_LATE(NOW_LATE)
    ) rx (
        .clk(rx_clk),
        .rst(rx_rst),
        .now_cycles,
        .xgmii_rxd,
        .xgmii_rxc,
        .m_axis_tdata,
        .m_axis_tkeep,
        .m_axis_tvalid,
        .m_axis_tlast,
        .m_axis_tuser,
        .m_meta_start_cycle,
        .count_good(),
        .drop_preamble(drops.preamble),
        .drop_control(drops.control),
        .drop_oversize(drops.oversize),
        .drop_runt(drops.runt),
        .drop_fcs(drops.fcs)
    );
    assign drops.cut = 1'b0;
    mac_10g_tx tx (
        .clk(tx_clk),
        .rst(tx_rst),
        .s_axis_tdata,
        .s_axis_tkeep,
        .s_axis_tvalid,
        .s_axis_tready,
        .s_axis_tlast,
        .s_axis_tuser,
        .xgmii_txd,
        .xgmii_txc,
        .count_good(ends.framed),
        .drop_aborted(ends.aborted),
        .drop_underrun(ends.underrun)
    );
    assign {gmii_txd, gmii_tx_en, gmii_tx_er} = '0;
    wire unused = &{1'b0, gmii_rxd, gmii_rx_dv, gmii_rx_er};
  end else begin : g_line
    logic [7:0] in_tdata, out_tdata;
    logic [63:0] in_start_cycle;
    nic_counts_pkg::mac_drops_t in_drops;
    logic in_tvalid, in_tlast, in_tuser, out_tvalid, out_tready, out_tlast, out_tuser;
    mac_1g_rx #(
        .FRAME_BYTES_MAX(FRAME_BYTES_MAX),
        .NOW_LATE(NOW_LATE)
    ) rx (
        .clk(rx_clk),
        .rst(rx_rst),
        .now_cycles,
        .gmii_rxd,
        .gmii_rx_dv,
        .gmii_rx_er,
        .m_axis_tdata(in_tdata),
        .m_axis_tvalid(in_tvalid),
        .m_axis_tlast(in_tlast),
        .m_axis_tuser(in_tuser),
        .m_meta_start_cycle(in_start_cycle),
        .count_good(),
        .drop_preamble(in_drops.preamble),
        .drop_error(in_drops.control),
        .drop_oversize(in_drops.oversize),
        .drop_runt(in_drops.runt),
        .drop_fcs(in_drops.fcs)
    );
    assign in_drops.cut = 1'b0;
    always_ff @(posedge rx_clk) drops <= rx_rst ? '0 : in_drops;  // bytes_to_words takes as long
    bytes_to_words #(
        .META_BITS(64)
    ) widen (
        .clk(rx_clk),
        .rst(rx_rst),
        .s_axis_tdata(in_tdata),
        .s_axis_tvalid(in_tvalid),
        .s_axis_tlast(in_tlast),
        .s_axis_tuser(in_tuser),
        .s_meta(in_start_cycle),
        .m_axis_tdata,
        .m_axis_tkeep,
        .m_axis_tvalid,
        .m_axis_tlast,
        .m_axis_tuser,
        .m_meta(m_meta_start_cycle)
    );
    words_to_bytes narrow (
        .clk(tx_clk),
        .rst(tx_rst),
        .s_axis_tdata,
        .s_axis_tkeep,
        .s_axis_tvalid,
        .s_axis_tready,
        .s_axis_tlast,
        .s_axis_tuser,
        .m_axis_tdata(out_tdata),
        .m_axis_tvalid(out_tvalid),
        .m_axis_tready(out_tready),
        .m_axis_tlast(out_tlast),
        .m_axis_tuser(out_tuser)
    );
    mac_1g_tx tx (
        .clk(tx_clk),
        .rst(tx_rst),
        .s_axis_tdata(out_tdata),
        .s_axis_tvalid(out_tvalid),
        .s_axis_tready(out_tready),
        .s_axis_tlast(out_tlast),
        .s_axis_tuser(out_tuser),
        .gmii_txd,
        .gmii_tx_en,
        .gmii_tx_er,
        .count_good(ends.framed),
        .drop_aborted(ends.aborted),
        .drop_underrun(ends.underrun)
    );
    assign xgmii_txd = {8{8'h07}};
    assign xgmii_txc = '1;
    wire unused = &{1'b0, xgmii_rxd, xgmii_rxc};
  end
endmodule
