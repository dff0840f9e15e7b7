// SPDX-License-Identifier: Apache-2.0
// Words of 16 bytes to words of 8, a word in every cycle in which it is taken. Nothing is held: a wide word is taken with its last half.
module wide_to_words (
    input logic clk,
    input logic rst,

    input  logic [127:0] s_axis_tdata,
    input  logic [ 15:0] s_axis_tkeep,
    input  logic         s_axis_tvalid,
    output logic         s_axis_tready,
    input  logic         s_axis_tlast,

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast
);
  logic upper;
  wire last_half = upper || !s_axis_tkeep[8];
  assign m_axis_tdata = upper ? s_axis_tdata[127:64] : s_axis_tdata[63:0];
  assign m_axis_tkeep = upper ? s_axis_tkeep[15:8] : s_axis_tkeep[7:0];
  assign m_axis_tvalid = s_axis_tvalid;
  assign m_axis_tlast = s_axis_tlast && last_half;
  assign s_axis_tready = m_axis_tready && last_half;

  always_ff @(posedge clk) begin
    if (m_axis_tvalid && m_axis_tready) upper <= !last_half;
    if (rst) upper <= 1'b0;
  end
endmodule
