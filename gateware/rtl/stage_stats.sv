// SPDX-License-Identifier: Apache-2.0
// How long each stage of a packet's way took: number of samples, least, greatest, sum and a histogram for each, in cycles.
//
// There are two sets of these numbers. One counts; the other stands still and is read through a window. `take` changes them over, for all stages
// in one cycle, and the one that counts begins at zero: so each sample is in one period, and what is read is of one period.
//
// Histogram: a sample of less than 2^EXACT_BITS cycles is in the bin of its number. Above, each power of two is cut into 2^SPLIT_BITS bins of equal width.
// The last bin has no upper end.
//
// Contract
//   * A sample in every cycle; of one stage every second cycle at most.
//   * Samples up to one with s_last belong together: a `take` between them waits for the last. A sample that comes with `take`, or later, is of the new period.
//   * What was taken stands TAKE_CYCLES after it was changed over, until the next `take`.
//   * Numbers of samples stay at their highest value when they reach it, the sum does not: COUNT_BITS last for 77 minutes of the shortest frames.
//   * Of a stage without samples all is zero.
//   * data is what select_* named WINDOW_CYCLES before; a stage that is not there reads as zero.
module stage_stats #(
    parameter int STAGES = 5,
    parameter int CYCLES_BITS = 32,  // of a sample [bits]
    parameter int COUNT_BITS = 36,   // of a number of samples [bits]
    parameter int BINS = 64,
    parameter int EXACT_BITS = 5,
    parameter int SPLIT_BITS = 2,
    localparam int STAGE_BITS = $clog2(STAGES + 1),
    localparam int BIN_BITS = $clog2(BINS)
) (
    input logic clk,
    input logic rst,

    input logic                   s_valid,
    input logic [ STAGE_BITS-1:0] s_stage,
    input logic [CYCLES_BITS-1:0] s_cycles,
    input logic                   s_last,

    input logic take,

    input  logic [STAGE_BITS-1:0] select_stage,
    input  logic                  select_bin,    // word is a bin's number; else 0 samples, 1 least, 2 greatest, 3 sum
    input  logic [  BIN_BITS-1:0] select_word,
    output logic [          63:0] data
);
  localparam int TAKE_CYCLES = 4;
  localparam int WINDOW_CYCLES = 2;
  localparam int ROW_BITS = $clog2(STAGES);
  localparam int OCTAVES = (BINS - 2 ** EXACT_BITS) / 2 ** SPLIT_BITS;
  localparam int TOP = EXACT_BITS + OCTAVES;  // from 2^TOP on there is only the last bin

  if (2 ** BIN_BITS != BINS || BINS < 4 || STAGES < 2 || OCTAVES < 1 || SPLIT_BITS > EXACT_BITS || SPLIT_BITS < 1) begin : g_check_bins
    $fatal(1, "BINS must be a power of two with room for the exact bins and one octave, SPLIT_BITS 1 to EXACT_BITS, STAGES 2 at least (instance %m)");
  end
  if (TOP > CYCLES_BITS || COUNT_BITS > 64 || CYCLES_BITS > 64) begin : g_check_bits
    $fatal(1, "a sample must reach the last bin, and no number have more than 64 bits (instance %m)");
  end

  function automatic logic [BIN_BITS-1:0] bin_of(input logic [CYCLES_BITS-1:0] cycles);
    bin_of = BIN_BITS'(cycles);
    for (int t = EXACT_BITS; t < TOP; t++) begin
      if (cycles[t]) bin_of = BIN_BITS'(2 ** EXACT_BITS + (t - EXACT_BITS) * 2 ** SPLIT_BITS) + BIN_BITS'(cycles[t-1-:SPLIT_BITS]);
    end
    if ((cycles >> TOP) != '0) bin_of = '1;
  endfunction

  // --- a sample is in step 1, 2, 3 in the cycles after it came; so is the change-over ---
  logic open, asked;  // in the midst of samples that belong together; a `take` waits for their end
  wire takes = (take || asked) && !open;
  logic take_1, running;  // running: the set that counts, as of step 2
  logic valid_1, valid_2, valid_3;
  logic [STAGE_BITS-1:0] stage_1, stage_2, stage_3;
  logic [CYCLES_BITS-1:0] cycles_1, cycles_2, cycles_3;
  logic [BIN_BITS-1:0] bin_2, bin_3;
  logic running_3;
  always_ff @(posedge clk) begin
    asked <= (take || asked) && open;
    take_1 <= takes;
    if (take_1) running <= !running;
    valid_1 <= s_valid;
    valid_2 <= valid_1;
    valid_3 <= valid_2;
    if (s_valid) begin
      open <= !s_last;
      stage_1 <= s_stage;
      cycles_1 <= s_cycles;
    end
    if (valid_1) begin
      stage_2 <= stage_1;
      cycles_2 <= cycles_1;
      bin_2 <= bin_of(cycles_1);
    end
    if (valid_2) begin
      stage_3 <= stage_2;
      cycles_3 <= cycles_2;
      bin_3 <= bin_2;
      running_3 <= running;
    end
    if (rst) begin
      open <= 1'b0;
      asked <= 1'b0;
      take_1 <= 1'b0;
      running <= 1'b0;
      valid_1 <= 1'b0;
      valid_2 <= 1'b0;
      valid_3 <= 1'b0;
    end
  end

  // --- both sets: what is asked for in step 2 is there in step 3, and then written. What was not used since the change-over is nothing. ---
  logic [COUNT_BITS-1:0] bin_after, count_after;
  logic [CYCLES_BITS-1:0] least_after, greatest_after;
  logic [63:0] sum_after;

  for (genvar b = 0; b < 2; b++) begin : g_set
    logic [COUNT_BITS-1:0] bin_counts[STAGES*BINS];
    logic [COUNT_BITS-1:0] counts[STAGES];
    logic [CYCLES_BITS-1:0] leasts[STAGES];
    logic [CYCLES_BITS-1:0] greatests[STAGES];
    logic [63:0] sums[STAGES];
    logic [STAGES*BINS-1:0] bins_used;
    logic [STAGES-1:0] stages_used;
    logic [COUNT_BITS-1:0] bin_count, count;
    logic [CYCLES_BITS-1:0] least, greatest;
    logic [63:0] sum;
    logic bin_used, used, counts_here;
    logic [ROW_BITS-1:0] at_stage, row;
    logic [BIN_BITS-1:0] at_bin;
    assign counts_here = running == 1'(b);
    assign at_stage = ROW_BITS'(counts_here ? stage_2 : select_stage);
    assign row = ROW_BITS'(stage_3);
    assign at_bin = counts_here ? bin_2 : select_word;
    always_ff @(posedge clk) begin
      if (valid_2 || !counts_here) begin
        bin_count <= bin_counts[{at_stage, at_bin}];
        bin_used <= bins_used[{at_stage, at_bin}];
        count <= counts[at_stage];
        least <= leasts[at_stage];
        greatest <= greatests[at_stage];
        sum <= stages_used[at_stage] ? sums[at_stage] : '0;
        used <= stages_used[at_stage];
      end
      if (valid_3 && running_3 == 1'(b)) begin
        bin_counts[{row, bin_3}] <= bin_after;
        bins_used[{row, bin_3}] <= 1'b1;
        counts[row] <= count_after;
        leasts[row] <= least_after;
        greatests[row] <= greatest_after;
        sums[row] <= sum_after;
        stages_used[row] <= 1'b1;
      end
      if ((take_1 && !counts_here) || rst) begin
        bins_used <= '0;
        stages_used <= '0;
      end
    end
  end

  wire first = running_3 ? !g_set[1].used : !g_set[0].used;
  wire [COUNT_BITS-1:0] count_before = first ? '0 : running_3 ? g_set[1].count : g_set[0].count;
  wire [CYCLES_BITS-1:0] least_before = running_3 ? g_set[1].least : g_set[0].least;
  wire [CYCLES_BITS-1:0] greatest_before = running_3 ? g_set[1].greatest : g_set[0].greatest;
  wire [63:0] sum_before = running_3 ? g_set[1].sum : g_set[0].sum;
  wire [COUNT_BITS-1:0] in_bin = running_3 ? g_set[1].bin_count : g_set[0].bin_count;
  wire [COUNT_BITS-1:0] bin_before = (running_3 ? g_set[1].bin_used : g_set[0].bin_used) ? in_bin : '0;
  assign count_after = &count_before ? count_before : count_before + 1'b1;
  assign bin_after = &bin_before ? bin_before : bin_before + 1'b1;
  assign least_after = first || cycles_3 < least_before ? cycles_3 : least_before;
  assign greatest_after = first || cycles_3 > greatest_before ? cycles_3 : greatest_before;
  assign sum_after = sum_before + 64'(cycles_3);

  // --- the window ---
  logic there, bin_wanted;
  logic [1:0] word;
  wire has_samples = running ? g_set[0].used : g_set[1].used;
  wire has_bin = running ? g_set[0].bin_used : g_set[1].bin_used;
  always_ff @(posedge clk) begin
    there <= select_stage < STAGE_BITS'(STAGES);
    bin_wanted <= select_bin;
    word <= select_word[1:0];
    unique case (word)
      2'd0: data <= 64'(running ? g_set[0].count : g_set[1].count);
      2'd1: data <= 64'(running ? g_set[0].least : g_set[1].least);
      2'd2: data <= 64'(running ? g_set[0].greatest : g_set[1].greatest);
      default: data <= running ? g_set[0].sum : g_set[1].sum;
    endcase
    if (bin_wanted) data <= 64'(running ? g_set[0].bin_count : g_set[1].bin_count);
    if (!there || !(bin_wanted ? has_bin : has_samples)) data <= '0;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst) begin
      if (s_valid) a_stage : assert (s_stage < STAGE_BITS'(STAGES));
      if (s_valid && valid_1) a_apart : assert (s_stage != stage_1);
      if (valid_3 && !first) a_order : assert (least_before <= greatest_before);
      if (valid_3) a_used : assert (first || count_before != '0);
    end
  end
`endif
endmodule
