// SPDX-License-Identifier: Apache-2.0
// Translation of device addresses to bus addresses, in logic: every look-up takes LATENCY_CYCLES, hit or not, and one may begin each cycle.
//
// Terms
//   device address  {region, offset}: what the engines of the NIC compute with. An offset is less than 2^OFFSET_BITS.
//   region          registered memory, of pages of one size: 4 KiB, 64 KiB or 2 MiB (page_shift 12, 16, 21). Its pages are entries
//                   first .. first + count - 1 of the table.
//   entry           {bus page [63:12], 8 unused, gpu, writable, readable, valid}: where a page lies, in the host's memory or behind a GPU's
//                   aperture, and what may be done there. The low bits of a bus page that its size covers are not looked at.
//
// Contract
//   * A fault (no such region, beyond its pages, entry not valid, not permitted) comes out at the cycle where the address would.
//   * Nothing moves while `enable` is low.
//   * Entries and regions are written by the driver before they are used. A look-up that meets a write of its own entry sees either.
module page_table #(
    parameter int REGIONS = 8,
    parameter int ENTRIES = 2048,     // pages of all regions
    parameter int OFFSET_BITS = 40    // of a device address [bits]
) (
    input logic clk,
    input logic rst,

    input logic                       region_write,
    input logic [$clog2(REGIONS)-1:0] region_index,
    input logic                       region_valid,
    input logic [                4:0] region_page_shift,
    input logic [$clog2(ENTRIES)-1:0] region_first,
    input logic [  $clog2(ENTRIES):0] region_count,

    input logic                       entry_write,
    input logic [$clog2(ENTRIES)-1:0] entry_index,
    input logic [               63:0] entry_data,

    input  logic                                       enable,
    input  logic                                       s_valid,
    input  logic                                       s_is_write,
    input  logic [$clog2(REGIONS)+OFFSET_BITS-1:0] s_address,
    output logic                                       m_valid,
    output logic                                       m_fault,
    output logic                                       m_gpu,
    output logic [                               63:0] m_address
);
  localparam int REGION_BITS = $clog2(REGIONS);
  localparam int ENTRY_BITS = $clog2(ENTRIES);
  localparam int PAGE_BITS = OFFSET_BITS - 12;  // of a page number, at most
  localparam int VALID = 0, READABLE = 1, WRITABLE = 2, GPU = 3;

  if (REGIONS < 2 || ENTRIES < 2 || 2 ** ENTRY_BITS != ENTRIES || 2 ** REGION_BITS != REGIONS) begin : g_check_counts
    $fatal(1, "REGIONS and ENTRIES must be powers of two, at least 2 (instance %m)");
  end
  if (OFFSET_BITS < 22 || OFFSET_BITS > 48) begin : g_check_offset
    $fatal(1, "OFFSET_BITS must be 22 to 48 (instance %m)");
  end

  typedef struct packed {
    logic                  valid;
    logic [4:0]            page_shift;
    logic [ENTRY_BITS-1:0] first;
    logic [ENTRY_BITS:0]   count;
  } region_t;

  region_t regions[REGIONS];
  logic [63:0] entries[ENTRIES];

  always_ff @(posedge clk) begin
    if (region_write) regions[region_index] <= '{region_valid, region_page_shift, region_first, region_count};
    if (rst) for (int r = 0; r < REGIONS; r++) regions[r].valid <= 1'b0;
  end
  always_ff @(posedge clk) if (entry_write) entries[entry_index] <= entry_data;

  // --- cycle 1: the region ---
  region_t region;
  logic valid_1, write_1;
  logic [OFFSET_BITS-1:0] offset_1;
  // --- cycle 2: number of the page ---
  logic valid_2, write_2, inside_2;
  logic [ENTRY_BITS-1:0] index_2;
  logic [4:0] page_shift_2;
  logic [20:0] low_2;
  // --- cycle 3: its entry ---
  logic valid_3, write_3, inside_3;
  logic [63:0] entry_3;
  logic [4:0] page_shift_3;
  logic [20:0] low_3;

  wire [PAGE_BITS-1:0] page = region.page_shift == 5'd21 ? PAGE_BITS'(offset_1 >> 21) :
                              region.page_shift == 5'd16 ? PAGE_BITS'(offset_1 >> 16) : PAGE_BITS'(offset_1 >> 12);

  always_ff @(posedge clk) begin
    if (enable) begin
      valid_1 <= s_valid;
      write_1 <= s_is_write;
      offset_1 <= s_address[OFFSET_BITS-1:0];
      region <= regions[s_address[OFFSET_BITS+:REGION_BITS]];

      valid_2 <= valid_1;
      write_2 <= write_1;
      inside_2 <= region.valid && page < PAGE_BITS'(region.count);
      index_2 <= region.first + ENTRY_BITS'(page);
      page_shift_2 <= region.page_shift;
      low_2 <= offset_1[20:0];

      valid_3 <= valid_2;
      write_3 <= write_2;
      inside_3 <= inside_2;
      entry_3 <= entries[index_2];
      page_shift_3 <= page_shift_2;
      low_3 <= low_2;
    end
    if (rst) begin
      valid_1 <= 1'b0;
      valid_2 <= 1'b0;
      valid_3 <= 1'b0;
    end
  end

  logic [63:0] low_mask;
  always_comb begin
    unique case (page_shift_3)
      5'd21: low_mask = 64'h1F_FFFF;
      5'd16: low_mask = 64'hFFFF;
      default: low_mask = 64'hFFF;
    endcase
  end
  assign m_valid = valid_3;
  assign m_fault = !(inside_3 && entry_3[VALID] && (write_3 ? entry_3[WRITABLE] : entry_3[READABLE]));
  assign m_gpu = entry_3[GPU];
  assign m_address = (entry_3 & ~low_mask) | (64'(low_3) & low_mask);

`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst && region_write && region_valid) begin
      a_page_shift : assert (region_page_shift inside {5'd12, 5'd16, 5'd21});
      a_inside : assert (int'(region_first) + int'(region_count) <= ENTRIES);
    end
  end
`endif
endmodule
