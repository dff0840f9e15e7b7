// SPDX-License-Identifier: Apache-2.0
// nic_eth on a board with an ECP5, a 25 MHz oscillator and two PHYs with RGMII: the first is the NIC's wire, the second the cable to the host.
//
// The core runs at a quarter of the line's clock, twice what carries the line. The PHYs begin by their straps; nothing is said to them.
module board_ecp5 #(
    parameter bit REPLIER = 1'b1,  // this and the others as of nic_eth
    parameter int MATCH_ENTRIES = 4,
    parameter int DESTINATIONS = 4,
    parameter int GROUPS = 2,
    parameter int ENTRIES = 512,
    parameter int RX_FIFO_WORDS = 512,
    parameter int RX_FIFO_PACKETS = 64,
    parameter int LINK_WORDS = 2048
) (
    input  logic clk_25,
    output logic phy_rst_n,
    output logic phy_mdc,
    output logic led_n,      // a host is there

    input  logic       wire_rxc,
    input  logic [3:0] wire_rxd,
    input  logic       wire_rx_ctl,
    output logic       wire_txc,
    output logic [3:0] wire_txd,
    output logic       wire_tx_ctl,

    input  logic       host_rxc,
    input  logic [3:0] host_rxd,
    input  logic       host_rx_ctl,
    output logic       host_txc,
    output logic [3:0] host_txd,
    output logic       host_tx_ctl
);
  localparam int CYCLE_PS = 32000;
  localparam int PHY_RESET_BITS = 20;  // 16.8 ms

  logic clk_125, clk, locked, rst, opened;
  clocks_ecp5 clocks (
      .clk_25,
      .clk_125,
      .clk_31_25(clk),
      .locked
  );
  reset_sync core_reset (
      .clk,
      .rst_async(!locked),
      .rst
  );

  logic [PHY_RESET_BITS-1:0] since_reset;
  always_ff @(posedge clk) begin
    if (!since_reset[PHY_RESET_BITS-1]) since_reset <= since_reset + 1'b1;
    if (rst) since_reset <= '0;
    led_n <= !opened;
  end
  assign phy_rst_n = since_reset[PHY_RESET_BITS-1];
  assign phy_mdc = 1'b0;

  logic [7:0] wire_gmii_rxd, wire_gmii_txd, host_gmii_rxd, host_gmii_txd;
  logic wire_gmii_rx_dv, wire_gmii_rx_er, wire_gmii_tx_en, wire_gmii_tx_er;
  logic host_gmii_rx_dv, host_gmii_rx_er, host_gmii_tx_en, host_gmii_tx_er;

  rgmii_ecp5 wire_rgmii (
      .rgmii_rxc(wire_rxc),
      .rgmii_rxd(wire_rxd),
      .rgmii_rx_ctl(wire_rx_ctl),
      .rgmii_txc(wire_txc),
      .rgmii_txd(wire_txd),
      .rgmii_tx_ctl(wire_tx_ctl),
      .gmii_rxd(wire_gmii_rxd),
      .gmii_rx_dv(wire_gmii_rx_dv),
      .gmii_rx_er(wire_gmii_rx_er),
      .tx_clk(clk_125),
      .gmii_txd(wire_gmii_txd),
      .gmii_tx_en(wire_gmii_tx_en),
      .gmii_tx_er(wire_gmii_tx_er)
  );
  rgmii_ecp5 host_rgmii (
      .rgmii_rxc(host_rxc),
      .rgmii_rxd(host_rxd),
      .rgmii_rx_ctl(host_rx_ctl),
      .rgmii_txc(host_txc),
      .rgmii_txd(host_txd),
      .rgmii_tx_ctl(host_tx_ctl),
      .gmii_rxd(host_gmii_rxd),
      .gmii_rx_dv(host_gmii_rx_dv),
      .gmii_rx_er(host_gmii_rx_er),
      .tx_clk(clk_125),
      .gmii_txd(host_gmii_txd),
      .gmii_tx_en(host_gmii_tx_en),
      .gmii_tx_er(host_gmii_tx_er)
  );

  nic_eth #(
      .CYCLE_PS(CYCLE_PS),
      .REPLIER(REPLIER),
      .MATCH_ENTRIES(MATCH_ENTRIES),
      .DESTINATIONS(DESTINATIONS),
      .GROUPS(GROUPS),
      .ENTRIES(ENTRIES),
      .RX_FIFO_WORDS(RX_FIFO_WORDS),
      .RX_FIFO_PACKETS(RX_FIFO_PACKETS),
      .LINK_WORDS(LINK_WORDS)
  ) i_nic_eth (
      .clk,
      .rst,
      .opened,
      .wire_rx_clk(wire_rxc),
      .wire_tx_clk(clk_125),
      .wire_rxd(wire_gmii_rxd),
      .wire_rx_dv(wire_gmii_rx_dv),
      .wire_rx_er(wire_gmii_rx_er),
      .wire_txd(wire_gmii_txd),
      .wire_tx_en(wire_gmii_tx_en),
      .wire_tx_er(wire_gmii_tx_er),
      .host_rx_clk(host_rxc),
      .host_tx_clk(clk_125),
      .host_rxd(host_gmii_rxd),
      .host_rx_dv(host_gmii_rx_dv),
      .host_rx_er(host_gmii_rx_er),
      .host_txd(host_gmii_txd),
      .host_tx_en(host_gmii_tx_en),
      .host_tx_er(host_gmii_tx_er),
      .count_taken(),
      .count_opened(),
      .count_answer(),
      .drop_bad(),
      .drop_full(),
      .drop_number(),
      .drop_session(),
      .drop_foreign(),
      .count_retry(),
      .count_malformed(),
      .count_refused()
  );
endmodule
