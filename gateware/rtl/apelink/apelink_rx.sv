// SPDX-License-Identifier: Apache-2.0
// The receiving half of a link: words of the link become packets, one stream a virtual channel, and credits for the other half. docs/apelink-format.md
//
// Contract
//   * The input cannot be held up. Of a packet the header leaves as soon as it is there; its low 120 bits are right, or mended.
//   * Every packet leaves with all its words: one that was cut is filled with zeros. Its footer is flagged when it was flagged before (count_flagged),
//     does not fit what came (error_crc), or was never there (error_cut); else it is good (count_good).
//   * What never leaves: a packet whose header cannot be read or never came (drop_header), and those of which nothing was seen (drop_lost of them at a time).
//     They are known by the sender's counts in the next START or CREDIT. A wrong word that hit no packet is one pulse of noise.
//   * A packet that has begun ends: with its footer, the next packet's START, a CREDIT that says that it was sent whole, the end of the link, or
//     when no counts came for SILENCE_CYCLES.
//   * neighbour_state is what the other end's last SKIP told. It is 0 when none came for 16 times SILENCE_CYCLES, and while the link is down.
module apelink_rx #(
    parameter int DATA_WORDS = 1024,     // room for payload of each virtual channel
    parameter int HEADER_WORDS = 256,    // and for headers and footers
    parameter int SILENCE_CYCLES = 512   // two credit periods, and more than the pauses below the link
) (
    input logic clk,
    input logic rst,

    input logic link_up,

    input logic         s_valid,
    input logic [127:0] s_data,

    output logic [255:0] m_axis_tdata,   // virtual channel 0 low
    output logic [  1:0] m_axis_tvalid,
    input  logic [  1:0] m_axis_tready,
    output logic [  1:0] m_axis_tlast,

    output apenet_pkg::counts_t own_limit_0,   // for the other end
    output apenet_pkg::counts_t own_limit_1,
    output logic                told,          // the other end's, for our sender
    output apenet_pkg::counts_t told_limit_0,
    output apenet_pkg::counts_t told_limit_1,

    output logic [7:0] neighbour_state,
    output logic       silent,            // the other end has told nothing for SILENCE_CYCLES
    output logic       count_good,
    output logic       count_flagged,
    output logic       error_crc,
    output logic       error_cut,
    output logic       drop_header,
    output logic [9:0] drop_lost,
    output logic       noise,
    output logic       header_corrected
);
  if (DATA_WORDS < apenet_pkg::PAYLOAD_WORDS_MAX || HEADER_WORDS < 2 || SILENCE_CYCLES < 16 || SILENCE_CYCLES > 65535) begin : g_check
    $fatal(1, "DATA_WORDS must be a packet's or more, SILENCE_CYCLES 16 to 65535 (instance %m)");
  end
  localparam int COUNT_BITS = apenet_pkg::COUNT_BITS;
  typedef logic [COUNT_BITS-1:0] count_t;

  // --- words and control words, and each word as a header ---
  logic next_data, next_control, next_skip, next_bad, is_data, is_control, is_bad;
  logic [127:0] next_word, word;
  apelink_unstuff i_unstuff (
      .clk,
      .rst(rst || !link_up),
      .s_valid,
      .s_data,
      .m_data(next_data),
      .m_control(next_control),
      .m_skip(next_skip),
      .m_bad(next_bad),
      .m_word(next_word)
  );
  logic [119:0] next_header;
  logic next_corrected, next_failed, corrected, failed;
  apenet_pkg::header_t header;
  secded_decode i_decode (
      .word(next_word),
      .data(next_header),
      .corrected(next_corrected),
      .failed(next_failed)
  );
  always_ff @(posedge clk) begin
    is_data <= next_data && link_up && !rst;
    is_control <= next_control && link_up && !rst;
    is_bad <= next_bad && link_up && !rst;
    word <= next_word;
    header <= next_header;
    corrected <= next_corrected;
    failed <= next_failed;
  end
  /* verilator lint_off UNUSEDSIGNAL */  // of its fields some are used
  apenet_pkg::start_t start;
  apenet_pkg::credit_t credit;
  /* verilator lint_on UNUSEDSIGNAL */
  assign start = word[95:0];
  assign credit = word[95:0];
  wire is_start = is_control && start.control_type == apenet_pkg::CONTROL_START;
  wire is_credit = is_control && !is_start;
  always_ff @(posedge clk) begin
    told <= is_control && link_up && !rst;
    told_limit_0 <= start.limit_0;
    told_limit_1 <= start.limit_1;
  end

  logic [15:0] since_counts;
  assign silent = int'(since_counts) == SILENCE_CYCLES;
  always_ff @(posedge clk) begin
    if (!silent) since_counts <= since_counts + 1'b1;
    if (is_control || rst || !link_up) since_counts <= '0;
  end

  localparam int FORGET_CYCLES = 16 * SILENCE_CYCLES;
  logic [19:0] since_state;
  always_ff @(posedge clk) begin
    if (neighbour_state != '0) since_state <= since_state + 1'b1;
    if (next_skip) {since_state, neighbour_state} <= {20'd0, next_word[15:8]};
    if (rst || !link_up || int'(since_state) == FORGET_CYCLES - 1) {since_state, neighbour_state} <= '0;
  end

  // --- the memories ---
  typedef enum logic [2:0] {
    BETWEEN,
    HEADER,
    PAYLOAD,
    FOOTER,
    SKIPPING  // what is left of a packet whose fate has been told
  } state_t;
  state_t state;
  logic vc;
  logic [8:0] words_left;
  logic writes_data, writes_header;
  logic [119:0] header_entry;
  count_t [1:0] data_written, data_read, header_written, header_read, data_limit, header_limit;
  logic [1:0] tells;  // how many the sender has sent, and all that will be written is
  count_t [1:0] told_data, told_headers;
  wire [1:0] of_vc = vc ? 2'b10 : 2'b01;

  for (genvar v = 0; v < 2; v++) begin : g_vc
    logic data_valid, data_ready, header_valid, header_ready;
    logic [127:0] data;
    logic [119:0] entry;
    word_fifo #(
        .WORDS(DATA_WORDS)
    ) i_data (
        .clk,
        .rst,
        .s_valid(writes_data && of_vc[v]),
        .s_data(word),
        .m_valid(data_valid),
        .m_ready(data_ready),
        .m_data(data),
        .written(data_written[v]),
        .read(data_read[v])
    );
    word_fifo #(
        .WORDS(HEADER_WORDS),
        .WIDTH(120)
    ) i_header (
        .clk,
        .rst,
        .s_valid(writes_header && of_vc[v]),
        .s_data(header_entry),
        .m_valid(header_valid),
        .m_ready(header_ready),
        .m_data(entry),
        .written(header_written[v]),
        .read(header_read[v])
    );
    apelink_read i_read (
        .clk,
        .rst,
        .header_valid,
        .header_ready,
        .header(entry),
        .data_valid,
        .data_ready,
        .data,
        .m_axis_tdata(m_axis_tdata[128*v+:128]),
        .m_axis_tvalid(m_axis_tvalid[v]),
        .m_axis_tready(m_axis_tready[v]),
        .m_axis_tlast(m_axis_tlast[v])
    );
    credit_giver #(
        .WORDS(DATA_WORDS)
    ) i_data_credit (
        .clk,
        .rst,
        .told(tells[v]),
        .told_sent(link_up ? told_data[v] : '0),
        .written(data_written[v]),
        .read(data_read[v]),
        .limit(data_limit[v])
    );
    credit_giver #(
        .WORDS(HEADER_WORDS)
    ) i_header_credit (
        .clk,
        .rst,
        .told(tells[v]),
        .told_sent(link_up ? told_headers[v] : '0),
        .written(header_written[v] + count_t'(writes_header && of_vc[v])),  // the end of a packet that was cut
        .read(header_read[v]),
        .limit(header_limit[v])
    );
  end
  assign own_limit_0 = {header_limit[0], data_limit[0]};
  assign own_limit_1 = {header_limit[1], data_limit[1]};

  // --- what the sender's counts say ---
  wire amid = state == HEADER || state == PAYLOAD || state == FOOTER;
  wire start_vc = start.vc;
  wire start_fits = int'(start.words) <= apenet_pkg::PAYLOAD_WORDS_MAX
      && int'(count_t'(data_written[start_vc] - data_read[start_vc])) + int'(start.words) <= DATA_WORDS
      && int'(count_t'(header_written[start_vc] - header_read[start_vc])) + int'(amid && vc == start_vc) + 2 <= HEADER_WORDS;
  count_t [1:0] expected;  // headers and footers that the sender has sent when the packets that were seen are out
  count_t [1:0] ahead;     // of that, what it has sent
  logic [9:0] unseen;      // packets
  logic settled;           // and none that was not seen is in flight
  assign told_headers = is_start ? {start.headers_1, start.headers_0} : {credit.sent_1.headers, credit.sent_0.headers};
  assign told_data = is_start ? {2{start.data}} : {credit.sent_1.data, credit.sent_0.data};
  always_comb begin
    unseen = '0;
    settled = 1'b1;
    for (int v = 0; v < 2; v++) begin
      ahead[v] = told_headers[v] - expected[v];
      if (!ahead[v][COUNT_BITS-1]) begin
        unseen += ahead[v][COUNT_BITS-1:1];
        settled &= !ahead[v][0];
      end
    end
  end
  wire sent_whole = is_credit && told_headers[vc] == expected[vc];
  wire closes = amid && (!link_up || silent || is_start || sent_whole);
  // Not amid a packet, of which more is to come than was sent so far.
  wire [1:0] between = ~(of_vc & {2{amid}}) & ~{told_headers[1][0], told_headers[0][0]};
  assign tells = !link_up ? 2'b11 : is_start ? (start_vc ? 2'b10 : 2'b01) : is_credit ? between : 2'b00;

  // --- a packet, word by word ---
  logic [31:0] crc, crc_next;
  logic anomaly;  // a wrong word came, and it is not known yet whether it hit a packet
  wire fits_start = !failed && header.vc == {4'd0, vc} && apenet_pkg::payload_words(header.bytes) == 11'(words_left);
  wire [95:0] status = word[127:32];
  wire footer_flagged = status == apenet_pkg::FOOTER_FLAGGED;
  wire footer_good = status == apenet_pkg::FOOTER_GOOD && word[31:0] == ~crc;
  wire takes = is_data && !closes;
  crc32_wide i_crc (
      .crc(state == HEADER ? '1 : crc),
      .data(state == HEADER ? {8'd0, header & apenet_pkg::HEADER_FIXED} : word),
      .crc_next
  );
  assign writes_data = takes && state == PAYLOAD;
  assign writes_header = (takes && (state == FOOTER || (state == HEADER && fits_start))) || (closes && state != HEADER);
  always_comb begin
    header_entry = {78'd0, 9'd0, !footer_good, word[31:0]};
    if (closes) header_entry = {78'd0, words_left, 1'b1, 32'd0};
    else if (state == HEADER) header_entry = header;
  end

  wire ends_well = takes && state == FOOTER && (footer_good || footer_flagged);
  wire settles = is_control && state == BETWEEN && settled;
  always_ff @(posedge clk) begin
    if (takes) begin
      crc <= crc_next;
      case (state)
        HEADER: state <= !fits_start ? SKIPPING : words_left == '0 ? FOOTER : PAYLOAD;
        PAYLOAD: begin
          words_left <= words_left - 1'b1;
          if (words_left == 9'd1) state <= FOOTER;
        end
        FOOTER: state <= ends_well ? BETWEEN : SKIPPING;
        default: ;
      endcase
    end
    if (closes) state <= sent_whole || !link_up ? BETWEEN : SKIPPING;
    if (is_start) begin
      state <= start_fits ? HEADER : SKIPPING;
      vc <= start_vc;
      words_left <= start.words;
    end
    if (is_bad || (is_data && state == BETWEEN)) anomaly <= state != SKIPPING;
    if (is_start || closes || ends_well || settles || (takes && state == FOOTER) || (takes && state == HEADER && !fits_start)) anomaly <= 1'b0;
    for (int v = 0; v < 2; v++) begin
      if (is_control && !ahead[v][COUNT_BITS-1]) expected[v] <= {told_headers[v][COUNT_BITS-1:1], 1'b0};
      if (is_start && start_fits && start_vc == 1'(v)) expected[v] <= told_headers[v] + count_t'(2);
    end
    if (rst || !link_up) begin
      anomaly <= 1'b0;
      expected <= '0;
    end
    if (rst) state <= BETWEEN;
  end

  // --- what became of it ---
  always_ff @(posedge clk) begin
    count_good <= takes && state == FOOTER && footer_good && !rst;
    count_flagged <= takes && state == FOOTER && footer_flagged && !rst;
    error_crc <= takes && state == FOOTER && !footer_good && !footer_flagged && !rst;
    error_cut <= closes && state != HEADER && !rst;
    drop_header <= ((takes && state == HEADER && !fits_start) || (closes && state == HEADER)) && !rst;
    drop_lost <= is_control && link_up && !rst ? unseen : '0;
    noise <= anomaly && (ends_well || (is_control && state == BETWEEN && settled && unseen == '0)) && !rst;
    header_corrected <= takes && state == HEADER && fits_start && corrected && !rst;
  end
endmodule
