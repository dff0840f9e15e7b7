// SPDX-License-Identifier: Apache-2.0
// Words of 8 bytes to words of 16: two make one, and what is alone at the end of a packet is the lower half of its last.
//
// A wide word is there with its second half, or its packet's end: nothing waits, and s_axis_tready follows m_axis_tready without a register.
module words_to_wide (
    input logic clk,
    input logic rst,

    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,

    output logic [127:0] m_axis_tdata,
    output logic [ 15:0] m_axis_tkeep,
    output logic         m_axis_tvalid,
    input  logic         m_axis_tready,
    output logic         m_axis_tlast
);
  logic upper;
  logic [63:0] lower;
  assign m_axis_tdata = upper ? {s_axis_tdata, lower} : 128'(s_axis_tdata);
  assign m_axis_tkeep = upper ? {s_axis_tkeep, 8'hFF} : {8'h00, s_axis_tkeep};
  assign m_axis_tvalid = s_axis_tvalid && (upper || s_axis_tlast);
  assign m_axis_tlast = s_axis_tlast;
  assign s_axis_tready = !m_axis_tvalid || m_axis_tready;

  always_ff @(posedge clk) begin
    if (s_axis_tvalid && s_axis_tready) begin
      upper <= !upper && !s_axis_tlast;
      lower <= s_axis_tdata;
    end
    if (rst) upper <= 1'b0;
  end

  // --- what must hold ---
  always_ff @(posedge clk) if (!rst && s_axis_tvalid) assert (s_axis_tlast || s_axis_tkeep == '1);
endmodule
