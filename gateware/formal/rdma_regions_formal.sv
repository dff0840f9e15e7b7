// SPDX-License-Identifier: Apache-2.0
// rdma_regions under any keys, written, taken away and guessed in any cycle, and any question: what is allowed lies within the region that is named, whose key it
// is, with the right that it needs, as the table stood when it was asked; all of that is allowed; and what is not has one reason.
module rdma_regions_formal (
    input logic clk,
    input logic rst,
    input logic key_write,
    input logic [1:0] key_index,
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
  rdma_regions #(.REGIONS(4), .ADDRESS_BITS(44)) dut (.*);

  typedef struct packed {
    logic valid, readable, writable;
    logic [31:0] nonce;
    logic [43:0] start;
    logic [40:0] bytes;
  } key_t;
  typedef struct packed {
    logic of_watched;  // and not in a reset
    logic [31:0] nonce;
    logic [39:0] offset;
    logic [17:0] bytes;
    logic is_write;
  } question_t;
  logic running, live, live_2;
  logic [7:0] watched;  // any region that a packet can name, and stays
  wire there = watched[7:2] == '0;
  key_t key, key_1, key_2;  // that is registered, and was so many cycles ago
  question_t question_1, question_2;
  wire good_key = key_2.valid && question_2.nonce == key_2.nonce;
  wire rights = question_2.is_write ? key_2.writable : key_2.readable;
  wire bounds = 42'(question_2.offset) + 42'(question_2.bytes) <= 42'(key_2.bytes);
  wire [45:0] first = 46'(address), beyond = first + 46'(question_2.bytes);
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    watched <= watched;
    // The driver's regions are not empty, begin at a multiple of 16, and end before the addresses do.
    assume (key_bytes != '0 && key_start[3:0] == '0 && 45'(key_start) + 45'(key_bytes) <= 45'h100000000000);
    if (key_write && there && key_index == watched[1:0]) key <= '{key_valid, key_readable, key_writable, key_nonce, key_start, key_bytes};
    {key_1, key_2} <= {key, key_1};
    {live, live_2} <= {1'b1, live};
    question_1 <= '{s_region == watched, s_nonce, s_offset, s_bytes, s_is_write};
    question_2 <= question_1;
    if (rst) {key.valid, live, live_2} <= '0;
    else begin
      if (live_2) assert ($onehot({allowed, bad_key, bad_rights, bad_bounds}));
      if (live_2 && question_2.of_watched) begin
        assert (bad_key == !good_key);
        assert (bad_rights == (good_key && !rights));
        assert (bad_bounds == (good_key && rights && !bounds));
        if (allowed) assert (good_key && rights && there);
        if (allowed && question_2.bytes != '0) begin  // of no bytes the place may be the end of all addresses
          assert (first == 46'(key_2.start) + 46'(question_2.offset));
          assert (first >= 46'(key_2.start) && beyond <= 46'(key_2.start) + 46'(key_2.bytes));
        end
      end
`ifdef HOLDS
      // For induction.
      assert (there || !key.valid);
      assert (!key.valid || 45'(key.start) + 45'(key.bytes) <= 45'h100000000000);
      if (there) assert (dut.valid[watched[1:0]] == key.valid);
      if (key.valid) assert (dut.regions[watched[1:0]] == {key.readable, key.writable, key.nonce, key.start, key.bytes});
      if (live) begin
        assert (there || !key_1.valid);
        assert (!key_1.valid || 45'(key_1.start) + 45'(key_1.bytes) <= 45'h100000000000);
        assert (dut.nonce == question_1.nonce && dut.is_write == question_1.is_write && dut.offset == question_1.offset);
        assert (dut.ends == 41'(question_1.offset) + 41'(question_1.bytes));
        if (question_1.of_watched) assert (dut.there == key_1.valid);
        if (question_1.of_watched && key_1.valid) assert (dut.region == {key_1.readable, key_1.writable, key_1.nonce, key_1.start, key_1.bytes});
      end
      if (live_2) assert (live);
`endif
    end
  end
endmodule
