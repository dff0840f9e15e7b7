// SPDX-License-Identifier: Apache-2.0
// The host's port: payloads to memory and memory to payloads, with the registers of registers/nic.rdl and the clock of arrivals.
//
//   payloads in -> rx_engine -> memory writes       memory reads -> tx_engine -> payloads out
//
// Contract
//   * Payloads in as of rx_engine: they cannot be held up; s_meta belongs to the first word. Out as of tx_engine: m_meta holds from a payload's
//     first word to its last.
//   * `settings` are those of the first Ethernet port, whose counters come back. A register with the word "A write sets" acts one cycle after it was
//     written, so that it acts with what was written. Addresses in registers have 48 bits; those above ADDRESS_BITS must be zero, which is the
//     driver's duty.
module host_port #(
    parameter int LINE_GBPS = 10,
    parameter int CYCLE_PS = 6400,  // of clk, in fifths of a nanosecond [ps]
    parameter int CLOPS = 4,
    parameter int MATCH_ENTRIES = 16,
    parameter int DESTINATIONS = 16,
    parameter int GROUPS = 4,  // of each port, told to the driver
    parameter bit WHOLE = 1'b0,  // as of rx_engine: received payloads come whole
    parameter int REGIONS = 16,
    parameter int ENTRIES = 4096,         // pages of all regions
    parameter int OFFSET_BITS = 40,       // of an address in a region
    parameter int FRAME_BYTES_MAX = 9022, // FCS and tag included [B]
    parameter int RX_FIFO_WORDS = 2048,   // [16 B]
    parameter int RX_FIFO_PACKETS = 256,
    parameter int TX_FIFO_WORDS = 1024,   // [16 B]
    parameter int TX_FIFO_PACKETS = 64,
    parameter bit STAGE_STATISTICS = 1'b1,
    parameter int PLAYOUT_CYCLES = 16,
    parameter int WRITE_REQUEST_BYTES_MAX = 256,
    parameter int READ_REQUEST_BYTES_MAX = 512,
    parameter int READ_TAGS = 32,
    parameter int READ_TIMEOUT_CYCLES = 1 << 20,
    localparam int IN_BITS = WHOLE ? 128 : 64,
    localparam int TAG_BITS = $clog2(READ_TAGS)
) (
    input logic clk,
    input logic rst,

    // --- registers, of 64 bits: writes with all bytes ---
    input  logic [11:0] s_axil_awaddr,
    input  logic        s_axil_awvalid,
    output logic        s_axil_awready,
    input  logic [63:0] s_axil_wdata,
    input  logic [ 7:0] s_axil_wstrb,
    input  logic        s_axil_wvalid,
    output logic        s_axil_wready,
    output logic [ 1:0] s_axil_bresp,
    output logic        s_axil_bvalid,
    input  logic        s_axil_bready,
    input  logic [11:0] s_axil_araddr,
    input  logic        s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [63:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,
    input  logic        s_axil_rready,

    output logic [63:0] now_ns,
    output logic [63:0] now_cycles,

    // --- the first port: what it is told, a pulse for each frame or packet ---
    output port_pkg::settings_t           settings,
    input  nic_counts_pkg::path_counts_t  path_counts,
    input  nic_counts_pkg::reply_counts_t reply_counts,
    input  nic_counts_pkg::sending_ends_t ends,

    // --- the page table, for others on the same bus ---
    output port_pkg::pages_t pages,

    // --- payloads ---
    input  logic [IN_BITS-1:0] s_axis_tdata,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,
    input  port_pkg::payload_t s_meta,
    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast,
    output port_pkg::sending_t m_meta,

    // --- a level, as of interrupter: completions have come ---
    output logic irq,

    // --- memory, write requests as of dma_write, read requests as of dma_read ---
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
    input  logic                                         mem_answer_error
);
  localparam int REGISTER_CLOPS = 4;  // registers/nic.rdl has registers for so many
  localparam int BYTES_MAX = FRAME_BYTES_MAX - 46;  // of a payload: less Ethernet, IPv4 and UDP headers and FCS
  localparam int BYTES_BITS = $clog2(BYTES_MAX + 1);
  localparam int DESTINATION_BITS = $clog2(DESTINATIONS);
  localparam int ADDRESS_BITS = $clog2(REGIONS) + OFFSET_BITS;
  localparam int CLOP_BITS = CLOPS > 1 ? $clog2(CLOPS) : 1;
  localparam int STAGES = STAGE_STATISTICS ? 5 : 0;
  localparam int STAGE_BINS = 64;

  if (CYCLE_PS % 200 != 0 || CYCLE_PS < 1000 || CYCLE_PS > 65400) begin : g_check_cycle
    $fatal(1, "CYCLE_PS must be 1000 to 65400, a multiple of 200 (instance %m)");
  end
  if (CLOPS < 1 || CLOPS > REGISTER_CLOPS) begin : g_check_clops
    $fatal(1, "CLOPS must be 1 to 4 (instance %m)");
  end
  if (MATCH_ENTRIES < 2 || MATCH_ENTRIES > 255 || DESTINATIONS < 2 || DESTINATIONS > 255) begin : g_check_tables
    $fatal(1, "MATCH_ENTRIES and DESTINATIONS must be 2 to 255 (instance %m)");
  end
  if (REGIONS < 2 || REGIONS > 128 || ENTRIES < 2 || ENTRIES > 32768) begin : g_check_pages
    $fatal(1, "REGIONS must be 2 to 128, ENTRIES 2 to 32768 (instance %m)");
  end
  if (OFFSET_BITS < 22 || ADDRESS_BITS > 48) begin : g_check_address
    $fatal(1, "OFFSET_BITS must be 22 to 48, less the bits of a region (instance %m)");
  end

  nic_regs_pkg::nic_regs__in_t status;
  nic_regs_pkg::nic_regs__out_t set;

  nic_regs i_regs (
      .clk,
      .rst,
      .s_axil_awready,
      .s_axil_awvalid,
      .s_axil_awaddr,
      .s_axil_awprot('0),
      .s_axil_wready,
      .s_axil_wvalid,
      .s_axil_wdata,
      .s_axil_wstrb,
      .s_axil_bready,
      .s_axil_bvalid,
      .s_axil_bresp,
      .s_axil_arready,
      .s_axil_arvalid,
      .s_axil_araddr,
      .s_axil_arprot('0),
      .s_axil_rready,
      .s_axil_rvalid,
      .s_axil_rdata,
      .s_axil_rresp,
      .hwif_in(status),
      .hwif_out(set)
  );

  // --- what a write starts: a cycle later, when the register holds what was written ---
  logic clock_write, region_write, entry_write, interrupt_arm;
  always_ff @(posedge clk) begin
    clock_write <= set.clock_set.ns.swmod;
    settings.group_write <= set.group.address.swmod;
    settings.match_write <= set.match.index.swmod;
    settings.destination_write <= set.destination.mac.swmod;
    region_write <= set.region.first.swmod;
    entry_write <= set.page_index.index.swmod;
    interrupt_arm <= set.interrupt.arm.count.swmod;
    if (rst) begin
      clock_write <= 1'b0;
      settings.group_write <= 1'b0;
      settings.match_write <= 1'b0;
      settings.destination_write <= 1'b0;
      region_write <= 1'b0;
      entry_write <= 1'b0;
      interrupt_arm <= 1'b0;
    end
  end

  assign pages.region_write = region_write;
  assign pages.region_index = set.region.index.value;
  assign pages.region_valid = set.region.valid.value;
  assign pages.region_page_shift = set.region.page_shift.value;
  assign pages.region_first = set.region.first.value;
  assign pages.region_count = set.region.count.value;
  assign pages.entry_write = entry_write;
  assign pages.entry_index = set.page_index.index.value;
  assign pages.entry_data = set.page_entry.data.value;

  timebase #(
      .NS_NUMERATOR(CYCLE_PS / 200),  // fifths of a nanosecond
      .NS_DENOMINATOR(5)
  ) i_timebase (
      .clk,
      .rst,
      .set(clock_write),
      .set_ns(set.clock_set.ns.value),
      .now_ns,
      .now_cycles
  );

  // --- settings and states of the CLOPs ---
  logic [CLOPS-1:0] enable, flush, footer, holds, fault;
  logic [CLOPS-1:0][ADDRESS_BITS-1:0] buffers, index;
  logic [CLOPS-1:0][31:0] buffer_bytes, timeout_ns, consumed, handed_over;
  logic [CLOPS-1:0][16:0] buffer_count;
  logic [CLOPS-1:0][15:0] index_capacity, room_bytes;
  for (genvar c = 0; c < CLOPS; c++) begin : g_clop
    assign enable[c] = set.clop[c].control.enable.value;
    assign footer[c] = set.clop[c].control.footer.value;
    assign flush[c] = set.clop[c].control.flush.value;
    assign buffers[c] = set.clop[c].buffers.address.value[ADDRESS_BITS-1:0];
    assign index[c] = set.clop[c].index.address.value[ADDRESS_BITS-1:0];
    assign buffer_bytes[c] = set.clop[c].size.buffer_bytes.value;
    assign buffer_count[c] = set.clop[c].size.buffer_count.value;
    assign timeout_ns[c] = set.clop[c].hand_over.timeout_ns.value;
    assign room_bytes[c] = set.clop[c].hand_over.room_bytes.value;
    assign index_capacity[c] = set.clop[c].hand_over.index_capacity.value;
    assign consumed[c] = set.clop[c].consumed.count.value;
    assign status.clop[c].state.handed_over.next = handed_over[c];
    assign status.clop[c].state.holds.next = holds[c];
    assign status.clop[c].state.fault.next = fault[c];
  end
  for (genvar c = CLOPS; c < REGISTER_CLOPS; c++) begin : g_no_clop
    assign status.clop[c].state.handed_over.next = '0;
    assign status.clop[c].state.holds.next = 1'b0;
    assign status.clop[c].state.fault.next = 1'b0;
  end

  // --- counters ---
  nic_counts_pkg::rx_counts_t rx_counts;
  nic_counts_pkg::tx_counts_t tx_counts;
  localparam int COUNTERS = nic_counts_pkg::RX_COUNTS + nic_counts_pkg::TX_COUNTS + nic_counts_pkg::REPLY_COUNTS;
  localparam int COUNTER_BITS = $clog2(COUNTERS);
  wire reads_rx_count = set.rx_count.req && !set.rx_count.req_is_wr;
  wire reads_tx_count = set.tx_count.req && !set.tx_count.req_is_wr;
  wire reads_reply_count = set.reply_count.req && !set.reply_count.req_is_wr;
  logic [COUNTER_BITS-1:0] counter;
  logic counter_done;
  logic [63:0] counter_data;
  always_comb begin
    counter = COUNTER_BITS'(nic_counts_pkg::RX_COUNTS + nic_counts_pkg::TX_COUNTS) + COUNTER_BITS'(set.reply_count.addr[6:3]);
    if (reads_tx_count) counter = COUNTER_BITS'(nic_counts_pkg::RX_COUNTS) + COUNTER_BITS'(set.tx_count.addr[6:3]);
    if (reads_rx_count) counter = COUNTER_BITS'(set.rx_count.addr[7:3]);
  end
  counters #(
      .COUNTERS(COUNTERS)
  ) i_counters (
      .clk,
      .rst,
      .pulses({reply_counts, tx_counts, rx_counts}),
      .read(reads_rx_count || reads_tx_count || reads_reply_count),
      .read_index(counter),
      .done(counter_done),
      .data(counter_data)
  );
  // One access at a time waits, so the answer is for all three. A write does nothing.
  assign status.rx_count = '{rd_ack: counter_done, rd_data: counter_data, wr_ack: set.rx_count.req && set.rx_count.req_is_wr};
  assign status.tx_count = '{rd_ack: counter_done, rd_data: counter_data, wr_ack: set.tx_count.req && set.tx_count.req_is_wr};
  assign status.reply_count = '{rd_ack: counter_done, rd_data: counter_data, wr_ack: set.reply_count.req && set.reply_count.req_is_wr};

  assign status.geometry.clops.next = 8'(CLOPS);
  assign status.geometry.match_entries.next = 8'(MATCH_ENTRIES);
  assign status.geometry.destinations.next = 8'(DESTINATIONS);
  assign status.geometry.regions.next = 8'(REGIONS);
  assign status.geometry.entries.next = 16'(ENTRIES);
  assign status.geometry.offset_bits.next = 8'(OFFSET_BITS);
  assign status.geometry.payload_64.next = 8'(BYTES_MAX / 64);
  assign status.group.entries.next = 8'(GROUPS);
  assign status.stage_geometry.stages.next = 8'(STAGES);
  assign status.stage_geometry.bin_count.next = 16'(STAGE_BINS);
  assign status.line.mbps.next = 32'(1000 * LINE_GBPS);
  assign status.line.cycle_ps.next = 16'(CYCLE_PS);
  assign status.clock.now_ns.next = now_ns;
  assign status.cycles.now_cycles.next = now_cycles;

  // --- what the first port is told ---
  assign settings.mac = set.station_mac.mac.value;
  assign settings.address = set.station_address.address.value;
  assign settings.group_index = set.group.index.value;
  assign settings.group_address = set.group.address.value;
  assign settings.match_index = set.match.index.value;
  assign settings.match_enable = set.match.enable.value;
  assign settings.match_port = set.match.port.value;
  assign settings.match_source_address = set.match_sender.source_address.value;
  assign settings.match_source_mask = set.match_sender.source_mask.value;
  assign settings.match_route = set.match.route.value;
  assign settings.match_clop = set.match.clop.value[1:0];
  assign settings.match_source = set.match.source.value;
  assign settings.match_counts_events = set.match.counts_events.value;
  assign settings.destination_index = set.destination.index.value;
  assign settings.destination_enable = set.destination.enable.value;
  assign settings.destination_mac = set.destination.mac.value;
  assign settings.destination_address = set.destination_address.address.value;
  assign settings.destination_port = set.destination_address.port.value;
  assign settings.destination_source_port = set.destination_address.source_port.value;

  assign rx_counts[nic_counts_pkg::PATH_COUNTS-1:0] = path_counts;
  assign tx_counts.framed = ends.framed;
  assign tx_counts.aborted = ends.aborted;
  assign tx_counts.destination = ends.destination;
  assign tx_counts.underrun = ends.underrun;

  logic other_valid, other_ready, other_last, other_urgent;
  logic [ADDRESS_BITS-1:0] other_address;
  logic [127:0] other_data;

  logic completion_left;
  logic stage_valid, stage_last;
  logic [2:0] stage;
  logic [31:0] stage_cycles;

  rx_engine #(
      .WHOLE(WHOLE),
      .CLOPS(CLOPS),
      .BYTES_MAX(BYTES_MAX),
      .FIFO_WORDS(RX_FIFO_WORDS),
      .FIFO_PACKETS(RX_FIFO_PACKETS),
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
      .cfg_enable(enable),
      .cfg_flush(flush),
      .cfg_footer(footer),
      .cfg_buffers(buffers),
      .cfg_index(index),
      .cfg_buffer_bytes(buffer_bytes),
      .cfg_buffer_count(buffer_count),
      .cfg_index_capacity(index_capacity),
      .cfg_room_bytes(room_bytes),
      .cfg_timeout_ns(timeout_ns),
      .cfg_consumed(consumed),
      .cfg_completions(set.completions.address.value[ADDRESS_BITS-1:0]),
      .cfg_completion_mask(set.completion_mask.mask.value),
      .region_write,
      .region_index(set.region.index.value[$clog2(REGIONS)-1:0]),
      .region_valid(set.region.valid.value),
      .region_page_shift(set.region.page_shift.value),
      .region_first(set.region.first.value[$clog2(ENTRIES)-1:0]),
      .region_count(set.region.count.value[$clog2(ENTRIES):0]),
      .entry_write,
      .entry_index(set.page_index.index.value[$clog2(ENTRIES)-1:0]),
      .entry_data(set.page_entry.data.value),
      .s_axis_tdata,
      .s_axis_tvalid,
      .s_axis_tready,
      .s_axis_tlast,
      .s_axis_tuser,
      .s_meta_bytes(s_meta.bytes[BYTES_BITS-1:0]),
      .s_meta_clop(s_meta.clop[CLOP_BITS-1:0]),
      .s_meta_source(s_meta.source),
      .s_meta_event_count(s_meta.event_count),
      .s_meta_arrival_ns(s_meta.arrival_ns),
      .s_meta_start_cycle(s_meta.start_cycle),
      .s_meta_parsed_cycle(s_meta.parsed_cycle),
      .other_valid,
      .other_ready,
      .other_last,
      .other_address,
      .other_bytes(7'(contract_pkg::COMPLETION_BYTES)),
      .other_data,
      .other_urgent,
      .m_valid(mem_write_valid),
      .m_ready(mem_write_ready),
      .m_first(mem_write_first),
      .m_last(mem_write_last),
      .m_gpu(mem_write_gpu),
      .m_address(mem_write_address),
      .m_bytes(mem_write_bytes),
      .m_data(mem_write_data),
      .m_keep(mem_write_keep),
      .clop_holds(holds),
      .clop_fault(fault),
      .clop_handed_over(handed_over),
      .completions_written(status.completions_written.count.next),
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

  if (STAGE_STATISTICS) begin : g_statistics
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
        .take(set.stage_take.take.value),
        .select_stage(set.stage_select.stage.value),
        .select_bin(set.stage_select.is_bin.value),
        .select_word(set.stage_select.word.value),
        .data(status.stage_data.data.next)
    );
  end else begin : g_statistics
    assign status.stage_data.data.next = '0;
    wire unused = &{1'b0, stage_valid, stage, stage_cycles, stage_last, set.stage_take.take.value, set.stage_select.word.value};
  end

  interrupter i_interrupter (
      .clk,
      .rst,
      .now_ns,
      .completion(completion_left),
      .cfg_enable(set.interrupt.control.enable.value),
      .cfg_completions(set.interrupt.moderation.completions.value),
      .cfg_moderation_ns(set.interrupt.moderation.ns.value),
      .arm(interrupt_arm),
      .arm_count(set.interrupt.arm.count.value),
      .irq,
      .armed(status.interrupt.state.armed.next),
      .raised(status.interrupt.state.raised.next),
      .count(status.interrupt.state.count.next)
  );

  logic [BYTES_BITS-1:0] sending_bytes;
  logic [DESTINATION_BITS-1:0] sending_destination;
  tx_engine #(
      .BYTES_MAX(BYTES_MAX),
      .DESTINATIONS(DESTINATIONS),
      .FIFO_WORDS(TX_FIFO_WORDS),
      .FIFO_PACKETS(TX_FIFO_PACKETS),
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
      .cfg_enable(set.tx.control.enable.value),
      .cfg_ring(set.tx.address.address.value[ADDRESS_BITS-1:0]),
      .cfg_ring_mask(set.tx.size.ring_mask.value),
      .cfg_doorbell(set.tx.doorbell.count.value),
      .cfg_completions(set.tx.completions.address.value[ADDRESS_BITS-1:0]),
      .cfg_completion_mask(set.tx.size.completion_mask.value),
      .region_write,
      .region_index(set.region.index.value[$clog2(REGIONS)-1:0]),
      .region_valid(set.region.valid.value),
      .region_page_shift(set.region.page_shift.value),
      .region_first(set.region.first.value[$clog2(ENTRIES)-1:0]),
      .region_count(set.region.count.value[$clog2(ENTRIES):0]),
      .entry_write,
      .entry_index(set.page_index.index.value[$clog2(ENTRIES)-1:0]),
      .entry_data(set.page_entry.data.value),
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
      .write_urgent(other_urgent),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .m_meta_bytes(sending_bytes),
      .m_meta_destination(sending_destination),
      .consumed(status.tx.state.consumed.next),
      .busy(status.tx.state.busy.next),
      .ring_fault(status.tx.state.fault.next),
      .read_stuck(status.tx.state.stuck.next),
      .count_sent(tx_counts.sent),
      .count_refused(tx_counts.refused),
      .count_unreadable(tx_counts.unreadable),
      .count_read_fault(tx_counts.read_fault),
      .count_read_error(tx_counts.read_error)
  );
  assign m_meta.bytes = 16'(sending_bytes);
  assign m_meta.destination = 8'(sending_destination);
endmodule
