// SPDX-License-Identifier: Apache-2.0
// The receiving engine: UDP payloads in, memory requests out. rx_fifo gives each packet its fixed time, clop_writer its place, dma_write its bus address.
//
// Another writer of whole completions, such as the TX ring, shares the path to memory: it takes the cycles that packets do not need, also between two
// requests of a long packet, so that no word of a packet is later for it. Where packets leave it too few, other_urgent lets it begin one cycle before
// a packet, and patience at any moment: write_arbiter says how late a packet is then.
//
// LATENCY_CYCLES after a payload's first word came in it is at m_*, if the bus is ready and the packets before are gone: always the same, and
// SINGLE_CYCLES (of rx_fifo) less for a payload of that one word. The other words follow, two in a cycle, as soon as they have come.
//
// With WHOLE packets come from a buffer: whole, without a pause, in words of 16 bytes, and good. Then there is no rx_fifo: they are held up, and at m_* 6 cycles
// after they were taken.
module rx_engine #(
    parameter bit WHOLE = 1'b0,
    parameter int CLOPS = 4,
    parameter int BYTES_MAX = 9000,         // of a payload [B]
    parameter int FIFO_WORDS = 2048,        // [16 B]
    parameter int FIFO_PACKETS = 256,
    parameter int PLAYOUT_CYCLES = 16,
    parameter int PAYLOAD_BYTES_MAX = 256,  // of a memory request [B]
    parameter int REGIONS = 8,
    parameter int ENTRIES = 2048,
    parameter int OFFSET_BITS = 40,
    localparam int IN_BITS = WHOLE ? 128 : 64,
    localparam int CLOP_BITS = CLOPS > 1 ? $clog2(CLOPS) : 1,
    localparam int BYTES_BITS = $clog2(BYTES_MAX + 1),
    localparam int ADDRESS_BITS = $clog2(REGIONS) + OFFSET_BITS
) (
    input logic clk,
    input logic rst,

    input logic [63:0] now_ns,
    input logic [63:0] now_cycles,

    // As of clop_writer.
    input logic [CLOPS-1:0]                   cfg_enable,
    input logic [CLOPS-1:0]                   cfg_flush,
    input logic [CLOPS-1:0]                   cfg_footer,
    input logic [CLOPS-1:0][ADDRESS_BITS-1:0] cfg_buffers,
    input logic [CLOPS-1:0][ADDRESS_BITS-1:0] cfg_index,
    input logic [CLOPS-1:0][31:0]             cfg_buffer_bytes,
    input logic [CLOPS-1:0][16:0]             cfg_buffer_count,
    input logic [CLOPS-1:0][15:0]             cfg_index_capacity,
    input logic [CLOPS-1:0][15:0]             cfg_room_bytes,
    input logic [CLOPS-1:0][31:0]             cfg_timeout_ns,
    input logic [CLOPS-1:0][31:0]             cfg_consumed,
    input logic [ADDRESS_BITS-1:0]            cfg_completions,
    input logic [31:0]                        cfg_completion_mask,

    // As of page_table.
    input logic                       region_write,
    input logic [$clog2(REGIONS)-1:0] region_index,
    input logic                       region_valid,
    input logic [                4:0] region_page_shift,
    input logic [$clog2(ENTRIES)-1:0] region_first,
    input logic [  $clog2(ENTRIES):0] region_count,
    input logic                       entry_write,
    input logic [$clog2(ENTRIES)-1:0] entry_index,
    input logic [               63:0] entry_data,

    // Payloads, as of rx_fifo; meta as of clop_writer, with the first word.
    input logic [   IN_BITS-1:0] s_axis_tdata,
    input logic                  s_axis_tvalid,
    output logic                 s_axis_tready,     // without WHOLE always
    input logic                  s_axis_tlast,
    input logic                  s_axis_tuser,
    input logic [BYTES_BITS-1:0] s_meta_bytes,
    input logic [ CLOP_BITS-1:0] s_meta_clop,
    input logic [          15:0] s_meta_source,
    input logic [           7:0] s_meta_event_count,
    input logic [          63:0] s_meta_arrival_ns,
    input logic [          63:0] s_meta_start_cycle,
    input logic [          63:0] s_meta_parsed_cycle,

    // The other writer.
    input  logic                    other_valid,
    output logic                    other_ready,
    input  logic                    other_last,
    input  logic [ADDRESS_BITS-1:0] other_address,
    input  logic [             6:0] other_bytes,
    input  logic [           127:0] other_data,
    input  logic                    other_urgent,

    // Memory requests, as of dma_write.
    output logic                                   m_valid,
    input  logic                                   m_ready,
    output logic                                   m_first,
    output logic                                   m_last,
    output logic                                   m_gpu,
    output logic [                           63:0] m_address,
    output logic [$clog2(PAYLOAD_BYTES_MAX+1)-1:0] m_bytes,
    output logic [                          127:0] m_data,
    output logic [                           15:0] m_keep,

    output logic [CLOPS-1:0]       clop_holds,
    output logic [CLOPS-1:0]       clop_fault,
    output logic [CLOPS-1:0][31:0] clop_handed_over,
    output logic [31:0]            completions_written,
    output logic                   completion_left,      // a pulse: one of them has gone out at m_*, or was refused

    // How long packets and buffers took, for stage_stats. Of each stored packet: 0 parsed from start on XGMII, 1 begun from parsed, 2 ended
    // from begun, as its footer says. Of each buffer: completion written from ended, 3 of its newest and 4 of its oldest packet.
    output logic        stage_valid,
    output logic [ 2:0] stage,
    output logic [31:0] stage_cycles,  // all ones: or more
    output logic        stage_last,    // of this packet or buffer

    output logic count_stored,
    output logic drop_overflow,
    output logic drop_disabled,
    output logic drop_too_long,
    output logic drop_no_buffer,
    output logic drop_bad,
    output logic other_fault     // a write of the other writer was refused by the page table
);
  localparam int LATENCY_CYCLES = PLAYOUT_CYCLES + 6;
  localparam int HAND_OVER_CYCLES = 4;  // words of a completion
  localparam int WRITE_BYTES_MAX = BYTES_MAX + 63;
  localparam int WRITE_BITS = $clog2(WRITE_BYTES_MAX + 1);

  typedef struct packed {
    logic [CLOP_BITS-1:0] clop;
    logic [15:0]          source;
    logic [7:0]           event_count;
    logic [63:0]          arrival_ns;
    logic [63:0]          start_cycle;
    logic [63:0]          parsed_cycle;
  } meta_t;

  meta_t meta_in, meta;
  assign meta_in = '{s_meta_clop, s_meta_source, s_meta_event_count, s_meta_arrival_ns, s_meta_start_cycle, s_meta_parsed_cycle};

  logic [127:0] packet_data;
  logic packet_valid, packet_ready, packet_last, packet_bad;
  meta_t overflow_meta;
  wire unused = &{1'b0, overflow_meta};  // but its CLOP
  logic [BYTES_BITS-1:0] packet_bytes;
  logic [HAND_OVER_CYCLES-1:1] soon;
  logic writer_idle;
  logic write_valid, write_ready, write_last, write_second;

  if (WHOLE) begin : g_whole
    logic whole_began;
    always_ff @(posedge clk) begin
      if (rst) whole_began <= 1'b0;
      else if (s_axis_tvalid && s_axis_tready) whole_began <= !s_axis_tlast;
    end
    assign packet_data = 128'(s_axis_tdata);
    assign packet_valid = s_axis_tvalid;
    assign s_axis_tready = packet_ready;
    assign packet_last = s_axis_tlast;
    assign packet_bad = s_axis_tlast && s_axis_tuser;
    assign meta = meta_in;
    assign packet_bytes = s_meta_bytes;
    assign soon = {HAND_OVER_CYCLES - 1{s_axis_tvalid || whole_began}};
    assign drop_overflow = 1'b0;
    assign overflow_meta = '0;
  end else begin : g_playout
    assign s_axis_tready = 1'b1;
    rx_fifo #(
        .WORDS(FIFO_WORDS),
        .PACKETS(FIFO_PACKETS),
        .PLAYOUT_CYCLES(PLAYOUT_CYCLES),
        .SOON_CYCLES(HAND_OVER_CYCLES - 1),
        .META_BITS($bits(meta_t)),
        .BYTES_MAX(BYTES_MAX)
    ) i_rx_fifo (
        .clk,
        .rst,
        .s_axis_tdata,
        .s_axis_tvalid,
        .s_axis_tlast,
        .s_axis_tuser,
        .s_meta(meta_in),
        .s_meta_bytes,
        .m_axis_tdata(packet_data),
        .m_axis_tvalid(packet_valid),
        .m_axis_tready(packet_ready),
        .m_axis_tlast(packet_last),
        .m_meta(meta),
        .m_meta_bytes(packet_bytes),
        .m_soon(soon),
        .m_bad(packet_bad),
        .drop_overflow,
        .drop_meta(overflow_meta)
    );
  end

  logic packet_write_valid, packet_write_ready, packet_write_last;
  logic [ADDRESS_BITS-1:0] packet_write_address, write_address;
  logic [WRITE_BITS-1:0] packet_write_bytes, write_bytes;
  logic [127:0] packet_write_data, write_data;
  logic [CLOP_BITS-1:0] write_clop, done_clop, counted_clop;
  logic [CLOP_BITS:0] write_tag;  // with whether it is a completion
  logic write_is_completion, done_completion;
  logic [63:0] start_cycle, parsed_cycle, begin_cycle, end_cycle, completion_cycle;
  logic handed_over;
  logic write_cut;
  logic done, done_fault, done_second;

  clop_writer #(
      .CLOPS(CLOPS),
      .ADDRESS_BITS(ADDRESS_BITS),
      .BYTES_MAX(BYTES_MAX)
  ) i_clop_writer (
      .clk,
      .rst,
      .now_ns,
      .now_cycles,
      .cfg_enable,
      .cfg_flush,
      .cfg_footer,
      .cfg_buffers,
      .cfg_index,
      .cfg_buffer_bytes,
      .cfg_buffer_count,
      .cfg_index_capacity,
      .cfg_room_bytes,
      .cfg_timeout_ns,
      .cfg_consumed,
      .cfg_completions,
      .cfg_completion_mask,
      .s_axis_tdata(packet_data),
      .s_axis_tvalid(packet_valid),
      .s_axis_tready(packet_ready),
      .s_axis_tlast(packet_last),
      .s_bad(packet_bad),
      .s_soon(soon[HAND_OVER_CYCLES-1] || (write_valid && write_second)),
      .s_lost(drop_overflow),
      .s_lost_clop(overflow_meta.clop),
      .s_meta_bytes(packet_bytes),
      .s_meta_clop(meta.clop),
      .s_meta_source(meta.source),
      .s_meta_event_count(meta.event_count),
      .s_meta_arrival_ns(meta.arrival_ns),
      .s_meta_start_cycle(meta.start_cycle),
      .s_meta_parsed_cycle(meta.parsed_cycle),
      .m_valid(packet_write_valid),
      .m_ready(packet_write_ready),
      .m_last(packet_write_last),
      .m_address(packet_write_address),
      .m_bytes(packet_write_bytes),
      .m_data(packet_write_data),
      .m_clop(write_clop),
      .m_is_completion(write_is_completion),
      .done_fault(done && done_fault && !done_second),
      .done_clop,
      .clop_holds,
      .clop_fault,
      .clop_handed_over,
      .completions_written,
      .counted_clop,
      .start_cycle,
      .parsed_cycle,
      .begin_cycle,
      .end_cycle,
      .completion_cycle,
      .count_handed_over(handed_over),
      .idle(writer_idle),
      .count_stored,
      .drop_disabled,
      .drop_too_long,
      .drop_no_buffer,
      .drop_bad
  );

  write_arbiter #(
      .ADDRESS_BITS(ADDRESS_BITS),
      .BYTES_BITS(WRITE_BITS),
      .TAG_BITS(CLOP_BITS + 1)
  ) i_write_arbiter (
      .clk,
      .rst,
      .clear(writer_idle && !(other_urgent ? packet_valid : soon[1])),  // from offered to clop_writer's first word it takes two more: a completion fits in before
      .s0_valid(packet_write_valid),
      .s0_ready(packet_write_ready),
      .s0_last(packet_write_last),
      .s0_address(packet_write_address),
      .s0_bytes(packet_write_bytes),
      .s0_data(packet_write_data),
      .s0_tag({write_is_completion, write_clop}),
      .s1_valid(other_valid),
      .s1_ready(other_ready),
      .s1_last(other_last),
      .s1_address(other_address),
      .s1_bytes(WRITE_BITS'(other_bytes)),
      .s1_data(other_data),
      .s1_tag('0),
      .m_valid(write_valid),
      .m_ready(write_ready),
      .m_address(write_address),
      .m_bytes(write_bytes),
      .m_data(write_data),
      .m_tag(write_tag),
      .m_last(write_last),
      .m_second(write_second),
      .m_cut(write_cut)
  );
  assign other_fault = done && done_fault && done_second;

  dma_write #(
      .PAYLOAD_BYTES_MAX(PAYLOAD_BYTES_MAX),
      .WRITE_BYTES_MAX(WRITE_BYTES_MAX),
      .REGIONS(REGIONS),
      .ENTRIES(ENTRIES),
      .OFFSET_BITS(OFFSET_BITS),
      .TAG_BITS(CLOP_BITS + 2)
  ) i_dma_write (
      .clk,
      .rst,
      .region_write,
      .region_index,
      .region_valid,
      .region_page_shift,
      .region_first,
      .region_count,
      .entry_write,
      .entry_index,
      .entry_data,
      .s_valid(write_valid),
      .s_second(write_second),
      .s_ready(write_ready),
      .s_address(write_address),
      .s_bytes(write_bytes),
      .s_data(write_data),
      .s_last(write_last),
      .s_tag({write_second, write_tag}),
      .s_cut(write_cut),
      .done,
      .done_fault,
      .done_tag({done_second, done_completion, done_clop}),
      .m_valid,
      .m_ready,
      .m_first,
      .m_last,
      .m_gpu,
      .m_address,
      .m_bytes,
      .m_data,
      .m_keep
  );

  // --- a completion has left when its last word was taken: `done` comes with that word, which may have to wait ---
  logic completion_owed;
  wire completion_done = done && done_completion;  // the other writer's are none: its tag is 0
  always_ff @(posedge clk) begin
    completion_left <= (completion_done || completion_owed) && (!m_valid || m_ready);
    completion_owed <= (completion_done || completion_owed) && m_valid && !m_ready;
    if (rst) begin
      completion_left <= 1'b0;
      completion_owed <= 1'b0;
    end
  end

  // --- how long it took ---
  function automatic logic [31:0] apart(input logic [63:0] from, input logic [63:0] to);
    logic [63:0] cycles;
    cycles = to - from;
    apart = cycles[63:32] != '0 ? '1 : cycles[31:0];
  endfunction

  logic [CLOPS-1:0] has_packets;
  logic [63:0] oldest_end[CLOPS];
  logic [63:0] newest_end[CLOPS];
  logic [31:0] next_cycles, last_cycles;
  logic [1:0] stages_left;  // to be told of: one a cycle
  always_ff @(posedge clk) begin
    stage_valid <= stages_left != '0;
    stage_last <= stages_left == 2'd1;
    if (stages_left != '0) begin
      stage <= stage + 3'd1;
      stage_cycles <= next_cycles;
      next_cycles <= last_cycles;
      stages_left <= stages_left - 2'd1;
    end
    if (count_stored) begin
      stage_valid <= 1'b1;
      stage <= 3'd0;
      stage_cycles <= apart(start_cycle, parsed_cycle);
      next_cycles <= apart(parsed_cycle, begin_cycle);
      last_cycles <= apart(begin_cycle, end_cycle);
      stages_left <= 2'd2;
      newest_end[counted_clop] <= end_cycle;
      if (!has_packets[counted_clop]) oldest_end[counted_clop] <= end_cycle;
      has_packets[counted_clop] <= 1'b1;
    end
    if (handed_over && has_packets[counted_clop]) begin
      stage_valid <= 1'b1;
      stage <= 3'd3;
      stage_cycles <= apart(newest_end[counted_clop], completion_cycle);
      next_cycles <= apart(oldest_end[counted_clop], completion_cycle);
      stages_left <= 2'd1;
      has_packets[counted_clop] <= 1'b0;
    end
    for (int c = 0; c < CLOPS; c++) if (!cfg_enable[c]) has_packets[c] <= 1'b0;
    if (rst) begin
      stage_valid <= 1'b0;
      stages_left <= '0;
      has_packets <= '0;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst && (count_stored || handed_over)) a_stages_told : assert (stages_left == '0 && !(count_stored && handed_over));
  end
`endif
endmodule
