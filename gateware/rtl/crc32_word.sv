// SPDX-License-Identifier: Apache-2.0
// The Ethernet CRC-32 register eight bytes later. Combinational.
module crc32_word (
    input  logic [31:0] crc,      // the register before, not inverted
    input  logic [63:0] data,     // lane 0, the low byte, is first on the wire
    output logic [31:0] crc_next
);
  wire [63:0] mixed = data ^ {32'b0, crc};

  for (genvar i = 0; i < 32; i++) begin : g_bit
    assign crc_next[i] = ^(mixed & crc32_pkg::WORD[64*i+:64]);
  end
endmodule
