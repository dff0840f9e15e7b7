// SPDX-License-Identifier: Apache-2.0
// Remote memory access by a TX ring: descriptors of kind PUT, GET, SEND and EVENT into messages of rdma_port, and what became of each into the ring's completions.
//
// Contract
//   * The ring is that of tx_ring, its settings and rules too; an entry is a MessageDescriptor of include/nanet/contract.hpp. Its completion, packet_sent or error, is
//     written when all of its memory has been read, in the order of the ring; last_packet_ns is then.
//   * A descriptor whose sequence, kind, place or length is wrong, or whose address the page table cannot have, is an error and sends nothing (count_refused).
//   * Of everything else: rdma_port.
module rdma_engine #(
    parameter int X_BITS = 2,
    parameter int Y_BITS = 2,
    parameter int Z_BITS = 2,
    parameter int KEYS = 16,
    parameter int GETS = 4,
    parameter int REQUESTS = GETS << (X_BITS + Y_BITS + Z_BITS),
    parameter int SEND_WORDS = 1024,
    parameter int MATCH_ENTRIES = 16,
    parameter int TICK_CYCLES = 262144,
    parameter int PAYLOAD_BYTES_MAX = 256,
    parameter int REQUEST_BYTES_MAX = 512,
    parameter int TAGS = 32,
    parameter int REGIONS = 16,
    parameter int ENTRIES = 4096,
    localparam int OFFSET_BITS = rdma_pkg::OFFSET_BITS,
    localparam int ADDRESS_BITS = $clog2(REGIONS) + OFFSET_BITS
) (
    input logic clk,
    input logic rst,
    input logic [63:0] now_ns,
    input logic [63:0] now_cycles,

    input apenet_pkg::place_t at,
    input logic [3:0] own_port,

    // As of tx_ring.
    input  logic                    cfg_enable,
    input  logic [ADDRESS_BITS-1:0] cfg_ring,
    input  logic [            31:0] cfg_ring_mask,
    input  logic [            31:0] cfg_doorbell,
    input  logic [ADDRESS_BITS-1:0] cfg_ring_completions,
    input  logic [            31:0] cfg_ring_completion_mask,
    output logic [            31:0] consumed,
    output logic                    busy,
    output logic                    ring_fault,

    // As of rdma_port.
    input logic                    key_write,
    input logic [$clog2(KEYS)-1:0] key_index,
    input logic                    key_valid,
    input logic                    key_readable,
    input logic                    key_writable,
    input logic [            31:0] key_nonce,
    input logic [ADDRESS_BITS-1:0] key_start,
    input logic [   OFFSET_BITS:0] key_bytes,

    input logic                       region_write,
    input logic [$clog2(REGIONS)-1:0] region_index,
    input logic                       region_valid,
    input logic [                4:0] region_page_shift,
    input logic [$clog2(ENTRIES)-1:0] region_first,
    input logic [  $clog2(ENTRIES):0] region_count,
    input logic                       entry_write,
    input logic [$clog2(ENTRIES)-1:0] entry_index,
    input logic [               63:0] entry_data,

    input  logic                             match_write,
    input  logic [$clog2(MATCH_ENTRIES)-1:0] match_index,
    input  logic                             match_enable,
    input  logic [15:0]                      match_process,
    input  apenet_pkg::place_t               match_sender,
    input  apenet_pkg::place_t               match_sender_mask,
    input  logic [port_pkg::ROUTE_BITS-1:0]  match_route,
    input  logic [1:0]                       match_clop,
    input  logic [15:0]                      match_source,
    input  logic                             match_counts_events,
    output logic [127:0]                     payload_tdata,
    output logic [ 15:0]                     payload_tkeep,
    output logic                             payload_tvalid,
    input  logic                             payload_tready,
    output logic                             payload_tlast,
    output port_pkg::routed_t                payload_meta,

    input  logic [ADDRESS_BITS-1:0] cfg_completions,
    input  logic [            31:0] cfg_completion_mask,
    input  logic [            31:0] cfg_consumed,
    output logic [            31:0] completions_written,

    input  logic [127:0] s_axis_tdata,
    input  logic         s_axis_tvalid,
    output logic         s_axis_tready,
    input  logic         s_axis_tlast,
    output logic [127:0] m_axis_tdata,
    output logic         m_axis_tvalid,
    input  logic         m_axis_tready,
    output logic         m_axis_tlast,

    output logic                                   write_valid,
    input  logic                                   write_ready,
    output logic                                   write_first,
    output logic                                   write_last,
    output logic                                   write_gpu,
    output logic [                           63:0] write_address,
    output logic [$clog2(PAYLOAD_BYTES_MAX+1)-1:0] write_bytes,
    output logic [                          127:0] write_data,
    output logic [                           15:0] write_keep,
    output logic                                   read_valid,
    input  logic                                   read_ready,
    output logic [                           63:0] read_address,
    output logic [$clog2(REQUEST_BYTES_MAX+1)-1:0] read_bytes,
    output logic [               $clog2(TAGS)-1:0] read_tag,
    output logic                                   read_gpu,
    input  logic                                   answer_valid,
    input  logic [               $clog2(TAGS)-1:0] answer_tag,
    input  logic [                          127:0] answer_data,
    input  logic                                   answer_last,
    input  logic                                   answer_error,

    output logic [rdma_pkg::COUNTS-1:0] counts,
    output logic [                15:0] missed,
    output logic                        count_sent,  // descriptors: of these three, and of no other, is each
    output logic                        count_bad,
    output logic                        count_packet,
    output logic                        count_unreadable,
    output logic                        count_refused,
    output logic                        count_reply_refused,
    output logic                        completion_fault
);
  localparam int GONE = 16;  // messages whose completion is to be written
  localparam int GONE_BITS = $clog2(GONE);

  // --- the ring ---
  logic ring_read_valid, ring_read_ready, ring_tvalid, ring_tready, ring_tlast, ring_tuser;
  logic [ADDRESS_BITS-1:0] ring_read_address, ring_write_address;
  logic [127:0] ring_tdata, ring_write_data;
  logic ring_write_valid, ring_write_ready, ring_write_last;
  logic command_valid, command_ready, command_good;
  /* verilator lint_off UNUSEDSIGNAL */
  logic [13:0] ring_read_bytes;  // 512 at most
  contract_pkg::tx_descriptor_t raw;
  contract_pkg::message_descriptor_t command;
  /* verilator lint_on UNUSEDSIGNAL */
  assign command = raw;
  logic told_valid, told_ready, told_bad;
  logic [63:0] told_ns, told_tag;

  tx_ring #(
      .ADDRESS_BITS(ADDRESS_BITS),
      .BYTES_MAX(64),
      .COMMANDS(1'b1)
  ) i_ring (
      .clk,
      .rst,
      .cfg_enable,
      .cfg_ring,
      .cfg_ring_mask,
      .cfg_doorbell,
      .cfg_completions(cfg_ring_completions),
      .cfg_completion_mask(cfg_ring_completion_mask),
      .read_valid(ring_read_valid),
      .read_ready(ring_read_ready),
      .read_address(ring_read_address),
      .read_bytes(ring_read_bytes),
      .s_axis_tdata(ring_tdata),
      .s_axis_tvalid(ring_tvalid),
      .s_axis_tready(ring_tready),
      .s_axis_tlast(ring_tlast),
      .s_axis_tuser(ring_tuser),
      .m_axis_tdata(),
      .m_axis_tvalid(),
      .m_axis_tready(1'b1),
      .m_axis_tlast(),
      .m_axis_tuser(),
      .m_meta_bytes(),
      .m_meta_destination(),
      .m_meta_tag(),
      .m_command_valid(command_valid),
      .m_command_ready(command_ready),
      .m_command(raw),
      .m_command_good(command_good),
      .gone_valid(told_valid),
      .gone_ready(told_ready),
      .gone_bad(told_bad),
      .gone_ns(told_ns),
      .gone_tag(told_tag),
      .write_valid(ring_write_valid),
      .write_ready(ring_write_ready),
      .write_address(ring_write_address),
      .write_data(ring_write_data),
      .write_last(ring_write_last),
      .consumed,
      .busy,
      .ring_fault,
      .count_sent,
      .count_refused(),
      .count_unreadable()
  );

  // --- a descriptor as a job; one that is wrong as a job of no kind, which is refused ---
  rdma_pkg::job_t job;
  wire reads_here = command.kind == 8'(rdma_pkg::TYPE_PUT) || command.kind == 8'(rdma_pkg::TYPE_SEND);
  wire is_known = reads_here || command.kind == 8'(rdma_pkg::TYPE_GET) || command.kind == 8'(rdma_pkg::TYPE_EVENT);
  wire is_placed = command.address[63:48] == '0 && (!reads_here || command.address[47:ADDRESS_BITS] == '0) && command.remote[63:48] == '0 &&
                   command.port[7:4] == '0;
  always_comb begin
    job = '0;
    job.kind = command_good && is_known && is_placed ? command.kind[4:0] : 5'd0;
    job.to = command.node;
    job.port = command.port[3:0];
    job.process = command.process;
    job.nonce = command.nonce;
    {job.region, job.offset} = command.remote[47:0];
    job.local_ = command.address[47:0];
    job.local_nonce = command.local_nonce;
    job.bytes = command.bytes;
    job.tag = command.tag;
  end

  // --- what is gone waits for its completion ---
  logic gone_valid, gone_ready, gone_bad;
  logic [63:0] gone_tag;
  logic [128:0] gone[GONE];  // {bad, when, tag}
  logic [GONE_BITS:0] gone_in, gone_out;
  assign gone_ready = gone_in - gone_out != (GONE_BITS + 1)'(GONE);
  assign told_valid = gone_in != gone_out;
  assign {told_bad, told_ns, told_tag} = gone[gone_out[GONE_BITS-1:0]];
  always_ff @(posedge clk) begin
    if (gone_valid && gone_ready) begin
      gone[gone_in[GONE_BITS-1:0]] <= {gone_bad, now_ns, gone_tag};
      gone_in <= gone_in + 1'b1;
    end
    if (told_valid && told_ready) gone_out <= gone_out + 1'b1;
    count_bad <= told_valid && told_ready && told_bad && !rst;
    if (rst) {gone_in, gone_out} <= '0;
  end

  rdma_port #(
      .X_BITS(X_BITS),
      .Y_BITS(Y_BITS),
      .Z_BITS(Z_BITS),
      .KEYS(KEYS),
      .GETS(GETS),
      .REQUESTS(REQUESTS),
      .SEND_WORDS(SEND_WORDS),
      .MATCH_ENTRIES(MATCH_ENTRIES),
      .TICK_CYCLES(TICK_CYCLES),
      .PAYLOAD_BYTES_MAX(PAYLOAD_BYTES_MAX),
      .REQUEST_BYTES_MAX(REQUEST_BYTES_MAX),
      .TAGS(TAGS),
      .REGIONS(REGIONS),
      .ENTRIES(ENTRIES)
  ) i_port (
      .job_valid(command_valid),
      .job_ready(command_ready),
      .ring_read_bytes(ring_read_bytes[12:0]),
      .*
  );
endmodule
