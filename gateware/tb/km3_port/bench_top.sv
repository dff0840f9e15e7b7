// SPDX-License-Identifier: Apache-2.0
// km3_port, with its settings, status and sideband by name. The serialiser's divider takes its words in the middle of the reference's cycles, as it should, or where
// they change.
module bench_top #(
    parameter int LINE_MBPS = 800,
    parameter int FRAMES_PER_S = 50000,
    parameter int OPTICAL_WORDS = 90,
    parameter int HYDROPHONE_WORDS = 20,
    parameter int INSTRUMENT_WORDS = 18,
    parameter int CONTROL_WORDS = 40,
    parameter int PACKET_WORDS = 4470,
    parameter int BUFFER_WORDS = 1024,
    parameter int QUEUE_WORDS = 256
) (
    input logic clk,
    input logic rst,
    input logic ref_clk,
    input logic rx_clk,
    input logic help_clk,
    input logic link_rst,
    input logic div_wrong,
    input logic [63:0] now_cycles,

    input logic             run_begins,
    input logic [30:0]      run,
    input logic [31:0]      run_second,
    input logic [15:0]      slice_frames,
    input logic             enable,
    input logic             sampled,
    input logic [ 7:0]      tower,
    input logic [ 7:0]      floor,
    input logic [ 7:0]      clops,
    input logic [63:0]      sources,
    input logic             express_send,
    input logic [ 7:0]      express_code,
    input logic             express_take,
    input logic             gps_set,
    input logic [31:0]      gps_second,

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
    output logic [  7:0] m_destination,
    output logic [  1:0] m_clop,
    output logic [ 15:0] m_source,
    output logic [ 15:0] m_bytes,
    output logic [ 63:0] m_arrival_ns,
    output logic [ 63:0] m_start_cycle,
    output logic [ 63:0] m_parsed_cycle,

    input  logic [127:0] s_axis_tdata,
    input  logic [ 15:0] s_axis_tkeep,
    input  logic         s_axis_tvalid,
    output logic         s_axis_tready,
    input  logic         s_axis_tlast,

    output logic        aligned,
    output logic        sends,
    output logic [ 4:0] slip,
    output logic [63:0] head,
    output logic [31:0] trip,
    output logic [ 7:0] phase,
    output logic        express_busy,
    output logic [63:0] express_sent_at,
    output logic        express_came,
    output logic [ 7:0] express_up,
    output logic [63:0] express_came_at,
    output logic [nic_counts_pkg::KM3_COUNTS-1:0] counts
);
  km3_pkg::port_settings_t settings;
  assign settings = '{run_begins, run, run_second, slice_frames, enable, sampled, tower, floor, clops, sources};
  km3_pkg::port_status_t status;
  assign {aligned, sends, slip, head, trip, phase} = status;
  km3_pkg::express_status_t express_status;
  assign {express_busy, express_sent_at, express_came, express_up, express_came_at} = express_status;
  port_pkg::payload_t m_meta;
  assign m_clop = m_meta.clop;
  assign m_source = m_meta.source;
  assign m_bytes = m_meta.bytes;
  assign m_arrival_ns = m_meta.arrival_ns;
  assign m_start_cycle = m_meta.start_cycle;
  assign m_parsed_cycle = m_meta.parsed_cycle;
  km3_port #(
      .PORTS(1),
      .LINE_MBPS(LINE_MBPS),
      .FRAMES_PER_S(FRAMES_PER_S),
      .OPTICAL_WORDS(OPTICAL_WORDS),
      .HYDROPHONE_WORDS(HYDROPHONE_WORDS),
      .INSTRUMENT_WORDS(INSTRUMENT_WORDS),
      .CONTROL_WORDS(CONTROL_WORDS),
      .PACKET_WORDS(PACKET_WORDS),
      .BUFFER_WORDS(BUFFER_WORDS),
      .QUEUE_WORDS(QUEUE_WORDS),
      .FIFO_WORDS(256),
      .SEARCH_CYCLES(2000)
  ) i_port (
      .div_clk(ref_clk ^ !div_wrong),
      .*
  );
endmodule
