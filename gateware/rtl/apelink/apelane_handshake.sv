// SPDX-License-Identifier: Apache-2.0
// Whether the link is up, the same at both ends: neither sees it up again before both have seen it down.
//
// Contract
//   * Each end numbers its attempts: its session. It is up when the other end says that it hears this session, and stays up while it says so and has itself the session that it had.
//     A new session begins with each attempt, so nothing that was said before it counts.
//   * An attempt begins with `restart`, and says for HOLD_CYCLES that it hears no one; after ATTEMPT_CYCLES without success the next begins, with one name for what
//     was missing: failed_lane, a lane is not locked; failed_order, they are not in order; failed_skew, they are not in step; failed_call, the other end does not hear this one.
//   * A link that was up (count_up) goes down for one reason: down_lanes, this end's lanes were out of step; down_silent, nothing came for SILENCE_CYCLES; down_other, the other
//     end is in another session, or does not hear this one.
//   * `opens` comes GREETING_CYCLES after link_up: so many marks go before the first word, and the other end is up when that comes.
module apelane_handshake #(
    parameter int ATTEMPT_CYCLES = 8192,  // twice what both ends and a round trip need
    parameter int HOLD_CYCLES = 64,
    parameter int GREETING_CYCLES = 16,
    parameter int SILENCE_CYCLES = 128    // of marks every 32nd comes here
) (
    input logic clk,
    input logic rst,

    input logic               s_valid,  // something came
    input apelane_pkg::kind_t s_kind,
    input apelane_pkg::call_t s_call,   // of a mark
    input logic         [3:0] locked,
    input logic               astray,
    input logic               in_step,

    output apelane_pkg::call_t call,     // to be said in marks
    output logic               link_up,
    output logic               opens,
    output logic               restart,

    output logic count_up,
    output logic down_lanes,
    output logic down_silent,
    output logic down_other,
    output logic failed_lane,
    output logic failed_order,
    output logic failed_skew,
    output logic failed_call
);
  if (ATTEMPT_CYCLES < 16 || ATTEMPT_CYCLES > 65535 || HOLD_CYCLES < 16 || HOLD_CYCLES > 255 || GREETING_CYCLES < 4 || GREETING_CYCLES > 255) begin : g_check
    $fatal(1, "ATTEMPT_CYCLES must be 16 to 65535, HOLD_CYCLES 16 to 255, GREETING_CYCLES 4 to 255 (instance %m)");
  end
  if (SILENCE_CYCLES < 64 || SILENCE_CYCLES > 255) begin : g_check_silence
    $fatal(1, "SILENCE_CYCLES must be 64 to 255 (instance %m)");
  end
  typedef enum logic [1:0] {
    HOLD,
    CALL,
    GREET,
    UP
  } state_t;
  state_t state;
  logic [15:0] cycles;  // of this state
  logic [7:0] silence;
  logic was_rst;
  wire mark = s_valid && s_kind != apelane_pkg::WORD;
  wire hears_us = mark && s_call.heard == call.session && s_call.session != '0;
  assign link_up = state == GREET || state == UP;
  assign opens = state == UP;

  wire goes_up = state == CALL && hears_us;
  wire by_lanes = link_up && (!in_step || (mark && s_kind == apelane_pkg::FIRST_MARK));
  wire by_other = link_up && mark && !by_lanes && !(hears_us && s_call.session == call.heard);
  wire by_silence = link_up && int'(silence) == SILENCE_CYCLES && !mark && !by_lanes;
  wire goes_down = by_lanes || by_other || by_silence;
  wire fails = state == CALL && int'(cycles) == ATTEMPT_CYCLES - 1 && !goes_up;

  always_ff @(posedge clk) begin
    restart <= (goes_down || fails) || rst;
    cycles  <= cycles + 1'b1;
    silence <= s_valid || !link_up ? '0 : int'(silence) == SILENCE_CYCLES ? silence : silence + 1'b1;
    case (state)
      HOLD:
      if (int'(cycles) == HOLD_CYCLES - 1) begin
        state <= CALL;
        cycles <= '0;
      end
      CALL: if (mark) call.heard <= s_call.session;
      GREET: if (int'(cycles) == GREETING_CYCLES - 1) state <= UP;
      default: ;
    endcase
    if (goes_up) begin
      state  <= GREET;
      cycles <= '0;
    end
    if (goes_down || fails || rst) begin
      state <= HOLD;
      cycles <= '0;
      silence <= '0;
      call.heard <= '0;
    end
    // A reset does not begin with a session of its own: what is in flight from before it may say that it hears that one.
    was_rst <= rst;
    if (rst ? !was_rst || call.session == '0 : goes_down || fails) call.session <= call.session == '1 ? 4'd1 : call.session + 1'b1;
  end

  wire whole = locked == '1;
  always_ff @(posedge clk) begin
    count_up <= goes_up && !rst;
    down_lanes <= by_lanes && !rst;
    down_other <= by_other && !rst;
    down_silent <= by_silence && !rst;
    failed_lane <= fails && !whole && !rst;
    failed_order <= fails && whole && astray && !rst;
    failed_skew <= fails && whole && !astray && !in_step && !rst;
    failed_call <= fails && whole && !astray && in_step && !rst;
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (call.session != '0);
      assert (!link_up || call.heard != '0);
      assert (state != HOLD || call.heard == '0);
    end
  end
endmodule
