// SPDX-License-Identifier: Apache-2.0
// 10G Ethernet MAC, receive side: XGMII words in, frames without preamble and FCS out.
//
// Contract
//   * A frame may begin on lane 0 or 4. Its first word leaves LATENCY_CYCLES after the word that holds its first byte came in, and no
//     word waits: the output cannot be held up.
//   * m_axis_tuser with m_axis_tlast says that the frame is bad. One counter gives one pulse for each frame that began.
//   * A bad frame whose first eight bytes did not come makes no output, only the pulse.
//   * m_meta_start_cycle is now_cycles of the cycle in which the start character stood on XGMII. It holds from the first word to the last.
module mac_10g_rx #(
    parameter int FRAME_BYTES_MAX = 9022,  // longest good frame, FCS and tag included [B]
    parameter bit NOW_LATE = 1'b0          // now_cycles is as late as a start is seen here
) (
    input logic clk,
    input logic rst,

    input logic [63:0] now_cycles,
    input logic [63:0] xgmii_rxd,
    input logic [ 7:0] xgmii_rxc,

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,
    output logic [63:0] m_meta_start_cycle,

    output logic count_good,
    output logic drop_preamble,  // no start-of-frame delimiter where it must be
    output logic drop_control,   // a control character other than the terminating one
    output logic drop_oversize,  // longer than FRAME_BYTES_MAX; ends at once
    output logic drop_runt,      // shorter than 64 bytes
    output logic drop_fcs        // frame check sequence wrong
);
  localparam int LATENCY_CYCLES = 5;
  localparam int SEEN_CYCLES = 2;  // so long after it stood on XGMII a word is looked at
  localparam int BYTES_BITS = $clog2(FRAME_BYTES_MAX + 9);

  if (FRAME_BYTES_MAX < 1518 || FRAME_BYTES_MAX > 16384) begin : g_check
    $fatal(1, "FRAME_BYTES_MAX must be 1518 to 16384 (instance %m)");
  end

  // --- a start on lane 4 is turned to lane 0: the low half comes from the word before ---
  logic [63:0] raw_data, data;
  logic [7:0] raw_control, control;
  logic turned;

  always_ff @(posedge clk) begin
    raw_data <= xgmii_rxd;
    raw_control <= xgmii_rxc;
    if (xgmii_rxc[0] && xgmii_rxd[7:0] == nanet_pkg::XGMII_START) turned <= 1'b0;
    else if (xgmii_rxc[4] && xgmii_rxd[39:32] == nanet_pkg::XGMII_START) turned <= 1'b1;
    data <= turned ? {xgmii_rxd[31:0], raw_data[63:32]} : raw_data;
    control <= turned ? {xgmii_rxc[3:0], raw_control[7:4]} : raw_control;
    if (rst) begin
      raw_control <= '0;
      control <= '0;
      turned <= 1'b0;
    end
  end

  // --- what the word is ---
  logic [2:0] lanes;  // before the first control character
  logic [63:0] lane_mask;
  wire has_control = |control;
  wire is_start = control[0] && data[7:0] == nanet_pkg::XGMII_START;
  wire is_preamble = is_start && control[7:1] == '0 && data[63:56] == nanet_pkg::ETH_SFD;
  wire is_terminate = has_control && data[8*lanes+:8] == nanet_pkg::XGMII_TERMINATE;

  always_comb begin
    lanes = '0;
    for (int lane = 7; lane >= 0; lane--) if (control[lane]) lanes = lane[2:0];
    for (int lane = 0; lane < 8; lane++) lane_mask[8*lane+:8] = {8{!has_control || lane < int'(lanes)}};
  end

  // --- frame, length, check sequence ---
  logic in_frame;
  logic [BYTES_BITS-1:0] bytes;  // of this frame before this word
  logic [31:0] crc, crc_next;
  logic [63:0] start_cycle;
  wire [BYTES_BITS-1:0] bytes_next = bytes + (has_control ? BYTES_BITS'(lanes) : BYTES_BITS'(8));
  wire too_long = int'(bytes_next) > FRAME_BYTES_MAX;

  crc32_word crc_word (
      .crc,
      .data(data & lane_mask),
      .crc_next
  );

  typedef struct packed {
    logic data;       // a word of the frame, whole unless the frame ends
    logic terminate;  // the frame ends, after `lanes` bytes
    logic control;    // the frame ends: control character
    logic oversize;   // the frame ends: too long
    logic runt;       // as far as this word
    logic preamble;   // a frame that did not begin
  } verdict_t;

  verdict_t seen;
  logic [63:0] seen_data;
  logic [2:0] seen_lanes;

  always_ff @(posedge clk) begin
    seen <= '0;
    seen_data <= data;
    seen_lanes <= lanes;
    if (in_frame) begin
      crc <= crc_next;
      bytes <= bytes_next;
      seen.data <= !has_control;
      seen.terminate <= is_terminate && !too_long;
      seen.control <= has_control && !is_terminate;
      seen.oversize <= too_long && (is_terminate || !has_control);
      seen.runt <= int'(bytes_next) < nanet_pkg::ETH_FRAME_BYTES_MIN;
      if (has_control || too_long) in_frame <= 1'b0;
    end
    if (is_start) begin
      in_frame <= is_preamble;
      seen.preamble <= !is_preamble;
      bytes <= '0;
      crc <= '1;
      start_cycle <= NOW_LATE ? now_cycles : now_cycles - 64'(SEEN_CYCLES);
    end
    if (rst) begin
      in_frame <= 1'b0;
      seen <= '0;
    end
  end

  // --- one word is held back: whether it is the last, and without how many bytes, the word behind it says ---
  logic [63:0] held_data;
  logic [7:0] held_keep;
  logic held_valid, held_first, held_last, held_bad;
  wire crc_good = crc == crc32_pkg::RESIDUE[32*seen_lanes+:32];
  wire ends_good = seen.terminate && !seen.runt && crc_good;
  wire ends_bad = seen.control || seen.oversize || (seen.terminate && !ends_good);
  wire spills = seen.terminate && seen_lanes > 3'd4;  // this word has bytes that are not of the check sequence

  always_ff @(posedge clk) begin
    m_axis_tdata <= held_data;
    m_axis_tvalid <= held_valid && (seen.data || seen.terminate || seen.control || seen.oversize || held_last);
    m_axis_tlast <= held_last || ((ends_good || ends_bad) && !spills);
    m_axis_tuser <= held_last ? held_bad : ends_bad;
    m_axis_tkeep <= held_keep;
    if (seen.terminate && !spills) m_axis_tkeep <= 8'hFF >> (3'd4 - seen_lanes);
    if (held_valid && held_first) m_meta_start_cycle <= start_cycle;

    if (seen.data || seen.terminate || seen.control || seen.oversize || held_last) begin
      held_data <= seen_data;
      held_keep <= spills ? 8'hFF >> (4'd12 - 4'(seen_lanes)) : 8'hFF;
      held_valid <= (seen.data && !seen.oversize) || (spills && held_valid);  // a frame of five to seven bytes is only counted
      held_first <= !held_valid || held_last;
      held_last <= spills;
      held_bad <= ends_bad;
    end
    if (rst) begin
      m_axis_tvalid <= 1'b0;
      held_valid <= 1'b0;
      held_last <= 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    count_good <= ends_good && !rst;
    drop_preamble <= seen.preamble && !rst;
    drop_control <= seen.control && !rst;
    drop_oversize <= seen.oversize && !rst;
    drop_runt <= seen.terminate && seen.runt && !rst;
    drop_fcs <= seen.terminate && !seen.runt && !crc_good && !rst;
  end

  // --- what must hold ---
  logic [LATENCY_CYCLES-2:0] begun;  // two cycles of the latency lie before the word is looked at, one after it is held
  logic m_first;
  always_ff @(posedge clk) begin
    begun <= rst ? '0 : {begun[LATENCY_CYCLES-3:0], is_preamble};
    m_first <= held_first;
    if (!rst) begin
      assert ($onehot0({count_good, drop_control, drop_oversize, drop_runt, drop_fcs}));
      assert (!m_axis_tvalid || m_axis_tlast || m_axis_tkeep == '1);
      assert (!m_axis_tvalid || m_axis_tkeep[0]);
      assert (!m_axis_tvalid || !m_first || begun[LATENCY_CYCLES-2]);
    end
  end
endmodule
