// SPDX-License-Identifier: Apache-2.0
// A node of the torus with its network interface, for the harness of this folder: apenet_node with rdma_port at its local port, and the bus of the host outside.
// A host reads its counters, and what lofamo knows, in the registers that a node of gateware/rtl has: those of ape.rdl whose values are not inputs here.
// As in simulated_node.sv all inputs have a register before them and what takes the outputs is always ready, so outputs depend on registers alone.
module simulated_rdma_node (
    input logic clk,
    input logic rst,

    input apenet_pkg::place_t  at,
    input apenet_pkg::shape_t  shape,
    input logic          [5:0] link_up,
    input logic [63:0] now_ns,

    // Of the driver, each for one cycle. A job is taken when job_room was high.
    input  logic           key_write,
    input  logic [    3:0] key_index,
    input  logic           key_readable,
    input  logic           key_writable,
    input  logic           key_valid,
    input  logic [   31:0] key_nonce,
    input  logic [   42:0] key_start,
    input  logic [   40:0] key_bytes,
    input  logic           region_write,
    input  logic [    2:0] region_index,
    input  logic [    5:0] region_first,
    input  logic [    6:0] region_count,
    input  logic           entry_write,
    input  logic [    5:0] entry_index,
    input  logic [   63:0] entry_data,
    input  logic [   31:0] completion_mask,
    input  logic [   31:0] consumed,
    input  logic           job_valid,
    input  rdma_pkg::job_t job,
    output logic           job_room,
    output logic           gone_valid,
    output logic           gone_bad,
    output logic [   31:0] written,

    // Of the driver: one access of the torus' window at a time, which ends with bus_done.
    input  logic        bus_valid,
    input  logic        bus_write,
    input  logic [11:0] bus_address,
    input  logic [63:0] bus_wdata,
    output logic        bus_done,
    output logic        bus_error,
    output logic [63:0] bus_rdata,
    output logic        irq,

    // Of the host and lofamo.
    input  logic [31:0] watch_period,
    input  logic        host_beat,
    input  logic [ 6:0] host_says,
    output logic [31:0] beats,
    output logic [ 7:0] node_state,
    output logic [59:0] neighbours,  // lofamo's links

    output logic         write_valid,
    output logic         write_first,
    output logic [ 63:0] write_address,
    output logic [127:0] write_data,
    output logic [ 15:0] write_keep,
    output logic         read_valid,
    output logic [ 63:0] read_address,
    output logic [  9:0] read_bytes,
    output logic [  4:0] read_tag,
    input  logic         answer_valid,
    input  logic [  4:0] answer_tag,
    input  logic [127:0] answer_data,
    input  logic         answer_last,

    output logic [  5:0] link_tx_valid,
    output logic [767:0] link_tx_data,
    input  logic [  5:0] link_rx_valid,
    input  logic [767:0] link_rx_data,

    output logic [rdma_pkg::COUNTS-1:0] counts,
    output logic [15:0] missed,
    output logic refused,  // a job, or a GET of another node
    output logic lost      // something that router, links or memory must not do in a torus that is whole
);
  localparam int REGIONS = 8, ENTRIES = 64, TAGS = 32;
  logic reset;
  apenet_pkg::place_t node_at;
  apenet_pkg::shape_t torus_shape;
  logic [5:0] up, rx_valid;
  logic [767:0] rx_data;
  logic has_answer, last_of_answer, has_job, job_ready;
  logic [4:0] tag_of_answer;
  logic [127:0] answer;
  rdma_pkg::job_t next_job;
  assign job_room = !has_job;
  always_ff @(posedge clk) begin
    reset <= rst;
    node_at <= at;
    torus_shape <= shape;
    up <= link_up;
    rx_valid <= link_rx_valid;
    rx_data <= link_rx_data;
    has_answer <= answer_valid;
    tag_of_answer <= answer_tag;
    answer <= answer_data;
    last_of_answer <= answer_last;
    if (job_valid) next_job <= job;
    if (job_valid || job_ready) has_job <= job_valid;
    if (rst) has_job <= 1'b0;
  end

  logic writes_key, writes_region, writes_entry, readable, writable, is_valid;
  logic [3:0] index_of_key;
  logic [31:0] nonce, mask, taken;
  logic [42:0] start;
  logic [40:0] bytes;
  logic [2:0] index_of_region;
  logic [5:0] first, index_of_entry;
  logic [6:0] pages;
  logic [63:0] page, now;
  always_ff @(posedge clk) begin
    {writes_key, writes_region, writes_entry} <= {key_write, region_write, entry_write};
    {index_of_key, readable, writable, is_valid, nonce, start, bytes} <= {
      key_index, key_readable, key_writable, key_valid, key_nonce, key_start, key_bytes};
    {index_of_region, first, pages, index_of_entry, page} <= {region_index, region_first, region_count, entry_index, entry_data};
    {mask, taken, now} <= {completion_mask, consumed, now_ns};
  end

  logic beat;
  logic [6:0] says;
  logic [31:0] period;
  logic [5:0] silent;
  logic [47:0] neighbour_state;
  always_ff @(posedge clk) {beat, says, period} <= {host_beat, host_says, watch_period};
  ape_regs_pkg::ape_regs__in_t status;
  ape_regs_pkg::ape_regs__out_t set;
  logic changed, interrupt_arm;
  lofamo i_lofamo (
      .clk,
      .rst(reset),
      .cfg_period_cycles(period),
      .host_beat(beat),
      .host_says(says),
      .beats,
      .link_up(up),
      .silent,
      .neighbour_state,
      .state(node_state),
      .links(neighbours),
      .changed,
      .changes(status.changes.links.next),
      .state_changes(status.changes.node.next)
  );

  // --- registers; place, keys, ring and queue are inputs of this module, and theirs are not to be read ---
  logic reads, writes_address, writes_data, read_taken, address_taken, data_taken, has_read, has_written;
  logic [11:0] address;
  logic [63:0] written_data, read_data;
  logic [1:0] read_response, write_response;
  always_ff @(posedge clk) begin
    if (bus_valid) {address, written_data} <= {bus_address, bus_wdata};
    reads <= (bus_valid && !bus_write) || (reads && !read_taken);
    writes_address <= (bus_valid && bus_write) || (writes_address && !address_taken);
    writes_data <= (bus_valid && bus_write) || (writes_data && !data_taken);
    bus_done <= has_read || has_written;
    bus_error <= (has_read && read_response != '0) || (has_written && write_response != '0);
    bus_rdata <= read_data;
    if (reset) {reads, writes_address, writes_data, bus_done} <= '0;
  end
  ape_regs i_regs (
      .clk,
      .rst(reset),
      .s_axil_awready(address_taken),
      .s_axil_awvalid(writes_address),
      .s_axil_awaddr(address),
      .s_axil_awprot('0),
      .s_axil_wready(data_taken),
      .s_axil_wvalid(writes_data),
      .s_axil_wdata(written_data),
      .s_axil_wstrb('1),
      .s_axil_bready(1'b1),
      .s_axil_bvalid(has_written),
      .s_axil_bresp(write_response),
      .s_axil_arready(read_taken),
      .s_axil_arvalid(reads),
      .s_axil_araddr(address),
      .s_axil_arprot('0),
      .s_axil_rready(1'b1),
      .s_axil_rvalid(has_read),
      .s_axil_rdata(read_data),
      .s_axil_rresp(read_response),
      .hwif_in(status),
      .hwif_out(set)
  );
  assign status.neighbours.links.next = neighbours;
  assign status.beats.beats.next = beats;
  assign status.beats.state.next = node_state;
  assign status.links.up.next = up;
  assign status.links.silent.next = silent;

  always_ff @(posedge clk) interrupt_arm <= set.interrupt.arm.count.swmod && !reset;
  interrupter i_interrupter (
      .clk,
      .rst(reset),
      .now_ns(now),
      .completion(changed),
      .cfg_enable(set.interrupt.control.enable.value),
      .cfg_completions(32'd1),
      .cfg_moderation_ns('0),
      .arm(interrupt_arm),
      .arm_count(set.interrupt.arm.count.value),
      .irq,
      .armed(status.interrupt.state.armed.next),
      .raised(status.interrupt.state.raised.next),
      .count(status.interrupt.state.count.next)
  );

  logic [127:0] in_data, out_data;
  logic in_valid, in_ready, in_last, out_valid, out_ready, out_last, unused_ready;
  logic [13:0] drop_length, drop_outside, drop_turn, drop_port, drop_hops;
  logic [5:0] drop_down, link_flagged, error_crc, error_cut, drop_header, noise;
  logic [59:0] drop_lost;
  logic [13:0] routed;
  logic [5:0] sent, good, corrected;
  logic packet_left, unreadable, job_refused, reply_refused, completion_fault;
  assign refused = job_refused || reply_refused;
  assign lost = |{drop_length, drop_outside, drop_turn, drop_port, drop_hops, drop_down, link_flagged, error_crc, error_cut,
                  drop_header, noise, drop_lost, unreadable, completion_fault};

  apenet_node i_node (
      .clk,
      .rst(reset),
      .at(node_at),
      .shape(torus_shape),
      .s_axis_tdata({128'd0, in_data}),
      .s_axis_tvalid({1'b0, in_valid}),
      .s_axis_tready({unused_ready, in_ready}),
      .s_axis_tlast({1'b0, in_last}),
      .m_axis_tdata(out_data),
      .m_axis_tvalid(out_valid),
      .m_axis_tready(out_ready),
      .m_axis_tlast(out_last),
      .m_space('1),
      .link_up(up),
      .silent,
      .node_state,
      .neighbour_state,
      .link_tx_valid,
      .link_tx_ready('1),
      .link_tx_data,
      .link_rx_valid(rx_valid),
      .link_rx_data(rx_data),
      .count_good(routed),
      .drop_length,
      .drop_outside,
      .drop_turn,
      .drop_port,
      .drop_hops,
      .link_sent(sent),
      .drop_down,
      .link_good(good),
      .link_flagged,
      .error_crc,
      .error_cut,
      .drop_header,
      .drop_lost,
      .noise,
      .header_corrected(corrected)
  );

  // --- counters, as of node_ape ---
  nic_counts_pkg::ape_counts_t ape_counts;
  nic_counts_pkg::ape_link_counts_t [5:0] link_counts;
  nic_counts_pkg::ape_router_counts_t [6:0][1:0] router_counts;
  always_comb begin
    ape_counts = '0;
    ape_counts[nic_counts_pkg::PACKET_ENDS-1:0] = counts;
    ape_counts.gap = missed != '0;
    ape_counts.left = packet_left;
    ape_counts.unreadable = unreadable;
    ape_counts.refused = job_refused;
    ape_counts.reply_refused = reply_refused;
    ape_counts.completion_fault = completion_fault;
  end
  for (genvar k = 0; k < 6; k++) begin : g_link_counts
    assign link_counts[k] = '{
            sent: sent[k], down: drop_down[k], good: good[k], flagged: link_flagged[k], crc: error_crc[k], cut: error_cut[k],
            header: drop_header[k], lost: 1'b0, noise: noise[k], corrected: corrected[k]
        };
  end
  for (genvar i = 0; i < 14; i++) begin : g_router_counts
    assign router_counts[i/2][i%2] = '{
            routed: routed[i], length: drop_length[i], outside: drop_outside[i], turn: drop_turn[i], port: drop_port[i], hops: drop_hops[i]
        };
  end
  ape_counters i_counters (
      .clk,
      .rst(reset),
      .ape_counts,
      .missed,
      .link_counts,
      .lost(drop_lost),
      .router_counts,
      .ape_request(set.ape_count),
      .ape_answer(status.ape_count),
      .link_request(set.link_count),
      .link_answer(status.link_count),
      .router_request(set.router_count),
      .router_answer(status.router_count)
  );

  rdma_port #(
      .TAGS(TAGS),
      .REGIONS(REGIONS),
      .ENTRIES(ENTRIES)
  ) i_port (
      .clk,
      .rst(reset),
      .now_ns(now),
      .now_cycles(now),
      .at(node_at),
      .own_port(4'd0),
      .key_write(writes_key),
      .key_index(index_of_key),
      .key_valid(is_valid),
      .key_readable(readable),
      .key_writable(writable),
      .key_nonce(nonce),
      .key_start(start),
      .key_bytes(bytes),
      .region_write(writes_region),
      .region_index(index_of_region),
      .region_valid(1'b1),
      .region_page_shift(5'd16),
      .region_first(first),
      .region_count(pages),
      .entry_write(writes_entry),
      .entry_index(index_of_entry),
      .entry_data(page),
      .match_write(1'b0),
      .match_index('0),
      .match_enable(1'b0),
      .match_process('0),
      .match_sender('0),
      .match_sender_mask('0),
      .match_route('0),
      .match_clop('0),
      .match_source('0),
      .match_counts_events(1'b0),
      .payload_tdata(),
      .payload_tkeep(),
      .payload_tvalid(),
      .payload_tready(1'b1),
      .payload_tlast(),
      .payload_meta(),
      .cfg_completions('0),
      .cfg_completion_mask(mask),
      .cfg_consumed(taken),
      .completions_written(written),
      .job_valid(has_job),
      .job_ready,
      .job(next_job),
      .gone_valid,
      .gone_ready(1'b1),
      .gone_bad,
      .gone_tag(),
      .ring_read_valid(1'b0),
      .ring_read_ready(),
      .ring_read_address('0),
      .ring_read_bytes('0),
      .ring_tdata(),
      .ring_tvalid(),
      .ring_tready(1'b1),
      .ring_tlast(),
      .ring_tuser(),
      .ring_write_valid(1'b0),
      .ring_write_ready(),
      .ring_write_last(1'b0),
      .ring_write_address('0),
      .ring_write_data('0),
      .s_axis_tdata(out_data),
      .s_axis_tvalid(out_valid),
      .s_axis_tready(out_ready),
      .s_axis_tlast(out_last),
      .m_axis_tdata(in_data),
      .m_axis_tvalid(in_valid),
      .m_axis_tready(in_ready),
      .m_axis_tlast(in_last),
      .write_valid,
      .write_ready(1'b1),
      .write_first,
      .write_last(),
      .write_gpu(),
      .write_address,
      .write_bytes(),
      .write_data,
      .write_keep,
      .read_valid,
      .read_ready(1'b1),
      .read_address,
      .read_bytes,
      .read_tag,
      .read_gpu(),
      .answer_valid(has_answer),
      .answer_tag(tag_of_answer),
      .answer_data(answer),
      .answer_last(last_of_answer),
      .answer_error(1'b0),
      .counts,
      .missed,
      .count_packet(packet_left),
      .count_unreadable(unreadable),
      .count_refused(job_refused),
      .count_reply_refused(reply_refused),
      .completion_fault
  );
endmodule
