// SPDX-License-Identifier: Apache-2.0
// Whose packet it is, by port and sender: all entries are compared at once, the lowest that fits wins and says where the packet goes.
//
// The answer to port and source_address stands two cycles later, by the table as it stood in the cycle that asked: whoever writes an entry
// under traffic sees answers of the old one or of the new one, never of half of each. Entries are written one a cycle; reset disables all.
// All numbers are as one writes them.
module match_table #(
    parameter int ENTRIES = 16,
    parameter int TARGET_BITS = 1
) (
    input logic clk,
    input logic rst,

    input logic                       table_write,
    input logic [$clog2(ENTRIES)-1:0] table_index,
    input logic                       table_enable,
    input logic [               15:0] table_port,
    input logic [               31:0] table_source_address,
    input logic [               31:0] table_source_mask,     // a zero bit: this bit of the sender's address may be anything
    input logic [    TARGET_BITS-1:0] table_target,          // where its packets go

    input  logic [           15:0] port,
    input  logic [           31:0] source_address,
    output logic                   hit,
    output logic [TARGET_BITS-1:0] hit_target
);
  localparam int INDEX_BITS = $clog2(ENTRIES);

  if (ENTRIES < 2 || ENTRIES > 256) begin : g_check
    $fatal(1, "ENTRIES must be 2 to 256 (instance %m)");
  end

  logic [ENTRIES-1:0] enabled, hits, target_write;
  logic [TARGET_BITS-1:0] written_target, targets[ENTRIES];

  // Targets are looked at a cycle after ports and senders, so they are written a cycle later.
  always_ff @(posedge clk) written_target <= table_target;

  for (genvar e = 0; e < ENTRIES; e++) begin : g_entry
    logic [15:0] entry_port;
    logic [31:0] entry_address, entry_mask;

    always_ff @(posedge clk) begin
      if (table_write && table_index == INDEX_BITS'(e)) begin
        enabled[e] <= table_enable;
        entry_port <= table_port;
        entry_address <= table_source_address;
        entry_mask <= table_source_mask;
      end
      target_write[e] <= table_write && table_index == INDEX_BITS'(e);
      if (target_write[e]) targets[e] <= written_target;
      hits[e] <= enabled[e] && port == entry_port && ((source_address ^ entry_address) & entry_mask) == '0;
      if (rst) enabled[e] <= 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    hit <= |hits;
    for (int e = ENTRIES - 1; e >= 0; e--) if (hits[e]) hit_target <= targets[e];
  end
endmodule
