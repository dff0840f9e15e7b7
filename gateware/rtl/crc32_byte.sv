// SPDX-License-Identifier: Apache-2.0
// The Ethernet CRC-32 register one byte later. Combinational.
module crc32_byte (
    input  logic [31:0] crc,      // the register before, not inverted
    input  logic [ 7:0] data,
    output logic [31:0] crc_next
);
  wire [7:0] mixed = data ^ crc[7:0];

  for (genvar i = 0; i < 32; i++) begin : g_bit
    wire moved = i < 24 ? crc[(i+8)%32] : 1'b0;
    assign crc_next[i] = moved ^ ^(mixed & crc32_pkg::BYTE[8*i+:8]);
  end
endmodule
