// SPDX-License-Identifier: Apache-2.0
// What a node counts of the torus: its messages, each link, and what became of the packets that came to the router by each port.
//
// Contract
//   * As of counters: a pulse of each in every cycle, none is lost. A write to a counter is answered and does nothing.
//   * `missed` and `lost` are numbers of messages and packets; so many were sent, so they come at less than one a cycle in the mean. The two virtual channels of a port may pulse together, but each
//     pulses in every other cycle at most: a packet has two words or more.
module ape_counters #(
    localparam int LINKS = 6,
    localparam int PORTS = 7,  // of the router: links, then the node
    localparam int LOST_BITS = 10,
    localparam int MISSED_BITS = 16
) (
    input logic clk,
    input logic rst,

    // --- pulses ---
    /* verilator lint_off UNUSEDSIGNAL */  // of these `missed` and `lost` are those beside them
    input nic_counts_pkg::ape_counts_t ape_counts,
    input nic_counts_pkg::ape_link_counts_t [LINKS-1:0] link_counts,
    /* verilator lint_on UNUSEDSIGNAL */
    input logic [MISSED_BITS-1:0] missed,
    input logic [LINKS-1:0][LOST_BITS-1:0] lost,
    input nic_counts_pkg::ape_router_counts_t [PORTS-1:0][1:0] router_counts,  // of each virtual channel

    // --- the registers of ape.rdl that are read here ---
    /* verilator lint_off UNUSEDSIGNAL */  // what would be written
    input  ape_regs_pkg::ape_regs__ape_count__external__out_t ape_request,
    output ape_regs_pkg::ape_regs__ape_count__external__in_t ape_answer,
    input  ape_regs_pkg::ape_regs__link_count__external__out_t link_request[LINKS],
    output ape_regs_pkg::ape_regs__link_count__external__in_t link_answer[LINKS],
    input  ape_regs_pkg::ape_regs__router_count__external__out_t router_request[PORTS],
    output ape_regs_pkg::ape_regs__router_count__external__in_t router_answer[PORTS]
    /* verilator lint_on UNUSEDSIGNAL */
);
  localparam int PER_LINK = nic_counts_pkg::APE_LINK_COUNTS;
  localparam int PER_PORT = nic_counts_pkg::APE_ROUTER_COUNTS;
  localparam int LINK_COUNTERS = LINKS * PER_LINK;
  localparam int ROUTER_AT = nic_counts_pkg::APE_COUNTS;
  localparam int NODE_COUNTERS = ROUTER_AT + PORTS * PER_PORT;
  localparam int LINK_BITS = $clog2(LINK_COUNTERS), INDEX_BITS = $clog2(NODE_COUNTERS);

  // --- each link: two rounds of counters are shorter than one ---
  logic link_done;
  logic [63:0] link_data;
  nic_counts_pkg::ape_link_counts_t [LINKS-1:0] link_pulses;
  for (genvar k = 0; k < LINKS; k++) begin : g_link
    logic lost_one;
    pulse_spread #(
        .AMOUNT_BITS(LOST_BITS),
        .WAITING_BITS(LOST_BITS + 2)
    ) i_lost (
        .clk,
        .rst,
        .amount(lost[k]),
        .pulse(lost_one)
    );
    always_comb begin
      link_pulses[k] = link_counts[k];
      link_pulses[k].lost = lost_one;
    end
    assign link_answer[k] = '{rd_ack: link_done, rd_data: link_data, wr_ack: link_request[k].req && link_request[k].req_is_wr};
  end

  logic [LINKS-1:0] reads_link;
  logic [LINK_BITS-1:0] link_index;
  always_comb begin
    link_index = '0;
    for (int k = 0; k < LINKS; k++) begin
      reads_link[k] = link_request[k].req && !link_request[k].req_is_wr;
      if (reads_link[k]) link_index = LINK_BITS'(PER_LINK * k) + LINK_BITS'(link_request[k].addr[6:3]);
    end
  end
  counters #(
      .COUNTERS(LINK_COUNTERS)
  ) i_link_counters (
      .clk,
      .rst,
      .pulses(link_pulses),
      .read(reads_link != '0),
      .read_index(link_index),
      .done(link_done),
      .data(link_data)
  );

  // --- messages, and the router's ports ---
  logic done;
  logic [63:0] data;
  nic_counts_pkg::ape_counts_t ape_pulses;
  logic missed_one;
  pulse_spread #(
      .AMOUNT_BITS(MISSED_BITS),
      .WAITING_BITS(MISSED_BITS + 1)
  ) i_missed (
      .clk,
      .rst,
      .amount(missed),
      .pulse(missed_one)
  );
  always_comb begin
    ape_pulses = ape_counts;
    ape_pulses.missed = missed_one;
  end
  logic [PORTS-1:0][PER_PORT-1:0] router_pulses;
  for (genvar p = 0; p < PORTS; p++) begin : g_port
    for (genvar c = 0; c < PER_PORT; c++) begin : g_counter
      pulse_spread i_both (
          .clk,
          .rst,
          .amount(2'(router_counts[p][0][c]) + 2'(router_counts[p][1][c])),
          .pulse(router_pulses[p][c])
      );
    end
    assign router_answer[p] = '{rd_ack: done, rd_data: data, wr_ack: router_request[p].req && router_request[p].req_is_wr};
  end

  wire reads_ape = ape_request.req && !ape_request.req_is_wr;
  logic [PORTS-1:0] reads_router;
  logic [INDEX_BITS-1:0] index;
  always_comb begin
    index = INDEX_BITS'(ape_request.addr[7:3]);
    for (int p = 0; p < PORTS; p++) begin
      reads_router[p] = router_request[p].req && !router_request[p].req_is_wr;
      if (reads_router[p]) index = INDEX_BITS'(ROUTER_AT + PER_PORT * p) + INDEX_BITS'(router_request[p].addr[5:3]);
    end
  end
  counters #(
      .COUNTERS(NODE_COUNTERS)
  ) i_counters (
      .clk,
      .rst,
      .pulses({router_pulses, ape_pulses}),
      .read(reads_ape || reads_router != '0),
      .read_index(index),
      .done,
      .data
  );
  assign ape_answer = '{rd_ack: done, rd_data: data, wr_ack: ape_request.req && ape_request.req_is_wr};
endmodule
