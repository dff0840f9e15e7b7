// SPDX-License-Identifier: Apache-2.0
// RGMII to GMII with the DDR cells of an ECP5's pins, at 1 Gb/s only.
//
// What is received has its clock's edge at the data's edge and is delayed by RX_DELAY_PS, to the middle of the 4 ns; what is sent leaves with its clock, which the
// PHY delays.
module rgmii_ecp5 #(
    parameter int RX_DELAY_PS = 2000
) (
    input  logic       rgmii_rxc,
    input  logic [3:0] rgmii_rxd,
    input  logic       rgmii_rx_ctl,
    output logic       rgmii_txc,
    output logic [3:0] rgmii_txd,
    output logic       rgmii_tx_ctl,

    // --- rgmii_rxc is the clock of gmii_rx* ---
    output logic [7:0] gmii_rxd,
    output logic       gmii_rx_dv,
    output logic       gmii_rx_er,
    input  logic       tx_clk,
    input  logic [7:0] gmii_txd,
    input  logic       gmii_tx_en,
    input  logic       gmii_tx_er
);
  localparam int DELAY_STEP_PS = 25;
  if (RX_DELAY_PS < 0 || RX_DELAY_PS > 127 * DELAY_STEP_PS) begin : g_check
    $fatal(1, "RX_DELAY_PS must be 0 to 3175 (instance %m)");
  end

  // --- in: four bits at each edge; {ctl, data} ---
  wire [4:0] pins_in = {rgmii_rx_ctl, rgmii_rxd};
  logic [4:0] delayed, rising, falling;
  for (genvar k = 0; k < 5; k++) begin : g_in
    DELAYG #(
        .DEL_MODE ("USER_DEFINED"),
        .DEL_VALUE(RX_DELAY_PS / DELAY_STEP_PS)
    ) delay (
        .A(pins_in[k]),
        .Z(delayed[k])
    );
    IDDRX1F cell_in (
        .D(delayed[k]),
        .SCLK(rgmii_rxc),
        .RST(1'b0),
        .Q0(rising[k]),
        .Q1(falling[k])
    );
  end
  always_ff @(posedge rgmii_rxc) begin
    gmii_rxd   <= {falling[3:0], rising[3:0]};
    gmii_rx_dv <= rising[4];
    gmii_rx_er <= rising[4] ^ falling[4];
  end

  // --- out ---
  wire [4:0] at_rising = {gmii_tx_en, gmii_txd[3:0]};
  wire [4:0] at_falling = {gmii_tx_en ^ gmii_tx_er, gmii_txd[7:4]};
  logic [4:0] pins_out;
  assign {rgmii_tx_ctl, rgmii_txd} = pins_out;
  for (genvar k = 0; k < 5; k++) begin : g_out
    ODDRX1F cell_out (
        .SCLK(tx_clk),
        .RST(1'b0),
        .D0(at_rising[k]),
        .D1(at_falling[k]),
        .Q(pins_out[k])
    );
  end
  ODDRX1F clock_out (
      .SCLK(tx_clk),
      .RST(1'b0),
      .D0(1'b1),
      .D1(1'b0),
      .Q(rgmii_txc)
  );
endmodule
