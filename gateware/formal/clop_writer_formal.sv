// SPDX-License-Identifier: Apache-2.0
// clop_writer against the NIC contract, written here once more from what its ports show: every word that it writes goes where the contract says, with
// the bytes, data and end that it says, into buffers that the consumer has returned; a completion tells of just what was written; every packet is
// counted once. Under any packets, good, bad or cut, with gaps between their words, any time-outs and flushes, any pauses of the bus, a
// consumer that returns buffers whenever it likes, and CLOPs that are enabled and disabled at any time.
module clop_writer_formal #(
    parameter int CLOPS = 2,
    parameter int ADDRESS_BITS = 14,
    parameter int BYTES_MAX = 100
) (
    input logic clk,
    input logic rst,
    input logic [63:0] now_ns,
    input logic [63:0] now_cycles,
    input logic [CLOPS-1:0] cfg_enable,
    input logic [CLOPS-1:0] cfg_flush,
    input logic [CLOPS-1:0] cfg_footer,
    input logic [CLOPS-1:0][ADDRESS_BITS-1:0] cfg_buffers,
    input logic [CLOPS-1:0][ADDRESS_BITS-1:0] cfg_index,
    input logic [CLOPS-1:0][31:0] cfg_buffer_bytes,
    input logic [CLOPS-1:0][16:0] cfg_buffer_count,
    input logic [CLOPS-1:0][15:0] cfg_index_capacity,
    input logic [CLOPS-1:0][15:0] cfg_room_bytes,
    input logic [CLOPS-1:0][31:0] cfg_timeout_ns,
    input logic [CLOPS-1:0][31:0] cfg_consumed,
    input logic [ADDRESS_BITS-1:0] cfg_completions,
    input logic [31:0] cfg_completion_mask,
    input logic [127:0] s_axis_tdata,
    input logic s_axis_tvalid,
    input logic s_axis_tlast,
    input logic s_bad,
    input logic s_soon,
    input logic s_lost,
    input logic [0:0] s_lost_clop,
    input logic [6:0] s_meta_bytes,
    input logic [0:0] s_meta_clop,
    input logic [15:0] s_meta_source,
    input logic [7:0] s_meta_event_count,
    input logic [63:0] s_meta_arrival_ns,
    input logic [63:0] s_meta_start_cycle,
    input logic [63:0] s_meta_parsed_cycle,
    input logic m_ready,
    input logic done_fault,
    input logic [0:0] done_clop
);
  logic s_axis_tready, m_valid, m_last, idle, count_stored, drop_disabled, drop_too_long, drop_no_buffer, drop_bad;
  logic m_is_completion, count_handed_over;
  logic [63:0] start_cycle, parsed_cycle, begin_cycle, end_cycle, completion_cycle;
  logic [ADDRESS_BITS-1:0] m_address;
  logic [7:0] m_bytes;
  logic [127:0] m_data;
  logic [0:0] m_clop, counted_clop;
  logic [CLOPS-1:0] clop_holds, clop_fault;
  logic [CLOPS-1:0][31:0] clop_handed_over;
  logic [31:0] completions_written;

  clop_writer #(.CLOPS(CLOPS), .ADDRESS_BITS(ADDRESS_BITS), .BYTES_MAX(BYTES_MAX)) dut (.*);

  // --- where each CLOP is, by the contract, and what goes on ---
  localparam logic [2:0] NONE = 3'd0, PAYLOAD = 3'd1, FOOTER = 3'd2, INDEX = 3'd3, COMPLETE = 3'd4;
  logic [2:0] phase;  // of the write or packet that has begun
  logic [1:0] step;   // word of a footer or completion
  logic [0:0] clop;   // of that
  logic [31:0] completed;
  logic [CLOPS-1:0][63:0] handed_over, first_ns, last_ns;
  logic [CLOPS-1:0][16:0] buffer;
  logic [CLOPS-1:0][ADDRESS_BITS-1:0] buffer_at, index_at;
  logic [CLOPS-1:0][31:0] used, events;
  logic [CLOPS-1:0][15:0] packets, stride;
  logic [CLOPS-1:0][7:0] events_max;

  // --- what the driver promises: settings stand still until a CLOP was taken away and has forgotten everything; then consumed is zero for a while ---
  typedef struct packed {
    logic footer;
    logic [ADDRESS_BITS-1:0] buffers, index;
    logic [31:0] buffer_bytes;
    logic [16:0] buffer_count;
    logic [15:0] index_capacity;
    logic [15:0] room_bytes;
    logic [31:0] timeout_ns;
  } settings_t;
  // Small ones: the solver's work grows with them, what there is to find does not.
  function automatic logic is_small(input settings_t given);
    is_small = given.buffer_bytes <= 32'd511 && given.room_bytes <= 16'd127 && given.buffer_count >= 17'd2 && given.buffer_count <= 17'd4 && given.index_capacity != '0 && given.index_capacity <= 16'd7;
  endfunction

  logic running;
  settings_t settings[CLOPS], settings_before[CLOPS];
  logic [CLOPS-1:0] enabled, forgotten;
  logic [CLOPS-1:0][2:0] rests;
  logic [CLOPS-1:0][31:0] consumed_before;
  logic [ADDRESS_BITS-1:0] completions_before;
  logic [31:0] mask_before;
  initial running = 1'b0;
  for (genvar c = 0; c < CLOPS; c++) begin : g_driver
    assign settings[c] = '{cfg_footer[c], cfg_buffers[c], cfg_index[c], cfg_buffer_bytes[c], cfg_buffer_count[c], cfg_index_capacity[c], cfg_room_bytes[c], cfg_timeout_ns[c]};
    always_ff @(posedge clk) begin
      settings_before[c] <= settings[c];
      enabled[c] <= cfg_enable[c] && !rst;
      forgotten[c] <= rst || (!cfg_enable[c] && (forgotten[c] || dut.free));
      rests[c] <= rst ? '0 : {rests[c][1:0], !cfg_enable[c] && forgotten[c] && cfg_consumed[c] == '0 && settings[c] == settings_before[c]};
      consumed_before[c] <= cfg_consumed[c];
      if (running) begin
        if (!forgotten[c] || enabled[c]) assume (settings[c] == settings_before[c]);
        if (cfg_enable[c] && !enabled[c]) assume (rests[c] == '1 && cfg_consumed[c] == '0 && settings[c] == settings_before[c]);
        if (cfg_enable[c]) assume (is_small(settings[c]));
        if (!forgotten[c]) assume (cfg_consumed[c] - consumed_before[c] <= handed_over[c][31:0] - consumed_before[c]);
      end
    end
  end
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    if (rst) assume (cfg_enable == '0);
    {completions_before, mask_before} <= {cfg_completions, cfg_completion_mask};
    if (running) assume (cfg_completions == completions_before && cfg_completion_mask == mask_before);
  end

  // --- what rx_fifo promises ---
  typedef struct packed {
    logic [6:0]  bytes;
    logic [0:0]  clop;
    logic [15:0] source;
    logic [7:0]  event_count;
    logic [63:0] arrival_ns, start_cycle, parsed_cycle;
  } meta_t;
  logic waits, in_packet, was_bad, was_last;
  logic [127:0] waiting_data;
  logic [2:0] word;  // of the packet, that is offered or will be
  meta_t meta, meta_before, packet;  // packet: that of the last word that was written
  assign meta = '{s_meta_bytes, s_meta_clop, s_meta_source, s_meta_event_count, s_meta_arrival_ns, s_meta_start_cycle, s_meta_parsed_cycle};
  wire [2:0] last_word = 3'((s_meta_bytes - 7'd1) >> 4);
  wire takes = s_axis_tvalid && s_axis_tready;
  always_ff @(posedge clk) begin
    waits <= s_axis_tvalid && !s_axis_tready && !rst;
    in_packet <= !rst && (takes ? !s_axis_tlast : in_packet || s_axis_tvalid);
    word <= rst || (takes && s_axis_tlast) ? '0 : word + 3'(takes);
    meta_before <= meta;
    {was_bad, was_last, waiting_data} <= {s_bad, s_axis_tlast, s_axis_tdata};
    if (running) begin
      if (in_packet) assume (meta == meta_before && (s_bad || !was_bad));
      if (waits) assume (s_axis_tvalid && s_axis_tdata == waiting_data && s_axis_tlast == was_last && (!was_last || s_bad == was_bad));
      if (s_axis_tvalid) begin
        assume (s_meta_bytes != '0 ? word <= last_word : word == '0 && s_axis_tlast && s_bad);
        if (word == last_word) assume (s_axis_tlast);
        if (s_axis_tlast && word != last_word) assume (s_bad);
      end
    end
  end

`ifdef REFUSES
  // A fault is looked for in one quiet CLOP, a packet a buffer: the solver then finds in seconds what takes two hand-overs.
  always_ff @(posedge clk) begin
    assume (m_ready && !s_bad && !done_fault && !s_lost && cfg_flush == '0 && !cfg_enable[1] && !s_meta_clop && s_axis_tvalid == !rst);
    assume (s_meta_bytes == 7'd32 && {s_axis_tdata, s_meta_source, s_meta_event_count, s_meta_arrival_ns, s_meta_start_cycle, s_meta_parsed_cycle} == '0);
    assume ({now_ns, now_cycles, cfg_consumed, cfg_completions, cfg_completion_mask, cfg_buffers, cfg_timeout_ns, cfg_footer} == '0);
    assume (cfg_index == {CLOPS{14'h2000}} && cfg_room_bytes == '0 && cfg_buffer_bytes == {CLOPS{32'd64}} && cfg_buffer_count == {CLOPS{17'd2}} && cfg_index_capacity == {CLOPS{16'd1}});
  end
`endif

  // --- what is written ---
  wire go = m_valid && m_ready;
  wire is_completion = phase == COMPLETE || (phase == NONE && m_is_completion);
  wire is_payload = phase == PAYLOAD || (phase == NONE && !m_is_completion);
  wire [31:0] payload_room = (32'(s_meta_bytes) + 32'd15) & ~32'd15;
  wire [31:0] packet_room = (32'(packet.bytes) + 32'd15) & ~32'd15;
  wire [31:0] room = (is_payload ? payload_room : packet_room) + (cfg_footer[m_clop] ? 32'd32 : 32'd0);
  wire [31:0] with_consumer = handed_over[m_clop][31:0] - cfg_consumed[m_clop];
  contract_pkg::packet_ref_t packet_ref;
  assign packet_ref = '{packet.source, 16'(packet.bytes), used[m_clop]};
  contract_pkg::completion_t completion;
  wire [3:0][127:0] told = completion;
  always_comb begin
    completion = '0;
    completion.first_packet_ns = first_ns[m_clop];
    completion.last_packet_ns = last_ns[m_clop];
    completion.tag = handed_over[m_clop];
    completion.bytes = used[m_clop];
    completion.event_count = events[m_clop];
    completion.kind = contract_pkg::KIND_BUFFER_FILLED;
    completion.buffer_index = buffer[m_clop][15:0];
    completion.packet_count = packets[m_clop];
    completion.stride_bytes = stride[m_clop];
    completion.clop = 8'(m_clop);
    completion.packet_events_max = events_max[m_clop];
    completion.first_packet_low = first_ns[m_clop][31:0];
    completion.sequence_ = completed + 32'd1;
    completion.packets_lost = m_data[31:0];  // of the third word, as its status; it is not followed here
    completion.status = m_data[47:32];
  end
  wire [2:0] whys = 3'(completion.status);
  wire [15:0] gap = completion.packets_lost != '0 ? contract_pkg::STATUS_GAP : 16'h0;

  always_ff @(posedge clk) begin
    if (running && !rst && m_valid) begin
      if (phase != NONE) assert (m_clop == clop);
      if (is_payload) begin
        assert (s_axis_tvalid && s_axis_tready == m_ready);
        assert (m_clop == s_meta_clop && !forgotten[m_clop]);
        assert (m_address == cfg_buffers[m_clop] + buffer_at[m_clop] + ADDRESS_BITS'(used[m_clop]));
        assert (m_bytes == 8'(s_meta_bytes) && m_data == s_axis_tdata);
        assert (m_last == (word == last_word || s_bad));
        assert (with_consumer < 32'(cfg_buffer_count[m_clop]));
        assert (used[m_clop] + room <= cfg_buffer_bytes[m_clop]);
        assert (packets[m_clop] < cfg_index_capacity[m_clop]);
      end else if (phase == FOOTER) begin
        assert (m_address == cfg_buffers[m_clop] + buffer_at[m_clop] + ADDRESS_BITS'(used[m_clop] + packet_room));
        assert (m_bytes == 8'd32 && m_last == step[0] && !s_axis_tready);
        assert (m_data == (step[0] ? {end_cycle, begin_cycle} : {packet.parsed_cycle, packet.start_cycle}));
      end else if (phase == INDEX) begin
        assert (m_address == cfg_index[m_clop] + index_at[m_clop] + ADDRESS_BITS'({packets[m_clop], 3'b0}));
        assert (m_bytes == 8'd8 && m_last && !s_axis_tready);
        assert (m_data == {2{packet_ref}});
      end else begin
        assert (m_address == cfg_completions + ADDRESS_BITS'({completed & cfg_completion_mask, 6'b0}));
        assert (m_bytes == 8'd64 && m_last == (step == 2'd3) && !s_axis_tready);
        assert (m_data == told[step]);
        if (step == 2'd2) assert ($onehot(whys) && (16'(completion.status) & ~(contract_pkg::STATUS_ERROR | 16'h7)) == gap);
        assert (packets[m_clop] != '0 && with_consumer < 32'(cfg_buffer_count[m_clop]));
      end
      assert (m_is_completion == is_completion);
    end
    if (go) begin
      clop <= m_clop;
      step <= m_last || is_payload ? '0 : step + 2'd1;
      if (is_payload) begin
        packet <= meta;
        phase <= !m_last ? PAYLOAD : s_bad ? NONE : cfg_footer[m_clop] ? FOOTER : INDEX;
      end else if (is_completion) begin
        phase <= m_last ? NONE : COMPLETE;
      end else begin
        phase <= phase == FOOTER && !m_last ? FOOTER : phase == FOOTER ? INDEX : NONE;
      end
    end
    for (int c = 0; c < CLOPS; c++) begin
      if (go && phase == INDEX && int'(m_clop) == c) begin
        used[c] <= used[c] + room;
        packets[c] <= packets[c] + 16'd1;
        events[c] <= events[c] + 32'(packet.event_count);
        if (packet.event_count > events_max[c]) events_max[c] <= packet.event_count;
        if (packets[c] == '0) first_ns[c] <= packet.arrival_ns;
        last_ns[c] <= packet.arrival_ns;
        // All of one size that fills whole words, or there is one alone.
        stride[c] <= !cfg_footer[c] && (packets[c] == '0 || (stride[c] == 16'(packet.bytes) && packet.bytes[3:0] == '0)) ? 16'(packet.bytes) : '0;
      end
      if (go && is_completion && m_last && int'(m_clop) == c) begin
        {used[c], packets[c], events[c], events_max[c], first_ns[c], last_ns[c], stride[c]} <= '0;
        handed_over[c] <= handed_over[c] + 64'd1;
        buffer[c] <= buffer[c] + 17'd1 == cfg_buffer_count[c] ? '0 : buffer[c] + 17'd1;
        buffer_at[c] <= buffer[c] + 17'd1 == cfg_buffer_count[c] ? '0 : buffer_at[c] + ADDRESS_BITS'(cfg_buffer_bytes[c]);
        index_at[c] <= buffer[c] + 17'd1 == cfg_buffer_count[c] ? '0 : index_at[c] + ADDRESS_BITS'({cfg_index_capacity[c], 3'b0});
      end
      if (rst || (!cfg_enable[c] && dut.free)) begin
        {used[c], packets[c], events[c], events_max[c], first_ns[c], last_ns[c], stride[c]} <= '0;
        {handed_over[c], buffer[c], buffer_at[c], index_at[c]} <= '0;
      end
    end
    if (go && is_completion && m_last) completed <= completed + 32'd1;
    if (rst) begin
      phase <= NONE;
      step <= '0;
      completed <= '0;
    end
  end

  // --- the books ---
  logic was_stored, was_handed_over, was_dropped, dropped_bad;
  logic [0:0] was_clop;
  always_ff @(posedge clk) begin
    was_stored <= go && phase == INDEX && !rst;
    was_handed_over <= go && is_completion && m_last && !rst;
    was_clop <= m_clop;
    was_dropped <= takes && s_axis_tlast && (s_bad || !m_valid) && !rst;
    dropped_bad <= s_bad;
    if (running && !rst) begin
      assert (count_stored == was_stored && count_handed_over == was_handed_over);
      if (was_stored || was_handed_over) assert (counted_clop == was_clop);
      assert (was_dropped ? $onehot({drop_disabled, drop_too_long, drop_no_buffer, drop_bad}) : {drop_disabled, drop_too_long, drop_no_buffer, drop_bad} == '0);
      if (was_dropped) assert (drop_bad == dropped_bad);
      assert (completions_written == completed);
    end
  end

  // --- for induction: what clop_writer remembers is what the contract says ---
  // Its states, whose names are its own.
  localparam logic [2:0] IN_IDLE = 3'd0, IN_DECIDE = 3'd1, IN_PAYLOAD = 3'd2, IN_FOOTER = 3'd3, IN_INDEX = 3'd4, IN_COMPLETE = 3'd5, IN_SKIP = 3'd6;
  settings_t own;  // of the CLOP that is worked on, as they were when it was begun with
  assign own = settings_before[dut.clop];
  wire working = dut.state == IN_PAYLOAD || dut.state == IN_FOOTER || dut.state == IN_INDEX;
  wire [31:0] live_bytes = 32'(dut.state == IN_PAYLOAD || dut.state == IN_DECIDE ? s_meta_bytes : packet.bytes);
  wire [31:0] live_room = ((live_bytes + 32'd15) & ~32'd15) + (cfg_footer[dut.clop] ? 32'd32 : 32'd0);
  always_ff @(posedge clk) begin
    if (running && !rst) begin
      for (int c = 0; c < CLOPS; c++) begin
        assert (dut.clops[c].used == used[c] && dut.clops[c].packets == packets[c]);
        assert (dut.clops[c].handed_over == handed_over[c] && dut.clops[c].buffer == buffer[c]);
        assert (dut.clops[c].buffer_at == buffer_at[c] && dut.clops[c].index_at == index_at[c]);
        assert (dut.clops[c].events == events[c] && dut.clops[c].events_max == events_max[c] && dut.clops[c].stride == stride[c]);
        assert (dut.clops[c].first_ns == first_ns[c] && dut.clops[c].last_ns == last_ns[c]);
        if (forgotten[c] && !enabled[c]) assert (handed_over[c] == '0 && packets[c] == '0 && used[c] == '0 && buffer[c] == '0 && buffer_at[c] == '0 && index_at[c] == '0 && {events[c], events_max[c]} == '0);
        assert (packets[c] != '0 || used[c] == '0);
        if (enabled[c]) assert (!forgotten[c]);
        if (!forgotten[c]) begin
          assert (is_small(settings_before[c]));
          assert (used[c] <= cfg_buffer_bytes[c] && packets[c] <= cfg_index_capacity[c] && buffer[c] < cfg_buffer_count[c]);
          assert (handed_over[c][31:0] - cfg_consumed[c] <= 32'(cfg_buffer_count[c]));
          assert (packets[c] == '0 || handed_over[c][31:0] - cfg_consumed[c] < 32'(cfg_buffer_count[c]));
          assert (dut.none_left[c] || handed_over[c][31:0] - cfg_consumed[c] < 32'(cfg_buffer_count[c]));
          assert (handed_over[c][31:0] - cfg_consumed[c] <= dut.not_returned[c] + 32'(dut.handed_over_before[c]));
          assert (dut.not_returned[c] + 32'(dut.handed_over_before[c]) <= 32'(cfg_buffer_count[c]));
          assert (packets[c] == '0 || dut.not_returned[c] + 32'(dut.handed_over_before[c]) < 32'(cfg_buffer_count[c]));
        end
      end
      assert (dut.handed_over_before == '0 || dut.state == IN_IDLE || dut.state == IN_DECIDE);
      assert (dut.state <= IN_SKIP);
      assert (dut.clop == clop || phase == NONE);
      case (phase)
        PAYLOAD: assert (dut.state == IN_PAYLOAD && word != '0);
        FOOTER: assert (dut.state == IN_FOOTER && dut.step == step && step <= 2'd1 && cfg_footer[dut.clop]);
        INDEX: assert (dut.state == IN_INDEX);
        COMPLETE: assert (dut.state == IN_COMPLETE && dut.step == step && step != '0);
        default: assert (phase == NONE && step == '0 && dut.state != IN_FOOTER && dut.state != IN_INDEX && (dut.state != IN_PAYLOAD || word == '0) && (dut.state != IN_COMPLETE || dut.step == '0));
      endcase
      if (dut.state == IN_SKIP || dut.state == IN_PAYLOAD) assert (dut.reason != 2'd3);
      if (dut.state == IN_DECIDE) assert (in_packet && word == '0 && dut.step == '0);
      if (dut.state == IN_PAYLOAD || dut.state == IN_SKIP) assert (in_packet && dut.step == '0);
      if (dut.state == IN_IDLE || (dut.state == IN_COMPLETE && !dut.for_packet) || dut.state == IN_FOOTER || dut.state == IN_INDEX) assert (word == '0);
      if (dut.state == IN_COMPLETE && dut.for_packet) assert (in_packet && word == '0);
      if (dut.state == IN_PAYLOAD || dut.state == IN_DECIDE || dut.state == IN_SKIP || (dut.state == IN_COMPLETE && dut.for_packet)) assert (dut.clop == s_meta_clop);
      if (working || dut.state == IN_COMPLETE) assert (!forgotten[dut.clop]);
      if (dut.state == IN_INDEX) assert (dut.step == '0 || cfg_footer[dut.clop]);
      if (dut.state != IN_IDLE && dut.state != IN_SKIP) begin
        assert (dut.buffer_bytes == own.buffer_bytes && dut.index_capacity == own.index_capacity && dut.with_footer == own.footer);
      end
      if (dut.state == IN_DECIDE) assert (dut.left == own.buffer_bytes - used[dut.clop]);
      if (dut.state == IN_DECIDE || (dut.state == IN_COMPLETE && dut.for_packet)) begin
        assert (32'(dut.footer_from) == payload_room && 32'(dut.room) == payload_room + (own.footer ? 32'd32 : 32'd0));
      end
      if (working) begin
        assert (dut.used_next == used[dut.clop] + live_room && dut.used_next <= cfg_buffer_bytes[dut.clop]);
        assert (dut.left_after == cfg_buffer_bytes[dut.clop] - dut.used_next);
        assert (packets[dut.clop] < cfg_index_capacity[dut.clop] && handed_over[dut.clop][31:0] - cfg_consumed[dut.clop] < 32'(cfg_buffer_count[dut.clop]));
        assert (dut.not_returned[dut.clop] + 32'(dut.handed_over_before[dut.clop]) < 32'(cfg_buffer_count[dut.clop]));
        assert (dut.buffer_base == cfg_buffers[dut.clop] + buffer_at[dut.clop] && dut.index_base == cfg_index[dut.clop] + index_at[dut.clop]);
        assert (dut.footer_offset == used[dut.clop] + ((live_bytes + 32'd15) & ~32'd15));
        assert (7'(live_bytes) == dut.ref_bytes && dut.stride_kept == (!cfg_footer[dut.clop] && (packets[dut.clop] == '0 || (stride[dut.clop] == 16'(live_bytes) && live_bytes[3:0] == '0))));
      end
      if (dut.state == IN_PAYLOAD) begin
        assert (s_meta_bytes == '0 || dut.words_left == last_word - word);
        assert (dut.ref_source == s_meta_source && dut.event_count == s_meta_event_count && dut.arrival_ns == s_meta_arrival_ns);
        assert (start_cycle == s_meta_start_cycle && parsed_cycle == s_meta_parsed_cycle);
      end
      if (dut.state == IN_FOOTER || dut.state == IN_INDEX) begin
        assert (dut.ref_source == packet.source && dut.event_count == packet.event_count && dut.arrival_ns == packet.arrival_ns);
        assert (start_cycle == packet.start_cycle && parsed_cycle == packet.parsed_cycle);
      end
      if (dut.state == IN_COMPLETE) begin
        assert (packets[dut.clop] != '0 && $onehot(dut.why[2:0]) && dut.why[15:3] == '0);
        assert (dut.completion_base == cfg_completions + ADDRESS_BITS'({completed & cfg_completion_mask, 6'b0}));
      end
      if (dut.for_packet) assert (dut.state == IN_COMPLETE || dut.state == IN_DECIDE || dut.state == IN_IDLE);
    end
  end
endmodule
