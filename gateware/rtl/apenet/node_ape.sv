// SPDX-License-Identifier: Apache-2.0
// What a node has in a torus: the router with its links, remote memory at its local port, LO|FA|MO, and their registers (registers/ape.rdl).
//
// Contract
//   * Registers as of nanet_node, 4 KiB of them; links as of apenet_node; requests of the bus as of rdma_engine; payload_* as of port_queue, whose router they go to.
//   * A register with the word "A write sets" acts one cycle after it was written. Place and shape stand still while links are up.
module node_ape #(
    parameter int LINKS = 63,  // a bit for each
    parameter int PORTS = 4,   // Ethernet's, of the node
    parameter int X_BITS = 3,  // nodes: this many bits of each coordinate
    parameter int Y_BITS = 2,
    parameter int Z_BITS = 2,
    parameter int KEYS = 16,
    parameter int GETS = 4,
    parameter int MATCH_ENTRIES = 16,
    parameter int WRITE_REQUEST_BYTES_MAX = 256,
    parameter int READ_REQUEST_BYTES_MAX = 512,
    parameter int READ_TAGS = 16,
    localparam int TAG_BITS = $clog2(READ_TAGS)
) (
    input logic clk,
    input logic rst,
    input logic [63:0] now_ns,
    input logic [63:0] now_cycles,

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

    /* verilator lint_off UNUSEDSIGNAL */
    input port_pkg::pages_t pages,  // the host port's page table
    /* verilator lint_on UNUSEDSIGNAL */

    output logic irq,  // as of interrupter: what is known of a neighbour, or of this node, has changed

    input  logic [  5:0] link_up,
    output logic [  5:0] link_tx_valid,
    input  logic [  5:0] link_tx_ready,
    output logic [767:0] link_tx_data,
    input  logic [  5:0] link_rx_valid,
    input  logic [767:0] link_rx_data,

    output logic [127:0]       payload_tdata,
    output logic [ 15:0]       payload_tkeep,
    output logic               payload_tvalid,
    input  logic               payload_tready,
    output logic               payload_tlast,
    output port_pkg::payload_t payload_meta,
    output logic [  7:0]       payload_destination,
    input  logic               payload_forwarded,  // what became of it in the router
    input  logic               payload_no_route,

    output logic                                         write_valid,
    input  logic                                         write_ready,
    output logic                                         write_first,
    output logic                                         write_last,
    output logic                                         write_gpu,
    output logic [                                 63:0] write_address,
    output logic [$clog2(WRITE_REQUEST_BYTES_MAX+1)-1:0] write_bytes,
    output logic [                                127:0] write_data,
    output logic [                                 15:0] write_keep,
    output logic                                         read_valid,
    input  logic                                         read_ready,
    output logic [                                 63:0] read_address,
    output logic [ $clog2(READ_REQUEST_BYTES_MAX+1)-1:0] read_bytes,
    output logic [                         TAG_BITS-1:0] read_tag,
    output logic                                         read_gpu,
    input  logic                                         answer_valid,
    input  logic [                         TAG_BITS-1:0] answer_tag,
    input  logic [                                127:0] answer_data,
    input  logic                                         answer_last,
    input  logic                                         answer_error
);
  localparam int REGIONS = 16, ENTRIES = 4096;  // host_port's
  localparam int ADDRESS_BITS = $clog2(REGIONS) + rdma_pkg::OFFSET_BITS;

  ape_regs_pkg::ape_regs__in_t status;
  ape_regs_pkg::ape_regs__out_t set;
  ape_regs i_regs (
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
  logic key_write, match_write, beat, interrupt_arm;
  always_ff @(posedge clk) begin
    key_write <= set.key.nonce.swmod && !rst;
    match_write <= set.match.index.swmod && !rst;
    beat <= set.watch.says.swmod && !rst;
    interrupt_arm <= set.interrupt.arm.count.swmod && !rst;
  end

  apenet_pkg::place_t at;
  apenet_pkg::shape_t shape;
  assign at = '{set.place.z.value, set.place.y.value, set.place.x.value};
  assign shape = '{set.place.nodes_z.value, set.place.nodes_y.value, set.place.nodes_x.value};
  assign status.geometry.links.next = 6'(LINKS);
  assign status.geometry.keys.next = 8'(KEYS);
  assign status.geometry.gets.next = 8'(GETS);
  assign status.geometry.match_entries.next = 8'(MATCH_ENTRIES);
  assign status.geometry.x_bits.next = 4'(X_BITS);
  assign status.geometry.y_bits.next = 4'(Y_BITS);
  assign status.geometry.z_bits.next = 4'(Z_BITS);

  // --- router and links ---
  wire [5:0] up = link_up & 6'(LINKS);
  logic [127:0] in_data, out_data;
  logic in_valid, in_ready, in_last, out_valid, out_ready, out_last, unused_ready;
  logic [5:0] silent, sent, down, good, flagged, crc, cut, no_header, noise, corrected;
  logic [59:0] lost;
  logic [13:0] routed, drop_length, drop_outside, drop_turn, drop_port, drop_hops;
  logic [47:0] neighbour_state;
  logic [7:0] node_state;
  apenet_node #(
      .LINKS(LINKS)
  ) i_node (
      .clk,
      .rst,
      .at,
      .shape,
      .s_axis_tdata({128'd0, in_data}),
      .s_axis_tvalid({1'b0, in_valid}),
      .s_axis_tready({unused_ready, in_ready}),
      .s_axis_tlast({1'b0, in_last}),
      .m_axis_tdata(out_data),
      .m_axis_tvalid(out_valid),
      .m_axis_tready(out_ready),
      .m_axis_tlast(out_last),
      .m_space('1),
      .link_up(up),
      .silent,
      .node_state,
      .neighbour_state,
      .link_tx_valid,
      .link_tx_ready,
      .link_tx_data,
      .link_rx_valid,
      .link_rx_data,
      .count_good(routed),
      .drop_length,
      .drop_outside,
      .drop_turn,
      .drop_port,
      .drop_hops,
      .link_sent(sent),
      .drop_down(down),
      .link_good(good),
      .link_flagged(flagged),
      .error_crc(crc),
      .error_cut(cut),
      .drop_header(no_header),
      .drop_lost(lost),
      .noise,
      .header_corrected(corrected)
  );

  logic changed;
  lofamo i_lofamo (
      .clk,
      .rst,
      .cfg_period_cycles(set.watch.period_cycles.value),
      .host_beat(beat),
      .host_says(set.watch.says.value),
      .beats(status.beats.beats.next),
      .link_up(up),
      .silent,
      .neighbour_state,
      .state(node_state),
      .links(status.neighbours.links.next),
      .changed,
      .changes(status.changes.links.next),
      .state_changes(status.changes.node.next)
  );
  assign status.beats.state.next = node_state;
  assign status.links.up.next = up;
  assign status.links.silent.next = silent;

  // Rings as the completions of the host's port do: a change is one, and the first raises it.
  interrupter i_interrupter (
      .clk,
      .rst,
      .now_ns,
      .completion(changed),
      .cfg_enable(set.interrupt.control.enable.value),
      .cfg_completions(32'd1),
      .cfg_moderation_ns('0),
      .arm(interrupt_arm),
      .arm_count(set.interrupt.arm.count.value),
      .irq,
      .armed(status.interrupt.state.armed.next),
      .raised(status.interrupt.state.raised.next),
      .count(status.interrupt.state.count.next)
  );

  // --- remote memory ---
  port_pkg::routed_t payload;
  assign payload_meta = payload.payload;
  wire to_port = payload.route >= port_pkg::ROUTE_PORT_0 && int'(payload.route) < int'(port_pkg::ROUTE_PORT_0) + PORTS;
  assign payload_destination = payload.route == port_pkg::ROUTE_HOST ? 8'(PORTS) : to_port ? 8'(payload.route - port_pkg::ROUTE_PORT_0) : 8'hFF;
  nic_counts_pkg::ape_counts_t counts;
  logic [rdma_pkg::COUNTS-1:0] packets;
  logic [15:0] missed;
  logic packet_left, unreadable, refused, reply_refused, completion_fault;
  always_comb begin
    counts = '0;
    counts[nic_counts_pkg::PACKET_ENDS-1:0] = packets;
    counts.gap = missed != '0;
    counts.left = packet_left;
    counts.unreadable = unreadable;
    counts.refused = refused;
    counts.reply_refused = reply_refused;
    counts.completion_fault = completion_fault;
    counts.forwarded = payload_forwarded;
    counts.no_route = payload_no_route;
  end
  rdma_engine #(
      .X_BITS(X_BITS),
      .Y_BITS(Y_BITS),
      .Z_BITS(Z_BITS),
      .KEYS(KEYS),
      .GETS(GETS),
      .MATCH_ENTRIES(MATCH_ENTRIES),
      .PAYLOAD_BYTES_MAX(WRITE_REQUEST_BYTES_MAX),
      .REQUEST_BYTES_MAX(READ_REQUEST_BYTES_MAX),
      .TAGS(READ_TAGS),
      .REGIONS(REGIONS),
      .ENTRIES(ENTRIES)
  ) i_engine (
      .clk,
      .rst,
      .now_ns,
      .now_cycles,
      .at,
      .own_port(4'd0),
      .cfg_enable(set.ring.control.enable.value),
      .cfg_ring(set.ring.address.address.value[ADDRESS_BITS-1:0]),
      .cfg_ring_mask(set.ring.size.ring_mask.value),
      .cfg_doorbell(set.ring.doorbell.count.value),
      .cfg_ring_completions(set.ring.completions.address.value[ADDRESS_BITS-1:0]),
      .cfg_ring_completion_mask(set.ring.size.completion_mask.value),
      .consumed(status.ring.state.consumed.next),
      .busy(status.ring.state.busy.next),
      .ring_fault(status.ring.state.fault.next),
      .key_write,
      .key_index(set.key.index.value[$clog2(KEYS)-1:0]),
      .key_valid(set.key.valid.value),
      .key_readable(set.key.readable.value),
      .key_writable(set.key.writable.value),
      .key_nonce(set.key.nonce.value),
      .key_start(set.key_start.start.value[ADDRESS_BITS-1:0]),
      .key_bytes(set.key_bytes.bytes.value),
      .region_write(pages.region_write),
      .region_index(pages.region_index[$clog2(REGIONS)-1:0]),
      .region_valid(pages.region_valid),
      .region_page_shift(pages.region_page_shift),
      .region_first(pages.region_first[$clog2(ENTRIES)-1:0]),
      .region_count(pages.region_count[$clog2(ENTRIES):0]),
      .entry_write(pages.entry_write),
      .entry_index(pages.entry_index[$clog2(ENTRIES)-1:0]),
      .entry_data(pages.entry_data),
      .match_write,
      .match_index(set.match.index.value[$clog2(MATCH_ENTRIES)-1:0]),
      .match_enable(set.match.enable.value),
      .match_process(set.match.process.value),
      .match_sender(set.match_sender.sender.value),
      .match_sender_mask(set.match_sender.mask.value),
      .match_route(set.match.route.value),
      .match_clop(set.match.clop.value),
      .match_source(set.match.source.value),
      .match_counts_events(set.match.counts_events.value),
      .payload_tdata,
      .payload_tkeep,
      .payload_tvalid,
      .payload_tready,
      .payload_tlast,
      .payload_meta(payload),
      .cfg_completions(set.messages.completions.address.value[ADDRESS_BITS-1:0]),
      .cfg_completion_mask(set.messages.taken.mask.value),
      .cfg_consumed(set.messages.taken.consumed.value),
      .completions_written(status.messages.written.count.next),
      .s_axis_tdata(out_data),
      .s_axis_tvalid(out_valid),
      .s_axis_tready(out_ready),
      .s_axis_tlast(out_last),
      .m_axis_tdata(in_data),
      .m_axis_tvalid(in_valid),
      .m_axis_tready(in_ready),
      .m_axis_tlast(in_last),
      .write_valid,
      .write_ready,
      .write_first,
      .write_last,
      .write_gpu,
      .write_address,
      .write_bytes,
      .write_data,
      .write_keep,
      .read_valid,
      .read_ready,
      .read_address,
      .read_bytes,
      .read_tag,
      .read_gpu,
      .answer_valid,
      .answer_tag,
      .answer_data,
      .answer_last,
      .answer_error,
      .counts(packets),
      .missed,
      .count_sent(),
      .count_bad(),
      .count_packet(packet_left),
      .count_unreadable(unreadable),
      .count_refused(refused),
      .count_reply_refused(reply_refused),
      .completion_fault
  );

  // --- counters ---
  nic_counts_pkg::ape_link_counts_t [5:0] link_counts;
  for (genvar k = 0; k < 6; k++) begin : g_link_counts
    assign link_counts[k] = '{
            sent: sent[k], down: down[k], good: good[k], flagged: flagged[k], crc: crc[k], cut: cut[k], header: no_header[k],
            lost: 1'b0, noise: noise[k], corrected: corrected[k]
        };
  end
  nic_counts_pkg::ape_router_counts_t [6:0][1:0] router_counts;
  for (genvar i = 0; i < 14; i++) begin : g_router_counts
    assign router_counts[i/2][i%2] = '{
            routed: routed[i], length: drop_length[i], outside: drop_outside[i], turn: drop_turn[i], port: drop_port[i], hops: drop_hops[i]
        };
  end
  ape_counters i_counters (
      .clk,
      .rst,
      .ape_counts(counts),
      .missed,
      .link_counts,
      .lost,
      .router_counts,
      .ape_request(set.ape_count),
      .ape_answer(status.ape_count),
      .link_request(set.link_count),
      .link_answer(status.link_count),
      .router_request(set.router_count),
      .router_answer(status.router_count)
  );
endmodule
