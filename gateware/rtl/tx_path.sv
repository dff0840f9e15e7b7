// SPDX-License-Identifier: Apache-2.0
// From UDP payloads to frames: udp_tx, and with REPLIER behind it stream_mux, where answers of replier join, a frame of each in turn.
//
// Contract: that of udp_tx for the input, of stream_mux for the output. A payload has to come without a gap once it has begun, and as fast as
// frames are taken. The books: payloads in + count_reply = frames out + drop_destination; those with tuser, whose payload was taken back or
// not as long as announced, are the MAC's to count.
module tx_path #(
    parameter int DESTINATIONS = 16,
    parameter int PAYLOAD_BYTES_MAX = 8972,
    parameter bit REPLIER = 1'b1  // 0: no answers come
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

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,

    output logic count_reply,      // the MAC has an answer
    output logic drop_destination
);
  logic [63:0] udp_tdata;
  logic [7:0] udp_tkeep;
  logic udp_tvalid, udp_tready, udp_tlast, udp_tuser;

  udp_tx #(
      .DESTINATIONS(DESTINATIONS),
      .PAYLOAD_BYTES_MAX(PAYLOAD_BYTES_MAX)
  ) udp (
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
      .m_axis_tdata(udp_tdata),
      .m_axis_tkeep(udp_tkeep),
      .m_axis_tvalid(udp_tvalid),
      .m_axis_tready(udp_tready),
      .m_axis_tlast(udp_tlast),
      .m_axis_tuser(udp_tuser),
      .count_good(),
      .drop_length(),
      .drop_destination,
      .drop_aborted()
  );

  if (REPLIER) begin : g_replies
    stream_mux #(
        .INPUTS(2)
    ) turns (
        .clk,
        .rst,
        .s_axis_tdata({s_reply_tdata, udp_tdata}),
        .s_axis_tkeep({s_reply_tkeep, udp_tkeep}),
        .s_axis_tvalid({s_reply_tvalid, udp_tvalid}),
        .s_axis_tready({s_reply_tready, udp_tready}),
        .s_axis_tlast({s_reply_tlast, udp_tlast}),
        .s_axis_tuser({1'b0, udp_tuser}),
        .m_axis_tdata,
        .m_axis_tkeep,
        .m_axis_tvalid,
        .m_axis_tready,
        .m_axis_tlast,
        .m_axis_tuser
    );
    always_ff @(posedge clk) count_reply <= s_reply_tvalid && s_reply_tready && s_reply_tlast && !rst;
  end else begin : g_replies
    assign {m_axis_tdata, m_axis_tkeep, m_axis_tvalid, m_axis_tlast, m_axis_tuser} = {udp_tdata, udp_tkeep, udp_tvalid, udp_tlast, udp_tuser};
    assign udp_tready = m_axis_tready;
    assign {s_reply_tready, count_reply} = '0;
    wire unused = &{1'b0, s_reply_tdata, s_reply_tkeep, s_reply_tvalid, s_reply_tlast};
  end
endmodule
