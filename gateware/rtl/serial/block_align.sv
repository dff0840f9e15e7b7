// SPDX-License-Identifier: Apache-2.0
// Bits of a lane, cut anywhere, become blocks of 66 bits that begin where headers do: of two bits that differ.
//
// Contract
//   * Half of 66 bits in each cycle, bit 0 first on the wire; m_valid in every second one.
//   * `slip` is how many bits later than a pair of s_bits the blocks of m_block begin, and stays while `locked`.
//   * Locked: BLOCKS headers in a row were right at one place. Where one is wrong before that, the next place is tried.
//   * Lost: a wrong header counts four, each right one takes one back, at 16 the search begins anew. So four in a row, or more than one in five for some time; of
//     bits that are no headers every second is wrong.
module block_align #(
    parameter int BLOCKS = 64,
    localparam int HALF_BITS = code_64b66b_pkg::HALF_BITS,
    localparam int BLOCK_BITS = code_64b66b_pkg::BLOCK_BITS
) (
    input logic clk,
    input logic rst,

    input  logic [ HALF_BITS-1:0] s_bits,
    output logic                  m_valid,
    output logic [BLOCK_BITS-1:0] m_block,

    output logic       locked,
    output logic [6:0] slip
);
  localparam int WRONG_COST = 4;
  localparam int WRONG_LIMIT = 16;
  localparam int SETTLING = 2;  // blocks that were cut at the last place
  if (BLOCKS < 8 || BLOCKS > 255) begin : g_check
    $fatal(1, "BLOCKS must be 8 to 255: of bits that are none every second header is right (instance %m)");
  end

  // --- the blocks at this place: by eight, then by one ---
  logic [1:0] pair;  // as one is whole, and a cycle later
  logic [2*BLOCK_BITS-1:0] window;  // the newest bits highest
  logic [143:0] wide;
  logic [BLOCK_BITS+6:0] coarse;
  assign wide = {12'd0, window};
  always_ff @(posedge clk) begin
    pair <= {pair[0], !pair[0] && !rst};
    window <= {s_bits, window[2*BLOCK_BITS-1:HALF_BITS]};
    if (pair[0]) coarse <= wide[8*int'(slip[6:3])+:BLOCK_BITS+7];
    m_valid <= pair[1] && !rst;
    if (pair[1]) m_block <= coarse[int'(slip[2:0])+:BLOCK_BITS];
  end

  // --- whether they do begin there ---
  logic [7:0] seen;
  logic [4:0] cost;
  logic [1:0] settling;
  wire right = m_block[1] != m_block[0];
  always_ff @(posedge clk) begin
    if (m_valid && settling != '0) settling <= settling - 1'b1;
    else if (m_valid && locked) begin
      if (!right) cost <= cost + 5'(WRONG_COST);
      else if (cost != '0) cost <= cost - 1'b1;
      if (int'(cost) >= WRONG_LIMIT) locked <= 1'b0;
    end else if (m_valid && right) begin
      seen <= seen + 1'b1;
      locked <= int'(seen) == BLOCKS - 1;
    end else if (m_valid) begin
      slip <= int'(slip) == BLOCK_BITS - 1 ? '0 : slip + 1'b1;
      seen <= '0;
      settling <= 2'(SETTLING);
    end
    if (locked) seen <= '0;
    else cost <= '0;
    if (rst) begin
      locked <= 1'b0;
      slip <= '0;
      seen <= '0;
      settling <= 2'(SETTLING);
    end
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (int'(slip) < BLOCK_BITS);
      assert (int'(cost) < WRONG_LIMIT + 2 * WRONG_COST);
    end
  end
endmodule
