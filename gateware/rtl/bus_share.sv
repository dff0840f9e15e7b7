// SPDX-License-Identifier: Apache-2.0
// Two who write and read host memory, on one bus: a request each in turn. Answers go back by the highest bit of their tag.
//
// Contract: requests and answers as of dma_write and dma_read, those of the first in the lower half of each input. What is offered to the bus stays until it is taken;
// requests of one of the two stay in their order.
module bus_share #(
    parameter int WRITE_BITS = 9,  // of a write request's length,
    parameter int READ_BITS = 10,  // and of a read request's
    parameter int TAG_BITS = 4     // of each of the two
) (
    input logic clk,
    input logic rst,

    input  logic [             1:0] s_write_valid,
    output logic [             1:0] s_write_ready,
    input  logic [             1:0] s_write_first,
    input  logic [             1:0] s_write_last,
    input  logic [             1:0] s_write_gpu,
    input  logic [           127:0] s_write_address,
    input  logic [2*WRITE_BITS-1:0] s_write_bytes,
    input  logic [           255:0] s_write_data,
    input  logic [            31:0] s_write_keep,
    input  logic [             1:0] s_read_valid,
    output logic [             1:0] s_read_ready,
    input  logic [           127:0] s_read_address,
    input  logic [ 2*READ_BITS-1:0] s_read_bytes,
    input  logic [  2*TAG_BITS-1:0] s_read_tag,
    input  logic [             1:0] s_read_gpu,
    output logic [             1:0] s_answer_valid,
    output logic [    TAG_BITS-1:0] s_answer_tag,  // for either

    output logic                  m_write_valid,
    input  logic                  m_write_ready,
    output logic                  m_write_first,
    output logic                  m_write_last,
    output logic                  m_write_gpu,
    output logic [          63:0] m_write_address,
    output logic [WRITE_BITS-1:0] m_write_bytes,
    output logic [         127:0] m_write_data,
    output logic [          15:0] m_write_keep,
    output logic                  m_read_valid,
    input  logic                  m_read_ready,
    output logic [          63:0] m_read_address,
    output logic [ READ_BITS-1:0] m_read_bytes,
    output logic [    TAG_BITS:0] m_read_tag,
    output logic                  m_read_gpu,
    input  logic                  m_answer_valid,
    input  logic [    TAG_BITS:0] m_answer_tag
);
  logic writes, reads;                // the one whose request it is
  logic write_open, read_open;        // and stays
  logic writes_before, reads_before;  // the last one
  assign writes = write_open ? writes_before : s_write_valid[!writes_before] ? !writes_before : writes_before;
  assign reads = read_open ? reads_before : s_read_valid[!reads_before] ? !reads_before : reads_before;
  always_ff @(posedge clk) begin
    if (m_write_valid) {write_open, writes_before} <= {!(m_write_ready && m_write_last), writes};
    if (m_read_valid) {read_open, reads_before} <= {!m_read_ready, reads};
    if (rst) {write_open, writes_before, read_open, reads_before} <= '0;
  end

  assign m_write_valid = s_write_valid[writes];
  assign s_write_ready = {writes && m_write_ready, !writes && m_write_ready};
  assign m_write_first = s_write_first[writes];
  assign m_write_last = s_write_last[writes];
  assign m_write_gpu = s_write_gpu[writes];
  assign m_write_address = s_write_address[64*int'(writes)+:64];
  assign m_write_bytes = s_write_bytes[WRITE_BITS*int'(writes)+:WRITE_BITS];
  assign m_write_data = s_write_data[128*int'(writes)+:128];
  assign m_write_keep = s_write_keep[16*int'(writes)+:16];
  assign m_read_valid = s_read_valid[reads];
  assign s_read_ready = {reads && m_read_ready, !reads && m_read_ready};
  assign m_read_address = s_read_address[64*int'(reads)+:64];
  assign m_read_bytes = s_read_bytes[READ_BITS*int'(reads)+:READ_BITS];
  assign m_read_tag = {reads, s_read_tag[TAG_BITS*int'(reads)+:TAG_BITS]};
  assign m_read_gpu = s_read_gpu[reads];
  assign s_answer_valid = {m_answer_valid && m_answer_tag[TAG_BITS], m_answer_valid && !m_answer_tag[TAG_BITS]};
  assign s_answer_tag = m_answer_tag[TAG_BITS-1:0];

  // --- what must hold ---
  logic amid;  // a write request
  always_ff @(posedge clk) begin
    if (m_write_valid && m_write_ready) amid <= !m_write_last;
    if (rst) amid <= 1'b0;
    else if (m_write_valid) assert (m_write_first == !amid);
  end
endmodule
