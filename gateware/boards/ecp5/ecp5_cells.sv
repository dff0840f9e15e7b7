// SPDX-License-Identifier: Apache-2.0
// Primitives of the Lattice ECP5 that the boards use, as their ports are.
// verilator lint_off DECLFILENAME
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off UNUSEDPARAM
// verilator lint_off UNDRIVEN
(* blackbox *)
module IDDRX1F (
    input  D,
    input  SCLK,
    input  RST,
    output Q0,   // at the rising edge
    output Q1    // at the falling edge
);
endmodule

(* blackbox *)
module ODDRX1F (
    input  SCLK,
    input  RST,
    input  D0,   // at the rising edge
    input  D1,   // at the falling edge
    output Q
);
endmodule

(* blackbox *)
module DELAYG #(
    parameter DEL_MODE  = "USER_DEFINED",
    parameter DEL_VALUE = 0  // 0 to 127, of 25 ps
) (
    input  A,
    output Z
);
endmodule

(* blackbox *)
module EHXPLLL #(
    parameter CLKI_DIV = 1,
    parameter CLKFB_DIV = 1,
    parameter CLKOP_DIV = 8,
    parameter CLKOS_DIV = 8,
    parameter CLKOP_ENABLE = "ENABLED",
    parameter CLKOS_ENABLE = "DISABLED",
    parameter CLKOP_CPHASE = 0,
    parameter CLKOS_CPHASE = 0,
    parameter FEEDBK_PATH = "CLKOP"
) (
    input  CLKI,
    input  CLKFB,
    input  RST,
    input  STDBY,
    input  PHASESEL0,
    input  PHASESEL1,
    input  PHASEDIR,
    input  PHASESTEP,
    input  PHASELOADREG,
    input  PLLWAKESYNC,
    input  ENCLKOP,
    input  ENCLKOS,
    output CLKOP,
    output CLKOS,
    output LOCK
);
endmodule
