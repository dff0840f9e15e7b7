// SPDX-License-Identifier: Apache-2.0
// Event building: puts the parts of an event that come over several links together by their time, and sends the events in the order of time.
//
// Terms
//   part     what one link says of an event: a packet of an 8-byte event header and its hits, as decompressor gives it. Parts of one link come in order of time.
//   key      timestamp << 8 | fine time, 40 bits. Parts belong together if their keys are equal.
//   event    the same packet, with the hits of all parts, those of link 0 first; event number is that of the first link's part.
//   closed   an event is sent with the parts that are there as soon as every link has this event or a later one at its head (complete: all have this one), or
//            its oldest part came in cfg_window_cycles ago, or there is no room left for another part of some link (overflow).
//
// Contract
//   * Each link has a buffer of DEPTH_WORDS. A full one holds up its link; nothing is dropped for want of room.
//   * A link that is not in cfg_links is not waited for, and its parts are dropped.
//   * A part whose event was sent, or would have to be sent before one that was, is dropped (drop_late). So is one that is more than cfg_jump ahead while other
//     links are not, or while no other link has it (drop_jump). `forget`, and cfg_lapse_cycles without an event (0: never), forget what was sent: then any key
//     is good.
//   * With cfg_complete_only only complete events leave; parts of the others are read and thrown away (drop_incomplete, a pulse an event).
//   * At most HITS_MAX hits of an event are sent; the last ones are cut (count_cut, a pulse an event).
//   * From the last word of the last part in to the first word out LATENCY_CYCLES, if nothing else is in flight: always. An event takes 4 cycles and one for each
//     word of hits of its parts.
//
// Books
//   parts in of each link  = count_part + drop_late + drop_jump + drop_disabled + those in the buffer
//   events                 = count_complete + count_missing + count_overflow = packets out + drop_incomplete
module event_merger #(
    parameter int LINKS = 4,
    parameter int DEPTH_WORDS = 1024,  // of each link's buffer; a power of two
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
    input  logic [ LINKS*8-1:0] s_axis_tkeep,
    input  logic [   LINKS-1:0] s_axis_tvalid,
    output logic [   LINKS-1:0] s_axis_tready,
    input  logic [   LINKS-1:0] s_axis_tlast,

    output logic [     63:0] m_axis_tdata,
    output logic [      7:0] m_axis_tkeep,
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
  localparam int FIFO_CYCLES = 2, SELECT_CYCLES = 2, SEND_CYCLES = 3;
  localparam int LATENCY_CYCLES = FIFO_CYCLES + SELECT_CYCLES + SEND_CYCLES;
  localparam int PART_WORDS_MAX = 65;
  localparam int KEY_BITS = event_pkg::KEY_BITS;
  localparam int HITS_BITS = 11;  // of a sum over all links

  if (LINKS < 2 || LINKS > 8) begin : g_check_links
    $fatal(1, "LINKS must be 2 to 8 (instance %m)");
  end
  if (DEPTH_WORDS < 256) begin : g_check_depth
    $fatal(1, "DEPTH_WORDS must be at least 256, some of the longest parts (instance %m)");
  end
  if (HITS_MAX < 1 || HITS_MAX > 255) begin : g_check_hits
    $fatal(1, "HITS_MAX must be 1 to 255 (instance %m)");
  end

  typedef enum logic [1:0] {LOOK, SEND, HITS, SKIP} state_t;

  logic [31:0] now;
  always_ff @(posedge clk) now <= rst ? '0 : now + 32'd1;

  // --- a buffer a link ---
  logic [LINKS-1:0] part_valid, part_last, at_head, pop, full;
  logic [LINKS*32-1:0] ages;
  logic [LINKS*64-1:0] part_data;
  logic [LINKS*8-1:0] part_keep;
  logic [LINKS*KEY_BITS-1:0] part_key;
  wire [LINKS-1:0] head_valid = part_valid & at_head;

  for (genvar link = 0; link < LINKS; link++) begin : g_link
    logic [$clog2(DEPTH_WORDS):0] fill_words;
    logic [31:0] came;
    assign ages[32*link+:32] = now - came;
    assign s_axis_tready[link] = fill_words != ($clog2(DEPTH_WORDS) + 1)'(DEPTH_WORDS);
    assign part_key[KEY_BITS*link+:KEY_BITS] = {part_data[64*link+:32], part_data[64*link+32+:8]};

    frame_fifo #(
        .DEPTH_WORDS(DEPTH_WORDS),
        .PACKETS(DEPTH_WORDS),
        .META_BITS(32)
    ) buffer (
        .clk,
        .rst,
        .s_axis_tdata(s_axis_tdata[64*link+:64]),
        .s_axis_tkeep(s_axis_tkeep[8*link+:8]),
        .s_axis_tvalid(s_axis_tvalid[link] && s_axis_tready[link]),
        .s_axis_tlast(s_axis_tlast[link]),
        .s_axis_tuser(1'b0),
        .s_meta(now),
        .m_axis_tdata(part_data[64*link+:64]),
        .m_axis_tkeep(part_keep[8*link+:8]),
        .m_axis_tvalid(part_valid[link]),
        .m_axis_tready(pop[link]),
        .m_axis_tlast(part_last[link]),
        .m_meta(came),
        .fill_words,
        .count_good(),
        .count_bad(),
        .drop_full()
    );

    always_ff @(posedge clk) begin
      if (pop[link] && part_valid[link]) at_head[link] <= part_last[link];
      full[link] <= int'(fill_words) > DEPTH_WORDS - PART_WORDS_MAX;
      if (rst) at_head[link] <= 1'b1;
    end
  end

  // --- which event is next, and whether it is time. What event_select says of the heads of one cycle stands beside what else was seen in it. ---
  state_t state;
  logic [SELECT_CYCLES-1:0] looked;  // in that cycle no word was in flight
  logic [LINKS-1:0] links[SELECT_CYCLES], present[SELECT_CYCLES];
  logic [LINKS*32-1:0] ages_seen;
  logic [LINKS-1:0] late, stray, earliest, old, filled;
  logic [KEY_BITS-1:0] key;
  logic jumps, was_full, lapsed;
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
  wire decides = state == LOOK && looked[SELECT_CYCLES-1];
  wire [LINKS-1:0] refused = unwanted | late | stray;
  wire refuses = decides && refused != '0;
  wire chooses = decides && !refuses && earliest != '0 && due;
  wire closes = chooses && !jumps;

  event_select #(
      .LINKS(LINKS),
      .KEY_BITS(KEY_BITS)
  ) i_select (
      .clk,
      .rst,
      .head_valid(head_valid & cfg_links),
      .head_key(part_key),
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
    silence <= rst || closes || lapsed ? '0 : silence + 32'd1;
    lapsed <= !rst && !closes && cfg_lapse_cycles != '0 && silence >= cfg_lapse_cycles;
  end

  // --- an event on its way out ---
  logic [LINKS-1:0] parts, pending;  // pending: parts with hits to send, or with words to skip
  logic [LINKS-1:0] parts_sent;      // of the event whose last word waits for its flush
  logic [HITS_BITS-1:0] hits_sum, hits_next;
  logic [8:0] room;                  // hits that may still be sent
  logic [KEY_BITS-1:0] event_key;
  logic [15:0] event_number, event_number_next;
  logic flushes, discards;
  logic [63:0] hits_data;
  logic [2:0] hits_halves;
  logic hits_last, hits_valid;
  wire [LINKS-1:0] chosen = pending & (~pending + 1'b1);
  wire [7:0] hits_sent = hits_sum > HITS_BITS'(HITS_MAX) ? 8'(HITS_MAX) : hits_sum[7:0];

  always_comb begin
    hits_next = '0;
    hits_data = '0;
    hits_halves = '0;
    event_number_next = '0;
    for (int link = LINKS - 1; link >= 0; link--) begin
      if (earliest[link]) begin
        hits_next += HITS_BITS'(part_data[64*link+40+:8]);
        event_number_next = part_data[64*link+48+:16];
      end
      if (chosen[link]) begin
        hits_data |= part_data[64*link+:64];
        hits_halves |= event_pkg::halves(part_keep[8*link+:8]);
      end
    end
  end
  assign hits_last = (chosen & part_last) != '0;
  assign hits_valid = (chosen & part_valid) != '0;

  logic gather_valid, gather_ready;
  logic [2:0] gather_halves;
  wire [2:0] hits_kept = room < 9'(hits_halves) ? room[2:0] : hits_halves;
  assign gather_valid = !flushes && (state == SEND ? !discards : state == HITS && hits_valid && hits_kept != '0 && !discards);
  assign gather_halves = state == SEND ? 3'd4 : hits_kept;
  wire accepted = !flushes && (gather_ready || !gather_valid);

  event_gather #(
      .META_BITS(LINKS)
  ) i_gather (
      .clk,
      .rst,
      .s_data(state == SEND ? {event_number, hits_sent, event_key[7:0], event_key[KEY_BITS-1:8]} : hits_data),
      .s_halves(gather_halves),
      .s_meta(flushes ? parts_sent : parts),
      .s_valid(gather_valid),
      .s_flush(flushes),
      .s_ready(gather_ready),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .m_meta(m_meta_parts)
  );

  always_comb begin
    case (state)
      SEND: pop = accepted ? parts : '0;
      HITS: pop = accepted ? chosen : '0;
      SKIP: pop = pending;
      default: pop = '0;
    endcase
  end

  always_ff @(posedge clk) begin
    if (flushes && gather_ready) flushes <= 1'b0;
    if (!flushes) parts_sent <= parts;
    looked <= state == LOOK && !refuses && !chooses ? {looked[SELECT_CYCLES-2:0], 1'b1} : '0;
    case (state)
      LOOK: begin
        pending <= refuses ? refused : earliest;
        event_key <= key;
        event_number <= event_number_next;
        hits_sum <= hits_next;
        if (closes) begin
          parts <= earliest;
          discards <= cfg_complete_only && !complete;
          state <= SEND;
        end else if (refuses || chooses) state <= SKIP;
      end
      SEND: begin
        room <= 9'(hits_sent);
        if (accepted) begin
          pending <= parts & ~part_last;
          state <= (parts & ~part_last) != '0 ? HITS : LOOK;
          flushes <= (parts & ~part_last) == '0 && !discards;
        end
      end
      HITS: begin
        if (accepted && hits_valid) begin
          room <= room - 9'(hits_kept);
          if (hits_last) begin
            pending <= pending & ~chosen;
            if (pending == chosen) begin
              state <= LOOK;
              flushes <= !discards;
            end
          end
        end
      end
      SKIP: begin
        pending <= pending & ~(part_valid & part_last);
        if ((pending & ~(part_valid & part_last)) == '0) state <= LOOK;
      end
      default: state <= LOOK;
    endcase
    if (rst) begin
      state <= LOOK;
      looked <= '0;
      flushes <= 1'b0;
    end
  end

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
    count_cut <= state == SEND && accepted && !discards && hits_sum > HITS_BITS'(HITS_MAX) && !rst;
  end

  // --- what must hold ---
  logic waits;
  logic [SEND_CYCLES-1:0] sends;
  always_ff @(posedge clk) begin
    waits <= !rst && m_axis_tvalid && !m_axis_tready;
    sends <= rst ? '0 : {sends[SEND_CYCLES-2:0], closes && !flushes && !m_axis_tvalid && !(cfg_complete_only && !complete)};
    if (!rst) begin
      assert (!waits || m_axis_tvalid);
      assert (!sends[SEND_CYCLES-1] || m_axis_tvalid);
      assert (state != SEND || (parts & ~head_valid) == '0);
      assert (state != HITS || hits_valid);
      assert (state != HITS || ((chosen & at_head) == '0 && chosen != '0));
      assert ($onehot0({count_complete, count_missing, count_overflow}));
    end
  end
endmodule
