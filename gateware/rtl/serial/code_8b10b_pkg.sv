// SPDX-License-Identifier: Apache-2.0
// The 8b/10b code: the tables of 5b/6b and 3b/4b, once, and what follows from them.
//
// A byte HGFEDCBA is D.x.y with x = EDCBA and y = HGF, or the control symbol K.x.y. Its code is abcdei fghj. Here, as in the standard's tables, the left bit
// is the first on the wire; at the ports of modules that is bit 0 (`wire_order`). Running disparity is minus (0) or plus (1).
package code_8b10b_pkg;
  localparam logic [7:0] K28_5 = 8'hBC;  // the comma: no other symbol, and no two of them, have its seven first bits if no K28.7 is sent

  typedef struct packed {
    logic       known;    // is one
    logic       k;
    logic [7:0] data;
    logic       needs;    // may stand after one disparity alone,
    logic       need;     // this
    logic       sets;     // leaves a disparity that it says itself,
    logic       leaves;   // this
  } symbol_t;

  function automatic logic [9:0] wire_order(input logic [9:0] code);
    for (int b = 0; b < 10; b++) wire_order[b] = code[9-b];
  endfunction

  // abcdei after minus, of D.31 to D.0. A constant: of a `case` yosys makes a memory.
  localparam logic [31:0][5:0] SIX = {
    6'b101011, 6'b011110, 6'b101110, 6'b001110,
    6'b110110, 6'b010110, 6'b100110, 6'b110011,
    6'b111010, 6'b011010, 6'b101010, 6'b001011,
    6'b110010, 6'b010011, 6'b100011, 6'b011011,
    6'b010111, 6'b011100, 6'b101100, 6'b001101,
    6'b110100, 6'b010101, 6'b100101, 6'b111001,
    6'b111000, 6'b011001, 6'b101001, 6'b110101,
    6'b110001, 6'b101101, 6'b011101, 6'b100111
  };
  localparam logic [5:0] SIX_K28 = 6'b001111;

  // fghj after minus. Seven has another code where five equal bits would come together, and in control symbols.
  localparam logic [7:0][3:0] FOUR = {4'b1110, 4'b0110, 4'b1010, 4'b1101, 4'b1100, 4'b0101, 4'b1001, 4'b1011};
  localparam logic [3:0] FOUR_OTHER_7 = 4'b0111;
  function automatic logic [3:0] four(input logic [2:0] y, input logic other_7);
    four = y == 3'd7 && other_7 ? FOUR_OTHER_7 : FOUR[y];
  endfunction

  function automatic logic six_unbalanced(input logic [5:0] bits);
    six_unbalanced = $countones(bits) != 3;
  endfunction
  // After plus: the complement of those that are not balanced, and of D.7 and D.x.3.
  function automatic logic six_turns(input logic [5:0] bits);
    six_turns = six_unbalanced(bits) || bits == 6'b111000;
  endfunction
  function automatic logic four_unbalanced(input logic [2:0] y);
    four_unbalanced = y == 3'd0 || y == 3'd4 || y == 3'd7;
  endfunction

  // Those of which D.x.7 has the other code, after minus and after plus.
  function automatic logic other_after_minus(input logic [4:0] x);
    other_after_minus = x == 5'd17 || x == 5'd18 || x == 5'd20;
  endfunction
  function automatic logic other_after_plus(input logic [4:0] x);
    other_after_plus = x == 5'd11 || x == 5'd13 || x == 5'd14;
  endfunction

  function automatic logic beside_k28(input logic [4:0] x);
    beside_k28 = x == 5'd23 || x == 5'd27 || x == 5'd29 || x == 5'd30;
  endfunction
  function automatic logic is_control(input logic [7:0] data);
    is_control = data[4:0] == 5'd28 || (data[7:5] == 3'd7 && beside_k28(data[4:0]));
  endfunction

  // Whether the symbol turns the disparity.
  function automatic logic flips(input logic k, input logic [7:0] data);
    flips = six_unbalanced(k && data[4:0] == 5'd28 ? SIX_K28 : SIX[data[4:0]]) ^ four_unbalanced(data[7:5]);
  endfunction

  // The code after the disparity `plus`.
  function automatic logic [9:0] encoded(input logic k, input logic [7:0] data, input logic plus);
    logic k28, plus_between, other;
    logic [5:0] first;
    logic [3:0] second;
    logic [2:0] y;
    y = data[7:5];
    k28 = k && data[4:0] == 5'd28;
    first = k28 ? SIX_K28 : SIX[data[4:0]];
    plus_between = plus ^ six_unbalanced(first);
    if (plus && six_turns(first)) first = ~first;
    other = k || (plus_between ? other_after_plus(data[4:0]) : other_after_minus(data[4:0]));
    second = four(y, other);
    if (k28 && (y == 3'd1 || y == 3'd2 || y == 3'd5 || y == 3'd6)) second = ~second;  // so that every code of K28 turns
    if (plus_between && (k28 || four_unbalanced(y) || y == 3'd3)) second = ~second;
    encoded = {first, second};
  endfunction

  // What a code says. Of one that is no symbol's, what its ones say of the disparity.
  function automatic symbol_t decoded(input logic [9:0] code);
    logic [4:0] x;
    logic [3:0] second;
    logic k28, six_known, six_needs, six_need, between;
    logic [2:0] y;
    logic four_known, four_needs, four_need, other, other_right;
    {x, k28, six_known, six_needs, six_need} = '0;
    for (int value = 0; value < 32; value++) begin
      if (code[9:4] == SIX[value] || (six_turns(SIX[value]) && code[9:4] == ~SIX[value])) begin
        x = 5'(value);
        six_known = 1'b1;
        six_needs = six_turns(SIX[value]);
        six_need = code[9:4] != SIX[value];
      end
    end
    if (code[9:4] == SIX_K28 || code[9:4] == ~SIX_K28) begin
      {x, k28, six_known, six_needs} = {5'd28, 3'b111};
      six_need = code[9:4] != SIX_K28;
    end
    between = six_need ^ six_unbalanced(code[9:4]);  // if it is needed

    {y, four_known, four_needs, four_need, other} = '0;
    second = k28 && !between ? ~code[3:0] : code[3:0];  // of K28 as it would be after plus
    for (int value = 0; value < 8; value++) begin
      for (int variant = 0; variant < 2; variant++) begin
        if (second == four(3'(value), variant == 1) || ((four_unbalanced(3'(value)) || value == 3) && second == ~four(3'(value), variant == 1))) begin
          y = 3'(value);
          four_known = 1'b1;
          four_needs = four_unbalanced(3'(value)) || value == 3;
          four_need = second != four(3'(value), variant == 1);
          other = value == 7 && variant == 1;
        end
      end
    end
    if (k28 && !between) four_need = !four_need;
    // Data symbols have the other code of seven where they must, and nowhere else.
    other_right = four_need ? other_after_plus(x) : other_after_minus(x);

    decoded.k = k28 || (other && beside_k28(x));
    decoded.data = {y, x};
    decoded.known = six_known && four_known && !(six_needs && four_needs && between != four_need) && (y != 3'd7 || decoded.k || other == other_right) && (y != 3'd7 || !k28 || other);
    decoded.needs = six_needs || four_needs;
    decoded.need = six_needs ? six_need : four_need;
    decoded.sets = decoded.needs;
    decoded.leaves = (six_needs ? between : four_need) ^ four_unbalanced(y);
    if (!decoded.known) begin
      decoded.needs = 1'b0;
      decoded.sets = $countones(code) != 5;
      decoded.leaves = $countones(code) > 5;
    end
  endfunction
endpackage
