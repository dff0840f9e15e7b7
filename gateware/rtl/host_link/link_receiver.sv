// SPDX-License-Identifier: Apache-2.0
// Frames of a host on Ethernet: what is not its is thrown away, and of a session each frame with records comes out once, in order.
//
// Contract
//   * Frames come whole and good, as of frame_fifo, and wait while m_ready is low.
//   * One that opens a session other than the present one is a reset of everything: `restart` is high for RESTART_CYCLES, nothing is taken meanwhile, numbers begin
//     at 0, and answers go to the frame's sender. Opened again by the same session nothing changes, so the frame may come twice.
//   * `answer` is a pulse for each frame of the session that has records or opens it; acknowledge, with acknowledged, for each that does not open it.
//   * Each frame is one pulse: count_taken, count_opened (opens, also again), count_answer (no records), drop_number (not the next one: it is sent
//     again), drop_session (of another one), drop_foreign (not for this station, or not of this protocol).
module link_receiver #(
    parameter int RESTART_CYCLES = 32,
    parameter logic [47:0] STATION = 48'h02_00_00_00_00_01
) (
    input logic clk,
    input logic rst,

    input  logic [63:0] s_axis_tdata,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,

    output logic        restart,
    output logic        opened,
    output logic [31:0] session,
    output logic [47:0] host,
    output logic [15:0] expected,
    output logic        answer,
    output logic        acknowledge,
    output logic [15:0] acknowledged,

    output logic [63:0] m_data,
    output logic        m_valid,
    input  logic        m_ready,
    output logic        m_last,  // of the frame

    output logic count_taken,
    output logic count_opened,
    output logic count_answer,
    output logic drop_number,
    output logic drop_session,
    output logic drop_foreign
);
  localparam int RESTART_BITS = $clog2(RESTART_CYCLES + 1);

  typedef enum logic [2:0] {
    ADDRESSES,
    TYPE,
    NUMBERS,
    RECORDS,
    SKIP
  } state_t;
  state_t state;
  logic for_us;
  logic [47:0] sender;
  host_link_pkg::flags_t flags;
  host_link_pkg::numbers_t numbers;
  logic [RESTART_BITS-1:0] restarting;
  assign numbers = s_axis_tdata;
  assign restart = restarting != '0;
  assign s_axis_tready = !restart && (state != RECORDS || m_ready);
  wire takes = s_axis_tvalid && s_axis_tready;
  assign m_valid = state == RECORDS && s_axis_tvalid && !restart;
  assign m_data = s_axis_tdata;
  assign m_last = s_axis_tlast;

  // --- what the third word decides ---
  wire judges = takes && state == NUMBERS && for_us;
  wire same = opened && numbers.session == session;
  wire opens = judges && flags.open && !same;
  wire is_next = numbers.number == expected;
  wire takes_records = judges && same && !flags.open && flags.data && is_next;
  wire [47:0] s_sender = host_link_pkg::in_lanes({s_axis_tdata[31:0], sender[15:0]});

  always_ff @(posedge clk) begin
    if (takes) begin
      case (state)
        ADDRESSES: begin
          for_us <= s_axis_tdata[47:0] == host_link_pkg::in_lanes(STATION) || s_axis_tdata[47:0] == '1;
          sender[15:0] <= s_axis_tdata[63:48];
          state <= TYPE;
        end
        TYPE: begin
          if (s_axis_tdata[47:32] != {host_link_pkg::ETHERTYPE[7:0], host_link_pkg::ETHERTYPE[15:8]} || s_axis_tdata[55:48] != host_link_pkg::VERSION) for_us <= 1'b0;
          flags <= s_axis_tdata[63:56];
          sender <= s_sender;
          state <= NUMBERS;
        end
        NUMBERS: state <= takes_records ? RECORDS : SKIP;
        default: ;
      endcase
      if (s_axis_tlast) state <= ADDRESSES;
    end

    if (restart) restarting <= restarting - 1'b1;
    if (opens) begin
      restarting <= RESTART_BITS'(RESTART_CYCLES);
      opened <= 1'b1;
      session <= numbers.session;
      host <= sender;
      expected <= '0;
    end
    if (takes_records) expected <= expected + 16'd1;
    acknowledge <= judges && same && !flags.open;
    acknowledged <= numbers.acknowledged;
    answer <= (judges && same && (flags.open || flags.data)) || restarting == RESTART_BITS'(1);

    count_opened <= judges && flags.open;
    count_taken <= takes_records;
    count_answer <= judges && same && !flags.open && !flags.data;
    drop_number <= judges && same && !flags.open && flags.data && !is_next;
    drop_session <= judges && !flags.open && !same;
    drop_foreign <= takes && ((state == NUMBERS && !for_us) || (s_axis_tlast && (state == ADDRESSES || state == TYPE)));
    if (rst) begin
      state <= ADDRESSES;
      restarting <= '0;
      {opened, acknowledge, answer, count_opened, count_taken, count_answer, drop_number, drop_session, drop_foreign} <= '0;
    end
  end

  // --- what must hold ---
  wire unused = &{1'b0, flags.unused};
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert ($onehot0({count_opened, count_taken, count_answer, drop_number, drop_session, drop_foreign}));
      assert (!restart || opened);
    end
  end
endmodule
