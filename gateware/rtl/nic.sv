// SPDX-License-Identifier: Apache-2.0
// The whole NIC: nic_core with mac, the registers of registers/nic.rdl and its clock. XGMII or GMII, AXI4-Lite and memory requests are flat ports.
//
// With LINE_GBPS 10 the wire is XGMII and the clock has 156.25 MHz; with 1 it is GMII, and the clock is GMII's, 125 MHz.
//
// A register with the word "A write sets" acts one cycle after it was written, so that it acts with what was written. Addresses in registers
// have 48 bits; those above ADDRESS_BITS must be zero, which is the driver's duty.
module nic #(
    parameter int LINE_GBPS = 10,
    parameter int WRITE_REQUEST_BYTES_MAX = 256,
    parameter int READ_REQUEST_BYTES_MAX = 512,
    parameter int READ_TAGS = 32,
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

    // --- wire ---
    input  logic [63:0] xgmii_rxd,
    input  logic [ 7:0] xgmii_rxc,
    output logic [63:0] xgmii_txd,
    output logic [ 7:0] xgmii_txc,
    input  logic [ 7:0] gmii_rxd,
    input  logic        gmii_rx_dv,
    input  logic        gmii_rx_er,
    output logic [ 7:0] gmii_txd,
    output logic        gmii_tx_en,
    output logic        gmii_tx_er,

    // --- a level, as of interrupter: completions have come ---
    output logic irq,

    // --- memory, as of nic_core ---
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
  // As many of each thing as registers/nic.rdl has registers and bits for.
  localparam int CLOPS = 4;
  localparam int MATCH_ENTRIES = 16;
  localparam int DESTINATIONS = 16;
  localparam int REGIONS = 16;
  localparam int ENTRIES = 4096;
  localparam int OFFSET_BITS = 40;
  localparam int FRAME_BYTES_MAX = 9022;
  localparam int PAYLOAD_BYTES_MAX = FRAME_BYTES_MAX - 46;
  localparam int ADDRESS_BITS = $clog2(REGIONS) + OFFSET_BITS;
  localparam int CLOP_BITS = $clog2(CLOPS);
  localparam int STAGES = 5;
  localparam int STAGE_BINS = 64;
  localparam int CYCLE_PS = LINE_GBPS == 10 ? 6400 : 8000;

  if (ADDRESS_BITS > 48) begin : g_check_address
    $fatal(1, "a device address must have at most 48 bits (instance %m)");
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
  logic clock_write, match_write, destination_write, region_write, entry_write, interrupt_arm;
  always_ff @(posedge clk) begin
    clock_write <= set.clock_set.ns.swmod;
    match_write <= set.match.index.swmod;
    destination_write <= set.destination.mac.swmod;
    region_write <= set.region.first.swmod;
    entry_write <= set.page_index.index.swmod;
    interrupt_arm <= set.interrupt.arm.count.swmod;
    if (rst) begin
      clock_write <= 1'b0;
      match_write <= 1'b0;
      destination_write <= 1'b0;
      region_write <= 1'b0;
      entry_write <= 1'b0;
      interrupt_arm <= 1'b0;
    end
  end

  logic [63:0] now_ns, now_cycles;
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

  // --- counters ---
  nic_counts_pkg::rx_counts_t rx_counts;
  nic_counts_pkg::tx_counts_t tx_counts;
  nic_counts_pkg::reply_counts_t reply_counts;
  for (genvar k = 0; k < nic_counts_pkg::RX_COUNTS; k++) begin : g_rx_count
    assign status.rx_count[k].count.incr = rx_counts[k];
  end
  for (genvar k = 0; k < nic_counts_pkg::TX_COUNTS; k++) begin : g_tx_count
    assign status.tx_count[k].count.incr = tx_counts[k];
  end
  for (genvar k = 0; k < nic_counts_pkg::REPLY_COUNTS; k++) begin : g_reply_count
    assign status.reply_count[k].count.incr = reply_counts[k];
  end

  assign status.geometry.clops.next = 8'(CLOPS);
  assign status.geometry.match_entries.next = 8'(MATCH_ENTRIES);
  assign status.geometry.destinations.next = 8'(DESTINATIONS);
  assign status.geometry.regions.next = 8'(REGIONS);
  assign status.geometry.entries.next = 16'(ENTRIES);
  assign status.geometry.offset_bits.next = 8'(OFFSET_BITS);
  assign status.geometry.payload_64.next = 8'(PAYLOAD_BYTES_MAX / 64);
  assign status.stage_geometry.stages.next = 8'(STAGES);
  assign status.stage_geometry.bin_count.next = 16'(STAGE_BINS);
  assign status.line.mbps.next = 32'(1000 * LINE_GBPS);
  assign status.line.cycle_ps.next = 16'(CYCLE_PS);
  assign status.clock.now_ns.next = now_ns;
  assign status.cycles.now_cycles.next = now_cycles;

  logic [63:0] rx_tdata, rx_start_cycle, tx_tdata;
  logic [7:0] rx_tkeep, tx_tkeep;
  logic rx_tvalid, rx_tlast, rx_tuser, tx_tvalid, tx_tready, tx_tlast, tx_tuser;
  nic_counts_pkg::mac_drops_t mac_drops;
  nic_counts_pkg::mac_ends_t mac_ends;
  mac #(
      .LINE_GBPS(LINE_GBPS),
      .FRAME_BYTES_MAX(FRAME_BYTES_MAX)
  ) i_mac (
      .clk,
      .rst,
      .now_cycles,
      .xgmii_rxd,
      .xgmii_rxc,
      .xgmii_txd,
      .xgmii_txc,
      .gmii_rxd,
      .gmii_rx_dv,
      .gmii_rx_er,
      .gmii_txd,
      .gmii_tx_en,
      .gmii_tx_er,
      .m_axis_tdata(rx_tdata),
      .m_axis_tkeep(rx_tkeep),
      .m_axis_tvalid(rx_tvalid),
      .m_axis_tlast(rx_tlast),
      .m_axis_tuser(rx_tuser),
      .m_meta_start_cycle(rx_start_cycle),
      .drops(mac_drops),
      .s_axis_tdata(tx_tdata),
      .s_axis_tkeep(tx_tkeep),
      .s_axis_tvalid(tx_tvalid),
      .s_axis_tready(tx_tready),
      .s_axis_tlast(tx_tlast),
      .s_axis_tuser(tx_tuser),
      .ends(mac_ends)
  );

  nic_core #(
      .CLOPS(CLOPS),
      .MATCH_ENTRIES(MATCH_ENTRIES),
      .DESTINATIONS(DESTINATIONS),
      .REGIONS(REGIONS),
      .ENTRIES(ENTRIES),
      .OFFSET_BITS(OFFSET_BITS),
      .FRAME_BYTES_MAX(FRAME_BYTES_MAX),
      .WRITE_REQUEST_BYTES_MAX(WRITE_REQUEST_BYTES_MAX),
      .READ_REQUEST_BYTES_MAX(READ_REQUEST_BYTES_MAX),
      .READ_TAGS(READ_TAGS)
  ) i_core (
      .clk,
      .rst,
      .now_ns,
      .now_cycles,
      .cfg_mac(set.station_mac.mac.value),
      .cfg_address(set.station_address.address.value),
      .match_write,
      .match_index(set.match.index.value[$clog2(MATCH_ENTRIES)-1:0]),
      .match_enable(set.match.enable.value),
      .match_port(set.match.port.value),
      .match_source_address(set.match_sender.source_address.value),
      .match_source_mask(set.match_sender.source_mask.value),
      .match_clop(set.match.clop.value[CLOP_BITS-1:0]),
      .match_source(set.match.source.value),
      .match_counts_events(set.match.counts_events.value),
      .destination_write,
      .destination_index(set.destination.index.value[$clog2(DESTINATIONS)-1:0]),
      .destination_enable(set.destination.enable.value),
      .destination_mac(set.destination.mac.value),
      .destination_address(set.destination_address.address.value),
      .destination_port(set.destination_address.port.value),
      .destination_source_port(set.destination_address.source_port.value),
      .region_write,
      .region_index(set.region.index.value[$clog2(REGIONS)-1:0]),
      .region_valid(set.region.valid.value),
      .region_page_shift(set.region.page_shift.value),
      .region_first(set.region.first.value[$clog2(ENTRIES)-1:0]),
      .region_count(set.region.count.value[$clog2(ENTRIES):0]),
      .entry_write,
      .entry_index(set.page_index.index.value[$clog2(ENTRIES)-1:0]),
      .entry_data(set.page_entry.data.value),
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
      .clop_holds(holds),
      .clop_fault(fault),
      .clop_handed_over(handed_over),
      .completions_written(status.completions_written.count.next),
      .stage_take(set.stage_take.take.value),
      .stage_select(set.stage_select.stage.value),
      .stage_select_bin(set.stage_select.is_bin.value),
      .stage_select_word(set.stage_select.word.value),
      .stage_data(status.stage_data.data.next),
      .interrupt_enable(set.interrupt.control.enable.value),
      .interrupt_completions(set.interrupt.moderation.completions.value),
      .interrupt_moderation_ns(set.interrupt.moderation.ns.value),
      .interrupt_arm,
      .interrupt_arm_count(set.interrupt.arm.count.value),
      .interrupt_armed(status.interrupt.state.armed.next),
      .interrupt_raised(status.interrupt.state.raised.next),
      .interrupt_count(status.interrupt.state.count.next),
      .irq,
      .tx_enable(set.tx.control.enable.value),
      .tx_ring(set.tx.address.address.value[ADDRESS_BITS-1:0]),
      .tx_ring_mask(set.tx.size.ring_mask.value),
      .tx_doorbell(set.tx.doorbell.count.value),
      .tx_completions(set.tx.completions.address.value[ADDRESS_BITS-1:0]),
      .tx_completion_mask(set.tx.size.completion_mask.value),
      .tx_consumed(status.tx.state.consumed.next),
      .tx_busy(status.tx.state.busy.next),
      .tx_fault(status.tx.state.fault.next),
      .tx_stuck(status.tx.state.stuck.next),
      .s_axis_tdata(rx_tdata),
      .s_axis_tkeep(rx_tkeep),
      .s_axis_tvalid(rx_tvalid),
      .s_axis_tlast(rx_tlast),
      .s_axis_tuser(rx_tuser),
      .s_meta_start_cycle(rx_start_cycle),
      .mac_drops,
      .m_axis_tdata(tx_tdata),
      .m_axis_tkeep(tx_tkeep),
      .m_axis_tvalid(tx_tvalid),
      .m_axis_tready(tx_tready),
      .m_axis_tlast(tx_tlast),
      .m_axis_tuser(tx_tuser),
      .mac_ends,
      .mem_write_valid,
      .mem_write_ready,
      .mem_write_first,
      .mem_write_last,
      .mem_write_gpu,
      .mem_write_address,
      .mem_write_bytes,
      .mem_write_data,
      .mem_write_keep,
      .mem_read_valid,
      .mem_read_ready,
      .mem_read_address,
      .mem_read_bytes,
      .mem_read_tag,
      .mem_read_gpu,
      .mem_answer_valid,
      .mem_answer_tag,
      .mem_answer_data,
      .mem_answer_last,
      .mem_answer_error,
      .rx_counts,
      .tx_counts,
      .reply_counts
  );
endmodule
