// SPDX-License-Identifier: Apache-2.0
// From UDP payloads to XGMII: tx_path and mac_10g_tx. A payload or an answer has to come without a gap once it has begun.
//
// Contract: that of tx_path for the input, of mac_10g_tx for the output. The books of the whole: payloads in + count_reply = count_good + every
// drop; what a frame in mid-air missed is drop_underrun beside udp_tx's own verdict, so count_good is the MAC's.
module tx_path_10g #(
    parameter int DESTINATIONS = 16,
    parameter int PAYLOAD_BYTES_MAX = 8972
) (
    input logic clk,
    input logic rst,

    input logic [                    47:0] local_mac,
    input logic [                    31:0] local_address,
    input logic                            table_write,
    input logic [$clog2(DESTINATIONS)-1:0] table_index,
    input logic                            table_enable,
    input logic [                    47:0] table_mac,
    input logic [                    31:0] table_address,
    input logic [                    15:0] table_port,
    input logic [                    15:0] table_source_port,

    input  logic                            s_meta_tvalid,
    output logic                            s_meta_tready,
    input  logic [$clog2(DESTINATIONS)-1:0] s_meta_destination,
    input  logic [                    15:0] s_meta_payload_bytes,

    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,

    // Frames without check sequence.
    input  logic [63:0] s_reply_tdata,
    input  logic [ 7:0] s_reply_tkeep,
    input  logic        s_reply_tvalid,
    output logic        s_reply_tready,
    input  logic        s_reply_tlast,

    output logic [63:0] xgmii_txd,
    output logic [ 7:0] xgmii_txc,

    output logic count_reply,       // the MAC has an answer
    output logic count_good,
    output logic drop_aborted,      // taken back by the source, or not as long as announced
    output logic drop_destination,
    output logic drop_underrun
);
  logic [63:0] frame_tdata;
  logic [7:0] frame_tkeep;
  logic frame_tvalid, frame_tready, frame_tlast, frame_tuser;

  tx_path #(
      .DESTINATIONS(DESTINATIONS),
      .PAYLOAD_BYTES_MAX(PAYLOAD_BYTES_MAX)
  ) path (
      .clk,
      .rst,
      .local_mac,
      .local_address,
      .table_write,
      .table_index,
      .table_enable,
      .table_mac,
      .table_address,
      .table_port,
      .table_source_port,
      .s_meta_tvalid,
      .s_meta_tready,
      .s_meta_destination,
      .s_meta_payload_bytes,
      .s_axis_tdata,
      .s_axis_tkeep,
      .s_axis_tvalid,
      .s_axis_tready,
      .s_axis_tlast,
      .s_axis_tuser,
      .s_reply_tdata,
      .s_reply_tkeep,
      .s_reply_tvalid,
      .s_reply_tready,
      .s_reply_tlast,
      .m_axis_tdata(frame_tdata),
      .m_axis_tkeep(frame_tkeep),
      .m_axis_tvalid(frame_tvalid),
      .m_axis_tready(frame_tready),
      .m_axis_tlast(frame_tlast),
      .m_axis_tuser(frame_tuser),
      .count_reply,
      .drop_destination
  );

  mac_10g_tx mac (
      .clk,
      .rst,
      .s_axis_tdata(frame_tdata),
      .s_axis_tkeep(frame_tkeep),
      .s_axis_tvalid(frame_tvalid),
      .s_axis_tready(frame_tready),
      .s_axis_tlast(frame_tlast),
      .s_axis_tuser(frame_tuser),
      .xgmii_txd,
      .xgmii_txc,
      .count_good,
      .drop_underrun,
      .drop_aborted
  );
endmodule
