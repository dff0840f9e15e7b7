// SPDX-License-Identifier: Apache-2.0
// Records into frames that arrive, whatever is lost on the way: each frame has a number, and stays here until the host has acknowledged it. After RETRY_CYCLES
// without an acknowledgement all of those in flight are sent again, from the oldest on (go-back-N).
//
// A frame is closed when the wire is idle, or when it has no room for another record: so a request waits for nothing, and those that come in quick succession
// share a frame.
//
// Contract
//   * s_ready falls while memory or numbers are used up. A record has at most RECORD_WORDS_MAX words.
//   * Nothing is sent before `opened`. session, host and expected stand still from a reset on, but for expected.
//   * acknowledge: acknowledged is of a frame of this session. A number that is not of a frame in flight changes nothing.
//   * A reset cuts the frame that leaves: the MAC ends it as bad, and throws the next one away with what it lacks, so who opens a session asks twice.
//   * `answer` is a pulse: a frame leaves soon that says what `expected` is, with records or without.
module link_sender #(
    parameter int WORDS = 2048,  // of 8 bytes, for all frames in flight; a power of two
    parameter int FRAMES = 16,   // in flight at most, less one; a power of two
    parameter int RECORD_WORDS_MAX = 33,
    parameter int RETRY_CYCLES = 62500,
    parameter logic [47:0] STATION = 48'h02_00_00_00_00_01
) (
    input logic clk,
    input logic rst,

    input logic        opened,
    input logic [31:0] session,
    input logic [47:0] host,
    input logic [15:0] expected,
    input logic        answer,
    input logic        acknowledge,
    input logic [15:0] acknowledged,

    input  logic [63:0] s_data,
    input  logic        s_valid,
    output logic        s_ready,
    input  logic        s_last,   // of a record

    output logic [63:0] m_axis_tdata,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast,

    output logic count_retry  // a pulse for each time that all are sent again
);
  localparam int WORD_BITS = $clog2(WORDS);
  localparam int FRAME_BITS = $clog2(FRAMES);
  localparam int OPEN_WORDS_MAX = host_link_pkg::FRAME_RECORD_BYTES_MAX / 8;
  localparam int OPEN_BITS = $clog2(OPEN_WORDS_MAX + 1);
  localparam int RETRY_BITS = $clog2(RETRY_CYCLES + 1);

  if (2 ** WORD_BITS != WORDS || 2 ** FRAME_BITS != FRAMES || WORDS < 2 * OPEN_WORDS_MAX || RECORD_WORDS_MAX > OPEN_WORDS_MAX) begin : g_check
    $fatal(1, "WORDS and FRAMES must be powers of two, WORDS room for two frames, a record must fit into one (instance %m)");
  end

  logic [63:0] words[WORDS];
  logic [WORD_BITS:0] ends[FRAMES];  // of each closed frame in flight
  logic [WORD_BITS:0] written, oldest_begin, read;
  logic [15:0] closed, sent, oldest;  // numbers of frames: the one that is being put together, the next to send, the first that is not acknowledged

  typedef enum logic [2:0] {
    IDLE,
    ADDRESSES,
    TYPE,
    NUMBERS,
    FETCH,
    WORD
  } state_t;
  state_t state;

  // --- records in ---
  logic [OPEN_BITS-1:0] open_words;
  logic in_record;  // a record
  wire frames_full = 16'(closed - oldest) == 16'(FRAMES - 1);
  wire words_full = written - oldest_begin == (WORD_BITS + 1)'(WORDS);
  wire open_full = open_words > OPEN_BITS'(OPEN_WORDS_MAX - RECORD_WORDS_MAX);
  wire closes = open_words != '0 && !in_record && !frames_full && (open_full || (state == IDLE && sent == closed));
  assign s_ready = !closes && !words_full && (in_record || !open_full);
  wire s_takes = s_valid && s_ready;
  always_ff @(posedge clk) begin
    if (s_takes) begin
      words[written[WORD_BITS-1:0]] <= s_data;
      written <= written + 1'b1;
      open_words <= open_words + 1'b1;
      in_record <= !s_last;
    end
    if (closes) begin
      ends[closed[FRAME_BITS-1:0]] <= written;
      closed <= closed + 16'd1;
      open_words <= '0;
    end
    if (rst) begin
      written <= '0;
      closed <= '0;
      open_words <= '0;
      in_record <= 1'b0;
    end
  end

  // --- what has arrived, and what is sent again ---
  logic [RETRY_BITS-1:0] patience;
  wire [15:0] arrived = acknowledged - oldest;
  wire advances = acknowledge && arrived != '0 && arrived <= 16'(closed - oldest);
  wire [FRAME_BITS-1:0] last_arrived = acknowledged[FRAME_BITS-1:0] - 1'b1;
  wire [WORD_BITS:0] arrived_end = ends[last_arrived];
  wire passes = advances && arrived > 16'(sent - oldest);  // what was to be sent again need not be
  wire retries = patience == '0 && state == IDLE && oldest != sent && !advances;
  always_ff @(posedge clk) begin
    if (advances) begin
      oldest <= acknowledged;
      oldest_begin <= arrived_end;
    end
    if (advances || retries || oldest == sent) patience <= RETRY_BITS'(RETRY_CYCLES);
    else if (patience != '0) patience <= patience - 1'b1;
    count_retry <= !rst && retries;
    if (rst) begin
      oldest <= '0;
      oldest_begin <= '0;
    end
  end

  // --- frames out ---
  logic answers;  // a frame is owed
  logic with_records;
  logic [15:0] number;  // of the frame that leaves
  logic [WORD_BITS:0] at, frame_end;
  logic [63:0] word;
  host_link_pkg::numbers_t numbers;
  host_link_pkg::flags_t flags;
  wire [47:0] to = host_link_pkg::in_lanes(host);
  wire [47:0] from = host_link_pkg::in_lanes(STATION);
  wire begins = state == IDLE && opened && !retries && !passes && (sent != closed || answers);
  wire m_takes = m_axis_tvalid && m_axis_tready;
  wire reads = state == FETCH || (state == WORD && m_takes);  // the word at `at`: the next one
  assign numbers = '{acknowledged: expected, number: number, session: session};
  assign flags = '{unused: '0, data: with_records, open: 1'b0};
  assign m_axis_tvalid = state != IDLE && state != FETCH;
  assign m_axis_tlast = (state == NUMBERS && !with_records) || (state == WORD && at == frame_end);
  always_comb begin
    case (state)
      ADDRESSES: m_axis_tdata = {from[15:0], to};
      TYPE: m_axis_tdata = {flags, host_link_pkg::VERSION, host_link_pkg::ETHERTYPE[7:0], host_link_pkg::ETHERTYPE[15:8], from[47:16]};
      NUMBERS: m_axis_tdata = numbers;
      default: m_axis_tdata = word;
    endcase
  end
  always_ff @(posedge clk) begin
    if (reads) word <= words[at[WORD_BITS-1:0]];
    case (state)
      IDLE: if (begins) state <= ADDRESSES;
      ADDRESSES: if (m_takes) state <= TYPE;
      TYPE: if (m_takes) state <= NUMBERS;
      NUMBERS: if (m_takes) state <= with_records ? FETCH : IDLE;
      FETCH: state <= WORD;
      default: if (m_takes && m_axis_tlast) state <= IDLE;
    endcase
    if (begins) begin
      with_records <= sent != closed;
      number <= sent;
      at <= read;
      frame_end <= ends[sent[FRAME_BITS-1:0]];
    end
    if (reads) at <= at + 1'b1;
    if (m_takes && m_axis_tlast && with_records && sent == number) begin
      sent <= sent + 16'd1;
      read <= frame_end;
    end
    if (retries) begin
      sent <= oldest;
      read <= oldest_begin;
    end
    if (passes) begin
      sent <= acknowledged;
      read <= arrived_end;
    end
    if (m_takes && state == NUMBERS) answers <= 1'b0;
    if (answer) answers <= 1'b1;
    if (rst) begin
      state <= IDLE;
      sent <= '0;
      read <= '0;
      answers <= 1'b0;
    end
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (16'(sent - oldest) <= 16'(closed - oldest));
      assert (16'(closed - oldest) < 16'(FRAMES));
      assert (written - oldest_begin <= (WORD_BITS + 1)'(WORDS));
      assert (int'(open_words) <= OPEN_WORDS_MAX);
      assert (!s_takes || int'(open_words) < OPEN_WORDS_MAX);
    end
  end
endmodule
