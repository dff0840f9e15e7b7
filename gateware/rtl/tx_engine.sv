// SPDX-License-Identifier: Apache-2.0
// The sending engine: descriptors of a TX ring in memory, packets for the encapsulation out, sent completions back. tx_ring knows the ring, dma_read brings
// its descriptors and payloads, tx_fifo keeps a packet until it is whole.
module tx_engine #(
    parameter int BYTES_MAX = 9000,          // of a payload [B]
    parameter int DESTINATIONS = 16,
    parameter int FIFO_WORDS = 1024,         // [16 B]
    parameter int FIFO_PACKETS = 64,
    parameter int REQUEST_BYTES_MAX = 512,   // of a read request [B]
    parameter int TAGS = 32,
    parameter int TIMEOUT_CYCLES = 1 << 20,  // until read_stuck
    parameter int REGIONS = 8,
    parameter int ENTRIES = 2048,
    parameter int OFFSET_BITS = 40,
    localparam int ADDRESS_BITS = $clog2(REGIONS) + OFFSET_BITS,
    localparam int BYTES_BITS = $clog2(BYTES_MAX + 1),
    localparam int DESTINATION_BITS = $clog2(DESTINATIONS),
    localparam int TAG_BITS = $clog2(TAGS)
) (
    input logic clk,
    input logic rst,
    input logic [63:0] now_ns,

    // As of tx_ring.
    input logic                    cfg_enable,
    input logic [ADDRESS_BITS-1:0] cfg_ring,
    input logic [            31:0] cfg_ring_mask,
    input logic [            31:0] cfg_doorbell,
    input logic [ADDRESS_BITS-1:0] cfg_completions,
    input logic [            31:0] cfg_completion_mask,

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

    // Read requests of the bus and its answers, as of dma_read.
    output logic                                   read_valid,
    input  logic                                   read_ready,
    output logic [                           63:0] read_address,
    output logic [$clog2(REQUEST_BYTES_MAX+1)-1:0] read_bytes,
    output logic [                   TAG_BITS-1:0] read_tag,
    output logic                                   read_gpu,
    input  logic                                   answer_valid,
    input  logic [                   TAG_BITS-1:0] answer_tag,
    input  logic [                          127:0] answer_data,
    input  logic                                   answer_last,
    input  logic                                   answer_error,

    // Completions, to dma_write.
    output logic                    write_valid,
    input  logic                    write_ready,
    output logic [ADDRESS_BITS-1:0] write_address,
    output logic [           127:0] write_data,
    output logic                    write_last,
    output logic                    write_urgent,  // half of the room for what waits to be written is taken

    // Payloads, without a pause within a packet as long as tready stays; meta from the first word to the last.
    output logic [                63:0] m_axis_tdata,
    output logic [                 7:0] m_axis_tkeep,
    output logic                        m_axis_tvalid,
    input  logic                        m_axis_tready,
    output logic                        m_axis_tlast,
    output logic [      BYTES_BITS-1:0] m_meta_bytes,
    output logic [DESTINATION_BITS-1:0] m_meta_destination,

    output logic [31:0] consumed,
    output logic        busy,
    output logic        ring_fault,
    output logic        read_stuck,
    output logic        count_sent,
    output logic        count_refused,
    output logic        count_unreadable,
    output logic        count_read_fault,
    output logic        count_read_error
);
  localparam int GONE = 16;  // packets whose completion is to be written
  localparam int GONE_BITS = $clog2(GONE);

  logic ask_valid, ask_ready;
  logic [ADDRESS_BITS-1:0] ask_address;
  logic [13:0] ask_bytes;
  logic [127:0] brought_data, whole_data;
  logic brought_valid, brought_ready, brought_last, brought_bad;

  dma_read #(
      .REQUEST_BYTES_MAX(REQUEST_BYTES_MAX),
      .TAGS(TAGS),
      .READ_BYTES_MAX(16383),
      .TIMEOUT_CYCLES(TIMEOUT_CYCLES),
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
      .m_axis_tdata(brought_data),
      .m_axis_tvalid(brought_valid),
      .m_axis_tready(brought_ready),
      .m_axis_tlast(brought_last),
      .m_axis_tuser(brought_bad),
      .read_fault(count_read_fault),
      .read_error(count_read_error),
      .read_stuck
  );

  typedef struct packed {
    logic [DESTINATION_BITS-1:0] destination;
    logic [63:0]                 tag;
  } meta_t;
  meta_t meta_in, meta;
  logic packet_valid, packet_ready, packet_last, packet_bad;
  logic [BYTES_BITS-1:0] packet_bytes;
  logic gone_valid, gone_ready, gone_bad;
  logic [63:0] gone_ns, gone_tag;

  tx_ring #(
      .ADDRESS_BITS(ADDRESS_BITS),
      .BYTES_MAX(BYTES_MAX),
      .DESTINATIONS(DESTINATIONS)
  ) i_tx_ring (
      .clk,
      .rst,
      .cfg_enable,
      .cfg_ring,
      .cfg_ring_mask,
      .cfg_doorbell,
      .cfg_completions,
      .cfg_completion_mask,
      .read_valid(ask_valid),
      .read_ready(ask_ready),
      .read_address(ask_address),
      .read_bytes(ask_bytes),
      .s_axis_tdata(brought_data),
      .s_axis_tvalid(brought_valid),
      .s_axis_tready(brought_ready),
      .s_axis_tlast(brought_last),
      .s_axis_tuser(brought_bad),
      .m_axis_tdata(whole_data),
      .m_axis_tvalid(packet_valid),
      .m_axis_tready(packet_ready),
      .m_axis_tlast(packet_last),
      .m_axis_tuser(packet_bad),
      .m_meta_bytes(packet_bytes),
      .m_meta_destination(meta_in.destination),
      .m_meta_tag(meta_in.tag),
      .m_command_valid(),
      .m_command_ready(1'b0),
      .m_command(),
      .m_command_good(),
      .gone_valid,
      .gone_ready,
      .gone_bad,
      .gone_ns,
      .gone_tag,
      .write_valid,
      .write_ready,
      .write_address,
      .write_data,
      .write_last,
      .consumed,
      .busy,
      .ring_fault,
      .count_sent,
      .count_refused,
      .count_unreadable
  );

  // --- what is gone waits for its completion; a packet begins only if there is room for that ---
  logic [128:0] gone[GONE];  // {bad, when it left, tag}
  logic [GONE_BITS:0] gone_in, gone_out;
  logic in_packet;
  wire gone_free = gone_in - gone_out != (GONE_BITS + 1)'(GONE);
  wire may_go = in_packet || gone_free;

  logic offered, offered_bad;
  logic take_bad, leaves_last;
  tx_fifo #(
      .WORDS(FIFO_WORDS),
      .PACKETS(FIFO_PACKETS),
      .META_BITS($bits(meta_t)),
      .BYTES_MAX(BYTES_MAX)
  ) i_tx_fifo (
      .clk,
      .rst,
      .s_axis_tdata(whole_data),
      .s_axis_tvalid(packet_valid),
      .s_axis_tready(packet_ready),
      .s_axis_tlast(packet_last),
      .s_axis_tuser(packet_bad),
      .s_meta_bytes(packet_bytes),
      .s_meta(meta_in),
      .m_axis_tdata,
      .m_axis_tkeep,
      .m_axis_tvalid(offered),
      .m_axis_tready(m_axis_tready && may_go),
      .m_axis_tlast,
      .m_meta_bytes,
      .m_meta(meta),
      .m_bad_valid(offered_bad),
      .m_bad_ready(take_bad)
  );
  assign m_meta_destination = meta.destination;

  assign m_axis_tvalid = offered && may_go;
  assign leaves_last = m_axis_tvalid && m_axis_tready && m_axis_tlast;
  assign take_bad = offered_bad && gone_free;
  assign gone_valid = gone_in != gone_out;
  assign {gone_bad, gone_ns, gone_tag} = gone[gone_out[GONE_BITS-1:0]];
  always_ff @(posedge clk) begin
    if (m_axis_tvalid && m_axis_tready) in_packet <= !m_axis_tlast;
    if (leaves_last || take_bad) begin
      gone[gone_in[GONE_BITS-1:0]] <= {take_bad, now_ns, meta.tag};
      gone_in <= gone_in + 1'b1;
    end
    if (gone_ready) gone_out <= gone_out + 1'b1;
    write_urgent <= gone_in - gone_out >= (GONE_BITS + 1)'(GONE / 2);
    if (rst) begin
      in_packet <= 1'b0;
      gone_in <= '0;
      gone_out <= '0;
    end
  end
endmodule
