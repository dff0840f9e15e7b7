// SPDX-License-Identifier: Apache-2.0
// Reads of registered memory: a device address and a length in, the bytes out in order, however the bus answers.
//
// A read is cut at every multiple of REQUEST_BYTES_MAX; each piece is one request with a tag of its own, and up to TAGS are in flight, of one read or
// of several. Answers of one request come in order, those of different ones in any. They wait in a slot for each tag until it is their turn.
//
// Contract
//   * Reads come out in the order in which they were asked for. m_axis_tuser with m_axis_tlast: the bytes are not to be trusted, because a
//     page may not be read (then nothing was asked of the bus for it) or the bus answered with an error.
//   * A read is 1 .. READ_BYTES_MAX bytes from an address that is a multiple of 16; words of 16 bytes.
//   * A request that is never answered holds up all reads behind it: read_stuck says so after TIMEOUT_CYCLES, and only a reset ends it.
module dma_read #(
    parameter int REQUEST_BYTES_MAX = 512,  // of one request: PCIe's maximum read request size [B]
    parameter int TAGS = 32,
    parameter int READ_BYTES_MAX = 16384,   // of one read [B]
    parameter int REGIONS = 8,
    parameter int ENTRIES = 2048,
    parameter int OFFSET_BITS = 40,
    parameter int TIMEOUT_CYCLES = 1 << 20,
    localparam int ADDRESS_BITS = $clog2(REGIONS) + OFFSET_BITS,
    localparam int BYTES_BITS = $clog2(READ_BYTES_MAX + 1),
    localparam int TAG_BITS = $clog2(TAGS),
    localparam int PIECE_BITS = $clog2(REQUEST_BYTES_MAX + 1)
) (
    input logic clk,
    input logic rst,

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

    input  logic                    s_valid,
    output logic                    s_ready,
    input  logic [ADDRESS_BITS-1:0] s_address,
    input  logic [  BYTES_BITS-1:0] s_bytes,

    // Requests of the bus.
    output logic                  m_valid,
    input  logic                  m_ready,
    output logic [          63:0] m_address,
    output logic [PIECE_BITS-1:0] m_bytes,
    output logic [  TAG_BITS-1:0] m_tag,
    output logic                  m_gpu,

    // Its answers, a word a cycle, always taken. The first word of a request holds its first byte in lane 0.
    input logic                answer_valid,
    input logic [TAG_BITS-1:0] answer_tag,
    input logic [       127:0] answer_data,
    input logic                answer_last,   // of the request
    input logic                answer_error,  // with answer_last

    output logic [           127:0] m_axis_tdata,
    output logic                    m_axis_tvalid,
    input  logic                    m_axis_tready,
    output logic                    m_axis_tlast,
    output logic                    m_axis_tuser,

    output logic read_fault,  // a pulse for each request that the page table refused
    output logic read_error,  // a pulse for each request that the bus answered with an error
    output logic read_stuck
);
  localparam int SLOT_WORDS = REQUEST_BYTES_MAX / 16;
  localparam int SLOT_BITS = $clog2(SLOT_WORDS);
  localparam int CUT_BITS = $clog2(REQUEST_BYTES_MAX);

  if (REQUEST_BYTES_MAX < 64 || REQUEST_BYTES_MAX > 4096 || 2 ** CUT_BITS != REQUEST_BYTES_MAX) begin : g_check_request
    $fatal(1, "REQUEST_BYTES_MAX must be a power of two, 64 to 4096 (instance %m)");
  end
  if (TAGS < 2 || 2 ** TAG_BITS != TAGS) begin : g_check_tags
    $fatal(1, "TAGS must be a power of two, at least 2 (instance %m)");
  end

  // What is known of a request until its words have left.
  typedef struct packed {
    logic [PIECE_BITS-1:0] bytes;
    logic                  last;        // of the read
  } request_t;

  request_t requests[TAGS];
  logic [127:0] slots[TAGS*SLOT_WORDS];
  logic [TAGS-1:0] answered, bad;
  logic [SLOT_BITS-1:0] filled[TAGS];  // where the next word of the answer goes

  // --- a read is taken at once, and cut into requests as tags are free; each takes the next one ---
  logic [TAG_BITS:0] asked, left_slots;  // tags given out and taken back; one bit more than a tag
  logic cutting;
  logic [ADDRESS_BITS-1:0] address;
  logic [BYTES_BITS-1:0] left;
  wire [PIECE_BITS-1:0] to_cut = PIECE_BITS'(REQUEST_BYTES_MAX) - PIECE_BITS'(address[CUT_BITS-1:0]);
  wire is_last = left <= BYTES_BITS'(to_cut);
  wire [PIECE_BITS-1:0] piece = is_last ? PIECE_BITS'(left) : to_cut;
  wire tag_free = asked - left_slots != (TAG_BITS + 1)'(TAGS);
  wire enable = !m_valid || m_ready;
  wire take = cutting && tag_free && enable;
  wire [TAG_BITS-1:0] tag = asked[TAG_BITS-1:0];
  assign s_ready = !cutting || (take && is_last);

  always_ff @(posedge clk) begin
    if (take) begin
      cutting <= !is_last;
      address <= {address[ADDRESS_BITS-1:CUT_BITS] + 1'b1, CUT_BITS'(0)};
      left <= left - BYTES_BITS'(to_cut);  // with the last one nothing is left, whatever this says
      requests[tag] <= '{piece, is_last};
      asked <= asked + 1'b1;
    end
    if (s_valid && s_ready) begin
      cutting <= 1'b1;
      address <= s_address;
      left <= s_bytes;
    end
    if (rst) begin
      cutting <= 1'b0;
      asked <= '0;
    end
  end

  logic translated, fault, gpu;
  logic [63:0] bus_address;
  page_table #(
      .REGIONS(REGIONS),
      .ENTRIES(ENTRIES),
      .OFFSET_BITS(OFFSET_BITS)
  ) i_page_table (
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
      .enable,
      .s_valid(take),
      .s_is_write(1'b0),
      .s_address(address),
      .m_valid(translated),
      .m_fault(fault),
      .m_gpu(gpu),
      .m_address(bus_address)
  );

  typedef struct packed {
    logic [PIECE_BITS-1:0] bytes;
    logic [TAG_BITS-1:0]   tag;
  } waiting_t;
  waiting_t waiting[3];
  wire refused = enable && translated && fault;
  always_ff @(posedge clk) begin
    read_fault <= refused;
    if (enable) begin
      waiting[0] <= '{piece, tag};
      waiting[1] <= waiting[0];
      waiting[2] <= waiting[1];
      m_valid <= translated && !fault;
      m_address <= bus_address;
      m_gpu <= gpu;
      m_bytes <= waiting[2].bytes;
      m_tag <= waiting[2].tag;
    end
    if (rst) begin
      m_valid <= 1'b0;
      read_fault <= 1'b0;
    end
  end

  // --- answers into their slots ---
  always_ff @(posedge clk) begin
    if (answer_valid) slots[{answer_tag, filled[answer_tag]}] <= answer_data;
    read_error <= answer_valid && answer_last && answer_error;
    if (answer_valid) begin
      filled[answer_tag] <= filled[answer_tag] + 1'b1;
      if (answer_last) begin
        answered[answer_tag] <= 1'b1;
        bad[answer_tag] <= answer_error;
      end
    end
    if (refused) begin  // never on the bus, so no answer comes
      answered[waiting[2].tag] <= 1'b1;
      bad[waiting[2].tag] <= 1'b1;
    end
    if (take) begin
      answered[tag] <= 1'b0;
      filled[tag] <= '0;
    end
    if (rst) begin
      answered <= '0;
      read_error <= 1'b0;
    end
  end

  // --- out, tag by tag ---
  wire [TAG_BITS-1:0] head = left_slots[TAG_BITS-1:0];
  wire head_there = asked != left_slots && answered[head];
  logic [SLOT_BITS-1:0] word;
  logic bad_before;  // an earlier request of this read was bad
  wire fetch = head_there && (!m_axis_tvalid || m_axis_tready);
  wire last_word = (PIECE_BITS'(word) + PIECE_BITS'(1)) << 4 >= requests[head].bytes;
  always_ff @(posedge clk) begin
    if (m_axis_tready) m_axis_tvalid <= 1'b0;
    if (fetch) begin
      m_axis_tvalid <= 1'b1;
      m_axis_tdata <= slots[{head, word}];
      m_axis_tlast <= last_word && requests[head].last;
      m_axis_tuser <= bad[head] || bad_before;
      word <= last_word ? '0 : word + 1'b1;
      if (last_word) begin
        left_slots <= left_slots + 1'b1;
        bad_before <= !requests[head].last && (bad[head] || bad_before);
      end
    end
    if (rst) begin
      m_axis_tvalid <= 1'b0;
      word <= '0;
      left_slots <= '0;
      bad_before <= 1'b0;
    end
  end

  // --- an answer that does not come ---
  logic [$clog2(TIMEOUT_CYCLES+1)-1:0] waited;
  always_ff @(posedge clk) begin
    if (rst || asked == left_slots || head_there) waited <= '0;
    else if (!read_stuck) waited <= waited + 1'b1;
  end
  assign read_stuck = int'(waited) == TIMEOUT_CYCLES;

`ifndef SYNTHESIS
  logic [TAGS-1:0] on_bus;
  always_ff @(posedge clk) begin
    if (m_valid && m_ready) on_bus[m_tag] <= 1'b1;
    if (answer_valid && answer_last) on_bus[answer_tag] <= 1'b0;
    if (rst) on_bus <= '0;
    else begin
      if (s_valid) a_aligned : assert (s_address[3:0] == '0 && s_bytes != '0);
      if (m_valid) a_in_page : assert (m_address[11:0] + 13'(m_bytes) <= 13'd4096);
      if (answer_valid) a_asked : assert (on_bus[answer_tag]);
      if (answer_valid)
        a_length :
        assert (answer_last == ((PIECE_BITS'(filled[answer_tag]) + PIECE_BITS'(1)) << 4 >= requests[answer_tag].bytes));
    end
  end
`endif
endmodule
