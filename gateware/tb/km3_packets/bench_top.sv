// SPDX-License-Identifier: Apache-2.0
// km3_packets, with its settings and sidebands by name; and km3_gps, of the same clock.
module bench_top #(
    parameter int OPTICAL_GROUPS = 3,
    parameter int FRAMES_PER_S = 50,
    parameter int CYCLES_PER_S = 100,
    localparam int GROUPS = OPTICAL_GROUPS + 4
) (
    input logic clk,
    input logic rst,

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

    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic [47:0] s_at,
    input  logic        s_timed,
    input  logic [ 7:0] s_floor,
    input  logic [ 7:0] s_tower,
    input  logic        s_sampled,
    input  logic [63:0] s_start_cycle,
    input  logic [63:0] s_parsed_cycle,
    input  logic [16*GROUPS-1:0] s_words,

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic [ 3:0] m_route,
    output logic [ 1:0] m_clop,
    output logic [15:0] m_source,
    output logic [15:0] m_bytes,
    output logic [63:0] m_arrival_ns,
    output logic [63:0] m_start_cycle,
    output logic [63:0] m_parsed_cycle,

    output logic packet,
    output logic placed,
    output logic unplaced,
    output logic control_only,
    output logic missing,
    output logic sound_cut,

    input  logic        pps,
    input  logic        set,
    input  logic [31:0] second,
    output logic        gps_set,
    output logic [31:0] gps_second,
    output logic        known,
    output logic        begun,
    output logic        count_pulse,
    output logic        error_period,
    output logic        error_silent
);
  km3_pkg::port_settings_t settings;
  assign settings = '{run_begins, run, run_second, slice_frames, enable, sampled, tower, floor, clops, sources};
  km3_pkg::head_t head;
  assign head = '{'{6'd0, s_timed, 1'b1}, s_floor, s_at};
  port_pkg::routed_t m_meta;
  assign m_route = m_meta.route;
  assign m_clop = m_meta.payload.clop;
  assign m_source = m_meta.payload.source;
  assign m_bytes = m_meta.payload.bytes;
  assign m_arrival_ns = m_meta.payload.arrival_ns;
  assign m_start_cycle = m_meta.payload.start_cycle;
  assign m_parsed_cycle = m_meta.payload.parsed_cycle;
  km3_packets #(
      .OPTICAL_GROUPS(OPTICAL_GROUPS),
      .FRAMES_PER_S  (FRAMES_PER_S)
  ) i_packets (
      .s_meta({head, s_sampled, s_tower, s_start_cycle, s_parsed_cycle, s_words}),
      .*
  );
  km3_gps #(
      .CYCLES_PER_S(CYCLES_PER_S)
  ) i_gps (
      .*
  );
endmodule
