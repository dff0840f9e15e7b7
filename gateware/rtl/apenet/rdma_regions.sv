// SPDX-License-Identifier: Apache-2.0
// Who may touch what: regions of memory that the driver has registered, each with a nonce that no one can guess. Every look-up takes LATENCY_CYCLES, whatever
// comes of it, and one may begin each cycle.
//
// Terms
//   region   `bytes` of memory from the device address `start` on, a multiple of 16, that remote nodes may read, or write, or both.
//   nonce    a random number that the driver makes for each registration, and gives to those who may use it: {region, nonce} is the region's key.
//
// Contract
//   * `allowed` and `address` come out LATENCY_CYCLES after what was asked. If not allowed, one of bad_key, bad_rights and bad_bounds is up, the first that holds.
//   * A look-up sees the table as it stood in the cycle in which it began. So what is asked after a region was taken away is refused, and what was asked before
//     is not: who was allowed to may end what it asked for.
module rdma_regions #(
    parameter int REGIONS = 16,       // a power of two, 256 at most
    parameter int ADDRESS_BITS = 44,  // of a device address
    localparam int INDEX_BITS = $clog2(REGIONS),
    localparam int OFFSET_BITS = rdma_pkg::OFFSET_BITS,
    localparam int BYTES_BITS = rdma_pkg::BYTES_BITS
) (
    input logic clk,
    input logic rst,

    input logic                    key_write,
    input logic [  INDEX_BITS-1:0] key_index,
    input logic                    key_valid,
    input logic                    key_readable,
    input logic                    key_writable,
    input logic [            31:0] key_nonce,
    input logic [ADDRESS_BITS-1:0] key_start,
    input logic [   OFFSET_BITS:0] key_bytes,

    input logic [rdma_pkg::REGION_BITS-1:0] s_region,
    input logic [                     31:0] s_nonce,
    input logic [          OFFSET_BITS-1:0] s_offset,
    input logic [           BYTES_BITS-1:0] s_bytes,
    input logic                             s_is_write,

    output logic                    allowed,
    output logic                    bad_key,
    output logic                    bad_rights,
    output logic                    bad_bounds,
    output logic [ADDRESS_BITS-1:0] address
);
  localparam int LATENCY_CYCLES = 2;

  if (REGIONS < 2 || REGIONS > 2 ** rdma_pkg::REGION_BITS || REGIONS != 2 ** INDEX_BITS) begin : g_check
    $fatal(1, "REGIONS must be a power of two, 2 to 256 (instance %m)");
  end

  typedef struct packed {
    logic                    readable;
    logic                    writable;
    logic [31:0]             nonce;
    logic [ADDRESS_BITS-1:0] start;
    logic [OFFSET_BITS:0]    bytes;
  } region_t;
  region_t regions[REGIONS];
  logic [REGIONS-1:0] valid;
  always_ff @(posedge clk) begin
    if (key_write) regions[key_index] <= '{key_readable, key_writable, key_nonce, key_start, key_bytes};
    if (key_write) valid[key_index] <= key_valid;
    if (rst) valid <= '0;
  end

  // --- cycle 1: the region, and where the bytes end ---
  region_t region;
  logic there, is_write;
  logic [31:0] nonce;
  logic [OFFSET_BITS-1:0] offset;
  logic [OFFSET_BITS:0] ends;
  wire [INDEX_BITS-1:0] index = s_region[INDEX_BITS-1:0];
  always_ff @(posedge clk) begin
    region <= regions[index];
    there <= valid[index] && (s_region >> INDEX_BITS) == '0;
    nonce <= s_nonce;
    is_write <= s_is_write;
    offset <= s_offset;
    ends <= (OFFSET_BITS + 1)'(s_offset) + (OFFSET_BITS + 1)'(s_bytes);
  end

  // --- cycle 2 ---
  wire key = there && nonce == region.nonce;
  wire rights = is_write ? region.writable : region.readable;
  wire bounds = ends <= region.bytes;
  always_ff @(posedge clk) begin
    allowed <= key && rights && bounds;
    bad_key <= !key;
    bad_rights <= key && !rights;
    bad_bounds <= key && rights && !bounds;
    address <= region.start + ADDRESS_BITS'(offset);
  end

  // --- what must hold ---
  always_ff @(posedge clk) if (!rst && key_write && key_valid) assert (key_bytes != '0 && key_start[3:0] == '0);
endmodule
