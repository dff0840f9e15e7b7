// SPDX-License-Identifier: Apache-2.0
// The two sums of Fletcher-32 (docs/formats.md) over a packet's words, a word of HALVES 16-bit halves in every cycle.
//
// first_sum and second_sum stand HALVES / 4 + 4 cycles after a word and are those of its packet up to and with it, modulo 65535. `first` is with a packet's
// first word. The module has no state that outlives a packet, and so no reset.
//
// The sums of a word by itself come first: of its pairs, of its quads, of all of it. What is weighed in the upper part of a piece counts the sum of the lower
// part once for each of its halves. Sums that run are kept in 16 bits and a few that were carried, which are added one step later.
module event_checksum #(
    parameter int HALVES = 4  // or 8
) (
    input logic clk,

    input logic                 valid,
    input logic                 first,
    input logic [   HALVES-1:0] counts,  // which of the word's halves do: from the low one on
    input logic [16*HALVES-1:0] data,

    output logic [15:0] first_sum,
    output logic [15:0] second_sum
);
  localparam int PAIRS = HALVES / 2;
  localparam int QUADS = HALVES / 4;

  if (HALVES != 4 && HALVES != 8) begin : g_check
    $fatal(1, "HALVES must be 4 or 8 (instance %m)");
  end

  // A number from 0 to 8, of halves that count, as two terms: so often a sum is added, and then once or twice more, or once less.
  typedef struct packed {
    logic eight, four, two, one;
    logic two_more, one_more, one_less;
  } multiple_t;

  function automatic multiple_t multiple(input logic [7:0] which);
    multiple.eight = which[6];
    multiple.four = which[3] && !which[6];
    multiple.two = which[1] && !which[3];
    multiple.one = which[0] && !which[1];
    multiple.two_more = which[5] && !which[6];
    multiple.one_more = (which[4] && !which[5]) || (which[2] && !which[3]);
    multiple.one_less = which[6] && !which[7];
  endfunction

  function automatic logic [23:0] times(input multiple_t often, input logic [19:0] sum);
    logic [23:0] most, rest;
    most = ({24{often.eight}} & {1'b0, sum, 3'b0}) | ({24{often.four}} & {2'b0, sum, 2'b0}) | ({24{often.two}} & {3'b0, sum, 1'b0}) |
           ({24{often.one}} & {4'b0, sum});
    rest = ({24{often.two_more}} & {3'b0, sum, 1'b0}) | ({24{often.one_more}} & {4'b0, sum}) | ({24{often.one_less}} & ~{4'b0, sum});
    times = most + rest + 24'(often.one_less);
  endfunction

  // --- pairs ---
  logic pairs_valid, pairs_first;
  logic [HALVES-1:0] pairs_counts;
  logic [16:0] pair_sum[PAIRS];
  logic [17:0] pair_weighed[PAIRS];
  for (genvar pair = 0; pair < PAIRS; pair++) begin : g_pair
    wire [15:0] low = counts[2*pair] ? data[32*pair+:16] : '0;
    wire [15:0] high = counts[2*pair+1] ? data[32*pair+16+:16] : '0;
    always_ff @(posedge clk) begin
      pair_sum[pair] <= 17'(low) + 17'(high);
      pair_weighed[pair] <= (counts[2*pair+1] ? {1'b0, low, 1'b0} : 18'(low)) + 18'(high);
    end
  end

  // --- quads ---
  logic quads_valid, quads_first;
  multiple_t quads_multiple;
  logic [17:0] quad_sum[QUADS];
  logic [19:0] quad_weighed[QUADS];
  for (genvar quad = 0; quad < QUADS; quad++) begin : g_quad
    wire [17:0] often = pairs_counts[4*quad+3] ? {pair_sum[2*quad], 1'b0} : pairs_counts[4*quad+2] ? 18'(pair_sum[2*quad]) : '0;
    always_ff @(posedge clk) begin
      quad_sum[quad] <= 18'(pair_sum[2*quad]) + 18'(pair_sum[2*quad+1]);
      quad_weighed[quad] <= 20'(pair_weighed[2*quad]) + 20'(pair_weighed[2*quad+1]) + 20'(often);
    end
  end
  always_ff @(posedge clk) begin
    {pairs_valid, pairs_first, pairs_counts} <= {valid, first, counts};
    {quads_valid, quads_first, quads_multiple} <= {pairs_valid, pairs_first, multiple(8'(pairs_counts))};
  end

  // --- words ---
  logic word_valid, word_first;
  multiple_t word_multiple;
  logic [18:0] word_sum;
  logic [21:0] word_weighed;
  if (HALVES == 4) begin : g_word
    assign {word_valid, word_first, word_multiple} = {quads_valid, quads_first, quads_multiple};
    assign word_sum = 19'(quad_sum[0]);
    assign word_weighed = 22'(quad_weighed[0]);
  end else begin : g_word
    multiple_t upper;
    always_ff @(posedge clk) begin
      upper <= multiple(8'(pairs_counts[HALVES-1:4]));
      {word_valid, word_first, word_multiple} <= {quads_valid, quads_valid && quads_first, quads_multiple};
      word_sum <= 19'(quad_sum[0]) + 19'(quad_sum[1]);
      word_weighed <= 22'(quad_weighed[0]) + 22'(quad_weighed[1]) + 22'(times(upper, 20'(quad_sum[0])));
    end
  end

  // --- running: the first sum, and what the second one grows by; then the second ---
  logic grows, grows_first;
  logic [19:0] sum, sum_then;
  logic [23:0] growth;
  logic [24:0] weighed;
  wire [19:0] sum_before = word_first ? '0 : sum;
  wire [24:0] weighed_before = grows_first ? '0 : weighed;
  always_ff @(posedge clk) begin
    {grows, grows_first} <= {word_valid, word_first};
    if (word_valid) begin
      sum <= 20'(sum_before[15:0]) + 20'(sum_before[19:16]) + 20'(word_sum);
      growth <= times(word_multiple, sum_before) + 24'(word_weighed);
    end
    if (grows) begin
      sum_then <= sum;
      weighed <= 25'(weighed_before[15:0]) + 25'(weighed_before[24:16]) + 25'(growth);
    end
    first_sum <= event_pkg::reduced(25'(sum_then));
    second_sum <= event_pkg::reduced(weighed);
  end
endmodule
