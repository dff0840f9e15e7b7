// SPDX-License-Identifier: Apache-2.0
// Whose turn it is at an output, on one virtual channel: of the inputs that ask, those that go straight on and those that enter (its ring, from a local port or
// from a dimension before) each in turn; of the two kinds one that enters once it is due, else one that goes straight on.
//
// Contract
//   * `pick` is who of those that asked a cycle ago is next, one-hot, none in the cycle after `granted`, which says that it was served. It changes with who asks.
//   * `yields`: it enters and is not due, so no one who goes straight on asks on this channel.
//   * Within a kind an input that keeps asking is served after at most one packet of each of the others.
module apenet_turn #(
    parameter int INPUTS = 18,
    parameter logic [INPUTS-1:0] ENTERS = '0
) (
    input logic clk,
    input logic rst,

    input  logic [INPUTS-1:0] asks,
    input  logic [INPUTS-1:0] due,
    input  logic              granted,
    output logic [INPUTS-1:0] pick,
    output logic              yields
);
  logic [INPUTS-1:0] after;      // of each kind, those after the one served last; if none of them asks, all count

  wire [INPUTS-1:0] first[2];
  for (genvar k = 0; k < 2; k++) begin : g_kind
    wire [INPUTS-1:0] kind = k == 1 ? ENTERS : ~ENTERS;
    wire [INPUTS-1:0] preferred = asks & kind & after;
    wire [INPUTS-1:0] candidates = preferred != '0 ? preferred : asks & kind;
    assign first[k] = candidates & (~candidates + 1'b1);
  end
  wire is_due = (first[1] & due) != '0;
  wire none_goes_on = (asks & ~ENTERS) == '0;
  wire takes_entering = is_due || none_goes_on;
  wire [INPUTS-1:0] served_kind = (pick & ENTERS) != '0 ? ENTERS : ~ENTERS;

  always_ff @(posedge clk) begin
    pick <= granted ? '0 : takes_entering ? first[1] : first[0];
    yields <= none_goes_on && !is_due;
    if (granted) after <= (after & ~served_kind) | (~(pick | (pick - 1'b1)) & served_kind);
    if (rst) begin
      pick <= '0;
      after <= '0;
    end
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert ($onehot0(pick));
      assert (!granted || pick != '0);
    end
  end
endmodule
