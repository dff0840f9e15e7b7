// SPDX-License-Identifier: Apache-2.0
// Remote memory access at a local port of apenet_router: the network interface of a node. docs/design/apenet-rdma.md
//
// Contract
//   * s_axis is what the router brings (all of it is taken: m_space of that port is all ones), m_axis goes to the first stream of the same port.
//   * Jobs are those of a TX ring, taken in order; gone_* tells of each once, as for tx_ring, when its memory has been read.
//   * Keys, page table and bus: as for rdma_regions, page_table, dma_write and dma_read.
//   * A GET is answered whatever is sent: requests wait in memory of their own, REQUESTS of them. With at most GETS under way at each node, as here, none finds
//     it full if REQUESTS is GETS times the nodes.
module rdma_port #(
    parameter int X_BITS = 2,                // nodes: this many bits of each coordinate
    parameter int Y_BITS = 2,
    parameter int Z_BITS = 2,
    parameter int KEYS = 16,
    parameter int GETS = 4,                  // of this node under way
    parameter int REQUESTS = GETS << (X_BITS + Y_BITS + Z_BITS),  // of others that wait; a power of two
    parameter int TICK_CYCLES = 262144,      // a message fails when none of its packets has come for this long, to twice that
    parameter int PAYLOAD_BYTES_MAX = 256,   // of a write request [B]
    parameter int REQUEST_BYTES_MAX = 512,   // of a read request [B]
    parameter int TAGS = 32,
    parameter int REGIONS = 16,              // of the page table
    parameter int ENTRIES = 4096,
    localparam int OFFSET_BITS = rdma_pkg::OFFSET_BITS,
    localparam int ADDRESS_BITS = $clog2(REGIONS) + OFFSET_BITS
) (
    input logic clk,
    input logic rst,
    input logic [63:0] now_ns,

    input apenet_pkg::place_t at,
    input logic [3:0] own_port,

    input logic                    key_write,
    input logic [$clog2(KEYS)-1:0] key_index,
    input logic                    key_valid,
    input logic                    key_readable,
    input logic                    key_writable,
    input logic [            31:0] key_nonce,
    input logic [ADDRESS_BITS-1:0] key_start,
    input logic [   OFFSET_BITS:0] key_bytes,

    // As of page_table.
    input logic                       region_write,
    input logic [$clog2(REGIONS)-1:0] region_index,
    input logic                       region_valid,
    input logic [                4:0] region_page_shift,
    input logic [$clog2(ENTRIES)-1:0] region_first,
    input logic [  $clog2(ENTRIES):0] region_count,
    input logic                       entry_write,
    input logic [$clog2(ENTRIES)-1:0] entry_index,
    input logic [               63:0] entry_data,

    // The completion queue of what comes.
    input  logic [ADDRESS_BITS-1:0] cfg_completions,
    input  logic [            31:0] cfg_completion_mask,
    input  logic [            31:0] cfg_consumed,
    output logic [            31:0] completions_written,

    input  logic           job_valid,
    output logic           job_ready,
    input  rdma_pkg::job_t job,
    output logic           gone_valid,
    input  logic           gone_ready,
    output logic           gone_bad,
    output logic [   63:0] gone_tag,

    input  logic [127:0] s_axis_tdata,
    input  logic         s_axis_tvalid,
    output logic         s_axis_tready,
    input  logic         s_axis_tlast,
    output logic [127:0] m_axis_tdata,
    output logic         m_axis_tvalid,
    input  logic         m_axis_tready,
    output logic         m_axis_tlast,

    // Requests of the bus and answers, as of dma_write and dma_read. Writes may begin and end at any byte.
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

    output logic [rdma_pkg::COUNTS-1:0] counts,   // packets that came, by what became of them
    output logic [                15:0] missed,   // messages of which nothing came
    output logic                        count_packet,  // that left
    output logic                        count_unreadable,
    output logic                        count_refused,
    output logic                        count_reply_refused,
    output logic                        completion_fault  // an entry of the completion queue could not be written
);
  localparam int REQUEST_BITS = $clog2(REQUESTS);
  localparam int WRITE_BYTES_MAX = 8191;

  if (REQUESTS < 2 || REQUESTS != 2 ** REQUEST_BITS) begin : g_check
    $fatal(1, "REQUESTS must be a power of two from 2 (instance %m)");
  end

  // --- what comes ---
  logic [rdma_pkg::REGION_BITS-1:0] in_region, out_region;
  logic [31:0] in_nonce, out_nonce;
  logic [OFFSET_BITS-1:0] in_offset, out_offset;
  logic [rdma_pkg::BYTES_BITS-1:0] in_bytes, out_bytes;
  logic in_allowed, in_bad_key, in_bad_rights, out_allowed;
  logic [ADDRESS_BITS-1:0] in_address, out_address;

  logic look_soon, look_valid, look_ready, verdict_valid, land, leave;
  logic [4:0] look_kind;
  apenet_pkg::place_t look_source, open_to;
  logic [15:0] look_number, look_process, look_value, open_process, open_number;
  logic [7:0] look_packet, look_last;
  logic [rdma_pkg::BYTES_BITS-1:0] look_bytes;
  rdma_pkg::verdict_t verdict;
  logic open_valid, open_ready, open_room;
  logic [63:0] open_tag;
  logic event_valid, event_room, event_full;
  rdma_pkg::event_t event_;

  logic data_valid, data_ready, data_last;
  logic [ADDRESS_BITS-1:0] data_address, entry_address, out_write_address;
  logic [12:0] data_bytes;
  logic [127:0] data, entry, out_write_data;
  logic entry_valid, entry_ready, entry_last;
  logic done, done_fault, done_entry;
  logic get_valid, get_ready;
  /* verilator lint_off UNUSEDSIGNAL */  // its kind and tag are all the same
  rdma_pkg::job_t get;
  /* verilator lint_on UNUSEDSIGNAL */

  rdma_rx #(
      .ADDRESS_BITS(ADDRESS_BITS)
  ) i_rx (
      .clk,
      .rst,
      .s_axis_tdata,
      .s_axis_tvalid,
      .s_axis_tready,
      .s_axis_tlast,
      .region(in_region),
      .nonce(in_nonce),
      .offset(in_offset),
      .bytes(in_bytes),
      .allowed(in_allowed),
      .bad_key(in_bad_key),
      .bad_rights(in_bad_rights),
      .address(in_address),
      .look_soon,
      .look_valid,
      .look_ready,
      .look_kind,
      .look_source,
      .look_number,
      .look_packet,
      .look_last,
      .look_process,
      .look_value,
      .look_bytes,
      .verdict_valid,
      .verdict,
      .land,
      .leave,
      .write_valid(data_valid),
      .write_ready(data_ready),
      .write_last(data_last),
      .write_address(data_address),
      .write_bytes(data_bytes),
      .write_data(data),
      .done(done && !done_entry),
      .done_fault,
      .get_valid,
      .get_ready,
      .get,
      .counts
  );

  rdma_regions #(
      .REGIONS(KEYS),
      .ADDRESS_BITS(ADDRESS_BITS)
  ) i_regions_in (
      .clk,
      .rst,
      .key_write,
      .key_index,
      .key_valid,
      .key_readable,
      .key_writable,
      .key_nonce,
      .key_start,
      .key_bytes,
      .s_region(in_region),
      .s_nonce(in_nonce),
      .s_offset(in_offset),
      .s_bytes(in_bytes),
      .s_is_write(1'b1),
      .allowed(in_allowed),
      .bad_key(in_bad_key),
      .bad_rights(in_bad_rights),
      .bad_bounds(),
      .address(in_address)
  );

  rdma_messages #(
      .X_BITS(X_BITS),
      .Y_BITS(Y_BITS),
      .Z_BITS(Z_BITS),
      .GETS(GETS),
      .TICK_CYCLES(TICK_CYCLES)
  ) i_messages (
      .clk,
      .rst,
      .look_soon,
      .look_valid,
      .look_ready,
      .look_kind,
      .look_source,
      .look_number,
      .look_packet,
      .look_last,
      .look_process,
      .look_value,
      .look_bytes,
      .verdict_valid,
      .verdict,
      .land,
      .leave,
      .open_valid,
      .open_ready,
      .open_room,
      .open_to,
      .open_process,
      .open_tag,
      .open_number,
      .event_valid,
      .event_,
      .event_room,
      .event_full,
      .missed
  );

  rdma_completions #(
      .ADDRESS_BITS(ADDRESS_BITS)
  ) i_completions (
      .clk,
      .rst,
      .now_ns,
      .cfg_completions,
      .cfg_completion_mask,
      .cfg_consumed,
      .s_valid(event_valid),
      .s_event(event_),
      .s_room(event_room),
      .s_full(event_full),
      .m_valid(entry_valid),
      .m_ready(entry_ready),
      .m_last(entry_last),
      .m_address(entry_address),
      .m_data(entry),
      .written(completions_written)
  );

  // --- data and completions share the way to memory, a write at a time: an event is told when its data has gone this way, so it stays behind it ---
  logic open_data, open_entry, out_ready;
  wire writes_entry = open_entry || (!open_data && entry_valid);
  assign entry_ready = writes_entry && out_ready;
  assign data_ready = !writes_entry && out_ready;
  assign out_write_address = writes_entry ? entry_address : data_address;
  assign out_write_data = writes_entry ? entry : data;
  always_ff @(posedge clk) begin
    if (entry_valid && entry_ready) open_entry <= !entry_last;
    if (data_valid && data_ready) open_data <= !data_last;
    if (rst) {open_data, open_entry} <= '0;
  end

  dma_write #(
      .PAYLOAD_BYTES_MAX(PAYLOAD_BYTES_MAX),
      .WRITE_BYTES_MAX(WRITE_BYTES_MAX),
      .ALIGN_BYTES(1),
      .REGIONS(REGIONS),
      .ENTRIES(ENTRIES),
      .OFFSET_BITS(OFFSET_BITS)
  ) i_dma_write (
      .clk,
      .rst,
      .region_write,
      .region_index,
      .region_valid,
      .region_page_shift,
      .region_first,
      .region_count,
      .entry_write,
      .entry_index,
      .entry_data,
      .s_valid(writes_entry ? entry_valid : data_valid),
      .s_second(1'b0),
      .s_ready(out_ready),
      .s_address(out_write_address),
      .s_bytes(writes_entry ? 13'(contract_pkg::COMPLETION_BYTES) : data_bytes),
      .s_data(out_write_data),
      .s_last(writes_entry ? entry_last : data_last),
      .s_tag(writes_entry),
      .s_cut(),
      .done,
      .done_fault,
      .done_tag(done_entry),
      .m_valid(write_valid),
      .m_ready(write_ready),
      .m_first(write_first),
      .m_last(write_last),
      .m_gpu(write_gpu),
      .m_address(write_address),
      .m_bytes(write_bytes),
      .m_data(write_data),
      .m_keep(write_keep)
  );
  assign completion_fault = done && done_fault && done_entry;

  // --- what others ask for ---
  localparam int ASKED_BITS = 16 + 4 + 16 + 16 + 32 + rdma_pkg::REGION_BITS + OFFSET_BITS + 48 + 32 + 32;  // of a job, what is not the same in all
  logic [ASKED_BITS-1:0] requests[REQUESTS];
  logic [ASKED_BITS-1:0] waiting;
  rdma_pkg::job_t request;
  logic [REQUEST_BITS:0] asked, answered;
  logic request_valid, request_ready;
  wire loads = asked != answered && (!request_valid || request_ready);
  assign get_ready = asked - answered != (REQUEST_BITS + 1)'(REQUESTS);
  always_ff @(posedge clk) begin
    if (get_valid && get_ready)
      requests[asked[REQUEST_BITS-1:0]] <= {
        get.to, get.port, get.process, get.number, get.nonce, get.region, get.offset, get.local_, get.local_nonce, get.bytes};
    if (get_valid && get_ready) asked <= asked + 1'b1;
    if (loads) waiting <= requests[answered[REQUEST_BITS-1:0]];
    if (loads) answered <= answered + 1'b1;
    if (loads || request_ready) request_valid <= loads;
    if (rst) begin
      asked <= '0;
      answered <= '0;
      request_valid <= 1'b0;
    end
  end
  assign request = {rdma_pkg::TYPE_REPLY, waiting, 64'd0};

  // --- what is sent ---
  logic ask_valid, ask_ready, command_valid, command_ready;
  logic [ADDRESS_BITS-1:0] ask_address;
  logic [12:0] ask_bytes;
  rdma_pkg::command_t command;
  logic [127:0] brought;
  logic brought_valid, brought_ready, brought_last, brought_bad;

  rdma_regions #(
      .REGIONS(KEYS),
      .ADDRESS_BITS(ADDRESS_BITS)
  ) i_regions_out (
      .clk,
      .rst,
      .key_write,
      .key_index,
      .key_valid,
      .key_readable,
      .key_writable,
      .key_nonce,
      .key_start,
      .key_bytes,
      .s_region(out_region),
      .s_nonce(out_nonce),
      .s_offset(out_offset),
      .s_bytes(out_bytes),
      .s_is_write(1'b0),
      .allowed(out_allowed),
      .bad_key(),
      .bad_rights(),
      .bad_bounds(),
      .address(out_address)
  );

  rdma_cut #(
      .ADDRESS_BITS(ADDRESS_BITS),
      .X_BITS(X_BITS),
      .Y_BITS(Y_BITS),
      .Z_BITS(Z_BITS)
  ) i_cut (
      .clk,
      .rst,
      .at,
      .own_port,
      .s_valid(job_valid),
      .s_ready(job_ready),
      .s_job(job),
      .r_valid(request_valid),
      .r_ready(request_ready),
      .r_job(request),
      .open_room,
      .open_valid,
      .open_ready,
      .open_to,
      .open_process,
      .open_tag,
      .open_number,
      .region(out_region),
      .nonce(out_nonce),
      .offset(out_offset),
      .bytes(out_bytes),
      .allowed(out_allowed),
      .address(out_address),
      .read_valid(ask_valid),
      .read_ready(ask_ready),
      .read_address(ask_address),
      .read_bytes(ask_bytes),
      .m_valid(command_valid),
      .m_ready(command_ready),
      .m_command(command),
      .count_refused,
      .count_reply_refused
  );

  dma_read #(
      .REQUEST_BYTES_MAX(REQUEST_BYTES_MAX),
      .TAGS(TAGS),
      .READ_BYTES_MAX(8191),
      .REGIONS(REGIONS),
      .ENTRIES(ENTRIES),
      .OFFSET_BITS(OFFSET_BITS)
  ) i_dma_read (
      .clk,
      .rst,
      .region_write,
      .region_index,
      .region_valid,
      .region_page_shift,
      .region_first,
      .region_count,
      .entry_write,
      .entry_index,
      .entry_data,
      .s_valid(ask_valid),
      .s_ready(ask_ready),
      .s_address(ask_address),
      .s_bytes(ask_bytes),
      .m_valid(read_valid),
      .m_ready(read_ready),
      .m_address(read_address),
      .m_bytes(read_bytes),
      .m_tag(read_tag),
      .m_gpu(read_gpu),
      .answer_valid,
      .answer_tag,
      .answer_data,
      .answer_last,
      .answer_error,
      .m_axis_tdata(brought),
      .m_axis_tvalid(brought_valid),
      .m_axis_tready(brought_ready),
      .m_axis_tlast(brought_last),
      .m_axis_tuser(brought_bad),
      .read_fault(),
      .read_error(),
      .read_stuck()
  );

  rdma_pack i_pack (
      .clk,
      .rst,
      .s_valid(command_valid),
      .s_ready(command_ready),
      .s_command(command),
      .read_tdata(brought),
      .read_tvalid(brought_valid),
      .read_tready(brought_ready),
      .read_tlast(brought_last),
      .read_tuser(brought_bad),
      .m_axis_tdata,
      .m_axis_tvalid,
      .m_axis_tready,
      .m_axis_tlast,
      .gone_valid,
      .gone_ready,
      .gone_bad,
      .gone_tag,
      .count_packet,
      .count_unreadable
  );
endmodule
