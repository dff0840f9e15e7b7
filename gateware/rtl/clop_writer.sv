// SPDX-License-Identifier: Apache-2.0
// Packets into the buffers of CLOPs: addresses, packet index, hand-over, completions. The receiving half of the NIC contract
// (include/nanet/contract.hpp), in logic.
//
// A packet goes behind the one before in its CLOP's buffer, at a multiple of 16 bytes; when all of it is on its way its PacketRef follows, and when
// the buffer is handed over its completion. All leave through one port in this order, so no one sees a completion before its data.
//
// A buffer is handed over
//   full     when less than cfg_room_bytes are left behind a packet, when a packet does not fit, or when the packet index is full;
//   timeout  when its oldest packet is cfg_timeout_ns old and the consumer has fewer than two others;
//   flush    when the driver sets cfg_flush; clop_holds falls when it is done.
//
// Contract
//   * From a packet's first word to its first word at m_*: 2 cycles, unless a hand-over is in flight. With m_ready a packet occupies this module for
//     3 cycles and one for each of its words, with a footer 5; a hand-over for 4 more, and if a packet waits by then it needs a cycle less.
//   * A time-out or flush waits until no packet will come while it goes out (s_soon), at most PATIENCE_CYCLES; one CLOP's after the other's.
//   * Each packet is in count_stored or in one of the drop counters, which tell of it at its end: a bad one in drop_bad. Its bytes are written
//     over by the next. Once it is known to be bad (s_bad) no word of it begins a write, and a write of it that has begun ends with the
//     next word, though m_bytes spoke of more: dma_write makes an end of it.
//   * Packets that a completion says are lost: for which no buffer was free, and what s_lost tells of.
//   * The completion queue has room for all buffers of all CLOPs: that is the driver's duty.
//   * A write that the page table refused stops its CLOP (clop_fault): its packets are dropped until the driver takes cfg_enable away. Then the CLOP
//     forgets everything: what is disabled stays so for BYTES_MAX / 8 cycles at least.
module clop_writer #(
    parameter int CLOPS = 4,
    parameter int ADDRESS_BITS = 43,      // of a device address
    parameter int BYTES_MAX = 9000,       // of a packet [B]
    parameter int PATIENCE_CYCLES = 256,
    localparam int CLOP_BITS = CLOPS > 1 ? $clog2(CLOPS) : 1,
    localparam int BYTES_BITS = $clog2(BYTES_MAX + 1)
) (
    input logic clk,
    input logic rst,

    input logic [63:0] now_ns,
    input logic [63:0] now_cycles,

    // Each CLOP. They stand still while it is enabled, but for consumed and flush.
    input logic [CLOPS-1:0]                   cfg_enable,
    input logic [CLOPS-1:0]                   cfg_flush,            // a pulse
    input logic [CLOPS-1:0]                   cfg_footer,           // four cycle stamps after each payload
    input logic [CLOPS-1:0][ADDRESS_BITS-1:0] cfg_buffers,          // first buffer
    input logic [CLOPS-1:0][ADDRESS_BITS-1:0] cfg_index,            // packet index of the first buffer
    input logic [CLOPS-1:0][31:0]             cfg_buffer_bytes,     // multiple of 4096
    input logic [CLOPS-1:0][16:0]             cfg_buffer_count,     // power of two, 2..65536
    input logic [CLOPS-1:0][15:0]             cfg_index_capacity,   // packets a buffer can describe
    input logic [CLOPS-1:0][15:0]             cfg_room_bytes,
    input logic [CLOPS-1:0][31:0]             cfg_timeout_ns,       // 0: no time-out
    input logic [CLOPS-1:0][31:0]             cfg_consumed,         // buffers returned, modulo 2^32
    input logic [ADDRESS_BITS-1:0]            cfg_completions,      // completion queue
    input logic [31:0]                        cfg_completion_mask,  // entries, a power of two, less 1

    // Packets. Meta holds from the first word to the last.
    input  logic [127:0]           s_axis_tdata,
    input  logic                   s_axis_tvalid,
    output logic                   s_axis_tready,
    input  logic                   s_axis_tlast,
    input  logic                   s_bad,                 // as m_bad of rx_fifo: it is up with the last word of a bad packet, or before
    input  logic                   s_soon,                // there is a packet, or will be in fewer cycles than a hand-over takes
    input  logic                   s_lost,                // a packet of s_lost_clop was dropped before it came here
    input  logic [CLOP_BITS-1:0]   s_lost_clop,
    input  logic [BYTES_BITS-1:0]  s_meta_bytes,
    input  logic [CLOP_BITS-1:0]   s_meta_clop,
    input  logic [15:0]            s_meta_source,         // PacketRef::source
    input  logic [7:0]             s_meta_event_count,
    input  logic [63:0]            s_meta_arrival_ns,
    input  logic [63:0]            s_meta_start_cycle,    // the start character stood on XGMII
    input  logic [63:0]            s_meta_parsed_cycle,   // the payload's first word left the parser

    // Writes, to dma_write.
    output logic                                 m_valid,
    input  logic                                 m_ready,
    output logic                                 m_last,     // of a write
    output logic [ADDRESS_BITS-1:0]              m_address,
    output logic [$clog2(BYTES_MAX+64)-1:0]      m_bytes,
    output logic [127:0]                         m_data,
    output logic [CLOP_BITS-1:0]                 m_clop,
    output logic                                 m_is_completion,
    input  logic                                 done_fault,  // a write of done_clop was refused
    input  logic [CLOP_BITS-1:0]                 done_clop,

    output logic [CLOPS-1:0]       clop_holds,   // packets that are not handed over
    output logic [CLOPS-1:0]       clop_fault,
    output logic [CLOPS-1:0][31:0] clop_handed_over,
    output logic [31:0]            completions_written,
    output logic [CLOP_BITS-1:0]   counted_clop,       // of the packet that count_stored tells of, or of the buffer of count_handed_over
    output logic [63:0]            start_cycle,        // of the packet, as in its footer
    output logic [63:0]            parsed_cycle,
    output logic [63:0]            begin_cycle,
    output logic [63:0]            end_cycle,
    output logic [63:0]            completion_cycle,   // the completion's last word went out
    output logic                   count_handed_over,  // a buffer was
    output logic                   idle,  // nothing is in flight, nothing waits to be handed over

    output logic count_stored,
    output logic drop_disabled,  // its CLOP is not enabled, or has met a fault
    output logic drop_too_long,  // longer than a whole buffer
    output logic drop_no_buffer, // the consumer holds them all
    output logic drop_bad        // marked bad with its last word
);
  localparam int FOOTER_BYTES = 32;
  localparam int ROOM_BITS = BYTES_BITS + 1;
  localparam int WORD_BYTES = 16;
  localparam int REF_SHIFT = $clog2(contract_pkg::PACKET_REF_BYTES);
  localparam int COMPLETION_SHIFT = $clog2(contract_pkg::COMPLETION_BYTES);

  if (CLOPS < 1 || CLOPS > 16) begin : g_check_clops
    $fatal(1, "CLOPS must be 1 to 16 (instance %m)");
  end
  if (contract_pkg::PACKET_REF_BYTES != 8 || contract_pkg::COMPLETION_BYTES != 4 * WORD_BYTES) begin : g_check_contract
    $fatal(1, "a packet reference must have 8 bytes and a completion four words (instance %m)");
  end

  typedef struct packed {
    logic [63:0]             handed_over;
    logic [16:0]             buffer;       // index of the one being filled
    logic [ADDRESS_BITS-1:0] buffer_at;    // from cfg_buffers
    logic [ADDRESS_BITS-1:0] index_at;     // from cfg_index
    logic [31:0]             used;
    logic [15:0]             packets;
    logic [15:0]             stride;
    logic [31:0]             events;
    logic [7:0]              events_max;
    logic                    refused;      // a packet was
    logic [63:0]             first_ns;
    logic [63:0]             last_ns;
  } clop_t;

  typedef enum logic [2:0] {IDLE, DECIDE, PAYLOAD, FOOTER, INDEX, COMPLETE, SKIP} state_t;
  typedef enum logic [1:0] {DISABLED, TOO_LONG, NO_BUFFER} reason_t;

  state_t state;
  clop_t at;  // the CLOP that is worked on, or was last
  clop_t stored[CLOPS];  // each as it was when it was last worked on
  clop_t clops[CLOPS];  // each as it is
  clop_t after;         // `at` after this cycle
  logic [CLOPS-1:0][31:0] not_returned;  // buffers that its consumer had a cycle before
  logic [CLOPS-1:0][31:0] lost;          // packets, since its last hand-over
  logic [31:0] lost_told;                // in the completion that goes out
  reason_t reason;                       // of SKIP
  logic [CLOP_BITS-1:0] clop;
  logic [15:0] why;
  logic for_packet;  // a hand-over makes room for the packet that waits
  logic [1:0] step;  // word of a footer or completion
  logic [BYTES_BITS-5:0] words_left;  // of the payload, after this one

  for (genvar c = 0; c < CLOPS; c++) begin : g_clop
    assign clops[c] = clop == CLOP_BITS'(c) ? at : stored[c];
  end

  // --- what wants to be handed over though no packet came ---
  logic [CLOPS-1:0] may_time_out, flushing, timed_out;
  logic [CLOPS-1:0][63:0] age_ns;
  logic chosen, chosen_flushing;  // of those, a cycle later: one
  logic [CLOP_BITS-1:0] chosen_clop;
  logic [$clog2(PATIENCE_CYCLES)-1:0] waited;
  logic impatient;
  wire wanted = |(flushing | timed_out);
  wire takes_chosen = chosen && !for_packet && (impatient || !(s_axis_tvalid || s_soon));
  // When it is free, the CLOP to work on: a packet that waits for the end of a hand-over is taken at its last word. What was chosen may have been handed over since; before it holds packets again, it is chosen no longer.
  wire hands_over = state == COMPLETE && m_ready && step == 2'd3;
  wire free = state == IDLE || (hands_over && !for_packet && s_axis_tvalid && !takes_chosen);
  wire [CLOP_BITS-1:0] next_clop = takes_chosen ? chosen_clop : s_axis_tvalid ? s_meta_clop : clop;
  clop_t next;
  assign next = !cfg_enable[next_clop] ? '0 : next_clop == clop ? after : stored[next_clop];

  always_ff @(posedge clk) begin
    for (int c = 0; c < CLOPS; c++) begin
      clop_holds[c] <= clops[c].packets != '0;
      age_ns[c] <= now_ns - clops[c].first_ns;
      may_time_out[c] <= cfg_enable[c] && clops[c].packets != '0 && not_returned[c] < 32'd2;
      timed_out[c] <= may_time_out[c] && cfg_timeout_ns[c] != '0 && age_ns[c] >= 64'(cfg_timeout_ns[c]);
      flushing[c] <= cfg_enable[c] && clops[c].packets != '0 && (cfg_flush[c] || flushing[c]);
      clop_handed_over[c] <= clops[c].handed_over[31:0];
    end
    chosen <= wanted;
    for (int c = CLOPS - 1; c >= 0; c--) begin
      if (flushing[c] || timed_out[c]) begin
        chosen_clop <= CLOP_BITS'(c);
        chosen_flushing <= flushing[c];
      end
    end
    waited <= waited + 1'b1;
    if (int'(waited) == PATIENCE_CYCLES - 1) impatient <= 1'b1;
    if (!wanted || (free && takes_chosen)) begin
      waited <= '0;
      impatient <= 1'b0;
    end
    if (rst) begin
      flushing <= '0;
      may_time_out <= '0;
      timed_out <= '0;
      chosen <= 1'b0;
    end
  end

  // --- what becomes of the packet: its sums are made while it is free, where its meta stands already, and judged in DECIDE ---
  logic [31:0] buffer_bytes;  // settings of its CLOP
  logic [15:0] index_capacity;
  logic with_footer;
  logic [ROOM_BITS-1:0] room;  // from this packet to the next
  logic [ROOM_BITS-1:0] footer_from;  // from the packet's first byte
  logic [31:0] left;  // of the buffer
  logic [31:0] left_after;  // this packet
  logic [CLOPS-1:0] none_left;  // of the buffers: the consumer has them all
  logic [CLOPS-1:0] handing_over, handed_over_before;  // not_returned knows of a hand-over two cycles later
  wire [ROOM_BITS-1:0] packet_room = (ROOM_BITS'(s_meta_bytes) + ROOM_BITS'(15)) & ~ROOM_BITS'(15);
  wire too_long = 32'(room) > buffer_bytes;
  wire no_room = at.packets != '0 && (32'(room) > left || at.packets == index_capacity);
  wire same_stride = at.packets == '0 || (at.stride == 16'(s_meta_bytes) && s_meta_bytes[3:0] == '0);

  // --- the words that go out ---
  logic [15:0] ref_source;
  logic [BYTES_BITS-1:0] ref_bytes;
  // A write goes to base + offset: bases are the sums that a packet, or a completion, knows beforehand.
  logic [ADDRESS_BITS-1:0] buffer_base, index_base, completion_base;
  logic [31:0] footer_offset;
  logic [ADDRESS_BITS-1:0] base, offset;
  contract_pkg::packet_ref_t packet_ref;
  assign packet_ref.offset = at.used;
  assign packet_ref.bytes = 16'(ref_bytes);
  assign packet_ref.source = ref_source;
  contract_pkg::completion_t completion;
  wire [3:0][127:0] completion_words = completion;
  assign completion.first_packet_ns = at.first_ns;
  assign completion.last_packet_ns = at.last_ns;
  assign completion.tag = at.handed_over;
  assign completion.bytes = at.used;
  assign completion.event_count = at.events;
  assign completion.packets_lost = lost_told;
  assign completion.status = why | (lost_told != '0 ? contract_pkg::STATUS_GAP : 16'h0) | (at.refused ? contract_pkg::STATUS_ERROR : 16'h0);
  assign completion.kind = contract_pkg::KIND_BUFFER_FILLED;
  assign completion.reserved0 = '0;
  assign completion.reserved1 = '0;
  assign completion.buffer_index = at.buffer[15:0];
  assign completion.packet_count = at.packets;
  assign completion.stride_bytes = at.stride;
  assign completion.clop = 8'(clop);
  assign completion.packet_events_max = at.events_max;
  assign completion.first_packet_low = at.first_ns[31:0];
  assign completion.sequence_ = completions_written + 32'd1;

  always_comb begin
    m_valid = 1'b0;
    base = buffer_base;
    offset = ADDRESS_BITS'(at.used);
    m_bytes = $bits(m_bytes)'(s_meta_bytes);
    m_data = s_axis_tdata;
    m_last = words_left == '0 || s_bad;
    unique case (state)
      PAYLOAD: m_valid = s_axis_tvalid;
      FOOTER: begin
        m_valid = 1'b1;
        offset = ADDRESS_BITS'(footer_offset);
        m_bytes = $bits(m_bytes)'(FOOTER_BYTES);
        m_data = step[0] ? {end_cycle, begin_cycle} : {parsed_cycle, start_cycle};
        m_last = step[0];
      end
      INDEX: begin
        m_valid = 1'b1;
        base = index_base;
        offset = ADDRESS_BITS'({at.packets, {REF_SHIFT{1'b0}}});
        m_bytes = $bits(m_bytes)'(contract_pkg::PACKET_REF_BYTES);
        m_data = {2{packet_ref}};
        m_last = 1'b1;
      end
      COMPLETE: begin
        m_valid = 1'b1;
        base = completion_base;
        offset = '0;
        m_bytes = $bits(m_bytes)'(contract_pkg::COMPLETION_BYTES);
        m_data = completion_words[step];
        m_last = step == 2'd3;
      end
      default: ;
    endcase
  end
  assign m_address = base + offset;
  assign m_clop = clop;
  assign m_is_completion = state == COMPLETE;
  assign idle = state == IDLE && !wanted && !chosen;
  assign s_axis_tready = (state == PAYLOAD && m_ready) || state == SKIP;

  wire out = m_valid && m_ready;
  wire takes = s_axis_tvalid && s_axis_tready;
  wire skipped = state == SKIP && s_axis_tvalid && s_axis_tlast;
  wire lacks_buffer = skipped && !s_bad && reason == NO_BUFFER;
  logic full_after, stride_kept;
  logic [31:0] used_next;
  logic [7:0] event_count;
  logic [63:0] arrival_ns;
  wire wraps = at.buffer + 17'd1 == cfg_buffer_count[clop];

  always_comb begin
    after = at;
    if (hands_over) begin
      after = '0;
      after.handed_over = at.handed_over + 64'd1;
      after.buffer = wraps ? '0 : at.buffer + 17'd1;
      after.buffer_at = wraps ? '0 : at.buffer_at + ADDRESS_BITS'(buffer_bytes);
      after.index_at = wraps ? '0 : at.index_at + ADDRESS_BITS'({index_capacity, {REF_SHIFT{1'b0}}});
    end else if (state == INDEX && m_ready) begin
      after.used = used_next;
      after.packets = at.packets + 16'd1;
      after.stride = stride_kept ? 16'(ref_bytes) : '0;
      after.events = at.events + 32'(event_count);
      after.events_max = event_count > at.events_max ? event_count : at.events_max;
      after.first_ns = at.packets == '0 ? arrival_ns : at.first_ns;
      after.last_ns = arrival_ns;
    end
    if ((skipped && (s_bad || reason == TOO_LONG)) || (state == PAYLOAD && takes && s_bad)) after.refused = 1'b1;
  end

  // --- buffers that are free, and packets that were lost ---
  always_comb for (int c = 0; c < CLOPS; c++) handing_over[c] = hands_over && clop == CLOP_BITS'(c);
  always_ff @(posedge clk) begin
    handed_over_before <= handing_over;
    for (int c = 0; c < CLOPS; c++) begin
      not_returned[c] <= clops[c].handed_over[31:0] - cfg_consumed[c];
      none_left[c] <= not_returned[c][16:0] + 17'(handing_over[c] || handed_over_before[c]) == cfg_buffer_count[c];
      lost[c] <= (state == COMPLETE && out && step == '0 && clop == CLOP_BITS'(c) ? '0 : lost[c]) +
          32'(lacks_buffer && clop == CLOP_BITS'(c)) + 32'(s_lost && s_lost_clop == CLOP_BITS'(c));
      if (rst || !cfg_enable[c]) lost[c] <= '0;
    end
    if (state == COMPLETE && out && step == '0) lost_told <= lost[clop];
    if (rst) handed_over_before <= '0;
  end

  always_ff @(posedge clk) begin
    count_stored <= state == INDEX && out;
    count_handed_over <= hands_over;
    counted_clop <= clop;
    drop_disabled <= skipped && !s_bad && reason == DISABLED;
    drop_too_long <= skipped && !s_bad && reason == TOO_LONG;
    drop_no_buffer <= lacks_buffer;
    drop_bad <= s_bad && takes && s_axis_tlast;
    completion_base <= cfg_completions + ADDRESS_BITS'({completions_written & cfg_completion_mask, {COMPLETION_SHIFT{1'b0}}});
    at <= after;

    unique case (state)
      IDLE: ;

      DECIDE: begin
        for_packet <= 1'b0;
        begin_cycle <= now_cycles;
        ref_source <= s_meta_source;
        ref_bytes <= s_meta_bytes;
        words_left <= (BYTES_BITS - 4)'((s_meta_bytes - 1'b1) >> 4);
        start_cycle <= s_meta_start_cycle;
        parsed_cycle <= s_meta_parsed_cycle;
        buffer_base <= cfg_buffers[clop] + at.buffer_at;
        index_base <= cfg_index[clop] + at.index_at;
        footer_offset <= at.used + 32'(footer_from);
        stride_kept <= same_stride && !with_footer;
        used_next <= at.used + 32'(room);
        left_after <= left - 32'(room);
        event_count <= s_meta_event_count;
        arrival_ns <= s_meta_arrival_ns;
        reason <= !cfg_enable[clop] || clop_fault[clop] ? DISABLED : too_long ? TOO_LONG : NO_BUFFER;
        if (s_bad || !cfg_enable[clop] || clop_fault[clop] || too_long || none_left[clop]) begin
          state <= SKIP;
        end else if (no_room) begin
          why <= contract_pkg::STATUS_FULL;
          for_packet <= 1'b1;
          state <= COMPLETE;
        end else begin
          state <= PAYLOAD;
        end
      end

      PAYLOAD: begin
        full_after <= left_after < 32'(cfg_room_bytes[clop]) || at.packets + 16'd1 == index_capacity;
        if (takes) begin
          words_left <= words_left - 1'b1;
          end_cycle <= now_cycles;
          if (s_bad) begin
            state <= s_axis_tlast ? IDLE : SKIP;
          end else if (s_axis_tlast) begin
            state <= with_footer ? FOOTER : INDEX;
          end
        end
      end

      FOOTER: begin
        if (out) begin
          step <= step + 2'd1;
          if (step[0]) state <= INDEX;
        end
      end

      INDEX: begin
        if (out) begin
          step <= '0;
          why <= contract_pkg::STATUS_FULL;
          state <= full_after ? COMPLETE : IDLE;
        end
      end

      COMPLETE: begin
        if (out) begin
          step <= step + 2'd1;
          if (hands_over) begin
            completions_written <= completions_written + 32'd1;
            completion_cycle <= now_cycles;
            state <= for_packet ? DECIDE : IDLE;
          end
        end
      end

      SKIP: if (skipped) state <= IDLE;
      default: state <= IDLE;
    endcase

    if (free || hands_over) left <= cfg_buffer_bytes[next_clop] - next.used;  // after a hand-over that makes room for a packet, too: it is of this CLOP
    if (free) begin
      for_packet <= 1'b0;
      step <= '0;
      buffer_bytes <= cfg_buffer_bytes[next_clop];
      index_capacity <= cfg_index_capacity[next_clop];
      with_footer <= cfg_footer[next_clop];
      footer_from <= packet_room;
      room <= packet_room + (cfg_footer[next_clop] ? ROOM_BITS'(FOOTER_BYTES) : '0);
      stored[clop] <= after;
      for (int c = 0; c < CLOPS; c++) begin
        if (!cfg_enable[c]) begin
          stored[c] <= '0;
          clop_fault[c] <= 1'b0;
        end
      end
      clop <= next_clop;
      at <= next;
      if (takes_chosen) begin
        why <= chosen_flushing ? contract_pkg::STATUS_FLUSH : contract_pkg::STATUS_TIMEOUT;
        state <= next.packets != '0 ? COMPLETE : IDLE;
      end else begin
        state <= s_axis_tvalid ? DECIDE : IDLE;
      end
    end

    if (done_fault) clop_fault[done_clop] <= 1'b1;
    if (rst) begin
      state <= IDLE;
      for (int c = 0; c < CLOPS; c++) stored[c] <= '0;
      at <= '0;
      clop <= '0;
      clop_fault <= '0;
      completions_written <= '0;
      count_stored <= 1'b0;
      count_handed_over <= 1'b0;
      drop_disabled <= 1'b0;
      drop_too_long <= 1'b0;
      drop_no_buffer <= 1'b0;
      drop_bad <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  // Of a CLOP that is enabled: what is not may have any settings.
  wire [31:0] with_consumer = at.handed_over[31:0] - cfg_consumed[clop];
  always_ff @(posedge clk) begin
    if (!rst && cfg_enable[clop]) begin
      if (state == PAYLOAD) a_free : assert (with_consumer < 32'(cfg_buffer_count[clop]));
      if (state == PAYLOAD) a_inside : assert (used_next <= cfg_buffer_bytes[clop] && used_next + left_after == cfg_buffer_bytes[clop]);
      if (state != IDLE && state != SKIP) a_settings : assert (buffer_bytes == cfg_buffer_bytes[clop] && index_capacity == cfg_index_capacity[clop] && with_footer == cfg_footer[clop]);
      if (state == DECIDE && !none_left[clop]) a_buffer : assert (with_consumer < 32'(cfg_buffer_count[clop]));
      if (state == DECIDE) a_left : assert (left == cfg_buffer_bytes[clop] - at.used);
      if (state == PAYLOAD || state == FOOTER) a_buffer_base : assert (buffer_base == cfg_buffers[clop] + at.buffer_at);
      if (for_packet) a_for_packet : assert (state == COMPLETE || state == DECIDE || state == IDLE);
      if (state == DECIDE || (state == COMPLETE && for_packet))
        a_room : assert (footer_from <= ROOM_BITS'(1 << BYTES_BITS) && room == footer_from + (with_footer ? ROOM_BITS'(FOOTER_BYTES) : '0));
      if (state == FOOTER || (state == PAYLOAD && with_footer)) a_footer : assert (footer_offset + 32'(FOOTER_BYTES) == used_next);
      if (state == PAYLOAD || state == FOOTER || state == INDEX) a_index_base : assert (index_base == cfg_index[clop] + at.index_at);
      if (state == COMPLETE) a_completion_base : assert (completion_base == cfg_completions + ADDRESS_BITS'({completions_written & cfg_completion_mask, {COMPLETION_SHIFT{1'b0}}}));
      if (state == INDEX) a_index : assert (at.packets < cfg_index_capacity[clop]);
      if (state == COMPLETE) a_not_empty : assert (at.packets != '0);
      if (state == PAYLOAD && s_axis_tvalid && !s_bad) a_length : assert (s_axis_tlast == (words_left == '0));
    end
  end
`endif
endmodule
