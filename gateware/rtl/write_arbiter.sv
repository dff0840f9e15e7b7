// SPDX-License-Identifier: Apache-2.0
// Two writers before one dma_write. The first goes whenever it likes; the second in cycles that the first one has no use for, a whole request of the bus
// at a time, also between two requests of a write of the first.
//
// Contract
//   * The second writer's writes have up to SECOND_WORDS words and are one request each. s_last marks the last word of a write, m_cut that of a request.
//   * The second begins after a request has ended, while the first offers nothing, if
//       - no write of the first is open, and `clear` says that it will offer no word in this cycle and the next SECOND_WORDS - 1; or
//       - an open one, whose words come at half the pace of this port at most, has LEFT_BYTES_MIN left or more: up to RUN of the second go then, one
//         after the other, and the first has made up for it before its last word.
//     So nothing of the first is late for it. After PATIENCE_CYCLES, those without m_ready not counted, the second is next as soon as a request ends: the
//     first waits for one write.
//   * Words of a request come one after another from the same writer, those of the second without a pause.
module write_arbiter #(
    parameter int ADDRESS_BITS = 43,
    parameter int BYTES_BITS = 14,
    parameter int TAG_BITS = 1,
    parameter int SECOND_WORDS = 4,  // of a write
    parameter int RUN = 4,           // writes
    parameter int PATIENCE_CYCLES = 128,  // longer than clop_writer needs to make up for a write: 84 at the least, with a footer and a completion for each packet
    localparam int LEFT_BYTES_MIN = 16 * (RUN * SECOND_WORDS + 4)
) (
    input logic clk,
    input logic rst,
    input logic clear,

    input  logic                    s0_valid,
    output logic                    s0_ready,
    input  logic                    s0_last,
    input  logic [ADDRESS_BITS-1:0] s0_address,
    input  logic [  BYTES_BITS-1:0] s0_bytes,
    input  logic [           127:0] s0_data,
    input  logic [    TAG_BITS-1:0] s0_tag,

    input  logic                    s1_valid,
    output logic                    s1_ready,
    input  logic                    s1_last,
    input  logic [ADDRESS_BITS-1:0] s1_address,
    input  logic [  BYTES_BITS-1:0] s1_bytes,
    input  logic [           127:0] s1_data,
    input  logic [    TAG_BITS-1:0] s1_tag,

    output logic                    m_valid,
    input  logic                    m_ready,
    output logic [ADDRESS_BITS-1:0] m_address,
    output logic [  BYTES_BITS-1:0] m_bytes,
    output logic [           127:0] m_data,
    output logic [    TAG_BITS-1:0] m_tag,
    output logic                    m_last,    // of a write
    output logic                    m_second,  // this word is the second writer's
    input  logic                    m_cut      // and ends a request, or its write
);
  logic open, open_second;  // a request is in flight; whose
  logic in_write;           // a write of the first is
  logic [BYTES_BITS-1:0] left;  // of that write [B], at least
  logic enough_left;
  logic [$clog2(RUN+1)-1:0] run;  // writes of the second since the first one's last word
  logic [$clog2(PATIENCE_CYCLES+1)-1:0] waited;
  wire impatient = int'(waited) == PATIENCE_CYCLES;
  wire amid = enough_left && (run == '0 ? !s0_valid : int'(run) != RUN);
  wire between = clear && !s0_valid;
  wire begins = s1_valid && (impatient || (in_write ? amid : between));
  wire second = open ? open_second : begins;

  assign m_valid = second ? s1_valid : s0_valid;
  assign s0_ready = !second && m_ready;
  assign s1_ready = second && m_ready;
  assign m_address = second ? s1_address : s0_address;
  assign m_bytes = second ? s1_bytes : s0_bytes;
  assign m_data = second ? s1_data : s0_data;
  assign m_tag = second ? s1_tag : s0_tag;
  assign m_second = second;
  assign m_last = second ? s1_last : s0_last;

  wire takes_first = s0_valid && s0_ready;
  wire [BYTES_BITS-1:0] left_now = in_write ? left : s0_bytes;
  always_ff @(posedge clk) begin
    if (m_valid && m_ready) begin
      open <= !m_cut;
      open_second <= second;
    end
    if (takes_first) begin
      in_write <= !s0_last;
      left <= left_now - BYTES_BITS'(16);
      enough_left <= left_now >= BYTES_BITS'(LEFT_BYTES_MIN + 16);
      run <= '0;
    end
    if (s1_valid && s1_ready && s1_last && int'(run) != RUN) run <= run + 1'b1;
    if (second || !s1_valid) waited <= '0;
    else if (!impatient && m_ready) waited <= waited + 1'b1;
    if (rst) begin
      open <= 1'b0;
      in_write <= 1'b0;
      waited <= '0;
    end
  end

`ifndef SYNTHESIS
  // The first never waits for more than one write of the second, or for RUN within a write of its own.
  logic [$clog2(RUN*SECOND_WORDS+1)-1:0] late;  // cycles in which dma_write would have taken its word
  always_ff @(posedge clk) begin
    if (!s0_valid || s0_ready) late <= '0;
    else if (m_ready) late <= late + 1'b1;
    if (rst) late <= '0;
    else begin
      a_late : assert (int'(late) <= (in_write && enough_left ? RUN : 1) * SECOND_WORDS);
      if (s1_valid) a_one_request : assert (s1_bytes <= BYTES_BITS'(16 * SECOND_WORDS));
      if (s1_valid && s1_ready) a_cut : assert (m_cut == s1_last);
    end
  end
`endif
endmodule
