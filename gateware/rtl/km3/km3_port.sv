// SPDX-License-Identifier: Apache-2.0
// One port of a node with a floor's link: km3_shore, whole good frames, packets of one kind each, and the queue before the router. The other way slow
// control.
//
//   link ─► km3_shore ─► km3_buffer ─► km3_packets ─► port_queue ─► router
//        ◄─     ◄── km3_down ◄────────────────────────────────────────┘
//        ◄─►    ◄─► km3_express ◄─► registers
//
// Contract
//   * clk is the core's, faster than the words of the link; where it is not, frames are lost (overrun), and all is counted. ref_clk, rx_clk, help_clk and div_clk are those of km3_shore, of which ref_clk is its `clk`;
//     gps_* are of ref_clk, the link's pins as of km3_shore. rst, of clk, is a flip-flop. link_rst, a level of clk, begins the link anew.
//   * m_axis_*, as of port_queue: the host alone is asked for. s_axis_*: payloads for the floor, which never wait (km3_down).
//   * settings.floor is also the floor whose frames are wanted. Status is of clk, and follows.
//   * counts: a pulse of each, but for no_route and forwarded, which are the router's. Books: good frames = placed + unplaced + control_only + overrun + full; packet =
//     queue_full + what leaves by m_axis_*; payloads = to_floor + to_floor_cut + to_floor_full.
//   * express_*: as of km3_express.
module km3_port #(
    parameter int PORTS = 4,  // of the node
    parameter int LINE_MBPS = 800,
    parameter int FRAMES_PER_S = 10000,
    parameter int OPTICAL_WORDS = 610,
    parameter int HYDROPHONE_WORDS = 64,
    parameter int INSTRUMENT_WORDS = 60,
    parameter int CONTROL_WORDS = 128,
    parameter int PACKET_WORDS = 4470,  // of a packet after its head, of 16 bits: 8,940 B
    parameter int BUFFER_WORDS = 4096,  // of whole frames [8 B]
    parameter int QUEUE_WORDS = 1024,   // [16 B]
    parameter int FIFO_WORDS = 1024,
    parameter int PHASE_STEPS = 40,
    parameter int SLIDE_BITS = 1,
    parameter int GAP_CYCLES = 32,
    parameter int SEARCH_CYCLES = 20000,
    localparam int PHASE_BITS = $clog2(PHASE_STEPS)
) (
    input logic clk,
    input logic rst,
    input logic ref_clk,
    input logic rx_clk,
    input logic help_clk,
    input logic div_clk,
    input logic link_rst,

    input logic [63:0] now_cycles,
    input km3_pkg::port_settings_t settings,
    input logic        gps_set,
    input logic [31:0] gps_second,

    output logic [19:0] tx_codes,
    output logic        tx_on,
    output logic        tx_slide,
    input  logic [19:0] rx_bits,
    output logic        rx_slide,
    output logic        rx_restart,

    output logic [127:0] m_axis_tdata,
    output logic [ 15:0] m_axis_tkeep,
    output logic         m_axis_tvalid,
    input  logic         m_axis_tready,
    output logic         m_axis_tlast,
    output port_pkg::payload_t m_meta,
    output logic [7:0]         m_destination,

    input  logic [127:0] s_axis_tdata,
    input  logic [ 15:0] s_axis_tkeep,
    input  logic         s_axis_tvalid,
    output logic         s_axis_tready,
    input  logic         s_axis_tlast,

    input  logic       express_send,
    input  logic [7:0] express_code,
    input  logic       express_take,

    output km3_pkg::port_status_t        status,
    output km3_pkg::express_status_t     express_status,
    output nic_counts_pkg::km3_counts_t  counts
);
  // verilator lint_off SYNCASYNCNET
  localparam int SLOT_BITS = $clog2(km3_pkg::UP_SLOTS + 1);
  localparam int OPTICAL_GROUPS = 6 * OPTICAL_WORDS <= PACKET_WORDS ? 1 : 3 * OPTICAL_WORDS <= PACKET_WORDS ? 2 : 2 * OPTICAL_WORDS <= PACKET_WORDS ? 3 : 6;
  localparam int FRAME_META_BITS = km3_pkg::FRAME_META_BITS + 16 * (OPTICAL_GROUPS + 4);

  // --- resets ---
  logic link_kept, link_caught, ref_rst, ref_link_rst, rx_rst, help_rst;
  initial link_kept = 1'b1;  // an FPGA begins so
  always_ff @(posedge clk) link_kept <= rst || link_rst;
  reset_sync i_ref_reset (
      .clk(ref_clk),
      .rst_async(rst),
      .rst(ref_rst)
  );
  reset_sync i_rx_reset (
      .clk(rx_clk),
      .rst_async(rst),
      .rst(rx_rst)
  );
  reset_sync i_help_reset (
      .clk(help_clk),
      .rst_async(rst),
      .rst(help_rst)
  );
  // However short it is it is caught; what it drives beside resets must not change but with the clock.
  reset_sync i_link_reset (
      .clk(ref_clk),
      .rst_async(link_kept),
      .rst(link_caught)
  );
  sync_bits i_link_rst (
      .s_bits(link_caught),
      .m_clk (ref_clk),
      .m_rst (ref_rst),
      .m_bits(ref_link_rst)
  );

  // --- the link ---
  logic hears, up_head, up_valid, up_end, up_good, control_valid, control_ready, control_last, control_took, control_took_last, frame_ends;
  logic [4:0] slip;
  km3_pkg::head_t head;
  logic [SLOT_BITS-1:0] up_slot;
  logic [15:0] up_data, control_data;
  km3_pkg::rx_counts_t rx_counts, came;
  logic error_gps, error_cut, error_second, error_trip, error_phase, error_tx_phase, error_tx_failed, trip_valid, phase_valid;
  logic [31:0] trip;
  logic [PHASE_BITS-1:0] phase;
  logic [7:0] ref_floor;
  logic express_valid, express_ready, up_express_valid;
  logic [7:0] express, up_express;
  km3_pkg::moment_t now;
  sync_bits #(
      .WIDTH(8)
  ) i_floor (
      .s_bits(settings.floor),
      .m_clk (ref_clk),
      .m_rst (ref_rst),
      .m_bits(ref_floor)
  );
  km3_shore #(
      .LINE_MBPS(LINE_MBPS),
      .FRAMES_PER_S(FRAMES_PER_S),
      .OPTICAL_WORDS(OPTICAL_WORDS),
      .HYDROPHONE_WORDS(HYDROPHONE_WORDS),
      .INSTRUMENT_WORDS(INSTRUMENT_WORDS),
      .CONTROL_WORDS(CONTROL_WORDS),
      .FIFO_WORDS(FIFO_WORDS),
      .PHASE_STEPS(PHASE_STEPS),
      .SLIDE_BITS(SLIDE_BITS),
      .GAP_CYCLES(GAP_CYCLES),
      .SEARCH_CYCLES(SEARCH_CYCLES)
  ) i_shore (
      .clk(ref_clk),
      .rst(ref_rst),
      .link_rst(ref_link_rst),
      .help_clk,
      .div_clk,
      .rx_clk,
      .gps_set,
      .gps_second,
      .floor(ref_floor),
      .control_valid,
      .control_ready,
      .control_data,
      .control_last,
      .control_took,
      .control_took_last,
      .frame_ends,
      .express_valid,
      .express_ready,
      .express,
      .tx_codes,
      .tx_on,
      .tx_slide,
      .rx_bits,
      .rx_slide,
      .rx_restart,
      .rx_locked(),
      .rx_slip(slip),
      .up_head,
      .head,
      .up_since(),
      .up_valid,
      .up_slot,
      .up_data,
      .up_end,
      .up_good,
      .up_express_valid,
      .up_express,
      .counts(rx_counts),
      .hears,
      .start(),
      .at(now.at),
      .word(now.word),
      .error_gps,
      .error_cut,
      .trip_valid,
      .trip,
      .error_second,
      .error_trip,
      .phase_valid,
      .phase,
      .error_phase,
      .tx_moved(),
      .error_tx_phase,
      .error_tx_failed
  );

  // --- frames, then packets ---
  logic [63:0] frame_tdata, packet_tdata;
  logic [7:0] frame_tkeep, packet_tkeep;
  logic frame_tvalid, frame_tready, frame_tlast, packet_tvalid, packet_tlast;
  logic [FRAME_META_BITS-1:0] frame_meta;
  port_pkg::routed_t packet_meta;
  km3_buffer #(
      .OPTICAL_WORDS(OPTICAL_WORDS),
      .PACKET_WORDS(PACKET_WORDS),
      .DEPTH_WORDS(BUFFER_WORDS)
  ) i_buffer (
      .rx_clk,
      .rx_rst,
      .up_head,
      .head,
      .up_valid,
      .up_slot,
      .up_data,
      .up_end,
      .up_good,
      .rx_counts,
      .clk,
      .rst,
      .now_cycles,
      .floor(settings.floor),
      .tower(settings.tower),
      .sampled(settings.sampled),
      .m_axis_tdata(frame_tdata),
      .m_axis_tkeep(frame_tkeep),
      .m_axis_tvalid(frame_tvalid),
      .m_axis_tready(frame_tready),
      .m_axis_tlast(frame_tlast),
      .m_meta(frame_meta),
      .counts(came),
      .overrun(counts.overrun),
      .full(counts.full)
  );
  km3_packets #(
      .OPTICAL_GROUPS(OPTICAL_GROUPS),
      .FRAMES_PER_S  (FRAMES_PER_S)
  ) i_packets (
      .clk,
      .rst,
      .settings,
      .s_axis_tdata(frame_tdata),
      .s_axis_tkeep(frame_tkeep),
      .s_axis_tvalid(frame_tvalid),
      .s_axis_tready(frame_tready),
      .s_axis_tlast(frame_tlast),
      .s_meta(frame_meta),
      .m_axis_tdata(packet_tdata),
      .m_axis_tkeep(packet_tkeep),
      .m_axis_tvalid(packet_tvalid),
      .m_axis_tlast(packet_tlast),
      .m_meta(packet_meta),
      .packet(counts.packet),
      .placed(counts.placed),
      .unplaced(counts.unplaced),
      .control_only(counts.control_only),
      .missing(counts.missing),
      .sound_cut(counts.sound_cut)
  );
  port_queue #(
      .PORTS(PORTS),
      .DEPTH_WORDS(QUEUE_WORDS)
  ) i_queue (
      .clk,
      .rst,
      .s_axis_tdata(packet_tdata),
      .s_axis_tkeep(packet_tkeep),
      .s_axis_tvalid(packet_tvalid),
      .s_axis_tlast(packet_tlast),
      .s_axis_tuser(1'b0),
      .s_meta(packet_meta),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .m_meta,
      .m_destination,
      .drop_full(counts.queue_full)
  );

  // --- slow control down ---
  logic [63:0] down_tdata;
  logic [7:0] down_tkeep;
  logic down_tvalid, down_tlast;
  wide_to_words i_words (
      .clk,
      .rst,
      .s_axis_tdata,
      .s_axis_tkeep,
      .s_axis_tvalid,
      .s_axis_tready,
      .s_axis_tlast,
      .m_axis_tdata(down_tdata),
      .m_axis_tkeep(down_tkeep),
      .m_axis_tvalid(down_tvalid),
      .m_axis_tready(1'b1),
      .m_axis_tlast(down_tlast)
  );
  km3_down #(
      .LINK_WORDS(FIFO_WORDS + CONTROL_WORDS)
  ) i_down (
      .clk,
      .rst,
      .ref_clk,
      .ref_rst,
      .link_rst(ref_link_rst),
      .s_axis_tdata(down_tdata),
      .s_axis_tkeep(down_tkeep),
      .s_axis_tvalid(down_tvalid),
      .s_axis_tlast(down_tlast),
      .control_valid,
      .control_ready,
      .control_data,
      .control_last,
      .on(tx_on),
      .took(control_took),
      .took_last(control_took_last),
      .frame_ends,
      .frame_cut(error_cut),
      .count(counts.to_floor),
      .cut(counts.to_floor_cut),
      .full(counts.to_floor_full)
  );

  // --- express codes ---
  km3_express i_express (
      .clk,
      .rst,
      .ref_clk,
      .ref_rst,
      .rx_clk,
      .rx_rst,
      .send(express_send),
      .code(express_code),
      .take(express_take),
      .status(express_status),
      .sent(counts.express_sent),
      .dark(counts.express_dark),
      .refused(counts.express_refused),
      .taken(counts.express_taken),
      .unread(counts.express_unread),
      .link_rst(ref_link_rst),
      .on(tx_on),
      .now,
      .express_valid,
      .express_ready,
      .express,
      .up_valid(up_express_valid),
      .up_code(up_express)
  );

  // --- what the other clocks tell: their pulses as they come, and what was measured last ---
  logic ref_came, help_came;
  logic [3:0] ref_pulses;
  logic [2:0] help_pulses;
  async_fifo #(
      .WIDTH(4),
      .DEPTH(8)
  ) i_ref_pulses (
      .s_clk(ref_clk),
      .s_rst(ref_rst),
      .s_data({error_gps, error_cut, error_second, error_trip}),
      .s_valid({error_gps, error_cut, error_second, error_trip} != '0),
      .s_ready(),
      .m_clk(clk),
      .m_rst(rst),
      .m_data(ref_pulses),
      .m_valid(ref_came),
      .m_ready(1'b1),
      .m_more()
  );
  async_fifo #(
      .WIDTH(3),
      .DEPTH(8)
  ) i_help_pulses (
      .s_clk(help_clk),
      .s_rst(help_rst),
      .s_data({error_phase, error_tx_phase, error_tx_failed}),
      .s_valid({error_phase, error_tx_phase, error_tx_failed} != '0),
      .s_ready(),
      .m_clk(clk),
      .m_rst(rst),
      .m_data(help_pulses),
      .m_valid(help_came),
      .m_ready(1'b1),
      .m_more()
  );
  always_ff @(posedge clk) begin
    {counts.error_gps, counts.error_cut, counts.error_second, counts.error_trip} <= ref_came && !rst ? ref_pulses : '0;
    {counts.error_phase, counts.error_tx_phase, counts.error_tx_failed} <= help_came && !rst ? help_pulses : '0;
  end
  assign counts.count_up = came.count_up;
  assign counts.count_down = came.count_down;
  assign counts.restarts = came.restarts;
  assign counts.count_good = came.count_good;
  assign counts.drop_head = came.drop_head;
  assign counts.drop_floor = came.drop_floor;
  assign counts.drop_cut = came.drop_cut;
  assign counts.drop_code = came.drop_code;
  assign counts.drop_symbol = came.drop_symbol;
  assign counts.drop_crc = came.drop_crc;
  assign counts.lost = came.lost[0];
  assign counts.error_place = came.error_place;
  assign counts.error_code = came.error_code;
  assign counts.error_order = came.error_order;
  assign counts.error_direction = came.error_direction;
  assign counts.error_stray = came.error_stray;
  assign counts.error_express = came.error_express;
  assign counts.error_time = came.error_time;
  assign {counts.no_route, counts.forwarded} = '0;

  km3_status #(
      .PHASE_BITS(PHASE_BITS)
  ) i_status (
      .clk,
      .rst,
      .ref_clk,
      .ref_rst,
      .rx_clk,
      .rx_rst,
      .help_clk,
      .help_rst,
      .slip,
      .head_valid(up_head),
      .head,
      .hears,
      .tx_on,
      .trip_valid,
      .trip,
      .phase_valid,
      .phase,
      .status
  );
endmodule
