// SPDX-License-Identifier: Apache-2.0
// Frames of a floor become packets: each kind of data with the head of docs/formats-km3.md, for the CLOP of its kind; slow control as it came.
//
// Contract
//   * Frames come as of km3_buffer, and wait. Packets leave a word a cycle or with gaps, never held up; m_meta holds from a packet's first word to its last.
//   * A floor puts whole records into a slot of a frame. Then a packet has whole records, and what is left after a frame that is missing is good.
//   * Frames: placed + unplaced + control_only. Those that come before the run or too far ahead (km3_slice) have no place, and of them slow control leaves
//     alone: where a floor is asked before there is a run, its answers are to come. unplaced: data of it are lost, or `enable` is down, when nothing leaves;
//     control_only: it has none.
//   * A kind without data in a frame has no packet, but in the last frame of a slice, whose packet is the last of its unit. Of slow control there is none.
//   * After frames that are missing in a slice (`missing`, a pulse), the places of what follows begin HOLE_BYTES further, and running numbers one: the unit
//     has a hole. Of a hydrophone, whose places are times, nothing more of that slice is sent (sound_cut, a packet each).
//   * packet: each that leaves. Its arrival is the time of its frame [ns of GPS]; floor, tower and kind of hits are those that came with the frame.
//   * run_begins: the run begins before the next frame that is not yet begun, with what the settings said then.
module km3_packets #(
    parameter int OPTICAL_GROUPS = 1,
    parameter int FRAMES_PER_S = 10000,
    localparam int GROUPS = OPTICAL_GROUPS + 4,
    localparam int META_BITS = km3_pkg::FRAME_META_BITS + 16 * GROUPS
) (
    input logic clk,
    input logic rst,

    /* verilator lint_off UNUSEDSIGNAL */  // what is said of the floor comes with its frames
    input km3_pkg::port_settings_t settings,
    /* verilator lint_on UNUSEDSIGNAL */

    input  logic [         63:0] s_axis_tdata,
    input  logic [          7:0] s_axis_tkeep,
    input  logic                 s_axis_tvalid,
    output logic                 s_axis_tready,
    input  logic                 s_axis_tlast,
    input  logic [META_BITS-1:0] s_meta,

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output port_pkg::routed_t m_meta,

    output logic packet,
    output logic placed,
    output logic unplaced,
    output logic control_only,
    output logic missing,
    output logic sound_cut
);
  localparam int STREAMS = 4;      // with a head: hits, hydrophones 0 and 1, instruments
  localparam int HOLE_BYTES = 12;  // whole records of every kind
  localparam logic [31:0] MAGIC = 32'h4B4D3346;  // "KM3F"
  localparam int GROUP_BITS = $clog2(GROUPS + 1);

  typedef enum logic [3:0] {
    IDLE,
    ASK,
    WAIT,
    ABOUT,
    CHOOSE,
    HEAD,
    WORDS,
    SKIP,
    NEXT,
    REST
  } state_t;
  state_t state;

  // --- the frame ---
  km3_pkg::frame_meta_t about;
  logic [GROUPS-1:0][15:0] words;
  logic run_waits, begins_run, fresh_run, ended;
  logic [30:0] run, next_run;
  logic [31:0] next_second;
  logic [15:0] next_slice_frames;
  logic asks, in_slice, unwanted, first, is_last, was_missing, timed, computes;
  logic [31:0] slice;
  logic [63:0] ns;
  logic [25:0] ticks;
  km3_pkg::time_t begin_at;
  km3_slice #(
      .FRAMES_PER_S(FRAMES_PER_S)
  ) i_slice (
      .clk,
      .rst,
      .run_begins(begins_run),
      .second(next_second),
      .slice_frames(next_slice_frames),
      .start(asks),
      .at(about.head.at),
      .done(in_slice),
      .outside(unwanted),
      .slice,
      .begin_at,
      .first,
      .is_last,
      .missing(was_missing)
  );
  km3_frame_time #(
      .FRAMES_PER_S(FRAMES_PER_S)
  ) i_time (
      .clk,
      .rst,
      .start(computes),
      .at(about.head.at),
      .number(begin_at.number),
      .done(timed),
      .ns,
      .ticks
  );
  wire has_data = words[GROUPS-2:0] != '0;
  wire has_control = words[GROUPS-1] != '0;
  logic no_place;  // of the frame: what has a place in a slice is passed over
  assign begins_run = run_waits && state == IDLE;
  assign asks = state == ASK;
  assign computes = state == WAIT && in_slice && (!unwanted || has_control);

  // --- where in it: a group, its stream ---
  logic [GROUP_BITS-1:0] group;
  logic [15:0] count;  // words of 16 bits
  logic [1:0] stream, kind_class;
  logic control, sound, ends_unit;
  logic [STREAMS-1:0][31:0] offsets, sequences;
  logic [STREAMS-1:0] cut;
  always_comb begin
    count = '0;
    for (int g = 0; g < GROUPS; g++) if (int'(group) == g) count = words[g];
    control = int'(group) == GROUPS - 1;
    stream = 2'd0;
    for (int s = 1; s < STREAMS; s++) if (int'(group) == OPTICAL_GROUPS + s - 1) stream = 2'(s);
    sound = stream == 2'd1 || stream == 2'd2;
    ends_unit = is_last && !control && int'(group) >= OPTICAL_GROUPS - 1;
    kind_class = control ? 2'd3 : sound ? 2'd1 : stream == 2'd3 ? 2'd2 : 2'd0;
  end

  // --- the packet: what is decided about it stands in registers before it begins ---
  logic [15:0] left;  // words of 8 bytes
  logic [1:0] line;   // of its head
  logic [7:0] kind;
  logic last_of_unit;
  logic [31:0] offset, sequence_number;
  port_pkg::routed_t meta;
  logic [63:0] head_word;  // the first byte highest
  always_comb begin
    case (line)
      2'd0: head_word = {MAGIC, about.tower, about.head.floor, kind, 6'd0, !about.head.flags.timed, last_of_unit};
      2'd1: head_word = {1'b0, run, slice};
      2'd2: head_word = {begin_at.second, 6'd0, ticks};
      default: head_word = {offset, sequence_number};
    endcase
  end
  assign s_axis_tready = state == WORDS || state == SKIP || state == REST;
  wire takes = s_axis_tvalid && s_axis_tready;

  always_ff @(posedge clk) begin
    {m_axis_tvalid, m_axis_tlast, packet, placed, unplaced, control_only, missing, sound_cut} <= '0;
    for (int k = 0; k < 8; k++) if (state != WORDS) m_axis_tdata[8*k+:8] <= head_word[8*(7-k)+:8];
    if (state == WORDS) m_axis_tdata <= s_axis_tdata;
    m_axis_tkeep <= state == WORDS ? s_axis_tkeep : '1;
    case (state)
      ASK: state <= WAIT;
      WAIT: begin
        if (in_slice) begin
          unplaced <= unwanted && has_data;
          control_only <= unwanted && !has_data;
          placed <= !unwanted;
          missing <= !unwanted && was_missing;
          no_place <= unwanted;
          state <= unwanted && !has_control ? REST : ABOUT;
          if (!unwanted) begin
            fresh_run <= 1'b0;
            for (int s = 0; s < STREAMS; s++) begin
              if (first) offsets[s] <= was_missing ? 32'(HOLE_BYTES) : '0;
              else if (was_missing) offsets[s] <= offsets[s] + 32'(HOLE_BYTES);
              if (fresh_run) sequences[s] <= '0;
              else if (was_missing) sequences[s] <= sequences[s] + 1'b1;
              cut[s] <= (s == 1 || s == 2) && (was_missing || (cut[s] && !first));
            end
          end
        end
      end
      ABOUT: if (timed) state <= CHOOSE;
      CHOOSE: begin
        meta.route <= port_pkg::ROUTE_HOST;
        meta.payload <= '0;
        for (int c = 0; c < 4; c++) begin
          if (int'(kind_class) == c) begin
            meta.payload.clop   <= settings.clop[c];
            meta.payload.source <= settings.source[c];
          end
        end
        meta.payload.bytes <= (count << 1) + (control ? 16'd0 : 16'd32);
        meta.payload.arrival_ns <= ns;
        meta.payload.start_cycle <= about.start_cycle;
        meta.payload.parsed_cycle <= about.parsed_cycle;
        left <= (count + 16'd3) >> 2;
        line <= '0;
        kind <= stream == 2'd0 ? {6'd0, about.sampled, !about.sampled} : {6'd0, stream} + 8'd2;
        last_of_unit <= ends_unit;
        for (int s = 0; s < STREAMS; s++) begin
          if (int'(stream) == s) {offset, sequence_number} <= {offsets[s], sequences[s]};
        end
        if (control) state <= count == '0 ? NEXT : WORDS;
        else if (no_place) state <= count == '0 ? NEXT : SKIP;
        else if (cut[stream]) begin
          sound_cut <= count != '0 || ends_unit;
          state <= count == '0 ? NEXT : SKIP;
        end else state <= count == '0 && !ends_unit ? NEXT : HEAD;
      end
      HEAD: begin
        m_axis_tvalid <= 1'b1;
        line <= line + 1'b1;
        if (line == 2'd3) begin
          m_axis_tlast <= left == '0;
          packet <= left == '0;
          state <= left == '0 ? NEXT : WORDS;
          for (int s = 0; s < STREAMS; s++) begin
            if (int'(stream) == s) begin
              offsets[s]   <= offsets[s] + 32'(count << 1);
              sequences[s] <= sequences[s] + 1'b1;
            end
          end
        end
      end
      WORDS, SKIP: begin
        if (takes) begin
          m_axis_tvalid <= state == WORDS;
          left <= left - 1'b1;
          if (left == 16'd1) begin
            m_axis_tlast <= state == WORDS;
            packet <= state == WORDS;
            ended <= s_axis_tlast;
            state <= NEXT;
          end
        end
      end
      NEXT: begin
        group <= group + 1'b1;
        state <= !control ? CHOOSE : ended ? IDLE : REST;
      end
      REST: if (takes && s_axis_tlast) state <= IDLE;
      default: begin
        group <= '0;
        ended <= 1'b0;
        {about, words} <= s_meta;
        if (begins_run) begin
          run_waits <= 1'b0;
          fresh_run <= 1'b1;
          run <= next_run;
        end else if (s_axis_tvalid) begin
          if (settings.enable) state <= ASK;
          else begin
            unplaced <= 1'b1;
            state <= REST;
          end
        end
      end
    endcase
    if (settings.run_begins) begin
      run_waits <= 1'b1;
      next_run <= settings.run;
      next_second <= settings.second;
      next_slice_frames <= settings.slice_frames;
    end
    if (rst) begin
      state <= IDLE;
      run_waits <= 1'b0;
      {m_axis_tvalid, m_axis_tlast, packet, placed, unplaced, control_only, missing, sound_cut} <= '0;
    end
  end
  assign m_meta = meta;

  // --- what must hold ---
  always_ff @(posedge clk) if (!rst) assert (!(takes && s_axis_tlast) || (!ended && (state == REST || left == 16'd1)));
endmodule
