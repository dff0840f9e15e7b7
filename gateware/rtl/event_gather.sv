// SPDX-License-Identifier: Apache-2.0
// Puts pieces of 16-bit halves together, without a hole, to packets of words of HALVES halves.
//
// Contract
//   * A piece of 0 to HALVES halves is taken with s_valid and s_ready; s_last ends the packet with it. A packet has one half at least. s_ready may depend on
//     the piece that is offered.
//   * What does not fill a word is held until more comes or the packet ends, so no word leaves before it is known whether it is the last.
//   * A piece is taken in every cycle in which words are, but for one: where the last piece of a packet made a word and left a rest, which is a word more, and the
//     next piece is a whole packet.
//   * s_meta stands beside the words that leave because of this piece.
module event_gather #(
    parameter int HALVES = 8,
    parameter int META_BITS = 1,
    localparam int COUNT_BITS = $clog2(HALVES + 1),
    localparam int WORD_BITS = 16 * HALVES
) (
    input logic clk,
    input logic rst,

    input  logic [ WORD_BITS-1:0] s_data,
    input  logic [COUNT_BITS-1:0] s_halves,  // from the low one on; the others are not looked at
    input  logic                  s_last,
    input  logic [ META_BITS-1:0] s_meta,
    input  logic                  s_valid,
    output logic                  s_ready,

    output logic [  WORD_BITS-1:0] m_axis_tdata,
    output logic [WORD_BITS/8-1:0] m_axis_tkeep,
    output logic                   m_axis_tvalid,
    input  logic                   m_axis_tready,
    output logic                   m_axis_tlast,
    output logic [  META_BITS-1:0] m_meta
);
  localparam logic [COUNT_BITS:0] FULL = (COUNT_BITS + 1)'(HALVES);

  logic [WORD_BITS-1:0] held;  // zeros where nothing is held
  logic [COUNT_BITS-1:0] held_halves;
  logic ends;  // what is held is the last word of its packet
  logic [META_BITS-1:0] ends_meta;
  wire can_load = !m_axis_tvalid || m_axis_tready;

  logic [WORD_BITS-1:0] piece;
  for (genvar half = 0; half < HALVES; half++) begin : g_half
    assign piece[16*half+:16] = s_halves > COUNT_BITS'(half) ? s_data[16*half+:16] : '0;
  end

  wire [COUNT_BITS-1:0] held_before = ends ? '0 : held_halves;
  wire [COUNT_BITS:0] total = (COUNT_BITS + 1)'(held_before) + (COUNT_BITS + 1)'(s_halves);
  wire [2*WORD_BITS-1:0] both = (2 * WORD_BITS)'(ends ? '0 : held) | ((2 * WORD_BITS)'(piece) << {held_before, 4'b0});
  wire over = total > FULL;
  wire makes_word = over || s_last;
  wire takes = s_valid && s_ready;
  wire [COUNT_BITS-1:0] rest = total[COUNT_BITS-1:0] - FULL[COUNT_BITS-1:0];
  wire [COUNT_BITS:0] leaving = ends ? (COUNT_BITS + 1)'(held_halves) : over ? FULL : total;
  assign s_ready = can_load && !(ends && makes_word);

  always_ff @(posedge clk) begin
    if (can_load) begin
      m_axis_tvalid <= ends || (takes && makes_word);
      m_axis_tdata <= ends ? held : both[WORD_BITS-1:0];
      for (int half = 0; half < HALVES; half++) m_axis_tkeep[2*half+:2] <= {2{leaving > (COUNT_BITS + 1)'(half)}};
      m_axis_tlast <= ends || !over;
      m_meta <= ends ? ends_meta : s_meta;
      ends <= takes && s_last && over;
      ends_meta <= s_meta;
      if (takes || ends) begin
        held <= !takes ? '0 : over ? both[2*WORD_BITS-1:WORD_BITS] : s_last ? '0 : both[WORD_BITS-1:0];
        held_halves <= !takes ? '0 : over ? rest : s_last ? '0 : total[COUNT_BITS-1:0];
      end
    end
    if (rst) begin
      held <= '0;
      held_halves <= '0;
      ends <= 1'b0;
      m_axis_tvalid <= 1'b0;
    end
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (held_halves <= COUNT_BITS'(HALVES));
      assert (!s_valid || s_halves <= COUNT_BITS'(HALVES));
      assert (!(takes && s_last) || total != '0);
      assert (!ends || held_halves != '0);
      assert (!m_axis_tvalid || m_axis_tkeep != '0);
    end
  end
endmodule
