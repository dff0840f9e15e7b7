// SPDX-License-Identifier: Apache-2.0
// The whole NIC: an Ethernet port and the host's port, face to face. XGMII or GMII, AXI4-Lite and memory requests are flat ports.
//
// With LINE_GBPS 10 the wire is XGMII and its clock has 156.25 MHz; with 1 it is GMII, and the clock is GMII's, 125 MHz. `clk` is this clock too; or, with
// OWN_CLOCKS, any that carries the line (mac_cdc), with a cycle of CYCLE_PS, and the wire has rx_clk and tx_clk.
//
// Latency: a payload's first word leaves the parser, and is at mem_write if the bus is ready, a fixed number of cycles after the word with its frame's
// start came into the MAC: always the same. docs/design/gateware-nic.md says what the words behind it take.
module nic #(
    parameter int LINE_GBPS = 10,
    parameter bit OWN_CLOCKS = 1'b0,
    parameter int CYCLE_PS = LINE_GBPS == 10 ? 6400 : 8000,
    parameter bit REPLIER = 1'b1,         // ARP and echo requests are answered
    parameter int CLOPS = 4,
    parameter int MATCH_ENTRIES = 16,
    parameter int DESTINATIONS = 16,
    parameter int GROUPS = 4,             // IPv4 groups that it may be a member of; 0: none
    parameter int REGIONS = 16,
    parameter int ENTRIES = 4096,         // pages of all regions
    parameter int OFFSET_BITS = 40,       // of an address in a region
    parameter int FRAME_BYTES_MAX = 9022, // FCS and tag included [B]
    parameter int RX_FIFO_WORDS = 2048,   // [16 B]
    parameter int RX_FIFO_PACKETS = 256,
    parameter int TX_FIFO_WORDS = 1024,   // [16 B]
    parameter int TX_FIFO_PACKETS = 64,
    parameter bit STAGE_STATISTICS = 1'b1,
    parameter int WRITE_REQUEST_BYTES_MAX = 256,
    parameter int READ_REQUEST_BYTES_MAX = 512,
    parameter int READ_TAGS = 32,
    localparam int TAG_BITS = $clog2(READ_TAGS)
) (
    input logic clk,
    input logic rst,

    // --- registers, of 64 bits: writes with all bytes ---
    input  logic [11:0] s_axil_awaddr,
    input  logic        s_axil_awvalid,
    output logic        s_axil_awready,
    input  logic [63:0] s_axil_wdata,
    input  logic [ 7:0] s_axil_wstrb,
    input  logic        s_axil_wvalid,
    output logic        s_axil_wready,
    output logic [ 1:0] s_axil_bresp,
    output logic        s_axil_bvalid,
    input  logic        s_axil_bready,
    input  logic [11:0] s_axil_araddr,
    input  logic        s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [63:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,
    input  logic        s_axil_rready,

    // --- wire; its clocks are not looked at without OWN_CLOCKS ---
    input  logic        rx_clk,
    input  logic        tx_clk,
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

    // --- a level, as of interrupter: completions have come ---
    output logic irq,

    // --- memory, as of host_port ---
    output logic                                         mem_write_valid,
    input  logic                                         mem_write_ready,
    output logic                                         mem_write_first,
    output logic                                         mem_write_last,
    output logic                                         mem_write_gpu,
    output logic [                                 63:0] mem_write_address,
    output logic [$clog2(WRITE_REQUEST_BYTES_MAX+1)-1:0] mem_write_bytes,
    output logic [                                127:0] mem_write_data,
    output logic [                                 15:0] mem_write_keep,
    output logic                                         mem_read_valid,
    input  logic                                         mem_read_ready,
    output logic [                                 63:0] mem_read_address,
    output logic [ $clog2(READ_REQUEST_BYTES_MAX+1)-1:0] mem_read_bytes,
    output logic [                         TAG_BITS-1:0] mem_read_tag,
    output logic                                         mem_read_gpu,
    input  logic                                         mem_answer_valid,
    input  logic [                         TAG_BITS-1:0] mem_answer_tag,
    input  logic [                                127:0] mem_answer_data,
    input  logic                                         mem_answer_last,
    input  logic                                         mem_answer_error
);
  logic [63:0] now_ns, now_cycles;
  port_pkg::settings_t settings;
  port_pkg::payload_t rx_meta;
  port_pkg::sending_t tx_meta;
  nic_counts_pkg::path_counts_t path_counts;
  nic_counts_pkg::reply_counts_t reply_counts;
  nic_counts_pkg::sending_ends_t ends;
  logic [63:0] rx_tdata, tx_tdata;
  logic [7:0] tx_tkeep;
  logic rx_tvalid, rx_tlast, rx_tuser, tx_tvalid, tx_tready, tx_tlast;

  eth_port #(
      .LINE_GBPS(LINE_GBPS),
      .OWN_CLOCKS(OWN_CLOCKS),
      .FRAME_BYTES_MAX(FRAME_BYTES_MAX),
      .MATCH_ENTRIES(MATCH_ENTRIES),
      .DESTINATIONS(DESTINATIONS),
      .GROUPS(GROUPS),
      .REPLIER(REPLIER)
  ) i_eth_port (
      .clk,
      .rst,
      .rx_clk,
      .tx_clk,
      .now_ns,
      .now_cycles,
      .settings,
      .xgmii_rxd,
      .xgmii_rxc,
      .xgmii_txd,
      .xgmii_txc,
      .gmii_rxd,
      .gmii_rx_dv,
      .gmii_rx_er,
      .gmii_txd,
      .gmii_tx_en,
      .gmii_tx_er,
      .m_axis_tdata(rx_tdata),
      .m_axis_tkeep(),
      .m_axis_tvalid(rx_tvalid),
      .m_axis_tlast(rx_tlast),
      .m_axis_tuser(rx_tuser),
      .m_meta(rx_meta),
      .m_route(),  // there is the host alone
      .s_axis_tdata(tx_tdata),
      .s_axis_tkeep(tx_tkeep),
      .s_axis_tvalid(tx_tvalid),
      .s_axis_tready(tx_tready),
      .s_axis_tlast(tx_tlast),
      .s_meta(tx_meta),
      .path_counts,
      .reply_counts,
      .ends
  );

  host_port #(
      .LINE_GBPS(LINE_GBPS),
      .CYCLE_PS(CYCLE_PS),
      .CLOPS(CLOPS),
      .MATCH_ENTRIES(MATCH_ENTRIES),
      .DESTINATIONS(DESTINATIONS),
      .GROUPS(GROUPS),
      .REGIONS(REGIONS),
      .ENTRIES(ENTRIES),
      .OFFSET_BITS(OFFSET_BITS),
      .FRAME_BYTES_MAX(FRAME_BYTES_MAX),
      .RX_FIFO_WORDS(RX_FIFO_WORDS),
      .RX_FIFO_PACKETS(RX_FIFO_PACKETS),
      .TX_FIFO_WORDS(TX_FIFO_WORDS),
      .TX_FIFO_PACKETS(TX_FIFO_PACKETS),
      .STAGE_STATISTICS(STAGE_STATISTICS),
      .WRITE_REQUEST_BYTES_MAX(WRITE_REQUEST_BYTES_MAX),
      .READ_REQUEST_BYTES_MAX(READ_REQUEST_BYTES_MAX),
      .READ_TAGS(READ_TAGS)
  ) i_host_port (
      .clk,
      .rst,
      .s_axil_awaddr,
      .s_axil_awvalid,
      .s_axil_awready,
      .s_axil_wdata,
      .s_axil_wstrb,
      .s_axil_wvalid,
      .s_axil_wready,
      .s_axil_bresp,
      .s_axil_bvalid,
      .s_axil_bready,
      .s_axil_araddr,
      .s_axil_arvalid,
      .s_axil_arready,
      .s_axil_rdata,
      .s_axil_rresp,
      .s_axil_rvalid,
      .s_axil_rready,
      .now_ns,
      .now_cycles,
      .settings,
      .path_counts,
      .reply_counts,
      .ends,
      .pages(),
      .s_axis_tdata(rx_tdata),
      .s_axis_tvalid(rx_tvalid),
      .s_axis_tready(),  // always
      .s_axis_tlast(rx_tlast),
      .s_axis_tuser(rx_tuser),
      .s_meta(rx_meta),
      .m_axis_tdata(tx_tdata),
      .m_axis_tkeep(tx_tkeep),
      .m_axis_tvalid(tx_tvalid),
      .m_axis_tready(tx_tready),
      .m_axis_tlast(tx_tlast),
      .m_meta(tx_meta),
      .irq,
      .mem_write_valid,
      .mem_write_ready,
      .mem_write_first,
      .mem_write_last,
      .mem_write_gpu,
      .mem_write_address,
      .mem_write_bytes,
      .mem_write_data,
      .mem_write_keep,
      .mem_read_valid,
      .mem_read_ready,
      .mem_read_address,
      .mem_read_bytes,
      .mem_read_tag,
      .mem_read_gpu,
      .mem_answer_valid,
      .mem_answer_tag,
      .mem_answer_data,
      .mem_answer_last,
      .mem_answer_error
  );
endmodule
