// SPDX-License-Identifier: Apache-2.0
// Express codes between the core and a floor's link: one at a time down, and those that came up, each with its time, until the host takes them.
//
// Contract
//   * send: a pulse of clk; the code goes to the link unless the last one is still on its way (busy, and a pulse of `refused`). Of one that goes either
//     `sent`, and sent_at is the time of the cycle of ref_clk in which the link took it, or `dark`: there was no light, or it went before the code had left.
//   * link_rst and `on`, of ref_clk, as of km3_shore and km3_tx; express_* too.
//   * up_valid, of rx_clk, with a code that came. Its time is that of ref_clk, always the same number of cycles after it came, as rx_clk has one phase.
//   * Up to WAITING wait for the host: came_valid with the oldest. take, a pulse of clk, takes it away, if there is one: a pulse of `taken`. One that finds no room
//     is a pulse of `unread`, and changes none of those that wait.
//   * Codes to send = sent + dark + refused. Codes that came = taken + unread + those that wait.
module km3_express #(
    parameter int WAITING = 16  // a power of two; one or two more wait at the crossing's end
) (
    input logic clk,
    input logic rst,
    input logic ref_clk,
    input logic ref_rst,  // these of reset_sync, from rst
    input logic rx_clk,
    input logic rx_rst,

    input  logic                   send,
    input  logic             [7:0] code,
    input  logic                   take,
    output km3_pkg::express_status_t status,
    output logic                   sent,
    output logic                   dark,
    output logic                   refused,
    output logic                   taken,
    output logic                   unread,

    input  logic                  link_rst,
    input  logic                  on,
    input  km3_pkg::moment_t      now,
    output logic                  express_valid,
    input  logic                  express_ready,
    output logic            [7:0] express,

    input logic       up_valid,
    input logic [7:0] up_code
);
  // verilator lint_off SYNCASYNCNET
  localparam int LEAVES_CYCLES = 5;  // from the one in which km3_tx takes a code to that of its second word
  localparam int MOMENT_BITS = $bits(km3_pkg::moment_t);

  // --- down ---
  logic came, ends, fate_came, was_sent;
  km3_pkg::moment_t taken_at, fate_at;
  wire goes = send && !status.busy;
  async_fifo #(
      .WIDTH(8),
      .DEPTH(4)
  ) i_down (
      .s_clk(clk),
      .s_rst(rst),
      .s_data(code),
      .s_valid(goes),
      .s_ready(),
      .m_clk(ref_clk),
      .m_rst(ref_rst),
      .m_data(express),
      .m_valid(came),
      .m_ready(ends),
      .m_more()
  );
  // The code stays at the crossing's end until its fate is known.
  logic [2:0] leaves;  // cycles until it is out; 0: it waits
  wire lit = on && (!link_rst || leaves == 3'd1);  // a reset does nothing to a word that is out
  wire gives = express_valid && express_ready;
  assign ends = came && (!lit || leaves == 3'd1);
  assign express_valid = came && lit && leaves == '0;
  always_ff @(posedge ref_clk) begin
    if (gives) taken_at <= now;
    if (ends) leaves <= '0;
    else if (gives) leaves <= 3'(LEAVES_CYCLES);
    else if (leaves != '0) leaves <= leaves - 1'b1;
    if (ref_rst) leaves <= '0;
  end
  async_fifo #(
      .WIDTH(1 + MOMENT_BITS),
      .DEPTH(4)
  ) i_fates (
      .s_clk(ref_clk),
      .s_rst(ref_rst),
      .s_data({lit, taken_at}),
      .s_valid(ends),
      .s_ready(),
      .m_clk(clk),
      .m_rst(rst),
      .m_data({was_sent, fate_at}),
      .m_valid(fate_came),
      .m_ready(1'b1),
      .m_more()
  );
  always_ff @(posedge clk) begin
    if (goes) status.busy <= 1'b1;
    else if (fate_came) status.busy <= 1'b0;
    if (fate_came && was_sent) status.sent_at <= fate_at;
    sent <= fate_came && was_sent && !rst;
    dark <= fate_came && !was_sent && !rst;
    refused <= send && status.busy && !rst;
    if (rst) {status.busy, status.sent_at} <= '0;
  end

  // --- up ---
  logic up_came, has_room;
  logic [7:0] up_kept;
  async_fifo #(  // not reset with the link: what came before it went is not lost
      .WIDTH(8),
      .DEPTH(4)
  ) i_up (
      .s_clk(rx_clk),
      .s_rst(rx_rst),
      .s_data(up_code),
      .s_valid(up_valid),
      .s_ready(),
      .m_clk(ref_clk),
      .m_rst(ref_rst),
      .m_data(up_kept),
      .m_valid(up_came),
      .m_ready(1'b1),
      .m_more()
  );
  async_fifo #(
      .WIDTH(8 + MOMENT_BITS),
      .DEPTH(WAITING)
  ) i_waiting (
      .s_clk(ref_clk),
      .s_rst(ref_rst),
      .s_data({up_kept, now}),
      .s_valid(up_came),
      .s_ready(has_room),
      .m_clk(clk),
      .m_rst(rst),
      .m_data({status.code, status.came_at}),
      .m_valid(status.came),
      .m_ready(take),
      .m_more()
  );
  always_ff @(posedge clk) taken <= status.came && take && !rst;
  pulse_crossing i_unread (
      .s_clk(ref_clk),
      .s_rst(ref_rst),
      .s_pulses({1'b0, up_came && !has_room}),
      .m_clk(clk),
      .m_rst(rst),
      .m_pulse(unread),
      .m_ready(1'b1)
  );
endmodule
