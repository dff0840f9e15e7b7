// SPDX-License-Identifier: Apache-2.0
// 120 bits with the 8 check bits by which one wrong bit is mended and two are seen (extended Hamming code). Combinational.
module secded_encode (
    input  logic [119:0] data,
    output logic [127:0] word
);
  wire [6:0] check;
  for (genvar c = 0; c < 7; c++) begin : g_check
    assign check[c] = ^(data & secded_pkg::MASK[120*c+:120]);
  end
  assign word = {^{check, data}, check, data};
endmodule
