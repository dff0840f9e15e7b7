// SPDX-License-Identifier: Apache-2.0
// NaNet controller, encapsulation: puts 32 bytes in front of each payload that say which stream it is of, its number in it, its length and when it came.
//
// Terms
//   stream   what the payloads of one entry of the match table are: numbered from 0 on. `restart` (a pulse) makes the next packet that begins number 0.
//   header   little-endian: stream u16, payload_bytes u16, sequence u32, start_cycle u64, header_cycle u64, header_ns u64. start_cycle is s_meta_start_cycle,
//            the other two are when the payload's first word came in.
//
// Contract
//   * The input never waits, as after udp_rx; between two packets lie at least GAP_CYCLES without a word. m_axis_tready there is none.
//   * The header's first word leaves one cycle after the payload's first word came in, each word of the payload LATENCY_CYCLES after it came in: always. A
//     packet that comes without gaps leaves without gaps.
//   * A packet that came in bad, or is not as long as s_meta_payload_bytes says, ends with m_axis_tuser. Its number is given to the next: so the numbers that
//     are missing further on are those of good packets that were lost there.
//   * Each packet that did not come in bad gives one pulse of one counter.
module nanet_encap #(
    parameter int STREAMS = 16,
    localparam int STREAM_BITS = $clog2(STREAMS)
) (
    input logic clk,
    input logic rst,

    input logic [       63:0] now_cycles,
    input logic [       63:0] now_ns,
    input logic [STREAMS-1:0] restart,

    input logic [           63:0] s_axis_tdata,
    input logic [            7:0] s_axis_tkeep,
    input logic                   s_axis_tvalid,
    input logic                   s_axis_tlast,
    input logic                   s_axis_tuser,
    input logic [STREAM_BITS-1:0] s_meta_stream,
    input logic [           15:0] s_meta_payload_bytes,
    input logic [           63:0] s_meta_start_cycle,

    output logic [           63:0] m_axis_tdata,
    output logic [            7:0] m_axis_tkeep,
    output logic                   m_axis_tvalid,
    output logic                   m_axis_tlast,
    output logic                   m_axis_tuser,
    output logic [STREAM_BITS-1:0] m_meta_stream,
    output logic [           15:0] m_meta_bytes,        // header and payload
    output logic [           63:0] m_meta_start_cycle,

    output logic count_good,
    output logic drop_length
);
  localparam int HEADER_WORDS = 4;
  localparam int LATENCY_CYCLES = HEADER_WORDS + 1;
  localparam int GAP_CYCLES = HEADER_WORDS;

  if (STREAMS < 2 || STREAMS > 256) begin : g_check
    $fatal(1, "STREAMS must be 2 to 256 (instance %m)");
  end

  // --- number and length ---
  logic [31:0] numbers[STREAMS];  // of the next packet, of streams that have begun
  logic [STREAMS-1:0] begun;
  logic in_packet, restarted, counted;
  logic [STREAM_BITS-1:0] counted_stream;
  logic [31:0] number;
  logic [15:0] words_bytes;  // of the words before this one
  wire begins = s_axis_tvalid && !in_packet;
  wire ends = s_axis_tvalid && s_axis_tlast;
  wire [31:0] number_next = begun[s_meta_stream] ? numbers[s_meta_stream] : 32'd0;
  logic [3:0] kept;
  always_comb begin
    kept = '0;
    for (int lane = 0; lane < 8; lane++) if (s_axis_tkeep[lane]) kept = 4'(lane + 1);
  end
  wire [15:0] bytes = (begins ? 16'd0 : words_bytes) + 16'(kept);
  wire wrong_length = ends && bytes != s_meta_payload_bytes;
  wire good = ends && !s_axis_tuser && !wrong_length;
  wire counts_on = good && !restart[s_meta_stream] && !(restarted && !begins);

  always_ff @(posedge clk) begin
    if (begins) number <= number_next;
    counted <= counts_on;  // a cycle later the number stands in a register, and the next packet is not there yet
    counted_stream <= s_meta_stream;
    if (counted) numbers[counted_stream] <= number + 32'd1;
    if (s_axis_tvalid) begin
      in_packet <= !s_axis_tlast;
      words_bytes <= bytes;
    end
    restarted <= (restarted && !begins) || restart[s_meta_stream];  // since the packet began
    if (counts_on) begun[s_meta_stream] <= 1'b1;
    for (int stream = 0; stream < STREAMS; stream++) if (restart[stream]) begun[stream] <= 1'b0;
    count_good <= good && !rst;
    drop_length <= ends && !s_axis_tuser && wrong_length && !rst;
    if (rst) begin
      in_packet <= 1'b0;
      begun <= '0;
    end
  end

  // --- the payload waits until the header has left ---
  logic [HEADER_WORDS-1:0] valids, lasts, users;
  logic [63:0] datas[HEADER_WORDS];
  logic [7:0] keeps[HEADER_WORDS];

  always_ff @(posedge clk) begin
    datas[0] <= s_axis_tdata;
    keeps[0] <= s_axis_tkeep;
    for (int word = 1; word < HEADER_WORDS; word++) begin
      datas[word] <= datas[word-1];
      keeps[word] <= keeps[word-1];
    end
    lasts <= {lasts[HEADER_WORDS-2:0], s_axis_tlast};
    users <= {users[HEADER_WORDS-2:0], s_axis_tuser || wrong_length};
    valids <= rst ? '0 : {valids[HEADER_WORDS-2:0], s_axis_tvalid};
  end

  logic [HEADER_WORDS-2:0] header_place;  // one-hot: which word of the header after the first is next
  logic [63:0] header_cycle, header_ns;

  always_ff @(posedge clk) begin
    header_place <= rst ? '0 : {header_place[HEADER_WORDS-3:0], begins};
    m_axis_tvalid <= !rst && (begins || header_place != '0 || valids[HEADER_WORDS-1]);
    m_axis_tlast <= 1'b0;
    m_axis_tuser <= 1'b0;
    m_axis_tkeep <= '1;
    if (begins) begin
      m_axis_tdata <= {number_next, s_meta_payload_bytes, 16'(s_meta_stream)};
      m_meta_stream <= s_meta_stream;
      m_meta_bytes <= s_meta_payload_bytes + 16'(8 * HEADER_WORDS);
      m_meta_start_cycle <= s_meta_start_cycle;
      header_cycle <= now_cycles;
      header_ns <= now_ns;
    end else if (header_place[0]) m_axis_tdata <= m_meta_start_cycle;
    else if (header_place[1]) m_axis_tdata <= header_cycle;
    else if (header_place[2]) m_axis_tdata <= header_ns;
    else begin
      m_axis_tdata <= datas[HEADER_WORDS-1];
      m_axis_tkeep <= keeps[HEADER_WORDS-1];
      m_axis_tlast <= lasts[HEADER_WORDS-1];
      m_axis_tuser <= lasts[HEADER_WORDS-1] && users[HEADER_WORDS-1];
    end
  end

  // --- what must hold ---
  logic [LATENCY_CYCLES-1:0] came;
  logic [GAP_CYCLES-1:0] quiet;
  always_ff @(posedge clk) begin
    came <= rst ? '0 : {came[LATENCY_CYCLES-2:0], ends};
    quiet <= rst ? '0 : {quiet[GAP_CYCLES-2:0], ends};
    if (!rst) begin
      assert (!begins || quiet == '0);
      assert (!(valids[HEADER_WORDS-1] && (begins || header_place != '0)));
      assert ((m_axis_tvalid && m_axis_tlast) == came[LATENCY_CYCLES-1]);
    end
  end
endmodule
