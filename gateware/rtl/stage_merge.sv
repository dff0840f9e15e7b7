// SPDX-License-Identifier: Apache-2.0
// The data-processing and encapsulation stages of merged links: MGP packets of several links in, packets of M2EGP with whole events out. On each link
// event_check, frame_fifo and decompressor; after them event_merger and event_packer.
//
// Contract
//   * Each link brings the packets of one source, its events in order of time; the input never waits. A packet that finds no room before the decompressor is
//     dropped (full).
//   * Settings may change in any cycle, as registers/node.rdl says of each. The table is the same on all links.
//   * Packets leave as event_packer says.
//
// Books, of each link: good packets that came = length, format, checksum, full, packet, marker. Parts = part, late, jump, disabled, and those that wait.
// Events = complete, missing, overflow = those in packets, and incomplete.
module stage_merge #(
    parameter int LINKS = 4,
    parameter int PACKET_WORDS = 2048,     // of packets that wait on each link [8 B]
    parameter int EVENT_WORDS = 512,       // of parts that wait on each link [8 hits]
    parameter int PACKET_BYTES_MAX = 1472  // of M2EGP
) (
    input logic clk,
    input logic rst,

    input logic [31:0] now_ns,
    input port_pkg::merge_settings_t settings,

    // Links stand side by side in each vector, link 0 lowest.
    input logic [LINKS*64-1:0] s_axis_tdata,
    input logic [ LINKS*8-1:0] s_axis_tkeep,
    input logic [   LINKS-1:0] s_axis_tvalid,
    input logic [   LINKS-1:0] s_axis_tlast,
    input logic [   LINKS-1:0] s_axis_tuser,

    output logic [127:0] m_axis_tdata,
    output logic [ 15:0] m_axis_tkeep,
    output logic         m_axis_tvalid,
    input  logic         m_axis_tready,
    output logic         m_axis_tlast,
    output logic [ 15:0] m_meta_payload_bytes,
    output logic [  7:0] m_meta_event_count,

    output nic_counts_pkg::merge_counts_t [LINKS-1:0] counts,
    output nic_counts_pkg::events_counts_t            events
);
  logic [LINKS*64-1:0] part_tdata;
  logic [LINKS-1:0] part_tvalid, part_tready, part_tlast, count_part, drop_late, drop_jump, drop_disabled;

  for (genvar link = 0; link < LINKS; link++) begin : g_link
    logic [63:0] mgp_tdata, packet_tdata;
    logic [7:0] mgp_tkeep, packet_tkeep;
    logic mgp_tvalid, mgp_tlast, mgp_tuser, packet_tvalid, packet_tready, packet_tlast;
    nic_counts_pkg::merge_counts_t own;
    assign own.part = count_part[link];
    assign own.late = drop_late[link];
    assign own.jump = drop_jump[link];
    assign own.disabled = drop_disabled[link];
    assign counts[link] = own;

    event_check check (
        .clk,
        .rst,
        .s_axis_tdata(s_axis_tdata[64*link+:64]),
        .s_axis_tkeep(s_axis_tkeep[8*link+:8]),
        .s_axis_tvalid(s_axis_tvalid[link]),
        .s_axis_tlast(s_axis_tlast[link]),
        .s_axis_tuser(s_axis_tuser[link]),
        .m_axis_tdata(mgp_tdata),
        .m_axis_tkeep(mgp_tkeep),
        .m_axis_tvalid(mgp_tvalid),
        .m_axis_tlast(mgp_tlast),
        .m_axis_tuser(mgp_tuser),
        .count_good(),
        .drop_length(own.length),
        .drop_format(own.format),
        .drop_checksum(own.checksum)
    );

    frame_fifo #(
        .DEPTH_WORDS(PACKET_WORDS),
        .PACKETS(PACKET_WORDS / 4)
    ) packets (
        .clk,
        .rst,
        .s_axis_tdata(mgp_tdata),
        .s_axis_tkeep(mgp_tkeep),
        .s_axis_tvalid(mgp_tvalid),
        .s_axis_tlast(mgp_tlast),
        .s_axis_tuser(mgp_tuser),
        .s_meta(1'b0),
        .m_axis_tdata(packet_tdata),
        .m_axis_tkeep(packet_tkeep),
        .m_axis_tvalid(packet_tvalid),
        .m_axis_tready(packet_tready),
        .m_axis_tlast(packet_tlast),
        .m_meta(),
        .fill_words(),
        .count_good(),
        .count_bad(),
        .drop_full(own.full)
    );

    decompressor unpack (
        .clk,
        .rst,
        .cfg_table(settings.table_enable),
        .table_write(settings.table_write),
        .table_index(settings.table_index),
        .table_hit(settings.table_hit),
        .s_axis_tdata(packet_tdata),
        .s_axis_tkeep(packet_tkeep),
        .s_axis_tvalid(packet_tvalid),
        .s_axis_tready(packet_tready),
        .s_axis_tlast(packet_tlast),
        .m_axis_tdata(part_tdata[64*link+:64]),
        .m_axis_tkeep(),
        .m_axis_tvalid(part_tvalid[link]),
        .m_axis_tready(part_tready[link]),
        .m_axis_tlast(part_tlast[link]),
        .count_packet(own.packet),
        .count_marker(own.marker)
    );
  end

  logic [127:0] event_tdata;
  logic [15:0] event_tkeep;
  logic event_tvalid, event_tready, event_tlast;
  logic [LINKS-1:0] event_parts;

  event_merger #(
      .LINKS(LINKS),
      .DEPTH_WORDS(EVENT_WORDS)
  ) i_merger (
      .clk,
      .rst,
      .cfg_links(settings.links[LINKS-1:0]),
      .cfg_window_cycles(settings.window_cycles),
      .cfg_jump(settings.jump),
      .cfg_lapse_cycles(settings.lapse_cycles),
      .cfg_complete_only(settings.complete_only),
      .forget(settings.forget),
      .s_axis_tdata(part_tdata),
      .s_axis_tvalid(part_tvalid),
      .s_axis_tready(part_tready),
      .s_axis_tlast(part_tlast),
      .m_axis_tdata(event_tdata),
      .m_axis_tkeep(event_tkeep),
      .m_axis_tvalid(event_tvalid),
      .m_axis_tready(event_tready),
      .m_axis_tlast(event_tlast),
      .m_meta_parts(event_parts),
      .count_part,
      .drop_late,
      .drop_jump,
      .drop_disabled,
      .count_complete(events.complete),
      .count_missing(events.missing),
      .count_overflow(events.overflow),
      .drop_incomplete(events.incomplete),
      .count_cut(events.cut)
  );

  event_packer #(
      .PACKET_BYTES_MAX(PACKET_BYTES_MAX)
  ) i_packer (
      .clk,
      .rst,
      .cfg_source_id(settings.source_id),
      .cfg_source_sub_id(settings.source_sub_id),
      .cfg_flush_cycles(settings.flush_cycles),
      .cfg_parts(settings.parts),
      .now_ns,
      .s_axis_tdata(event_tdata),
      .s_axis_tkeep(event_tkeep),
      .s_axis_tvalid(event_tvalid),
      .s_axis_tready(event_tready),
      .s_axis_tlast(event_tlast),
      .s_meta_parts(8'(event_parts)),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .m_meta_payload_bytes,
      .m_meta_event_count,
      .count_event(),
      .count_packet(events.packet)
  );
endmodule
