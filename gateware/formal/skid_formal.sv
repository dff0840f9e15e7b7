// SPDX-License-Identifier: Apache-2.0
// skid under any stream and any pauses: what came in leaves once, in order, as it came; a word that waits stays; and two words find room.
module skid_formal (
    input logic       clk,
    input logic       rst,
    input logic [7:0] s_data,
    input logic       s_valid,
    input logic       m_ready
);
  logic s_ready, m_valid;
  logic [7:0] m_data;
  skid #(.DATA_BITS(8)) dut (.*);

  logic running;
  logic [1:0] held;  // words that are in, the older one first
  logic [7:0] older, younger;
  wire takes = s_valid && s_ready;
  wire leaves = m_valid && m_ready;
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    held <= held + 2'(takes) - 2'(leaves);
    if (leaves || held == '0) older <= held == 2'd2 ? younger : s_data;
    if (takes) younger <= s_data;
    if (rst) held <= '0;
    else begin
      assert (m_valid == (held != '0) && s_ready == (held != 2'd2) && held != 2'd3);
      assert (!m_valid || m_data == older);
      assert (held != 2'd2 || dut.second == younger);
    end
  end
endmodule
