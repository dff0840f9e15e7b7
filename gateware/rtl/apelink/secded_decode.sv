// SPDX-License-Identifier: Apache-2.0
// What secded_encode made, after one wrong bit at most. Combinational.
module secded_decode (
    input  logic [127:0] word,
    output logic [119:0] data,
    output logic         corrected,  // one bit was wrong
    output logic         failed      // two were: data is not to be used
);
  wire [6:0] syndrome;
  for (genvar c = 0; c < 7; c++) begin : g_check
    assign syndrome[c] = ^(word[119:0] & secded_pkg::MASK[120*c+:120]) ^ word[120+c];
  end
  assign corrected = ^word;
  assign failed = !corrected && syndrome != '0;
  for (genvar i = 0; i < 120; i++) begin : g_bit
    assign data[i] = word[i] ^ (corrected && syndrome == secded_pkg::COLUMN[7*i+:7]);
  end
endmodule
