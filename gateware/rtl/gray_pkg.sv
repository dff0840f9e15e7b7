// SPDX-License-Identifier: Apache-2.0
// From a Gray code of up to 16 bits to its number, in two steps with a register between. Each bit of the number is the sum of the code's bits from it on: first
// of four of them, then of the fours. Each step is a LUT; both at once a tool may make a chain of eleven, where nothing else hurries.
package gray_pkg;
  function automatic logic [15:0] half(input logic [15:0] code);
    half = code ^ (code >> 1) ^ (code >> 2) ^ (code >> 3);
  endfunction

  function automatic logic [15:0] number(input logic [15:0] halfway);
    number = halfway ^ (halfway >> 4) ^ (halfway >> 8) ^ (halfway >> 12);
  endfunction
endpackage
