// SPDX-License-Identifier: Apache-2.0
// Says once to a consumer that went to sleep that completions have come, and loses none that came while it fell asleep.
//
// The consumer takes completions until there are none, arms with the number that it has taken, and sleeps. Armed, the interrupt is raised
//   at once                   if more completions than that are already there: they came after the consumer had looked;
//   cfg_completions of them   have come since, or
//   cfg_moderation_ns         have gone by since the first of them came. With 0, the first raises it.
// Raising disarms it: there is one interrupt for each time that it was armed, at most.
//
// Contract
//   * `irq` is a level. It is low for one cycle at least between two: a message may be sent for each rising edge, and none is missed.
//   * It falls when it is armed again. Without cfg_enable it is low, but what raised it is kept: it rises with cfg_enable.
//   * `completion` is a pulse for each completion that has left for memory, not before: so whoever is woken finds it, if the way of the
//     interrupt is not quicker than that of the write before it.
//   * Counts are modulo 2^32. One that is ahead of the completions (they were seen before they were counted here) is as good as none.
module interrupter (
    input logic clk,
    input logic rst,

    input logic [63:0] now_ns,
    input logic        completion,

    input logic        cfg_enable,
    input logic [31:0] cfg_completions,
    input logic [31:0] cfg_moderation_ns,
    input logic        arm,                // a pulse: with arm_count, which stands still until the next
    input logic [31:0] arm_count,          // completions that the consumer has taken since reset

    output logic        irq,
    output logic        armed,
    output logic        raised,  // whatever cfg_enable says
    output logic [31:0] count    // completions since reset
);
  logic fresh;  // armed in the cycle before
  logic timing;
  logic [32:0] since_ns;
  logic [32:0] waited_ns;  // as of the cycle before; the top bit: longer than any moderation, or the clock was set
  logic [31:0] behind;     // completions that the consumer has not taken
  wire unused = &{1'b0, now_ns[63:33]};
  wire is_behind = !behind[31] && behind != '0;
  wire long_enough = cfg_moderation_ns == '0 || (timing && waited_ns >= 33'(cfg_moderation_ns));
  wire fires = armed && is_behind && (fresh || behind >= cfg_completions || long_enough);

  always_ff @(posedge clk) begin
    if (completion) begin
      count  <= count + 32'd1;
      behind <= behind + 32'd1;
    end
    fresh <= 1'b0;
    if (armed && is_behind && !timing) begin
      timing   <= 1'b1;
      since_ns <= now_ns[32:0];
    end
    waited_ns <= timing ? now_ns[32:0] - since_ns : '0;
    if (fires) begin
      armed  <= 1'b0;
      raised <= 1'b1;
    end
    if (arm) begin
      armed  <= 1'b1;
      behind <= count - arm_count + 32'(completion);
      fresh  <= 1'b1;
      timing <= 1'b0;
      raised <= 1'b0;
    end
    if (rst) begin
      count  <= '0;
      armed  <= 1'b0;
      raised <= 1'b0;
    end
  end
  assign irq = raised && cfg_enable;

`ifndef SYNTHESIS
  always_ff @(posedge clk) if (!rst) a_one : assert (!(armed && raised));
`endif
endmodule
