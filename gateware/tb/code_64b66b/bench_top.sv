// SPDX-License-Identifier: Apache-2.0
// The encoder, and an aligner with the decoder of what a bench gives it.
module bench_top #(
    parameter int BLOCKS = 64
) (
    input logic clk,
    input logic rst,

    input  logic        s_mark,
    input  logic [31:0] s_data,
    output logic        second,
    output logic [32:0] sent,

    input  logic [32:0] s_bits,
    output logic        valid,   // a block has been cut
    output logic [65:0] block,
    output logic        locked,
    output logic [ 6:0] slip,
    output logic        m_mark,
    output logic [31:0] m_data,
    output logic        m_error
);
  always_ff @(posedge clk) second <= !second;
  enc_64b66b i_enc (
      .s_second(second),
      .m_bits(sent),
      .*
  );
  block_align #(
      .BLOCKS(BLOCKS)
  ) i_align (
      .m_valid(valid),
      .m_block(block),
      .*
  );
  dec_64b66b i_dec (
      .s_valid(valid),
      .s_block(block),
      .*
  );
endmodule
