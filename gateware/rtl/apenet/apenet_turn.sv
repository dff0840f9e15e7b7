// SPDX-License-Identifier: Apache-2.0
// Whose turn it is at an output, on one virtual channel: of the inputs that ask, those of links and those of local ports each in turn, and of the two kinds
// one after the other. Those that are `held` come after those that go straight on.
//
// Contract
//   * `pick` is who of those that asked a cycle ago is next, one-hot, none in the cycle after `granted`, which says that it was served. It changes with who asks.
//   * While none is held: with l inputs of links and n local ones an input of a link that keeps asking is served after at most l - 1 of its kind and one local one for
//     each of these and itself; a local one after at most n - 1 of its kind and one of links for each of these and itself.
//   * One that is held is picked only if no one who goes straight on asks; `yields` says so.
module apenet_turn #(
    parameter int INPUTS = 18,
    parameter logic [INPUTS-1:0] LOCAL = '0,
    parameter logic [INPUTS-1:0] STRAIGHT = '0
) (
    input logic clk,
    input logic rst,

    input  logic [INPUTS-1:0] asks,
    input  logic [INPUTS-1:0] held,
    input  logic              granted,
    output logic [INPUTS-1:0] pick,
    output logic              yields
);
  logic [INPUTS-1:0] after;  // of each kind, those after the one served last; if none of them asks, all count
  logic local_due;           // the last one was of a link

  wire goes_on = (asks & STRAIGHT) != '0;
  wire [INPUTS-1:0] may = asks & ~(held & {INPUTS{goes_on}});
  wire [INPUTS-1:0] first[2];
  for (genvar k = 0; k < 2; k++) begin : g_kind
    wire [INPUTS-1:0] kind = k == 1 ? LOCAL : ~LOCAL;
    wire [INPUTS-1:0] preferred = may & kind & after;
    wire [INPUTS-1:0] candidates = preferred != '0 ? preferred : may & kind;
    assign first[k] = candidates & (~candidates + 1'b1);
  end
  wire takes_local = (may & LOCAL) != '0 && (local_due || (may & ~LOCAL) == '0);
  wire [INPUTS-1:0] served_kind = (pick & LOCAL) != '0 ? LOCAL : ~LOCAL;

  always_ff @(posedge clk) begin
    pick <= granted ? '0 : takes_local ? first[1] : first[0];
    yields <= ((takes_local ? first[1] : first[0]) & held) != '0;
    if (granted) begin
      after <= (after & ~served_kind) | (~(pick | (pick - 1'b1)) & served_kind);
      local_due <= (pick & LOCAL) == '0;
    end
    if (rst) begin
      pick <= '0;
      after <= '0;
      local_due <= 1'b0;
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
