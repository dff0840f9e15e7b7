// SPDX-License-Identifier: Apache-2.0
// Takes the Ethernet header, with or without a VLAN tag, off frames for this station, one of its IPv4 groups or all; what is in them leaves from lane 0 on.
//
// Contract
//   * No word waits. The first word leaves LATENCY_CYCLES after the one that completes it came in: the frame's third, with a tag its fourth.
//   * Sideband holds from a packet's first word to its last. m_axis_tuser with m_axis_tlast: the frame is bad, discard it.
//   * A frame that came in bad was counted before and is not counted here; it may leave as a bad packet.
//   * A second tag is not taken off: its Ethernet type leaves as that of the packet.
//   * A group's Ethernet address is that of 31 others too (RFC 1112): udp_rx looks at the rest, and m_meta_group tells it of such frames. Groups and
//     local_mac may change at any time: a frame is judged by them as they stand with its first word.
module eth_rx #(
    parameter  int GROUPS = 4,  // as of group_table
    localparam int SLOTS  = GROUPS == 0 ? 1 : GROUPS
) (
    input logic clk,
    input logic rst,

    input logic [47:0] local_mac,  // as one writes it: the first byte is the highest
    input logic [SLOTS-1:0] group_valid,
    input logic [SLOTS-1:0][nanet_pkg::MAC_GROUP_BITS-1:0] group_macs,  // what is the group's own of its Ethernet address

    input logic [63:0] s_axis_tdata,
    input logic [ 7:0] s_axis_tkeep,
    input logic        s_axis_tvalid,
    input logic        s_axis_tlast,
    input logic        s_axis_tuser,
    input logic [63:0] s_meta_start_cycle,

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,
    output logic [47:0] m_meta_source_mac,   // as one writes it
    output logic [15:0] m_meta_ethertype,    // as one writes it, of what is in the tag if there is one
    output logic [63:0] m_meta_start_cycle,
    output logic        m_meta_group,        // it came to the address of a group

    output logic count_good,
    output logic drop_address,  // not for this station, nor for a group of it
    output logic drop_short     // nothing after the header
);
  localparam int LATENCY_CYCLES = 1;
  localparam logic [7:0] FIRST_PART_UNTAGGED = 8'h3F;  // lanes that go with the word before
  localparam logic [7:0] FIRST_PART_TAGGED = 8'h03;

  // --- header ---
  logic [1:0] index;  // of the word in its frame, up to 3
  logic own, has_tag;
  logic group_prefix;
  logic [SLOTS-1:0] group_hits;
  logic [63:16] previous;
  logic [47:0] source_mac;  // as it lies on the wire
  logic [15:0] ethertype;   // as it lies on the wire
  wire [47:0] destination = {
    s_axis_tdata[7:0], s_axis_tdata[15:8], s_axis_tdata[23:16], s_axis_tdata[31:24], s_axis_tdata[39:32], s_axis_tdata[47:40]
  };
  wire whole_header = index == 2'd3 || (index == 2'd2 && !has_tag);
  wire to_group = group_prefix && group_hits != '0;
  wire mine = own || to_group;

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      previous <= s_axis_tdata[63:16];
      if (index != 2'd3) index <= index + 1'b1;
      if (index == 2'd0) begin
        own <= destination == local_mac || destination == '1;
        group_prefix <= destination[47:nanet_pkg::MAC_GROUP_BITS] == nanet_pkg::MAC_GROUP_PREFIX;
        for (int g = 0; g < SLOTS; g++) group_hits[g] <= group_valid[g] && destination[nanet_pkg::MAC_GROUP_BITS-1:0] == group_macs[g];
        source_mac[15:0] <= s_axis_tdata[63:48];
      end
      if (index == 2'd1) begin
        source_mac[47:16] <= s_axis_tdata[31:0];
        ethertype <= s_axis_tdata[47:32];
        has_tag <= s_axis_tdata[47:32] == nanet_pkg::ETHERTYPE_VLAN;
      end
      if (index == 2'd2 && has_tag) ethertype <= s_axis_tdata[15:0];
      if (s_axis_tlast) index <= '0;
    end
    if (rst) index <= '0;
  end

  // --- what is in the frame: each word from two; what is left of the last one leaves by itself ---
  wire [7:0] first_part = has_tag ? FIRST_PART_TAGGED : FIRST_PART_UNTAGGED;
  wire spills = (s_axis_tkeep & ~first_part) != '0;
  wire leaves = s_axis_tvalid && whole_header && mine;
  logic rest, rest_user;
  logic [7:0] rest_keep;

  always_ff @(posedge clk) begin
    m_axis_tvalid <= leaves || rest;
    m_axis_tdata <= has_tag ? {s_axis_tdata[15:0], previous[63:16]} : {s_axis_tdata[47:0], previous[63:48]};
    m_axis_tkeep <= '1;
    m_axis_tlast <= rest || (leaves && s_axis_tlast && !spills);
    m_axis_tuser <= rest ? rest_user : s_axis_tlast && s_axis_tuser;
    if (rest) m_axis_tkeep <= rest_keep;
    else if (s_axis_tlast && !spills) m_axis_tkeep <= has_tag ? {s_axis_tkeep[1:0], 6'h3F} : {s_axis_tkeep[5:0], 2'h3};
    rest <= leaves && s_axis_tlast && spills;
    rest_keep <= has_tag ? {2'b0, s_axis_tkeep[7:2]} : {6'b0, s_axis_tkeep[7:6]};
    rest_user <= s_axis_tuser;
    if (leaves) begin
      m_meta_source_mac <= {
        source_mac[7:0], source_mac[15:8], source_mac[23:16], source_mac[31:24], source_mac[39:32], source_mac[47:40]
      };
      m_meta_ethertype <= {ethertype[7:0], ethertype[15:8]};
      m_meta_start_cycle <= s_meta_start_cycle;
      m_meta_group <= to_group;
    end
    if (rst) begin
      m_axis_tvalid <= 1'b0;
      rest <= 1'b0;
    end
  end

  // The first word says whose the frame is: a frame of that one word alone is too short, whoever it is for.
  wire ends_good = s_axis_tvalid && s_axis_tlast && !s_axis_tuser;
  wire for_other = index != 2'd0 && !mine;
  always_ff @(posedge clk) begin
    count_good <= ends_good && whole_header && mine && !rst;
    drop_address <= ends_good && for_other && !rst;
    drop_short <= ends_good && !for_other && !whole_header && !rst;
  end

  // --- what must hold ---
  logic [LATENCY_CYCLES-1:0] begun;
  logic m_inside;
  always_ff @(posedge clk) begin
    begun <= leaves;
    m_inside <= !rst && (m_axis_tvalid ? !m_axis_tlast : m_inside);
    if (!rst) begin
      assert (!rest || !s_axis_tvalid || index == '0);
      assert (!s_axis_tvalid || s_axis_tlast || s_axis_tkeep == '1);
      assert (!m_axis_tvalid || m_inside || begun[LATENCY_CYCLES-1]);
      assert (!m_axis_tvalid || m_axis_tlast || m_axis_tkeep == '1);
      assert ($onehot0({count_good, drop_address, drop_short}));
    end
  end
endmodule
