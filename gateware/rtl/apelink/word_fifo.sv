// SPDX-License-Identifier: Apache-2.0
// Words wait here in order, and how many went in and out is told.
//
// Contract: a word written at one edge is offered two edges later at the earliest. Who writes keeps `written - read` at WORDS or less.
module word_fifo #(
    parameter int WORDS = 1024,  // a power of two
    parameter int WIDTH = 128
) (
    input logic clk,
    input logic rst,

    input logic             s_valid,
    input logic [WIDTH-1:0] s_data,

    output logic             m_valid,
    input  logic             m_ready,
    output logic [WIDTH-1:0] m_data,

    output logic [apenet_pkg::COUNT_BITS-1:0] written,
    output logic [apenet_pkg::COUNT_BITS-1:0] read      // out of the memory: the word that is offered needs no room
);
  localparam int ADDRESS_BITS = $clog2(WORDS);

  if (WORDS != 1 << ADDRESS_BITS || ADDRESS_BITS >= apenet_pkg::COUNT_BITS) begin : g_check
    $fatal(1, "WORDS must be a power of two, 1024 at most (instance %m)");
  end

  logic [WIDTH-1:0] words[WORDS];
  wire reads = read != written && (!m_valid || m_ready);
  always_ff @(posedge clk) begin
    if (s_valid) words[written[ADDRESS_BITS-1:0]] <= s_data;
    if (s_valid) written <= written + 1'b1;
    if (reads) m_data <= words[read[ADDRESS_BITS-1:0]];
    if (reads) read <= read + 1'b1;
    if (reads || m_ready) m_valid <= reads;
    if (rst) begin
      written <= '0;
      read <= '0;
      m_valid <= 1'b0;
    end
  end

  // --- what must hold ---
  wire [apenet_pkg::COUNT_BITS-1:0] held = written - read;
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (int'(held) <= WORDS);
      assert (!s_valid || int'(held) < WORDS);
    end
  end
endmodule
