// SPDX-License-Identifier: Apache-2.0
// Round robin: of those who ask, the first behind the one who was served last. Combinational but for the memory of who that was.
//
// Contract: `grant` is one-hot, and zero only if no one asks. `taken` says that the grant of this cycle is used; the one granted is then last in
// line. Whoever keeps asking is served after at most PORTS - 1 others.
module arbiter_rr #(
    parameter int PORTS = 4
) (
    input logic clk,
    input logic rst,

    input  logic [PORTS-1:0] request,
    input  logic             taken,
    output logic [PORTS-1:0] grant
);
  if (PORTS < 1 || PORTS > 64) begin : g_check
    $fatal(1, "PORTS must be 1 to 64 (instance %m)");
  end

  logic [PORTS-1:0] behind;  // the ports behind the one served last; if none of them asks, all count
  wire [PORTS-1:0] preferred = request & behind;
  wire [PORTS-1:0] candidates = preferred != '0 ? preferred : request;
  assign grant = candidates & (~candidates + 1'b1);

  always_ff @(posedge clk) begin
    if (taken && grant != '0) behind <= ~(grant | (grant - 1'b1));
    if (rst) behind <= '0;
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert ($onehot0(grant));
      assert ((grant & ~request) == '0);
      assert ((grant == '0) == (request == '0));
      assert ((~behind & (~behind + 1'b1)) == '0);  // the ports that are not behind are port 0 and those next to it
    end
  end

  // How many were served while a port asked, and how many still can be before it.
  for (genvar p = 0; p < PORTS; p++) begin : g_turns
    logic [7:0] served;
    logic [7:0] ahead;
    always_comb begin
      ahead = behind[p] ? 8'd0 : 8'(p);
      for (int i = 0; i < PORTS; i++) if (behind[i] && (i < p || !behind[p])) ahead += 8'd1;
    end
    always_ff @(posedge clk) begin
      if (rst || !request[p]) served <= '0;
      else if (taken) served <= grant[p] ? '0 : served + 8'd1;
      if (!rst) begin
        assert (int'(served) + int'(ahead) < PORTS);
      end
    end
  end
endmodule
