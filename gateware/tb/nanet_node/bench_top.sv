// SPDX-License-Identifier: Apache-2.0
// nanet_node with the XGMII and the clocks of each of four ports under names of their own, as the wires of the benches want them. Ports that the node has
// not are idle.
module bench_top #(
    parameter int PORTS = 4,
    parameter bit MERGE = 1'b1,
    parameter int PROCESSING = 0,
    parameter int ENCAPSULATION = 0,
    parameter int QUEUE_WORDS = 1024,
    parameter bit OWN_CLOCKS = 1'b0
) (
    input logic clk,
    input logic rst,
    input logic rx_clk_0,
    input logic rx_clk_1,
    input logic rx_clk_2,
    input logic rx_clk_3,
    input logic tx_clk_0,
    input logic tx_clk_1,
    input logic tx_clk_2,
    input logic tx_clk_3,

    input  logic [12:0] s_axil_awaddr,
    input  logic        s_axil_awvalid,
    output logic        irq,
    output logic        s_axil_awready,
    input  logic [63:0] s_axil_wdata,
    input  logic        s_axil_wvalid,
    output logic        s_axil_wready,
    output logic [ 1:0] s_axil_bresp,
    output logic        s_axil_bvalid,
    input  logic [12:0] s_axil_araddr,
    input  logic        s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [63:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,

    input  logic [63:0] xgmii_0_rxd,
    input  logic [ 7:0] xgmii_0_rxc,
    output logic [63:0] xgmii_0_txd,
    output logic [ 7:0] xgmii_0_txc,
    input  logic [63:0] xgmii_1_rxd,
    input  logic [ 7:0] xgmii_1_rxc,
    output logic [63:0] xgmii_1_txd,
    output logic [ 7:0] xgmii_1_txc,
    input  logic [63:0] xgmii_2_rxd,
    input  logic [ 7:0] xgmii_2_rxc,
    output logic [63:0] xgmii_2_txd,
    output logic [ 7:0] xgmii_2_txc,
    input  logic [63:0] xgmii_3_rxd,
    input  logic [ 7:0] xgmii_3_rxc,
    output logic [63:0] xgmii_3_txd,
    output logic [ 7:0] xgmii_3_txc,

    output logic         mem_write_valid,
    input  logic         mem_write_ready,
    output logic         mem_write_first,
    output logic         mem_write_last,
    output logic [ 63:0] mem_write_address,
    output logic [  8:0] mem_write_bytes,
    output logic [127:0] mem_write_data,
    output logic [ 15:0] mem_write_keep,
    output logic         mem_read_valid,
    input  logic         mem_read_ready,
    output logic [ 63:0] mem_read_address,
    output logic [  9:0] mem_read_bytes,
    output logic [  4:0] mem_read_tag,
    input  logic         mem_answer_valid,
    input  logic [  4:0] mem_answer_tag,
    input  logic [127:0] mem_answer_data,
    input  logic         mem_answer_last
);
  logic [255:0] rxd, txd;
  logic [31:0] rxc, txc;
  wire [3:0] rx_clks = {rx_clk_3, rx_clk_2, rx_clk_1, rx_clk_0};
  wire [3:0] tx_clks = {tx_clk_3, tx_clk_2, tx_clk_1, tx_clk_0};
  assign rxd = {xgmii_3_rxd, xgmii_2_rxd, xgmii_1_rxd, xgmii_0_rxd};
  assign rxc = {xgmii_3_rxc, xgmii_2_rxc, xgmii_1_rxc, xgmii_0_rxc};
  assign {xgmii_3_txd, xgmii_2_txd, xgmii_1_txd, xgmii_0_txd} = txd;
  assign {xgmii_3_txc, xgmii_2_txc, xgmii_1_txc, xgmii_0_txc} = txc;
  if (PORTS < 4) begin : g_idle
    assign txd[255:64*PORTS] = {(4 - PORTS) * 8{8'h07}};
    assign txc[31:8*PORTS] = '1;
  end

  logic [5:0] ape_tx_valid;
  logic [767:0] ape_tx_data;
  nanet_node #(
      .PORTS(PORTS),
      .MERGE(MERGE),
      .PROCESSING(PROCESSING),
      .ENCAPSULATION(ENCAPSULATION),
      .QUEUE_WORDS(QUEUE_WORDS),
      .OWN_CLOCKS(OWN_CLOCKS)
  ) dut (
      .clk,
      .rst,
      .rx_clk(rx_clks[PORTS-1:0]),
      .tx_clk(tx_clks[PORTS-1:0]),
      .s_axil_awaddr,
      .s_axil_awvalid,
      .s_axil_awready,
      .s_axil_wdata,
      .s_axil_wstrb('1),
      .s_axil_wvalid,
      .s_axil_wready,
      .s_axil_bresp,
      .s_axil_bvalid,
      .s_axil_bready(1'b1),
      .s_axil_araddr,
      .s_axil_arvalid,
      .s_axil_arready,
      .s_axil_rdata,
      .s_axil_rresp,
      .s_axil_rvalid,
      .s_axil_rready(1'b1),
      .xgmii_rxd(rxd[64*PORTS-1:0]),
      .xgmii_rxc(rxc[8*PORTS-1:0]),
      .xgmii_txd(txd[64*PORTS-1:0]),
      .xgmii_txc(txc[8*PORTS-1:0]),
      .gmii_rxd('0),
      .gmii_rx_dv('0),
      .gmii_rx_er('0),
      .gmii_txd(),
      .gmii_tx_en(),
      .gmii_tx_er(),
      .ape_link_up('0),
      .ape_tx_valid,
      .ape_tx_ready('0),
      .ape_tx_data,
      .ape_rx_valid('0),
      .ape_rx_data('0),
      .irq,
      .mem_write_valid,
      .mem_write_ready,
      .mem_write_first,
      .mem_write_last,
      .mem_write_gpu(),
      .mem_write_address,
      .mem_write_bytes,
      .mem_write_data,
      .mem_write_keep,
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
      .mem_answer_error(1'b0)
  );

  // Without a torus its links say nothing.
  always_ff @(posedge clk) if (!rst) assert ({ape_tx_valid, ape_tx_data} == '0);
endmodule
