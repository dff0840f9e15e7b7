// SPDX-License-Identifier: Apache-2.0
// Words of four bytes, and marks in their place, become blocks of 64b/66b: a block holds two, and half of one leaves in each cycle.
//
// Contract: of a mark the lowest byte is not sent. The first bit on the wire is the lowest. `s_second` is set in every second cycle, with the second word of a
// block; two cycles later its first half leaves. There is no reset: what is scrambled may begin with any bits.
module enc_64b66b (
    input logic clk,

    input  logic                                  s_second,
    input  logic                                  s_mark,
    input  logic [                          31:0] s_data,
    output logic [code_64b66b_pkg::HALF_BITS-1:0] m_bits
);
  import code_64b66b_pkg::*;

  logic first_mark, has_mark;
  logic [31:0] first;
  logic [63:0] plain;
  always_ff @(posedge clk) begin
    if (!s_second) {first_mark, first} <= {s_mark, s_data};
    else begin
      has_mark <= first_mark || s_mark;
      case ({first_mark, s_mark})
        2'b00: plain <= {s_data, first};
        2'b11: plain <= {8'd0, s_data[31:8], first[31:8], MARK_MARK};
        2'b10: plain <= {s_data, first[31:8], MARK_WORD};
        default: plain <= {first, s_data[31:8], WORD_MARK};
      endcase
    end
  end

  logic [63:0] sent;
  logic [1:0] header;
  past_t past;
  assign past = sent[63:6];
  always_ff @(posedge clk) begin
    if (!s_second) begin
      sent <= scrambled(plain, past);
      header <= has_mark ? CONTROL : DATA;
    end
    m_bits <= s_second ? {sent[30:0], header} : sent[63:31];
  end
endmodule
