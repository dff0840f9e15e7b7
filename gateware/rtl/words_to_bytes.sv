// SPDX-License-Identifier: Apache-2.0
// Narrows a stream of words of eight bytes to bytes: the low byte goes first.
//
// Contract
//   * The first byte of a word is offered the cycle after the word was taken. A word is taken in the cycle in which the last byte of the one
//     before leaves, so a byte leaves in every cycle if a word comes every eight.
//   * m_axis_tready reaches s_axis_tready without a register.
module words_to_bytes (
    input logic clk,
    input logic rst,

    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,   // all ones but with tlast, then from lane 0 without a hole
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,

    output logic [7:0] m_axis_tdata,
    output logic       m_axis_tvalid,
    input  logic       m_axis_tready,
    output logic       m_axis_tlast,
    output logic       m_axis_tuser
);
  logic [63:0] data;
  logic [7:0] keep;  // bytes still to go, none: nothing to send
  logic last, user;
  wire leaves = m_axis_tvalid && m_axis_tready;
  assign s_axis_tready = !keep[0] || (m_axis_tready && !keep[1]);
  assign m_axis_tdata = data[7:0];
  assign m_axis_tvalid = keep[0];
  assign m_axis_tlast = last && !keep[1];
  assign m_axis_tuser = m_axis_tlast && user;

  always_ff @(posedge clk) begin
    if (leaves) begin
      data <= data >> 8;
      keep <= keep >> 1;
    end
    if (s_axis_tvalid && s_axis_tready) begin
      data <= s_axis_tdata;
      keep <= s_axis_tkeep;
      last <= s_axis_tlast;
      user <= s_axis_tuser;
    end
    if (rst) keep <= '0;
  end

  // --- what must hold ---
  logic waits;
  logic [9:0] waiting;
  always_ff @(posedge clk) begin
    waits <= !rst && m_axis_tvalid && !m_axis_tready;
    waiting <= {m_axis_tdata, m_axis_tlast, m_axis_tuser};
    if (!rst) begin
      assert (!waits || (m_axis_tvalid && waiting == {m_axis_tdata, m_axis_tlast, m_axis_tuser}));
      assert (!s_axis_tvalid || s_axis_tlast || s_axis_tkeep == '1);
      assert (!s_axis_tvalid || (s_axis_tkeep[0] && (s_axis_tkeep & (s_axis_tkeep + 1'b1)) == '0));
    end
  end
endmodule
