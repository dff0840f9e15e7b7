// SPDX-License-Identifier: Apache-2.0
// The two sums of Fletcher-32 (docs/formats.md) over a packet's words, a word in every cycle.
//
// first_sum and second_sum stand LATENCY_CYCLES after a word and are those of its packet up to and with it, modulo 65535. A packet has at most 16 KiB; `first` is
// with its first word. The module has no state that outlives a packet, and so no reset.
module event_checksum (
    input logic clk,

    input logic        valid,
    input logic        first,
    input logic [ 2:0] halves,  // 0 to 4 of the word's 16-bit halves count, from the low one on
    input logic [63:0] data,

    output logic [15:0] first_sum,
    output logic [15:0] second_sum
);
  // The sums of a word by itself. `running` are those after each of its halves.
  wire [63:0] word = event_pkg::kept(data, halves);
  wire [17:0] running_1 = 18'(word[15:0]);
  wire [17:0] running_2 = running_1 + 18'(word[31:16]);
  wire [17:0] running_3 = running_2 + 18'(word[47:32]);
  wire [17:0] running_4 = running_3 + 18'(word[63:48]);
  wire [19:0] weighed_2 = (halves > 3'd0 ? 20'(running_1) : '0) + (halves > 3'd1 ? 20'(running_2) : '0);
  wire [19:0] weighed_4 = (halves > 3'd2 ? 20'(running_3) : '0) + (halves > 3'd3 ? 20'(running_4) : '0);

  logic word_valid, word_first;
  logic [2:0] word_halves;
  logic [17:0] word_sum;
  logic [19:0] word_weighed;
  always_ff @(posedge clk) begin
    word_valid <= valid;
    word_first <= first;
    word_halves <= halves;
    word_sum <= running_4;
    word_weighed <= weighed_2 + weighed_4;
  end

  logic [29:0] sum;
  logic [42:0] weighed;
  wire [29:0] sum_before = word_first ? '0 : sum;
  wire [42:0] weighed_before = word_first ? '0 : weighed;
  wire [42:0] often = (word_halves[0] ? 43'(sum_before) : '0) + (word_halves[1] ? {12'b0, sum_before, 1'b0} : '0) +
                      (word_halves[2] ? {11'b0, sum_before, 2'b0} : '0);
  always_ff @(posedge clk) begin
    if (word_valid) begin
      sum <= sum_before + 30'(word_sum);
      weighed <= weighed_before + often + 43'(word_weighed);
    end
  end

  logic [17:0] sum_3, weighed_3;
  logic [16:0] sum_4, weighed_4th;
  always_ff @(posedge clk) begin
    sum_3 <= 18'(sum[15:0]) + 18'(sum[29:16]);
    weighed_3 <= 18'(weighed[15:0]) + 18'(weighed[31:16]) + 18'(weighed[42:32]);
    sum_4 <= event_pkg::folded(32'(sum_3));
    weighed_4th <= event_pkg::folded(32'(weighed_3));
  end
  assign first_sum = event_pkg::reduced(sum_4);
  assign second_sum = event_pkg::reduced(weighed_4th);
endmodule
