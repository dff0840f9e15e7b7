// SPDX-License-Identifier: Apache-2.0
// The NIC at 1 Gb/s with its host at the end of a second Ethernet cable: nic with host_link. For boards without PCIe; GMII, with clocks of its own, on both sides.
module nic_eth #(
    parameter int CYCLE_PS = 16000,  // of clk; this and the others as of nic
    parameter bit REPLIER = 1'b1,
    parameter int CLOPS = 1,
    parameter int MATCH_ENTRIES = 4,
    parameter int DESTINATIONS = 4,
    parameter int GROUPS = 2,
    parameter int REGIONS = 8,
    parameter int ENTRIES = 512,
    parameter int OFFSET_BITS = 24,
    parameter int RX_FIFO_WORDS = 512,
    parameter int RX_FIFO_PACKETS = 64,
    parameter int TX_FIFO_WORDS = 256,
    parameter int TX_FIFO_PACKETS = 16,
    parameter bit STAGE_STATISTICS = 1'b0,
    parameter int READ_TAGS = 4,
    parameter int LINK_WORDS = 2048,  // this and the next two as of host_link
    parameter int RETRY_CYCLES = 62500,
    parameter logic [47:0] STATION = 48'h02_00_00_00_00_01
) (
    input  logic clk,
    // verilator lint_off SYNCASYNCNET
    input  logic rst,
    // verilator lint_on SYNCASYNCNET
    output logic opened,  // a host is there

    input  logic       wire_rx_clk,
    input  logic       wire_tx_clk,
    input  logic [7:0] wire_rxd,
    input  logic       wire_rx_dv,
    input  logic       wire_rx_er,
    output logic [7:0] wire_txd,
    output logic       wire_tx_en,
    output logic       wire_tx_er,

    input  logic       host_rx_clk,
    input  logic       host_tx_clk,
    input  logic [7:0] host_rxd,
    input  logic       host_rx_dv,
    input  logic       host_rx_er,
    output logic [7:0] host_txd,
    output logic       host_tx_en,
    output logic       host_tx_er,

    // --- a pulse for each, as of host_link ---
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
  localparam int FRAME_BYTES_MAX = 1522;
  localparam int WRITE_REQUEST_BYTES_MAX = 256;
  localparam int READ_REQUEST_BYTES_MAX = 512;
  localparam int ADDRESS_BITS = 12;

  // verilator lint_off SYNCASYNCNET
  logic nic_rst;
  // verilator lint_on SYNCASYNCNET
  logic irq;
  logic mem_write_valid, mem_write_ready, mem_write_last;
  logic [63:0] mem_write_address;
  logic [$clog2(WRITE_REQUEST_BYTES_MAX+1)-1:0] mem_write_bytes;
  logic [127:0] mem_write_data;
  logic mem_read_valid, mem_read_ready;
  logic [63:0] mem_read_address;
  logic [$clog2(READ_REQUEST_BYTES_MAX+1)-1:0] mem_read_bytes;
  logic [$clog2(READ_TAGS)-1:0] mem_read_tag, mem_answer_tag;
  logic mem_answer_valid, mem_answer_last, mem_answer_error;
  logic [127:0] mem_answer_data;
  logic [ADDRESS_BITS-1:0] axil_awaddr, axil_araddr;
  logic axil_awvalid, axil_awready, axil_wvalid, axil_wready, axil_bvalid, axil_bready;
  logic axil_arvalid, axil_arready, axil_rvalid, axil_rready;
  logic [63:0] axil_wdata, axil_rdata;
  logic [1:0] axil_bresp, axil_rresp;

  nic #(
      .LINE_GBPS(1),
      .OWN_CLOCKS(1'b1),
      .CYCLE_PS(CYCLE_PS),
      .REPLIER(REPLIER),
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
  ) i_nic (
      .clk,
      .rst(nic_rst),
      .s_axil_awaddr(axil_awaddr),
      .s_axil_awvalid(axil_awvalid),
      .s_axil_awready(axil_awready),
      .s_axil_wdata(axil_wdata),
      .s_axil_wstrb('1),
      .s_axil_wvalid(axil_wvalid),
      .s_axil_wready(axil_wready),
      .s_axil_bresp(axil_bresp),
      .s_axil_bvalid(axil_bvalid),
      .s_axil_bready(axil_bready),
      .s_axil_araddr(axil_araddr),
      .s_axil_arvalid(axil_arvalid),
      .s_axil_arready(axil_arready),
      .s_axil_rdata(axil_rdata),
      .s_axil_rresp(axil_rresp),
      .s_axil_rvalid(axil_rvalid),
      .s_axil_rready(axil_rready),
      .rx_clk(wire_rx_clk),
      .tx_clk(wire_tx_clk),
      .xgmii_rxd('0),
      .xgmii_rxc('0),
      .xgmii_txd(),
      .xgmii_txc(),
      .gmii_rxd(wire_rxd),
      .gmii_rx_dv(wire_rx_dv),
      .gmii_rx_er(wire_rx_er),
      .gmii_txd(wire_txd),
      .gmii_tx_en(wire_tx_en),
      .gmii_tx_er(wire_tx_er),
      .irq,
      .mem_write_valid,
      .mem_write_ready,
      .mem_write_first(),
      .mem_write_last,
      .mem_write_gpu(),  // no GPU's memory is there
      .mem_write_address,
      .mem_write_bytes,
      .mem_write_data,
      .mem_write_keep(),
      .mem_read_valid,
      .mem_read_ready,
      .mem_read_address,
      .mem_read_bytes,
      .mem_read_tag,
      .mem_read_gpu(),
      .mem_answer_valid,
      .mem_answer_tag,
      .mem_answer_data,
      .mem_answer_last,
      .mem_answer_error
  );

  host_link #(
      .WRITE_REQUEST_BYTES_MAX(WRITE_REQUEST_BYTES_MAX),
      .READ_REQUEST_BYTES_MAX(READ_REQUEST_BYTES_MAX),
      .READ_TAGS(READ_TAGS),
      .WORDS(LINK_WORDS),
      .RETRY_CYCLES(RETRY_CYCLES),
      .STATION(STATION)
  ) i_host_link (
      .clk,
      .rst,
      .nic_rst,
      .opened,
      .rx_clk(host_rx_clk),
      .tx_clk(host_tx_clk),
      .gmii_rxd(host_rxd),
      .gmii_rx_dv(host_rx_dv),
      .gmii_rx_er(host_rx_er),
      .gmii_txd(host_txd),
      .gmii_tx_en(host_tx_en),
      .gmii_tx_er(host_tx_er),
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
      .m_axil_awaddr(axil_awaddr),
      .m_axil_awvalid(axil_awvalid),
      .m_axil_awready(axil_awready),
      .m_axil_wdata(axil_wdata),
      .m_axil_wvalid(axil_wvalid),
      .m_axil_wready(axil_wready),
      .m_axil_bresp(axil_bresp),
      .m_axil_bvalid(axil_bvalid),
      .m_axil_bready(axil_bready),
      .m_axil_araddr(axil_araddr),
      .m_axil_arvalid(axil_arvalid),
      .m_axil_arready(axil_arready),
      .m_axil_rdata(axil_rdata),
      .m_axil_rresp(axil_rresp),
      .m_axil_rvalid(axil_rvalid),
      .m_axil_rready(axil_rready),
      .count_taken,
      .count_opened,
      .count_answer,
      .drop_bad,
      .drop_full,
      .drop_number,
      .drop_session,
      .drop_foreign,
      .count_retry,
      .count_malformed,
      .count_refused
  );
endmodule
