// SPDX-License-Identifier: Apache-2.0
// Puts pieces of one to four 16-bit halves together, without a hole, to packets of 64-bit words.
//
// Contract
//   * A piece is taken with s_valid and s_ready. s_flush, with s_ready and without s_valid, ends the packet: what is held leaves with m_axis_tlast. At least one
//     piece was taken since the flush before.
//   * Up to four halves are held until more come or the packet ends, so no word leaves before it is known whether it is the last.
//   * s_meta stands beside the words that leave because of this piece or flush.
module event_gather #(
    parameter int META_BITS = 1
) (
    input logic clk,
    input logic rst,

    input  logic [         63:0] s_data,
    input  logic [          2:0] s_halves,  // 1 to 4; the others are not looked at
    input  logic [META_BITS-1:0] s_meta,
    input  logic                 s_valid,
    input  logic                 s_flush,
    output logic                 s_ready,

    output logic [         63:0] m_axis_tdata,
    output logic [          7:0] m_axis_tkeep,
    output logic                 m_axis_tvalid,
    input  logic                 m_axis_tready,
    output logic                 m_axis_tlast,
    output logic [META_BITS-1:0] m_meta
);
  logic [63:0] held;  // zeros where nothing is held
  logic [2:0] held_halves;
  wire [2:0] taken = s_valid ? s_halves : 3'd0;
  wire [3:0] total = 4'(held_halves) + 4'(taken);
  wire [127:0] both = 128'(held) | (128'(event_pkg::kept(s_data, taken)) << {held_halves, 4'b0});
  wire leaves = s_ready && (total > 4'd4 || s_flush);
  assign s_ready = !m_axis_tvalid || m_axis_tready;

  always_ff @(posedge clk) begin
    if (s_ready) begin
      held <= s_flush ? '0 : leaves ? both[127:64] : both[63:0];
      held_halves <= s_flush ? '0 : leaves ? 3'(total - 4'd4) : total[2:0];
      m_axis_tvalid <= leaves;
      m_axis_tdata <= both[63:0];
      m_axis_tkeep <= s_flush ? event_pkg::keep_of(held_halves) : '1;
      m_axis_tlast <= s_flush;
      m_meta <= s_meta;
    end
    if (rst) begin
      held <= '0;
      held_halves <= '0;
      m_axis_tvalid <= 1'b0;
    end
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (held_halves <= 3'd4);
      assert (!(s_valid && s_flush));
      assert (!s_valid || (s_halves != '0 && s_halves <= 3'd4));
      assert (!s_flush || held_halves != '0);
      assert (!m_axis_tvalid || m_axis_tkeep != '0);
    end
  end
endmodule
