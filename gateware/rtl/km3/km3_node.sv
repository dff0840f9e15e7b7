// SPDX-License-Identifier: Apache-2.0
// A node with links of KM3NeT's floors (NaNet3): 1 to 4 ports, a router between them and the host's port, a GPS.
//
//   link ◄─► km3_port ─┐
//    ...               ├─► router ─► host_port: RX remote DMA to host and GPU, a CLOP a kind of data
//   link ◄─► km3_port ─┘      ◄──── TX gather: slow control
//   pps, the second that the host says ─► km3_gps ─► time of all links
//
// Contract
//   * clk is the core's, faster than the words of a link; ref_clk is locked to pps. Each link has an rx_clk and a div_clk, as of km3_port.
//   * rst is of a flip-flop of clk, up from power-on. A cycle of it is enough, at any moment: all that is of clk is reset in the same cycles.
//   * Registers: those of registers/nic.rdl, of which those of an Ethernet port do nothing, and from 0x1000 on km3.rdl's.
//   * Whole packets wait before the router; one that finds no room is dropped, and counted by its port. Payloads reach the host whole: host_port is held up,
//     not overrun.
//   * A TX descriptor's destination is a port. What a link does not take waits in its port, and hinders no other.
module km3_node #(
    parameter int PORTS = 4,  // 1 to 4
    parameter int LINE_MBPS = 800,
    parameter int CYCLE_PS = 6400,  // of clk
    parameter int FRAMES_PER_S = 10000,
    parameter int OPTICAL_WORDS = 610,
    parameter int HYDROPHONE_WORDS = 64,
    parameter int INSTRUMENT_WORDS = 60,
    parameter int CONTROL_WORDS = 128,
    parameter int PACKET_WORDS = 4470,
    parameter int BUFFER_WORDS = 4096,  // of whole frames of each port [8 B]
    parameter int QUEUE_WORDS = 1024,   // of each port before the router [16 B]
    parameter int PHASE_STEPS = 40,
    parameter int SLIDE_BITS = 1,
    parameter int GAP_CYCLES = 32,
    parameter int SEARCH_CYCLES = 20000,
    parameter int CYCLES_PER_S = LINE_MBPS * 50000,  // of ref_clk
    parameter int WRITE_REQUEST_BYTES_MAX = 256,
    parameter int READ_REQUEST_BYTES_MAX = 512,
    parameter int READ_TAGS = 32,
    localparam int TAG_BITS = $clog2(READ_TAGS)
) (
    input logic clk,
    input logic rst,

    // --- registers, of 64 bits: writes with all bytes ---
    input  logic [12:0] s_axil_awaddr,
    input  logic        s_axil_awvalid,
    output logic        s_axil_awready,
    input  logic [63:0] s_axil_wdata,
    input  logic [ 7:0] s_axil_wstrb,
    input  logic        s_axil_wvalid,
    output logic        s_axil_wready,
    output logic [ 1:0] s_axil_bresp,
    output logic        s_axil_bvalid,
    input  logic        s_axil_bready,
    input  logic [12:0] s_axil_araddr,
    input  logic        s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [63:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,
    input  logic        s_axil_rready,

    // --- links, port 0 lowest, and their clocks ---
    input  logic                ref_clk,
    input  logic                help_clk,
    input  logic                pps,
    input  logic [   PORTS-1:0] rx_clk,
    input  logic [   PORTS-1:0] div_clk,
    output logic [PORTS*20-1:0] tx_codes,
    output logic [   PORTS-1:0] tx_on,
    output logic [   PORTS-1:0] tx_slide,
    input  logic [PORTS*20-1:0] rx_bits,
    output logic [   PORTS-1:0] rx_slide,
    output logic [   PORTS-1:0] rx_restart,

    // --- a level, as of interrupter: completions have come ---
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
  // verilator lint_off SYNCASYNCNET
  localparam int PORTS_MAX = 4;            // that km3.rdl has registers for
  localparam int HOST = PORTS;
  localparam int WAYS = PORTS + 1;         // of the router
  localparam int META_BITS = 240;          // of payload_t, whole bytes
  localparam int WAY_BITS = 128 + META_BITS;  // the router takes a word and its sideband together
  localparam int TOGETHER = 6 * OPTICAL_WORDS <= PACKET_WORDS ? 6 : 3 * OPTICAL_WORDS <= PACKET_WORDS ? 3 : 2 * OPTICAL_WORDS <= PACKET_WORDS ? 2 : 1;

  if (PORTS < 1 || PORTS > PORTS_MAX) begin : g_check_ports
    $fatal(1, "PORTS must be 1 to 4 (instance %m)");
  end

  logic [63:0] now_cycles;

  // --- registers ---
  logic [1:0] axil_awvalid, axil_awready, axil_wvalid, axil_wready, axil_bvalid, axil_bready, axil_arvalid, axil_arready, axil_rvalid, axil_rready;
  logic [3:0] axil_bresp, axil_rresp;
  logic [127:0] axil_rdata;
  axil_split #(
      .ADDRESS_BITS(12)
  ) i_axil_split (
      .clk,
      .rst,
      .s_axil_awaddr,
      .s_axil_awvalid,
      .s_axil_awready,
      .s_axil_wvalid,
      .s_axil_wready,
      .s_axil_bresp,
      .s_axil_bvalid,
      .s_axil_bready,
      .s_axil_araddr,
      .s_axil_arvalid,
      .s_axil_arready,
      .s_axil_rdata,
      .s_axil_rresp,
      .s_axil_rvalid,
      .s_axil_rready,
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

  km3_regs_pkg::km3_regs__in_t status;
  km3_regs_pkg::km3_regs__out_t set;
  km3_regs i_regs (
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
  assign status.km3.ports.next = 8'(PORTS);
  assign status.km3.together.next = 8'(TOGETHER);
  assign status.km3.mbps.next = 16'(LINE_MBPS);
  assign status.km3.frames_per_s.next = 16'(FRAMES_PER_S);

  // --- time ---
  logic ref_rst, sets, gps_set, gps_known, gps_pulse, gps_period, gps_silent;
  logic [31:0] gps_second, now_second;
  always_ff @(posedge clk) sets <= set.gps_set.second.swmod && !rst;
  reset_sync i_ref_reset (
      .clk(ref_clk),
      .rst_async(rst),
      .rst(ref_rst)
  );
  km3_time_source #(
      .CYCLES_PER_S(CYCLES_PER_S)
  ) i_time (
      .clk,
      .rst,
      .ref_clk,
      .ref_rst,
      .pps,
      .set(sets),
      .second(set.gps_set.second.value),
      .gps_set,
      .gps_second,
      .now_second,
      .known(gps_known),
      .pulse(gps_pulse),
      .error_period(gps_period),
      .error_silent(gps_silent)
  );
  assign status.gps.second.next = now_second;
  assign status.gps.known.next = gps_known;

  // --- the router's inputs and outputs: ports, then the host ---
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

  // --- ports ---
  for (genvar p = 0; p < PORTS_MAX; p++) begin : g_port
    wire reads = set.floor_count[p].req && !set.floor_count[p].req_is_wr;
    logic done;
    logic [63:0] count;
    km3_pkg::port_status_t told;
    km3_pkg::express_status_t express;
    assign status.floor_count[p] = '{rd_ack: done, rd_data: count, wr_ack: set.floor_count[p].req && set.floor_count[p].req_is_wr};
    assign status.floor_port[p].state.aligned.next = told.aligned;
    assign status.floor_port[p].state.sends.next = told.sends;
    assign status.floor_port[p].state.slip.next = told.slip;
    assign status.floor_port[p].state.phase.next = told.phase;
    assign status.floor_port[p].state.trip_words.next = told.trip[15:0];
    assign status.floor_port[p].state.trip_frames.next = told.trip[31:16];
    assign status.floor_port[p].head.frame.next = told.head.at.number;
    assign status.floor_port[p].head.second.next = told.head.at.second;
    assign status.floor_port[p].head.floor.next = told.head.floor;
    assign status.floor_port[p].head.hears.next = told.head.flags.hears;
    assign status.floor_port[p].head.timed.next = told.head.flags.timed;
    assign status.floor_express[p].down.busy.next = express.busy;
    assign status.floor_express[p].sent.word.next = express.sent_at.word;
    assign status.floor_express[p].sent.frame.next = express.sent_at.at.number;
    assign status.floor_express[p].sent.second.next = express.sent_at.at.second;
    assign status.floor_express[p].up.code.next = express.code;
    assign status.floor_express[p].up.waits.next = express.came;
    assign status.floor_express[p].came.word.next = express.came_at.word;
    assign status.floor_express[p].came.frame.next = express.came_at.at.number;
    assign status.floor_express[p].came.second.next = express.came_at.at.second;

    if (p < PORTS) begin : g_floor
      port_pkg::payload_t queued_meta;
      km3_pkg::port_settings_t settings;
      nic_counts_pkg::km3_counts_t counts, pulses;
      logic run_begins, express_send, express_take;
      always_ff @(posedge clk) begin
        run_begins <= set.floor_port[p].run.run.swmod && !rst;
        express_send <= set.floor_express[p].down.code.swmod && !rst;
        express_take <= set.floor_express[p].up.take.value && !rst;
      end
      assign settings.run_begins = run_begins;
      assign settings.run = set.floor_port[p].run.run.value;
      assign settings.second = set.floor_port[p].run_second.second.value;
      assign settings.slice_frames = set.floor_port[p].run.slice_frames.value;
      assign settings.enable = set.floor_port[p].control.enable.value;
      assign settings.sampled = set.floor_port[p].control.sampled.value;
      assign settings.tower = set.floor_port[p].control.tower.value;
      assign settings.floor = set.floor_port[p].control.floor.value;
      assign settings.clop = {
        set.floor_port[p].clops.control.value,
        set.floor_port[p].clops.instruments.value,
        set.floor_port[p].clops.hydrophones.value,
        set.floor_port[p].clops.modules.value
      };
      assign settings.source = {
        set.floor_port[p].sources.control.value,
        set.floor_port[p].sources.instruments.value,
        set.floor_port[p].sources.hydrophones.value,
        set.floor_port[p].sources.modules.value
      };
      assign in_tdata[WAY_BITS*p+128+:META_BITS] = META_BITS'(queued_meta);
      assign in_tkeep[WAY_BITS/8*p+16+:META_BITS/8] = '1;

      km3_port #(
          .PORTS(PORTS),
          .LINE_MBPS(LINE_MBPS),
          .FRAMES_PER_S(FRAMES_PER_S),
          .OPTICAL_WORDS(OPTICAL_WORDS),
          .HYDROPHONE_WORDS(HYDROPHONE_WORDS),
          .INSTRUMENT_WORDS(INSTRUMENT_WORDS),
          .CONTROL_WORDS(CONTROL_WORDS),
          .PACKET_WORDS(PACKET_WORDS),
          .BUFFER_WORDS(BUFFER_WORDS),
          .QUEUE_WORDS(QUEUE_WORDS),
          .PHASE_STEPS(PHASE_STEPS),
          .SLIDE_BITS(SLIDE_BITS),
          .GAP_CYCLES(GAP_CYCLES),
          .SEARCH_CYCLES(SEARCH_CYCLES)
      ) i_port (
          .clk,
          .rst,
          .ref_clk,
          .rx_clk(rx_clk[p]),
          .help_clk,
          .div_clk(div_clk[p]),
          .link_rst(set.floor_port[p].control.link_reset.value),
          .now_cycles,
          .settings,
          .gps_set,
          .gps_second,
          .tx_codes(tx_codes[20*p+:20]),
          .tx_on(tx_on[p]),
          .tx_slide(tx_slide[p]),
          .rx_bits(rx_bits[20*p+:20]),
          .rx_slide(rx_slide[p]),
          .rx_restart(rx_restart[p]),
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
          .express_send,
          .express_code(set.floor_express[p].down.code.value),
          .express_take,
          .status(told),
          .express_status(express),
          .counts
      );
      always_comb begin
        pulses = counts;
        pulses.no_route = no_route[p];
        pulses.forwarded = passed[p];
      end
      counters #(
          .COUNTERS(nic_counts_pkg::KM3_COUNTS)
      ) i_counters (
          .clk,
          .rst,
          .pulses,
          .read(reads),
          .read_index(set.floor_count[p].addr[8:3]),
          .done,
          .data(count)
      );
    end else begin : g_floor  // a port that there is not
      assign {done, count} = {reads, 64'b0};
      assign {told, express} = '0;
    end
  end

  // --- the host ---
  logic [63:0] sent_tdata;
  logic [7:0] sent_tkeep;
  logic sent_tvalid, sent_tready, sent_tlast;
  /* verilator lint_off UNUSEDSIGNAL */
  port_pkg::sending_t sent_meta;  // its length is not needed
  /* verilator lint_on UNUSEDSIGNAL */
  port_pkg::payload_t host_meta;

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
      .CYCLE_PS(CYCLE_PS),
      .DESTINATIONS(PORTS_MAX),
      .WHOLE(1'b1),
      .WRITE_REQUEST_BYTES_MAX(WRITE_REQUEST_BYTES_MAX),
      .READ_REQUEST_BYTES_MAX(READ_REQUEST_BYTES_MAX),
      .READ_TAGS(READ_TAGS)
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
      .now_ns(),
      .now_cycles,
      .settings(),
      .path_counts('0),
      .reply_counts('0),
      .ends('0),
      .pages(),
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
      .irq,
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
  assign in_tdata[WAY_BITS*HOST+128+:META_BITS] = '0;
  assign in_tkeep[WAY_BITS/8*HOST+16+:META_BITS/8] = '1;
  assign in_destination[8*HOST+:8] = int'(sent_meta.destination) < PORTS ? sent_meta.destination : 8'hFF;

  logic to_host;
  nic_counts_pkg::km3_node_counts_t node_pulses;
  always_ff @(posedge clk) to_host <= host_tvalid && host_tready && host_tlast && !rst;
  assign node_pulses.gps_pulse = gps_pulse;
  assign node_pulses.gps_period = gps_period;
  assign node_pulses.gps_silent = gps_silent;
  assign node_pulses.to_host = to_host;
  assign node_pulses.from_host = passed[HOST];
  assign node_pulses.host_no_route = no_route[HOST];
  wire reads_node = set.km3_count.req && !set.km3_count.req_is_wr;
  logic node_done;
  logic [63:0] node_count;
  counters #(
      .COUNTERS(nic_counts_pkg::KM3_NODE_COUNTS)
  ) i_node_counters (
      .clk,
      .rst,
      .pulses(node_pulses),
      .read(reads_node),
      .read_index(set.km3_count.addr[5:3]),
      .done(node_done),
      .data(node_count)
  );
  assign status.km3_count = '{rd_ack: node_done, rd_data: node_count, wr_ack: set.km3_count.req && set.km3_count.req_is_wr};
endmodule
