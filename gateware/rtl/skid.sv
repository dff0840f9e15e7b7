// SPDX-License-Identifier: Apache-2.0
// A stream's register in both directions: neither valid nor ready passes through without one. A word a cycle; each leaves one cycle after it came in, or later.
module skid #(
    parameter int DATA_BITS = 64
) (
    input logic clk,
    input logic rst,

    input  logic [DATA_BITS-1:0] s_data,
    input  logic                 s_valid,
    output logic                 s_ready,
    output logic [DATA_BITS-1:0] m_data,
    output logic                 m_valid,
    input  logic                 m_ready
);
  logic [DATA_BITS-1:0] second;  // came while the first was not taken
  logic second_valid;
  assign s_ready = !second_valid;
  wire takes = s_valid && s_ready;
  wire moves = !m_valid || m_ready;

  always_ff @(posedge clk) begin
    if (moves) begin
      m_data <= second_valid ? second : s_data;
      m_valid <= second_valid || s_valid;
      second_valid <= 1'b0;
    end else if (takes) begin
      second <= s_data;
      second_valid <= 1'b1;
    end
    if (rst) {m_valid, second_valid} <= '0;
  end

  // --- what must hold ---
  logic waits;
  always_ff @(posedge clk) begin
    waits <= !rst && m_valid && !m_ready;
    if (!rst) begin
      assert (!waits || m_valid);
      assert (!second_valid || m_valid);
    end
  end
endmodule
