// SPDX-License-Identifier: Apache-2.0
// Nodes with network interfaces and memories, joined by a crossbar, for test_rdma_port.py. On its way a packet may be lost, doubled, flagged or damaged.

// Straight through while there are no faults; else a packet at a time, whole, then out once, twice or not at all.
module cable (
    input logic clk,
    input logic rst,
    input logic [31:0] random,
    input logic [7:0] fault_rate,  // of 256

    input  logic [127:0] s_data,
    input  logic         s_valid,
    output logic         s_ready,
    input  logic         s_last,
    output logic [127:0] m_data,
    output logic [  7:0] m_to,
    output logic         m_valid,
    input  logic         m_ready,
    output logic         m_last,

    output logic [31:0] sent,
    output logic [31:0] lost,
    output logic [31:0] doubled,
    output logic [31:0] flagged,
    output logic [31:0] damaged
);
  localparam int WORDS = 258;
  logic [127:0] words[WORDS];
  logic [8:0] came, went;
  logic whole, again;
  logic flags, damages;
  wire faulty = random[7:0] < fault_rate;
  apenet_pkg::header_t header;
  assign header = words[0][119:0];
  wire is_last = went == came - 1'b1;
  wire is_damaged = damages && (came == 9'd2 ? is_last : went == came - 9'd2);  // the last word before the footer, or the footer's CRC
  logic direct, amid;  // a packet is on its way straight through
  logic [7:0] to;
  assign s_ready = direct ? m_ready : !whole;
  assign m_valid = direct ? s_valid : whole;
  assign m_last = direct ? s_last : is_last;
  assign m_to = !direct ? {2'd0, header.x} : amid ? to : {2'd0, s_data[26:21]};
  assign m_data = direct ? s_data : is_last && flags ? {apenet_pkg::FOOTER_FLAGGED, words[went][31:0]} : words[went] ^ (is_damaged ? 128'h10 : 128'd0);
  always_ff @(posedge clk) begin
    if (s_valid && s_ready) begin
      amid <= !s_last;
      if (!amid) to <= m_to;
    end
    if (!s_valid && !amid && !whole && came == '0) direct <= fault_rate == '0;
    if (s_valid && s_ready && direct) sent <= sent + 32'(s_last);
    if (s_valid && s_ready && !direct) begin
      words[came] <= s_data;
      came <= came + 1'b1;
      if (s_last) begin
        sent <= sent + 1'b1;
        went <= '0;
        whole <= 1'b1;
        {again, flags, damages} <= '0;
        if (faulty) begin
          case (random[9:8])
            2'd0: begin
              lost <= lost + 1'b1;
              whole <= 1'b0;
              came <= '0;
            end
            2'd1: {again, doubled} <= {1'b1, doubled + 1'b1};
            2'd2: {flags, flagged} <= {1'b1, flagged + 1'b1};
            default: {damages, damaged} <= {1'b1, damaged + 1'b1};
          endcase
        end
      end
    end
    if (m_valid && m_ready && !direct) begin
      went <= went + 1'b1;
      if (m_last) begin
        went <= '0;
        again <= 1'b0;
        if (!again) {whole, came} <= '0;
      end
    end
    if (rst) begin
      {direct, amid, whole, came, went, sent, lost, doubled, flagged, damaged} <= '0;
    end
  end
endmodule

module bench_top #(
    parameter int NODES = 3,
    parameter int TICK_CYCLES = 16384,
    parameter int GETS = 4,
    parameter int REQUESTS = 16,
    parameter int SEND_WORDS = 512,
    parameter int WORD_BITS = 14, // of a node's memory
    parameter int LOG_BITS = 12   // and of its SENDs
) (
    input logic clk,
    input logic rst,
    input logic [31:0] seed,
    input logic [7:0] fault_rate,
    input logic [7:0] pause_rate,  // of memory, of 256
    input logic read_fails,
    input logic holds_entries,     // no completion is taken from the queue
    input logic may_fault,         // completions may have no place
    input logic load,
    input logic dump,

    input logic [NODES-1:0] key_write,
    input logic [2:0] key_index,
    input logic key_valid,
    input logic key_readable,
    input logic key_writable,
    input logic [31:0] key_nonce,
    input logic [42:0] key_start,
    input logic [40:0] key_bytes,
    input logic [NODES-1:0] region_write,
    input logic [2:0] region_index,
    input logic region_valid,
    input logic [5:0] region_first,
    input logic [6:0] region_count,
    input logic [NODES-1:0] entry_write,
    input logic [5:0] entry_index,
    input logic [63:0] entry_data,
    input logic [42:0] cfg_completions,
    input logic [31:0] cfg_completion_mask,

    input logic [NODES-1:0] match_write,
    input logic [1:0] match_index,
    input logic match_enable,
    input logic [15:0] match_process,
    input logic [15:0] match_sender,
    input logic [15:0] match_sender_mask,
    input logic [3:0] match_route,
    input logic [1:0] match_clop,
    input logic [15:0] match_source,
    input logic match_counts_events,
    input logic holds_payloads,    // no SEND is taken

    // The driver's words in memory, by place in it, and its doorbells.
    input logic [NODES-1:0] poke,
    input logic [WORD_BITS-1:0] poke_word,
    input logic [127:0] poke_data,
    input logic [42:0] cfg_ring,
    input logic [31:0] cfg_ring_mask,
    input logic [42:0] cfg_ring_completions,
    input logic [NODES-1:0] cfg_enable,
    input logic [NODES*32-1:0] cfg_doorbell,
    input logic [NODES*64-1:0] readable_pages,  // which read_fails leaves

    // Packets from elsewhere, to the node that their header says.
    input  logic [127:0] wild_tdata,
    input  logic         wild_tvalid,
    output logic         wild_tready,
    input  logic         wild_tlast,

    output logic [NODES*32-1:0] jobs_waiting,
    output logic [NODES*32-1:0] consumed,
    output logic [NODES-1:0] ring_busy,
    output logic [NODES-1:0] ring_fault,
    output logic [NODES*32-1:0] logged,        // words of SENDs, in payloads.hex after dump
    output logic [NODES*32-1:0] begun_cycle,   // the first word of one, last
    output logic [NODES*32-1:0] gone_good,
    output logic [NODES*32-1:0] gone_bad,
    output logic [NODES*32-1:0] written,
    output logic [NODES*32-1:0] taken_cycle,   // a job, last
    output logic [NODES*32-1:0] rung_cycle,    // a doorbell, last
    output logic [NODES*32-1:0] written_cycle, // a completion, last
    output logic [NODES*32-1:0] sent,
    output logic [NODES*32-1:0] lost,
    output logic [NODES*32-1:0] doubled,
    output logic [NODES*32-1:0] flagged,
    output logic [NODES*32-1:0] damaged,
    output logic [NODES*32-1:0] missed,
    output logic [NODES*32-1:0] unreadable,
    output logic [NODES*32-1:0] refused,
    output logic [NODES*32-1:0] reply_refused,
    output logic [NODES*32-1:0] completion_faults,
    output logic [NODES*32-1:0] stray,         // requests of the bus beyond the node's memory
    output logic [NODES*32-1:0] arrived_cycle, // the first word of a packet, last
    output logic [NODES*32-1:0] offered_cycle, // and of one that leaves
    output logic [NODES*32-1:0] went_to,       // and where it goes, its port above its place
    output logic [NODES*32-1:0] asked_number,  // of a GET that leaves, last
    output logic [NODES*rdma_pkg::COUNTS*32-1:0] counts
);
  localparam int PORTS = NODES + 1;
  localparam int TAGS = 8;
  logic [127:0] memory[NODES << WORD_BITS];
  always @(posedge load) $readmemh("memory.hex", memory);
  always @(posedge dump) $writememh("dump.hex", memory);
  // Each word of a SEND that came: sideband, cycle, last, tkeep and data.
  typedef struct packed {
    port_pkg::routed_t meta;
    logic [63:0] cycle;
    logic [7:0] last;
    logic [15:0] keep;
    logic [127:0] data;
  } logged_t;
  logic [453:0] payloads[NODES << LOG_BITS];
  always @(posedge dump) $writememh("payloads.hex", payloads);

  logic [31:0] cycle;
  always_ff @(posedge clk) cycle <= rst ? '0 : cycle + 1'b1;

  logic [PORTS*128-1:0] in_data, out_data;
  logic [PORTS-1:0] in_valid, in_ready, in_last, out_valid, out_ready, out_last;
  logic [PORTS*8-1:0] in_to;
  assign in_data[128*NODES+:128] = wild_tdata;
  assign in_valid[NODES] = wild_tvalid;
  assign wild_tready = in_ready[NODES];
  assign in_last[NODES] = wild_tlast;
  logic [7:0] wild_to;
  logic wild_amid;
  assign in_to[8*NODES+:8] = wild_amid ? wild_to : {2'd0, wild_tdata[26:21]};
  assign out_ready[NODES] = 1'b1;
  always_ff @(posedge clk) begin
    if (wild_tvalid && wild_tready) wild_amid <= !wild_tlast;
    if (!wild_amid) wild_to <= {2'd0, wild_tdata[26:21]};
    if (rst) wild_amid <= 1'b0;
  end
  router #(
      .PORTS(PORTS),
      .DATA_BITS(128)
  ) i_router (
      .clk,
      .rst,
      .s_axis_tdata(in_data),
      .s_axis_tkeep('1),
      .s_axis_tvalid(in_valid),
      .s_axis_tready(in_ready),
      .s_axis_tlast(in_last),
      .s_axis_tuser('0),
      .s_meta_destination(in_to),
      .m_axis_tdata(out_data),
      .m_axis_tkeep(),
      .m_axis_tvalid(out_valid),
      .m_axis_tready(out_ready),
      .m_axis_tlast(out_last),
      .m_axis_tuser(),
      .m_meta_source(),
      .count_good(),
      .drop_destination()
  );

  // --- the bus: what each node asks of its memory ---
  logic [NODES-1:0] w_valid, w_ready, w_first, r_valid, r_ready, a_valid, a_last;
  logic [NODES-1:0][63:0] w_address, r_address;
  logic [NODES-1:0][127:0] w_data, a_data;
  logic [NODES-1:0][15:0] w_keep;
  logic [NODES-1:0][9:0] r_bytes;
  logic [NODES-1:0][2:0] r_tag, a_tag;
  logic [NODES-1:0][WORD_BITS-1:0] w_word, w_next;
  logic [NODES-1:0][31:0] randoms;
  for (genvar n = 0; n < NODES; n++) begin : g_word
    assign w_word[n] = w_first[n] ? w_address[n][4+:WORD_BITS] : w_next[n];
    assign w_ready[n] = randoms[n][7:0] >= pause_rate;
  end
  always_ff @(posedge clk) begin
    for (int n = 0; n < NODES; n++) begin
      if (poke[n]) memory[(n<<WORD_BITS)+int'(poke_word)] <= poke_data;
      if (w_valid[n] && w_ready[n]) begin
        w_next[n] <= w_word[n] + 1'b1;
        for (int b = 0; b < 16; b++) if (w_keep[n][b]) memory[(n<<WORD_BITS)+int'(w_word[n])][8*b+:8] <= w_data[n][8*b+:8];
      end
    end
  end

  for (genvar n = 0; n < NODES; n++) begin : g_node
    logic [31:0] random;
    always_ff @(posedge clk) random <= rst ? seed ^ (32'h9E3779B1 * (n + 1)) | 32'd1 : {random[30:0], random[31] ^ random[21] ^ random[1] ^ random[0]};
    assign randoms[n] = random;

    // --- the ring ---
    logic [31:0] doorbell;
    assign jobs_waiting[32*n+:32] = cfg_doorbell[32*n+:32] - consumed[32*n+:32];
    always_ff @(posedge clk) begin
      doorbell <= cfg_doorbell[32*n+:32];
      if (doorbell != cfg_doorbell[32*n+:32]) rung_cycle[32*n+:32] <= cycle - 1;
      if (i_engine.command_valid && i_engine.command_ready) taken_cycle[32*n+:32] <= cycle;
    end

    // --- answers to reads, in order, a word a cycle, each request after 20 cycles ---
    logic [76:0] asked[16];
    logic fails;
    logic [3:0] asks, answers;
    logic [5:0] word;
    logic [31:0] asked_cycle[16];
    wire [63:0] from = asked[answers][76:13];
    wire [9:0] size = asked[answers][12:3];
    wire due = asks != answers && cycle - asked_cycle[answers] >= 32'd20;
    wire last = 10'({word + 6'd1, 4'd0}) >= size;
    assign r_ready[n] = 4'(asks - answers) < 4'd14 && random[15:8] >= pause_rate;
    always_ff @(posedge clk) begin
      if (r_valid[n] && r_ready[n]) begin
        asked[asks] <= {r_address[n], r_bytes[n], r_tag[n]};
        asked_cycle[asks] <= cycle;
        asks <= asks + 1'b1;
      end
      a_valid[n] <= due;
      a_last[n] <= last;
      fails <= read_fails && !readable_pages[64*n+int'(from[17:12])];
      a_tag[n] <= asked[answers][2:0];
      a_data[n] <= memory[(n<<WORD_BITS)+int'(from[4+:WORD_BITS])+int'(word)];
      if (due) word <= last ? '0 : word + 1'b1;
      if (due && last) answers <= answers + 1'b1;
      if ((r_valid[n] && r_ready[n] && (r_address[n] >> (WORD_BITS + 4)) != 64'(n + 1)) ||
          (w_valid[n] && w_ready[n] && w_first[n] && (w_address[n] >> (WORD_BITS + 4)) != 64'(n + 1))) stray[32*n+:32] <= stray[32*n+:32] + 1;
      if (rst) begin
        {asks, answers, word} <= '0;
        a_valid[n] <= 1'b0;
        stray[32*n+:32] <= '0;
      end
    end

    // --- the interface ---
    logic [rdma_pkg::COUNTS-1:0] counted;
    logic [15:0] missing;
    logic unread, refuses, refuses_reply, gone, failed, is_amid, was_offered, tx_amid, tx_asks;
    logic [127:0] tx_data;
    apenet_pkg::header_t tx_header;
    assign tx_header = tx_data[119:0];
    rdma_pkg::message_t tx_message;
    assign tx_message = tx_data;
    logic tx_valid, tx_ready, tx_last, completion_fault;
    logged_t payload;
    logic payload_valid, payload_last, payload_amid;
    wire payload_ready = !holds_payloads && random[23:16] >= pause_rate;
    assign payload.cycle = 64'(cycle);
    assign payload.last = 8'(payload_last);
    rdma_engine #(
        .X_BITS(2),
        .Y_BITS(1),
        .Z_BITS(1),
        .KEYS(8),
        .SEND_WORDS(SEND_WORDS),
        .MATCH_ENTRIES(4),
        .GETS(GETS),
        .REQUESTS(REQUESTS),
        .TICK_CYCLES(TICK_CYCLES),
        .TAGS(TAGS),
        .REGIONS(8),
        .ENTRIES(64)
    ) i_engine (
        .clk,
        .rst,
        .now_ns(64'd1000 + 64'(cycle)),
        .now_cycles(64'(cycle)),
        .at({10'd0, 6'(n)}),
        .own_port(4'd0),
        .key_write(key_write[n]),
        .key_index,
        .key_valid,
        .key_readable,
        .key_writable,
        .key_nonce,
        .key_start,
        .key_bytes,
        .region_write(region_write[n]),
        .region_index,
        .region_valid,
        .region_page_shift(5'd12),
        .region_first,
        .region_count,
        .entry_write(entry_write[n]),
        .entry_index,
        .entry_data,
        .match_write(match_write[n]),
        .match_index,
        .match_enable,
        .match_process,
        .match_sender,
        .match_sender_mask,
        .match_route,
        .match_clop,
        .match_source,
        .match_counts_events,
        .payload_tdata(payload.data),
        .payload_tkeep(payload.keep),
        .payload_tvalid(payload_valid),
        .payload_tready(payload_ready),
        .payload_tlast(payload_last),
        .payload_meta(payload.meta),
        .cfg_completions,
        .cfg_completion_mask,
        .cfg_consumed(holds_entries ? '0 : written[32*n+:32]),
        .completions_written(written[32*n+:32]),
        .cfg_enable(cfg_enable[n]),
        .cfg_ring,
        .cfg_ring_mask,
        .cfg_doorbell(cfg_doorbell[32*n+:32]),
        .cfg_ring_completions,
        .cfg_ring_completion_mask(cfg_ring_mask),
        .consumed(consumed[32*n+:32]),
        .busy(ring_busy[n]),
        .ring_fault(ring_fault[n]),
        .s_axis_tdata(out_data[128*n+:128]),
        .s_axis_tvalid(out_valid[n]),
        .s_axis_tready(out_ready[n]),
        .s_axis_tlast(out_last[n]),
        .m_axis_tdata(tx_data),
        .m_axis_tvalid(tx_valid),
        .m_axis_tready(tx_ready),
        .m_axis_tlast(tx_last),
        .write_valid(w_valid[n]),
        .write_ready(w_ready[n]),
        .write_first(w_first[n]),
        .write_last(),
        .write_gpu(),
        .write_address(w_address[n]),
        .write_bytes(),
        .write_data(w_data[n]),
        .write_keep(w_keep[n]),
        .read_valid(r_valid[n]),
        .read_ready(r_ready[n]),
        .read_address(r_address[n]),
        .read_bytes(r_bytes[n]),
        .read_tag(r_tag[n]),
        .read_gpu(),
        .answer_valid(a_valid[n]),
        .answer_tag(a_tag[n]),
        .answer_data(a_data[n]),
        .answer_last(a_last[n]),
        .answer_error(fails),
        .counts(counted),
        .missed(missing),
        .count_sent(gone),
        .count_bad(failed),
        .count_packet(),
        .count_unreadable(unread),
        .count_refused(refuses),
        .count_reply_refused(refuses_reply),
        .completion_fault
    );
    cable i_cable (
        .clk,
        .rst,
        .random,
        .fault_rate,
        .s_data(tx_data),
        .s_valid(tx_valid),
        .s_ready(tx_ready),
        .s_last(tx_last),
        .m_data(in_data[128*n+:128]),
        .m_to(in_to[8*n+:8]),
        .m_valid(in_valid[n]),
        .m_ready(in_ready[n]),
        .m_last(in_last[n]),
        .sent(sent[32*n+:32]),
        .lost(lost[32*n+:32]),
        .doubled(doubled[32*n+:32]),
        .flagged(flagged[32*n+:32]),
        .damaged(damaged[32*n+:32])
    );
    always_ff @(posedge clk) begin
      if (payload_valid && payload_ready) begin
        payloads[(n<<LOG_BITS)+int'(logged[32*n+:LOG_BITS])] <= payload;
        logged[32*n+:32] <= logged[32*n+:32] + 1;
        payload_amid <= !payload_last;
        if (!payload_amid) begun_cycle[32*n+:32] <= cycle;
      end
      assert (rst || !payload_amid || payload_valid);  // no gap
      was_offered <= tx_valid && !(tx_ready && tx_last);
      if (tx_valid && !was_offered) offered_cycle[32*n+:32] <= cycle;
      if (tx_valid && !was_offered) went_to[32*n+:32] <= {12'd0, tx_header.port, tx_header.z, tx_header.y, tx_header.x};
      if (tx_valid && tx_ready) {tx_amid, tx_asks} <= {!tx_last, !tx_amid && tx_header.packet_type == rdma_pkg::TYPE_GET};
      if (tx_asks && tx_valid && tx_ready) asked_number[32*n+:32] <= 32'(tx_message.number);
      if (out_valid[n] && out_ready[n]) is_amid <= !out_last[n];
      if (out_valid[n] && out_ready[n] && !is_amid) arrived_cycle[32*n+:32] <= cycle;
      if (w_valid[n] && w_ready[n]) written_cycle[32*n+:32] <= cycle;
      for (int c = 0; c < rdma_pkg::COUNTS; c++)
        counts[32*(n*rdma_pkg::COUNTS+c)+:32] <= counts[32*(n*rdma_pkg::COUNTS+c)+:32] + 32'(counted[c]);
      missed[32*n+:32] <= missed[32*n+:32] + 32'(missing);
      unreadable[32*n+:32] <= unreadable[32*n+:32] + 32'(unread);
      refused[32*n+:32] <= refused[32*n+:32] + 32'(refuses);
      reply_refused[32*n+:32] <= reply_refused[32*n+:32] + 32'(refuses_reply);
      gone_good[32*n+:32] <= gone_good[32*n+:32] + 32'(gone);
      gone_bad[32*n+:32] <= gone_bad[32*n+:32] + 32'(failed);
      completion_faults[32*n+:32] <= completion_faults[32*n+:32] + 32'(completion_fault);
      assert (rst || may_fault || !completion_fault);
      if (rst) begin
        counts[32*n*rdma_pkg::COUNTS+:32*rdma_pkg::COUNTS] <= '0;
        {missed[32*n+:32], unreadable[32*n+:32], refused[32*n+:32], reply_refused[32*n+:32], gone_good[32*n+:32], gone_bad[32*n+:32]} <= '0;
        completion_faults[32*n+:32] <= '0;
        {is_amid, was_offered, tx_amid, tx_asks} <= '0;
        {logged[32*n+:32], payload_amid} <= '0;
      end
    end
  end
endmodule
