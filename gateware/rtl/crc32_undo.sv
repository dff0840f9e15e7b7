// SPDX-License-Identifier: Apache-2.0
// The Ethernet CRC-32 register as it was before some zero bytes: takes back the filling of a last word. Combinational.
module crc32_undo #(
    parameter int WORD_BYTES = 8,  // a power of two, 32 at most
    localparam int BITS = $clog2(WORD_BYTES)
) (
    input  logic [31:0]     crc,         // the register after the zero bytes, not inverted
    input  logic [BITS-1:0] zero_bytes,
    output logic [31:0]     crc_before
);
  if (WORD_BYTES < 2 || WORD_BYTES > 32 || WORD_BYTES != 1 << BITS) begin : g_check
    $fatal(1, "WORD_BYTES must be a power of two, 2 to 32 (instance %m)");
  end
  localparam logic [1024*WORD_BYTES-1:0] UNDO = crc32_pkg::UNDO[1024*WORD_BYTES-1:0];

  // The masks are chosen, then 32 parities computed, rather than all and one of each chosen: a fifth less work for the simulator.
  for (genvar i = 0; i < 32; i++) begin : g_bit
    wire [31:0] mask = UNDO[32*(32*int'(zero_bytes)+i)+:32];
    assign crc_before[i] = ^(crc & mask);
  end
endmodule
