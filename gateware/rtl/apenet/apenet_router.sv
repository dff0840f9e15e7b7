// SPDX-License-Identifier: Apache-2.0
// The router of a node of the torus: packets of APEnet+ from any port to any other that the order of dimensions allows. docs/design/torus.md
//
// Contract
//   * Ports 0 to 5 are the links to the neighbours at x+1, x-1, y+1, y-1, z+1, z-1, of which LINKS says which there are; from 6 on local ports. Each has two
//     streams in, for the two virtual channels, and one out; they stand side by side in each vector, port 0 and channel 0 lowest.
//   * A packet is its header, its payload and its footer with tlast: as many words as the header says, of which the low 120 bits are the header. On the way
//     through only `vc` and `hops` of it change; whoever sends it over a link makes its code (apelink_tx).
//   * A packet leaves when m_space tells room for all of it, as apelink does with space_0 and space_1: 11 bits each of data 0, headers 0, data 1, headers 1 for
//     each port. All ones: whatever comes is taken.
//   * Between two ports and virtual channels packets stay in order. Each output takes a word a cycle, also between packets, and an idle one has a word
//     LATENCY_CYCLES after it came in.
//   * `at` and `shape` stay as they are while packets come. A sender pauses within a packet only as long as it must: the output waits for it.
module apenet_router #(
    parameter int LINKS = 63,
    parameter int LOCALS = 1,
    localparam int PORTS = 6 + LOCALS
) (
    input logic clk,
    input logic rst,

    input apenet_pkg::place_t at,
    input apenet_pkg::shape_t shape,

    /* verilator lint_off UNUSEDSIGNAL */  // of links that there are not
    input  logic [256*PORTS-1:0] s_axis_tdata,
    input  logic [  2*PORTS-1:0] s_axis_tvalid,
    output logic [  2*PORTS-1:0] s_axis_tready,
    input  logic [  2*PORTS-1:0] s_axis_tlast,

    output logic [128*PORTS-1:0] m_axis_tdata,
    output logic [    PORTS-1:0] m_axis_tvalid,
    input  logic [    PORTS-1:0] m_axis_tready,
    output logic [    PORTS-1:0] m_axis_tlast,
    input  logic [ 44*PORTS-1:0] m_space,
    /* verilator lint_on UNUSEDSIGNAL */

    output logic [2*PORTS-1:0] count_good,    // by input
    output logic [2*PORTS-1:0] drop_length,
    output logic [2*PORTS-1:0] drop_outside,
    output logic [2*PORTS-1:0] drop_turn,
    output logic [2*PORTS-1:0] drop_port,
    output logic [2*PORTS-1:0] drop_hops
);
  localparam int INPUTS = 2 * PORTS;
  localparam int LATENCY_CYCLES = 7;

  if (LINKS < 1 || LINKS > 63 || LOCALS < 1 || LOCALS > 3) begin : g_check
    $fatal(1, "LINKS must be 1 to 63, LOCALS must be 1 to 3 (instance %m)");
  end

  /* verilator lint_off UNUSEDSIGNAL */  // of links that there are not
  logic [INPUTS-1:0] free, granted, taken, valid, last, payload;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [9*INPUTS-1:0] words;
  logic [4*INPUTS-1:0] gives_way;
  logic [128*INPUTS-1:0] data;
  logic [INPUTS-1:0][INPUTS-1:0] offers;            // of each input, bit 2 * port + vc
  logic [PORTS-1:0][INPUTS-1:0] granted_by, taken_by;

  for (genvar i = 0; i < INPUTS; i++) begin : g_input
    if (i / 2 >= 6 || LINKS[(i/2)%6]) begin : g_is
      apenet_input #(
          .CAME(i / 2),
          .VC(i[0]),
          .LINKS(LINKS),
          .LOCALS(LOCALS)
      ) i_input (
          .clk,
          .rst,
          .at,
          .shape,
          .s_axis_tdata(s_axis_tdata[128*i+:128]),
          .s_axis_tvalid(s_axis_tvalid[i]),
          .s_axis_tready(s_axis_tready[i]),
          .s_axis_tlast(s_axis_tlast[i]),
          .offers(offers[i]),
          .offers_words(words[9*i+:9]),
          .offers_way(gives_way[4*i+:4]),
          .free(free[i]),
          .granted(granted[i]),
          .taken(taken[i]),
          .m_data(data[128*i+:128]),
          .m_valid(valid[i]),
          .m_last(last[i]),
          .m_payload(payload[i]),
          .count_good(count_good[i]),
          .drop_length(drop_length[i]),
          .drop_outside(drop_outside[i]),
          .drop_turn(drop_turn[i]),
          .drop_port(drop_port[i]),
          .drop_hops(drop_hops[i])
      );
    end else begin : g_none
      assign {s_axis_tready[i], offers[i], words[9*i+:9], gives_way[4*i+:4], free[i], data[128*i+:128], valid[i], last[i], payload[i]} = '0;
      assign {count_good[i], drop_length[i], drop_outside[i], drop_turn[i], drop_port[i], drop_hops[i]} = '0;
    end
    wire [PORTS-1:0] granting, taking;
    for (genvar o = 0; o < PORTS; o++) begin : g_by
      assign granting[o] = granted_by[o][i];
      assign taking[o] = taken_by[o][i];
    end
    assign granted[i] = granting != '0;
    assign taken[i] = taking != '0;
  end

  for (genvar o = 0; o < PORTS; o++) begin : g_output
    // Of all ways through the crossbar those that the order of dimensions allows: from local ports and earlier dimensions, and straight on.
    /* verilator lint_off UNUSEDSIGNAL */  // of a link that there is not
    wire [2*INPUTS-1:0] asks;
    /* verilator lint_on UNUSEDSIGNAL */
    for (genvar i = 0; i < INPUTS; i++) begin : g_way
      localparam int CAME = i / 2;
      localparam bit ALLOWED = CAME >= 6 || o >= 6 || CAME / 2 < o / 2 || CAME == (o ^ 1);
      assign asks[2*i+:2] = ALLOWED ? offers[i][2*o+:2] : 2'b00;
    end
    if (o >= 6 || LINKS[o%6]) begin : g_is
      apenet_output #(
          .INPUTS(INPUTS),
          .LOCAL({{2 * LOCALS{1'b1}}, 12'd0}),
          .STRAIGHT(o < 6 ? INPUTS'(3) << 2 * (o ^ 1) : '0)
      ) i_output (
          .clk,
          .rst,
          .asks,
          .words,
          .gives_way,
          .free,
          .granted(granted_by[o]),
          .s_data(data),
          .s_valid(valid),
          .s_last(last),
          .s_payload(payload),
          .taken(taken_by[o]),
          .space_0(m_space[44*o+:22]),
          .space_1(m_space[44*o+22+:22]),
          .m_axis_tdata(m_axis_tdata[128*o+:128]),
          .m_axis_tvalid(m_axis_tvalid[o]),
          .m_axis_tready(m_axis_tready[o]),
          .m_axis_tlast(m_axis_tlast[o])
      );
    end else begin : g_none
      assign {granted_by[o], taken_by[o], m_axis_tdata[128*o+:128], m_axis_tvalid[o], m_axis_tlast[o]} = '0;
    end
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      for (int i = 0; i < INPUTS; i++) begin
        for (int o = 0; o < PORTS; o++) assert (o >= 6 || i >= 12 || i / 4 < o / 2 || i / 2 == (o ^ 1) || offers[i][2*o+:2] == '0);
      end
    end
  end
endmodule
