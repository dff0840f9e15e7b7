// SPDX-License-Identifier: Apache-2.0
// Two writers before one dma_write. The first goes whenever it likes; the second in the first one's pauses, a whole write at a time.
//
// Contract
//   * `clear` says that the first writer will not begin within this cycle and the next few: the second may begin. If it has waited
//     PATIENCE_CYCLES it begins as soon as no write is in flight.
//   * Words of a write come one after another from the same writer; s_last marks the last.
module write_arbiter #(
    parameter int ADDRESS_BITS = 43,
    parameter int BYTES_BITS = 14,
    parameter int TAG_BITS = 1,
    parameter int PATIENCE_CYCLES = 1024
) (
    input logic clk,
    input logic rst,
    input logic clear,

    input  logic                    s0_valid,
    output logic                    s0_ready,
    input  logic                    s0_last,
    input  logic [ADDRESS_BITS-1:0] s0_address,
    input  logic [  BYTES_BITS-1:0] s0_bytes,
    input  logic [           127:0] s0_data,
    input  logic [    TAG_BITS-1:0] s0_tag,

    input  logic                    s1_valid,
    output logic                    s1_ready,
    input  logic                    s1_last,
    input  logic [ADDRESS_BITS-1:0] s1_address,
    input  logic [  BYTES_BITS-1:0] s1_bytes,
    input  logic [           127:0] s1_data,
    input  logic [    TAG_BITS-1:0] s1_tag,

    output logic                    m_valid,
    input  logic                    m_ready,
    output logic [ADDRESS_BITS-1:0] m_address,
    output logic [  BYTES_BITS-1:0] m_bytes,
    output logic [           127:0] m_data,
    output logic [    TAG_BITS-1:0] m_tag,
    output logic                    m_second  // this word is the second writer's
);
  logic open, open_second;  // a write is in flight; whose
  logic [$clog2(PATIENCE_CYCLES+1)-1:0] waited;
  wire impatient = int'(waited) == PATIENCE_CYCLES;
  wire second = open ? open_second : s1_valid && (impatient || (clear && !s0_valid));

  assign m_valid = second ? s1_valid : s0_valid;
  assign s0_ready = !second && m_ready;
  assign s1_ready = second && m_ready;
  assign m_address = second ? s1_address : s0_address;
  assign m_bytes = second ? s1_bytes : s0_bytes;
  assign m_data = second ? s1_data : s0_data;
  assign m_tag = second ? s1_tag : s0_tag;
  assign m_second = second;
  wire last = second ? s1_last : s0_last;

  always_ff @(posedge clk) begin
    if (m_valid && m_ready) begin
      open <= !last;
      open_second <= second;
    end
    if (second || !s1_valid) waited <= '0;
    else if (!impatient) waited <= waited + 1'b1;
    if (rst) begin
      open <= 1'b0;
      waited <= '0;
    end
  end
endmodule
