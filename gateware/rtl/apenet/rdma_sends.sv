// SPDX-License-Identifier: Apache-2.0
// SENDs of other nodes on their way to CLOPs: each waits here until it is known to be whole and good, and then goes where an entry of the match table says, as a
// payload from Ethernet does. An entry wants a `process`, and a sender, of whose place any bits may be left open.
//
// Contract
//   * The words of one SEND come after its header, and then how it ended (s_ends, with s_good); the next one begins later. Never is anything held up.
//   * room: one of any length finds place, if nothing is under way. wanted: by an entry, as the table stands; right from the third cycle after s_begins on.
//   * m_axis and m_meta as of port_queue: what leaves is good, and has no gap. Its times: arrival_ns and start_cycle of its header, parsed_cycle of its end.
module rdma_sends #(
    parameter int DEPTH_WORDS = 1024,  // [16 B]; a power of two
    parameter int PACKETS = 64,        // at once; a power of two
    parameter int MATCH_ENTRIES = 16,
    localparam int INDEX_BITS = $clog2(MATCH_ENTRIES)
) (
    input logic clk,
    input logic rst,
    input logic [63:0] now_ns,
    input logic [63:0] now_cycles,

    input logic                            match_write,
    input logic [INDEX_BITS-1:0]           match_index,
    input logic                            match_enable,
    input logic [15:0]                     match_process,
    input apenet_pkg::place_t              match_sender,
    input apenet_pkg::place_t              match_sender_mask,  // a zero bit: this bit may be anything
    input logic [port_pkg::ROUTE_BITS-1:0] match_route,
    input logic [1:0]                      match_clop,
    input logic [15:0]                     match_source,
    input logic                            match_counts_events,

    input  logic                s_begins,
    /* verilator lint_off UNUSEDSIGNAL */  // of a header some fields are used
    input  apenet_pkg::header_t s_header,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic                s_valid,
    input  logic [127:0]        s_data,
    input  logic                s_ends,
    input  logic                s_good,
    output logic                wanted,
    output logic                room,

    output logic [127:0]        m_axis_tdata,
    output logic [ 15:0]        m_axis_tkeep,
    output logic                m_axis_tvalid,
    input  logic                m_axis_tready,
    output logic                m_axis_tlast,
    output port_pkg::routed_t   m_meta
);
  localparam int PACKET_BITS = $clog2(PACKETS);
  localparam int WORDS_MAX = (rdma_pkg::DATA_BYTES_MAX + 15) / 16;
  localparam int META_BITS = port_pkg::ROUTE_BITS + port_pkg::PAYLOAD_META_BITS;

  if (DEPTH_WORDS < 2 * WORDS_MAX) begin : g_check
    $fatal(1, "DEPTH_WORDS must be 510 or more (instance %m)");
  end

  // --- whose it is ---
  /* verilator lint_off UNUSEDSIGNAL */
  rdma_pkg::event_address_t address;
  /* verilator lint_on UNUSEDSIGNAL */
  assign address = s_header.address;
  logic [15:0] task_id;
  apenet_pkg::place_t sender;
  typedef struct packed {
    logic [port_pkg::ROUTE_BITS-1:0] route;
    logic                            counts_events;
    logic [1:0]                      clop;
    logic [15:0]                     source;
  } target_t;
  target_t match_target, target;
  assign match_target = '{match_route, match_counts_events, match_clop, match_source};
  match_table #(
      .ENTRIES(MATCH_ENTRIES),
      .TARGET_BITS($bits(target_t))
  ) i_match_table (
      .clk,
      .rst,
      .table_write(match_write),
      .table_index(match_index),
      .table_enable(match_enable),
      .table_port(match_process),
      .table_source_address({16'd0, match_sender}),
      .table_source_mask({16'd0, match_sender_mask}),
      .table_target(match_target),
      .port(task_id),
      .source_address({16'd0, sender}),
      .hit(wanted),
      .hit_target(target)
  );

  // --- the word that came last waits, as the end of a SEND is known after it ---
  logic held, first;
  logic [127:0] word;
  logic [13:0] bytes;
  logic [7:0] events;
  logic [63:0] arrival_ns, start_cycle;
  always_ff @(posedge clk) begin
    if (s_begins) begin
      task_id <= s_header.process;
      sender <= address.source;
      bytes <= s_header.bytes;
      arrival_ns <= now_ns;
      start_cycle <= now_cycles;
      first <= 1'b1;
    end
    if (s_valid) begin
      word <= s_data;
      first <= 1'b0;
      if (first) events <= s_data[31:24];
    end
    if (s_valid || s_ends) held <= s_valid;
    if (rst) held <= 1'b0;
  end
  wire [4:0] last_bytes = bytes[3:0] == '0 ? 5'd16 : 5'(bytes[3:0]);

  port_pkg::routed_t meta;
  always_comb begin
    meta.route = target.route;
    meta.payload.clop = target.clop;
    meta.payload.source = target.source;
    meta.payload.event_count = target.counts_events ? events : '0;
    meta.payload.bytes = 16'(bytes);
    meta.payload.arrival_ns = arrival_ns;
    meta.payload.start_cycle = start_cycle;
    meta.payload.parsed_cycle = now_cycles;
  end

  logic [$clog2(DEPTH_WORDS):0] fill;
  logic [PACKET_BITS:0] packets;  // that are here
  logic full;
  wire comes = s_ends && s_good;
  wire leaves = m_axis_tvalid && m_axis_tready && m_axis_tlast;
  always_ff @(posedge clk) begin  // the next header may come before `room` knows of the last word and its packet
    packets <= packets + (PACKET_BITS + 1)'(comes) - (PACKET_BITS + 1)'(leaves);
    room <= int'(fill) <= DEPTH_WORDS - WORDS_MAX - 2 && int'(packets) < PACKETS - 1;
    if (rst) packets <= '0;
    if (rst) room <= 1'b0;
  end
  frame_fifo #(
      .DEPTH_WORDS(DEPTH_WORDS),
      .PACKETS(PACKETS),
      .META_BITS(META_BITS),
      .DATA_BITS(128)
  ) i_fifo (
      .clk,
      .rst,
      .s_axis_tdata(word),
      .s_axis_tkeep(s_ends ? 16'hFFFF >> (5'd16 - last_bytes) : 16'hFFFF),
      .s_axis_tvalid(held && (s_valid || s_ends)),
      .s_axis_tlast(s_ends),
      .s_axis_tuser(!s_good),
      .s_meta(meta),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .m_meta,
      .fill_words(fill),
      .count_good(),
      .count_bad(),
      .drop_full(full)
  );

  // --- what must hold ---
  logic [8:0] came;  // words of the SEND that is under way
  wire [13:0] came_bytes = 14'(came) << 4;
  always_ff @(posedge clk) begin
    if (s_begins) came <= '0;
    else if (s_valid) came <= came + 1'b1;
    if (!rst) begin
      assert (!full);
      assert (!(s_begins && held));
      assert (!comes || (held && came_bytes >= bytes && came_bytes < bytes + 14'd16));
    end
  end
endmodule
