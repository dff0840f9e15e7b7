// SPDX-License-Identifier: Apache-2.0
// arbiter_rr under any requests: what its assertions say holds for ever, the bound on waiting among it.
module arbiter_rr_formal (
    input logic       clk,
    input logic       rst,
    input logic [4:0] request,
    input logic       taken
);
  logic [4:0] grant;
  arbiter_rr #(.PORTS(5)) dut (.*);

  initial assume (rst);
endmodule
