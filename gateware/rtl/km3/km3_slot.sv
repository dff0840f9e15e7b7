// SPDX-License-Identifier: Apache-2.0
// What waits for its slot: a FIFO of words that says how many there are.
//
// Contract: a word is taken where s_valid and s_ready meet. `waiting` words can be taken one a cycle, the first at m_data; one that came in counts two edges later.
module km3_slot #(
    parameter int WORDS = 1024,  // a power of two
    parameter int WIDTH = 16
) (
    input logic clk,
    input logic rst,

    input  logic             s_valid,
    output logic             s_ready,
    input  logic [WIDTH-1:0] s_data,

    output logic [     15:0] waiting,
    input  logic             m_take,
    output logic [WIDTH-1:0] m_data
);
  localparam int BITS = $clog2(WORDS);
  if (WORDS != 1 << BITS || WORDS < 8 || WORDS > 16384) begin : g_check
    $fatal(1, "WORDS must be a power of two from 8 to 16384 (instance %m)");
  end

  logic [WIDTH-1:0] words[WORDS];
  logic [BITS-1:0] write_place, read_place;
  logic [BITS:0] held, readable;  // held: with the one at m_data and what is on its way; readable: of the memory
  logic m_valid;
  wire takes = s_valid && s_ready;
  wire reads = readable != '0 && (!m_valid || m_take);
  assign s_ready = int'(held) < WORDS;
  logic took;
  always_ff @(posedge clk) begin
    if (takes) words[write_place] <= s_data;
    if (takes) write_place <= write_place + 1'b1;
    if (reads) m_data <= words[read_place];
    if (reads) read_place <= read_place + 1'b1;
    if (reads || m_take) m_valid <= reads;
    took <= takes;
    held <= held + (BITS + 1)'(takes) - (BITS + 1)'(m_take);
    readable <= readable + (BITS + 1)'(took) - (BITS + 1)'(reads);
    if (rst) begin
      {write_place, read_place} <= '0;
      {held, readable} <= '0;
      {took, m_valid} <= '0;
    end
  end
  assign waiting = 16'(readable) + 16'(m_valid);

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!m_take || m_valid);
      assert (int'(held) <= WORDS);
    end
  end
endmodule
