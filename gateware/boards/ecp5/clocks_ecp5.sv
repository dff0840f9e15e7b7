// SPDX-License-Identifier: Apache-2.0
// From 25 MHz the 125 MHz that RGMII sends with, and 31.25 MHz for the core, by one PLL of an ECP5.
module clocks_ecp5 (
    input  logic clk_25,
    output logic clk_125,
    output logic clk_31_25,
    output logic locked
);
  // Its oscillator runs at 625 MHz.
  EHXPLLL #(
      .CLKI_DIV(1),
      .CLKFB_DIV(5),
      .CLKOP_DIV(5),
      .CLKOS_DIV(20),
      .CLKOP_ENABLE("ENABLED"),
      .CLKOS_ENABLE("ENABLED"),
      .CLKOP_CPHASE(4),
      .CLKOS_CPHASE(19),
      .FEEDBK_PATH("CLKOP")
  ) pll (
      .CLKI(clk_25),
      .CLKFB(clk_125),
      .RST(1'b0),
      .STDBY(1'b0),
      .PHASESEL0(1'b0),
      .PHASESEL1(1'b0),
      .PHASEDIR(1'b0),
      .PHASESTEP(1'b0),
      .PHASELOADREG(1'b0),
      .PLLWAKESYNC(1'b0),
      .ENCLKOP(1'b0),
      .ENCLKOS(1'b0),
      .CLKOP(clk_125),
      .CLKOS(clk_31_25),
      .LOCK(locked)
  );
endmodule
