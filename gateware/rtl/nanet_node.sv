// SPDX-License-Identifier: Apache-2.0
// A NaNet node: 1 to 4 Ethernet ports, a data path of four stages behind each, a router between all ports and the host's port; and, as a parameter says, links of the
// APEnet+ torus with remote memory, node_torus, whose SENDs go through the same router and whose messages share the host's bus.
//
//   link     protocol    data processing        encapsulation
//   mac ───► rx_path ─┬► stage_template, none ─► stage_encap, none ─► port_queue ─┐
//            tx_path  │                                                           ├─► router ─► host_port: RX remote DMA to host and GPU
//                     └► stage_merge: event_check, decompressor, event_merger ─► event_packer   ◄─ TX gather
//                                                                                         └───► tx_path of each port
//
// A match entry says where its payloads go: to the host, to the merger, or to another port. docs/design/gateware-node.md has the streams between the
// stages, the parameter sets (NaNet-1, NaNet-10) and the books.
//
// Contract
//   * Nothing from the wire to port_queue or stage_merge waits. There whole good packets wait; one that finds no room is dropped, and counted by its port.
//   * Payloads reach the host whole: host_port is held up, not overrun.
//   * The links' words are those of apenet_node. Without APE_LINKS what is theirs is not looked at, and 0.
//   * A TX descriptor's destination is {port, destination of that port}, four bits the latter.
module nanet_node #(
    parameter int PORTS = 4,                // 1 to 4
    parameter int LINE_GBPS = 10,           // 10 or 1, of all ports
    parameter bit OWN_CLOCKS = 1'b0,        // each wire has clocks of its own, as of mac_cdc
    parameter int CYCLE_PS = LINE_GBPS == 10 ? 6400 : 8000,
    parameter bit MERGE = 1'b1,             // there is stage_merge, a link a port
    parameter int PROCESSING = 0,           // of what is not merged: 0 none, 1 stage_template
    parameter int ENCAPSULATION = 0,        // of what is not merged: 0 none, 1 stage_encap
    parameter int QUEUE_WORDS = 1024,       // of each port before the router [16 B]
    parameter int PACKET_WORDS = 2048,      // of each link before the decompressor [8 B]
    parameter int EVENT_WORDS = 512,        // of each link before the merger [8 hits]
    parameter int PACKET_BYTES_MAX = 1472,  // of merged events
    parameter int WRITE_REQUEST_BYTES_MAX = 256,
    parameter int READ_REQUEST_BYTES_MAX = 512,
    parameter int READ_TAGS = 32,
    parameter int APE_LINKS = 0,            // 0; 3: x+, x-, y+; or 6
    localparam int TAG_BITS = $clog2(READ_TAGS),
    localparam int REGISTER_BITS = APE_LINKS > 0 ? 14 : 13  // of an address
) (
    input logic clk,
    input logic rst,

    // --- registers, of 64 bits: writes with all bytes. From 0 on those of registers/nic.rdl, from 0x1000 on those of node.rdl, from 0x2000 on those of ape.rdl ---
    input  logic [REGISTER_BITS-1:0] s_axil_awaddr,
    input  logic        s_axil_awvalid,
    output logic        s_axil_awready,
    input  logic [63:0] s_axil_wdata,
    input  logic [ 7:0] s_axil_wstrb,
    input  logic        s_axil_wvalid,
    output logic        s_axil_wready,
    output logic [ 1:0] s_axil_bresp,
    output logic        s_axil_bvalid,
    input  logic        s_axil_bready,
    input  logic [REGISTER_BITS-1:0] s_axil_araddr,
    input  logic        s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [63:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,
    input  logic        s_axil_rready,

    // --- wires, port 0 lowest; as of mac_cdc ---
    input  logic [   PORTS-1:0] rx_clk,
    input  logic [   PORTS-1:0] tx_clk,
    input  logic [PORTS*64-1:0] xgmii_rxd,
    input  logic [ PORTS*8-1:0] xgmii_rxc,
    output logic [PORTS*64-1:0] xgmii_txd,
    output logic [ PORTS*8-1:0] xgmii_txc,
    input  logic [ PORTS*8-1:0] gmii_rxd,
    input  logic [   PORTS-1:0] gmii_rx_dv,
    input  logic [   PORTS-1:0] gmii_rx_er,
    output logic [ PORTS*8-1:0] gmii_txd,
    output logic [   PORTS-1:0] gmii_tx_en,
    output logic [   PORTS-1:0] gmii_tx_er,

    // --- links of the torus, as of apenet_node ---
    /* verilator lint_off UNUSEDSIGNAL */
    input  logic [  5:0] ape_link_up,
    output logic [  5:0] ape_tx_valid,
    input  logic [  5:0] ape_tx_ready,
    output logic [767:0] ape_tx_data,
    input  logic [  5:0] ape_rx_valid,
    input  logic [767:0] ape_rx_data,
    /* verilator lint_on UNUSEDSIGNAL */

    // --- a level, as of irq_join: completions have come, or what a node of the torus knows of others and itself has changed ---
    output logic irq,

    // --- memory, as of host_port ---
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
  localparam int FRAME_BYTES_MAX = 9022;
  localparam int MATCH_ENTRIES = 16;
  localparam int DESTINATIONS = 16;        // of a port
  localparam int GROUPS = 4;               // of a port
  localparam int DESTINATION_BITS = $clog2(DESTINATIONS);
  localparam int PORT_BITS = PORTS > 2 ? 2 : 1;
  localparam int PORTS_MAX = 4;            // that node.rdl has registers for
  localparam int LINKS = MERGE ? PORTS : 0;
  localparam int WAYS = PORTS + (APE_LINKS > 0 ? 3 : 2);  // of the router: ports, host, merged events, SENDs of the torus
  localparam int HOST = PORTS, EVENTS = PORTS + 1;
  localparam int HOST_TAGS = APE_LINKS > 0 ? READ_TAGS / 2 : READ_TAGS;
  localparam int HOST_TAG_BITS = $clog2(HOST_TAGS);
  localparam int META_BITS = 240;          // of payload_t, whole bytes
  localparam int WAY_BITS = 128 + META_BITS;  // the router takes a word and its sideband together

  if (PORTS < 1 || PORTS > PORTS_MAX) begin : g_check_ports
    $fatal(1, "PORTS must be 1 to 4 (instance %m)");
  end
  if (APE_LINKS != 0 && APE_LINKS != 3 && APE_LINKS != 6) begin : g_check_links
    $fatal(1, "APE_LINKS must be 0, 3 or 6 (instance %m)");
  end
  if (MERGE && PORTS < 2) begin : g_check_merge
    $fatal(1, "MERGE needs two ports or more (instance %m)");
  end
  if (PROCESSING < 0 || PROCESSING > 1 || ENCAPSULATION < 0 || ENCAPSULATION > 1) begin : g_check_stages
    $fatal(1, "PROCESSING and ENCAPSULATION must be 0 or 1 (instance %m)");
  end
  if (port_pkg::PAYLOAD_META_BITS > META_BITS) begin : g_check_meta
    $fatal(1, "payload_t has more bits than its place (instance %m)");
  end

  logic [63:0] now_ns, now_cycles;

  // --- registers: in a torus there is a third window, before which the other two are one ---
  logic host_awvalid, host_awready, host_wvalid, host_wready, host_bvalid, host_bready, host_arvalid, host_arready, host_rvalid, host_rready;
  logic [1:0] host_bresp, host_rresp;
  logic [63:0] host_rdata;
  logic [1:0] axil_awvalid, axil_awready, axil_wvalid, axil_wready, axil_bvalid, axil_bready, axil_arvalid, axil_arready, axil_rvalid, axil_rready;
  logic [3:0] axil_bresp, axil_rresp;
  logic [127:0] axil_rdata;
  axil_split #(
      .ADDRESS_BITS(12)
  ) i_axil_split (
      .clk,
      .rst,
      .s_axil_awaddr(s_axil_awaddr[12:0]),
      .s_axil_awvalid(host_awvalid),
      .s_axil_awready(host_awready),
      .s_axil_wvalid(host_wvalid),
      .s_axil_wready(host_wready),
      .s_axil_bresp(host_bresp),
      .s_axil_bvalid(host_bvalid),
      .s_axil_bready(host_bready),
      .s_axil_araddr(s_axil_araddr[12:0]),
      .s_axil_arvalid(host_arvalid),
      .s_axil_arready(host_arready),
      .s_axil_rdata(host_rdata),
      .s_axil_rresp(host_rresp),
      .s_axil_rvalid(host_rvalid),
      .s_axil_rready(host_rready),
      .m_axil_awvalid(axil_awvalid),
      .m_axil_awready(axil_awready),
      .m_axil_wvalid(axil_wvalid),
      .m_axil_wready(axil_wready),
      .m_axil_bresp(axil_bresp),
      .m_axil_bvalid(axil_bvalid),
      .m_axil_bready(axil_bready),
      .m_axil_arvalid(axil_arvalid),
      .m_axil_arready(axil_arready),
      .m_axil_rdata(axil_rdata),
      .m_axil_rresp(axil_rresp),
      .m_axil_rvalid(axil_rvalid),
      .m_axil_rready(axil_rready)
  );

  node_regs_pkg::node_regs__in_t status;
  node_regs_pkg::node_regs__out_t set;
  node_regs i_regs (
      .clk,
      .rst,
      .s_axil_awready(axil_awready[1]),
      .s_axil_awvalid(axil_awvalid[1]),
      .s_axil_awaddr(s_axil_awaddr[11:0]),
      .s_axil_awprot('0),
      .s_axil_wready(axil_wready[1]),
      .s_axil_wvalid(axil_wvalid[1]),
      .s_axil_wdata,
      .s_axil_wstrb,
      .s_axil_bready(axil_bready[1]),
      .s_axil_bvalid(axil_bvalid[1]),
      .s_axil_bresp(axil_bresp[3:2]),
      .s_axil_arready(axil_arready[1]),
      .s_axil_arvalid(axil_arvalid[1]),
      .s_axil_araddr(s_axil_araddr[11:0]),
      .s_axil_arprot('0),
      .s_axil_rready(axil_rready[1]),
      .s_axil_rvalid(axil_rvalid[1]),
      .s_axil_rdata(axil_rdata[127:64]),
      .s_axil_rresp(axil_rresp[3:2]),
      .hwif_in(status),
      .hwif_out(set)
  );
  assign status.node.ports.next = 8'(PORTS);
  assign status.node.links.next = 8'(LINKS);
  assign status.node.processing.next = 8'(PROCESSING);
  assign status.node.encapsulation.next = 8'(ENCAPSULATION);
  assign status.node.packet_bytes.next = 16'(PACKET_BYTES_MAX);

  // --- the router's inputs and outputs: ports, then the host, then the merged events ---
  /* verilator lint_off UNUSEDSIGNAL */  // no output needs all of a sideband
  logic [WAYS*WAY_BITS-1:0] in_tdata, out_tdata;
  logic [WAYS*WAY_BITS/8-1:0] in_tkeep, out_tkeep;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [WAYS-1:0] in_tvalid, in_tready, in_tlast, out_tvalid, out_tready, out_tlast, passed, no_route;
  logic [WAYS*8-1:0] in_destination;
  router #(
      .PORTS(WAYS),
      .DATA_BITS(WAY_BITS)
  ) i_router (
      .clk,
      .rst,
      .s_axis_tdata(in_tdata),
      .s_axis_tkeep(in_tkeep),
      .s_axis_tvalid(in_tvalid),
      .s_axis_tready(in_tready),
      .s_axis_tlast(in_tlast),
      .s_axis_tuser('0),
      .s_meta_destination(in_destination),
      .m_axis_tdata(out_tdata),
      .m_axis_tkeep(out_tkeep),
      .m_axis_tvalid(out_tvalid),
      .m_axis_tready(out_tready),
      .m_axis_tlast(out_tlast),
      .m_axis_tuser(),
      .m_meta_source(),
      .count_good(passed),
      .drop_destination(no_route)
  );
  assign out_tready[EVENTS] = 1'b1;  // no one sends there

  port_pkg::settings_t settings[PORTS];
  nic_counts_pkg::path_counts_t path_counts[PORTS];
  nic_counts_pkg::reply_counts_t reply_counts[PORTS];
  nic_counts_pkg::sending_ends_t ends[PORTS];
  nic_counts_pkg::port_counts_t port_counts[PORTS];
  logic [PORTS*64-1:0] event_tdata;
  logic [PORTS*8-1:0] event_tkeep;
  logic [PORTS-1:0] event_tvalid, event_tlast, event_tuser;

  for (genvar p = 0; p < PORTS; p++) begin : g_port
    port_pkg::payload_t queued_meta, to_send;
    logic to_events, sent_to, refused, full;
    assign to_send = out_tdata[WAY_BITS*p+128+:port_pkg::PAYLOAD_META_BITS];
    assign in_tdata[WAY_BITS*p+128+:META_BITS] = META_BITS'(queued_meta);
    assign in_tkeep[WAY_BITS/8*p+16+:META_BITS/8] = '1;

    node_port #(
        .PORTS(PORTS),
        .LINE_GBPS(LINE_GBPS),
        .OWN_CLOCKS(OWN_CLOCKS),
        .MERGE(MERGE),
        .PROCESSING(PROCESSING),
        .ENCAPSULATION(ENCAPSULATION),
        .QUEUE_WORDS(QUEUE_WORDS),
        .FRAME_BYTES_MAX(FRAME_BYTES_MAX),
        .MATCH_ENTRIES(MATCH_ENTRIES),
        .GROUPS(GROUPS),
        .DESTINATIONS(DESTINATIONS)
    ) i_port (
        .clk,
        .rst,
        .rx_clk(rx_clk[p]),
        .tx_clk(tx_clk[p]),
        .now_ns,
        .now_cycles,
        .settings(settings[p]),
        .cfg_value(set.stage[p].value.value.value),
        .cfg_mask(set.stage[p].mask.mask.value),
        .xgmii_rxd(xgmii_rxd[64*p+:64]),
        .xgmii_rxc(xgmii_rxc[8*p+:8]),
        .xgmii_txd(xgmii_txd[64*p+:64]),
        .xgmii_txc(xgmii_txc[8*p+:8]),
        .gmii_rxd(gmii_rxd[8*p+:8]),
        .gmii_rx_dv(gmii_rx_dv[p]),
        .gmii_rx_er(gmii_rx_er[p]),
        .gmii_txd(gmii_txd[8*p+:8]),
        .gmii_tx_en(gmii_tx_en[p]),
        .gmii_tx_er(gmii_tx_er[p]),
        .event_tdata(event_tdata[64*p+:64]),
        .event_tkeep(event_tkeep[8*p+:8]),
        .event_tvalid(event_tvalid[p]),
        .event_tlast(event_tlast[p]),
        .event_tuser(event_tuser[p]),
        .m_axis_tdata(in_tdata[WAY_BITS*p+:128]),
        .m_axis_tkeep(in_tkeep[WAY_BITS/8*p+:16]),
        .m_axis_tvalid(in_tvalid[p]),
        .m_axis_tready(in_tready[p]),
        .m_axis_tlast(in_tlast[p]),
        .m_meta(queued_meta),
        .m_destination(in_destination[8*p+:8]),
        .s_axis_tdata(out_tdata[WAY_BITS*p+:128]),
        .s_axis_tkeep(out_tkeep[WAY_BITS/8*p+:16]),
        .s_axis_tvalid(out_tvalid[p]),
        .s_axis_tready(out_tready[p]),
        .s_axis_tlast(out_tlast[p]),
        .s_meta(to_send),
        .path_counts(path_counts[p]),
        .reply_counts(reply_counts[p]),
        .ends(ends[p]),
        .count_to_events(to_events),
        .count_sent_to(sent_to),
        .drop_refused(refused),
        .drop_full(full)
    );

    nic_counts_pkg::port_counts_t counts;
    assign counts.to_events = to_events;
    assign counts.refused = refused;
    assign counts.full = full;
    assign counts.no_route = no_route[p];
    assign counts.forwarded = passed[p];
    assign counts.sent_to = sent_to;
    assign port_counts[p] = counts;
  end

  // --- a port after the first is told by node_regs ---
  for (genvar n = 0; n < PORTS_MAX - 1; n++) begin : g_more
    localparam int PORT = n + 1;
    if (PORT < PORTS) begin : g_port
      logic group_write, match_write, destination_write;
      always_ff @(posedge clk) begin
        group_write <= set.port[n].group.address.swmod && !rst;
        match_write <= set.port[n].match.index.swmod && !rst;
        destination_write <= set.port[n].destination.mac.swmod && !rst;
      end
      assign settings[PORT].mac = set.port[n].station_mac.mac.value;
      assign settings[PORT].address = set.port[n].station_address.address.value;
      assign settings[PORT].group_write = group_write;
      assign settings[PORT].group_index = set.port[n].group.index.value;
      assign settings[PORT].group_address = set.port[n].group.address.value;
      assign settings[PORT].match_write = match_write;
      assign settings[PORT].match_index = set.port[n].match.index.value;
      assign settings[PORT].match_enable = set.port[n].match.enable.value;
      assign settings[PORT].match_port = set.port[n].match.port.value;
      assign settings[PORT].match_source_address = set.port[n].match_sender.source_address.value;
      assign settings[PORT].match_source_mask = set.port[n].match_sender.source_mask.value;
      assign settings[PORT].match_route = set.port[n].match.route.value;
      assign settings[PORT].match_clop = set.port[n].match.clop.value;
      assign settings[PORT].match_source = set.port[n].match.source.value;
      assign settings[PORT].match_counts_events = set.port[n].match.counts_events.value;
      assign settings[PORT].destination_write = destination_write;
      assign settings[PORT].destination_index = set.port[n].destination.index.value;
      assign settings[PORT].destination_enable = set.port[n].destination.enable.value;
      assign settings[PORT].destination_mac = set.port[n].destination.mac.value;
      assign settings[PORT].destination_address = set.port[n].destination_address.address.value;
      assign settings[PORT].destination_port = set.port[n].destination_address.port.value;
      assign settings[PORT].destination_source_port = set.port[n].destination_address.source_port.value;
    end
  end

  // --- merged events ---
  logic [127:0] merged_tdata;
  logic [15:0] merged_tkeep, merged_bytes;
  logic merged_tvalid, merged_tlast;
  logic [7:0] merged_events;
  nic_counts_pkg::merge_counts_t [PORTS-1:0] merge_counts;
  nic_counts_pkg::events_counts_t events_counts;
  if (MERGE) begin : g_merge
    port_pkg::merge_settings_t merge;
    logic table_write;
    always_ff @(posedge clk) table_write <= set.merge.table_entry.index.swmod && !rst;
    assign merge.links = set.merge.control.links.value;
    assign merge.complete_only = set.merge.control.complete_only.value;
    assign merge.parts = set.merge.control.parts.value;
    assign merge.forget = set.merge.control.forget.value;
    assign merge.window_cycles = set.merge.waiting.window_cycles.value;
    assign merge.lapse_cycles = set.merge.waiting.lapse_cycles.value;
    assign merge.jump = set.merge.jump.jump.value;
    assign merge.flush_cycles = set.merge.packets.flush_cycles.value;
    assign merge.source_id = set.merge.packets.source_id.value;
    assign merge.source_sub_id = set.merge.packets.source_sub_id.value;
    assign merge.table_enable = set.merge.control.table_enable.value;
    assign merge.table_write = table_write;
    assign merge.table_index = set.merge.table_entry.index.value;
    assign merge.table_hit = set.merge.table_entry.hit.value;

    stage_merge #(
        .LINKS(PORTS),
        .PACKET_WORDS(PACKET_WORDS),
        .EVENT_WORDS(EVENT_WORDS),
        .PACKET_BYTES_MAX(PACKET_BYTES_MAX)
    ) i_merge (
        .clk,
        .rst,
        .now_ns(now_ns[31:0]),
        .settings(merge),
        .s_axis_tdata(event_tdata),
        .s_axis_tkeep(event_tkeep),
        .s_axis_tvalid(event_tvalid),
        .s_axis_tlast(event_tlast),
        .s_axis_tuser(event_tuser),
        .m_axis_tdata(merged_tdata),
        .m_axis_tkeep(merged_tkeep),
        .m_axis_tvalid(merged_tvalid),
        .m_axis_tready(in_tready[EVENTS]),
        .m_axis_tlast(merged_tlast),
        .m_meta_payload_bytes(merged_bytes),
        .m_meta_event_count(merged_events),
        .counts(merge_counts),
        .events(events_counts)
    );
  end else begin : g_merge
    assign merged_tdata = '0;
    assign merged_tkeep = '0;
    assign merged_tvalid = 1'b0;
    assign merged_tlast = 1'b0;
    assign merged_bytes = '0;
    assign merged_events = '0;
    assign merge_counts = '0;
    assign events_counts = '0;
  end
  // The times of a merged packet are those of its first word.
  port_pkg::payload_t merged_meta;
  logic merged_inside;
  logic [63:0] merged_ns, merged_cycle;
  always_ff @(posedge clk) begin
    if (!merged_inside) begin
      merged_ns <= now_ns;
      merged_cycle <= now_cycles;
    end
    if (merged_tvalid) merged_inside <= !(merged_tlast && in_tready[EVENTS]);
    if (rst) merged_inside <= 1'b0;
  end
  assign merged_meta.clop = set.merge.packets.clop.value;
  assign merged_meta.source = set.merge.source.source.value;
  assign merged_meta.event_count = merged_events;
  assign merged_meta.bytes = merged_bytes;
  assign merged_meta.arrival_ns = merged_inside ? merged_ns : now_ns;
  assign merged_meta.start_cycle = merged_inside ? merged_cycle : now_cycles;
  assign merged_meta.parsed_cycle = merged_inside ? merged_cycle : now_cycles;
  assign in_tdata[WAY_BITS*EVENTS+:WAY_BITS] = {META_BITS'(merged_meta), merged_tdata};
  assign in_tkeep[WAY_BITS/8*EVENTS+:WAY_BITS/8] = {{META_BITS / 8{1'b1}}, merged_tkeep};
  assign in_tvalid[EVENTS] = merged_tvalid;
  assign in_tlast[EVENTS] = merged_tlast;
  assign in_destination[8*EVENTS+:8] = 8'(HOST);

  // --- the host ---
  logic [63:0] sent_tdata;
  logic [7:0] sent_tkeep;
  logic sent_tvalid, sent_tready, sent_tlast;
  port_pkg::sending_t sent_meta;
  port_pkg::payload_t sent_payload, host_meta;
  wire [7:0] sent_port = 8'(sent_meta.destination[7:DESTINATION_BITS]);
  always_comb begin
    sent_payload = '0;
    sent_payload.source = 16'(sent_meta.destination[DESTINATION_BITS-1:0]);
    sent_payload.bytes = sent_meta.bytes;
  end

  // --- the torus, before which registers, memory and interrupt are the host's alone ---
  port_pkg::pages_t pages;
  logic host_write_valid, host_write_ready, host_write_first, host_write_last, host_write_gpu, host_read_valid, host_read_ready, host_read_gpu, host_answer_valid;
  logic [63:0] host_write_address, host_read_address;
  logic [$clog2(WRITE_REQUEST_BYTES_MAX+1)-1:0] host_write_bytes;
  logic [127:0] host_write_data;
  logic [15:0] host_write_keep;
  logic [$clog2(READ_REQUEST_BYTES_MAX+1)-1:0] host_read_bytes;
  logic [HOST_TAG_BITS-1:0] host_read_tag, host_answer_tag;
  logic host_irq;
  logic [127:0] payload_tdata;
  logic [15:0] payload_tkeep;
  logic payload_tvalid, payload_tready, payload_tlast, payload_forwarded, payload_no_route;
  port_pkg::payload_t payload_meta;
  logic [7:0] payload_destination;
  node_torus #(
      .APE_LINKS(APE_LINKS),
      .PORTS(PORTS),
      .WRITE_REQUEST_BYTES_MAX(WRITE_REQUEST_BYTES_MAX),
      .READ_REQUEST_BYTES_MAX(READ_REQUEST_BYTES_MAX),
      .READ_TAGS(READ_TAGS)
  ) i_torus (
      .*
  );
  if (APE_LINKS > 0) begin : g_ape
    localparam int APE = PORTS + 2;  // its way
    assign in_tdata[WAY_BITS*APE+:WAY_BITS] = {META_BITS'(payload_meta), payload_tdata};
    assign in_tkeep[WAY_BITS/8*APE+:WAY_BITS/8] = {{META_BITS / 8{1'b1}}, payload_tkeep};
    assign in_tvalid[APE] = payload_tvalid;
    assign in_tlast[APE] = payload_tlast;
    assign in_destination[8*APE+:8] = payload_destination;
    assign out_tready[APE] = 1'b1;  // no one sends there
    assign {payload_tready, payload_forwarded, payload_no_route} = {in_tready[APE], passed[APE], no_route[APE]};
  end else begin : g_ape
    assign {payload_tready, payload_forwarded, payload_no_route} = '0;
    wire unused = &{1'b0, payload_tdata, payload_tkeep, payload_tvalid, payload_tlast, payload_meta, payload_destination};
  end

  // The way from the bus back to those who wait ends here.
  localparam int HOST_BITS = 128 + port_pkg::PAYLOAD_META_BITS + 1;
  logic [127:0] host_tdata;
  logic host_tvalid, host_tready, host_tlast;
  skid #(
      .DATA_BITS(HOST_BITS)
  ) i_host_skid (
      .clk,
      .rst,
      .s_data({out_tlast[HOST], out_tdata[WAY_BITS*HOST+:HOST_BITS-1]}),
      .s_valid(out_tvalid[HOST]),
      .s_ready(out_tready[HOST]),
      .m_data({host_tlast, host_meta, host_tdata}),
      .m_valid(host_tvalid),
      .m_ready(host_tready)
  );

  host_port #(
      .LINE_GBPS(LINE_GBPS),
      .CYCLE_PS(CYCLE_PS),
      .FRAME_BYTES_MAX(FRAME_BYTES_MAX),
      .MATCH_ENTRIES(MATCH_ENTRIES),
      .GROUPS(GROUPS),
      .DESTINATIONS(DESTINATIONS << PORT_BITS),
      .WHOLE(1'b1),
      .WRITE_REQUEST_BYTES_MAX(WRITE_REQUEST_BYTES_MAX),
      .READ_REQUEST_BYTES_MAX(READ_REQUEST_BYTES_MAX),
      .READ_TAGS(HOST_TAGS)
  ) i_host_port (
      .clk,
      .rst,
      .s_axil_awaddr(s_axil_awaddr[11:0]),
      .s_axil_awvalid(axil_awvalid[0]),
      .s_axil_awready(axil_awready[0]),
      .s_axil_wdata,
      .s_axil_wvalid(axil_wvalid[0]),
      .s_axil_wready(axil_wready[0]),
      .s_axil_wstrb,
      .s_axil_bresp(axil_bresp[1:0]),
      .s_axil_bvalid(axil_bvalid[0]),
      .s_axil_bready(axil_bready[0]),
      .s_axil_araddr(s_axil_araddr[11:0]),
      .s_axil_arvalid(axil_arvalid[0]),
      .s_axil_arready(axil_arready[0]),
      .s_axil_rdata(axil_rdata[63:0]),
      .s_axil_rresp(axil_rresp[1:0]),
      .s_axil_rvalid(axil_rvalid[0]),
      .s_axil_rready(axil_rready[0]),
      .now_ns,
      .now_cycles,
      .settings(settings[0]),
      .path_counts(path_counts[0]),
      .reply_counts(reply_counts[0]),
      .ends(ends[0]),
      .pages,
      .s_axis_tdata(host_tdata),
      .s_axis_tvalid(host_tvalid),
      .s_axis_tready(host_tready),
      .s_axis_tlast(host_tlast),
      .s_axis_tuser(1'b0),
      .s_meta(host_meta),
      .m_axis_tdata(sent_tdata),
      .m_axis_tkeep(sent_tkeep),
      .m_axis_tvalid(sent_tvalid),
      .m_axis_tready(sent_tready),
      .m_axis_tlast(sent_tlast),
      .m_meta(sent_meta),
      .irq(host_irq),
      .mem_write_valid(host_write_valid),
      .mem_write_ready(host_write_ready),
      .mem_write_first(host_write_first),
      .mem_write_last(host_write_last),
      .mem_write_gpu(host_write_gpu),
      .mem_write_address(host_write_address),
      .mem_write_bytes(host_write_bytes),
      .mem_write_data(host_write_data),
      .mem_write_keep(host_write_keep),
      .mem_read_valid(host_read_valid),
      .mem_read_ready(host_read_ready),
      .mem_read_address(host_read_address),
      .mem_read_bytes(host_read_bytes),
      .mem_read_tag(host_read_tag),
      .mem_read_gpu(host_read_gpu),
      .mem_answer_valid(host_answer_valid),
      .mem_answer_tag(host_answer_tag),
      .mem_answer_data,
      .mem_answer_last,
      .mem_answer_error
  );

  words_to_wide i_sent (
      .clk,
      .rst,
      .s_axis_tdata(sent_tdata),
      .s_axis_tkeep(sent_tkeep),
      .s_axis_tvalid(sent_tvalid),
      .s_axis_tready(sent_tready),
      .s_axis_tlast(sent_tlast),
      .m_axis_tdata(in_tdata[WAY_BITS*HOST+:128]),
      .m_axis_tkeep(in_tkeep[WAY_BITS/8*HOST+:16]),
      .m_axis_tvalid(in_tvalid[HOST]),
      .m_axis_tready(in_tready[HOST]),
      .m_axis_tlast(in_tlast[HOST])
  );
  assign in_tdata[WAY_BITS*HOST+128+:META_BITS] = META_BITS'(sent_payload);
  assign in_tkeep[WAY_BITS/8*HOST+16+:META_BITS/8] = '1;
  assign in_destination[8*HOST+:8] = int'(sent_port) < PORTS ? sent_port : 8'hFF;

  nic_counts_pkg::node_counts_t node_counts;
  logic to_host;
  always_ff @(posedge clk) to_host <= host_tvalid && host_tready && host_tlast && !rst;
  assign node_counts.to_host = to_host;
  assign node_counts.from_host = passed[HOST];
  assign node_counts.host_no_route = no_route[HOST];

  node_counters #(
      .PORTS(PORTS)
  ) i_counters (
      .clk,
      .rst,
      .port_counts,
      .merge_counts,
      .path_counts,
      .reply_counts,
      .ends,
      .events_counts,
      .node_counts,
      .port_request(set.port_count),
      .port_answer(status.port_count),
      .merge_request(set.merge_count),
      .merge_answer(status.merge_count),
      .frames_request(set.port_rx),
      .frames_answer(status.port_rx),
      .events_request(set.events_count),
      .events_answer(status.events_count),
      .node_request(set.node_count),
      .node_answer(status.node_count)
  );
endmodule
