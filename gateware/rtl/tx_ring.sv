// SPDX-License-Identifier: Apache-2.0
// Descriptors of the TX ring into packets and sent completions: the sending half of the NIC contract (include/nanet/contract.hpp), in logic.
//
// After the doorbell up to eight descriptors are read at once; each one's payload is read next, many in flight, and goes on as a packet in the
// order of the ring. When a packet has left, or could not be sent, its completion is written: kind packet_sent with the time, or error.
//
// Contract
//   * cfg_doorbell is the number of descriptors rung since the start, modulo 2^32, at most the ring's size more than `consumed`.
//   * A descriptor whose sequence is not its number + 1, or whose address is not a multiple of 16, or without bytes or with more than BYTES_MAX,
//     or for a destination that there is not, is an error (count_refused); so is one whose payload cannot be read (count_unreadable).
//   * consumed goes up with the completion, so a descriptor and its payload are the driver's again when it reads either.
//   * The queue of completions has room for the ring's: that is the driver's duty.
//   * The ring stops (ring_fault) if a descriptor cannot be read, or if more are rung than there is room for, until cfg_enable is taken away. What
//     came before is sent, nothing after it.
//   * The settings stand still from a cycle before cfg_enable on, but for the doorbell.
//   * Whatever is disabled begins again at 0; the driver leaves it so until nothing is in flight (busy), and enables it with a doorbell of 0.
//   * Descriptors are asked for 3 cycles after their doorbell, their payloads 2 cycles after they came.
//   * With COMMANDS a descriptor is handed on whole (m_command) to who reads what it names, and nothing is sent here: each comes once, in order, and m_command_good
//     says that its sequence is its number + 1. Whoever takes it tells what became of it (gone_*), of one that is not good that it is bad.
module tx_ring #(
    parameter int ADDRESS_BITS = 43,  // of a device address
    parameter int BYTES_MAX = 9000,   // of a packet [B]
    parameter int DESTINATIONS = 16,
    parameter bit COMMANDS = 1'b0,
    localparam int BYTES_BITS = $clog2(BYTES_MAX + 1),
    localparam int DESTINATION_BITS = $clog2(DESTINATIONS)
) (
    input logic clk,
    input logic rst,

    input logic                    cfg_enable,
    input logic [ADDRESS_BITS-1:0] cfg_ring,             // multiple of 512
    input logic [31:0]             cfg_ring_mask,        // entries, a power of two from 8, less 1
    input logic [31:0]             cfg_doorbell,
    input logic [ADDRESS_BITS-1:0] cfg_completions,
    input logic [31:0]             cfg_completion_mask,  // entries, a power of two, less 1

    // To dma_read, and what it brings.
    output logic                    read_valid,
    input  logic                    read_ready,
    output logic [ADDRESS_BITS-1:0] read_address,
    output logic [13:0]             read_bytes,
    input  logic [127:0]            s_axis_tdata,
    input  logic                    s_axis_tvalid,
    output logic                    s_axis_tready,
    input  logic                    s_axis_tlast,
    input  logic                    s_axis_tuser,

    // Packets, to tx_fifo; meta from the first word to the last.
    output logic [127:0]                 m_axis_tdata,
    output logic                         m_axis_tvalid,
    input  logic                         m_axis_tready,
    output logic                         m_axis_tlast,
    output logic                         m_axis_tuser,
    output logic [BYTES_BITS-1:0]        m_meta_bytes,
    output logic [DESTINATION_BITS-1:0]  m_meta_destination,
    output logic [63:0]                  m_meta_tag,

    // Descriptors, with COMMANDS.
    output logic                         m_command_valid,
    input  logic                         m_command_ready,
    output contract_pkg::tx_descriptor_t m_command,
    output logic                         m_command_good,

    // What became of a packet: it left, or it was thrown away because it could not be read.
    input  logic        gone_valid,
    output logic        gone_ready,
    input  logic        gone_bad,
    input  logic [63:0] gone_ns,   // when it left
    input  logic [63:0] gone_tag,

    // Completions, to dma_write: words of 16 bytes, four each.
    output logic                    write_valid,
    input  logic                    write_ready,
    output logic [ADDRESS_BITS-1:0] write_address,
    output logic [127:0]            write_data,
    output logic                    write_last,

    output logic [31:0] consumed,
    output logic        busy,
    output logic        ring_fault,
    output logic        count_sent,
    output logic        count_refused,
    output logic        count_unreadable
);
  localparam int QUEUE = 32;  // descriptors that wait, and reads in flight
  localparam int QUEUE_BITS = $clog2(QUEUE);
  localparam int BATCH = 8;  // descriptors of one read
  localparam int WORD_BYTES = 16;
  localparam int ENTRY_SHIFT = $clog2(contract_pkg::TX_DESCRIPTOR_BYTES);
  localparam logic [1:0] ADDRESS_WORD = 2'(contract_pkg::TX_DESCRIPTOR_ADDRESS_AT / WORD_BYTES);
  localparam logic [1:0] TAG_WORD = 2'(contract_pkg::TX_DESCRIPTOR_TAG_AT / WORD_BYTES);
  localparam logic [1:0] SEQUENCE_WORD = 2'(contract_pkg::TX_DESCRIPTOR_SEQUENCE_AT / WORD_BYTES);

  if (DESTINATIONS < 2 || DESTINATIONS > 65536) begin : g_check_destinations
    $fatal(1, "DESTINATIONS must be 2 to 65536 (instance %m)");
  end
  if (BYTES_MAX > 16320) begin : g_check_bytes
    $fatal(1, "BYTES_MAX must be at most 16320 (instance %m)");
  end
  if (contract_pkg::TX_DESCRIPTOR_BYTES != 4 * WORD_BYTES || contract_pkg::COMPLETION_BYTES != 4 * WORD_BYTES || SEQUENCE_WORD != 2'd3 ||
      contract_pkg::TX_DESCRIPTOR_BYTES_AT / WORD_BYTES != int'(ADDRESS_WORD) ||
      contract_pkg::TX_DESCRIPTOR_DESTINATION_AT / WORD_BYTES != int'(ADDRESS_WORD)) begin : g_check_contract
    $fatal(1, "an entry must have four words, what is sent and whereto must stand in one, the sequence in the last (instance %m)");
  end

  typedef struct packed {
    logic [ADDRESS_BITS-1:0]     address;
    logic [BYTES_BITS-1:0]       bytes;
    logic [DESTINATION_BITS-1:0] destination;
    logic [63:0]                 tag;
    logic                        good;
  } descriptor_t;

  // --- descriptors that were read and wait for their payload to be asked for ---
  descriptor_t queue[QUEUE];
  logic [QUEUE_BITS:0] queue_in, queue_out, queue_asked;  // asked: places taken, those of descriptors in flight included
  logic [31:0] asked;  // descriptors
  logic [31:0] due;    // the sequence of the next one that comes

  logic [31:0] sequence_;  // of the next completion: consumed + 1

  // --- what comes next, in order ---
  typedef enum logic [1:0] {DESCRIPTORS, PAYLOAD, REFUSED} kind_t;
  typedef struct packed {
    kind_t       kind;
    descriptor_t descriptor;  // of a payload, or the one that is refused
  } step_t;
  step_t steps[QUEUE];
  logic [QUEUE_BITS:0] steps_in, steps_out;
  wire steps_free = steps_in - steps_out != (QUEUE_BITS + 1)'(QUEUE);

  // What is disabled begins again when everything that was begun is ended.
  wire restart = !cfg_enable && !busy;

  // --- which descriptors come next: differences stand in registers, and are right again two cycles after some were asked for ---
  wire [3:0] to_batch_end = 4'(BATCH) - 4'(asked[2:0]);  // so a read stays within 512 B, and within the ring
  wire [QUEUE_BITS:0] queue_taken = queue_asked - queue_out;
  logic [31:0] entries, not_gone, rung;
  logic [3:0] batch;
  logic [ADDRESS_BITS-1:0] batch_address;
  logic has_room;
  logic [1:0] settled;
  logic asks_descriptors;
  always_ff @(posedge clk) begin
    entries <= cfg_ring_mask + 32'd1;
    not_gone <= cfg_doorbell - consumed;
    rung <= cfg_doorbell - asked;
    batch <= rung < 32'(to_batch_end) ? rung[3:0] : to_batch_end;
    batch_address <= cfg_ring + ADDRESS_BITS'({asked & cfg_ring_mask, {ENTRY_SHIFT{1'b0}}});
    has_room <= queue_taken <= (QUEUE_BITS + 1)'(QUEUE - BATCH);
    settled <= {settled[0], !asks_descriptors};
    if (rst || restart) begin
      not_gone <= '0;
      settled <= '0;
    end
  end

  // --- ask: a payload first, its packet is older ---
  descriptor_t head;
  assign head = queue[queue_out[QUEUE_BITS-1:0]];
  wire head_there = queue_in != queue_out;
  wire hands_on = COMMANDS && head_there && m_command_ready;
  wire wants_payload = !COMMANDS && head_there && head.good;
  wire refuses = !COMMANDS && head_there && !head.good && steps_free;
  wire wants_descriptors = cfg_enable && !ring_fault && settled == '1 && batch != '0 && has_room;
  assign read_valid = steps_free && (head_there && !COMMANDS ? head.good : wants_descriptors);
  assign read_address = wants_payload ? head.address : batch_address;
  assign read_bytes = wants_payload ? 14'(head.bytes) : 14'({batch, {ENTRY_SHIFT{1'b0}}});
  wire asks = read_valid && read_ready;
  assign asks_descriptors = asks && !wants_payload;

  always_ff @(posedge clk) begin
    if ((asks && wants_payload) || refuses || hands_on) queue_out <= queue_out + 1'b1;
    if (asks_descriptors) begin
      asked <= asked + 32'(batch);
      queue_asked <= queue_asked + (QUEUE_BITS + 1)'(batch);
    end
    if (asks || refuses) begin
      steps[steps_in[QUEUE_BITS-1:0]] <= '{refuses ? REFUSED : wants_payload ? PAYLOAD : DESCRIPTORS, head};
      steps_in <= steps_in + 1'b1;
    end
    if (rst || restart) begin
      asked <= '0;
      queue_asked <= '0;
      queue_out <= '0;
      steps_in <= '0;
    end
  end

  // --- take what was read ---
  step_t now_step;
  assign now_step = steps[steps_out[QUEUE_BITS-1:0]];
  wire step_there = steps_in != steps_out;
  wire is_descriptors = step_there && now_step.kind == DESCRIPTORS;
  wire is_payload = step_there && now_step.kind == PAYLOAD;
  wire is_refused = step_there && now_step.kind == REFUSED;
  assign s_axis_tready = is_descriptors || (is_payload && m_axis_tready);
  assign m_axis_tvalid = (is_payload && s_axis_tvalid) || is_refused;
  assign m_axis_tdata = s_axis_tdata;
  assign m_axis_tlast = s_axis_tlast || is_refused;
  assign m_axis_tuser = s_axis_tuser || is_refused;
  assign m_meta_bytes = now_step.descriptor.bytes;
  assign m_meta_destination = now_step.descriptor.destination;
  assign m_meta_tag = now_step.descriptor.tag;
  wire takes = s_axis_tvalid && s_axis_tready;
  wire step_ends = is_refused ? m_axis_tready : takes && s_axis_tlast;

  logic [1:0] word;  // of a descriptor
  contract_pkg::tx_descriptor_t read;  // each field is right while its word is there
  assign read = {4{s_axis_tdata}};
  wire unused = &{1'b0, read.reserved, read.sequence_[63:32]};
  wire pushes = takes && is_descriptors && word == SEQUENCE_WORD && !s_axis_tuser && !ring_fault;
  assign m_command_valid = COMMANDS && head_there;
  assign m_command_good = head.good;
  if (COMMANDS) begin : g_commands
    logic [2:0][127:0] commands[QUEUE];
    logic [2:0][127:0] words;  // all but the one with the sequence
    always_ff @(posedge clk) begin
      if (takes && is_descriptors && word != SEQUENCE_WORD) words[word] <= s_axis_tdata;
      if (pushes) commands[queue_in[QUEUE_BITS-1:0]] <= words;
    end
    assign m_command = {128'd0, commands[queue_out[QUEUE_BITS-1:0]]};
  end else begin : g_no_commands
    assign m_command = '0;
  end
  descriptor_t open;
  always_ff @(posedge clk) begin
    if (step_ends) steps_out <= steps_out + 1'b1;
    if (takes && is_descriptors) begin
      word <= word + 2'd1;
      unique case (word)
        ADDRESS_WORD: begin
          open.address <= read.address[ADDRESS_BITS-1:0];
          open.bytes <= read.bytes[BYTES_BITS-1:0];
          open.destination <= read.destination[DESTINATION_BITS-1:0];
          open.good <= COMMANDS || (read.address[63:ADDRESS_BITS] == '0 && read.address[3:0] == '0 && read.bytes != '0 &&
                       read.bytes <= 32'(BYTES_MAX) && read.destination < 32'(DESTINATIONS));
        end
        TAG_WORD: open.tag <= read.tag;
        default: ;
      endcase
      if (s_axis_tuser) ring_fault <= 1'b1;
    end
    if (pushes) begin
      queue[queue_in[QUEUE_BITS-1:0]] <= '{
          open.address, open.bytes, open.destination, open.tag, open.good && read.sequence_[31:0] == due};
      queue_in <= queue_in + 1'b1;
      due <= due + 32'd1;
    end
    if (cfg_enable && not_gone > entries) ring_fault <= 1'b1;
    if (rst || restart) begin
      steps_out <= '0;
      word <= '0;
      due <= 32'd1;
      queue_in <= '0;
      ring_fault <= 1'b0;
    end
  end

  // --- completions: the number and the address of the next one are ready when the one before has gone ---
  logic [1:0] completion_word;
  logic [ADDRESS_BITS-1:0] next_address;
  contract_pkg::completion_t completion;
  wire [3:0][127:0] completion_words = completion;
  always_comb begin
    completion = '0;
    completion.last_packet_ns = gone_bad ? '0 : gone_ns;
    completion.tag = gone_tag;
    completion.kind = gone_bad ? contract_pkg::KIND_ERROR : contract_pkg::KIND_PACKET_SENT;
    completion.sequence_ = sequence_;
  end
  assign write_valid = gone_valid;
  assign write_last = completion_word == 2'd3;
  assign write_data = completion_words[completion_word];
  wire writes = write_valid && write_ready;
  assign gone_ready = writes && write_last;
  always_ff @(posedge clk) begin
    if (writes) completion_word <= completion_word + 2'd1;
    next_address <= cfg_completions + ADDRESS_BITS'({sequence_ & cfg_completion_mask, {ENTRY_SHIFT{1'b0}}});
    if (gone_ready) begin
      consumed <= sequence_;
      sequence_ <= sequence_ + 32'd1;
      write_address <= next_address;
    end
    count_sent <= gone_ready && !gone_bad;
    count_refused <= is_refused && m_axis_tready;
    count_unreadable <= is_payload && takes && s_axis_tlast && s_axis_tuser;
    if (rst || restart) begin
      completion_word <= '0;
      consumed <= '0;
      sequence_ <= 32'd1;
      write_address <= cfg_completions;
    end
  end

  assign busy = step_there || head_there || due != sequence_;

`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst && cfg_enable) begin
      a_ring_aligned : assert (cfg_ring[8:0] == '0 && cfg_completions[3:0] == '0);
    end
    if (!rst) a_queue : assert (queue_in - queue_out <= (QUEUE_BITS + 1)'(QUEUE));
  end
`endif

`ifdef FORMAL
  // Of a ring whose descriptors can be read. The pointers stand in the order consumed, received, asked, doorbell; what stands in registers is no more
  // than what there is.
  wire [QUEUE_BITS:0] queue_coming = queue_asked - queue_in;
  wire [31:0] received = due - 32'd1;
  wire [31:0] coming = asked - received;
  wire [31:0] rung_now = cfg_doorbell - asked;
  always_ff @(posedge clk) begin
    if (!rst) begin
      // What tx_fifo and dma_read promise.
      assume (!gone_valid || received != consumed);
      if (is_descriptors && s_axis_tvalid) assume (received != asked && !s_axis_tuser);
      if (step_ends && steps_in == steps_out + 1'b1) assume (received + 32'(pushes) == asked);  // the last that was asked for brings the last
      assert (received <= asked && consumed <= received);
      assert (queue_coming == coming[QUEUE_BITS:0] && coming <= 32'(QUEUE));
      assert (queue_taken <= (QUEUE_BITS + 1)'(QUEUE) && queue_coming <= queue_taken);
      assert (steps_in - steps_out <= (QUEUE_BITS + 1)'(QUEUE));
      assert (sequence_ == consumed + 32'd1 && entries == cfg_ring_mask + 32'd1);
      if (cfg_enable) assert (asked <= cfg_doorbell && not_gone <= entries);
      if (cfg_enable && settled[0]) assert (rung <= rung_now && (!has_room || queue_taken <= (QUEUE_BITS + 1)'(QUEUE - BATCH)));
      if (settled[0]) assert (batch_address == cfg_ring + ADDRESS_BITS'({asked & cfg_ring_mask, {ENTRY_SHIFT{1'b0}}}));
      if (cfg_enable && settled == '1) assert (32'(batch) <= rung_now && batch <= to_batch_end);
    end
  end
`endif
endmodule
