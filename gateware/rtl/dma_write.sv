// SPDX-License-Identifier: Apache-2.0
// Writes to registered memory: device addresses and data in, memory requests of the bus out, in order, never across a page.
//
// A write is 1 .. WRITE_BYTES_MAX bytes from an address that is a multiple of ALIGN_BYTES, a word of 16 bytes a cycle, each byte in the lane of its
// address; s_address and s_bytes hold from the first word to the last. A write is cut at every multiple of PAYLOAD_BYTES_MAX: each piece is one
// request of the bus. Translation goes along with each word, so that neither a cut nor a new page costs a cycle, and a word leaves
// LATENCY_CYCLES after it was taken if the bus is ready.
//
// s_last marks the last word of a write. If it comes before all of its bytes have, the write ends there: the request that is open gets zeros for what
// it lacks, a word a cycle, in which nothing is taken; what would have followed is never asked for.
//
// Contract
//   * Requests leave in the order in which their words came, so a completion written after its data stays after it.
//   * Writes of two writers may be mixed, but not within a request: s_cut says that a word ends one, or its write. s_second: whose the word is.
//   * A request whose page may not be written is left out whole: what the page table says of its first word holds for all, though the driver may
//     change the table in the middle of it. done tells of each write when its last word has left or was left out; done_fault: at least one of its
//     requests was left out.
//   * m_first with m_address and m_bytes begins a request, m_last ends it; in between m_ready may pause it.
module dma_write #(
    parameter int PAYLOAD_BYTES_MAX = 256,  // of one request: PCIe's maximum payload size [B]
    parameter int WRITE_BYTES_MAX = 16384,  // of one write [B]
    parameter int ALIGN_BYTES = 8,          // of its address: 8, or 1
    parameter int REGIONS = 8,
    parameter int ENTRIES = 2048,
    parameter int OFFSET_BITS = 40,
    parameter int TAG_BITS = 1               // goes along with a write, comes back with done
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

    input  logic                                       s_valid,
    input  logic                                       s_second,
    output logic                                       s_ready,
    input  logic [$clog2(REGIONS)+OFFSET_BITS-1:0]     s_address,
    input  logic [$clog2(WRITE_BYTES_MAX+1)-1:0]       s_bytes,
    input  logic [                              127:0] s_data,
    input  logic                                       s_last,
    input  logic [                       TAG_BITS-1:0] s_tag,
    output logic                                       s_cut,

    output logic                done,
    output logic                done_fault,
    output logic [TAG_BITS-1:0] done_tag,

    output logic                                   m_valid,
    input  logic                                   m_ready,
    output logic                                   m_first,
    output logic                                   m_last,
    output logic                                   m_gpu,
    output logic [                           63:0] m_address,
    output logic [$clog2(PAYLOAD_BYTES_MAX+1)-1:0] m_bytes,
    output logic [                          127:0] m_data,
    output logic [                           15:0] m_keep
);
  localparam int LATENCY_CYCLES = 4;
  localparam int ADDRESS_BITS = $clog2(REGIONS) + OFFSET_BITS;
  localparam int BYTES_BITS = $clog2(WRITE_BYTES_MAX + 1);
  localparam int PIECE_BITS = $clog2(PAYLOAD_BYTES_MAX + 1);
  localparam int CUT_BITS = $clog2(PAYLOAD_BYTES_MAX);

  if (PAYLOAD_BYTES_MAX < 64 || PAYLOAD_BYTES_MAX > 4096 || 2 ** CUT_BITS != PAYLOAD_BYTES_MAX) begin : g_check_payload
    $fatal(1, "PAYLOAD_BYTES_MAX must be a power of two, 64 to 4096 (instance %m)");
  end
  if (ALIGN_BYTES != 1 && ALIGN_BYTES != 8) begin : g_check_align
    $fatal(1, "ALIGN_BYTES must be 8 or 1 (instance %m)");
  end

  typedef struct packed {
    logic                  first;     // of a request
    logic                  last;      // of a request
    logic                  done;      // last of the write
    logic                  second;    // the second writer's
    logic [PIECE_BITS-1:0] bytes;     // of the request, with first
    logic [TAG_BITS-1:0]   tag;
    logic [127:0]          data;
    logic [15:0]           keep;
  } word_t;

  wire enable = !m_valid || m_ready;
  logic filling;  // the open request, after the end of its write
  logic filling_second;
  logic [TAG_BITS-1:0] filling_tag;
  wire whose = filling ? filling_second : s_second;
  assign s_ready = enable && !filling;
  wire take = enable && (filling || s_valid);

  // --- where this word goes ---
  logic [1:0] started;  // of each writer
  logic [ADDRESS_BITS-1:0] next_address[2];
  logic [BYTES_BITS-1:0] next_left[2];
  wire [ADDRESS_BITS-1:0] address = started[whose] ? next_address[whose] : s_address;
  wire [BYTES_BITS-1:0] left = started[whose] ? next_left[whose] : s_bytes;  // this word included
  wire [3:0] lane = ALIGN_BYTES == 1 ? address[3:0] : {address[3], 3'b0};  // of its first byte
  wire [4:0] lanes = 5'd16 - 5'(lane);  // that a word here may fill
  wire is_done = left <= BYTES_BITS'(lanes);
  wire [PIECE_BITS-1:0] to_cut = PIECE_BITS'(PAYLOAD_BYTES_MAX) - PIECE_BITS'(address[CUT_BITS-1:0]);

  wire ends_early = s_last && !filling && !is_done;

  word_t word;
  always_comb begin
    word.first = !started[whose] || address[CUT_BITS-1:0] == '0;
    word.last = is_done || address[CUT_BITS-1:4] == '1;
    word.done = is_done || ((filling || ends_early) && word.last);
    word.second = whose;
    word.bytes = left < BYTES_BITS'(to_cut) ? PIECE_BITS'(left) : to_cut;
    word.tag = filling ? filling_tag : s_tag;
    word.data = filling ? '0 : s_data;
    word.keep = ((is_done ? 16'(17'h1 << left[4:0]) - 16'h1 : 16'hFFFF) << lane);
  end

  always_ff @(posedge clk) begin
    if (take) begin
      started[whose] <= !word.done;
      next_address[whose] <= {address[ADDRESS_BITS-1:4] + 1'b1, 4'd0};
      next_left[whose] <= left - BYTES_BITS'(lanes);
      filling <= !word.done && (filling || ends_early);
      if (!filling) {filling_second, filling_tag} <= {s_second, s_tag};
    end
    if (rst) begin
      started <= '0;
      filling <= 1'b0;
    end
  end
  assign s_cut = word.last || ends_early;  // what is left of the request then comes from here

  // --- it waits for its translation ---
  word_t waiting[3];
  always_ff @(posedge clk) begin
    if (enable) begin
      waiting[0] <= word;
      waiting[1] <= waiting[0];
      waiting[2] <= waiting[1];
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
      .s_is_write(1'b1),
      .s_address(address),
      .m_valid(translated),
      .m_fault(fault),
      .m_gpu(gpu),
      .m_address(bus_address)
  );

  // --- out ---
  logic fault_open;          // of the request that is open
  logic [1:0] fault_before;  // in an earlier request of this writer's write
  wire refused = waiting[2].first ? fault : fault_open;
  always_ff @(posedge clk) begin
    done <= 1'b0;
    if (enable) begin
      m_valid <= translated && !refused;
      m_first <= waiting[2].first;
      m_last <= waiting[2].last;
      m_gpu <= gpu;
      m_address <= bus_address;
      m_bytes <= waiting[2].bytes;
      m_data <= waiting[2].data;
      m_keep <= waiting[2].keep;
      if (translated) begin
        done <= waiting[2].done;
        done_tag <= waiting[2].tag;
        done_fault <= refused || fault_before[waiting[2].second];
        fault_open <= refused;
        fault_before[waiting[2].second] <= !waiting[2].done && (refused || fault_before[waiting[2].second]);
      end
    end
    if (rst) begin
      m_valid <= 1'b0;
      done <= 1'b0;
      fault_before <= '0;
    end
  end

`ifndef SYNTHESIS
  logic bus_held;
  logic [127:0] bus_data;
  always_ff @(posedge clk) begin
    bus_held <= !rst && m_valid && !m_ready;
    bus_data <= m_data;
    if (!rst) begin
      if (bus_held) a_stable : assert (m_valid && m_data == bus_data);
      if (take && !started[whose]) a_aligned : assert ((ALIGN_BYTES == 1 || s_address[2:0] == '0) && s_bytes != '0);
      if (take && !filling && is_done) a_announced : assert (s_last);
      if (m_valid && m_first) a_in_page : assert (m_address[11:0] + 13'(m_bytes) <= 13'd4096);
    end
  end
`endif
endmodule
