// SPDX-License-Identifier: Apache-2.0
// In which time slice of the run a frame is.
//
// Contract
//   * run_begins, while nothing is asked: slice 0 begins with frame 0 of `second`; slices follow each other, of slice_frames each.
//   * `start` asks for the frame `at`, and `done` answers, some cycles later: it is `outside`, before the run, before the slice of the last frame, or over
//     STEPS_MAX slices after that; or slice, its first frame `begin_at` and what follows are those of this frame. Seconds come round: up to half of all of them
//     after a second are later than it.
//   * A frame that is outside changes nothing for one that is not. Frames too far ahead, one after the other with none before between, are looked for from
//     where the one before left off: a floor that was away for long comes back.
//   * first: of this slice no frame came before. is_last: it is the slice's last frame. missing: it does not follow the one before it, or, the first that
//     came, is not the slice's first.
//   * Until a run has begun every frame is outside.
module km3_slice #(
    parameter int FRAMES_PER_S = 10000,
    parameter int STEPS_MAX = 1024
) (
    input logic clk,
    input logic rst,

    input logic        run_begins,
    input logic [31:0] second,
    input logic [15:0] slice_frames,  // 1 to FRAMES_PER_S

    input  logic                  start,
    input  km3_pkg::time_t        at,
    output logic                  done,
    output logic                  outside,
    output logic           [31:0] slice,
    output km3_pkg::time_t        begin_at,
    output logic                  first,
    output logic                  is_last,
    output logic                  missing
);
  localparam int STEP_BITS = $clog2(STEPS_MAX + 1);
  typedef enum logic [2:0] {
    IDLE,
    COMPARE,
    DECIDE,
    STEP,
    SUM,
    CARRY
  } state_t;
  state_t state;
  logic runs, was_last, was_first, follows;
  logic [2:0] to_begin, to_last;  // of the seconds: less or more, equal; of the numbers: less or more
  wire is_before = to_begin[2] || (to_begin[1] && to_begin[0]);
  wire is_after = to_last[2] || (to_last[1] && to_last[0]);
  km3_pkg::time_t last, due;  // of the slice; after the last one that came
  logic ahead;  // slice, begin_at and last are of where one was looked for; of the last frame that was not outside they are:
  logic [31:0] kept_slice;
  km3_pkg::time_t kept_begin_at, kept_last;
  logic [15:0] frames;  // of a slice of this run
  logic [16:0] sum;
  logic [15:0] number_next;
  logic [STEP_BITS-1:0] steps;
  logic begins_second, sum_over;  // of last and sum, a cycle later
  always_ff @(posedge clk) begin
    done <= 1'b0;
    number_next <= at.number + 1'b1;
    begins_second <= int'(last.number) == FRAMES_PER_S - 1;
    sum_over <= int'(sum) >= FRAMES_PER_S;
    case (state)
      COMPARE: begin
        to_begin <= {$signed(at.second - begin_at.second) < 0, at.second == begin_at.second, at.number < begin_at.number};
        to_last <= {$signed(last.second - at.second) < 0, at.second == last.second, at.number > last.number};
        was_last <= at == last;
        was_first <= at == begin_at;
        follows <= at == due;
        state <= DECIDE;
      end
      DECIDE: begin
        if (runs && is_before && ahead) begin
          ahead <= 1'b0;
          first <= 1'b0;
          {slice, begin_at, last} <= {kept_slice, kept_begin_at, kept_last};
          state <= COMPARE;
        end else if (!runs || is_before || (is_after && steps == '0)) begin
          done <= 1'b1;
          outside <= 1'b1;
          state <= IDLE;
        end else if (is_after) state <= STEP;
        else begin
          done <= 1'b1;
          outside <= 1'b0;
          is_last <= was_last;
          missing <= first ? !was_first : !follows;
          ahead <= 1'b0;
          {kept_slice, kept_begin_at, kept_last} <= {slice, begin_at, last};
          due <= '{at.second, number_next};
          if (int'(number_next) == FRAMES_PER_S) due <= '{at.second + 1'b1, 16'd0};
          state <= IDLE;
        end
      end
      STEP: begin
        slice <= slice + 1'b1;
        first <= 1'b1;
        ahead <= 1'b1;
        begin_at.number <= begins_second ? '0 : last.number + 1'b1;
        begin_at.second <= last.second + 32'(begins_second);
        sum <= {1'b0, last.number} + {1'b0, frames};
        steps <= steps - 1'b1;
        state <= SUM;
      end
      SUM: state <= CARRY;
      CARRY: begin
        last.number <= sum_over ? 16'(sum - 17'(FRAMES_PER_S)) : sum[15:0];
        last.second <= last.second + 32'(sum_over);
        state <= COMPARE;
      end
      default: begin
        if (start) begin
          steps <= STEP_BITS'(STEPS_MAX);
          state <= COMPARE;
        end
      end
    endcase
    if (done && !outside) first <= 1'b0;
    if (run_begins) begin  // as if a slice had ended with the second before
      runs <= 1'b1;
      ahead <= 1'b0;
      {slice, kept_slice} <= '1;
      {begin_at, kept_begin_at} <= {2{second, 16'd0}};
      {last, kept_last} <= {2{second - 1'b1, 16'(FRAMES_PER_S - 1)}};
      frames <= slice_frames;
    end
    if (rst) begin
      {runs, done} <= '0;
      state <= IDLE;
    end
  end
endmodule
