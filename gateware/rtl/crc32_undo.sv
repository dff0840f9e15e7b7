// SPDX-License-Identifier: Apache-2.0
// The Ethernet CRC-32 register as it was before some zero bytes: takes back the filling of a last word. Combinational.
module crc32_undo (
    input  logic [31:0] crc,         // the register after the zero bytes, not inverted
    input  logic [2:0]  zero_bytes,
    output logic [31:0] crc_before
);
  logic [32*8-1:0] candidates;

  for (genvar z = 0; z < 8; z++) begin : g_zeros
    for (genvar i = 0; i < 32; i++) begin : g_bit
      assign candidates[32*z+i] = ^(crc & crc32_pkg::UNDO[32*(32*z+i)+:32]);
    end
  end

  assign crc_before = candidates[32*zero_bytes+:32];
endmodule
