// SPDX-License-Identifier: Apache-2.0
// The two sums of Fletcher-32 (docs/formats.md) over a packet's words, a word of HALVES 16-bit halves in every cycle.
//
// first_sum and second_sum stand HALVES / 4 + 3 cycles after a word and are those of its packet up to and with it, modulo 65535. A packet has at most 16 KiB;
// `first` is with its first word. The module has no state that outlives a packet, and so no reset.
module event_checksum #(
    parameter int HALVES = 4,  // or 8
    localparam int COUNT_BITS = $clog2(HALVES + 1)
) (
    input logic clk,

    input logic                  valid,
    input logic                  first,
    input logic [COUNT_BITS-1:0] halves,  // so many of the word's halves count, from the low one on
    input logic [ 16*HALVES-1:0] data,

    output logic [15:0] first_sum,
    output logic [15:0] second_sum
);
  localparam int QUADS = HALVES / 4;

  if (HALVES != 4 && HALVES != 8) begin : g_check
    $fatal(1, "HALVES must be 4 or 8 (instance %m)");
  end

  // The sums of four halves by themselves. `running` are those after each of them.
  logic quads_valid, quads_first;
  logic [2:0] quad_halves[QUADS];
  logic [17:0] quad_sum[QUADS];
  logic [19:0] quad_weighed[QUADS];
  for (genvar quad = 0; quad < QUADS; quad++) begin : g_quad
    wire [COUNT_BITS-1:0] beyond = halves > COUNT_BITS'(4 * quad) ? halves - COUNT_BITS'(4 * quad) : '0;
    wire [2:0] count = beyond > COUNT_BITS'(4) ? 3'd4 : 3'(beyond);
    wire [63:0] word = event_pkg::kept(data[64*quad+:64], count);
    wire [17:0] running_1 = 18'(word[15:0]);
    wire [17:0] running_2 = running_1 + 18'(word[31:16]);
    wire [17:0] running_3 = running_2 + 18'(word[47:32]);
    wire [17:0] running_4 = running_3 + 18'(word[63:48]);
    wire [19:0] weighed_2 = (count > 3'd0 ? 20'(running_1) : '0) + (count > 3'd1 ? 20'(running_2) : '0);
    wire [19:0] weighed_4 = (count > 3'd2 ? 20'(running_3) : '0) + (count > 3'd3 ? 20'(running_4) : '0);
    always_ff @(posedge clk) begin
      quad_halves[quad] <= count;
      quad_sum[quad] <= running_4;
      quad_weighed[quad] <= weighed_2 + weighed_4;
    end
  end
  always_ff @(posedge clk) begin
    quads_valid <= valid;
    quads_first <= first;
  end

  // Those of the word: each half of the upper four counts the sum of the lower four once.
  logic word_valid, word_first;
  logic [3:0] word_halves;
  logic [18:0] word_sum;
  logic [21:0] word_weighed;
  if (HALVES == 4) begin : g_word
    assign word_valid = quads_valid;
    assign word_first = quads_first;
    assign word_halves = 4'(quad_halves[0]);
    assign word_sum = 19'(quad_sum[0]);
    assign word_weighed = 22'(quad_weighed[0]);
  end else begin : g_word
    wire [21:0] often = (quad_halves[1][0] ? 22'(quad_sum[0]) : '0) + (quad_halves[1][1] ? {3'b0, quad_sum[0], 1'b0} : '0) +
                        (quad_halves[1][2] ? {2'b0, quad_sum[0], 2'b0} : '0);
    always_ff @(posedge clk) begin
      word_valid <= quads_valid;
      word_first <= quads_first;
      word_halves <= 4'(quad_halves[0]) + 4'(quad_halves[1]);
      word_sum <= 19'(quad_sum[0]) + 19'(quad_sum[1]);
      word_weighed <= 22'(quad_weighed[0]) + 22'(quad_weighed[1]) + often;
    end
  end

  logic [29:0] sum;
  logic [42:0] weighed;
  wire [29:0] sum_before = word_first ? '0 : sum;
  wire [42:0] weighed_before = word_first ? '0 : weighed;
  wire [42:0] often_before = (word_halves[0] ? 43'(sum_before) : '0) + (word_halves[1] ? {12'b0, sum_before, 1'b0} : '0) +
                             (word_halves[2] ? {11'b0, sum_before, 2'b0} : '0) + (word_halves[3] ? {10'b0, sum_before, 3'b0} : '0);
  always_ff @(posedge clk) begin
    if (word_valid) begin
      sum <= sum_before + 30'(word_sum);
      weighed <= weighed_before + often_before + 43'(word_weighed);
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
