// SPDX-License-Identifier: Apache-2.0
// LO|FA|MO of a node: host and network interface watch each other, and neighbours tell each other what they see. docs/design/lofamo.md
//
// Contract
//   * The host is silent when no beat of it came for cfg_period_cycles, since reset or its last one; with its next beat it is not. A period of 0: it is not watched.
//   * `beats` is one more every BEAT_CYCLES: the host knows by it that the logic lives.
//   * `state` is for the neighbours: apelink tells it. Bit 0: the host is silent; the others are what the host says of itself with its last beat, 0 when it is well.
//   * Of each link: what the neighbour says of itself, or that nothing is heard. `changes` and `state_changes` are pulses when what is known of that one, or `state`, is another than
//     a cycle ago; `changed` is one when one of them is.
module lofamo #(
    parameter int BEAT_CYCLES = 1024
) (
    input logic clk,
    input logic rst,

    input  logic [31:0] cfg_period_cycles,
    input  logic        host_beat,           // the host writes its register,
    input  logic [ 6:0] host_says,           // with this
    output logic [31:0] beats,

    input  logic [ 5:0] link_up,
    input  logic [ 5:0] silent,
    input  logic [47:0] neighbour_state,     // a byte a link
    output logic [ 7:0] state,
    output logic [59:0] links,               // ten bits each: up, silent, and the neighbour's state
    output logic        changed,
    output logic [ 5:0] changes,
    output logic        state_changes
);
  logic [31:0] since_beat, since_count;
  logic host_silent;
  logic [6:0] said;
  assign state = {said, host_silent};
  always_ff @(posedge clk) begin
    if (since_beat != '1) since_beat <= since_beat + 1'b1;
    if (since_beat >= cfg_period_cycles) host_silent <= cfg_period_cycles != '0;
    if (host_beat) begin
      since_beat <= 32'd1;
      host_silent <= 1'b0;
      said <= host_says;
    end
    if (rst) since_beat <= '0;
    if (rst) {said, host_silent} <= '0;

    since_count <= since_count == 32'(BEAT_CYCLES - 1) ? '0 : since_count + 1'b1;
    if (since_count == 32'(BEAT_CYCLES - 1)) beats <= beats + 1'b1;
    if (rst) {since_count, beats} <= '0;
  end

  // A link of which nothing is heard says nothing of its neighbour.
  logic [67:0] was;
  for (genvar p = 0; p < 6; p++) begin : g_link
    wire heard = link_up[p] && !silent[p];
    always_ff @(posedge clk) links[10*p+:10] <= rst ? '0 : {heard ? neighbour_state[8*p+:8] : 8'd0, silent[p] && link_up[p], link_up[p]};
  end
  wire [67:0] differs = was ^ {links, state};
  always_ff @(posedge clk) begin
    was <= rst ? '0 : {links, state};
    changed <= differs != '0 && !rst;
    state_changes <= differs[7:0] != '0 && !rst;
    for (int p = 0; p < 6; p++) changes[p] <= differs[8+10*p+:10] != '0 && !rst;
  end
endmodule
