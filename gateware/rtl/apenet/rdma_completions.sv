// SPDX-License-Identifier: Apache-2.0
// Events of messages into the completion queue in memory: docs/apenet-rdma-format.md has the fields.
//
// Contract
//   * Events leave in the order in which they came, four words each, while the queue has room: what was written is at most the queue's size more than cfg_consumed.
//   * Before cfg_completion_mask is set, the last of its settings, there is no queue: it has no room.
//   * s_room: two more events find place here. s_full: they do not, because the queue in memory has no room.
module rdma_completions #(
    parameter int ADDRESS_BITS = 44,
    parameter int EVENTS = 16          // that wait; a power of two
) (
    input logic clk,
    input logic rst,
    input logic [63:0] now_ns,

    input logic [ADDRESS_BITS-1:0] cfg_completions,
    input logic [            31:0] cfg_completion_mask,  // entries, a power of two, less 1
    input logic [            31:0] cfg_consumed,         // entries that the driver has read, modulo 2^32

    input  logic             s_valid,
    input  rdma_pkg::event_t s_event,
    output logic             s_room,
    output logic             s_full,

    output logic                    m_valid,
    input  logic                    m_ready,
    output logic                    m_last,
    output logic [ADDRESS_BITS-1:0] m_address,
    output logic [           127:0] m_data,

    output logic [31:0] written
);
  localparam int BITS = $clog2(EVENTS);
  localparam int ENTRY_SHIFT = $clog2(contract_pkg::COMPLETION_BYTES);

  rdma_pkg::event_t events[EVENTS];
  rdma_pkg::event_t head;
  logic [BITS:0] came, went;
  logic head_valid, queue_room, next_room;  // an entry has four words: what the next one needs is known by then
  logic [ADDRESS_BITS-1:0] next_address;
  logic [31:0] used, next_entry;
  logic [1:0] settled;  // `used` knows of the last entry
  logic [1:0] word;
  logic [63:0] at_ns;
  wire ends = m_valid && m_ready && m_last;
  wire loads = came != went && (!head_valid || ends);
  always_ff @(posedge clk) begin
    if (s_valid) events[came[BITS-1:0]] <= s_event;
    if (s_valid) came <= came + 1'b1;
    if (loads) begin
      head <= events[went[BITS-1:0]];
      at_ns <= now_ns;
      went <= went + 1'b1;
    end
    if (loads || ends) head_valid <= loads;
    s_room <= came - went < (BITS + 1)'(EVENTS - 3);
    s_full <= head_valid && !queue_room;
    if (m_valid && m_ready) word <= word + 2'd1;
    if (ends) written <= written + 32'd1;
    used <= written - cfg_consumed;
    next_room <= used < cfg_completion_mask;
    next_entry <= (written + 32'd1) & cfg_completion_mask;
    next_address <= cfg_completions + ADDRESS_BITS'({next_entry, {ENTRY_SHIFT{1'b0}}});
    settled <= ends ? '0 : {settled[0], 1'b1};
    if (ends) {queue_room, m_address} <= {next_room, next_address};
    else if (!queue_room && settled == '1) begin
      queue_room <= used <= cfg_completion_mask && cfg_completion_mask != '0;
      m_address <= cfg_completions + ADDRESS_BITS'({written & cfg_completion_mask, {ENTRY_SHIFT{1'b0}}});
    end
    if (rst) begin
      came <= '0;
      went <= '0;
      head_valid <= 1'b0;
      queue_room <= 1'b0;
      settled <= '0;
      word <= '0;
      written <= '0;
      s_room <= 1'b0;
      s_full <= 1'b0;
    end
  end

  contract_pkg::completion_t completion;
  wire [3:0][127:0] words = completion;
  always_comb begin
    completion = '0;
    completion.last_packet_ns = at_ns;
    completion.tag = head.tag;
    completion.bytes = 32'(head.bytes);
    completion.status = (head.failed ? contract_pkg::STATUS_INCOMPLETE : 16'h0) | (head.timed_out ? contract_pkg::STATUS_TIMEOUT : 16'h0);
    completion.kind = head.failed ? contract_pkg::KIND_ERROR : contract_pkg::KIND_MESSAGE;
    completion.reserved0 = 8'(head.kind);
    completion.reserved1 = {head.value, head.process, head.number, head.source};
    completion.sequence_ = written + 32'd1;
  end
  assign m_valid = head_valid && queue_room;
  assign m_last = word == 2'd3;
  assign m_data = words[word];

  // --- what must hold ---
  wire [BITS:0] waits = came - went;
  always_ff @(posedge clk) if (!rst) assert (!s_valid || int'(waits) < EVENTS);
endmodule
