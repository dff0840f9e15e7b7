// SPDX-License-Identifier: Apache-2.0
// Frames from the core's clock to that of a MAC which must not run dry: a frame begins there a cycle after WORDS_AHEAD words of it have come, or
// PATIENCE_CYCLES after its first one did.
//
// Contract: the core gives a frame without a gap once it has begun, and as fast as the MAC takes it, less WORDS_AHEAD words a frame: so much apart
// the clocks may be. s_axis_tready as of async_fifo. While m_clk stands, frames wait.
module tx_crossing #(
    parameter int DEPTH = 16,  // words of eight bytes
    parameter int WORDS_AHEAD = 3,
    parameter int PATIENCE_CYCLES = 8  // a power of two
) (
    input  logic        s_clk,
    input  logic        s_rst,
    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,

    input  logic        m_clk,
    input  logic        m_rst,
    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser
);
  localparam int MORE_BITS = $clog2(DEPTH) + 1;
  localparam int PATIENCE_BITS = $clog2(PATIENCE_CYCLES);

  if (WORDS_AHEAD < 1 || WORDS_AHEAD > DEPTH / 2 || PATIENCE_CYCLES != 1 << PATIENCE_BITS) begin : g_check
    $fatal(1, "WORDS_AHEAD must be 1 to DEPTH / 2, PATIENCE_CYCLES a power of two (instance %m)");
  end

  logic [2:0] s_empty_bytes, m_empty_bytes;  // of the word, at its end
  always_comb begin
    s_empty_bytes = '0;
    for (int lane = 7; lane >= 1; lane--) if (!s_axis_tkeep[lane]) s_empty_bytes = 3'(8 - lane);
  end

  logic begun;  // the frame at the output may leave
  logic [PATIENCE_BITS-1:0] patience;
  logic valid;
  logic [MORE_BITS-1:0] more;
  async_fifo #(
      .WIDTH(69),
      .DEPTH(DEPTH)
  ) fifo (
      .s_clk,
      .s_rst,
      .s_data ({s_axis_tuser, s_axis_tlast, s_empty_bytes, s_axis_tdata}),
      .s_valid(s_axis_tvalid),
      .s_ready(s_axis_tready),
      .m_clk,
      .m_rst,
      .m_data ({m_axis_tuser, m_axis_tlast, m_empty_bytes, m_axis_tdata}),
      .m_valid(valid),
      .m_ready(begun && m_axis_tready),
      .m_more (more)
  );

  assign m_axis_tkeep  = 8'hFF >> m_empty_bytes;
  assign m_axis_tvalid = valid && begun;
  always_ff @(posedge m_clk) begin
    patience <= valid && !begun ? patience - 1'b1 : '1;
    if (m_axis_tvalid && m_axis_tready && m_axis_tlast) begun <= 1'b0;
    else if (valid && (more >= MORE_BITS'(WORDS_AHEAD - 1) || patience == '0)) begun <= 1'b1;
    if (m_rst) begun <= 1'b0;
  end
endmodule
