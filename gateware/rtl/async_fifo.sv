// SPDX-License-Identifier: Apache-2.0
// A FIFO between two clocks of any ratio and phase: what is written with s_clk comes out with m_clk, in order.
//
// Contract
//   * A word is taken where s_valid and s_ready meet, and given where m_valid and m_ready do; what waits at the output stays.
//   * A word is at the output two to three edges of m_clk after the edge that took it, if nothing is before it. A place is free again to the
//     writer three to four edges of s_clk after it was read.
//   * m_more words at least wait after that at the output; what came in the last cycle is not yet counted.
//   * Both resets are those of one source (reset_sync): they go up together, clock or not, and down each in its own time. Either clock may stand
//     and return at any moment: nothing is lost, doubled or changed.
module async_fifo #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 16,  // words, a power of two from 4
    localparam int BITS = $clog2(DEPTH)
) (
    input  logic             s_clk,
    input  logic             s_rst,
    input  logic [WIDTH-1:0] s_data,
    input  logic             s_valid,
    output logic             s_ready,

    input  logic             m_clk,
    input  logic             m_rst,
    output logic [WIDTH-1:0] m_data,
    output logic             m_valid,
    input  logic             m_ready,
    output logic [   BITS:0] m_more
);
  // verilator lint_off SYNCASYNCNET
  if (DEPTH < 4 || DEPTH != 1 << BITS) begin : g_check
    $fatal(1, "DEPTH must be a power of two from 4 (instance %m)");
  end

  logic [WIDTH-1:0] memory[DEPTH];

  // Each pointer has a bit more than a place needs, and stands twice: as a number for its own side, as a Gray code for the other.
  logic [BITS:0] s_count, s_gray, s_seen_gray, m_count, m_gray, m_seen_gray, m_seen;
  wire [BITS:0] s_next = s_count + 1'b1;
  wire [BITS:0] s_next_gray = s_next ^ (s_next >> 1);
  wire [BITS:0] m_next = m_count + 1'b1;
  wire s_takes = s_valid && s_ready;
  wire m_takes = m_seen_gray != m_gray && (!m_valid || m_ready);

  // Full: the pointers differ by DEPTH, so their codes differ in the two highest bits alone. Seen a cycle ahead: what hangs on s_ready is long enough.
  wire [BITS:0] s_full_gray = {~s_seen_gray[BITS:BITS-1], s_seen_gray[BITS-2:0]};
  always_ff @(posedge s_clk) if (s_takes) memory[s_count[BITS-1:0]] <= s_data;
  always_ff @(posedge s_clk or posedge s_rst) begin
    if (s_rst) begin
      s_count <= '0;
      s_gray  <= '0;
      s_ready <= 1'b1;
    end else begin
      if (s_takes) begin
        s_count <= s_next;
        s_gray  <= s_next_gray;
      end
      s_ready <= s_takes ? s_next_gray != s_full_gray : s_gray != s_full_gray;
    end
  end

  always_ff @(posedge m_clk) if (m_takes) m_data <= memory[m_count[BITS-1:0]];
  always_ff @(posedge m_clk or posedge m_rst) begin
    if (m_rst) begin
      m_count <= '0;
      m_gray  <= '0;
      m_valid <= 1'b0;
    end else begin
      if (m_takes) begin
        m_count <= m_next;
        m_gray  <= m_next ^ (m_next >> 1);
      end
      m_valid <= m_takes || (m_valid && !m_ready);
    end
  end

  sync_bits #(
      .WIDTH(BITS + 1)
  ) to_reader (
      .s_bits(s_gray),
      .m_clk,
      .m_rst,
      .m_bits(m_seen_gray)
  );
  sync_bits #(
      .WIDTH(BITS + 1)
  ) to_writer (
      .s_bits(m_gray),
      .m_clk (s_clk),
      .m_rst (s_rst),
      .m_bits(s_seen_gray)
  );

  always_ff @(posedge m_clk or posedge m_rst) begin
    if (m_rst) m_seen <= '0;
    else for (int k = 0; k <= BITS; k++) m_seen[k] <= ^(m_seen_gray >> k);
  end
  assign m_more = m_seen - m_count;

  // --- what must hold ---
  logic s_waits, m_waits;
  logic [WIDTH-1:0] m_waiting;
  always_ff @(posedge s_clk or posedge s_rst) begin
    if (s_rst) s_waits <= 1'b0;
    else begin
      s_waits <= s_ready && !s_valid;
      assert (!s_waits || s_ready);
    end
  end
  always_ff @(posedge m_clk or posedge m_rst) begin
    if (m_rst) m_waits <= 1'b0;
    else begin
      m_waits <= m_valid && !m_ready;
      assert (!m_waits || (m_valid && m_data == m_waiting));
      assert (int'(m_more) <= DEPTH);
    end
  end
  always_ff @(posedge m_clk) m_waiting <= m_data;
endmodule
