// SPDX-License-Identifier: Apache-2.0
// A data-processing stage to begin one's own with: hands on the payloads whose first eight bytes are cfg_value where cfg_mask has ones, and marks the others bad.
//
// To make one: copy this file and tb/stage_template, and name it in node_port (g_processing). docs/design/gateware-node.md has the rules; here is how each is kept.
//
// Contract
//   * A word in every cycle, no waiting: each word leaves LATENCY_CYCLES after it came in, and a packet's words in their order.
//   * s_meta stands beside a packet from its first word to its last, m_meta too: so it travels with the words. It may be changed on the way (its bytes must be,
//     if the payload's length is), but holds within a packet.
//   * What is not to go on ends with m_axis_tuser, and gives one pulse of one counter with its last word: the packet is dropped behind, not here. A packet that
//     came in bad (s_axis_tuser) leaves bad and is not counted: it was before.
//   * Settings are looked at with a packet's first word and hold for all of it.
//   * Reset clears what decides. A packet that reset cuts leaves nothing behind.
module stage_template (
    input logic clk,
    input logic rst,

    input logic [63:0] cfg_value,
    input logic [63:0] cfg_mask,

    input logic [63:0] s_axis_tdata,
    input logic [ 7:0] s_axis_tkeep,
    input logic        s_axis_tvalid,
    input logic        s_axis_tlast,
    input logic        s_axis_tuser,
    input port_pkg::routed_t s_meta,

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,
    output port_pkg::routed_t m_meta,

    output logic drop_refused
);
  localparam int LATENCY_CYCLES = 1;

  // --- one's own: what is to become of the packet ---
  logic in_packet, refused;
  wire [63:0] differs = (s_axis_tdata ^ cfg_value) & cfg_mask;
  logic [63:0] there;  // bytes of the word, as bits
  for (genvar lane = 0; lane < 8; lane++) begin : g_lane
    assign there[8*lane+:8] = {8{s_axis_tkeep[lane]}};
  end
  wire refuses = (differs & there) != '0 || (cfg_mask & ~there) != '0;  // a shorter payload has not what is asked for
  wire refused_now = in_packet ? refused : refuses;

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      in_packet <= !s_axis_tlast;
      refused <= refused_now;
    end
    if (rst) in_packet <= 1'b0;
  end

  // --- on its way ---
  always_ff @(posedge clk) begin
    m_axis_tdata <= s_axis_tdata;
    m_axis_tkeep <= s_axis_tkeep;
    m_axis_tvalid <= s_axis_tvalid && !rst;
    m_axis_tlast <= s_axis_tlast;
    m_axis_tuser <= s_axis_tlast && (s_axis_tuser || refused_now);
    m_meta <= s_meta;
    drop_refused <= s_axis_tvalid && s_axis_tlast && !s_axis_tuser && refused_now && !rst;
  end

  // --- what must hold ---
  logic [LATENCY_CYCLES-1:0] came;
  always_ff @(posedge clk) begin
    came <= !rst && s_axis_tvalid;
    if (!rst) begin
      assert (m_axis_tvalid == came[LATENCY_CYCLES-1]);
      assert (!drop_refused || (m_axis_tvalid && m_axis_tlast && m_axis_tuser));
    end
  end
endmodule
