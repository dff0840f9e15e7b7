// SPDX-License-Identifier: Apache-2.0
// The NIC on PCIe: nic with the adapter pcie_us. XGMII or GMII on one side, the interfaces of the UltraScale+ PCIe block on the other. `clk` is the
// block's; with OWN_CLOCKS the wire has clocks of its own, as of nic.
//
// Reads have at most 128 bytes, which every host allows; 32 of them in flight, 4 KiB, bridge 3 us at 10 Gb/s.
module nic_pcie #(
    parameter int LINE_GBPS = 10,  // this and the others as of nic
    parameter bit OWN_CLOCKS = 1'b0,
    parameter int CYCLE_PS = LINE_GBPS == 10 ? 6400 : 8000,
    parameter bit REPLIER = 1'b1,         // ARP and echo requests are answered
    parameter int CLOPS = 4,
    parameter int MATCH_ENTRIES = 16,
    parameter int DESTINATIONS = 16,
    parameter int GROUPS = 4,
    parameter int REGIONS = 16,
    parameter int ENTRIES = 4096,         // pages of all regions
    parameter int OFFSET_BITS = 40,       // of an address in a region
    parameter int FRAME_BYTES_MAX = 9022, // FCS and tag included [B]
    parameter int RX_FIFO_WORDS = 2048,   // [16 B]
    parameter int RX_FIFO_PACKETS = 256,
    parameter int TX_FIFO_WORDS = 1024,   // [16 B]
    parameter int TX_FIFO_PACKETS = 64,
    parameter bit STAGE_STATISTICS = 1'b1,
    parameter int READ_TAGS = 32
) (
    input logic clk,
    input logic rst,

    // --- wire ---
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

    // --- the PCIe block ---
    output logic [127:0] s_axis_rq_tdata,
    output logic [  3:0] s_axis_rq_tkeep,
    output logic         s_axis_rq_tvalid,
    input  logic         s_axis_rq_tready,
    output logic         s_axis_rq_tlast,
    output logic [ 61:0] s_axis_rq_tuser,
    input  logic [127:0] m_axis_rc_tdata,
    input  logic [  3:0] m_axis_rc_tkeep,
    input  logic         m_axis_rc_tvalid,
    output logic         m_axis_rc_tready,
    input  logic         m_axis_rc_tlast,
    input  logic [ 74:0] m_axis_rc_tuser,
    input  logic [127:0] m_axis_cq_tdata,
    input  logic [  3:0] m_axis_cq_tkeep,
    input  logic         m_axis_cq_tvalid,
    output logic         m_axis_cq_tready,
    input  logic         m_axis_cq_tlast,
    input  logic [ 87:0] m_axis_cq_tuser,
    output logic [127:0] s_axis_cc_tdata,
    output logic [  3:0] s_axis_cc_tkeep,
    output logic         s_axis_cc_tvalid,
    input  logic         s_axis_cc_tready,
    output logic         s_axis_cc_tlast,
    output logic [ 32:0] s_axis_cc_tuser,
    output logic [  1:0] pcie_cq_np_req,
    input  logic [  5:0] pcie_rq_seq_num0,
    input  logic         pcie_rq_seq_num_vld0,
    input  logic [  1:0] cfg_max_payload,
    input  logic [ 15:0] cfg_function_status,
    input  logic [  3:0] cfg_interrupt_msi_enable,
    output logic [ 31:0] cfg_interrupt_msi_int,
    input  logic         cfg_interrupt_msi_sent,
    input  logic         cfg_interrupt_msi_fail,

    // --- a pulse for each ---
    output logic count_unexpected,  // as of pcie_us_rc
    output logic count_refused      // as of pcie_us_cq_cc
);
  localparam int WRITE_REQUEST_BYTES_MAX = 256;
  localparam int READ_REQUEST_BYTES_MAX = 128;
  localparam int ADDRESS_BITS = 12;

  logic mem_write_valid, mem_write_ready, mem_write_first, mem_write_last;
  logic [63:0] mem_write_address;
  logic [$clog2(WRITE_REQUEST_BYTES_MAX+1)-1:0] mem_write_bytes;
  logic [127:0] mem_write_data;
  logic mem_read_valid, mem_read_ready;
  logic [63:0] mem_read_address;
  logic [$clog2(READ_REQUEST_BYTES_MAX+1)-1:0] mem_read_bytes;
  logic [$clog2(READ_TAGS)-1:0] mem_read_tag, mem_answer_tag;
  logic mem_answer_valid, mem_answer_last, mem_answer_error;
  logic [127:0] mem_answer_data;
  logic [ADDRESS_BITS-1:0] m_axil_awaddr, m_axil_araddr;
  logic m_axil_awvalid, m_axil_awready, m_axil_wvalid, m_axil_wready, m_axil_bvalid, m_axil_bready;
  logic m_axil_arvalid, m_axil_arready, m_axil_rvalid, m_axil_rready;
  logic [63:0] m_axil_wdata, m_axil_rdata;
  logic [7:0] m_axil_wstrb;
  logic [1:0] m_axil_bresp, m_axil_rresp;

  // A message for each time that the line rises, and one for a line that is up when messages are enabled.
  logic nic_irq, told;
  always_ff @(posedge clk) told <= nic_irq && cfg_interrupt_msi_enable[0] && !rst;

  nic #(
      .LINE_GBPS(LINE_GBPS),
      .OWN_CLOCKS(OWN_CLOCKS),
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
      .rst,
      .rx_clk,
      .tx_clk,
      .s_axil_awaddr(m_axil_awaddr),
      .s_axil_awvalid(m_axil_awvalid),
      .s_axil_awready(m_axil_awready),
      .s_axil_wdata(m_axil_wdata),
      .s_axil_wstrb(m_axil_wstrb),
      .s_axil_wvalid(m_axil_wvalid),
      .s_axil_wready(m_axil_wready),
      .s_axil_bresp(m_axil_bresp),
      .s_axil_bvalid(m_axil_bvalid),
      .s_axil_bready(m_axil_bready),
      .s_axil_araddr(m_axil_araddr),
      .s_axil_arvalid(m_axil_arvalid),
      .s_axil_arready(m_axil_arready),
      .s_axil_rdata(m_axil_rdata),
      .s_axil_rresp(m_axil_rresp),
      .s_axil_rvalid(m_axil_rvalid),
      .s_axil_rready(m_axil_rready),
      .irq(nic_irq),
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
      .mem_write_valid,
      .mem_write_ready,
      .mem_write_first,
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
      .mem_write_gpu(),
      .mem_write_keep(),
      .mem_read_gpu()
  );

  pcie_us #(
      .WRITE_REQUEST_BYTES_MAX(WRITE_REQUEST_BYTES_MAX),
      .READ_REQUEST_BYTES_MAX(READ_REQUEST_BYTES_MAX),
      .READ_TAGS(READ_TAGS),
      .ADDRESS_BITS(ADDRESS_BITS)
  ) i_pcie (
      .clk,
      .rst,
      .mem_write_valid,
      .mem_write_ready,
      .mem_write_first,
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
      .irq(nic_irq && !told),
      .m_axil_awaddr,
      .m_axil_awvalid,
      .m_axil_awready,
      .m_axil_wdata,
      .m_axil_wstrb,
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
      .s_axis_rq_tdata,
      .s_axis_rq_tkeep,
      .s_axis_rq_tvalid,
      .s_axis_rq_tready,
      .s_axis_rq_tlast,
      .s_axis_rq_tuser,
      .m_axis_rc_tdata,
      .m_axis_rc_tkeep,
      .m_axis_rc_tvalid,
      .m_axis_rc_tready,
      .m_axis_rc_tlast,
      .m_axis_rc_tuser,
      .m_axis_cq_tdata,
      .m_axis_cq_tkeep,
      .m_axis_cq_tvalid,
      .m_axis_cq_tready,
      .m_axis_cq_tlast,
      .m_axis_cq_tuser,
      .s_axis_cc_tdata,
      .s_axis_cc_tkeep,
      .s_axis_cc_tvalid,
      .s_axis_cc_tready,
      .s_axis_cc_tlast,
      .s_axis_cc_tuser,
      .pcie_cq_np_req,
      .pcie_rq_seq_num0,
      .pcie_rq_seq_num_vld0,
      .cfg_max_payload,
      .cfg_function_status,
      .cfg_interrupt_msi_enable,
      .cfg_interrupt_msi_int,
      .cfg_interrupt_msi_sent,
      .cfg_interrupt_msi_fail,
      .count_unexpected,
      .count_refused
  );
endmodule
