// SPDX-License-Identifier: Apache-2.0
// Bits of a lane, cut into words anywhere, become words that begin where symbols do: bit slip by where K28.5 stands.
//
// Contract
//   * Bit 0 of a word is the first on the wire. K28.5 stands in symbol 0 of the sender's words alone; other commas (K28.1, K28.7) are taken for nothing.
//   * `slip` is how many bits later than s_bits the words of m_codes begin, and stays while `locked`.
//   * Locked: COMMAS K28.5 stood at one place, and none elsewhere since the first of them. A comma elsewhere does not move a locked lane.
//   * Lost, by `bad`, which says of each word of m_codes, some cycles later, whether it had an error: a bad word counts four, each good one takes one back, at
//     16 the search begins anew. So four bad words in a row, or more than one in five for some time.
module comma_align #(
    parameter int SYMBOLS = 4,
    parameter int COMMAS = 8,
    localparam int WIDTH = 10 * SYMBOLS,
    localparam int PLACE_BITS = $clog2(WIDTH)
) (
    input logic clk,
    input logic rst,

    input  logic [WIDTH-1:0] s_bits,
    output logic [WIDTH-1:0] m_codes,
    input  logic             bad,

    output logic                  locked,
    output logic [PLACE_BITS-1:0] slip
);
  localparam int BAD_COST = 4;
  localparam int BAD_LIMIT = 16;
  if (COMMAS < 8 || COMMAS > 255) begin : g_check
    $fatal(1, "COMMAS must be 8 to 255: what was cut elsewhere has left the decoder then (instance %m)");
  end
  localparam logic [9:0] AFTER_MINUS = code_8b10b_pkg::wire_order(code_8b10b_pkg::encoded(1'b1, code_8b10b_pkg::K28_5, 1'b0));

  // --- where the commas are ---
  logic [2*WIDTH-1:0] window;  // this word above the one before
  logic [WIDTH-1:0] commas;    // of the window, one cycle later
  always_ff @(posedge clk) begin
    window <= {s_bits, window[2*WIDTH-1:WIDTH]};
    for (int p = 0; p < WIDTH; p++) commas[p] <= window[p+:10] == AFTER_MINUS || window[p+:10] == ~AFTER_MINUS;
  end
  logic found;
  logic [PLACE_BITS-1:0] place;
  always_ff @(posedge clk) begin
    found <= commas != '0 && !rst;
    for (int p = WIDTH - 1; p >= 0; p--) if (commas[p]) place <= PLACE_BITS'(p);
  end

  // --- the words that begin there: by eight, then by one ---
  logic [WIDTH+6:0] coarse;
  localparam int EIGHTS = (WIDTH + 7) / 8;
  logic [8*EIGHTS+WIDTH+6:0] wide;
  assign wide = {{(8 * EIGHTS - WIDTH + 7) {1'b0}}, window};
  always_ff @(posedge clk) begin
    coarse <= wide[8*(slip>>3)+:WIDTH+7];
    m_codes <= coarse[int'(slip[2:0])+:WIDTH];
  end

  // --- whether they do begin there ---
  typedef enum logic [1:0] {
    HUNT,
    VERIFY,
    LOCKED
  } state_t;
  state_t state;
  logic [7:0] seen;
  logic [4:0] cost;
  assign locked = state == LOCKED;
  always_ff @(posedge clk) begin
    if (state != LOCKED && found) begin
      slip <= place;
      seen <= state == VERIFY && place == slip ? seen + 1'b1 : 8'd1;
      state <= VERIFY;
      if (state == VERIFY && place == slip && int'(seen) == COMMAS - 1) state <= LOCKED;
    end
    if (bad) cost <= cost + 5'(BAD_COST);
    else if (cost != '0) cost <= cost - 1'b1;
    if (state == LOCKED && int'(cost) >= BAD_LIMIT) state <= HUNT;
    if (state != LOCKED || rst) cost <= '0;
    if (rst) begin
      state <= HUNT;
      slip  <= '0;
    end
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (int'(slip) < WIDTH);
      assert (int'(cost) < BAD_LIMIT + 2 * BAD_COST);
    end
  end
endmodule
