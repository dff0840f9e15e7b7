// SPDX-License-Identifier: Apache-2.0
// tx_ring under any driver, any times of the bus and any pauses behind it: it never asks for a descriptor that was not rung, nor for more than it
// has places for; a read stays within a batch; what is consumed was received. What its memories hold is left open, so it holds whatever stands in
// descriptors. The doorbell goes up to 255 here: that counts wrap at 2^32 is tested.
module tx_ring_formal (
    input logic         clk,
    input logic         rst,
    input logic [ 31:0] cfg_ring_mask,
    input logic [ 31:0] cfg_doorbell,
    input logic         read_ready,
    input logic [127:0] s_axis_tdata,
    input logic         s_axis_tvalid,
    input logic         s_axis_tlast,
    input logic         s_axis_tuser,
    input logic         m_axis_tready,
    input logic         gone_valid,
    input logic         gone_bad,
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
  tx_ring #(.ADDRESS_BITS(16), .BYTES_MAX(100), .DESTINATIONS(2)) dut (
      .now_ns('0),
      .cfg_enable(1'b1),
      .cfg_ring('0),
      .cfg_completions('0),
      .cfg_completion_mask('1),
      .gone_tag('0),
      .*
  );

  // The ring's size stands still, the doorbell goes forward only.
  logic running;
  logic [31:0] mask, doorbell;
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    {mask, doorbell} <= {cfg_ring_mask, cfg_doorbell};
    assume (cfg_ring_mask == 32'd7 || cfg_ring_mask == 32'd15 || cfg_ring_mask == 32'd63);
    assume (cfg_doorbell < 32'd256);
    if (running) begin
      assume (cfg_ring_mask == mask);
      assume (cfg_doorbell >= doorbell);
    end else assume (cfg_doorbell == '0);
    if (!rst) assert (!ring_fault);
  end
endmodule
