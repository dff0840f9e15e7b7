// SPDX-License-Identifier: Apache-2.0
// The Ethernet CRC-32 register twelve, sixteen or thirty-two bytes later. Combinational.
module crc32_wide #(
    parameter int BYTES = 16
) (
    input  logic [       31:0] crc,      // the register before, not inverted
    input  logic [8*BYTES-1:0] data,     // lane 0, the low byte, is first on the wire
    output logic [       31:0] crc_next
);
  if (BYTES != 12 && BYTES != 16 && BYTES != 32) begin : g_check
    $fatal(1, "BYTES must be 12, 16 or 32 (instance %m)");
  end

  wire [8*BYTES-1:0] mixed = data ^ {{(8 * BYTES - 32) {1'b0}}, crc};

  for (genvar i = 0; i < 32; i++) begin : g_bit
    if (BYTES == 12) begin : g_12
      assign crc_next[i] = ^(mixed & crc32_pkg::WORD_12[8*BYTES*i+:8*BYTES]);
    end else if (BYTES == 16) begin : g_16
      assign crc_next[i] = ^(mixed & crc32_pkg::WORD_16[8*BYTES*i+:8*BYTES]);
    end else begin : g_32
      assign crc_next[i] = ^(mixed & crc32_pkg::WORD_32[8*BYTES*i+:8*BYTES]);
    end
  end
endmodule
