// SPDX-License-Identifier: Apache-2.0
// Whose turn it is at an output, on one virtual channel: of the inputs that ask, those of links and those of local ports each in turn, and of the two kinds
// a local one after TRANSIT_TURNS of links.
//
// Contract
//   * `pick` is who of those that asked a cycle ago is next, one-hot, none in the cycle after `granted`, which says that it was served. It changes with who asks.
//   * With l inputs of links and n local ones: an input of a link that keeps asking is served after at most l - 1 of its kind and one local one for
//     each TRANSIT_TURNS of these and itself; a local one after at most n - 1 of its kind and TRANSIT_TURNS of links for each of these and itself.
module apenet_turn #(
    parameter int INPUTS = 18,
    parameter logic [INPUTS-1:0] LOCAL = '0,
    parameter int TRANSIT_TURNS = 1
) (
    input logic clk,
    input logic rst,

    input  logic [INPUTS-1:0] asks,
    input  logic              granted,
    output logic [INPUTS-1:0] pick
);
  if (TRANSIT_TURNS < 1 || TRANSIT_TURNS > 15) begin : g_check
    $fatal(1, "TRANSIT_TURNS must be 1 to 15 (instance %m)");
  end

  logic [INPUTS-1:0] after;      // of each kind, those after the one served last; if none of them asks, all count
  logic [3:0] turns;             // of links since the last local one
  wire local_due = turns == 4'(TRANSIT_TURNS);

  wire [INPUTS-1:0] first[2];
  for (genvar k = 0; k < 2; k++) begin : g_kind
    wire [INPUTS-1:0] kind = k == 1 ? LOCAL : ~LOCAL;
    wire [INPUTS-1:0] preferred = asks & kind & after;
    wire [INPUTS-1:0] candidates = preferred != '0 ? preferred : asks & kind;
    assign first[k] = candidates & (~candidates + 1'b1);
  end
  wire takes_local = (asks & LOCAL) != '0 && (local_due || (asks & ~LOCAL) == '0);
  wire [INPUTS-1:0] served_kind = (pick & LOCAL) != '0 ? LOCAL : ~LOCAL;

  always_ff @(posedge clk) begin
    pick <= granted ? '0 : takes_local ? first[1] : first[0];
    if (granted) begin
      after <= (after & ~served_kind) | (~(pick | (pick - 1'b1)) & served_kind);
      if ((pick & LOCAL) != '0) turns <= '0;
      else if (!local_due) turns <= turns + 1'b1;
    end
    if (rst) begin
      pick <= '0;
      after <= '0;
      turns <= '0;
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
