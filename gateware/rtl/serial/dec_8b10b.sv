// SPDX-License-Identifier: Apache-2.0
// Codes of 8b/10b become bytes and control symbols again, SYMBOLS a cycle, two cycles later.
//
// Contract
//   * Symbol 0 and of each code bit 0 are the first on the wire.
//   * code_error: no symbol has this code, whatever the disparity; m_data is anything then. disparity_error: the symbol has this code, but not after the running disparity.
//     The disparity then is what the code says it is, so one wrong bit makes one error of the second kind at most, at the latest where the next unbalanced symbol stands.
//   * The disparity is minus after reset: what a running line says first may be an error.
module dec_8b10b #(
    parameter int SYMBOLS = 4
) (
    input logic clk,
    input logic rst,

    input  logic [10*SYMBOLS-1:0] s_codes,
    output logic [   SYMBOLS-1:0] m_k,
    output logic [ 8*SYMBOLS-1:0] m_data,
    output logic [   SYMBOLS-1:0] code_error,
    output logic [   SYMBOLS-1:0] disparity_error
);
  code_8b10b_pkg::symbol_t [SYMBOLS-1:0] symbols;
  always_ff @(posedge clk) begin
    for (int s = 0; s < SYMBOLS; s++) symbols[s] <= code_8b10b_pkg::decoded(code_8b10b_pkg::wire_order(s_codes[10*s+:10]));
  end

  logic [SYMBOLS:0] plus;  // before each symbol
  logic last_plus;
  assign plus[0] = last_plus;
  for (genvar s = 0; s < SYMBOLS; s++) begin : g_plus
    assign plus[s+1] = symbols[s].sets ? symbols[s].leaves : plus[s];
  end
  always_ff @(posedge clk) begin
    for (int s = 0; s < SYMBOLS; s++) begin
      m_k[s] <= symbols[s].k && symbols[s].known;
      m_data[8*s+:8] <= symbols[s].data;
      code_error[s] <= !symbols[s].known;
      disparity_error[s] <= symbols[s].needs && symbols[s].need != plus[s];
    end
    last_plus <= plus[SYMBOLS] && !rst;
  end
endmodule
