// SPDX-License-Identifier: Apache-2.0
// Remote memory access at a local port of apenet_router: the network interface of a node. docs/design/apenet-rdma.md
//
// Contract
//   * s_axis is what the router brings (all of it is taken: m_space of that port is all ones), m_axis goes to the first stream of the same port.
//   * Jobs are taken in order; gone_* tells of each once, as for tx_ring, when its memory has been read.
//   * The reads and writes of a ring (ring_*, as of tx_ring) take turns with those of messages, a read or a write each.
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
    parameter int SEND_WORDS = 1024,         // of SENDs that wait for their CLOP [16 B]; a power of two
    parameter int MATCH_ENTRIES = 16,        // of SENDs
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
    input logic [63:0] now_cycles,

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

    // Which SENDs are taken, and where they go, as of rdma_sends; and those that came.
    input  logic                            match_write,
    input  logic [$clog2(MATCH_ENTRIES)-1:0] match_index,
    input  logic                            match_enable,
    input  logic [15:0]                     match_process,
    input  apenet_pkg::place_t              match_sender,
    input  apenet_pkg::place_t              match_sender_mask,
    input  logic [port_pkg::ROUTE_BITS-1:0] match_route,
    input  logic [1:0]                      match_clop,
    input  logic [15:0]                     match_source,
    input  logic                            match_counts_events,
    output logic [127:0]                    payload_tdata,
    output logic [ 15:0]                    payload_tkeep,
    output logic                            payload_tvalid,
    input  logic                            payload_tready,
    output logic                            payload_tlast,
    output port_pkg::routed_t               payload_meta,

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

    input  logic                    ring_read_valid,
    output logic                    ring_read_ready,
    input  logic [ADDRESS_BITS-1:0] ring_read_address,
    input  logic [            12:0] ring_read_bytes,
    output logic [           127:0] ring_tdata,
    output logic                    ring_tvalid,
    input  logic                    ring_tready,
    output logic                    ring_tlast,
    output logic                    ring_tuser,
    input  logic                    ring_write_valid,
    output logic                    ring_write_ready,
    input  logic                    ring_write_last,
    input  logic [ADDRESS_BITS-1:0] ring_write_address,
    input  logic [           127:0] ring_write_data,

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
    output logic                        completion_fault  // an entry of a completion queue could not be written
);
  localparam int REQUEST_BITS = $clog2(REQUESTS);
  localparam int WRITE_BYTES_MAX = 8191;
  localparam logic [1:0] DATA = 2'd0, ENTRY = 2'd1, RING = 2'd2;  // whose write to memory it is

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
  logic done, done_fault;
  logic [1:0] done_whose;
  logic get_valid, get_ready;
  /* verilator lint_off UNUSEDSIGNAL */  // its kind and tag are all the same
  rdma_pkg::job_t get;
  /* verilator lint_on UNUSEDSIGNAL */

  logic send_begins, send_valid, send_ends, send_good, send_wanted, send_room;
  apenet_pkg::header_t send_header;

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
      .send_begins,
      .send_header,
      .send_valid,
      .send_ends,
      .send_good,
      .send_wanted,
      .send_room,
      .write_valid(data_valid),
      .write_ready(data_ready),
      .write_last(data_last),
      .write_address(data_address),
      .write_bytes(data_bytes),
      .write_data(data),
      .done(done && done_whose == DATA),
      .done_fault,
      .get_valid,
      .get_ready,
      .get,
      .counts
  );

  rdma_sends #(
      .DEPTH_WORDS(SEND_WORDS),
      .MATCH_ENTRIES(MATCH_ENTRIES)
  ) i_sends (
      .clk,
      .rst,
      .now_ns,
      .now_cycles,
      .match_write,
      .match_index,
      .match_enable,
      .match_process,
      .match_sender,
      .match_sender_mask,
      .match_route,
      .match_clop,
      .match_source,
      .match_counts_events,
      .s_begins(send_begins),
      .s_header(send_header),
      .s_valid(send_valid),
      .s_data(s_axis_tdata),
      .s_ends(send_ends),
      .s_good(send_good),
      .wanted(send_wanted),
      .room(send_room),
      .m_axis_tdata(payload_tdata),
      .m_axis_tkeep(payload_tkeep),
      .m_axis_tvalid(payload_tvalid),
      .m_axis_tready(payload_tready),
      .m_axis_tlast(payload_tlast),
      .m_meta(payload_meta)
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

  // --- data, completions and those of the ring share the way to memory, a write at a time: an event is told when its data has gone this way, so it stays behind it ---
  logic open, out_ready, out_valid, out_last, ring_next;
  logic [1:0] open_whose, whose;
  always_comb begin
    whose = DATA;
    if (open) whose = open_whose;
    else if (entry_valid && !(ring_write_valid && ring_next)) whose = ENTRY;
    else if (ring_write_valid) whose = RING;
  end
  assign entry_ready = whose == ENTRY && out_ready;
  assign ring_write_ready = whose == RING && out_ready;
  assign data_ready = whose == DATA && out_ready;
  assign out_valid = whose == ENTRY ? entry_valid : whose == RING ? ring_write_valid : data_valid;
  assign out_last = whose == ENTRY ? entry_last : whose == RING ? ring_write_last : data_last;
  assign out_write_address = whose == ENTRY ? entry_address : whose == RING ? ring_write_address : data_address;
  assign out_write_data = whose == ENTRY ? entry : whose == RING ? ring_write_data : data;
  always_ff @(posedge clk) begin
    if (out_valid && out_ready) begin
      open <= !out_last;
      open_whose <= whose;
      if (whose != DATA) ring_next <= whose == ENTRY;
    end
    if (rst) {open, ring_next} <= '0;
  end

  dma_write #(
      .PAYLOAD_BYTES_MAX(PAYLOAD_BYTES_MAX),
      .WRITE_BYTES_MAX(WRITE_BYTES_MAX),
      .ALIGN_BYTES(1),
      .REGIONS(REGIONS),
      .ENTRIES(ENTRIES),
      .OFFSET_BITS(OFFSET_BITS),
      .TAG_BITS(2)
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
      .s_valid(out_valid),
      .s_second(1'b0),
      .s_ready(out_ready),
      .s_address(out_write_address),
      .s_bytes(whose == DATA ? data_bytes : 13'(contract_pkg::COMPLETION_BYTES)),
      .s_data(out_write_data),
      .s_last(out_last),
      .s_tag(whose),
      .s_cut(),
      .done,
      .done_fault,
      .done_tag(done_whose),
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
  assign completion_fault = done && done_fault && done_whose != DATA;

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
  logic brought_valid, brought_ready, brought_last, brought_bad, pack_ready;

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

  // --- reads of both, brought in the order in which they were asked for ---
  localparam int READS = 2 * TAGS;  // more than there can be: each has a tag, but for the one that is cut and the one that leaves
  localparam int READ_BITS = $clog2(READS);
  logic of_ring[READS];
  logic [READ_BITS-1:0] reads_in, reads_out;
  logic ring_had, read_taken, brings_ring;
  wire asks_ring = ring_read_valid && !(ask_valid && ring_had);
  wire asks = ask_valid || ring_read_valid;
  assign ask_ready = read_taken && !asks_ring;
  assign ring_read_ready = read_taken && asks_ring;
  assign ring_tdata = brought;
  assign ring_tvalid = brought_valid && brings_ring;
  assign ring_tlast = brought_last;
  assign ring_tuser = brought_bad;
  assign brings_ring = of_ring[reads_out];
  assign brought_ready = brings_ring ? ring_tready : pack_ready;
  always_ff @(posedge clk) begin
    if (asks && read_taken) begin
      of_ring[reads_in] <= asks_ring;
      reads_in <= reads_in + 1'b1;
      ring_had <= asks_ring;
    end
    if (brought_valid && brought_ready && brought_last) reads_out <= reads_out + 1'b1;
    if (rst) {reads_in, reads_out, ring_had} <= '0;
  end

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
      .s_valid(asks),
      .s_ready(read_taken),
      .s_address(asks_ring ? ring_read_address : ask_address),
      .s_bytes(asks_ring ? ring_read_bytes : ask_bytes),
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
      .read_tvalid(brought_valid && !brings_ring),
      .read_tready(pack_ready),
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
