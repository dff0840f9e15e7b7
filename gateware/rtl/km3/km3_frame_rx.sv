// SPDX-License-Identifier: Apache-2.0
// Frames of fixed slots taken apart: time, slots, verdict. Each frame that begins has one fate.
//
// Contract
//   * A word a cycle. `error`: it has a wrong code or disparity. While `locked` is down nothing is taken, and the frame that was begun is dropped as cut: one
//     whose first word was taken, and not its last, or its head's if that is wrong.
//   * m_head with `head` once the head's own CRC is right: `since` says how many cycles its first word was before; express codes in the
//     head make it later. Nothing of a head that is wrong is ever told, and each that is told has an m_end.
//   * m_valid: a word of slot m_slot; they come as they are received. m_end is the verdict on all of a frame, and m_good whether it is good.
//   * express_valid: a code whose two words agree, in the cycle after its second word came in, always.
//   * Frames that begin = count_good + drop_head + drop_floor + drop_cut + drop_code + drop_symbol + drop_crc. The first reason counts.
//       drop_head    its head is wrong: its CRC, more words than a slot has, a number that no second has
//       drop_floor   it is another floor's: two fibres are exchanged
//       drop_cut     another began in it, or the link was lost
//       drop_code    a word of it has a wrong code
//       drop_symbol  a word is none that may stand there
//       drop_crc     its CRC is wrong
//   * What is no frame's: error_code (a word with a wrong code or disparity, in a frame or not), error_order (K28.5 in byte 1: the two bytes are exchanged),
//     error_direction (a frame of the other end's kind: one hears oneself), error_stray (words that belong to nothing, once until the next frame: a head that was not
//     recognised), error_express (a code whose words do not agree).
//   * lost: with a good head, how many frames are missing since the last good head, those with a bad head apart. error_time: the head's time is not after the
//     last one, or over a second later. Both are of one alignment: what is missing while `locked` is down, they do not say.
module km3_frame_rx #(
    parameter int SLOTS = 2,
    parameter logic [SLOTS-1:0][15:0] SLOT_WORDS = {16'd8, 16'd8},
    parameter logic [7:0] KIND = km3_pkg::KIND_UP,
    parameter logic [7:0] OTHER_KIND = km3_pkg::KIND_DOWN,
    parameter int FRAMES_PER_S = 10000,
    localparam int SLOT_BITS = $clog2(SLOTS + 1)
) (
    input logic clk,
    input logic rst,

    input logic [ 7:0] floor,   // whose frames are wanted
    input logic        locked,
    input logic [ 1:0] s_k,
    input logic [15:0] s_data,
    input logic        error,

    output logic           m_head,
    output km3_pkg::head_t head,
    output logic [7:0]     since,

    output logic                 m_valid,
    output logic [SLOT_BITS-1:0] m_slot,
    output logic [         15:0] m_data,
    output logic                 m_end,
    output logic                 m_good,

    output logic       express_valid,
    output logic [7:0] express,

    output logic        count_good,
    output logic        drop_head,
    output logic        drop_floor,
    output logic        drop_cut,
    output logic        drop_code,
    output logic        drop_symbol,
    output logic        drop_crc,
    output logic        error_code,
    output logic        error_order,
    output logic        error_direction,
    output logic        error_stray,
    output logic        error_express,
    output logic        error_time,
    output logic [15:0] lost
);
  localparam int HEAD_ALL = km3_pkg::HEAD_WORDS + SLOTS;
  localparam int SINCE_MAX = 250;

  // --- express words are taken out ---
  logic express_due;
  logic [7:0] express_kept;
  wire express_first = s_k == 2'b01 && s_data[7:0] == km3_pkg::EXPRESS && !error;
  wire express_second = s_k == 2'b10 && s_data[15:8] == km3_pkg::EXPRESS_END;
  wire express_right = express_second && s_data[7:0] == ~express_kept && !error;
  logic valid, bad, is_head, is_other, is_idle, is_swapped, is_data, half_alone;
  logic [15:0] data;
  always_ff @(posedge clk) begin
    express_due <= express_first && !express_due && locked && !rst;
    if (express_first && !express_due) express_kept <= s_data[15:8];
    express_valid <= express_due && express_right && locked && !rst;
    express <= express_kept;
    error_express <= ((express_due && !express_right) || half_alone) && locked && !rst;
    half_alone <= express_second && !express_due && !error && locked && !rst;
    valid <= !express_due && !express_first && locked && !rst;
    error_code <= error && locked && !rst;
    bad <= error;
    data <= s_data;
    is_head <= s_k == 2'b01 && s_data == {KIND, code_8b10b_pkg::K28_5} && !error;
    is_other <= s_k == 2'b01 && s_data == {OTHER_KIND, code_8b10b_pkg::K28_5} && !error;
    is_idle <= s_k == 2'b01 && s_data == km3_pkg::IDLE_WORD;
    is_swapped <= s_k == 2'b10 && s_data[15:8] == code_8b10b_pkg::K28_5 && !error;
    is_data <= s_k == 2'b00;
  end

  // --- where in a frame it is ---
  typedef enum logic [2:0] {
    OUTSIDE,
    HEAD,
    HEAD_CHECK,
    SLOT,
    CHECK
  } state_t;
  state_t state;
  logic [7:0] head_place;
  logic check_half, check_wrong, insane, code_wrong, symbol_wrong, was_stray;
  logic [SLOT_BITS-1:0] slot;
  logic [15:0] place;
  logic [SLOTS-1:0][15:0] counts;
  km3_pkg::head_t read;
  logic [7:0] cycles;
  logic [31:0] crc, crc_half, crc_next;
  wire takes = valid && locked;
  wire begins = takes && is_head;
  crc32_byte i_low (
      .crc(begins ? '1 : crc),
      .data(data[7:0]),
      .crc_next(crc_half)
  );
  crc32_byte i_high (
      .crc(crc_half),
      .data(data[15:8]),
      .crc_next
  );
  wire half_wrong = data != (check_half ? ~crc[31:16] : ~crc[15:0]) || !is_data || bad;
  wire in_check = takes && !is_head && (state == HEAD_CHECK || state == CHECK);
  logic [15:0] slot_words, slot_count;
  logic over;
  always_comb begin
    {slot_words, slot_count, over} = '0;
    for (int s = 0; s < SLOTS; s++) begin
      if (int'(slot) == s) {slot_words, slot_count} = {SLOT_WORDS[s], counts[s]};
      if (int'(head_place) == km3_pkg::HEAD_WORDS + s) over = data > SLOT_WORDS[s];
    end
  end
  wire is_payload = place < slot_count;
  wire head_ends = in_check && state == HEAD_CHECK && check_half;
  wire head_right = head_ends && !half_wrong && !check_wrong && !insane && int'(read.at.number) < FRAMES_PER_S && int'(cycles) < SINCE_MAX;
  wire head_good = head_right && read.floor == floor;
  wire frame_ends = in_check && state == CHECK && check_half;
  wire crc_wrong = half_wrong || check_wrong;
  wire cut_now = state != OUTSIDE && (begins || !locked);
  always_ff @(posedge clk) begin
    {m_head, m_valid, m_end, m_good} <= '0;
    {count_good, drop_head, drop_floor, drop_cut, drop_code, drop_symbol, drop_crc} <= '0;
    {error_order, error_direction, error_stray} <= '0;
    if (int'(cycles) < SINCE_MAX) cycles <= cycles + 1'b1;
    if (takes) begin
      error_order <= is_swapped;
      error_direction <= is_other;
      if (begins) begin
        crc <= crc_next;
        head_place <= 8'd1;
        cycles <= 8'd1;
        {insane, code_wrong, symbol_wrong, check_half, check_wrong, was_stray} <= '0;
        state <= HEAD;
      end else begin
        if (state != OUTSIDE && bad) code_wrong <= 1'b1;
        case (state)
          HEAD: begin
            crc <= crc_next;
            if (over || !is_data || bad) insane <= 1'b1;
            case (head_place)
              8'd1: read.at.number <= data;
              8'd2: read.at.second[15:0] <= data;
              8'd3: read.at.second[31:16] <= data;
              8'd4: {read.flags, read.floor} <= data;
              default: for (int s = 0; s < SLOTS; s++) if (int'(head_place) == km3_pkg::HEAD_WORDS + s) counts[s] <= data;
            endcase
            head_place <= head_place + 1'b1;
            if (int'(head_place) == HEAD_ALL - 1) state <= HEAD_CHECK;
          end
          HEAD_CHECK, CHECK: begin
            check_half  <= !check_half;
            check_wrong <= half_wrong;
            {slot, place} <= '0;
            if (check_half) begin
              check_wrong <= 1'b0;
              state <= state == HEAD_CHECK && head_good ? SLOT : OUTSIDE;
            end
          end
          SLOT: begin
            crc <= crc_next;
            m_valid <= is_payload && is_data;
            if (is_payload ? !is_data : !is_idle) symbol_wrong <= 1'b1;
            place <= place + 1'b1;
            if (place == slot_words - 1'b1) begin
              place <= '0;
              slot  <= slot + 1'b1;
              if (int'(slot) == SLOTS - 1) state <= CHECK;
            end
          end
          default: begin
            was_stray <= was_stray || !is_idle;
            error_stray <= !is_idle && !was_stray && !is_other && !is_swapped;
          end
        endcase
      end
    end
    m_slot <= slot;
    m_data <= data;
    m_head <= head_good;
    if (head_good) head <= read;
    since <= cycles;
    if (head_ends && !head_right) drop_head <= 1'b1;
    if (head_right && !head_good) drop_floor <= 1'b1;
    if (head_ends && !head_good) was_stray <= 1'b1;  // what comes of it is named already
    if (frame_ends) begin
      m_end <= 1'b1;
      if (code_wrong || bad) drop_code <= 1'b1;
      else if (symbol_wrong) drop_symbol <= 1'b1;
      else if (crc_wrong) drop_crc <= 1'b1;
      else {count_good, m_good} <= 2'b11;
      was_stray <= code_wrong || bad || symbol_wrong || crc_wrong;  // it may be of another length
    end
    if (cut_now) begin
      drop_cut <= 1'b1;
      m_end <= state == SLOT || state == CHECK;
    end
    if (!locked) begin
      state <= OUTSIDE;
      was_stray <= 1'b0;
    end
    if (rst) begin
      state <= OUTSIDE;
      {m_head, m_valid, m_end, m_good, was_stray} <= '0;
      {count_good, drop_head, drop_floor, drop_cut, drop_code, drop_symbol, drop_crc} <= '0;
      {error_order, error_direction, error_stray} <= '0;
    end
  end

  // --- whether frames are missing: of each good head against the last one, in three steps ---
  logic known;  // there was one
  km3_pkg::time_t last;
  logic [15:0] bad_heads;
  logic same_second, next_second, after_last, judges, tells, goes_on;
  logic [16:0] gap;   // frames from the last one to this
  logic [16:0] told;  // of these, with this one, those that are accounted for
  wire [17:0] missing = {1'b0, gap} - {1'b0, told};
  always_ff @(posedge clk) begin
    same_second <= read.at.second == last.second;
    next_second <= read.at.second == last.second + 1'b1;
    after_last <= read.at.number > last.number;
    judges <= head_good && !rst;
    if (drop_head && bad_heads != '1) bad_heads <= bad_heads + 1'b1;

    tells <= judges && known && !rst;
    goes_on <= after_last ? same_second : next_second;
    gap <= {1'b0, head.at.number} - {1'b0, last.number} + (next_second ? 17'(FRAMES_PER_S) : 17'd0);
    told <= {1'b0, bad_heads} + 17'd1;
    if (judges) begin
      known <= 1'b1;
      last <= head.at;
      bad_heads <= '0;
    end
    if (rst || !locked) known <= 1'b0;
    if (rst || !locked) bad_heads <= '0;

    error_time <= tells && !goes_on && !rst;
    lost <= tells && goes_on && !missing[17] && !rst ? (missing[16] ? '1 : missing[15:0]) : '0;
  end

  // --- what must hold ---
  logic ended;
  always_ff @(posedge clk) begin
    ended <= express_due && express_right && locked && !rst;
    if (!rst) begin
      assert (!m_good || m_end);
      assert ($countones({count_good, drop_head, drop_floor, drop_cut, drop_code, drop_symbol, drop_crc}) <= 1);
      assert (ended == express_valid);
    end
  end
endmodule
