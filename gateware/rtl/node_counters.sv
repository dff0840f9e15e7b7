// SPDX-License-Identifier: Apache-2.0
// What a node counts: of each port, and of the whole node. The first port's frames are counted by the host's port.
//
// Contract
//   * As of counters: a pulse of each in every cycle, none is lost. A write to a counter is answered and does nothing.
//   * A port that there is not reads as zeros.
module node_counters #(
    parameter int PORTS = 4,
    localparam int PORTS_MAX = 4  // that node.rdl has registers for
) (
    input logic clk,
    input logic rst,

    // --- pulses ---
    input nic_counts_pkg::port_counts_t port_counts[PORTS],
    input nic_counts_pkg::merge_counts_t [PORTS-1:0] merge_counts,
    input nic_counts_pkg::path_counts_t path_counts[PORTS],
    input nic_counts_pkg::reply_counts_t reply_counts[PORTS],
    input nic_counts_pkg::sending_ends_t ends[PORTS],
    input nic_counts_pkg::events_counts_t events_counts,
    input nic_counts_pkg::node_counts_t node_counts,

    // --- the registers of node.rdl that are read here ---
    /* verilator lint_off UNUSEDSIGNAL */  // what would be written
    input  node_regs_pkg::node_regs__port_count__external__out_t port_request[PORTS_MAX],
    output node_regs_pkg::node_regs__port_count__external__in_t port_answer[PORTS_MAX],
    input  node_regs_pkg::node_regs__merge_count__external__out_t merge_request[PORTS_MAX],
    output node_regs_pkg::node_regs__merge_count__external__in_t merge_answer[PORTS_MAX],
    input  node_regs_pkg::node_regs__port_rx__out_t frames_request[PORTS_MAX-1],
    output node_regs_pkg::node_regs__port_rx__in_t frames_answer[PORTS_MAX-1],
    input  node_regs_pkg::node_regs__events_count__external__out_t events_request,
    output node_regs_pkg::node_regs__events_count__external__in_t events_answer,
    input  node_regs_pkg::node_regs__node_count__external__out_t node_request,
    output node_regs_pkg::node_regs__node_count__external__in_t node_answer
    /* verilator lint_on UNUSEDSIGNAL */
);
  for (genvar p = 0; p < PORTS_MAX; p++) begin : g_counters
    localparam int MERGE_AT = nic_counts_pkg::PORT_COUNTS;
    localparam int PATH_AT = MERGE_AT + nic_counts_pkg::MERGE_COUNTS;
    localparam int REPLY_AT = PATH_AT + nic_counts_pkg::PATH_COUNTS;
    localparam int ENDS_AT = REPLY_AT + nic_counts_pkg::REPLY_COUNTS;
    localparam int COUNTERS = p == 0 ? PATH_AT : ENDS_AT + nic_counts_pkg::SENDING_ENDS;
    localparam int INDEX_BITS = $clog2(COUNTERS);
    logic reads, reads_merge, reads_frames, done;
    logic [INDEX_BITS-1:0] index, frames_index;
    logic [63:0] data;
    logic [COUNTERS-1:0] pulses;
    wire reads_port = port_request[p].req && !port_request[p].req_is_wr;
    assign reads_merge = merge_request[p].req && !merge_request[p].req_is_wr;
    assign reads = reads_port || reads_merge || reads_frames;
    assign index = reads_port ? INDEX_BITS'(port_request[p].addr[5:3]) :
                   reads_merge ? INDEX_BITS'(MERGE_AT) + INDEX_BITS'(merge_request[p].addr[6:3]) : frames_index;
    assign port_answer[p] = '{rd_ack: done, rd_data: data, wr_ack: port_request[p].req && port_request[p].req_is_wr};
    assign merge_answer[p] = '{rd_ack: done, rd_data: data, wr_ack: merge_request[p].req && merge_request[p].req_is_wr};

    if (p == 0) begin : g_frames
      assign {reads_frames, frames_index} = '0;
      assign pulses = {merge_counts[0], port_counts[0]};
    end else begin : g_frames
      localparam int N = p - 1;
      wire reads_rx = frames_request[N].rx_count.req && !frames_request[N].rx_count.req_is_wr;
      wire reads_reply = frames_request[N].reply_count.req && !frames_request[N].reply_count.req_is_wr;
      wire reads_tx = frames_request[N].tx_count.req && !frames_request[N].tx_count.req_is_wr;
      assign reads_frames = reads_rx || reads_reply || reads_tx;
      assign frames_index = reads_rx ? INDEX_BITS'(PATH_AT) + INDEX_BITS'(frames_request[N].rx_count.addr[7:3]) :
                            reads_reply ? INDEX_BITS'(REPLY_AT) + INDEX_BITS'(frames_request[N].reply_count.addr[6:3]) :
                            INDEX_BITS'(ENDS_AT) + INDEX_BITS'(frames_request[N].tx_count.addr[4:3]);
      assign frames_answer[N].rx_count = '{rd_ack: done, rd_data: data, wr_ack: frames_request[N].rx_count.req && frames_request[N].rx_count.req_is_wr};
      assign frames_answer[N].reply_count = '{rd_ack: done, rd_data: data, wr_ack: frames_request[N].reply_count.req && frames_request[N].reply_count.req_is_wr};
      assign frames_answer[N].tx_count = '{rd_ack: done, rd_data: data, wr_ack: frames_request[N].tx_count.req && frames_request[N].tx_count.req_is_wr};
      if (p < PORTS) begin : g_port
        assign pulses = {ends[p], reply_counts[p], path_counts[p], merge_counts[p], port_counts[p]};
      end
    end

    if (p < PORTS) begin : g_port
      counters #(
          .COUNTERS(COUNTERS)
      ) i_counters (
          .clk,
          .rst,
          .pulses,
          .read(reads),
          .read_index(index),
          .done,
          .data
      );
    end else begin : g_port  // of a port that there is not
      assign {done, data} = {reads, 64'b0};
      assign pulses = '0;
      wire unused = &{1'b0, index, pulses};
    end
  end

  localparam int NODE_COUNTERS = nic_counts_pkg::EVENTS_COUNTS + nic_counts_pkg::NODE_COUNTS;
  localparam int NODE_INDEX_BITS = $clog2(NODE_COUNTERS);
  logic node_done;
  logic [63:0] node_data;
  wire reads_events = events_request.req && !events_request.req_is_wr;
  wire reads_node = node_request.req && !node_request.req_is_wr;
  counters #(
      .COUNTERS(NODE_COUNTERS)
  ) i_node_counters (
      .clk,
      .rst,
      .pulses({node_counts, events_counts}),
      .read(reads_events || reads_node),
      .read_index(reads_events ? NODE_INDEX_BITS'(events_request.addr[5:3]) :
                  NODE_INDEX_BITS'(nic_counts_pkg::EVENTS_COUNTS) + NODE_INDEX_BITS'(node_request.addr[4:3])),
      .done(node_done),
      .data(node_data)
  );
  assign events_answer = '{rd_ack: node_done, rd_data: node_data, wr_ack: events_request.req && events_request.req_is_wr};
  assign node_answer = '{rd_ack: node_done, rd_data: node_data, wr_ack: node_request.req && node_request.req_is_wr};
endmodule
