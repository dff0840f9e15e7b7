// SPDX-License-Identifier: Apache-2.0
// A torus at full load, for test_apenet_node.py: its senders and receivers are here, as Python would take most of the time.

// What stands in a packet's payload, so that a word of any other packet, or place, is another.
package traffic_pkg;
  function automatic logic [127:0] word(input logic [47:0] address, input logic [15:0] name, input logic [8:0] place);
    logic [31:0] mixed;
    mixed = {address[15:0], name} ^ {place, 23'h2A5A5A} ^ {address[31:16], 16'd0};
    mixed = mixed * 32'h9E3779B1;
    word = {mixed, ~mixed, mixed ^ 32'(place), {name, address[15:0]}};
  endfunction
endpackage

// A torus of X times Y nodes with wires of DELAY_CYCLES each way. At each node two senders, as fast as the node takes them, to any node; and a receiver that knows
// what must come: each packet whole, its place in the order of its sender and its number of hops. Which ways through each router were taken is kept.
module bench_top #(
    parameter int X = 4,
    parameter int Y = 1,
    parameter int LINKS = 3,
    parameter int DELAY_CYCLES = 3,
    parameter int DATA_WORDS = 256,
    parameter int HEADER_WORDS = 8,
    parameter int CREDIT_PERIOD_WORDS = 16,
    localparam int NODES = X * Y,
    localparam int STREAMS = 14
) (
    input logic clk,
    input logic rst,

    input logic [7:0] seed,
    input logic sends,                  // all senders, all the time
    input logic pauses,                 // of the receivers and of the wires
    input logic [NODES-1:0] one,        // the first sender of a node sends a packet of one_words to node one_to
    input logic [7:0] one_to,
    input logic [8:0] one_words,
    input logic [5:0] up_0,             // of node 0, and at the other ends of these; all others are up

    output logic [32*NODES-1:0] sent,        // of each node, packets that its senders gave it,
    output logic [32*NODES-1:0] received,    // those that came to it, good,
    output logic [32*NODES-1:0] flagged,     // and flagged
    output logic [32*NODES-1:0] wrong,       // that are not what must come
    output logic [32*NODES-1:0] skipped,     // that did not come before others of their sender
    output logic [32*NODES-1:0] latency_cycles,  // of the header that came last
    output logic [32*NODES-1:0] routed,      // through the router
    output logic [32*NODES-1:0] dropped,     // by the router
    output logic [32*NODES-1:0] down,        // by a link that is down
    output logic [32*NODES-1:0] link_sent,
    output logic [32*NODES-1:0] link_came,   // and came out of a link, flagged or not
    output logic [32*NODES-1:0] link_bad,    // flagged at a link, lost, or of a wrong header
    output logic [STREAMS*STREAMS*NODES-1:0] ways  // of each node, and each stream in, the outputs and virtual channels
);
  logic [15:0] cycle;
  always_ff @(posedge clk) cycle <= rst ? '0 : cycle + 1'b1;

  logic [NODES-1:0][5:0] up, tx_valid, tx_ready, rx_valid;
  logic [NODES-1:0][767:0] tx_data, rx_data;

  function automatic int neighbour(input int n, input int p);
    int x, y;
    x = n % X;
    y = n / X;
    if (p == 0) x = (x + 1) % X;
    if (p == 1) x = (x + X - 1) % X;
    if (p == 2) y = (y + 1) % Y;
    if (p == 3) y = (y + Y - 1) % Y;
    neighbour = y * X + x;
  endfunction

  for (genvar n = 0; n < NODES; n++) begin : g_node
    logic [31:0] random;
    always_ff @(posedge clk) random <= rst ? {seed, 16'hACE1, 8'(n)} : {random[30:0], random[31] ^ random[21] ^ random[1] ^ random[0]};

    // --- the wires ---
    for (genvar p = 0; p < 6; p++) begin : g_wire
      localparam int OTHER = neighbour(n, p);
      localparam int PEER = LINKS[p^1] ? p ^ 1 : p;  // its port; a pair of nodes may have one cable
      if (LINKS[p]) begin : g_is
        logic [128:0] words[DELAY_CYCLES];
        assign up[n][p] = n == 0 ? up_0[p] : OTHER == 0 ? up_0[PEER] : 1'b1;
        assign tx_ready[n][p] = !(pauses && random[p] && random[p+8]);
        always_ff @(posedge clk) begin
          words[0] <= {tx_valid[OTHER][PEER] && tx_ready[OTHER][PEER], tx_data[OTHER][128*PEER+:128]};
          for (int d = 1; d < DELAY_CYCLES; d++) words[d] <= words[d-1];
          if (rst) for (int d = 0; d < DELAY_CYCLES; d++) words[d] <= '0;
        end
        assign {rx_valid[n][p], rx_data[n][128*p+:128]} = words[DELAY_CYCLES-1];
      end else begin : g_none
        assign {up[n][p], tx_ready[n][p], rx_valid[n][p], rx_data[n][128*p+:128]} = '0;
      end
    end

    // --- the node ---
    torus_node #(
        .LINKS(LINKS),
        .DATA_WORDS(DATA_WORDS),
        .HEADER_WORDS(HEADER_WORDS),
        .CREDIT_PERIOD_WORDS(CREDIT_PERIOD_WORDS)
    ) i_node (
        .clk,
        .rst,
        .cycle,
        .number(8'(n)),
        .x(8'(X)),
        .y(8'(Y)),
        .random,
        .sends,
        .pauses,
        .one(one[n]),
        .one_to,
        .one_words,
        .up(up[n]),
        .tx_valid(tx_valid[n]),
        .tx_ready(tx_ready[n]),
        .tx_data(tx_data[n]),
        .rx_valid(rx_valid[n]),
        .rx_data(rx_data[n]),
        .sent(sent[32*n+:32]),
        .received(received[32*n+:32]),
        .flagged(flagged[32*n+:32]),
        .wrong(wrong[32*n+:32]),
        .skipped(skipped[32*n+:32]),
        .latency_cycles(latency_cycles[32*n+:32]),
        .routed(routed[32*n+:32]),
        .dropped(dropped[32*n+:32]),
        .down(down[32*n+:32]),
        .link_sent(link_sent[32*n+:32]),
        .link_came(link_came[32*n+:32]),
        .link_bad(link_bad[32*n+:32]),
        .ways(ways[STREAMS*STREAMS*n+:STREAMS*STREAMS])
    );
  end
endmodule

// A node with its two senders and its receiver. All nodes are this module with the same parameters, so that it is compiled once.
module torus_node #(
    parameter int LINKS = 3,
    parameter int DATA_WORDS = 256,
    parameter int HEADER_WORDS = 8,
    parameter int CREDIT_PERIOD_WORDS = 16,
    localparam int LOCALS = 1,
    localparam int STREAMS = 2 * (6 + LOCALS)
) (
    input logic clk,
    input logic rst,
    input logic [15:0] cycle,
    input logic [7:0] number,
    input logic [7:0] x,  // nodes of each dimension
    input logic [7:0] y,
    input logic [31:0] random,
    input logic sends,
    input logic pauses,
    input logic one,
    input logic [7:0] one_to,
    input logic [8:0] one_words,
    input logic [5:0] up,
    output logic [5:0] tx_valid,
    input logic [5:0] tx_ready,
    output logic [767:0] tx_data,
    input logic [5:0] rx_valid,
    input logic [767:0] rx_data,
    output logic [31:0] sent,
    output logic [31:0] received,
    output logic [31:0] flagged,
    output logic [31:0] wrong,
    output logic [31:0] skipped,
    output logic [31:0] latency_cycles,
    output logic [31:0] routed,
    output logic [31:0] dropped,
    output logic [31:0] down,
    output logic [31:0] link_sent,
    output logic [31:0] link_came,
    output logic [31:0] link_bad,
    output logic [STREAMS*STREAMS-1:0] ways
);
  /* verilator no_inline_module */
  wire [7:0] place_x = number % x;
  wire [7:0] place_y = number / x;
  logic [256*LOCALS-1:0] s_data;
  logic [2*LOCALS-1:0] s_valid, s_ready, s_last;
  logic [128*LOCALS-1:0] m_data;
  logic [LOCALS-1:0] m_valid, m_ready, m_last;
  logic [STREAMS-1:0] good, length, outside, turn, port, hops;
  logic [5:0] sent_links, down_links, good_links, flagged_links, crc_links, cut_links, header_links;
  logic [59:0] lost_links;
  apenet_node #(
      .LINKS(LINKS),
      .LOCALS(LOCALS),
      .DATA_WORDS(DATA_WORDS),
      .HEADER_WORDS(HEADER_WORDS),
      .CREDIT_PERIOD_WORDS(CREDIT_PERIOD_WORDS),
      .SILENCE_CYCLES(8 * CREDIT_PERIOD_WORDS)
  ) dut (
      .clk,
      .rst,
      .node_state('0),
      .neighbour_state(),
      .at({5'd0, place_y[4:0], place_x[5:0]}),
      .shape({6'd1, y[5:0], x[6:0]}),
      .s_axis_tdata(s_data),
      .s_axis_tvalid(s_valid),
      .s_axis_tready(s_ready),
      .s_axis_tlast(s_last),
      .m_axis_tdata(m_data),
      .m_axis_tvalid(m_valid),
      .m_axis_tready(m_ready),
      .m_axis_tlast(m_last),
      .m_space({44 * LOCALS{1'b1}}),
      .link_up(up),
      .silent(),
      .link_tx_valid(tx_valid),
      .link_tx_ready(tx_ready),
      .link_tx_data(tx_data),
      .link_rx_valid(rx_valid),
      .link_rx_data(rx_data),
      .count_good(good),
      .drop_length(length),
      .drop_outside(outside),
      .drop_turn(turn),
      .drop_port(port),
      .drop_hops(hops),
      .link_sent(sent_links),
      .drop_down(down_links),
      .link_good(good_links),
      .link_flagged(flagged_links),
      .error_crc(crc_links),
      .error_cut(cut_links),
      .drop_header(header_links),
      .drop_lost(lost_links),
      .noise(),
      .header_corrected()
  );

  // --- what it sends and receives ---
  wire [1:0] gave = s_valid[1:0] & s_ready[1:0] & s_last[1:0];
  for (genvar s = 0; s < 2; s++) begin : g_sender
    sender i_sender (
        .clk,
        .rst,
        .cycle,
        .name({7'd0, number, 1'(s)}),
        .x,
        .y,
        .seed({random[31:24], random[7:0]}),
        .sends,
        .one(s == 0 && one),
        .one_to,
        .one_words,
        .m_data(s_data[128*s+:128]),
        .m_valid(s_valid[s]),
        .m_ready(s_ready[s]),
        .m_last(s_last[s])
    );
  end
  assign m_ready = {LOCALS{!(pauses && random[11])}};
  receiver i_receiver (
      .clk,
      .rst,
      .cycle,
      .number,
      .x,
      .y,
      .s_data(m_data[127:0]),
      .s_valid(m_valid[0] && m_ready[0]),
      .s_last(m_last[0]),
      .received,
      .flagged,
      .wrong,
      .skipped,
      .latency_cycles
  );
  logic [31:0] lost;
  always_comb begin
    lost = '0;
    for (int p = 0; p < 6; p++) lost += 32'(lost_links[10*p+:10]);
  end
  always_ff @(posedge clk) begin
    sent <= sent + 32'($countones(gave));
    routed <= routed + 32'($countones(good));
    dropped <= dropped + 32'($countones({length, outside, turn, port, hops}));
    down <= down + 32'($countones(down_links));
    link_sent <= link_sent + 32'($countones(sent_links));
    link_came <= link_came + 32'($countones({good_links, flagged_links, crc_links, cut_links}));
    link_bad <= link_bad + 32'($countones({flagged_links, crc_links, cut_links, header_links})) + lost;
    for (int i = 0; i < STREAMS; i++) begin
      if (dut.i_router.granted[i]) ways[STREAMS*i+:STREAMS] <= ways[STREAMS*i+:STREAMS] | dut.i_router.offers[i];
    end
    if (rst) begin
      {sent, routed, dropped, down} <= '0;
      {link_sent, link_came, link_bad} <= '0;
      ways <= '0;
    end
  end
endmodule

// Packets to any node, of any length; the number of each to its destination is in its address, and when it was born.
module sender (
    input logic clk,
    input logic rst,
    input logic [15:0] cycle,
    input logic [15:0] name,
    input logic [7:0] x,
    input logic [7:0] y,
    input logic [15:0] seed,
    input logic sends,
    input logic one,
    input logic [7:0] one_to,
    input logic [8:0] one_words,
    output logic [127:0] m_data,
    output logic m_valid,
    input logic m_ready,
    output logic m_last
);
  logic [31:0] random;
  logic [15:0] numbers[256];
  logic [8:0] place;  // 0: the header
  apenet_pkg::header_t header;
  logic [31:0] crc, crc_next;
  wire [7:0] to = one ? one_to : 8'((32'(random[23:8]) * 32'(x) * 32'(y)) >> 16);
  wire [8:0] words = one ? one_words : random[7:4] == 4'd0 ? 9'(random[31:24]) : random[4] ? 9'(random[27:24]) : '0;
  wire [8:0] header_words = 9'(header.bytes >> 4);
  wire footer = place == header_words + 9'd1;
  assign m_last = m_valid && footer;
  assign m_data = place == '0 ? 128'(header) : footer ? {apenet_pkg::FOOTER_GOOD, ~crc} : traffic_pkg::word(header.address, name, place);
  crc32_wide i_crc (
      .crc(place == '0 ? '1 : crc),
      .data(place == '0 ? {8'd0, header & apenet_pkg::HEADER_FIXED} : m_data),
      .crc_next
  );
  wire ends = m_valid && m_ready && m_last;
  always_ff @(posedge clk) begin
    random <= {random[30:0], random[31] ^ random[21] ^ random[1] ^ random[0]};
    if (m_valid && m_ready) begin
      place <= place + 1'b1;
      crc <= crc_next;
    end
    if (!m_valid || ends) begin
      m_valid <= sends || one;
      place <= '0;
      header <= '0;
      header.x <= 6'(to % x);
      header.y <= 5'(to / x);
      header.process <= name;
      header.bytes <= {1'b0, words, 4'd0};
      header.packet_type <= {words == '0, 4'd1};
      header.address <= {cycle, 16'd0, numbers[to]};
      if (sends || one) numbers[to] <= numbers[to] + 1'b1;
    end
    if (rst) begin
      m_valid <= 1'b0;
      random <= {seed, name} ^ 32'h5EED_0000;
      numbers <= '{default: '0};
    end
  end
endmodule

module receiver (
    input logic clk,
    input logic rst,
    input logic [15:0] cycle,
    input logic [7:0] number,
    input logic [7:0] x,
    input logic [7:0] y,
    input logic [127:0] s_data,
    input logic s_valid,
    input logic s_last,
    output logic [31:0] received,
    output logic [31:0] flagged,
    output logic [31:0] wrong,
    output logic [31:0] skipped,
    output logic [31:0] latency_cycles
);
  logic [15:0] numbers[256];
  logic amid, differs;
  logic [8:0] place;
  apenet_pkg::header_t header;
  assign header = s_data[119:0];
  logic [119:0] head;
  apenet_pkg::header_t known;
  assign known = head;
  logic [31:0] crc, crc_next;
  crc32_wide i_crc (
      .crc(amid ? crc : '1),
      .data(amid ? s_data : {8'd0, header & apenet_pkg::HEADER_FIXED}),
      .crc_next
  );
  function automatic logic [7:0] distance(input logic [7:0] a, input logic [7:0] b, input logic [7:0] k);
    logic [7:0] d;
    d = a > b ? a - b : b - a;
    distance = 2 * d > k ? k - d : d;
  endfunction
  wire [15:0] from = header.process;
  wire [7:0] from_node = from[8:1];
  wire [7:0] place_x = number % x;
  wire [7:0] place_y = number / x;
  wire [15:0] place_in_order = header.address[15:0];
  wire known_sender = from < 16'd2 * 16'(x) * 16'(y);
  wire [9:0] hops = 10'(distance(from_node % x, place_x, x)) + 10'(distance(from_node / x, place_y, y));
  wire its_own = known_sender && 8'(header.x) == place_x && 8'(header.y) == place_y && header.vc == '0 && header.hops == hops && s_data[127:120] == '0;
  wire [15:0] missed = place_in_order - numbers[from[7:0]];
  wire is_flagged = s_data[127:32] == apenet_pkg::FOOTER_FLAGGED;
  wire is_good = s_data == {apenet_pkg::FOOTER_GOOD, ~crc} && place == 9'(known.bytes >> 4) + 9'd1 && !differs;
  always_ff @(posedge clk) begin
    if (s_valid) begin
      amid <= !s_last;
      crc <= crc_next;
      place <= amid ? place + 1'b1 : 9'd1;
      if (!amid) begin
        head <= header;
        differs <= !its_own || missed[15];  // doubled, or out of order
        if (known_sender) numbers[from[7:0]] <= place_in_order + 1'b1;
        if (!missed[15]) skipped <= skipped + 32'(missed);
        latency_cycles <= 32'(16'(cycle - header.address[47:32]));
      end else if (!s_last) begin
        if (s_data != traffic_pkg::word(known.address, known.process, place)) differs <= 1'b1;
      end else if (is_flagged) flagged <= flagged + 1'b1;
      else if (is_good) received <= received + 1'b1;
      else wrong <= wrong + 1'b1;
      if (!amid && s_last) wrong <= wrong + 1'b1;
    end
    if (rst) begin
      amid <= 1'b0;
      {received, flagged, wrong, skipped, latency_cycles} <= '0;
      numbers <= '{default: '0};
    end
  end
endmodule
