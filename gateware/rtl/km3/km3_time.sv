// SPDX-License-Identifier: Apache-2.0
// Counts words, frames and seconds, and says when a frame begins.
//
// Contract
//   * `word` is that of this cycle in its frame; `start` is up in word 0, `starts_next` in the last one. FRAMES_PER_S frames of FRAME_WORDS words are a second.
//   * load: the next cycle is word load_word of frame load_at. `agrees`: that is what it would have been anyhow.
module km3_time #(
    parameter int FRAME_WORDS = 4000,
    parameter int FRAMES_PER_S = 10000
) (
    input logic clk,
    input logic rst,

    input  logic           load,
    input  logic [15:0]    load_word,
    input  km3_pkg::time_t load_at,
    output logic           agrees,

    output logic [15:0]    word,
    output km3_pkg::time_t at,
    output logic           start,
    output logic           starts_next
);
  if (FRAME_WORDS < 32 || FRAME_WORDS > 65535 || FRAMES_PER_S < 2 || FRAMES_PER_S > 65535) begin : g_check
    $fatal(1, "FRAME_WORDS must be 32 to 65535, FRAMES_PER_S 2 to 65535 (instance %m)");
  end

  logic [15:0] word_next;
  km3_pkg::time_t at_next;
  assign start = word == '0;
  assign starts_next = int'(word) == FRAME_WORDS - 1;
  wire ends_second = int'(at.number) == FRAMES_PER_S - 1;
  always_comb begin
    word_next = starts_next ? '0 : word + 1'b1;
    at_next = at;
    if (starts_next) begin
      at_next.number = ends_second ? '0 : at.number + 1'b1;
      if (ends_second) at_next.second = at.second + 1'b1;
    end
  end
  assign agrees = load_word == word_next && load_at == at_next;
  always_ff @(posedge clk) begin
    word <= load ? load_word : word_next;
    at   <= load ? load_at : at_next;
    if (rst) begin
      word <= 16'd1;  // no frame begins in reset
      at   <= '0;
    end
  end

  // --- what must hold ---
  always_ff @(posedge clk) if (!rst) assert (int'(word) < FRAME_WORDS && int'(at.number) < FRAMES_PER_S);
endmodule
