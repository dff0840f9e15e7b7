// SPDX-License-Identifier: Apache-2.0
// write_arbiter under any two writers: the words of a write are one writer's alone, who waits keeps what he offers, and the second, once he has waited
// PATIENCE_CYCLES, is next as soon as no write is in flight.
module write_arbiter_formal (
    input logic clk,
    input logic rst,
    input logic clear,
    input logic s0_valid,
    input logic s0_last,
    input logic [7:0] s0_data,
    input logic s1_valid,
    input logic s1_last,
    input logic [7:0] s1_data,
    input logic m_ready
);
  localparam int PATIENCE_CYCLES = 5;
  logic s0_ready, s1_ready, m_valid, m_second;
  logic [42:0] m_address;
  logic [13:0] m_bytes;
  logic [127:0] m_data;
  logic [0:0] m_tag;
  write_arbiter #(.PATIENCE_CYCLES(PATIENCE_CYCLES)) dut (
      .s0_address('0),
      .s0_bytes('0),
      .s0_data({120'd0, s0_data}),
      .s0_tag('0),
      .s1_address('1),
      .s1_bytes('1),
      .s1_data({120'd1, s1_data}),
      .s1_tag('1),
      .*
  );

  logic running, under_way, owner;
  logic [3:0] waited;
  wire takes = m_valid && m_ready;
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    if (takes) begin
      under_way <= !(m_second ? s1_last : s0_last);
      owner <= m_second;
    end
    if (!s1_valid || m_second) waited <= '0;
    else if (waited != 4'(PATIENCE_CYCLES)) waited <= waited + 4'd1;
    if (rst) {under_way, waited} <= '0;
    else begin
      assert (!under_way || m_second == owner);
      assert (m_valid == (m_second ? s1_valid : s0_valid));
      assert (s0_ready == (m_ready && !m_second) && s1_ready == (m_ready && m_second));
      assert (m_data == (m_second ? {120'd1, s1_data} : {120'd0, s0_data}));
      assert (m_address == {43{m_second}} && m_bytes == {14{m_second}} && m_tag == m_second);
      if (!under_way && m_second) assert (waited == 4'(PATIENCE_CYCLES) || (clear && !s0_valid));
      if (!under_way && s1_valid && waited == 4'(PATIENCE_CYCLES)) assert (m_second);
      assert (waited <= 4'(PATIENCE_CYCLES));
      assert (dut.open == under_way && (!under_way || dut.open_second == owner) && 4'(dut.waited) == waited);
    end
  end
endmodule
