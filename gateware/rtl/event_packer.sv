// SPDX-License-Identifier: Apache-2.0
// Packs events into packets of M2EGP (docs/formats-merged.md), which the software reads as it reads those of a node that forwards.
//
// Contract
//   * An event is a packet as event_merger sends it: header, then up to 128 hits of 16 bits. Its event number is replaced by the running number of events since
//     reset; packets are numbered from reset on, too. Run markers are not made.
//   * A packet leaves when the next event does not fit into PACKET_BYTES_MAX, when it has 255 events, or cfg_flush_cycles after its first event's last word.
//   * After the last event there is nothing; with cfg_parts, in the place of a filling, s_meta_parts of each event, a byte each, and a zero to make them even.
//   * Packets leave without gaps but for m_axis_tready. DEPTH_WORDS of them wait; then the input does. Nothing is dropped.
//   * now_ns is the time in the header: when the packet's turn to leave came.
//   * Sideband holds from a packet's first word to its last.
module event_packer #(
    parameter int PACKET_BYTES_MAX = 1472,  // even, 282 to 8972
    parameter int DEPTH_WORDS = 256         // [16 B]; a power of two, more than the largest packet by 16
) (
    input logic clk,
    input logic rst,

    input logic [ 7:0] cfg_source_id,
    input logic [ 7:0] cfg_source_sub_id,
    input logic [31:0] cfg_flush_cycles,
    input logic        cfg_parts,          // stands still while a packet is open
    input logic [31:0] now_ns,

    input  logic [127:0] s_axis_tdata,
    input  logic [ 15:0] s_axis_tkeep,
    input  logic         s_axis_tvalid,
    output logic         s_axis_tready,
    input  logic         s_axis_tlast,
    input  logic [  7:0] s_meta_parts,

    output logic [127:0] m_axis_tdata,
    output logic [ 15:0] m_axis_tkeep,
    output logic         m_axis_tvalid,
    input  logic         m_axis_tready,
    output logic         m_axis_tlast,
    output logic [ 15:0] m_meta_payload_bytes,
    output logic [  7:0] m_meta_event_count,

    output logic count_event,  // taken
    output logic count_packet  // closed
);
  localparam int BYTES_BITS = 14;
  localparam int HALVES = 8;      // a word
  localparam int SUM_CYCLES = 6;  // of event_checksum
  localparam int META_BITS = 8 + BYTES_BITS;
  localparam int ROOM_BITS = BYTES_BITS;
  localparam int ROOM = (PACKET_BYTES_MAX - event_pkg::HEADER_BYTES) / 2;  // halves of an empty packet

  if (PACKET_BYTES_MAX < 282 || PACKET_BYTES_MAX > 8972 || PACKET_BYTES_MAX % 2 != 0) begin : g_check_bytes
    $fatal(1, "PACKET_BYTES_MAX must be even, 282 to 8972 (instance %m)");
  end
  if (DEPTH_WORDS < PACKET_BYTES_MAX / 16 + 16) begin : g_check_depth
    $fatal(1, "DEPTH_WORDS must be more than the words of a packet by 16 (instance %m)");
  end

  // --- events, one after another ---
  logic in_event;                  // an event's header was taken, its last word was not
  logic [7:0] events;              // in the packet that is open
  logic [BYTES_BITS-1:0] bytes;    // of it, header included
  logic [ROOM_BITS-1:0] room;      // halves that an event may have, after those that are in and with the parts of both; negative: none
  logic [15:0] event_number;
  logic [31:0] age;
  logic aged, can_offer;
  wire [ROOM_BITS-1:0] event_halves = ROOM_BITS'(event_pkg::EVENT_HEADER_BYTES / 2) + ROOM_BITS'(s_axis_tdata[47:40]);
  wire [ROOM_BITS-1:0] room_after = room - event_halves;
  wire fits = events != 8'(event_pkg::EVENTS_MAX) && !room_after[ROOM_BITS-1];
  wire closes = !in_event && events != '0 && (aged || (s_axis_tvalid && !fits));
  wire takes = s_axis_tvalid && !closes && can_offer;
  assign s_axis_tready = can_offer && !closes;
  wire [BYTES_BITS-1:0] parts_bytes = cfg_parts ? (BYTES_BITS'(events) + BYTES_BITS'(1)) & ~BYTES_BITS'(1) : '0;

  // --- the parts of each event, eight events a word; they go after the last event ---
  logic [63:0] parts[32];
  logic [63:0] parts_open;   // the word that is not full yet
  logic [5:0] parts_sent;    // words
  wire [63:0] parts_word = (events[2:0] == '0 ? '0 : parts_open) | (64'(s_meta_parts) << {events[2:0], 3'b0});
  wire [5:0] parts_words = 6'((9'(events) + 9'd7) >> 3);
  wire parts_last = parts_sent + 6'd1 == parts_words;
  wire [3:0] parts_halves = parts_last && events[2:0] != '0 ? (4'(events[2:0]) + 4'd1) >> 1 : 4'd4;
  wire adds_parts = closes && cfg_parts && parts_sent != parts_words;
  wire flushes = closes && !adds_parts;

  always_ff @(posedge clk) begin
    if (takes && s_axis_tlast) begin
      parts[events[7:3]] <= parts_word;
      parts_open <= parts_word;
    end
    if (adds_parts && can_offer) parts_sent <= parts_sent + 6'd1;
    if (rst || (flushes && can_offer)) parts_sent <= '0;
  end

  always_ff @(posedge clk) begin
    aged <= events != '0 && !(flushes && can_offer) && (aged || age >= cfg_flush_cycles);
    if (events != '0) age <= age + 32'd1;
    count_event <= takes && s_axis_tlast && !rst;
    count_packet <= flushes && can_offer && !rst;
    if (takes) begin
      in_event <= !s_axis_tlast;
      if (!in_event) begin
        bytes <= bytes + {event_halves[BYTES_BITS-2:0], 1'b0};
        event_number <= event_number + 16'd1;
      end
      // A pair of events brings a half of parts.
      room <= (in_event ? room : events == '0 ? ROOM_BITS'(ROOM) - ROOM_BITS'(cfg_parts) - event_halves : room_after) -
              ROOM_BITS'(s_axis_tlast && cfg_parts && events[0]);
      if (s_axis_tlast) begin
        events <= events + 8'd1;
        if (events == '0) age <= 32'd1;
      end
    end
    if (flushes && can_offer) begin
      events <= '0;
      bytes <= BYTES_BITS'(event_pkg::HEADER_BYTES);
    end
    if (rst) begin
      in_event <= 1'b0;
      events <= '0;
      bytes <= BYTES_BITS'(event_pkg::HEADER_BYTES);
      event_number <= '0;
      aged <= 1'b0;
    end
  end

  // --- what goes next: a word of an event, or of parts, or the end ---
  logic [127:0] piece, word;
  logic [3:0] piece_halves;
  logic piece_valid, piece_last, gather_ready, word_valid, word_ready, word_last;
  logic [META_BITS-1:0] piece_meta, word_meta;
  logic [15:0] word_keep;
  logic [3:0] halves;
  assign can_offer = !piece_valid || gather_ready;
  always_comb begin
    halves = '0;
    for (int half = 0; half < HALVES; half++) if (s_axis_tkeep[2*half]) halves = 4'(half + 1);
  end
  always_ff @(posedge clk) begin
    if (can_offer) begin
      piece_valid <= closes || s_axis_tvalid;
      piece <= adds_parts ? {64'b0, parts[parts_sent[4:0]]} : in_event ? s_axis_tdata : {s_axis_tdata[127:64], event_number, s_axis_tdata[47:0]};
      piece_halves <= flushes ? 4'd0 : adds_parts ? parts_halves : halves;
      piece_last <= flushes;
      piece_meta <= {events, bytes + parts_bytes};
    end
    if (rst) piece_valid <= 1'b0;
  end
  event_gather #(
      .HALVES(HALVES),
      .META_BITS(META_BITS)
  ) i_gather (
      .clk,
      .rst,
      .s_data(piece),
      .s_halves(piece_halves),
      .s_last(piece_last),
      .s_meta(piece_meta),
      .s_valid(piece_valid),
      .s_ready(gather_ready),
      .m_axis_tdata(word),
      .m_axis_tkeep(word_keep),
      .m_axis_tvalid(word_valid),
      .m_axis_tready(word_ready),
      .m_axis_tlast(word_last),
      .m_meta(word_meta)
  );

  // --- the body waits for its checksum, and then for its turn ---
  logic [$clog2(DEPTH_WORDS):0] fill_words;
  logic body_begins;
  logic [15:0] first_sum, second_sum;
  logic [SUM_CYCLES-1:0] valids, lasts;
  logic [127:0] datas[SUM_CYCLES];
  logic [15:0] keeps[SUM_CYCLES];
  logic [META_BITS-1:0] metas[SUM_CYCLES];
  wire word_goes = word_valid && word_ready;
  assign word_ready = int'(fill_words) < DEPTH_WORDS - 2 * SUM_CYCLES;

  logic [HALVES-1:0] word_counts;
  always_comb for (int half = 0; half < HALVES; half++) word_counts[half] = word_keep[2*half];
  event_checksum #(
      .HALVES(HALVES)
  ) i_checksum (
      .clk,
      .valid(word_goes),
      .first(body_begins),
      .counts(word_counts),
      .data(word),
      .first_sum,
      .second_sum
  );

  always_ff @(posedge clk) begin
    if (word_goes) body_begins <= word_last;
    datas[0] <= word;
    keeps[0] <= word_keep;
    metas[0] <= word_meta;
    for (int stage = 1; stage < SUM_CYCLES; stage++) begin
      datas[stage] <= datas[stage-1];
      keeps[stage] <= keeps[stage-1];
      metas[stage] <= metas[stage-1];
    end
    valids <= rst ? '0 : {valids[SUM_CYCLES-2:0], word_goes};
    lasts <= {lasts[SUM_CYCLES-2:0], word_last};
    if (rst) body_begins <= 1'b1;
  end

  logic [127:0] body;
  logic [15:0] body_keep;
  logic [7:0] body_events;
  logic body_valid, body_ready, body_last, dropped;
  logic [BYTES_BITS-1:0] body_bytes;
  logic [15:0] body_first_sum, body_second_sum;
  frame_fifo #(
      .DEPTH_WORDS(DEPTH_WORDS),
      .PACKETS(DEPTH_WORDS),
      .DATA_BITS(16 * HALVES),
      .META_BITS(META_BITS + 32)
  ) bodies (
      .clk,
      .rst,
      .s_axis_tdata(datas[SUM_CYCLES-1]),
      .s_axis_tkeep(keeps[SUM_CYCLES-1]),
      .s_axis_tvalid(valids[SUM_CYCLES-1]),
      .s_axis_tlast(lasts[SUM_CYCLES-1]),
      .s_axis_tuser(1'b0),
      .s_meta({metas[SUM_CYCLES-1], second_sum, first_sum}),
      .m_axis_tdata(body),
      .m_axis_tkeep(body_keep),
      .m_axis_tvalid(body_valid),
      .m_axis_tready(body_ready),
      .m_axis_tlast(body_last),
      .m_meta({body_events, body_bytes, body_second_sum, body_first_sum}),
      .fill_words,
      .count_good(),
      .count_bad(),
      .drop_full(dropped)
  );

  // --- the header: its own sums before those of the body. The halves of the body count the sum of the header's once each. ---
  typedef enum logic [2:0] {IDLE, SUM, MULTIPLY, ADD, HEADER, BODY} state_t;
  state_t state;
  logic [31:0] sequence_number, send_ns;
  logic [63:0] header;
  logic [17:0] sums[2], rest;
  logic [19:0] weighed[3];
  logic [16:0] header_sum;
  logic [21:0] header_weighed;
  logic [29:0] product;
  logic [17:0] first_total, second_total;
  wire [3:0][15:0] header_next = {sequence_number, body_events, event_pkg::FORMAT_MERGED, cfg_source_sub_id, cfg_source_id};
  wire [18:0] sum = 19'(sums[0]) + 19'(sums[1]);
  wire [12:0] body_halves = 13'((body_bytes - BYTES_BITS'(event_pkg::HEADER_BYTES)) >> 1);
  wire can_load = !m_axis_tvalid || m_axis_tready;
  assign body_ready = state == BODY && can_load;

  always_ff @(posedge clk) begin
    case (state)
      IDLE: begin
        header <= header_next;
        send_ns <= now_ns;
        sums[0] <= 18'(header_next[0]) + 18'(header_next[1]) + 18'(header_next[2]);
        sums[1] <= 18'(header_next[3]) + 18'(now_ns[15:0]) + 18'(now_ns[31:16]);
        // Six times the first half, five times the second, ...
        weighed[0] <= {2'b0, header_next[0], 2'b0} + {3'b0, header_next[0], 1'b0} + {2'b0, header_next[2], 2'b0};
        weighed[1] <= {2'b0, header_next[1], 2'b0} + 20'(header_next[1]) + 20'(now_ns[31:16]);
        weighed[2] <= {3'b0, header_next[3], 1'b0} + 20'(header_next[3]) + {3'b0, now_ns[15:0], 1'b0};
        if (body_valid) state <= SUM;
      end
      SUM: begin
        header_sum <= 17'(sum[15:0]) + 17'(sum[18:16]);
        header_weighed <= 22'(weighed[0]) + 22'(weighed[1]) + 22'(weighed[2]);
        state <= MULTIPLY;
      end
      MULTIPLY: begin
        product <= 30'(header_sum) * 30'(body_halves);
        rest <= 18'(header_weighed[15:0]) + 18'(header_weighed[21:16]) + 18'(body_second_sum);
        first_total <= 18'(header_sum) + 18'(body_first_sum);
        state <= ADD;
      end
      ADD: begin
        second_total <= 18'(product[15:0]) + 18'(product[29:16]) + rest;
        state <= HEADER;
      end
      HEADER: if (can_load) state <= BODY;
      BODY: begin
        if (can_load && body_last) begin
          state <= IDLE;
          sequence_number <= sequence_number + 32'd1;
        end
      end
      default: state <= IDLE;
    endcase
    if (rst) begin
      state <= IDLE;
      sequence_number <= '0;
    end
  end

  always_ff @(posedge clk) begin
    if (can_load) begin
      m_axis_tvalid <= state == HEADER || state == BODY;
      m_axis_tlast <= state == BODY && body_last;
      m_axis_tkeep <= state == BODY ? body_keep : '1;
      m_axis_tdata <= state == HEADER ? {event_pkg::reduced(25'(second_total)), event_pkg::reduced(25'(first_total)), send_ns, header} : body;
      if (state == HEADER) begin
        m_meta_payload_bytes <= 16'(body_bytes);
        m_meta_event_count <= body_events;
      end
    end
    if (rst) m_axis_tvalid <= 1'b0;
  end

  // --- what must hold ---
  logic waits, m_inside;
  always_ff @(posedge clk) begin
    waits <= !rst && m_axis_tvalid && !m_axis_tready;
    if (rst) m_inside <= 1'b0;
    else begin
      if (m_axis_tvalid && m_axis_tready) m_inside <= !m_axis_tlast;
      assert (!waits || m_axis_tvalid);
      assert (!m_inside || m_axis_tvalid);
      assert (!dropped);
      assert (in_event || !s_axis_tvalid || s_axis_tdata[47:40] <= 8'(event_pkg::HITS_MAX));
    end
  end
endmodule
