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
//   * Every stage may have a sample in every cycle. One that comes with `take` or later is of the new period.
//   * What was taken stands TAKE_CYCLES after `take`, until the next.
//   * Numbers of samples stay at their highest value when they reach it, the sum does not: COUNT_BITS last for 77 minutes of the shortest frames.
//   * Of a stage without samples the least is all ones, the greatest and the sum are 0.
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

    input logic [STAGES-1:0]                  s_valid,
    input logic [STAGES-1:0][CYCLES_BITS-1:0] s_cycles,

    input logic take,

    input  logic [STAGE_BITS-1:0] select_stage,
    input  logic                  select_bin,    // word is a bin's number; else 0 samples, 1 least, 2 greatest, 3 sum
    input  logic [  BIN_BITS-1:0] select_word,
    output logic [          63:0] data
);
  localparam int TAKE_CYCLES = 4;
  localparam int WINDOW_CYCLES = 2;
  localparam int OCTAVES = (BINS - 2 ** EXACT_BITS) / 2 ** SPLIT_BITS;
  localparam int TOP = EXACT_BITS + OCTAVES;  // from 2^TOP on there is only the last bin

  if (2 ** BIN_BITS != BINS || BINS < 4 || OCTAVES < 1 || SPLIT_BITS > EXACT_BITS || SPLIT_BITS < 1) begin : g_check_bins
    $fatal(1, "BINS must be a power of two with room for the exact bins and one octave, SPLIT_BITS 1 to EXACT_BITS (instance %m)");
  end
  if (TOP > CYCLES_BITS || COUNT_BITS > 64 || CYCLES_BITS > 64) begin : g_check_bits
    $fatal(1, "a sample must reach the last bin, and no number have more than 64 bits (instance %m)");
  end

  typedef struct packed {
    logic [COUNT_BITS-1:0]  count;
    logic [CYCLES_BITS-1:0] least;
    logic [CYCLES_BITS-1:0] greatest;
    logic [63:0]            sum;
  } numbers_t;
  localparam numbers_t NOTHING = '{'0, '1, '0, '0};

  // --- a sample is in step 1, 2, 3 in the cycles after it came; so is the change-over ---
  logic take_1, running;  // running: the set that counts, as of step 2
  always_ff @(posedge clk) begin
    take_1 <= take;
    if (take_1) running <= !running;
    if (rst) begin
      take_1  <= 1'b0;
      running <= 1'b0;
    end
  end

  logic [STAGE_BITS-1:0] stage;
  logic bin_wanted;
  logic [1:0] word;
  always_ff @(posedge clk) begin
    stage <= select_stage;
    bin_wanted <= select_bin;
    word <= select_word[1:0];
  end

  numbers_t [STAGES-1:0] standing;
  logic [STAGES-1:0][COUNT_BITS-1:0] standing_bin;
  for (genvar k = 0; k < STAGES; k++) begin : g_stage
    logic valid_1, valid_2, valid_3;
    logic [CYCLES_BITS-1:0] cycles_1, cycles_2;
    logic [BIN_BITS-1:0] bin, bin_2, bin_3;

    always_comb begin
      bin = BIN_BITS'(cycles_1);
      for (int t = EXACT_BITS; t < TOP; t++) begin
        if (cycles_1[t]) begin
          bin = BIN_BITS'(2 ** EXACT_BITS + (t - EXACT_BITS) * 2 ** SPLIT_BITS) + BIN_BITS'(cycles_1[t-1-:SPLIT_BITS]);
        end
      end
      for (int t = TOP; t < CYCLES_BITS; t++) if (cycles_1[t]) bin = '1;
    end

    numbers_t counting, counted;
    always_comb begin
      counted = counting;
      if (valid_2) begin
        if (!(&counting.count)) counted.count = counting.count + 1'b1;
        if (cycles_2 < counting.least) counted.least = cycles_2;
        if (cycles_2 > counting.greatest) counted.greatest = cycles_2;
        counted.sum = counting.sum + 64'(cycles_2);
      end
    end
    always_ff @(posedge clk) begin
      valid_1 <= s_valid[k];
      cycles_1 <= s_cycles[k];
      valid_2 <= valid_1;
      cycles_2 <= cycles_1;
      bin_2 <= bin;
      valid_3 <= valid_2;
      bin_3 <= bin_2;
      counting <= take_1 ? NOTHING : counted;
      if (take_1) standing[k] <= counted;
      if (rst) begin
        valid_1  <= 1'b0;
        valid_2  <= 1'b0;
        valid_3  <= 1'b0;
        counting <= NOTHING;
        standing[k] <= NOTHING;
      end
    end

    // --- histogram: a bin is read in step 2 and written in step 3; one that was not used since the change-over holds nothing ---
    logic [1:0][COUNT_BITS-1:0] read;
    logic [1:0] was_used;  // the bin that `read` is of
    logic running_3, again;
    logic [COUNT_BITS-1:0] old_count, new_count, written;
    assign old_count = again ? written : was_used[running_3] ? read[running_3] : '0;
    assign new_count = &old_count ? old_count : old_count + 1'b1;
    always_ff @(posedge clk) begin
      running_3 <= running;
      again <= valid_2 && valid_3 && bin_2 == bin_3 && running == running_3;
      written <= new_count;
    end
    for (genvar b = 0; b < 2; b++) begin : g_set
      logic [COUNT_BITS-1:0] counts[BINS];
      logic [BINS-1:0] used;
      logic [BIN_BITS-1:0] at;
      assign at = running == 1'(b) ? bin_2 : select_word;
      always_ff @(posedge clk) begin
        read[b] <= counts[at];
        was_used[b] <= used[at];
        if (valid_3 && running_3 == 1'(b)) begin
          counts[bin_3] <= new_count;
          used[bin_3] <= 1'b1;
        end
        if (take_1 && running != 1'(b)) used <= '0;
        if (rst) used <= '0;
      end
    end

    assign standing_bin[k] = was_used[!running] ? read[!running] : '0;

`ifndef SYNTHESIS
    always_ff @(posedge clk) begin
      if (!rst && standing[k].count != '0) a_order : assert (standing[k].least <= standing[k].greatest);
    end
`endif
  end

  // --- the window ---
  numbers_t numbers;
  logic [COUNT_BITS-1:0] bin_count;
  always_comb begin
    numbers   = '0;
    bin_count = '0;
    for (int k = 0; k < STAGES; k++) begin
      if (stage == STAGE_BITS'(k)) begin
        numbers   = standing[k];
        bin_count = standing_bin[k];
      end
    end
  end
  always_ff @(posedge clk) begin
    unique case (word)
      2'd0: data <= 64'(numbers.count);
      2'd1: data <= 64'(numbers.least);
      2'd2: data <= 64'(numbers.greatest);
      default: data <= numbers.sum;
    endcase
    if (bin_wanted) data <= 64'(bin_count);
  end

endmodule
