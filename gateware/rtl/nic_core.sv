// SPDX-License-Identifier: Apache-2.0
// The NIC without MAC and registers: frames on one side, memory requests on the other, settings and counters as ports. nic.sv adds the rest.
//
//   frames in -> rx_path -> rx_engine -> memory writes       memory reads -> tx_engine -> tx_path -> frames out
//
// Latency: a payload's first word leaves the parser RX_PARSER_CYCLES after the word with its frame's start came into the MAC, and
// is at mem_write RX_ENGINE_CYCLES later, if the bus is ready: always the same. docs/design/gateware-nic.md says what the words behind it take.
module nic_core #(
    parameter int CLOPS = 4,
    parameter int MATCH_ENTRIES = 16,
    parameter int DESTINATIONS = 16,
    parameter int REGIONS = 16,
    parameter int ENTRIES = 4096,
    parameter int OFFSET_BITS = 40,
    parameter int FRAME_BYTES_MAX = 9022,
    parameter int RX_FIFO_WORDS = 2048,
    parameter int PLAYOUT_CYCLES = 16,
    parameter int WRITE_REQUEST_BYTES_MAX = 256,
    parameter int READ_REQUEST_BYTES_MAX = 512,
    parameter int READ_TAGS = 32,
    parameter int READ_TIMEOUT_CYCLES = 1 << 20,
    localparam int STAGES = 5,  // of rx_engine
    localparam int STAGE_BINS = 64,
    localparam int BYTES_MAX = FRAME_BYTES_MAX - 46,  // of a payload: less Ethernet, IPv4 and UDP headers and FCS
    localparam int CLOP_BITS = CLOPS > 1 ? $clog2(CLOPS) : 1,
    localparam int MATCH_BITS = $clog2(MATCH_ENTRIES),
    localparam int DESTINATION_BITS = $clog2(DESTINATIONS),
    localparam int ADDRESS_BITS = $clog2(REGIONS) + OFFSET_BITS,
    localparam int BYTES_BITS = $clog2(BYTES_MAX + 1),
    localparam int TAG_BITS = $clog2(READ_TAGS)
) (
    input logic clk,
    input logic rst,

    input logic [63:0] now_ns,
    input logic [63:0] now_cycles,

    // --- station ---
    input logic [47:0] cfg_mac,
    input logic [31:0] cfg_address,

    // Ports and senders that are received, and where each goes: written one a cycle.
    input logic                   match_write,
    input logic [ MATCH_BITS-1:0] match_index,
    input logic                   match_enable,
    input logic [           15:0] match_port,
    input logic [           31:0] match_source_address,
    input logic [           31:0] match_source_mask,
    input logic [  CLOP_BITS-1:0] match_clop,
    input logic [           15:0] match_source,        // PacketRef::source
    input logic                   match_counts_events, // byte 3 of a payload is its number of events

    // Where answers go: written one a cycle.
    input logic                        destination_write,
    input logic [DESTINATION_BITS-1:0] destination_index,
    input logic                        destination_enable,
    input logic [                47:0] destination_mac,
    input logic [                31:0] destination_address,
    input logic [                15:0] destination_port,
    input logic [                15:0] destination_source_port,

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
    output logic [CLOPS-1:0]                  clop_holds,
    output logic [CLOPS-1:0]                  clop_fault,
    output logic [CLOPS-1:0][31:0]            clop_handed_over,
    output logic [31:0]                       completions_written,

    // As of stage_stats.
    input  logic        stage_take,
    input  logic [ 2:0] stage_select,
    input  logic        stage_select_bin,
    input  logic [ 5:0] stage_select_word,
    output logic [63:0] stage_data,

    // As of interrupter: of completions_written.
    input  logic        interrupt_enable,
    input  logic [31:0] interrupt_completions,
    input  logic [31:0] interrupt_moderation_ns,
    input  logic        interrupt_arm,
    input  logic [31:0] interrupt_arm_count,
    output logic        interrupt_armed,
    output logic        interrupt_raised,
    output logic [31:0] interrupt_count,
    output logic        irq,

    // As of tx_ring.
    input  logic                    tx_enable,
    input  logic [ADDRESS_BITS-1:0] tx_ring,
    input  logic [            31:0] tx_ring_mask,
    input  logic [            31:0] tx_doorbell,
    input  logic [ADDRESS_BITS-1:0] tx_completions,
    input  logic [            31:0] tx_completion_mask,
    output logic [            31:0] tx_consumed,
    output logic                    tx_busy,
    output logic                    tx_fault,
    output logic                    tx_stuck,

    // --- frames, without check sequence, from the MAC and to it; and how each ended there, as of mac ---
    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,
    input  logic [63:0] s_meta_start_cycle,
    input  nic_counts_pkg::mac_drops_t mac_drops,
    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,
    input  nic_counts_pkg::mac_ends_t mac_ends,

    // --- memory: write requests as of dma_write, read requests as of dma_read ---
    output logic                                         mem_write_valid,
    input  logic                                         mem_write_ready,
    output logic                                         mem_write_first,
    output logic                                         mem_write_last,
    output logic                                         mem_write_gpu,
    output logic [                                 63:0] mem_write_address,
    output logic [$clog2(WRITE_REQUEST_BYTES_MAX+1)-1:0] mem_write_bytes,
    output logic [                                127:0] mem_write_data,
    output logic [                                 15:0] mem_write_keep,
    output logic                                         mem_read_valid,
    input  logic                                         mem_read_ready,
    output logic [                                 63:0] mem_read_address,
    output logic [ $clog2(READ_REQUEST_BYTES_MAX+1)-1:0] mem_read_bytes,
    output logic [                         TAG_BITS-1:0] mem_read_tag,
    output logic                                         mem_read_gpu,
    input  logic                                         mem_answer_valid,
    input  logic [                         TAG_BITS-1:0] mem_answer_tag,
    input  logic [                                127:0] mem_answer_data,
    input  logic                                         mem_answer_last,
    input  logic                                         mem_answer_error,

    // --- a pulse for each frame or packet; registers/counts.toml says what they add up to ---
    output nic_counts_pkg::rx_counts_t    rx_counts,
    output nic_counts_pkg::tx_counts_t    tx_counts,
    output nic_counts_pkg::reply_counts_t reply_counts
);
  logic [63:0] parsed_tdata;
  logic parsed_tvalid, parsed_tlast, parsed_tuser;
  logic [MATCH_BITS-1:0] parsed_match;
  logic [15:0] parsed_bytes;
  logic [63:0] parsed_start_cycle;
  logic [63:0] reply_tdata;
  logic [7:0] reply_tkeep;
  logic reply_tvalid, reply_tready, reply_tlast;

  rx_path #(
      .MATCH_ENTRIES(MATCH_ENTRIES)
  ) i_rx_path (
      .clk,
      .rst,
      .local_mac(cfg_mac),
      .local_address(cfg_address),
      .table_write(match_write),
      .table_index(match_index),
      .table_enable(match_enable),
      .table_port(match_port),
      .table_source_address(match_source_address),
      .table_source_mask(match_source_mask),
      .s_axis_tdata,
      .s_axis_tkeep,
      .s_axis_tvalid,
      .s_axis_tlast,
      .s_axis_tuser,
      .s_meta_start_cycle,
      .m_axis_tdata(parsed_tdata),
      .m_axis_tkeep(),
      .m_axis_tvalid(parsed_tvalid),
      .m_axis_tlast(parsed_tlast),
      .m_axis_tuser(parsed_tuser),
      .m_meta_match_index(parsed_match),
      .m_meta_source_address(),
      .m_meta_source_port(),
      .m_meta_payload_bytes(parsed_bytes),
      .m_meta_start_cycle(parsed_start_cycle),
      .m_reply_tdata(reply_tdata),
      .m_reply_tkeep(reply_tkeep),
      .m_reply_tvalid(reply_tvalid),
      .m_reply_tready(reply_tready),
      .m_reply_tlast(reply_tlast),
      .count_good(rx_counts.parsed),
      .drop_mac_address(rx_counts.mac_address),
      .drop_ethertype(rx_counts.ethertype),
      .drop_short(rx_counts.no_header),
      .drop_version(rx_counts.version),
      .drop_options(rx_counts.options),
      .drop_header_checksum(rx_counts.header_checksum),
      .drop_fragment(rx_counts.fragment),
      .drop_protocol(rx_counts.protocol),
      .drop_address(rx_counts.address),
      .drop_length(rx_counts.length),
      .drop_empty(rx_counts.empty),
      .drop_no_match(rx_counts.no_match),
      .drop_truncated(rx_counts.truncated),
      .drop_udp_checksum(rx_counts.udp_checksum),
      .answered_arp(reply_counts.answered_arp),
      .answered_echo(reply_counts.answered_echo),
      .drop_arp_malformed(reply_counts.arp_malformed),
      .drop_arp_other(reply_counts.arp_other),
      .drop_icmp_length(reply_counts.icmp_length),
      .drop_icmp_checksum(reply_counts.icmp_checksum),
      .drop_icmp_other(reply_counts.icmp_other),
      .drop_echo_large(reply_counts.echo_large),
      .drop_busy(reply_counts.busy)
  );

  // --- what the match table's index means here ---
  typedef struct packed {
    logic                 counts_events;
    logic [CLOP_BITS-1:0] clop;
    logic [15:0]          source;
  } target_t;
  target_t targets[MATCH_ENTRIES];
  target_t target;
  always_ff @(posedge clk) if (match_write) targets[match_index] <= '{match_counts_events, match_clop, match_source};
  assign target = targets[parsed_match];

  logic other_valid, other_ready, other_last;
  logic [ADDRESS_BITS-1:0] other_address;
  logic [127:0] other_data;

  logic completion_left;
  logic stage_valid, stage_last;
  logic [2:0] stage;
  logic [31:0] stage_cycles;

  rx_engine #(
      .CLOPS(CLOPS),
      .BYTES_MAX(BYTES_MAX),
      .FIFO_WORDS(RX_FIFO_WORDS),
      .PLAYOUT_CYCLES(PLAYOUT_CYCLES),
      .PAYLOAD_BYTES_MAX(WRITE_REQUEST_BYTES_MAX),
      .REGIONS(REGIONS),
      .ENTRIES(ENTRIES),
      .OFFSET_BITS(OFFSET_BITS)
  ) i_rx_engine (
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
      .region_write,
      .region_index,
      .region_valid,
      .region_page_shift,
      .region_first,
      .region_count,
      .entry_write,
      .entry_index,
      .entry_data,
      .s_axis_tdata(parsed_tdata),
      .s_axis_tvalid(parsed_tvalid),
      .s_axis_tlast(parsed_tlast),
      .s_axis_tuser(parsed_tuser),
      .s_meta_bytes(BYTES_BITS'(parsed_bytes)),
      .s_meta_clop(target.clop),
      .s_meta_source(target.source),
      .s_meta_event_count(target.counts_events && parsed_bytes > 16'd3 ? parsed_tdata[31:24] : 8'd0),
      .s_meta_arrival_ns(now_ns),
      .s_meta_start_cycle(parsed_start_cycle),
      .s_meta_parsed_cycle(now_cycles),
      .other_valid,
      .other_ready,
      .other_last,
      .other_address,
      .other_bytes(7'(contract_pkg::COMPLETION_BYTES)),
      .other_data,
      .m_valid(mem_write_valid),
      .m_ready(mem_write_ready),
      .m_first(mem_write_first),
      .m_last(mem_write_last),
      .m_gpu(mem_write_gpu),
      .m_address(mem_write_address),
      .m_bytes(mem_write_bytes),
      .m_data(mem_write_data),
      .m_keep(mem_write_keep),
      .clop_holds,
      .clop_fault,
      .clop_handed_over,
      .completions_written,
      .completion_left,
      .stage_valid,
      .stage,
      .stage_cycles,
      .stage_last,
      .count_stored(rx_counts.stored),
      .drop_overflow(rx_counts.overflow),
      .drop_disabled(rx_counts.disabled),
      .drop_too_long(rx_counts.too_long),
      .drop_no_buffer(rx_counts.no_buffer),
      .drop_bad(rx_counts.bad),
      .other_fault(tx_counts.completion_fault)
  );
  assign rx_counts.preamble = mac_drops.preamble;
  assign rx_counts.control = mac_drops.control;
  assign rx_counts.oversize = mac_drops.oversize;
  assign rx_counts.runt = mac_drops.runt;
  assign rx_counts.fcs = mac_drops.fcs;

  stage_stats #(
      .STAGES(STAGES),
      .BINS(STAGE_BINS)
  ) i_stage_stats (
      .clk,
      .rst,
      .s_valid(stage_valid),
      .s_stage(stage),
      .s_cycles(stage_cycles),
      .s_last(stage_last),
      .take(stage_take),
      .select_stage(stage_select),
      .select_bin(stage_select_bin),
      .select_word(stage_select_word),
      .data(stage_data)
  );

  interrupter i_interrupter (
      .clk,
      .rst,
      .now_ns,
      .completion(completion_left),
      .cfg_enable(interrupt_enable),
      .cfg_completions(interrupt_completions),
      .cfg_moderation_ns(interrupt_moderation_ns),
      .arm(interrupt_arm),
      .arm_count(interrupt_arm_count),
      .irq,
      .armed(interrupt_armed),
      .raised(interrupt_raised),
      .count(interrupt_count)
  );

  logic [63:0] payload_tdata;
  logic [7:0] payload_tkeep;
  logic payload_tvalid, payload_tready, payload_tlast;
  logic meta_taken, meta_ready;
  logic [BYTES_BITS-1:0] payload_bytes;
  logic [DESTINATION_BITS-1:0] payload_destination;

  tx_engine #(
      .BYTES_MAX(BYTES_MAX),
      .DESTINATIONS(DESTINATIONS),
      .REQUEST_BYTES_MAX(READ_REQUEST_BYTES_MAX),
      .TAGS(READ_TAGS),
      .TIMEOUT_CYCLES(READ_TIMEOUT_CYCLES),
      .REGIONS(REGIONS),
      .ENTRIES(ENTRIES),
      .OFFSET_BITS(OFFSET_BITS)
  ) i_tx_engine (
      .clk,
      .rst,
      .now_ns,
      .cfg_enable(tx_enable),
      .cfg_ring(tx_ring),
      .cfg_ring_mask(tx_ring_mask),
      .cfg_doorbell(tx_doorbell),
      .cfg_completions(tx_completions),
      .cfg_completion_mask(tx_completion_mask),
      .region_write,
      .region_index,
      .region_valid,
      .region_page_shift,
      .region_first,
      .region_count,
      .entry_write,
      .entry_index,
      .entry_data,
      .read_valid(mem_read_valid),
      .read_ready(mem_read_ready),
      .read_address(mem_read_address),
      .read_bytes(mem_read_bytes),
      .read_tag(mem_read_tag),
      .read_gpu(mem_read_gpu),
      .answer_valid(mem_answer_valid),
      .answer_tag(mem_answer_tag),
      .answer_data(mem_answer_data),
      .answer_last(mem_answer_last),
      .answer_error(mem_answer_error),
      .write_valid(other_valid),
      .write_ready(other_ready),
      .write_address(other_address),
      .write_data(other_data),
      .write_last(other_last),
      .m_axis_tdata(payload_tdata),
      .m_axis_tkeep(payload_tkeep),
      .m_axis_tvalid(payload_tvalid),
      .m_axis_tready(payload_tready && meta_taken),
      .m_axis_tlast(payload_tlast),
      .m_meta_bytes(payload_bytes),
      .m_meta_destination(payload_destination),
      .consumed(tx_consumed),
      .busy(tx_busy),
      .ring_fault(tx_fault),
      .read_stuck(tx_stuck),
      .count_sent(tx_counts.sent),
      .count_refused(tx_counts.refused),
      .count_unreadable(tx_counts.unreadable),
      .count_read_fault(tx_counts.read_fault),
      .count_read_error(tx_counts.read_error)
  );

  // --- the encapsulation wants to know of a packet once, before its payload ---
  wire meta_valid = payload_tvalid && !meta_taken;
  always_ff @(posedge clk) begin
    if (meta_valid && meta_ready) meta_taken <= 1'b1;
    if (payload_tvalid && meta_taken && payload_tready && payload_tlast) meta_taken <= 1'b0;
    if (rst) meta_taken <= 1'b0;
  end

  tx_path #(
      .DESTINATIONS(DESTINATIONS),
      .PAYLOAD_BYTES_MAX(BYTES_MAX)
  ) i_tx_path (
      .clk,
      .rst,
      .local_mac(cfg_mac),
      .local_address(cfg_address),
      .table_write(destination_write),
      .table_index(destination_index),
      .table_enable(destination_enable),
      .table_mac(destination_mac),
      .table_address(destination_address),
      .table_port(destination_port),
      .table_source_port(destination_source_port),
      .s_meta_tvalid(meta_valid),
      .s_meta_tready(meta_ready),
      .s_meta_destination(payload_destination),
      .s_meta_payload_bytes(16'(payload_bytes)),
      .s_axis_tdata(payload_tdata),
      .s_axis_tkeep(payload_tkeep),
      .s_axis_tvalid(payload_tvalid && meta_taken),
      .s_axis_tready(payload_tready),
      .s_axis_tlast(payload_tlast),
      .s_axis_tuser(1'b0),
      .s_reply_tdata(reply_tdata),
      .s_reply_tkeep(reply_tkeep),
      .s_reply_tvalid(reply_tvalid),
      .s_reply_tready(reply_tready),
      .s_reply_tlast(reply_tlast),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .m_axis_tuser,
      .count_reply(reply_counts.replied),
      .drop_destination(tx_counts.destination)
  );
  assign tx_counts.framed = mac_ends.framed;
  assign tx_counts.aborted = mac_ends.aborted;
  assign tx_counts.underrun = mac_ends.underrun;
endmodule
