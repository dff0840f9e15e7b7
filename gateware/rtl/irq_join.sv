// SPDX-License-Identifier: Apache-2.0
// One line for the interrupts of several sources, each a level as of interrupter.
//
// Contract
//   * `irq` is high when a source is, a cycle later. It is low for a cycle when one rises while it is high: a message may be sent for each rising edge of
//     it, and after each rising of a source that stays high one comes, two cycles later at the latest.
//   * Who gets a message asks all sources: one may stand for several.
module irq_join #(
    parameter int SOURCES = 2
) (
    input logic clk,
    input logic rst,

    input  logic [SOURCES-1:0] levels,
    output logic               irq
);
  logic [SOURCES-1:0] was;
  always_ff @(posedge clk) begin
    was <= levels;
    irq <= levels != '0 && !(irq && (levels & ~was) != '0) && !rst;
  end
endmodule
