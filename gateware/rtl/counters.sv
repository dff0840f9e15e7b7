// SPDX-License-Identifier: Apache-2.0
// Counters in a memory: what came of each waits in a few bits, and one adder goes round and adds it to the counter, one in each cycle.
//
// Contract
//   * A pulse of each counter in every cycle; none is lost. Reset makes all of them zero.
//   * `read` is a pulse, and no other comes before `done`, which has `data` with it, READ_CYCLES_MAX after `read` at the latest: the adder has to come round.
//     data has every pulse that came before `read`.
module counters #(
    parameter int COUNTERS = 47,
    parameter int COUNT_BITS = 64,
    localparam int INDEX_BITS = $clog2(COUNTERS)
) (
    input logic clk,
    input logic rst,

    input logic [COUNTERS-1:0] pulses,

    input  logic                  read,
    input  logic [INDEX_BITS-1:0] read_index,
    output logic                  done,
    output logic [COUNT_BITS-1:0] data
);
  localparam int READ_CYCLES_MAX = COUNTERS + 2;
  localparam int WAITING_BITS = $clog2(COUNTERS + 1);  // from one round to the next a counter has at most so many pulses as the round has cycles

  if (COUNTERS < 4 || WAITING_BITS > COUNT_BITS) begin : g_check
    $fatal(1, "COUNTERS must be at least 4, and fewer than a counter can count (instance %m)");
  end

  // --- what waits, and whose turn it is ---
  logic [WAITING_BITS-1:0] waiting[COUNTERS];
  logic [INDEX_BITS-1:0] turn;
  logic first_round;  // what the memory holds is from before the reset
  wire last_turn = turn == INDEX_BITS'(COUNTERS - 1);
  always_ff @(posedge clk) begin
    for (int k = 0; k < COUNTERS; k++) begin
      waiting[k] <= (turn == INDEX_BITS'(k) ? '0 : waiting[k]) + WAITING_BITS'(pulses[k]);
      if (rst) waiting[k] <= '0;
    end
    turn <= last_turn ? '0 : turn + 1'b1;
    if (last_turn) first_round <= 1'b0;
    if (rst) begin
      turn <= '0;
      first_round <= 1'b1;
    end
  end

  // --- the counter in turn is in step 1, 2 in the cycles after it: read, then added and written ---
  (* ram_style = "block" *) logic [COUNT_BITS-1:0] counts[COUNTERS];
  logic [COUNT_BITS-1:0] count_1, sum_2;
  logic [WAITING_BITS-1:0] waiting_1;
  logic [INDEX_BITS-1:0] turn_1, turn_2, wanted_index;
  logic valid_1, valid_2, first_1, wanted, wanted_1;
  wire wanted_now = (wanted && turn == wanted_index) || (read && turn == read_index);
  always_ff @(posedge clk) begin
    count_1 <= counts[turn];
    waiting_1 <= waiting[turn];
    turn_1 <= turn;
    first_1 <= first_round;
    sum_2 <= (first_1 ? '0 : count_1) + COUNT_BITS'(waiting_1);
    turn_2 <= turn_1;
    if (valid_2) counts[turn_2] <= sum_2;

    valid_1 <= 1'b1;
    valid_2 <= valid_1;
    if (read) wanted_index <= read_index;
    wanted <= (wanted || read) && !wanted_now;
    wanted_1 <= wanted_now;
    done <= wanted_1;
    if (rst) {valid_1, valid_2, wanted, wanted_1, done} <= '0;
  end
  assign data = sum_2;

  // --- what must hold ---
  logic [$clog2(READ_CYCLES_MAX+1)-1:0] waited;
  always_ff @(posedge clk) begin
    waited <= rst || read ? '0 : waited == '1 ? waited : waited + 1'b1;
    if (!rst) begin
      assert (!read || !(wanted || wanted_1));
      assert (!done || int'(waited) < READ_CYCLES_MAX);
      for (int k = 0; k < COUNTERS; k++) assert (int'(waiting[k]) < COUNTERS || turn == INDEX_BITS'(k));
    end
  end
endmodule
