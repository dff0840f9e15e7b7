// SPDX-License-Identifier: Apache-2.0
// 10G Ethernet MAC, send side: frames without preamble and FCS in, XGMII words out.
//
// Contract
//   * A frame has to come without a gap: when a word is missing in mid-frame, the frame ends with error characters (drop_underrun) and
//     the rest of it is thrown away. s_axis_tuser with s_axis_tlast ends it in the same way (drop_aborted).
//   * Frames under 60 bytes are filled with zeros. The gap between frames is 12 bytes on average, never under 9 (deficit idle count);
//     a frame begins on lane 0, or on lane 4 when that keeps the gap.
//   * A frame's first word leaves LATENCY_CYCLES after it was taken, on lane 4 half a cycle later; no word waits in here.
module mac_10g_tx (
    input logic clk,
    input logic rst,

    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,   // all ones but with tlast, then from lane 0 without a hole
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,

    output logic [63:0] xgmii_txd,
    output logic [ 7:0] xgmii_txc,

    output logic count_good,
    output logic drop_underrun,
    output logic drop_aborted
);
  localparam int LATENCY_CYCLES = 4;
  localparam logic [63:0] IDLES = {8{nanet_pkg::XGMII_IDLE}};

  // --- when a frame may begin, and what its words are ---
  typedef enum logic [1:0] {
    WAIT,   // for the gap to be long enough and a frame to be there
    DATA,
    PAD,
    DRAIN   // throws away what is left of a frame that was cut
  } state_t;

  typedef struct packed {
    logic       start;  // the preamble goes out with this word's cycle, the frame's first word is the next
    logic       lane4;  // the preamble begins on lane 4
    logic       valid;
    logic       last;
    logic       error;  // error characters in place of the word
    logic [3:0] bytes;  // 1 to 8
  } word_t;

  state_t state;
  logic [2:0] wait_cycles;
  logic next_lane4, lane4;
  logic [1:0] deficit;
  logic [3:0] index;  // of the word in its frame, up to 8
  word_t word;
  logic [63:0] word_data;
  logic pad_after;

  wire in_data = state == DATA && s_axis_tvalid;
  wire underrun = state == DATA && !s_axis_tvalid;
  wire aborted = in_data && s_axis_tlast && s_axis_tuser;
  wire starts = state == WAIT && wait_cycles == '0 && s_axis_tvalid;
  assign s_axis_tready = state == DATA || state == DRAIN;

  logic [3:0] kept;
  always_comb begin
    kept = '0;
    for (int lane = 0; lane < 8; lane++) if (s_axis_tkeep[lane]) kept = 4'(lane + 1);
    word = '0;
    word.start = starts;
    word.lane4 = next_lane4;
    word.valid = state == DATA || state == PAD;
    word.error = underrun || aborted;
    word.last = word.error || (in_data ? s_axis_tlast && index >= 4'd7 : index == 4'd7);
    pad_after = in_data && s_axis_tlast && !word.last;
    if (word.error || !word.last) word.bytes = 4'd8;
    else if (in_data && (kept >= 4'd4 || index > 4'd7)) word.bytes = kept;
    else word.bytes = 4'd4;
    for (int lane = 0; lane < 8; lane++) word_data[8*lane+:8] = in_data && s_axis_tkeep[lane] ? s_axis_tdata[8*lane+:8] : '0;
  end

  // The gap in units of four bytes from the frame's last word on. Bytes that the gap falls short of 12 add to the deficit; a unit more
  // takes it back before it reaches four.
  wire [2:0] deficit_next = {1'b0, deficit} + {1'b0, word.bytes[1:0]};
  wire [3:0] halves = 4'(word.bytes[3:2]) + 4'd4 + 4'(deficit_next[2]) + 4'(lane4);

  always_ff @(posedge clk) begin
    if (wait_cycles != '0) wait_cycles <= wait_cycles - 1'b1;
    case (state)
      WAIT: begin
        index <= '0;
        if (starts) begin
          state <= DATA;
          lane4 <= next_lane4;
        end else if (wait_cycles == '0) begin
          next_lane4 <= 1'b0;
          deficit <= '0;
        end
      end
      DATA: state <= underrun ? DRAIN : pad_after ? PAD : word.last ? WAIT : DATA;
      PAD: if (word.last) state <= WAIT;
      DRAIN: if (s_axis_tvalid && s_axis_tlast) state <= WAIT;
    endcase
    if (word.valid) begin
      if (!index[3]) index <= index + 1'b1;
      if (word.last) begin
        wait_cycles <= halves[3:1] - 1'b1;
        next_lane4 <= halves[0];
        deficit <= deficit_next[1:0];
      end
    end
    count_good <= word.valid && word.last && !word.error && !rst;
    drop_underrun <= underrun && !rst;
    drop_aborted <= aborted && !rst;
    if (rst) begin
      state <= WAIT;
      wait_cycles <= '0;
      next_lane4 <= 1'b0;
      deficit <= '0;
    end
  end

  // --- check sequence: over whole words, then the filling of the last one is taken back ---
  word_t taken, summed, ready;
  logic taken_first;
  logic [63:0] taken_data, summed_data, ready_data;
  logic [31:0] crc, crc_next, crc_before, fcs;

  crc32_word crc_word (
      .crc(taken_first ? '1 : crc),
      .data(taken_data),
      .crc_next
  );

  crc32_undo crc_undo (
      .crc,
      .zero_bytes(3'(4'd8 - summed.bytes)),
      .crc_before
  );

  always_ff @(posedge clk) begin
    taken <= rst ? '0 : word;
    taken_first <= index == '0;
    taken_data <= word_data;
    summed <= rst ? '0 : taken;
    summed_data <= taken_data;
    if (taken.valid) crc <= crc_next;
    ready <= rst ? '0 : summed;
    ready_data <= summed_data;
    fcs <= ~crc_before;
  end

  // --- a frame from lane 0 on: words, check sequence, end, idle ---
  logic [63:0] frame_data, spill_data, tail_data_high, tail_data_low;
  logic [7:0] frame_control, spill_control, tail_control_high, tail_control_low;
  assign {tail_data_high, tail_data_low} = {{11{nanet_pkg::XGMII_IDLE}}, nanet_pkg::XGMII_TERMINATE, fcs} << (8 * ready.bytes);
  assign {tail_control_high, tail_control_low} = 16'hFFF0 << ready.bytes;

  always_comb begin
    frame_data = spill_data;
    frame_control = spill_control;
    if (ready.valid) begin
      frame_data = ready_data | (ready.last ? tail_data_low : '0);
      frame_control = ready.last ? tail_control_low : '0;
      if (ready.error) begin
        frame_data = {8{nanet_pkg::XGMII_ERROR}};
        frame_control = '1;
      end
    end
  end

  always_ff @(posedge clk) begin
    spill_data <= ready.valid && ready.last ? tail_data_high : IDLES;
    spill_control <= ready.valid && ready.last ? tail_control_high : '1;
    if (rst) begin
      spill_data <= IDLES;
      spill_control <= '1;
    end
  end

  // --- onto lane 0 or lane 4; the preamble comes before the frame's first word ---
  logic [31:0] carry_data;
  logic [3:0] carry_control;
  logic on_lane4;

  always_ff @(posedge clk) begin
    xgmii_txd <= on_lane4 ? {frame_data[31:0], carry_data} : frame_data;
    xgmii_txc <= on_lane4 ? {frame_control[3:0], carry_control} : frame_control;
    carry_data <= frame_data[63:32];
    carry_control <= frame_control[7:4];
    if (ready.start && ready.lane4) begin
      xgmii_txd[63:32] <= nanet_pkg::XGMII_PREAMBLE[31:0];
      xgmii_txc[7:4] <= 4'b0001;
      carry_data <= nanet_pkg::XGMII_PREAMBLE[63:32];
      carry_control <= '0;
      on_lane4 <= 1'b1;
    end else if (ready.start) begin
      xgmii_txd <= nanet_pkg::XGMII_PREAMBLE;
      xgmii_txc <= 8'h01;
      on_lane4 <= 1'b0;
    end
    if (rst) begin
      xgmii_txd <= IDLES;
      xgmii_txc <= '1;
      carry_data <= IDLES[31:0];
      carry_control <= '1;
      on_lane4 <= 1'b0;
    end
  end

  // --- what must hold ---
  logic [LATENCY_CYCLES-1:0] begun;
  logic follows;  // the word after a preamble on lane 0
  always_ff @(posedge clk) begin
    begun <= rst ? '0 : {begun[LATENCY_CYCLES-2:0], in_data && index == '0};
    follows <= !rst && xgmii_txc == 8'h01 && xgmii_txd == nanet_pkg::XGMII_PREAMBLE;
    if (!rst) begin
      assert (!in_data || s_axis_tlast || s_axis_tkeep == '1);
      assert (!in_data || (s_axis_tkeep[0] && (s_axis_tkeep & (s_axis_tkeep + 1'b1)) == '0));
      assert ($onehot0({count_good, drop_underrun, drop_aborted}));
      assert (!follows || begun[LATENCY_CYCLES-1]);
    end
  end
endmodule
