// SPDX-License-Identifier: Apache-2.0
// The IPv4 groups that a port is a member of. What is written and is no group's address (224.0.0.0/4) makes an entry empty, as reset does.
//
// Contract: an entry is as written from the cycle after the write on. An index beyond the last entry writes nothing. GROUPS 0: one entry, always empty.
module group_table #(
    parameter  int GROUPS = 4,
    localparam int SLOTS  = GROUPS == 0 ? 1 : GROUPS
) (
    input logic clk,
    input logic rst,

    input logic        write,
    input logic [ 7:0] index,
    input logic [31:0] address,  // as one writes it

    output logic [SLOTS-1:0]                                    valid,
    output logic [SLOTS-1:0][nanet_pkg::IPV4_GROUP_BITS-1:0] groups  // less what all of them begin with
);
  if (GROUPS < 0 || GROUPS > 255) begin : g_check_groups
    $fatal(1, "GROUPS must be 0 to 255 (instance %m)");
  end

  always_ff @(posedge clk) begin
    for (int g = 0; g < SLOTS; g++) begin
      if (GROUPS != 0 && write && index == 8'(g)) begin
        groups[g] <= address[nanet_pkg::IPV4_GROUP_BITS-1:0];
        valid[g] <= address[31:nanet_pkg::IPV4_GROUP_BITS] == nanet_pkg::IPV4_GROUP_PREFIX;
      end
    end
    if (rst) valid <= '0;
    if (GROUPS == 0) groups <= '0;
  end
endmodule
