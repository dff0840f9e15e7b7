// SPDX-License-Identifier: Apache-2.0
// Where a packet leaves a node of the torus, and on which virtual channel. Combinational; docs/design/torus.md has the rule.
//
// Contract
//   * Ports: 0 to 5 are the links to the neighbours at x+1, x-1, y+1, y-1, z+1, z-1; from 6 on local ports. LINKS says which of the links there are.
//   * CAME is the port that the packet came by, VC the virtual channel on which it came; of a local port it is not looked at.
//   * Only without outside, no_port and turns_back are `port` (one-hot) and `vc` of use.
module apenet_route #(
    parameter int CAME = 6,
    parameter bit VC = 0,
    parameter int LINKS = 63,
    parameter int LOCALS = 1
) (
    input apenet_pkg::place_t at,
    input apenet_pkg::shape_t shape,

    input apenet_pkg::place_t to,
    input logic [3:0] to_port,  // of that node

    output logic [5+LOCALS:0] port,
    output logic vc,
    output logic leaves,      // by a link
    output logic [5:0] links, // that it goes in the dimension in which it leaves, the shorter way; no more than 32
    output logic outside,     // no node of the torus is there
    output logic no_port,     // no link of this node goes there, or it has no such local port
    output logic turns_back   // it came by a dimension after the one it has yet to go, as no packet does that keeps the order
);
  localparam logic [2:0] RING = CAME < 6 ? 3'd1 << CAME / 2 : '0;  // the dimension it came by, one-hot
  localparam logic [2:0] EARLIER = CAME < 6 ? RING - 3'd1 : '0;

  wire [2:0][6:0] place = {7'(at.z), 7'(at.y), 7'(at.x)};
  wire [2:0][6:0] target = {7'(to.z), 7'(to.y), 7'(to.x)};
  wire [2:0][6:0] nodes = {7'(shape.z), 7'(shape.y), shape.x};
  wire odd = at.x[0] ^ at.y[0] ^ at.z[0];

  logic [2:0] beyond, differs, up, wraps;
  logic [2:0][5:0] distance;
  for (genvar d = 0; d < 3; d++) begin : g_dimension
    // Twice the distance in + direction is compared with the nodes of the ring, from this ring and from the next; half a ring goes up if the place is even.
    wire ahead = target[d] > place[d];
    wire [9:0] twice = {2'b0, target[d], 1'b0} - {2'b0, place[d], !odd};
    wire from_next = 1'((twice - 10'(nodes[d])) >> 9);  // two sums, and one taken in the end
    wire from_this = 1'((twice + 10'(nodes[d])) >> 9);
    wire shorter = ahead ? from_next : from_this;
    wire pair = nodes[d] == 7'd2;  // either link leads to the other node
    assign beyond[d] = target[d] >= nodes[d];
    assign differs[d] = target[d] != place[d];
    wire enters = pair ? LINKS[2*d] : shorter;  // up, so that each of two cables carries one direction; or by the one that there is
    assign up[d] = RING[d] ? CAME[0] : enters;  // straight on: what came from below goes up
    wire [5:0] forward = target[d][5:0] - place[d][5:0] + (ahead ? 6'd0 : nodes[d][5:0]);  // the shorter one is no more than 32
    wire [5:0] backward = place[d][5:0] - target[d][5:0] + (ahead ? nodes[d][5:0] : 6'd0);
    assign distance[d] = shorter ? forward : backward;
    assign wraps[d] = up[d] ? place[d] + 7'd1 == nodes[d] : place[d] == '0;
  end

  logic [2:0] goes;  // the dimension in which it leaves, one-hot
  assign goes = differs & (~differs + 1'b1);
  assign leaves = differs != '0;
  assign outside = beyond != '0;
  assign turns_back = (differs & EARLIER) != '0;
  assign vc = (goes & wraps) != '0 || ((goes & RING) != '0 && VC);  // it stays on channel 1 up to its turn

  assign links = ({6{goes[0]}} & distance[0]) | ({6{goes[1]}} & distance[1]) | ({6{goes[2]}} & distance[2]);

  wire [5:0] link = {goes[2] && !up[2], goes[2] && up[2], goes[1] && !up[1], goes[1] && up[1], goes[0] && !up[0], goes[0] && up[0]};
  for (genvar l = 0; l < LOCALS; l++) begin : g_local
    assign port[6+l] = !leaves && to_port == 4'(l);
  end
  assign port[5:0] = link & LINKS[5:0];
  assign no_port = port == '0;
endmodule
