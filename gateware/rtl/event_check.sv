// SPDX-License-Identifier: Apache-2.0
// Checks MGP packets as MgpView::parse does (docs/formats.md), while they come in: what is refused there ends here with m_axis_tuser.
//
// Contract
//   * A word in every cycle, no waiting, no gap between packets needed. Each word leaves LATENCY_CYCLES after it came in.
//   * Each packet that did not come in bad gives one pulse of one counter, with its last word.
//   * What leaves good holds: a marker of 24 bytes, or a padded or packed data packet whose events lie inside, with the right checksum. So those behind need not
//     look again; but what leaves bad must be thrown away before (frame_fifo does).
module event_check (
    input logic clk,
    input logic rst,

    input logic [63:0] s_axis_tdata,
    input logic [ 7:0] s_axis_tkeep,
    input logic        s_axis_tvalid,
    input logic        s_axis_tlast,
    input logic        s_axis_tuser,

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,

    output logic count_good,
    output logic drop_length,
    output logic drop_format,
    output logic drop_checksum
);
  localparam int LATENCY_CYCLES = 6;
  localparam int SUM_CYCLES = 5;   // of event_checksum
  localparam int BYTES_BITS = 16;  // of a place in a packet

  // --- the words wait for the sums ---
  logic [SUM_CYCLES-1:0] valids, lasts, users;
  logic [63:0] datas[SUM_CYCLES];
  logic [7:0] keeps[SUM_CYCLES];

  // --- where a word stands; what a hit count in each of its lanes would mean is known in the next cycle ---
  logic in_packet, in_body;              // a word came before; two did
  logic [BYTES_BITS-1:0] at_byte;        // of the next word
  logic word_first, word_second, word_body;
  logic [BYTES_BITS-4:0] word_index;
  logic [8:0] lane_bytes[8];             // of an event
  logic [7:0] lane_many;
  logic [7:0] format, event_count;
  wire [BYTES_BITS-1:0] place = in_packet ? at_byte : '0;
  wire padded = format[3:0] == event_pkg::LAYOUT_PADDED;
  logic [3:0] kept;
  always_comb begin
    kept = '0;
    for (int lane = 0; lane < 8; lane++) if (s_axis_tkeep[lane]) kept = 4'(lane + 1);
  end

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      in_packet <= !s_axis_tlast;
      in_body <= in_packet && !s_axis_tlast;
      at_byte <= place + BYTES_BITS'(kept);
    end
    {word_first, word_second, word_body, word_index} <= {!in_packet, in_packet && !in_body, in_body, place[BYTES_BITS-1:3]};
    for (int lane = 0; lane < 8; lane++) begin
      lane_bytes[lane] <= padded ? 9'(event_pkg::SLOT_BYTES) : packed_bytes(s_axis_tdata[8*lane+:8]);
      lane_many[lane] <= s_axis_tdata[8*lane+:8] > 8'(event_pkg::PADDED_HITS_MAX);
    end
    if (rst) {in_packet, in_body} <= '0;
  end

  // A packed event: its header, and 9 bits for each hit.
  function automatic logic [8:0] packed_bytes(input logic [7:0] hit_count);
    packed_bytes = 9'(event_pkg::EVENT_HEADER_BYTES) + 9'(hit_count) + 9'(hit_count >> 3) + 9'(hit_count[2:0] != '0);
  endfunction

  // --- header, and a walk from event to event by their hit counts: no two of them are in one word ---
  logic no_board;
  logic [31:0] checksum;
  logic [7:0] left;                        // events whose hit count was not seen yet
  logic [BYTES_BITS-1:0] next_count;       // place of the next hit count
  logic many_hits;
  logic [BYTES_BITS-1:0] length, length_then;  // of the packet; where the next hit count would be if its last event ended there
  wire [2:0] lane = next_count[2:0];
  wire sees_count = valids[0] && word_body && left != '0 && next_count[BYTES_BITS-1:3] == word_index && keeps[0][lane];
  always_ff @(posedge clk) begin
    if (valids[0]) begin
      if (word_first) begin
        {event_count, format} <= datas[0][31:16];
        no_board <= datas[0][15:10] != '0;
        left <= datas[0][31:24];
        next_count <= BYTES_BITS'(event_pkg::HEADER_BYTES + event_pkg::HIT_COUNT_PLACE);
        many_hits <= 1'b0;
      end
      if (word_second) checksum <= datas[0][63:32];
      length <= at_byte;
      length_then <= at_byte + BYTES_BITS'(event_pkg::HIT_COUNT_PLACE);
    end
    if (sees_count) begin
      left <= left - 8'd1;
      next_count <= next_count + BYTES_BITS'(lane_bytes[lane]);
      if (lane_many[lane]) many_hits <= 1'b1;
    end
  end

  // --- the verdict, when the last word is in ---
  logic ended;
  logic [SUM_CYCLES-3:0] wrong_length, wrong_format;
  logic [31:0] announced[SUM_CYCLES-3];
  wire marker = event_count == '0;
  wire bad_size = length < 16'(event_pkg::HEADER_BYTES) || length > 16'(event_pkg::PACKET_BYTES_MAX) || length[0];
  wire bad_header = !(padded || format[3:0] == event_pkg::LAYOUT_PACKED) || format[7:6] != '0 || (!padded && no_board) ||
                    (marker && format[4] == format[5]);
  wire bad_length = marker ? length != 16'(event_pkg::MARKER_BYTES) :
                    padded ? length != 16'(event_pkg::PADDED_BYTES) : left != '0 || next_count > length_then;
  wire bad_events = padded && !marker && (event_count > 8'(event_pkg::PADDED_EVENTS_MAX) || many_hits);

  always_ff @(posedge clk) begin
    ended <= valids[0] && lasts[0] && !rst;
    wrong_length <= {wrong_length[SUM_CYCLES-4:0], ended && (bad_size || (!bad_header && bad_length))};
    wrong_format <= {wrong_format[SUM_CYCLES-4:0], ended && !bad_size && (bad_header || (!bad_length && bad_events))};
    announced[0] <= checksum;
    for (int stage = 1; stage < SUM_CYCLES - 3; stage++) announced[stage] <= announced[stage-1];
  end

  logic [15:0] first_sum, second_sum;
  event_checksum i_checksum (
      .clk,
      .valid(s_axis_tvalid),
      .first(!in_packet),
      .counts({{2{in_body || !in_packet}}, 2'b11} & {s_axis_tkeep[6], s_axis_tkeep[4], s_axis_tkeep[2], s_axis_tkeep[0]}),  // but the checksum
      .data(s_axis_tdata),
      .first_sum,
      .second_sum
  );

  wire ends = valids[SUM_CYCLES-1] && lasts[SUM_CYCLES-1];
  wire wrong_sum = {second_sum, first_sum} != announced[SUM_CYCLES-4];
  wire refused = wrong_length[SUM_CYCLES-3] || wrong_format[SUM_CYCLES-3] || wrong_sum;
  wire counts = ends && !users[SUM_CYCLES-1] && !rst;

  always_ff @(posedge clk) begin
    datas[0] <= s_axis_tdata;
    keeps[0] <= s_axis_tkeep;
    for (int stage = 1; stage < SUM_CYCLES; stage++) begin
      datas[stage] <= datas[stage-1];
      keeps[stage] <= keeps[stage-1];
    end
    valids <= rst ? '0 : {valids[SUM_CYCLES-2:0], s_axis_tvalid};
    lasts <= {lasts[SUM_CYCLES-2:0], s_axis_tlast};
    users <= {users[SUM_CYCLES-2:0], s_axis_tuser};
    m_axis_tdata <= datas[SUM_CYCLES-1];
    m_axis_tkeep <= keeps[SUM_CYCLES-1];
    m_axis_tvalid <= valids[SUM_CYCLES-1] && !rst;
    m_axis_tlast <= lasts[SUM_CYCLES-1];
    m_axis_tuser <= ends && (users[SUM_CYCLES-1] || refused);
    count_good <= counts && !refused;
    drop_length <= counts && wrong_length[SUM_CYCLES-3];
    drop_format <= counts && wrong_format[SUM_CYCLES-3];
    drop_checksum <= counts && !wrong_length[SUM_CYCLES-3] && !wrong_format[SUM_CYCLES-3] && wrong_sum;
  end

  // --- what must hold ---
  logic [LATENCY_CYCLES-1:0] came;
  always_ff @(posedge clk) begin
    came <= rst ? '0 : {came[LATENCY_CYCLES-2:0], s_axis_tvalid};
    if (!rst) begin
      assert (m_axis_tvalid == came[LATENCY_CYCLES-1]);
      assert (!s_axis_tvalid || s_axis_tlast || s_axis_tkeep == '1);
      assert ($onehot0({count_good, drop_length, drop_format, drop_checksum}));
    end
  end
endmodule
