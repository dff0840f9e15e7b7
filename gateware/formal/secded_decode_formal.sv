// SPDX-License-Identifier: Apache-2.0
// Any header, encoded and decoded: what comes out went in, with none or any one bit wrong, and whether one was is told. So many cases a cycle, 129 in
// all: a solver that has to find the wrong bit as well thinks for ever.
module secded_decode_formal #(
    parameter int CASES = 16
) (
    input logic         clk,
    input logic [119:0] header
);
  localparam logic [7:0] NONE = 8'd128;  // and above
  logic [7:0] first;
  initial first = 8'd112;  // so that a bit of each kind comes early
  always_ff @(posedge clk) first <= first == NONE ? '0 : first + 8'(CASES);

  logic [127:0] sent;
  secded_encode i_encode (
      .data(header),
      .word(sent)
  );
  for (genvar c = 0; c < CASES; c++) begin : g_case
    wire [7:0] wrong = first + 8'(c);
    wire [127:0] flips = wrong >= NONE ? '0 : 128'd1 << wrong;
    logic [119:0] data;
    logic corrected, failed;
    secded_decode dut (
        .word(sent ^ flips),
        .data,
        .corrected,
        .failed
    );
    always_ff @(posedge clk) begin
      assert (data == header);
      assert (corrected == (wrong < NONE));
      assert (!failed);
    end
  end
endmodule
