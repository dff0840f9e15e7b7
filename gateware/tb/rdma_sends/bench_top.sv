// SPDX-License-Identifier: Apache-2.0
// rdma_sends before the host's port, as a port of Ethernet stands there, for test_rdma_sends.py.
module bench_top #(
    parameter int DEPTH_WORDS = 512,
    parameter int PACKETS = 16,
    parameter int MATCH_ENTRIES = 4
) (
    input logic clk,
    input logic rst,
    input logic holds,  // the host's port is not offered anything

    input logic        match_write,
    input logic [ 7:0] match_index,
    input logic        match_enable,
    input logic [15:0] match_process,
    input logic [15:0] match_sender,
    input logic [15:0] match_sender_mask,
    input logic [ 3:0] match_route,
    input logic [ 1:0] match_clop,
    input logic [15:0] match_source,
    input logic        match_counts_events,

    input  logic         s_begins,
    input  logic [119:0] s_header,
    input  logic         s_valid,
    input  logic [127:0] s_data,
    input  logic         s_ends,
    input  logic         s_good,
    output logic         wanted,
    output logic         room,
    output logic [ 63:0] now_ns,
    output logic [ 63:0] now_cycles,
    output logic [  3:0] route,
    output logic [ 63:0] start_cycle,
    output logic [ 63:0] parsed_cycle,
    output logic         begins,  // a payload is taken by the host's port
    output logic         ends,

    input  logic [11:0] s_axil_awaddr,
    input  logic        s_axil_awvalid,
    output logic        s_axil_awready,
    input  logic [63:0] s_axil_wdata,
    input  logic        s_axil_wvalid,
    output logic        s_axil_wready,
    output logic [ 1:0] s_axil_bresp,
    output logic        s_axil_bvalid,
    input  logic [11:0] s_axil_araddr,
    input  logic        s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [63:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,

    output logic         mem_write_valid,
    input  logic         mem_write_ready,
    output logic         mem_write_first,
    output logic         mem_write_last,
    output logic [ 63:0] mem_write_address,
    output logic [  8:0] mem_write_bytes,
    output logic [127:0] mem_write_data,
    output logic [ 15:0] mem_write_keep,
    output logic         mem_read_valid,
    input  logic         mem_read_ready,
    output logic [ 63:0] mem_read_address,
    output logic [  9:0] mem_read_bytes,
    output logic [  4:0] mem_read_tag,
    input  logic         mem_answer_valid,
    input  logic [  4:0] mem_answer_tag,
    input  logic [127:0] mem_answer_data,
    input  logic         mem_answer_last
);
  logic [127:0] data;
  logic [15:0] keep;
  logic valid, ready, last, amid;
  port_pkg::routed_t meta;
  assign route = meta.route;
  assign start_cycle = meta.payload.start_cycle;
  assign parsed_cycle = meta.payload.parsed_cycle;
  wire takes = valid && !(holds && !amid) && ready;
  assign begins = takes && !amid;
  assign ends = takes && last;
  rdma_sends #(
      .DEPTH_WORDS(DEPTH_WORDS),
      .PACKETS(PACKETS),
      .MATCH_ENTRIES(MATCH_ENTRIES)
  ) dut (
      .clk,
      .rst,
      .now_ns,
      .now_cycles,
      .match_write,
      .match_index(match_index[$clog2(MATCH_ENTRIES)-1:0]),
      .match_enable,
      .match_process,
      .match_sender,
      .match_sender_mask,
      .match_route,
      .match_clop,
      .match_source,
      .match_counts_events,
      .s_begins,
      .s_header,
      .s_valid,
      .s_data,
      .s_ends,
      .s_good,
      .wanted,
      .room,
      .m_axis_tdata(data),
      .m_axis_tkeep(keep),
      .m_axis_tvalid(valid),
      .m_axis_tready(takes),
      .m_axis_tlast(last),
      .m_meta(meta)
  );

  // What stands beside a payload stands there from its first word to its last, and of its last word the lanes that it has.
  port_pkg::routed_t meta_before;
  logic [15:0] words;
  wire [15:0] ended_bytes = 16'(words << 4) + 16'($countones(keep));
  always_ff @(posedge clk) begin
    if (takes) {amid, words, meta_before} <= {!last, last ? 16'd0 : words + 16'd1, meta};
    if (rst) {amid, words} <= '0;
    if (!rst) begin
      assert (!amid || valid);
      assert (!amid || meta == meta_before);
      assert (!takes || (last ? ended_bytes == meta.payload.bytes : keep == '1));
      assert (!takes || (keep & (keep + 16'd1)) == '0);
    end
  end

  host_port #(
      .WHOLE(1'b1),
      .STAGE_STATISTICS(1'b0)
  ) i_host (
      .clk,
      .rst,
      .s_axil_awaddr,
      .s_axil_awvalid,
      .s_axil_awready,
      .s_axil_wdata,
      .s_axil_wstrb('1),
      .s_axil_wvalid,
      .s_axil_wready,
      .s_axil_bresp,
      .s_axil_bvalid,
      .s_axil_bready(1'b1),
      .s_axil_araddr,
      .s_axil_arvalid,
      .s_axil_arready,
      .s_axil_rdata,
      .s_axil_rresp,
      .s_axil_rvalid,
      .s_axil_rready(1'b1),
      .now_ns,
      .now_cycles,
      .settings(),
      .path_counts('0),
      .reply_counts('0),
      .ends('0),
      .pages(),
      .s_axis_tdata(data),
      .s_axis_tvalid(valid && !(holds && !amid)),
      .s_axis_tready(ready),
      .s_axis_tlast(last),
      .s_axis_tuser(1'b0),
      .s_meta(meta.payload),
      .m_axis_tdata(),
      .m_axis_tkeep(),
      .m_axis_tvalid(),
      .m_axis_tready(1'b1),
      .m_axis_tlast(),
      .m_meta(),
      .irq(),
      .mem_write_valid,
      .mem_write_ready,
      .mem_write_first,
      .mem_write_last,
      .mem_write_gpu(),
      .mem_write_address,
      .mem_write_bytes,
      .mem_write_data,
      .mem_write_keep,
      .mem_read_valid,
      .mem_read_ready,
      .mem_read_address,
      .mem_read_bytes,
      .mem_read_tag,
      .mem_read_gpu(),
      .mem_answer_valid,
      .mem_answer_tag,
      .mem_answer_data,
      .mem_answer_last,
      .mem_answer_error(1'b0)
  );
endmodule
