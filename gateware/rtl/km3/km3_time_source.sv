// SPDX-License-Identifier: Apache-2.0
// The GPS between two clocks: what the host says goes to km3_gps, of the links' reference clock, and what became of it comes back.
//
// Contract: set is a pulse of clk, some cycles of ref_clk after the last one. gps_set, gps_second as of km3_gps; pulse, error_period, error_silent are
// its pulses, of clk. now_second follows gps_second.
module km3_time_source #(
    parameter int CYCLES_PER_S = 40000000
) (
    input logic clk,
    input logic rst,
    input logic ref_clk,
    input logic ref_rst,  // of reset_sync, from rst

    input logic        pps,
    input logic        set,
    input logic [31:0] second,

    output logic        gps_set,     // of ref_clk
    output logic [31:0] gps_second,

    output logic [31:0] now_second,
    output logic        known,
    output logic        pulse,
    output logic        error_period,
    output logic        error_silent
);
  logic wanted, ref_known, ref_begun, ref_pulse, ref_period, ref_silent, came, new_known;
  logic [31:0] wanted_second, new_second;
  logic [2:0] pulses;
  async_fifo #(
      .WIDTH(32),
      .DEPTH(4)
  ) i_wanted (
      .s_clk(clk),
      .s_rst(rst),
      .s_data(second),
      .s_valid(set),
      .s_ready(),
      .m_clk(ref_clk),
      .m_rst(ref_rst),
      .m_data(wanted_second),
      .m_valid(wanted),
      .m_ready(1'b1),
      .m_more()
  );
  km3_gps #(
      .CYCLES_PER_S(CYCLES_PER_S)
  ) i_gps (
      .clk(ref_clk),
      .rst(ref_rst),
      .pps,
      .set(wanted),
      .second(wanted_second),
      .gps_set,
      .gps_second,
      .known(ref_known),
      .begun(ref_begun),
      .count_pulse(ref_pulse),
      .error_period(ref_period),
      .error_silent(ref_silent)
  );
  async_fifo #(
      .WIDTH(36),
      .DEPTH(4)
  ) i_told (
      .s_clk(ref_clk),
      .s_rst(ref_rst),
      .s_data({ref_known, gps_second, ref_pulse, ref_period, ref_silent}),
      .s_valid(ref_begun || ref_pulse || ref_silent),
      .s_ready(),
      .m_clk(clk),
      .m_rst(rst),
      .m_data({new_known, new_second, pulses}),
      .m_valid(came),
      .m_ready(1'b1),
      .m_more()
  );
  always_ff @(posedge clk) begin
    {pulse, error_period, error_silent} <= came && !rst ? pulses : '0;
    if (came) {known, now_second} <= {new_known, new_second};
    if (rst) known <= 1'b0;
  end
endmodule
