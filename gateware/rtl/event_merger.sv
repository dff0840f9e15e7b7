// SPDX-License-Identifier: Apache-2.0
// Event building: puts the parts of an event that come over several links together by their time, and sends the events in the order of time.
//
// Terms
//   part     what one link says of an event: a packet of an 8-byte event header and its hits, as decompressor gives it. Parts of one link come in order of time.
//   key      timestamp << 8 | fine time, 40 bits. Parts belong together if their keys are equal.
//   event    the same packet in words of 16 bytes, with the hits of all parts, those of link 0 first; event number is that of the first link's part.
//   closed   an event is sent with the parts that are there as soon as every link has this event or a later one at its head (complete: all have this one), or
//            its oldest part came in cfg_window_cycles ago, or there is no room left for another part of some link (overflow).
//
// Contract
//   * Each link has a buffer of DEPTH_WORDS for hits and as many places for headers. A full one holds up its link; nothing is dropped for want of room.
//   * A link that is not in cfg_links is not waited for, and its parts are dropped.
//   * A part whose event was sent, or would have to be sent before one that was, is dropped (drop_late). So is one that is more than cfg_jump ahead while other
//     links are not, or while no other link has it (drop_jump). `forget`, and cfg_lapse_cycles without an event (0: never), forget what was sent: then any key
//     is good.
//   * Every cfg_* may change in any cycle: what is decided from SELECT_CYCLES later on follows the new ones.
//   * With cfg_complete_only only complete events leave; parts of the others are read and thrown away (drop_incomplete, a pulse an event).
//   * At most HITS_MAX hits of an event are sent; the last ones are cut (count_cut, a pulse an event).
//   * An event is decided on DECIDE_CYCLES after the last word of its last part came in, if nothing else is in flight: always. Its first word leaves two cycles
//     after that, or as many more as pieces are needed to fill it.
//   * An event takes 3 cycles to be chosen, and one for its header and for each eight hits of each part to be sent, the two side by side. What is thrown away
//     takes as long as what is sent.
//
// Books
//   parts in of each link  = count_part + drop_late + drop_jump + drop_disabled + those in the buffer
//   events                 = count_complete + count_missing + count_overflow = packets out + drop_incomplete
module event_merger #(
    parameter int LINKS = 4,
    parameter int DEPTH_WORDS = 512,   // of each link's buffer [8 hits]; a power of two
    parameter int HITS_MAX = 128       // of a merged event
) (
    input logic clk,
    input logic rst,

    input logic [LINKS-1:0] cfg_links,
    input logic [     31:0] cfg_window_cycles,
    input logic [     39:0] cfg_jump,           // 1/256 of a timestamp
    input logic [     31:0] cfg_lapse_cycles,
    input logic             cfg_complete_only,
    input logic             forget,             // a pulse

    // Links stand side by side in each vector, link 0 lowest.
    input  logic [LINKS*64-1:0] s_axis_tdata,
    input  logic [   LINKS-1:0] s_axis_tvalid,
    output logic [   LINKS-1:0] s_axis_tready,
    input  logic [   LINKS-1:0] s_axis_tlast,

    output logic [    127:0] m_axis_tdata,
    output logic [     15:0] m_axis_tkeep,
    output logic             m_axis_tvalid,
    input  logic             m_axis_tready,
    output logic             m_axis_tlast,
    output logic [LINKS-1:0] m_meta_parts,  // the links whose parts are in the event

    output logic [LINKS-1:0] count_part,
    output logic [LINKS-1:0] drop_late,
    output logic [LINKS-1:0] drop_jump,
    output logic [LINKS-1:0] drop_disabled,
    output logic             count_complete,
    output logic             count_missing,
    output logic             count_overflow,
    output logic             drop_incomplete,
    output logic             count_cut
);
  localparam int SELECT_CYCLES = 2;
  localparam int DECIDE_CYCLES = 2 + SELECT_CYCLES;
  localparam int KEY_BITS = event_pkg::KEY_BITS;
  localparam int HITS_BITS = 11;  // of a sum over all links
  localparam int ORDERS = 4;      // a power of two
  localparam int PAIRS = (LINKS + 1) / 2;

  if (LINKS < 2 || LINKS > 8) begin : g_check_links
    $fatal(1, "LINKS must be 2 to 8 (instance %m)");
  end
  if (DEPTH_WORDS < 128) begin : g_check_depth
    $fatal(1, "DEPTH_WORDS must be at least 128, some of the longest parts (instance %m)");
  end
  if (HITS_MAX < 1 || HITS_MAX > 255) begin : g_check_hits
    $fatal(1, "HITS_MAX must be 1 to 255 (instance %m)");
  end

  logic [31:0] now;
  always_ff @(posedge clk) now <= rst ? '0 : now + 32'd1;

  // --- a buffer a link ---
  logic [LINKS-1:0] head_valid, pop, full, hits_valid, hits_pop;
  logic [LINKS*32-1:0] ages;
  logic [LINKS*8-1:0] head_hits;
  logic [LINKS*16-1:0] head_number;
  logic [LINKS*KEY_BITS-1:0] head_key;
  logic [LINKS*128-1:0] hits;

  for (genvar link = 0; link < LINKS; link++) begin : g_link
    logic [31:0] came;
    assign ages[32*link+:32] = now - came;

    part_buffer #(
        .DEPTH_WORDS(DEPTH_WORDS)
    ) buffer (
        .clk,
        .rst,
        .now,
        .s_axis_tdata(s_axis_tdata[64*link+:64]),
        .s_axis_tvalid(s_axis_tvalid[link]),
        .s_axis_tready(s_axis_tready[link]),
        .s_axis_tlast(s_axis_tlast[link]),
        .head_valid(head_valid[link]),
        .head_pop(pop[link]),
        .head_key(head_key[KEY_BITS*link+:KEY_BITS]),
        .head_number(head_number[16*link+:16]),
        .head_hits(head_hits[8*link+:8]),
        .head_came(came),
        .hits_valid(hits_valid[link]),
        .hits_pop(hits_pop[link]),
        .hits(hits[128*link+:128]),
        .full(full[link])
    );
  end

  // --- which event is next, and whether it is time. What event_select says of the heads of one cycle stands beside what else was seen in it. ---
  logic [SELECT_CYCLES-1:0] looked;  // nothing was decided since
  logic [LINKS-1:0] links[SELECT_CYCLES], present[SELECT_CYCLES];
  logic [LINKS*32-1:0] ages_seen;
  logic [LINKS-1:0] late, stray, earliest, old, filled;
  logic [KEY_BITS-1:0] key;
  logic jumps, was_full, lapsed, orders_room;
  always_ff @(posedge clk) begin
    links[0] <= cfg_links;
    present[0] <= head_valid;
    ages_seen <= ages;
    filled <= full & cfg_links;
    for (int stage = 1; stage < SELECT_CYCLES; stage++) begin
      links[stage] <= links[stage-1];
      present[stage] <= present[stage-1];
    end
    for (int link = 0; link < LINKS; link++) old[link] <= ages_seen[32*link+:32] >= cfg_window_cycles;
    was_full <= filled != '0;
  end

  wire [LINKS-1:0] unwanted = present[SELECT_CYCLES-1] & ~links[SELECT_CYCLES-1];
  wire complete = earliest == links[SELECT_CYCLES-1];
  wire certain = (links[SELECT_CYCLES-1] & ~present[SELECT_CYCLES-1]) == '0;
  wire due = certain || was_full || (earliest & old) != '0;
  wire decides = looked[SELECT_CYCLES-1] && orders_room;
  wire [LINKS-1:0] refused = unwanted | late | stray;
  wire refuses = decides && refused != '0;
  wire chooses = decides && !refuses && earliest != '0 && due;
  wire closes = chooses && !jumps;
  wire discards = !closes || (cfg_complete_only && !complete);
  assign pop = refuses ? refused : chooses ? earliest : '0;

  event_select #(
      .LINKS(LINKS),
      .KEY_BITS(KEY_BITS)
  ) i_select (
      .clk,
      .rst,
      .head_valid(head_valid & cfg_links),
      .head_key,
      .cfg_jump,
      .sent(closes),
      .forget(forget || lapsed),
      .late,
      .stray,
      .earliest,
      .key,
      .jumps
  );

  logic [31:0] silence;
  always_ff @(posedge clk) begin
    looked <= rst || refuses || chooses ? '0 : {looked[SELECT_CYCLES-2:0], 1'b1};
    silence <= rst || closes || lapsed ? '0 : silence + 32'd1;
    lapsed <= !rst && !closes && cfg_lapse_cycles != '0 && silence >= cfg_lapse_cycles;
  end

  // --- an order for each event: which parts it has, and what to do with their hits ---
  typedef struct packed {
    logic                 discards;
    logic [LINKS-1:0]     parts;
    logic [LINKS-1:0]     with_hits;   // those of them that have some
    logic [LINKS*8-1:0]   hits;        // of each of them
    logic [7:0]           hits_sent;
    logic [3:0]           word_hits;   // of those, in the first word
    logic [KEY_BITS-1:0]  key;
    logic [15:0]          number;
  } order_t;

  function automatic logic [LINKS-1:0] lowest(input logic [LINKS-1:0] among);
    for (int link = 0; link < LINKS; link++) lowest[link] = among[link] && (among & ((LINKS'(1) << link) - 1'b1)) == '0;
  endfunction

  function automatic logic [3:0] word_of(input logic [7:0] hits_left);
    word_of = hits_left[7:3] != '0 ? 4'd8 : hits_left[3:0];
  endfunction

  // What is to be known of the heads before it is known which of them are earliest: they stand still until then.
  logic [LINKS-1:0] any_hits;
  logic [LINKS*4-1:0] first_word;
  logic [PAIRS*9-1:0] pair_hits;
  always_ff @(posedge clk) begin
    for (int link = 0; link < LINKS; link++) begin
      any_hits[link] <= head_hits[8*link+:8] != '0;
      first_word[4*link+:4] <= word_of(head_hits[8*link+:8] > 8'(HITS_MAX) ? 8'(HITS_MAX) : head_hits[8*link+:8]);
      if (link % 2 == 1) pair_hits[9*(link/2)+:9] <= 9'(head_hits[8*link+:8]) + 9'(head_hits[8*(link-1)+:8]);
    end
  end

  order_t orders[ORDERS];
  order_t order_next, order;
  logic [$clog2(ORDERS):0] orders_written, orders_read;
  logic order_done;
  logic [HITS_BITS-1:0] hits_sum;
  logic [HITS_BITS:0] hits_over;  // hits_sum less HITS_MAX + 1, with a sign
  logic [15:0] number_next;
  logic [3:0] word_next;
  logic [LINKS-1:0] first_with_hits;
  always_comb begin
    hits_sum = '0;
    hits_over = ~(HITS_BITS + 1)'(HITS_MAX);
    for (int pair = 0; pair < LINKS; pair += 2) begin
      logic [8:0] both;
      both = earliest[pair] ? 9'(head_hits[8*pair+:8]) : '0;
      if (pair + 1 < LINKS && earliest[pair+1]) both = earliest[pair] ? pair_hits[9*(pair/2)+:9] : 9'(head_hits[8*(pair+1)+:8]);
      hits_sum += HITS_BITS'(both);
      hits_over += (HITS_BITS + 1)'(both);
    end
    number_next = '0;
    for (int link = LINKS - 1; link >= 0; link--) if (earliest[link]) number_next = head_number[16*link+:16];
    first_with_hits = lowest(earliest & any_hits);
    word_next = '0;
    for (int link = 0; link < LINKS; link++) if (first_with_hits[link]) word_next |= first_word[4*link+:4];
  end
  wire is_cut = !hits_over[HITS_BITS];
  assign order_next = '{discards, pop, pop & any_hits, head_hits, is_cut ? 8'(HITS_MAX) : hits_sum[7:0], word_next, key, number_next};
  wire [$clog2(ORDERS):0] orders_held = orders_written - orders_read;
  assign orders_room = orders_held != ($clog2(ORDERS) + 1)'(ORDERS);
  wire order_valid = orders_held != '0;
  assign order = orders[orders_read[$clog2(ORDERS)-1:0]];

  always_ff @(posedge clk) begin
    if (refuses || chooses) begin
      orders[orders_written[$clog2(ORDERS)-1:0]] <= order_next;
      orders_written <= orders_written + 1'b1;
    end
    if (order_done) orders_read <= orders_read + 1'b1;
    if (rst) begin
      orders_written <= '0;
      orders_read <= '0;
    end
  end

  // --- an event on its way out: its header, then the hits of one part after another, a word of them in a cycle. What is thrown away goes the same way. ---
  // What a word needs is made ready with the one before it, and the part after its part with that: so what is cut is known without a cycle for it.
  logic begun;                         // its header was taken
  logic [LINKS-1:0] chosen, second;    // the part whose hits are given, and the one after it
  logic [LINKS-1:0] rest;              // those after these
  logic [7:0] part_left, second_hits;  // of the first, with those of this word; of the second
  logic [3:0] kept_hits;               // of this word, those that are sent
  logic [7:0] room;                    // hits that may be sent after it
  function automatic logic [7:0] hits_of(input logic [LINKS-1:0] part, input logic [LINKS*8-1:0] all);
    hits_of = '0;
    for (int link = 0; link < LINKS; link++) if (part[link]) hits_of |= all[8*link+:8];
  endfunction

  logic [127:0] word;
  always_comb begin
    word = '0;
    for (int link = 0; link < LINKS; link++) if (chosen[link]) word |= hits[128*link+:128];
  end
  logic gather_ready;
  wire goes = order.discards || gather_ready;
  wire heads = order_valid && !begun;
  wire gives = order_valid && begun;
  wire part_ends = part_left[7:4] == '0 && (!part_left[3] || part_left[2:0] == '0);  // 8 or less
  wire piece_last = heads ? order.with_hits == '0 : part_ends && second == '0;
  wire piece_valid = order_valid && !order.discards;
  wire word_taken = gives && goes;
  assign hits_pop = word_taken ? chosen : '0;
  assign order_done = order_valid && goes && piece_last;

  wire [LINKS-1:0] order_first = lowest(order.with_hits);
  wire [LINKS-1:0] order_others = order.with_hits & ~order_first;
  wire [LINKS-1:0] third = lowest(heads ? order_others : rest);  // to become the second
  wire [3:0] word_hits = part_ends ? word_of(second_hits) : part_left[7:4] != 4'd0 ? 4'd8 : {1'b0, part_left[2:0]};  // of the next word
  wire fits = room >= 8'(word_hits);

  always_ff @(posedge clk) begin
    if (heads && goes) begin
      begun <= 1'b1;
      chosen <= order_first;
      part_left <= hits_of(order_first, order.hits);
      kept_hits <= order.word_hits;
      room <= order.hits_sent - 8'(order.word_hits);
    end
    if (word_taken) begin
      if (part_ends) chosen <= second;
      part_left <= part_ends ? second_hits : part_left - 8'd8;
      kept_hits <= fits ? word_hits : room[3:0];
      room <= fits ? room - 8'(word_hits) : '0;
    end
    if (goes && (heads || (gives && part_ends))) begin
      second <= third;
      second_hits <= hits_of(third, order.hits);
      rest <= (heads ? order_others : rest) & ~third;
    end
    if (order_done || rst) begun <= 1'b0;
  end

  event_gather #(
      .HALVES(8),
      .META_BITS(LINKS)
  ) i_gather (
      .clk,
      .rst,
      .s_data(heads ? {64'b0, order.number, order.hits_sent, order.key[7:0], order.key[KEY_BITS-1:8]} : word),
      .s_halves(heads ? 4'd4 : kept_hits),
      .s_last(piece_last),
      .s_meta(order.parts),
      .s_valid(piece_valid),
      .s_ready(gather_ready),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .m_meta(m_meta_parts)
  );

  // --- what became of each part and each event ---
  always_ff @(posedge clk) begin
    count_part <= closes && !rst ? earliest : '0;
    drop_jump <= rst ? '0 : refuses ? stray : chooses && jumps ? earliest : '0;
    drop_late <= refuses && !rst ? late : '0;
    drop_disabled <= refuses && !rst ? unwanted : '0;
    count_complete <= closes && complete && !rst;
    count_overflow <= closes && !complete && !certain && was_full && !rst;
    count_missing <= closes && !complete && (certain || !was_full) && !rst;
    drop_incomplete <= closes && !complete && cfg_complete_only && !rst;
    count_cut <= closes && !discards && is_cut && !rst;
  end

  // --- what must hold ---
  logic waits;
  always_ff @(posedge clk) begin
    waits <= !rst && m_axis_tvalid && !m_axis_tready;
    if (!rst) begin
      assert (!waits || m_axis_tvalid);
      assert ((pop & ~head_valid) == '0);
      assert (!gives || (part_left != '0 && $onehot(chosen)));
      assert (!gives || ((chosen | second | rest) & ~hits_valid) == '0);  // hits are there before their header is
      assert (!gives || order.discards || kept_hits <= word_of(part_left));
      assert ($onehot0({count_complete, count_missing, count_overflow}));
    end
  end
endmodule
