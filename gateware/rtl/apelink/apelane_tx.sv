// SPDX-License-Identifier: Apache-2.0
// Words of the link to the line code of four lanes, with marks wherever there is no word. docs/apelink-format.md
//
// Contract: a word is taken where s_valid and s_ready meet. s_ready is down while `opens` is, and in one cycle after SKIP_PERIOD_WORDS words without a mark: that
// mark is what a receiver with a slower clock leaves out. Lane 0 is low in m_bits, and of each lane the first bit on the wire.
module apelane_tx #(
    parameter int SKIP_PERIOD_WORDS = 1024,
    parameter int LINE_BITS = apelane_pkg::BITS_8B10B
) (
    input logic clk,
    input logic rst,

    input logic                opens,
    input apelane_pkg::call_t  call,

    input  logic         s_valid,
    output logic         s_ready,
    input  logic [127:0] s_data,

    output logic [apelane_pkg::LANES*LINE_BITS-1:0] m_bits
);
  if (SKIP_PERIOD_WORDS < 1 || SKIP_PERIOD_WORDS > 65535) begin : g_check
    $fatal(1, "SKIP_PERIOD_WORDS must be 1 to 65535 (instance %m)");
  end
  logic [15:0] since_mark;
  logic [apelane_pkg::NUMBER_BITS-1:0] number;
  assign s_ready = opens && int'(since_mark) < SKIP_PERIOD_WORDS;
  wire sends = s_valid && s_ready;
  always_ff @(posedge clk) begin
    number <= number + 1'b1;
    since_mark <= rst || !sends ? '0 : since_mark + 1'b1;
  end

  for (genvar l = 0; l < apelane_pkg::LANES; l++) begin : g_lane
    apelane_pkg::mark_t mark;
    assign mark.comma = code_8b10b_pkg::K28_5;
    assign mark.call = call;
    assign mark.lane = 2'(l);
    assign mark.number = number;
    assign mark.check = apelane_pkg::check_of(call, number, 2'(l));
    wire [31:0] data = sends ? s_data[32*l+:32] : mark;
    // Disparity, and what is scrambled, may begin as they like; a step in them would be an error to who listens.
    if (LINE_BITS == apelane_pkg::BITS_8B10B) begin : g_8b10b
      enc_8b10b i_enc (
          .clk,
          .rst(1'b0),
          .s_k({3'b000, !sends}),
          .s_data(data),
          .m_codes(m_bits[LINE_BITS*l+:LINE_BITS])
      );
    end else begin : g_64b66b
      enc_64b66b i_enc (
          .clk,
          .s_second(number[0]),
          .s_mark(!sends),
          .s_data(data),
          .m_bits(m_bits[LINE_BITS*l+:LINE_BITS])
      );
    end
  end
endmodule
