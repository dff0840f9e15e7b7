// SPDX-License-Identifier: Apache-2.0
// Frames of fixed slots, a word in every cycle: head, slots, CRC, and between frames idle words. Express words go in between wherever they come.
//
// Contract
//   * `start` in the cycle of the time base that a frame begins in, with `head`; `starts_next` in the one before. The first word is out LATENCY_CYCLES later, always.
//   * Slot s has SLOT_WORDS[s] places. Of each as many words are sent as wait when the frame begins, so many at most; the other places are idle words.
//   * An express code is taken where express_valid and express_ready meet, and its two words are out from LATENCY_CYCLES later on, always, whatever is sent. It is not
//     ready while the second word of one is due, and where a frame begins: in `start` and the cycle before.
//   * Each express code is two cycles in which the frame does not go on. If a frame is not over when the next begins, it is cut there: `cut`. `ends`: its last
//     word is out in this cycle.
module km3_frame_tx #(
    parameter int SLOTS = 2,
    parameter logic [SLOTS-1:0][15:0] SLOT_WORDS = {16'd8, 16'd8},
    parameter logic [7:0] KIND = km3_pkg::KIND_UP
) (
    input logic clk,
    input logic rst,

    input logic           start,
    input logic           starts_next,
    input km3_pkg::head_t head,

    input  logic [SLOTS-1:0][15:0] s_waiting,
    output logic [SLOTS-1:0]       s_take,
    input  logic [SLOTS-1:0][15:0] s_data,

    input  logic       express_valid,
    output logic       express_ready,
    input  logic [7:0] express,

    output logic [ 1:0] m_k,
    output logic [15:0] m_data,
    output logic        ends,
    output logic        cut
);
  localparam int LATENCY_CYCLES = 2;
  localparam int SLOT_BITS = $clog2(SLOTS + 1);
  localparam int HEAD_ALL = km3_pkg::HEAD_WORDS + SLOTS;  // with the counts

  typedef enum logic [2:0] {
    IDLE,
    HEAD,
    HEAD_CHECK,
    SLOT,
    CHECK
  } state_t;
  typedef enum logic [1:0] {
    PLAIN,
    LOW,   // of the CRC
    HIGH
  } check_t;

  // --- the word that is next ---
  state_t state;
  logic [7:0] head_place;
  logic check_half;
  logic [SLOT_BITS-1:0] slot;
  logic [15:0] place;
  logic [SLOTS-1:0][15:0] counts;
  km3_pkg::head_t kept;
  logic express_half;
  logic [7:0] express_kept;
  assign express_ready = !express_half && !start && !starts_next;
  wire express_takes = express_valid && express_ready;
  wire stays = express_takes || express_half;
  wire in_slot = state == SLOT && !stays && !start;
  logic [15:0] slot_words, slot_count, slot_data;
  always_comb begin
    {slot_words, slot_count, slot_data} = '0;
    for (int s = 0; s < SLOTS; s++) begin
      if (int'(slot) == s) {slot_words, slot_count, slot_data} = {SLOT_WORDS[s], counts[s], s_data[s]};
      s_take[s] = in_slot && int'(slot) == s && place < counts[s];
    end
  end
  wire is_data = place < slot_count;

  logic [15:0] head_word;
  always_comb begin
    case (head_place)
      8'd1: head_word = kept.at.number;
      8'd2: head_word = kept.at.second[15:0];
      8'd3: head_word = kept.at.second[31:16];
      default: head_word = {kept.flags, kept.floor};
    endcase
    for (int s = 0; s < SLOTS; s++) if (int'(head_place) == km3_pkg::HEAD_WORDS + s) head_word = counts[s];
  end

  // --- the word, as it will stand but for the CRC ---
  logic [1:0] k;
  logic [15:0] data;
  check_t check;
  logic summed, first, is_last;
  always_ff @(posedge clk) begin
    is_last <= state == CHECK && check_half && !stays && !start && !rst;
    ends <= is_last && !rst;
    {k, data} <= {2'b01, km3_pkg::IDLE_WORD};
    check <= PLAIN;
    {summed, first, cut} <= '0;
    express_half <= express_takes && !rst;
    if (express_takes) express_kept <= express;
    if (express_takes) {k, data} <= {2'b01, express, km3_pkg::EXPRESS};
    else if (express_half) {k, data} <= {2'b10, km3_pkg::EXPRESS_END, ~express_kept};
    else if (start) begin
      {k, data} <= {2'b01, KIND, code_8b10b_pkg::K28_5};
      {summed, first} <= 2'b11;
      cut <= state != IDLE;
      kept <= head;
      for (int s = 0; s < SLOTS; s++) counts[s] <= s_waiting[s] < SLOT_WORDS[s] ? s_waiting[s] : SLOT_WORDS[s];
      head_place <= 8'd1;
      state <= HEAD;
    end else begin
      case (state)
        HEAD: begin
          {k, data} <= {2'b00, head_word};
          summed <= 1'b1;
          head_place <= head_place + 1'b1;
          check_half <= 1'b0;
          if (int'(head_place) == HEAD_ALL - 1) state <= HEAD_CHECK;
        end
        HEAD_CHECK, CHECK: begin
          k <= 2'b00;
          check <= check_half ? HIGH : LOW;
          check_half <= 1'b1;
          {slot, place} <= '0;
          if (check_half) state <= state == CHECK ? IDLE : SLOT;
        end
        SLOT: begin
          if (is_data) {k, data} <= {2'b00, slot_data};
          summed <= 1'b1;
          check_half <= 1'b0;
          place <= place + 1'b1;
          if (place == slot_words - 1'b1) begin
            place <= '0;
            slot  <= slot + 1'b1;
            if (int'(slot) == SLOTS - 1) state <= CHECK;
          end
        end
        default: ;
      endcase
    end
    if (rst) begin
      state <= IDLE;
      cut   <= 1'b0;
    end
  end

  // --- its CRC: of all words of the frame but those of the first check ---
  logic [31:0] crc, crc_half, crc_next;
  wire [31:0] crc_before = first ? '1 : crc;
  crc32_byte i_low (
      .crc(crc_before),
      .data(data[7:0]),
      .crc_next(crc_half)
  );
  crc32_byte i_high (
      .crc(crc_half),
      .data(data[15:8]),
      .crc_next
  );
  always_ff @(posedge clk) begin
    if (summed) crc <= crc_next;
    m_k <= k;
    m_data <= check == LOW ? ~crc[15:0] : check == HIGH ? ~crc[31:16] : data;
    if (rst) {m_k, m_data} <= {2'b01, km3_pkg::IDLE_WORD};
  end

  // --- what must hold ---
  logic [LATENCY_CYCLES-1:0] started;
  always_ff @(posedge clk) begin
    started <= {started[LATENCY_CYCLES-2:0], start && !rst};
    if (!rst) begin
      assert (!started[LATENCY_CYCLES-1] || (m_k == 2'b01 && m_data == {KIND, code_8b10b_pkg::K28_5}));
      assert (!(start && express_half));
    end
    if (rst) started <= '0;
  end
endmodule
