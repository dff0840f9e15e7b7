// SPDX-License-Identifier: Apache-2.0
// Four lanes in step: words of four bytes that were sent in one cycle become one again, however their lanes were delayed.
//
// Contract
//   * Lanes wait for the latest one, by the numbers in their marks: up to SKEW_WORDS of lane words. In step when eight columns in a row were marks of one number.
//   * m_valid in a cycle: a word or a mark of the sender. A column is a mark if one of its lanes says so: an error in the others does not make it a word.
//   * Out of step: a lane is not locked, has lost something, or has said nothing for eight cycles; or four columns with a mark were not all marks of one number, and
//     none was that between them; or `overflows`. The next mark is a FIRST_MARK.
//   * astray: since the search began a mark was another lane's.
module apelane_deskew #(
    parameter int SKEW_WORDS = 4
) (
    input logic clk,
    input logic rst,

    input  logic [3:0]                    s_valid,
    output logic [3:0]                    s_ready,
    input  apelane_pkg::lane_word_t [3:0] s_words,
    input  logic                          overflows,

    output logic               m_valid,
    output apelane_pkg::kind_t m_kind,
    output apelane_pkg::call_t m_call,  // of a mark
    output logic [127:0]       m_data,

    output logic in_step,
    output logic astray
);
  if (SKEW_WORDS < 1 || SKEW_WORDS > 8) begin : g_check
    $fatal(1, "SKEW_WORDS must be 1 to 8, as FIFOs of 16 take (instance %m)");
  end
  localparam int CONFIRMED = 8;
  localparam int PATIENCE_CYCLES = 8;
  localparam int ODD_LIMIT = 4;
  typedef logic [apelane_pkg::NUMBER_BITS-1:0] number_t;

  // --- the next word of each lane, and how far apart they are ---
  apelane_pkg::mark_t [3:0] marks;
  logic [3:0] is_mark, is_bad, is_lost, is_astray, ahead, differs;
  number_t [3:0][3:0] apart;
  for (genvar l = 0; l < 4; l++) begin : g_lane
    assign marks[l] = s_words[l].data;
    assign is_mark[l] = s_words[l].mark;
    assign is_bad[l] = s_words[l].bad;
    assign is_lost[l] = s_valid[l] && (!s_words[l].locked || s_words[l].gap);
    assign is_astray[l] = s_valid[l] && s_words[l].locked && s_words[l].astray;
    for (genvar m = 0; m < 4; m++) begin : g_other
      assign apart[l][m] = marks[l].number - marks[m].number;
    end
  end
  always_comb begin
    {ahead, differs} = '0;
    for (int l = 0; l < 4; l++) begin
      for (int m = 0; m < 4; m++) begin
        if (apart[l][m] != '0 && apart[l][m] <= number_t'(SKEW_WORDS)) ahead[l] = 1'b1;
        if (is_mark[l] && is_mark[m] && apart[l][m] != '0) differs[l] = 1'b1;
      end
    end
  end
  wire all_valid = s_valid == '1;
  wire all_marks = all_valid && is_mark == '1;
  wire same = all_marks && differs == '0;
  wire odd = all_valid && (differs != '0 || (is_mark != '0 && (is_mark | is_bad) != '1));  // a mark, and not of all lanes

  typedef enum logic [1:0] {
    SEARCH,
    CONFIRM,
    IN_STEP
  } state_t;
  state_t state;
  logic [3:0] count;    // in a row
  logic [2:0] odd_count;
  logic [3:0] missing;  // cycles
  wire lost = is_lost != '0 || int'(missing) == PATIENCE_CYCLES || overflows;
  // While it searches, a lane that is ahead waits. If one lane is not there at all, or says what it said before a reset, no other heaps up.
  assign s_ready = state == SEARCH ? s_valid & ~(all_marks && is_lost == '0 ? ahead : '0) : {4{all_valid}};
  assign in_step = state == IN_STEP;

  always_ff @(posedge clk) begin
    missing <= all_valid || state == SEARCH ? '0 : missing + 1'b1;
    case (state)
      SEARCH: begin
        count <= '0;
        odd_count <= '0;
        if (same && is_lost == '0) state <= CONFIRM;
      end
      CONFIRM: begin
        if (all_valid) count <= count + 1'b1;
        if (all_valid && int'(count) == CONFIRMED - 1) state <= IN_STEP;
        if (lost || (all_valid && !same)) state <= SEARCH;
      end
      default: begin
        if (same) odd_count <= '0;
        else if (odd) odd_count <= odd_count + 1'b1;
        if (lost || int'(odd_count) == ODD_LIMIT) state <= SEARCH;
      end
    endcase
    if (is_astray != '0) astray <= 1'b1;
    if (rst || in_step) astray <= 1'b0;
    if (rst) state <= SEARCH;
  end

  // --- what they say together ---
  logic first;  // no mark has been told since they are in step
  always_ff @(posedge clk) begin
    m_valid <= in_step && all_valid && !lost && (is_mark != '0 || !first) && !rst;
    m_kind <= is_mark == '0 ? apelane_pkg::WORD : first ? apelane_pkg::FIRST_MARK : apelane_pkg::MARK;
    for (int l = 3; l >= 0; l--) if (is_mark[l]) m_call <= marks[l].call;
    for (int l = 0; l < 4; l++) m_data[32*l+:32] <= s_words[l].data;
    if (in_step && all_valid && is_mark != '0) first <= 1'b0;
    if (!in_step || rst) first <= 1'b1;
  end
endmodule
