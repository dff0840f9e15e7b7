// SPDX-License-Identifier: Apache-2.0
// The Ethernet CRC-32 register as it was before some zero bytes: takes back the filling of a last word. Combinational.
module crc32_undo (
    input  logic [31:0] crc,         // the register after the zero bytes, not inverted
    input  logic [2:0]  zero_bytes,
    output logic [31:0] crc_before
);
  // The masks are chosen, then 32 parities computed, rather than 256 and one of each eight chosen: a fifth less work for the simulator.
  for (genvar i = 0; i < 32; i++) begin : g_bit
    wire [31:0] mask = crc32_pkg::UNDO[32*(32*int'(zero_bytes)+i)+:32];
    assign crc_before[i] = ^(crc & mask);
  end
endmodule
