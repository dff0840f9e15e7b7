// SPDX-License-Identifier: Apache-2.0
// The recovered word clock slides bit by bit until K28.5 stands at the first bit of a word: then data and clock have one latency. Where sliding does not help, the
// receiver is reset.
//
// Contract
//   * Bit 0 of a word is the first on the wire. K28.5 stands in byte 0 of the sender's words alone, so which byte it is in is part of the alignment. K28.1 and K28.7,
//     which have the same seven first bits, are taken for nothing. COMMA_BITS 7 takes them for commas, which is wrong: for the test that shows it.
//   * A pulse of `slide`, PULSE_CYCLES long, makes one period of the word clock SLIDE_BITS longer; the next comes GAP_CYCLES after it, so that the clock has settled.
//     Where SLIDE_BITS is 2 a comma at an odd bit takes a reset, where it is 0 any that is not at 0 does.
//   * `restart` is one pulse: a reset of the receiver with its clock recovery and divider, whose phase is any afterwards. It comes when sliding cannot reach the place,
//     when it has not reached it ATTEMPTS times, and when no comma came for SEARCH_CYCLES.
//   * `slip` is by how many bits the clock was moved since the last restart, and stays while `locked`. Nothing is moved within m_codes: they are s_bits.
//   * Locked: COMMAS K28.5 stood at bit 0, and none elsewhere since the first of them. A comma elsewhere does not move a locked link: it is a pulse of error_place, with
//     its place. COMMAS of them without one at bit 0 between do: the sender's words begin elsewhere.
//     (Its codes are right if that is a symbol later.)
//   * Lost, by `bad`, which says of each word, some cycles later, whether it had an error: a bad word costs four, a good one gives one back, at 16 the search begins anew.
module km3_align #(
    parameter int SLIDE_BITS = 1,
    parameter int COMMAS = 8,
    parameter int COMMA_BITS = 10,
    parameter int PULSE_CYCLES = 2,
    parameter int GAP_CYCLES = 32,
    parameter int ATTEMPTS = 4,
    parameter int SEARCH_CYCLES = 20000,
    localparam int WIDTH = 20
) (
    input logic clk,  // recovered
    input logic rst,

    input  logic [WIDTH-1:0] s_bits,
    output logic [WIDTH-1:0] m_codes,
    input  logic             bad,

    output logic slide,
    output logic restart,

    output logic       locked,
    output logic [4:0] slip,
    output logic       lost,         // pulses: it was locked, and is not
    output logic       error_place,
    output logic [4:0] place
);
  localparam int BAD_COST = 4;
  localparam int BAD_LIMIT = 16;
  localparam int SETTLE_CYCLES = GAP_CYCLES + 8;  // also for what was found before the last slide
  if (SLIDE_BITS < 0 || SLIDE_BITS > 2) begin : g_check_slide
    $fatal(1, "SLIDE_BITS must be 0, 1 or 2 (instance %m)");
  end
  if (COMMA_BITS != 10 && COMMA_BITS != 7) begin : g_check_comma
    $fatal(1, "COMMA_BITS must be 10, or 7 for a test (instance %m)");
  end
  if (COMMAS < 8 || COMMAS > 255 || ATTEMPTS < 1 || ATTEMPTS > 15) begin : g_check_commas
    $fatal(1, "COMMAS must be 8 to 255 and ATTEMPTS 1 to 15 (instance %m)");
  end
  if (PULSE_CYCLES < 1 || GAP_CYCLES < PULSE_CYCLES + 4 || GAP_CYCLES > 200 || SEARCH_CYCLES < 100 || SEARCH_CYCLES > 65535) begin : g_check_cycles
    $fatal(1, "PULSE_CYCLES must be at least 1, GAP_CYCLES four more to 200, SEARCH_CYCLES 100 to 65535 (instance %m)");
  end
  localparam logic [9:0] AFTER_MINUS = code_8b10b_pkg::wire_order(code_8b10b_pkg::encoded(1'b1, code_8b10b_pkg::K28_5, 1'b0));

  // --- where the commas are ---
  logic [2*WIDTH-1:0] window;  // this word above the one before
  logic [WIDTH-1:0] commas;    // of the window, one cycle later
  logic found;
  always_ff @(posedge clk) begin
    window <= {s_bits, window[2*WIDTH-1:WIDTH]};
    for (int p = 0; p < WIDTH; p++) commas[p] <= window[p+:COMMA_BITS] == AFTER_MINUS[COMMA_BITS-1:0] || window[p+:COMMA_BITS] == ~AFTER_MINUS[COMMA_BITS-1:0];
    found <= commas != '0 && !rst;
    for (int p = WIDTH - 1; p >= 0; p--) if (commas[p]) place <= 5'(p);
    m_codes <= s_bits;
  end

  // --- until they are at bit 0 ---
  typedef enum logic [2:0] {
    SETTLE,
    HUNT,
    SLIDES,
    VERIFY,
    LOCKED
  } state_t;
  state_t state;
  logic [7:0] seen, waits;
  logic [4:0] left, cost;  // left: slides to make
  logic [3:0] tries;
  logic [15:0] search;
  wire reachable = SLIDE_BITS == 1 || (SLIDE_BITS == 2 && !place[0]);
  wire in_place = place == '0;
  wire [4:0] slides_wanted = SLIDE_BITS == 2 ? place >> 1 : place;
  wire [5:0] slip_next = {1'b0, slip} + 6'(SLIDE_BITS);
  wire gives_up = int'(search) >= SEARCH_CYCLES;
  assign locked = state == LOCKED;
  always_ff @(posedge clk) begin
    {restart, lost, error_place} <= '0;
    if (waits != '0) waits <= waits - 1'b1;
    slide <= slide && int'(waits) > GAP_CYCLES - PULSE_CYCLES + 1;
    if (bad) cost <= cost + 5'(BAD_COST);
    else if (cost != '0) cost <= cost - 1'b1;
    search <= found || locked ? '0 : search + 1'b1;
    case (state)
      SETTLE: if (waits == '0) state <= HUNT;
      HUNT, VERIFY:
      if (found && in_place) begin
        seen  <= state == VERIFY ? seen + 1'b1 : 8'd1;
        state <= state == VERIFY && int'(seen) == COMMAS - 1 ? LOCKED : VERIFY;
        if (state == VERIFY && int'(seen) == COMMAS - 1) seen <= '0;  // from here on of those elsewhere
      end else if (found) begin
        tries <= tries + 1'b1;
        left  <= slides_wanted;
        state <= SLIDES;
        if (!reachable || int'(tries) == ATTEMPTS) restart <= 1'b1;
      end
      SLIDES:
      if (waits == '0) begin
        if (left == '0) begin
          state <= SETTLE;
          waits <= 8'(SETTLE_CYCLES);
        end else begin
          left  <= left - 1'b1;
          slide <= 1'b1;
          slip  <= int'(slip_next) >= WIDTH ? 5'(slip_next - 6'(WIDTH)) : slip_next[4:0];
          waits <= 8'(GAP_CYCLES);
        end
      end
      LOCKED: begin
        tries <= '0;
        error_place <= found && !in_place;
        if (found) seen <= in_place ? '0 : seen + 1'b1;
        if (int'(cost) >= BAD_LIMIT || (found && !in_place && int'(seen) == COMMAS - 1)) begin
          lost  <= 1'b1;
          state <= HUNT;
        end
      end
      default: state <= SETTLE;
    endcase
    if (gives_up) restart <= 1'b1;
    if (!locked) cost <= '0;
    if (rst || restart || gives_up) begin
      state <= SETTLE;
      waits <= 8'(SETTLE_CYCLES);
      slide <= 1'b0;
      {slip, tries, search, cost} <= '0;
    end
    if (rst) {restart, lost, error_place} <= '0;
  end

  // --- what must hold ---
  logic was_locked;
  logic [4:0] was_slip;
  always_ff @(posedge clk) begin
    was_locked <= locked && !rst;
    was_slip   <= slip;
    if (!rst) begin
      assert (int'(slip) < WIDTH);
      assert (!(was_locked && locked) || slip == was_slip);
      assert (!(locked && slide));
      assert (int'(cost) < BAD_LIMIT + 2 * BAD_COST);
    end
  end
endmodule
