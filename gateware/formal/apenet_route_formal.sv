// SPDX-License-Identifier: Apache-2.0
// No deadlock on a ring of four, of the dimension y, whatever comes into it: each channel, of each direction and virtual channel, has room for one packet, which
// goes where apenet_route says. Packets come in at each node from its local port and from the links of x on either channel, for any node, at any time. One packet
// moves at a time, any of those that can: either into a channel that is free or, where it leaves the ring, out. Both ways at ties: the parity of x is free.
// Then as long as there is a packet one can move, and each move is one less of those that are left.
module apenet_route_formal (
    input logic clk,
    input logic rst,
    input logic [5:0] mover,   // a channel, or from 16 on an entry
    input logic [1:0] target,  // of what comes in
    input logic odd
);
  // A channel: {the node that sends, down, virtual channel}; its packet waits at the next node.
  logic [15:0] full;
  logic [15:0][1:0] to;

  wire [15:0] leaves, good, moves;
  wire [15:0][3:0] wants;
  wire [15:0][2:0] left;  // moves of its packet
  for (genvar c = 0; c < 16; c++) begin : g_channel
    localparam int SENDER = c / 4;
    localparam bit DOWN = c / 2 % 2 == 1;
    localparam int AT = (SENDER + (DOWN ? 3 : 1)) % 4;
    wire [6:0] port;
    wire vc, outside, no_port, turns_back;
    apenet_route #(
        .CAME(DOWN ? 2 : 3),
        .VC(c % 2 == 1)
    ) i_route (
        .at({5'd0, 5'(AT), 6'd0}),
        .shape({6'd1, 6'd4, 7'd2}),
        .to({5'd0, 3'd0, to[c], 6'd0}),
        .to_port(4'd0),
        .port,
        .vc,
        .leaves(leaves[c]),
        .links(),
        .outside,
        .no_port,
        .turns_back
    );
    wire [1:0] ahead = DOWN ? 2'(AT) - to[c] : to[c] - 2'(AT);
    assign left[c] = 3'(ahead) + 3'd1;
    assign wants[c] = {2'(AT), port[3], vc};
    assign good[c] = !outside && !no_port && !turns_back && port == (!leaves[c] ? 7'h40 : DOWN ? 7'h08 : 7'h04);
    assign moves[c] = full[c] && (!leaves[c] || !full[wants[c]]);
`ifdef HOLDS
    // For induction: it came the shorter way, and is on channel 1 from the wrap link on.
    localparam bit WRAP = SENDER == (DOWN ? 0 : 3), AFTER_WRAP = SENDER == (DOWN ? 3 : 0);
    always_ff @(posedge clk) begin
      if (!rst && full[c]) begin
        assert (good[c]);
        assert (ahead <= 2'd1);
        assert (c % 2 == 1 ? WRAP || (AFTER_WRAP && ahead == 2'd0) : !WRAP);
      end
    end
`endif
  end

  // --- what comes in: at each node from the local port, and from each link of x on each channel ---
  wire [19:0] enters;
  wire [19:0][3:0] entered;
  for (genvar e = 0; e < 20; e++) begin : g_entry
    localparam int AT = e / 5;
    localparam int CAME = e % 5 == 4 ? 6 : e % 5 / 2;
    wire [6:0] port;
    wire vc, outside, no_port, turns_back;
    apenet_route #(
        .CAME(CAME),
        .VC(e % 5 % 2 == 1)
    ) i_route (
        .at({5'd0, 5'(AT), 5'd0, odd}),
        .shape({6'd1, 6'd4, 7'd2}),
        .to({5'd0, 3'd0, target, 5'd0, odd}),
        .to_port(4'd0),
        .port,
        .vc,
        .leaves(enters[e]),
        .links(),
        .outside,
        .no_port,
        .turns_back
    );
    assign entered[e] = {2'(AT), port[3], vc};
  end

  logic running, moved;
  logic [5:0] all_left, all_left_before;
  initial running = 1'b0;
  wire [3:0] channel = mover[3:0];
  wire [5:0] entry = mover - 6'd16;
  always_comb begin
    all_left = '0;
    for (int c = 0; c < 16; c++) if (full[c]) all_left += 6'(left[c]);
  end
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    all_left_before <= all_left;
    moved <= mover < 6'd16 && moves[channel];
    if (mover < 6'd16) begin
      if (moves[channel]) begin
        full[channel] <= 1'b0;
        if (leaves[channel]) begin
          full[wants[channel]] <= 1'b1;
          to[wants[channel]] <= to[channel];
        end
      end
    end else if (mover < 6'd36) begin
      if (enters[entry] && !full[entered[entry]]) begin
        full[entered[entry]] <= 1'b1;
        to[entered[entry]] <= target;
      end
    end
    if (rst) full <= '0;
    if (rst) moved <= 1'b0;
  end

  always_ff @(posedge clk) begin
    if (running && !rst) begin
      assert (full == '0 || moves != '0);
`ifdef HOLDS
      assert (!moved || all_left == all_left_before - 6'd1);
`endif
    end
  end
endmodule
