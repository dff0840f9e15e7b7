// SPDX-License-Identifier: Apache-2.0
// Frames of the receive MAC, and what became of each, from its clock to that of the core.
//
// Contract
//   * What the MAC gives comes out LATENCY_CYCLES of m_clk after async_fifo has carried it, with pauses between the words; the output cannot be held
//     up. m_clk carries the line if it has at least as many edges as the MAC gives words.
//   * Each frame has one verdict on either side. One that can't come through whole ends with tuser and is a pulse of drops.cut instead of what the MAC says of
//     it: that whose clock stands for SILENCE_CYCLES of m_clk in mid-frame, and that for which the FIFO has no room, because m_clk stands or
//     is too slow. What is left of it is thrown away.
//   * s_stamp is a cycle of m_clk, modulo 2 ** 16, as cycle_crossing shows it; m_start_cycle is that number in full, from the frame's first word to its last.
//   * A pulse of s_drops that belongs to a frame with words comes together with one of them; preamble is of a frame without words.
module rx_crossing #(
    parameter int DEPTH = 16,  // words of eight bytes
    parameter int SILENCE_CYCLES = 255
) (
    input logic                       s_clk,
    input logic                       s_rst,
    input logic                [63:0] s_axis_tdata,
    input logic                [ 7:0] s_axis_tkeep,
    input logic                       s_axis_tvalid,
    input logic                       s_axis_tlast,
    input logic                       s_axis_tuser,
    input logic                [15:0] s_stamp,
    input nic_counts_pkg::mac_drops_t s_drops,

    input  logic                       m_clk,
    input  logic                       m_rst,
    input  logic                [63:0] m_now_cycles,
    output logic                [63:0] m_axis_tdata,
    output logic                [ 7:0] m_axis_tkeep,
    output logic                       m_axis_tvalid,
    output logic                       m_axis_tlast,
    output logic                       m_axis_tuser,
    output logic                [63:0] m_start_cycle,
    output nic_counts_pkg::mac_drops_t m_drops
);
  localparam int LATENCY_CYCLES = 1;
  localparam int SILENCE_BITS = $clog2(SILENCE_CYCLES + 1);
  localparam int ENTRY_BITS = nic_counts_pkg::MAC_DROPS + 86;

  typedef struct packed {
    nic_counts_pkg::mac_drops_t drops;
    logic [15:0] stamp;
    logic word;  // else drops alone
    logic user;
    logic last;
    logic [2:0] empty_bytes;
    logic [63:0] data;
  } entry_t;

  // --- in the MAC's clock: what finds no room ---
  logic s_ready;
  logic unended;  // of some frame the reader has the beginning and not the end
  logic skipping;  // a word of this frame found no room
  logic owed, owed_cut;  // of the unended frame, so the reader must be given an end; and that is its verdict
  logic told;  // this frame's verdict has been pushed or counted
  entry_t s_entry;
  wire fits = s_ready && !owed;
  wire verdict = s_drops.control || s_drops.oversize || s_drops.runt || s_drops.fcs;
  wire wants_word = s_axis_tvalid && !skipping;
  wire wants = wants_word || s_drops.preamble || (verdict && !skipping);
  wire loses_word = wants_word && !fits;
  wire begun = unended && !owed;  // the reader has the beginning of this frame
  wire loses_verdict = verdict && !s_axis_tvalid && !fits && !skipping;
  wire [1:0] lost = 2'((loses_word && !begun && !told) || loses_verdict) + 2'(s_drops.preamble && !fits);

  logic [1:0] lost_before;  // of the cycle before: to see what is full is work enough for one

  always_comb begin
    s_entry.drops = s_drops;
    if (skipping) s_entry.drops = '{preamble: s_drops.preamble, default: 1'b0};
    s_entry.stamp = gray_pkg::number(s_stamp);
    s_entry.word  = wants_word;
    s_entry.user  = s_axis_tuser;
    s_entry.last  = s_axis_tlast;
    s_entry.data  = s_axis_tdata;
    s_entry.empty_bytes = '0;
    for (int lane = 7; lane >= 1; lane--) if (!s_axis_tkeep[lane]) s_entry.empty_bytes = 3'(8 - lane);
    if (owed) begin
      s_entry.drops = '{cut: owed_cut, default: 1'b0};
      s_entry.word  = 1'b1;
      s_entry.user  = 1'b1;
      s_entry.last  = 1'b1;
    end
  end

  always_ff @(posedge s_clk) begin
    if (owed) {owed, unended} <= {2{!s_ready}};
    else if (loses_word) owed <= unended;
    if (!owed) owed_cut <= !told;
    if (wants_word && fits) unended <= !s_axis_tlast;
    if (loses_word) skipping <= !s_axis_tlast;
    else if (s_axis_tvalid && s_axis_tlast) skipping <= 1'b0;
    if (s_axis_tvalid) told <= !s_axis_tlast && (told || verdict || loses_word);
    lost_before <= lost;
    if (s_rst) begin
      {owed, unended, skipping, told} <= '0;
      lost_before <= '0;
    end
  end

  logic m_valid;
  entry_t m_entry;
  async_fifo #(
      .WIDTH(ENTRY_BITS),
      .DEPTH(DEPTH)
  ) fifo (
      .s_clk,
      .s_rst,
      .s_data (s_entry),
      .s_valid(wants || owed),
      .s_ready,
      .m_clk,
      .m_rst,
      .m_data (m_entry),
      .m_valid,
      .m_ready(1'b1),
      .m_more ()
  );

  // --- in the core's clock: what stays away ---
  logic m_inside, orphaned;  // a frame has begun and not ended; the rest of this one is not wanted
  logic m_told;  // its verdict has been counted, before its end
  wire m_verdict = m_entry.drops.control || m_entry.drops.oversize || m_entry.drops.runt || m_entry.drops.fcs || m_entry.drops.cut;
  logic [SILENCE_BITS-1:0] silence;
  wire takes = m_valid && m_entry.word && !orphaned;
  wire cuts = m_inside && !m_valid && silence == '0;

  logic m_lost;
  pulse_crossing losses (
      .s_clk,
      .s_rst,
      .s_pulses(lost_before),
      .m_clk,
      .m_rst,
      .m_pulse(m_lost),
      .m_ready(!m_valid && !cuts)
  );

  // The upper bits of the start stamp are those of now, or one less if the lower ones have come round since. Both are of one cycle earlier here, which
  // changes nothing: a start is older than that.
  logic [47:0] epoch, epoch_before;
  logic [15:0] now_low;
  always_ff @(posedge m_clk) begin
    epoch <= m_now_cycles[63:16];
    epoch_before <= m_now_cycles[63:16] - 48'd1;
    now_low <= m_now_cycles[15:0];

    m_axis_tdata <= m_entry.data;
    m_axis_tkeep <= 8'hFF >> m_entry.empty_bytes;
    m_axis_tvalid <= takes || cuts;
    m_axis_tlast <= cuts || m_entry.last;
    m_axis_tuser <= cuts || m_entry.user;
    if (takes && !m_inside) m_start_cycle <= {m_entry.stamp > now_low ? epoch_before : epoch, m_entry.stamp};
    m_drops <= '0;
    if (m_valid && !orphaned) m_drops <= m_entry.drops;
    m_drops.preamble <= m_valid && m_entry.drops.preamble;
    m_drops.cut <= cuts ? !m_told : m_valid ? m_entry.drops.cut && !orphaned : m_lost;

    silence <= m_inside && !m_valid ? silence - 1'b1 : SILENCE_BITS'(SILENCE_CYCLES);
    if (takes) m_inside <= !m_entry.last;
    if (m_valid && !orphaned) m_told <= (takes ? !m_entry.last : m_inside) && (m_told || m_verdict);
    if (m_valid && m_entry.word && m_entry.last) orphaned <= 1'b0;
    if (cuts) {m_inside, orphaned, m_told} <= 3'b010;
    if (m_rst) begin
      {m_inside, orphaned, m_told, m_axis_tvalid} <= '0;
      m_drops <= '0;
    end
  end

  // --- what must hold ---
  logic [LATENCY_CYCLES-1:0] taken;
  always_ff @(posedge m_clk) begin
    taken <= {takes || cuts};
    if (!m_rst) begin
      assert (!m_axis_tvalid || taken[LATENCY_CYCLES-1]);
      assert (!m_axis_tvalid || m_axis_tlast || m_axis_tkeep == '1);
    end
  end
  always_ff @(posedge s_clk) begin
    if (!s_rst) begin
      assert ($onehot0({s_drops.control, s_drops.oversize, s_drops.runt, s_drops.fcs}));
      assert (!owed || unended);
    end
  end
endmodule
