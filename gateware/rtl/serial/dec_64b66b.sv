// SPDX-License-Identifier: Apache-2.0
// Blocks of 64b/66b become words of four bytes and marks again, one a cycle, the first of a block two cycles after it came.
//
// Contract
//   * s_valid in every second cycle. Of a mark the lowest byte is 0.
//   * m_error: the block's header or kind is none; m_data is what it may have held.
//   * One wrong bit on the wire is up to three here: in its place, 39 and 58 bits later. So no two of them are in one word but those 19 apart.
module dec_64b66b (
    input logic clk,

    input  logic                                   s_valid,
    input  logic [code_64b66b_pkg::BLOCK_BITS-1:0] s_block,
    output logic                                   m_mark,
    output logic [                           31:0] m_data,
    output logic                                   m_error
);
  import code_64b66b_pkg::*;

  past_t past;
  logic [63:0] plain;
  logic [1:0] header;
  logic valid;
  always_ff @(posedge clk) begin
    valid <= s_valid;
    if (s_valid) begin
      plain  <= descrambled(s_block[65:2], past);
      past <= s_block[65:8];
      header <= s_block[1:0];
    end
  end

  logic [1:0] marks;  // the first low
  logic [1:0][31:0] words;
  logic is_none;
  always_comb begin
    marks = '0;
    words = plain;
    is_none = header != DATA;
    if (header == CONTROL) begin
      case (plain[7:0])
        MARK_MARK: {is_none, marks, words} = {plain[63:56] != '0, 2'b11, plain[55:32], 8'd0, plain[31:8], 8'd0};
        MARK_WORD: {is_none, marks, words} = {1'b0, 2'b01, plain[63:32], plain[31:8], 8'd0};
        WORD_MARK: {is_none, marks, words} = {1'b0, 2'b10, plain[31:8], 8'd0, plain[63:32]};
        default: ;
      endcase
    end
  end
  logic second_mark;
  logic [31:0] second;
  always_ff @(posedge clk) begin
    {m_mark, m_data} <= valid ? {marks[0], words[0]} : {second_mark, second};
    if (valid) begin
      m_error <= is_none;
      {second_mark, second} <= {marks[1], words[1]};
    end
  end
endmodule
