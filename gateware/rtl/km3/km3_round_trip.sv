// SPDX-License-Identifier: Apache-2.0
// How long after a frame began here the floor's frame of the same number comes in: frames and words of this clock.
//
// Contract
//   * s_valid with the time of a good head and by how many cycles it came before (`s_since`). It is of this clock: a crossing of one latency lies before it.
//   * m_valid with `frames`, `words` later: between the two beginnings. error_second: its second is not that of the frame that began so long ago; then there is no value.
module km3_round_trip #(
    parameter int FRAME_WORDS = 4000,
    parameter int FRAMES_PER_S = 10000
) (
    input logic clk,
    input logic rst,

    input logic [15:0]    word,
    input km3_pkg::time_t at,

    input logic           s_valid,
    input logic [7:0]     s_since,
    input km3_pkg::time_t s_at,

    output logic        m_valid,
    output logic [15:0] frames,
    output logic [15:0] words,
    output logic        error_second
);
  logic signed [16:0] word_past, frames_past;
  logic [31:0] second_past;
  logic subtracts;
  wire signed [16:0] frames_whole = frames_past - 17'(word_past < 0);
  wire wraps = frames_whole < 0;  // the second has changed since
  wire right = second_past == (wraps ? 32'd1 : 32'd0);
  always_ff @(posedge clk) begin
    subtracts <= s_valid && !rst;
    word_past <= $signed({1'b0, word}) - $signed({9'd0, s_since});
    frames_past <= $signed({1'b0, at.number}) - $signed({1'b0, s_at.number});
    second_past <= at.second - s_at.second;

    words <= word_past < 0 ? word_past[15:0] + 16'(FRAME_WORDS) : word_past[15:0];
    frames <= wraps ? frames_whole[15:0] + 16'(FRAMES_PER_S) : frames_whole[15:0];
    m_valid <= subtracts && right && !rst;
    error_second <= subtracts && !right && !rst;
  end
endmodule
