// SPDX-License-Identifier: Apache-2.0
// The sending half of a link: packets become words of the link, and credits go between them. docs/apelink-format.md
//
// Contract
//   * A packet is its header (the low 120 bits; the code is made here), its payload and its footer with s_axis_tlast. It is begun when the other end has
//     room for all of it; then it waits for nothing but its own words and m_ready.
//   * A packet's START tells our counts and limits; a CREDIT does, between any two words, when none has for CREDIT_PERIOD_WORDS words.
//   * SKIPs tell `node_state`: at once when it is another, again every 4 credit periods while it is not 0, and every SKIP_PERIOD_WORDS. With 0 the other end begins.
//   * While the link is down, packets are taken and dropped: one pulse of drop_down each. Of one that it cut the rest is dropped; it counts as sent, for the
//     other end names its fate.
module apelink_tx #(
    parameter int CREDIT_PERIOD_WORDS = 192,
    parameter int SKIP_PERIOD_WORDS = 0       // for an elastic buffer below; 0: none
) (
    input logic clk,
    input logic rst,

    input logic link_up,
    input logic [7:0] node_state,  // for the other end

    input  logic [127:0] s_axis_tdata,
    input  logic         s_axis_tvalid,
    output logic         s_axis_tready,
    input  logic         s_axis_tlast,

    input  apenet_pkg::counts_t own_limit_0,  // for the other end
    input  apenet_pkg::counts_t own_limit_1,
    input  logic                told,         // the other end's limits have come
    input  apenet_pkg::counts_t told_limit_0,
    input  apenet_pkg::counts_t told_limit_1,
    output apenet_pkg::counts_t space_0,      // words that the other end has room for
    output apenet_pkg::counts_t space_1,

    output logic         m_valid,
    input  logic         m_ready,
    output logic [127:0] m_data,

    output logic count_sent,
    output logic drop_down
);
  if (CREDIT_PERIOD_WORDS < 8 || CREDIT_PERIOD_WORDS > 65535 || SKIP_PERIOD_WORDS > 65535) begin : g_check
    $fatal(1, "CREDIT_PERIOD_WORDS must be 8 to 65535, SKIP_PERIOD_WORDS at most that (instance %m)");
  end

  typedef enum logic [2:0] {
    BETWEEN,
    HEADER,
    PAYLOAD,
    FOOTER,
    DROP  // up to its end
  } state_t;
  state_t state;
  logic begun;  // its START was sent
  logic vc;
  logic [8:0] words_left;

  // --- what the other end has room for ---
  logic [1:0] sends_data, sends_header;
  apenet_pkg::counts_t sent_0, sent_1;
  credit_taker i_data_0 (.clk, .rst(rst || !link_up), .sends(sends_data[0]), .told, .told_limit(told_limit_0.data), .sent(sent_0.data), .space(space_0.data));
  credit_taker i_data_1 (.clk, .rst(rst || !link_up), .sends(sends_data[1]), .told, .told_limit(told_limit_1.data), .sent(sent_1.data), .space(space_1.data));
  credit_taker i_header_0 (
      .clk,
      .rst(rst || !link_up),
      .sends(sends_header[0]),
      .told,
      .told_limit(told_limit_0.headers),
      .sent(sent_0.headers),
      .space(space_0.headers)
  );
  credit_taker i_header_1 (
      .clk,
      .rst(rst || !link_up),
      .sends(sends_header[1]),
      .told,
      .told_limit(told_limit_1.headers),
      .sent(sent_1.headers),
      .space(space_1.headers)
  );

  // --- the packet that is offered ---
  /* verilator lint_off UNUSEDSIGNAL */  // of its fields some are used
  apenet_pkg::header_t header;
  /* verilator lint_on UNUSEDSIGNAL */
  assign header = s_axis_tdata[119:0];
  wire next_vc = header.vc[0];
  wire [10:0] next_words = apenet_pkg::payload_words(header.bytes);
  apenet_pkg::counts_t next_space;
  assign next_space = next_vc ? space_1 : space_0;
  wire fits = next_space.data >= next_words && next_space.headers >= 11'd2;
  wire begins = state == BETWEEN && s_axis_tvalid && fits;

  // --- one word after the other: control words first, but a START is a CREDIT too ---
  localparam int AGAIN_WORDS = 4 * CREDIT_PERIOD_WORDS;
  logic [15:0] since_counts;
  logic [17:0] since_skip;
  logic [7:0] told_state;
  logic state_due;
  logic is_last_payload;
  apenet_pkg::start_t start;
  apenet_pkg::credit_t credit;
  logic [127:0] encoded;
  secded_encode i_encode (
      .data(s_axis_tdata[119:0]),
      .word(encoded)
  );
  always_comb begin
    start = '0;
    start.control_type = apenet_pkg::CONTROL_START;
    start.limit_0 = own_limit_0;
    start.limit_1 = own_limit_1;
    start.data = next_vc ? sent_1.data : sent_0.data;
    start.headers_0 = sent_0.headers;
    start.headers_1 = sent_1.headers;
    start.words = next_words[8:0];
    start.vc = next_vc;
    credit.control_type = apenet_pkg::CONTROL_CREDIT;
    credit.limit_0 = own_limit_0;
    credit.limit_1 = own_limit_1;
    credit.sent_0 = sent_0;
    credit.sent_1 = sent_1;
  end

  logic stuff_ready;
  wire credit_due = since_counts >= 16'(CREDIT_PERIOD_WORDS);
  wire skip_due = state_due || (SKIP_PERIOD_WORDS != 0 && since_skip >= 18'(SKIP_PERIOD_WORDS));
  wire gives_credit = link_up && credit_due && !begins;
  wire gives_skip = link_up && skip_due && !begins && !credit_due;
  wire gives_word = link_up && !gives_credit && !gives_skip && s_axis_tvalid && (state == HEADER || state == PAYLOAD || state == FOOTER);
  wire starts = link_up && begins;
  wire control = gives_credit || gives_skip || starts;
  wire [95:0] control_word = starts ? start : gives_credit ? credit : 96'({node_state, apenet_pkg::CONTROL_SKIP});
  wire takes = gives_word && stuff_ready;
  wire drops = state == DROP || (state == BETWEEN && !link_up);
  assign s_axis_tready = takes || drops;
  assign is_last_payload = words_left == 9'd1;
  for (genvar v = 0; v < 2; v++) begin : g_sends
    assign sends_data[v] = takes && state == PAYLOAD && vc == 1'(v);
    assign sends_header[v] = takes && state != PAYLOAD && vc == 1'(v);
  end

  apelink_stuff i_stuff (
      .clk,
      .rst(rst || !link_up),
      .s_valid(control || gives_word),
      .s_ready(stuff_ready),
      .s_control(control),
      .s_word(control ? 128'(control_word) : state == HEADER ? encoded : s_axis_tdata),
      .m_valid,
      .m_ready,
      .m_data
  );

  always_ff @(posedge clk) begin
    if (m_ready && since_counts != '1) since_counts <= since_counts + 1'b1;
    if (m_ready && since_skip != '1) since_skip <= since_skip + 1'b1;
    if (stuff_ready && (starts || gives_credit)) since_counts <= 16'd1;
    if (stuff_ready && gives_skip) {since_skip, told_state} <= {18'd1, node_state};
    state_due <= link_up && (node_state != told_state || (node_state != '0 && since_skip >= 18'(AGAIN_WORDS))) && !(stuff_ready && gives_skip);
    if (rst || !link_up) since_counts <= 16'(CREDIT_PERIOD_WORDS);  // at once
    if (rst || !link_up) {since_skip, told_state, state_due} <= '0;
  end

  always_ff @(posedge clk) begin
    count_sent <= s_axis_tvalid && s_axis_tready && s_axis_tlast && begun && !rst;
    drop_down <= s_axis_tvalid && s_axis_tready && s_axis_tlast && !begun && !rst;
    if (s_axis_tvalid && s_axis_tready && s_axis_tlast) begun <= 1'b0;
    if (starts && stuff_ready) begin
      state <= HEADER;
      begun <= 1'b1;
      vc <= next_vc;
      words_left <= next_words[8:0];
    end
    if (takes) begin
      case (state)
        HEADER: state <= words_left == '0 ? FOOTER : PAYLOAD;
        PAYLOAD: begin
          words_left <= words_left - 1'b1;
          if (is_last_payload) state <= FOOTER;
        end
        default: state <= BETWEEN;
      endcase
    end
    if (!link_up && (state == HEADER || state == PAYLOAD || state == FOOTER)) state <= DROP;
    if (drops && s_axis_tvalid) state <= s_axis_tlast ? BETWEEN : DROP;
    if (rst) state <= BETWEEN;
    if (rst) begun <= 1'b0;
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!takes || s_axis_tlast == (state == FOOTER));  // the words of a packet are its header's
      assert (!begins || int'(header.bytes) <= apenet_pkg::PAYLOAD_BYTES_MAX);
    end
  end
endmodule
