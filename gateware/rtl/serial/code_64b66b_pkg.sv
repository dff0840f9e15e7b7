// SPDX-License-Identifier: Apache-2.0
// 64b/66b: two bits of header, which differ, and 64 scrambled bits, as IEEE 802.3 (clause 49) has them. Bit 0 is the first on the wire.
package code_64b66b_pkg;
  localparam int BLOCK_BITS = 66;
  localparam int HALF_BITS = BLOCK_BITS / 2;
  localparam logic [1:0] DATA = 2'b10;     // the 0 first
  localparam logic [1:0] CONTROL = 2'b01;

  // What a control block holds: two marks, or a mark and a word. Any two of these differ in four bits.
  localparam logic [7:0] MARK_MARK = 8'h1E;
  localparam logic [7:0] MARK_WORD = 8'h2D;
  localparam logic [7:0] WORD_MARK = 8'h33;

  // The scrambled bits before a block, the newest highest: its polynomial is 1 + x^39 + x^58.
  typedef logic [57:0] past_t;
  function automatic logic [63:0] scrambled(input logic [63:0] plain, input past_t past);
    logic [121:0] line;
    line = {64'd0, past};
    for (int b = 0; b < 64; b++) line[58+b] = plain[b] ^ line[19+b] ^ line[b];
    scrambled = line[121:58];
  endfunction

  // From what came, so it is right from 58 bits after an error on.
  function automatic logic [63:0] descrambled(input logic [63:0] came, input past_t past);
    descrambled = came ^ {came[24:0], past[57:19]} ^ {came[5:0], past};
  endfunction
endpackage
