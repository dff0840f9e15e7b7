// SPDX-License-Identifier: Apache-2.0
// A stream of packets into the router: each is sent on its way, or dropped as a whole under one name. docs/design/torus.md
//
// Contract
//   * A packet is its header (the low 120 bits), its payload and its footer with s_axis_tlast. Its words are as many as the header says.
//   * offers (bit 2 * port + vc) stands while the packet that is next can be granted: from when the one before has a word left that moves, so that no cycle
//     is lost between them. `free`: the next word to move can be its header. `granted` takes the offer, `taken` says that an output takes words.
//   * Each packet is one pulse of one counter: count_good with its last word out, a drop with its header.
module apenet_input #(
    parameter int CAME = 6,             // the port, as in apenet_route
    parameter bit VC = 0,
    parameter int LINKS = 63,
    parameter int LOCALS = 1,
    parameter int WORDS = 16            // that wait here; enough for the cycles that a grant takes
) (
    input logic clk,
    input logic rst,

    input apenet_pkg::place_t at,
    input apenet_pkg::shape_t shape,

    input  logic [127:0] s_axis_tdata,
    input  logic         s_axis_tvalid,
    output logic         s_axis_tready,
    input  logic         s_axis_tlast,

    output logic [11+2*LOCALS:0] offers,
    output logic [8:0] offers_words,       // of its payload
    output logic [3:0] offers_way,         // to how many packets it gives way where it enters a ring: one a link that it goes there but the first, if more than two
    output logic free,
    input logic granted,
    input logic taken,
    output logic [127:0] m_data,
    output logic m_valid,
    output logic m_last,
    output logic m_payload,

    output logic count_good,
    output logic drop_length,  // more payload than a packet may have
    output logic drop_outside,
    output logic drop_turn,
    output logic drop_port,
    output logic drop_hops     // it has gone as far as any packet has to go, and wants to go on
);
  localparam int PORTS = 6 + LOCALS;
  localparam int PACKETS = WORDS / 2;

  // --- a word of the stream, and as a header ---
  logic came, came_last, amid;
  logic [127:0] word;
  wire begins = came && !amid;
  always_ff @(posedge clk) begin
    came <= s_axis_tvalid && s_axis_tready && !rst;
    came_last <= s_axis_tlast;
    word <= s_axis_tdata;
    if (came) amid <= !came_last;
    if (rst) amid <= 1'b0;
  end

  apenet_pkg::header_t header, changed;
  assign header = word[119:0];
  wire [10:0] words = apenet_pkg::payload_words(header.bytes);
  wire [PORTS-1:0] port;
  wire vc, leaves, outside, no_port, turns_back;
  wire [5:0] links;
  apenet_route #(
      .CAME(CAME),
      .VC(VC),
      .LINKS(LINKS),
      .LOCALS(LOCALS)
  ) i_route (
      .at,
      .shape,
      .to({header.z, header.y, header.x}),
      .to_port(header.port),
      .port,
      .vc,
      .leaves,
      .links,
      .outside,
      .no_port,
      .turns_back
  );
  wire [6:0] hops_max = 7'(shape.x[6:1]) + 7'(shape.y[5:1]) + 7'(shape.z[5:1]);  // of the longest route
  wire [9:0] hops = CAME < 6 ? header.hops : '0;
  wire too_long = int'(words) > apenet_pkg::PAYLOAD_WORDS_MAX;
  wire too_far = leaves && hops >= 10'(hops_max);
  wire bad = too_long || outside || turns_back || no_port || too_far;
  always_comb begin
    changed = header;
    changed.vc = 5'(vc);
    changed.hops = hops + 10'(leaves);
  end

  // --- routed: what is not dropped waits, its request apart from its words ---
  logic dropping, keeps, asks;
  logic keeps_last, keeps_payload, keeps_last_but_one;
  logic [127:0] keeps_word;
  logic [2*PORTS+8:0] asks_for;
  logic [2*PORTS+12:0] asked;
  logic [5:0] asks_links;
  wire [3:0] way = asks_links > 6'd16 ? 4'd15 : asks_links > 6'd2 ? 4'(asks_links - 1'b1) : '0;
  logic [8:0] words_left;
  wire [2*PORTS-1:0] place;
  for (genvar o = 0; o < PORTS; o++) begin : g_place
    assign place[2*o+:2] = {port[o] && vc, port[o] && !vc};
  end
  always_ff @(posedge clk) begin
    keeps <= came && !(begins ? bad : dropping) && !rst;
    keeps_last <= came_last;
    keeps_payload <= amid && !came_last;
    keeps_last_but_one <= begins ? words == '0 : words_left == 9'd1;
    keeps_word <= begins ? {8'd0, changed} : word;
    asks <= begins && !bad && !rst;
    asks_for <= {words[8:0], place};
    asks_links <= links;
    if (begins) dropping <= bad;
    if (came) words_left <= begins ? words[8:0] : words_left - 1'b1;
  end

  logic m_last_but_one, asked_valid;
  logic [apenet_pkg::COUNT_BITS-1:0] written, read;
  wire pops = m_valid && taken;
  word_fifo #(
      .WORDS(WORDS),
      .WIDTH(131)
  ) i_words (
      .clk,
      .rst,
      .s_valid(keeps),
      .s_data({keeps_last_but_one, keeps_payload, keeps_last, keeps_word}),
      .m_valid,
      .m_ready(taken),
      .m_data({m_last_but_one, m_payload, m_last, m_data}),
      .written,
      .read
  );
  word_fifo #(
      .WORDS(PACKETS),
      .WIDTH(2 * PORTS + 13)
  ) i_requests (
      .clk,
      .rst,
      .s_valid(asks),
      .s_data({way, asks_for}),
      .m_valid(asked_valid),
      .m_ready(granted),
      .m_data(asked),
      .written(),
      .read()
  );
  // Besides the words that wait, two are on the way, one may come in this cycle and one in the next.
  wire [apenet_pkg::COUNT_BITS-1:0] held = written - read;
  always_ff @(posedge clk) s_axis_tready <= int'(held) + 4 <= WORDS && !rst;

  // --- the packet that was granted ---
  logic busy;
  wire ends = pops && m_last;
  assign free = !busy || ends;
  assign offers = asked_valid && (!busy || ends || (pops && m_last_but_one)) ? asked[2*PORTS-1:0] : '0;
  assign offers_words = asked[2*PORTS+:9];
  assign offers_way = asked[2*PORTS+9+:4];
  always_ff @(posedge clk) begin
    busy <= (granted || !free) && !rst;
    count_good <= ends && !rst;
    drop_length <= begins && too_long && !rst;
    drop_outside <= begins && outside && !too_long && !rst;
    drop_turn <= begins && turns_back && !outside && !too_long && !rst;
    drop_port <= begins && no_port && !turns_back && !outside && !too_long && !rst;
    drop_hops <= begins && too_far && !no_port && !turns_back && !outside && !too_long && !rst;
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!came || dropping || begins || came_last == (words_left == '0));  // the words of a packet are its header's
      assert (!begins || !came_last);
      assert (!pops || busy);
      assert (!granted || (offers != '0 && free));
      assert (!keeps || int'(held) < WORDS);
    end
  end
endmodule
