// SPDX-License-Identifier: Apache-2.0
// Bytes and control symbols become codes of 8b/10b, SYMBOLS a cycle, two cycles later.
//
// Contract: symbol 0 and of each code bit 0 are the first on the wire. Where s_k is set, s_data is one of the twelve control symbols. The disparity is minus after reset.
module enc_8b10b #(
    parameter int SYMBOLS = 4
) (
    input logic clk,
    input logic rst,

    input  logic [   SYMBOLS-1:0] s_k,
    input  logic [ 8*SYMBOLS-1:0] s_data,
    output logic [10*SYMBOLS-1:0] m_codes
);
  localparam int LATENCY_CYCLES = 2;

  // Both codes of each symbol first; then which it is.
  logic [SYMBOLS-1:0][9:0] after_minus, after_plus;
  logic [SYMBOLS-1:0] flips;
  always_ff @(posedge clk) begin
    for (int s = 0; s < SYMBOLS; s++) begin
      after_minus[s] <= code_8b10b_pkg::encoded(s_k[s], s_data[8*s+:8], 1'b0);
      after_plus[s] <= code_8b10b_pkg::encoded(s_k[s], s_data[8*s+:8], 1'b1);
      flips[s] <= code_8b10b_pkg::flips(s_k[s], s_data[8*s+:8]) && !rst;
    end
  end

  logic [SYMBOLS:0] plus;  // before each symbol
  logic last_plus;
  assign plus[0] = last_plus;
  for (genvar s = 0; s < SYMBOLS; s++) begin : g_plus
    assign plus[s+1] = plus[s] ^ flips[s];
  end
  always_ff @(posedge clk) begin
    for (int s = 0; s < SYMBOLS; s++) m_codes[10*s+:10] <= code_8b10b_pkg::wire_order(plus[s] ? after_plus[s] : after_minus[s]);
    last_plus <= plus[SYMBOLS] && !rst;
  end

  // --- what must hold ---
  logic [LATENCY_CYCLES-1:0] since_reset;
  initial since_reset = '0;  // if there never is one
  always_ff @(posedge clk) begin
    since_reset <= rst ? '0 : {since_reset[LATENCY_CYCLES-2:0], 1'b1};
    for (int s = 0; s < SYMBOLS; s++) begin
      if (!rst) assert (!s_k[s] || code_8b10b_pkg::is_control(s_data[8*s+:8]));
      if (!rst && since_reset == '1) assert ($countones(m_codes[10*s+:10]) >= 4 && $countones(m_codes[10*s+:10]) <= 6);
    end
  end
endmodule
