// SPDX-License-Identifier: Apache-2.0
// The NIC's host at the other end of an Ethernet cable: memory requests, registers and interrupts in frames of their own, by GMII with clocks of its own.
//
// Contract
//   * `clk` carries the line as of mac_cdc. nic_rst is a flip-flop's: the NIC is reset with rst, and when the host opens a session.
//   * The bus as of nic; records as of host_records, frames as of link_sender and link_receiver. Addresses of the bus have 40 bits.
//   * A frame with a fault, and one for which there is no room, is lost and sent again; frames that came = bad, drop_full and the counters of link_receiver.
module host_link #(
    parameter int WRITE_REQUEST_BYTES_MAX = 256,
    parameter int READ_REQUEST_BYTES_MAX = 512,
    parameter int READ_TAGS = 4,
    parameter int WORDS = 2048,  // of 8 bytes, of frames that are not acknowledged
    parameter int RETRY_CYCLES = 62500,
    parameter logic [47:0] STATION = 48'h02_00_00_00_00_01,  // the Ethernet address of this side
    localparam int REGISTER_BITS = 12,
    localparam int TAG_BITS = $clog2(READ_TAGS)
) (
    input  logic clk,
    input  logic rst,
    output logic nic_rst,
    output logic opened,

    // --- the cable to the host ---
    input  logic       rx_clk,
    input  logic       tx_clk,
    input  logic [7:0] gmii_rxd,
    input  logic       gmii_rx_dv,
    input  logic       gmii_rx_er,
    output logic [7:0] gmii_txd,
    output logic       gmii_tx_en,
    output logic       gmii_tx_er,

    // --- the NIC ---
    input  logic                                         mem_write_valid,
    output logic                                         mem_write_ready,
    input  logic                                         mem_write_last,
    input  logic [                                 63:0] mem_write_address,
    input  logic [$clog2(WRITE_REQUEST_BYTES_MAX+1)-1:0] mem_write_bytes,
    input  logic [                                127:0] mem_write_data,
    input  logic                                         mem_read_valid,
    output logic                                         mem_read_ready,
    input  logic [                                 63:0] mem_read_address,
    input  logic [ $clog2(READ_REQUEST_BYTES_MAX+1)-1:0] mem_read_bytes,
    input  logic [                         TAG_BITS-1:0] mem_read_tag,
    output logic                                         mem_answer_valid,
    output logic [                         TAG_BITS-1:0] mem_answer_tag,
    output logic [                                127:0] mem_answer_data,
    output logic                                         mem_answer_last,
    output logic                                         mem_answer_error,
    input  logic                                         irq,
    output logic [                    REGISTER_BITS-1:0] m_axil_awaddr,
    output logic                                         m_axil_awvalid,
    input  logic                                         m_axil_awready,
    output logic [                                 63:0] m_axil_wdata,
    output logic                                         m_axil_wvalid,
    input  logic                                         m_axil_wready,
    input  logic [                                  1:0] m_axil_bresp,
    input  logic                                         m_axil_bvalid,
    output logic                                         m_axil_bready,
    output logic [                    REGISTER_BITS-1:0] m_axil_araddr,
    output logic                                         m_axil_arvalid,
    input  logic                                         m_axil_arready,
    input  logic [                                 63:0] m_axil_rdata,
    input  logic [                                  1:0] m_axil_rresp,
    input  logic                                         m_axil_rvalid,
    output logic                                         m_axil_rready,

    // --- a pulse for each ---
    output logic count_taken,
    output logic count_opened,
    output logic count_answer,
    output logic drop_bad,
    output logic drop_full,
    output logic drop_number,
    output logic drop_session,
    output logic drop_foreign,
    output logic count_retry,
    output logic count_malformed,
    output logic count_refused
);
  localparam int FIFO_WORDS = 512;  // of 8 bytes, of frames that came
  localparam int FIFO_FRAMES = 16;

  logic [63:0] came_tdata, frame_tdata, sent_tdata, from_host, to_host;
  logic [7:0] came_tkeep;
  logic came_tvalid, came_tlast, came_tuser, frame_tvalid, frame_tready, frame_tlast, sent_tvalid, sent_tready, sent_tlast;
  logic from_valid, from_ready, from_last, to_valid, to_ready, to_last;
  logic restart, answer, acknowledge;
  logic [31:0] session;
  logic [47:0] host;
  logic [15:0] expected, acknowledged;
  nic_counts_pkg::mac_drops_t drops;

  wire begins_anew = rst || restart;
  initial nic_rst = 1'b1;  // an FPGA begins so
  always_ff @(posedge clk) nic_rst <= begins_anew;
  assign drop_bad = drops != '0;  // one reason at a time

  mac_cdc #(
      .LINE_GBPS(1),
      .FRAME_BYTES_MAX(1522),
      .OWN_CLOCKS(1'b1)
  ) i_mac (
      .clk,
      .rst,
      .rx_clk,
      .tx_clk,
      .now_cycles('0),
      .xgmii_rxd('0),
      .xgmii_rxc('0),
      .xgmii_txd(),
      .xgmii_txc(),
      .gmii_rxd,
      .gmii_rx_dv,
      .gmii_rx_er,
      .gmii_txd,
      .gmii_tx_en,
      .gmii_tx_er,
      .m_axis_tdata(came_tdata),
      .m_axis_tkeep(came_tkeep),
      .m_axis_tvalid(came_tvalid),
      .m_axis_tlast(came_tlast),
      .m_axis_tuser(came_tuser),
      .m_meta_start_cycle(),
      .drops,
      .s_axis_tdata(sent_tdata),
      .s_axis_tkeep('1),
      .s_axis_tvalid(sent_tvalid),
      .s_axis_tready(sent_tready),
      .s_axis_tlast(sent_tlast),
      .s_axis_tuser(1'b0),
      .ends()
  );

  frame_fifo #(
      .DEPTH_WORDS(FIFO_WORDS),
      .PACKETS(FIFO_FRAMES)
  ) i_frame_fifo (
      .clk,
      .rst,
      .s_axis_tdata(came_tdata),
      .s_axis_tkeep(came_tkeep),
      .s_axis_tvalid(came_tvalid),
      .s_axis_tlast(came_tlast),
      .s_axis_tuser(came_tuser),
      .s_meta(1'b0),
      .m_axis_tdata(frame_tdata),
      .m_axis_tkeep(),
      .m_axis_tvalid(frame_tvalid),
      .m_axis_tready(frame_tready),
      .m_axis_tlast(frame_tlast),
      .m_meta(),
      .fill_words(),
      .count_good(),
      .count_bad(),
      .drop_full
  );

  link_receiver #(
      .STATION(STATION)
  ) i_receiver (
      .clk,
      .rst,
      .s_axis_tdata(frame_tdata),
      .s_axis_tvalid(frame_tvalid),
      .s_axis_tready(frame_tready),
      .s_axis_tlast(frame_tlast),
      .restart,
      .opened,
      .session,
      .host,
      .expected,
      .answer,
      .acknowledge,
      .acknowledged,
      .m_data(from_host),
      .m_valid(from_valid),
      .m_ready(from_ready),
      .m_last(from_last),
      .count_taken,
      .count_opened,
      .count_answer,
      .drop_number,
      .drop_session,
      .drop_foreign
  );

  link_sender #(
      .WORDS(WORDS),
      .RECORD_WORDS_MAX(WRITE_REQUEST_BYTES_MAX / 8 + 1),
      .RETRY_CYCLES(RETRY_CYCLES),
      .STATION(STATION)
  ) i_sender (
      .clk,
      .rst(begins_anew),
      .opened,
      .session,
      .host,
      .expected,
      .answer,
      .acknowledge,
      .acknowledged,
      .s_data(to_host),
      .s_valid(to_valid),
      .s_ready(to_ready),
      .s_last(to_last),
      .m_axis_tdata(sent_tdata),
      .m_axis_tvalid(sent_tvalid),
      .m_axis_tready(sent_tready),
      .m_axis_tlast(sent_tlast),
      .count_retry
  );

  host_records #(
      .WRITE_REQUEST_BYTES_MAX(WRITE_REQUEST_BYTES_MAX),
      .READ_REQUEST_BYTES_MAX(READ_REQUEST_BYTES_MAX),
      .READ_TAGS(READ_TAGS),
      .REGISTER_BITS(REGISTER_BITS)
  ) i_records (
      .clk,
      .rst(nic_rst),
      .mem_write_valid,
      .mem_write_ready,
      .mem_write_last,
      .mem_write_address,
      .mem_write_bytes,
      .mem_write_data,
      .mem_read_valid,
      .mem_read_ready,
      .mem_read_address,
      .mem_read_bytes,
      .mem_read_tag,
      .mem_answer_valid,
      .mem_answer_tag,
      .mem_answer_data,
      .mem_answer_last,
      .mem_answer_error,
      .irq,
      .m_axil_awaddr,
      .m_axil_awvalid,
      .m_axil_awready,
      .m_axil_wdata,
      .m_axil_wvalid,
      .m_axil_wready,
      .m_axil_bresp,
      .m_axil_bvalid,
      .m_axil_bready,
      .m_axil_araddr,
      .m_axil_arvalid,
      .m_axil_arready,
      .m_axil_rdata,
      .m_axil_rresp,
      .m_axil_rvalid,
      .m_axil_rready,
      .m_data(to_host),
      .m_valid(to_valid),
      .m_ready(to_ready),
      .m_last(to_last),
      .s_data(from_host),
      .s_valid(from_valid),
      .s_ready(from_ready),
      .s_last(from_last),
      .count_malformed,
      .count_refused
  );
endmodule
