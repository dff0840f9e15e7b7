// SPDX-License-Identifier: Apache-2.0
// tx_ring under any driver that keeps the rules, any times of the bus and any pauses behind it, enabled and disabled as often as one likes:
//   * it asks for each descriptor that was rung once, in order, where it lies, and never for one that was not rung; a read stays within a batch and within
//     the ring; no more are in flight than the ring has entries, nor wait than there are places for;
//   * it writes a completion for each packet that is gone, in order, where it belongs, with its number, time, tag and kind, and no other word;
//   * it begins anew only when everything that was asked for is gone, and says busy until then.
// What its memories hold is left open, so it holds whatever stands in descriptors. The doorbell goes up to 255 here: that counts wrap at 2^32 is tested.
module tx_ring_formal (
    input logic         clk,
    input logic         rst,
    input logic         cfg_enable,
    input logic [ 15:0] cfg_ring,
    input logic [ 31:0] cfg_ring_mask,
    input logic [ 31:0] cfg_doorbell,
    input logic [ 15:0] cfg_completions,
    input logic [ 31:0] cfg_completion_mask,
    input logic         read_ready,
    input logic [127:0] s_axis_tdata,
    input logic         s_axis_tvalid,
    input logic         s_axis_tlast,
    input logic         s_axis_tuser,
    input logic         m_axis_tready,
    input logic         gone_valid,
    input logic         gone_bad,
    input logic [ 63:0] gone_ns,
    input logic [ 63:0] gone_tag,
    input logic         write_ready
);
  logic read_valid, s_axis_tready, m_axis_tvalid, m_axis_tlast, m_axis_tuser, gone_ready, write_valid, write_last;
  logic busy, ring_fault, count_sent, count_refused, count_unreadable;
  logic [15:0] read_address, write_address;
  logic [13:0] read_bytes;
  logic [127:0] m_axis_tdata, write_data;
  logic [6:0] m_meta_bytes;
  logic [0:0] m_meta_destination;
  logic [63:0] m_meta_tag;
  logic [31:0] consumed;
  logic m_command_valid, m_command_ready, m_command_good;
  logic [511:0] m_command;
  assign m_command_ready = 1'b0;
  tx_ring #(.ADDRESS_BITS(16), .BYTES_MAX(100), .DESTINATIONS(2)) dut (.*);

  // --- the driver: settings stand still, the doorbell goes forward while the ring is enabled, and is 0 when it is enabled again, with nothing in flight ---
  logic running, enabled, began_anew;
  logic [31:0] ring_mask, doorbell, completion_mask;
  logic [15:0] ring, completions;
  logic [31:0] asked, pushed, gone;  // since the start
  wire [31:0] entries = cfg_ring_mask + 32'd1;
  wire [31:0] held = cfg_doorbell - gone;
  wire begins_anew = !cfg_enable && !busy;
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    {ring, ring_mask, completions, completion_mask} <= {cfg_ring, cfg_ring_mask, cfg_completions, cfg_completion_mask};
    {doorbell, enabled, began_anew} <= {cfg_doorbell, cfg_enable, begins_anew};
    assume (cfg_ring_mask == 32'd7 || cfg_ring_mask == 32'd15 || cfg_ring_mask == 32'd63);
    assume (cfg_completion_mask == 32'd7 || cfg_completion_mask == 32'd63);
    assume (cfg_ring[8:0] == '0 && cfg_completions[3:0] == '0);
    assume (cfg_doorbell < 32'd256);
    if (running) begin
      assume ({cfg_ring, cfg_ring_mask, cfg_completions, cfg_completion_mask} == {ring, ring_mask, completions, completion_mask});
      if (cfg_enable && enabled) assume (cfg_doorbell >= doorbell);
      else if (cfg_enable) assume (began_anew && cfg_doorbell == '0 && doorbell == '0);
      else assume (cfg_doorbell == doorbell || (cfg_doorbell == '0 && begins_anew));
      if (cfg_enable) assume (held <= entries);
    end else assume (cfg_doorbell == '0);
  end

  // --- descriptors ---
  wire [31:0] number = 32'(read_bytes) >> 6;
  wire [31:0] at = asked & cfg_ring_mask;
  always_ff @(posedge clk) begin
    if (dut.asks_descriptors) asked <= asked + number;
    if (dut.pushes) pushed <= pushed + 32'd1;
    if (gone_ready) gone <= gone + 32'd1;
    if (rst || begins_anew) {asked, pushed, gone} <= '0;
    if (!rst) begin
      if (dut.asks_descriptors) begin
        assert (read_bytes[5:0] == '0 && number != '0 && number <= 32'd8);
        assert (number <= cfg_doorbell - asked && cfg_doorbell - asked <= entries);
        assert (at + number <= entries && 32'(at[2:0]) + number <= 32'd8);
        assert (read_address == cfg_ring + 16'({at, 6'd0}));
        assert (asked + number - gone <= entries);
      end
      assert (asked - gone <= 32'd64);
      if (asked != gone) assert (busy);
      assert (!ring_fault);
      assert (dut.asked == asked && dut.received == pushed && consumed == gone);
      if (asked != pushed) assert (dut.step_there);
    end
  end

  // --- completions ---
  logic [1:0] word;
  logic [128:0] waiting;
  logic waits;
  wire takes = write_valid && write_ready;
  always_ff @(posedge clk) begin
    if (takes) word <= word + 2'd1;
    waits <= gone_valid && !gone_ready;
    waiting <= {gone_bad, gone_ns, gone_tag};
    if (rst) {word, waits} <= '0;
    else begin
      if (waits) assume (gone_valid && waiting == {gone_bad, gone_ns, gone_tag});
      assert (write_valid == gone_valid && gone_ready == (takes && word == 2'd3) && write_last == (word == 2'd3));
      assert (write_address == cfg_completions + 16'({gone & cfg_completion_mask, 6'd0}));
      case (word)
        2'd0: assert (write_data == {gone_bad ? 64'd0 : gone_ns, 64'd0});
        2'd1: assert (write_data == {64'd0, gone_tag});
        2'd2: assert (write_data == {72'd0, gone_bad ? contract_pkg::KIND_ERROR : contract_pkg::KIND_PACKET_SENT, 48'd0});
        2'd3: assert (write_data == {32'(gone + 32'd1), 96'd0});
      endcase
      assert (dut.completion_word == word && (word == '0 || waits || takes || gone_valid));
      if (word != '0) assert (gone_valid && dut.next_address == cfg_completions + 16'({(gone + 32'd1) & cfg_completion_mask, 6'd0}));
    end
  end
endmodule
