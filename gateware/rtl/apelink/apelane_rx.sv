// SPDX-License-Identifier: Apache-2.0
// One lane: its bits become words of four bytes, with their marks told apart, and go to the clock of all lanes.
//
// Contract
//   * A word each cycle of `clk`, and one at most in each of m_clk, which is of the same sender, so of the same rate. Where m_clk takes none for long, words are lost, and
//     the next one has `gap` set.
//   * error_code: one pulse for each word of a locked lane that has an error.
module apelane_rx #(
    parameter int LANE = 0,
    parameter int LINE_BITS = apelane_pkg::BITS_8B10B,
    localparam int SLIP_BITS = apelane_pkg::slip_bits(LINE_BITS)
) (
    input  logic                 clk,
    input  logic                 rst,
    input  logic [LINE_BITS-1:0] bits,
    output logic                 locked,
    output logic [SLIP_BITS-1:0] slip,
    output logic                 error_code,

    input  logic                    m_clk,
    input  logic                    m_rst,
    output logic                    m_valid,
    input  logic                    m_ready,
    output apelane_pkg::lane_word_t m_word
);
  localparam int DEPTH = 16;
  localparam int WIDTH = 37;

  logic says_mark, is_control, has_error, bad;
  logic [31:0] data;
  if (LINE_BITS == apelane_pkg::BITS_8B10B) begin : g_8b10b
    logic [39:0] codes;
    comma_align i_align (
        .clk,
        .rst,
        .s_bits(bits),
        .m_codes(codes),
        .bad,
        .locked,
        .slip
    );
    logic [3:0] k, code_errors, disparity_errors;
    dec_8b10b i_dec (
        .clk,
        .rst,
        .s_codes(codes),
        .m_k(k),
        .m_data(data),
        .code_error(code_errors),
        .disparity_error(disparity_errors)
    );
    assign has_error = (code_errors | disparity_errors) != '0;
    assign is_control = k != '0;
    assign says_mark = k == 4'b0001;
  end else begin : g_64b66b
    logic valid;
    logic [code_64b66b_pkg::BLOCK_BITS-1:0] block;
    block_align i_align (
        .clk,
        .rst,
        .s_bits(bits),
        .m_valid(valid),
        .m_block(block),
        .locked,
        .slip
    );
    dec_64b66b i_dec (
        .clk,
        .s_valid(valid),
        .s_block(block),
        .m_mark(is_control),
        .m_data(data),
        .m_error(has_error)
    );
    assign says_mark = is_control;
  end
  apelane_pkg::mark_t mark;
  assign mark = data;
  localparam logic [7:0] COMMA = LINE_BITS == apelane_pkg::BITS_8B10B ? code_8b10b_pkg::K28_5 : 8'd0;
  wire is_mark = says_mark && mark.comma == COMMA && mark.check == apelane_pkg::check_of(mark.call, mark.number, mark.lane) && !has_error;

  apelane_pkg::lane_word_t word;
  logic lost, s_ready;
  always_ff @(posedge clk) begin
    bad <= has_error && !rst;
    word.locked <= locked && !rst;
    word.gap <= 1'b0;
    word.mark <= is_mark && mark.lane == 2'(LANE);
    word.astray <= is_mark && mark.lane != 2'(LANE);
    word.bad <= has_error || (is_control && !is_mark);
    word.data <= data;
    error_code <= bad && locked && !rst;
    lost <= !s_ready && !rst;
  end

  apelane_pkg::lane_word_t s_word;
  always_comb begin
    s_word = word;
    s_word.gap = lost;
  end
  async_fifo #(
      .WIDTH(WIDTH),
      .DEPTH(DEPTH)
  ) i_fifo (
      .s_clk(clk),
      .s_rst(rst),
      .s_data(s_word),
      .s_valid(1'b1),
      .s_ready,
      .m_clk,
      .m_rst,
      .m_data(m_word),
      .m_valid,
      .m_ready,
      .m_more()
  );
endmodule
