// SPDX-License-Identifier: Apache-2.0
// Refused: is of a_clk and takes a signal of b_clk
module fed_by_the_reader (
    input  logic       a_clk,
    input  logic       a_rst,
    input  logic       b_clk,
    input  logic       b_rst,
    input  logic [7:0] a_data,
    input  logic       b_valid,
    output logic [7:0] b_data
);
  async_fifo fifo (
      .s_clk  (a_clk),
      .s_rst  (a_rst),
      .s_data (a_data),
      .s_valid(b_valid),  // of the other side
      .s_ready(),
      .m_clk  (b_clk),
      .m_rst  (b_rst),
      .m_data (b_data),
      .m_valid(),
      .m_ready(1'b1),
      .m_more ()
  );
endmodule
