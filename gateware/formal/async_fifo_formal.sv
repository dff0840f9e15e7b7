// SPDX-License-Identifier: Apache-2.0
// async_fifo between two free clocks, which run at any ratio and phase, stand and return, with a reset at any moment, that comes without a clock: each word
// that was taken comes out once, unchanged and in order; nothing is written over and nothing is read that was not written; and of each Gray code one bit
// at most changes at an edge.
module async_fifo_formal (
    input logic       s_clk,
    input logic       m_clk,
    input logic       rst_async,
    input logic [1:0] s_data,
    input logic       s_valid,
    input logic       m_ready
);
  localparam int DEPTH = 4;
  logic s_rst, m_rst, s_ready, m_valid;
  logic [1:0] m_data;
  logic [2:0] m_more;
  reset_sync #(.RELEASE_CYCLES(2)) s_reset (.clk(s_clk), .rst_async, .rst(s_rst));
  reset_sync #(.RELEASE_CYCLES(2)) m_reset (.clk(m_clk), .rst_async, .rst(m_rst));
  async_fifo #(.WIDTH(2), .DEPTH(DEPTH)) dut (.*);

  function automatic [2:0] number(input [2:0] gray);
    number = {gray[2], ^gray[2:1], ^gray[2:0]};
  endfunction

  // --- each word has a number; of one of them, any, it is known what was written ---
  logic [4:0] taken, given, gone;  // taken from the writer, given to the reader, read from the memory
  logic [4:0] watched;  // any, and stays
  logic [1:0] watched_data;
  logic [2:0] s_gray_was, m_gray_was;
  always_ff @(posedge s_clk or posedge s_rst) begin
    if (s_rst) taken <= '0;
    else taken <= taken + 5'(s_valid && s_ready);
  end
  always_ff @(posedge s_clk) watched <= watched;
  always_ff @(posedge s_clk) if (s_valid && s_ready && taken == watched) watched_data <= s_data;
  always_ff @(posedge m_clk or posedge m_rst) begin
    if (m_rst) given <= '0;
    else given <= given + 5'(m_valid && m_ready);
  end
  always_ff @(posedge s_clk or posedge s_rst) begin
    if (s_rst) s_gray_was <= '0;
    else s_gray_was <= dut.s_gray;
  end
  always_ff @(posedge m_clk or posedge m_rst) begin
    if (m_rst) m_gray_was <= '0;
    else m_gray_was <= dut.m_gray;
  end
  assign gone = given + 5'(m_valid);

  // --- what each side has seen of the other lies between what it was and what it is: newest first, each as far behind the one before as said here ---
  wire [2:0] to_first = dut.s_count - number(dut.to_reader.first);
  wire [2:0] to_second = number(dut.to_reader.first) - number(dut.to_reader.second);
  wire [2:0] unread = number(dut.to_reader.second) - dut.m_count;
  wire [2:0] back_first = dut.m_count - number(dut.to_writer.first);
  wire [2:0] back_second = number(dut.to_writer.first) - number(dut.to_writer.second);
  wire [5:0] held = 6'(to_first) + 6'(to_second) + 6'(unread);
  wire [4:0] since_watched = watched - gone;
  wire [4:0] in_memory = taken - gone;
  wire [2:0] changed_s = dut.s_gray ^ s_gray_was;
  wire [2:0] changed_m = dut.m_gray ^ m_gray_was;

  always_comb begin
    assert (s_reset.stages != 2'b01 && m_reset.stages != 2'b01);
    assert (dut.s_gray == (dut.s_count ^ (dut.s_count >> 1)));
    assert (dut.m_gray == (dut.m_count ^ (dut.m_count >> 1)));
    assert (held + 6'(back_first) + 6'(back_second) <= 6'(DEPTH));
    assert (!s_ready || held + 6'(back_first) + 6'(back_second) < 6'(DEPTH));
    assert (dut.s_count == taken[2:0] && dut.m_count == gone[2:0]);
    assert (in_memory == 5'(held));
    assert ((changed_s & (changed_s - 3'd1)) == '0 && (changed_m & (changed_m - 3'd1)) == '0);
    assert (m_more <= unread);
    if (since_watched < in_memory) assert (dut.memory[watched[1:0]] == watched_data);
    if (m_valid && given == watched) assert (m_data == watched_data);
    if (dut.s_waits) assert (s_ready);
    if (dut.m_waits) assert (m_valid && m_data == dut.m_waiting);
  end
endmodule
