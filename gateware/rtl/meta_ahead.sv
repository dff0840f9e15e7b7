// SPDX-License-Identifier: Apache-2.0
// A stream whose meta stands beside it becomes one whose meta comes ahead: whoever prepares a packet does so while the one before leaves.
//
// Contract
//   * s_meta stands beside a packet from its first word to its last. It comes out on m_meta_*, once a packet, one cycle after the first word went in.
//   * Up to WORDS words wait, in order. While packets come and leave without a pause a meta is taken WORDS - 2 cycles before its first word.
//   * Neither ready signal depends on another without a register.
module meta_ahead #(
    parameter int WORDS = 8,
    parameter int META_BITS = 1
) (
    input logic clk,
    input logic rst,

    input  logic [         63:0] s_axis_tdata,
    input  logic [          7:0] s_axis_tkeep,
    input  logic                 s_axis_tvalid,
    output logic                 s_axis_tready,
    input  logic                 s_axis_tlast,
    input  logic [META_BITS-1:0] s_meta,

    output logic                 m_meta_tvalid,
    input  logic                 m_meta_tready,
    output logic [META_BITS-1:0] m_meta,

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast
);
  localparam int WORD_BITS = $clog2(WORDS);

  if (WORDS < 2 || 2 ** WORD_BITS != WORDS) begin : g_check_words
    $fatal(1, "WORDS must be a power of two, at least 2 (instance %m)");
  end

  logic [72:0] words[WORDS];  // {tlast, tkeep, tdata}
  logic [WORD_BITS:0] words_in, words_out;  // one bit more than an address
  logic in_packet;
  wire has_room = words_in - words_out != (WORD_BITS + 1)'(WORDS);
  wire takes = s_axis_tvalid && s_axis_tready;
  assign s_axis_tready = has_room && (in_packet || !m_meta_tvalid);
  assign m_axis_tvalid = words_in != words_out;
  assign {m_axis_tlast, m_axis_tkeep, m_axis_tdata} = words[words_out[WORD_BITS-1:0]];

  always_ff @(posedge clk) begin
    if (m_meta_tready) m_meta_tvalid <= 1'b0;
    if (takes) begin
      words[words_in[WORD_BITS-1:0]] <= {s_axis_tlast, s_axis_tkeep, s_axis_tdata};
      words_in <= words_in + 1'b1;
      in_packet <= !s_axis_tlast;
      if (!in_packet) begin
        m_meta_tvalid <= 1'b1;
        m_meta <= s_meta;
      end
    end
    if (m_axis_tvalid && m_axis_tready) words_out <= words_out + 1'b1;
    if (rst) begin
      m_meta_tvalid <= 1'b0;
      in_packet <= 1'b0;
      words_in <= '0;
      words_out <= '0;
    end
  end
endmodule
