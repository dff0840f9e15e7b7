// SPDX-License-Identifier: Apache-2.0
// The encoder, and the decoder of what a bench gives it, or of the encoder's codes.
module bench_top #(
    parameter int SYMBOLS = 4
) (
    input logic clk,
    input logic rst,

    input  logic [   SYMBOLS-1:0] s_k,
    input  logic [ 8*SYMBOLS-1:0] s_data,
    output logic [10*SYMBOLS-1:0] codes,
    input  logic                  loops,
    input  logic [10*SYMBOLS-1:0] s_codes,
    output logic [   SYMBOLS-1:0] m_k,
    output logic [ 8*SYMBOLS-1:0] m_data,
    output logic [   SYMBOLS-1:0] code_error,
    output logic [   SYMBOLS-1:0] disparity_error
);
  enc_8b10b #(
      .SYMBOLS(SYMBOLS)
  ) i_enc (
      .m_codes(codes),
      .*
  );
  dec_8b10b #(
      .SYMBOLS(SYMBOLS)
  ) i_dec (
      .s_codes(loops ? codes : s_codes),
      .*
  );
endmodule
