// SPDX-License-Identifier: Apache-2.0
// rdma_regions under any keys and any look-ups, beside a table of its own that is read in one cycle: what is allowed is just what the table said when it was
// asked, lies within its region, and without the region's nonce nothing is.
module rdma_regions_formal (
    input logic clk,
    input logic rst,
    input logic key_write,
    input logic key_index,
    input logic key_valid,
    input logic key_readable,
    input logic key_writable,
    input logic [31:0] key_nonce,
    input logic [43:0] key_start,
    input logic [40:0] key_bytes,
    input logic [7:0] s_region,
    input logic [31:0] s_nonce,
    input logic [39:0] s_offset,
    input logic [17:0] s_bytes,
    input logic s_is_write
);
  logic allowed, bad_key, bad_rights, bad_bounds;
  logic [43:0] address;
  rdma_regions #(.REGIONS(2), .ADDRESS_BITS(44)) dut (.*);

  // One region, of any number: what holds of it holds of each.
  (* anyconst *) logic chosen;
  logic there, readable, writable;
  logic [31:0] nonce;
  logic [43:0] start;
  logic [40:0] size;
  logic running;
  initial running = 1'b0;

  // What was asked, and what the table said of it, one and two cycles ago.
  typedef struct packed {
    logic asked;  // of this region
    logic beyond;  // of no region that there is
    logic key;
    logic right;
    logic inside;
    logic [43:0] address;
    logic [43:0] start;
    logic [40:0] size;
    logic [17:0] bytes;
  } said_t;
  said_t one, two, now;
  always_comb begin
    now.asked = s_region == {7'd0, chosen};
    now.beyond = s_region > 8'd1;
    now.key = there && s_nonce == nonce;
    now.right = s_is_write ? writable : readable;
    now.inside = 42'(s_offset) + 42'(s_bytes) <= 42'(size);
    now.address = start + 44'(s_offset);
    now.start = start;
    now.size = size;
    now.bytes = s_bytes;
  end
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    assume (!(key_write && key_valid) || (key_start[3:0] == '0 && key_bytes != '0));
    if (key_write && key_index == chosen) begin
      {there, readable, writable, nonce} <= {key_valid, key_readable, key_writable, key_nonce};
      start <= key_start;
      size <= key_bytes;
    end
    one <= now;
    two <= one;
    if (rst) begin
      there <= 1'b0;
      one <= '0;
      two <= '0;
    end else begin
      assert (!two.asked || allowed == (two.key && two.right && two.inside));
      assert (!two.beyond || !allowed);
      assert (!two.asked || !allowed || (address == two.address && 45'(address - two.start) + 45'(two.bytes) <= 45'(two.size)));
      assert (!two.asked || (bad_key == !two.key && bad_rights == (two.key && !two.right) && bad_bounds == (two.key && two.right && !two.inside)));
      // What the module holds is what the table holds.
      assert (dut.valid[chosen] == there);
      if (there) assert (dut.regions[chosen].nonce == nonce && dut.regions[chosen].start == start && dut.regions[chosen].bytes == size &&
                         dut.regions[chosen].readable == readable && dut.regions[chosen].writable == writable);
      if (one.asked) assert (one.key == (dut.there && dut.nonce == dut.region.nonce));
      if (one.asked && one.key) assert (one.right == (dut.is_write ? dut.region.writable : dut.region.readable) && one.inside == (dut.ends <= dut.region.bytes) &&
                                        one.address == dut.region.start + 44'(dut.offset) && one.start == dut.region.start && one.size == dut.region.bytes &&
                                        42'(dut.offset) + 42'(one.bytes) == 42'(dut.ends));
      if (one.beyond) assert (!dut.there);
    end
  end
endmodule
