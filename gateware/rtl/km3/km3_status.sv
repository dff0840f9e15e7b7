// SPDX-License-Identifier: Apache-2.0
// What a floor's link says of itself, in the core's clock: each thing a little later, none mixed with another.
module km3_status #(
    parameter int PHASE_BITS = 6
) (
    input logic clk,
    input logic rst,
    input logic ref_clk,
    input logic ref_rst,   // these of reset_sync, from rst
    input logic rx_clk,
    input logic rx_rst,
    input logic help_clk,
    input logic help_rst,

    input logic [           4:0] slip,        // of rx_clk
    input logic                  head_valid,
    input km3_pkg::head_t        head,
    input logic                  hears,       // of ref_clk
    input logic                  tx_on,
    input logic                  trip_valid,
    input logic [          31:0] trip,
    input logic                  phase_valid, // of help_clk
    input logic [PHASE_BITS-1:0] phase,

    output km3_pkg::port_status_t status
);
  // verilator lint_off SYNCASYNCNET
  logic [1:0] told;
  always_ff @(posedge ref_clk) told <= ref_rst ? '0 : {hears, tx_on};
  sync_bits #(
      .WIDTH(2)
  ) i_told (
      .s_bits(told),
      .m_clk (clk),
      .m_rst (rst),
      .m_bits({status.aligned, status.sends})
  );

  logic head_came, trip_came, phase_came;
  logic [4:0] new_slip;
  km3_pkg::head_t new_head;
  logic [31:0] new_trip;
  logic [PHASE_BITS-1:0] new_phase;
  async_fifo #(
      .WIDTH(69),
      .DEPTH(4)
  ) i_heads (
      .s_clk(rx_clk),
      .s_rst(rx_rst),
      .s_data({slip, head}),
      .s_valid(head_valid),
      .s_ready(),
      .m_clk(clk),
      .m_rst(rst),
      .m_data({new_slip, new_head}),
      .m_valid(head_came),
      .m_ready(1'b1),
      .m_more()
  );
  async_fifo #(
      .WIDTH(32),
      .DEPTH(4)
  ) i_trips (
      .s_clk(ref_clk),
      .s_rst(ref_rst),
      .s_data(trip),
      .s_valid(trip_valid),
      .s_ready(),
      .m_clk(clk),
      .m_rst(rst),
      .m_data(new_trip),
      .m_valid(trip_came),
      .m_ready(1'b1),
      .m_more()
  );
  async_fifo #(
      .WIDTH(PHASE_BITS),
      .DEPTH(4)
  ) i_phases (
      .s_clk(help_clk),
      .s_rst(help_rst),
      .s_data(phase),
      .s_valid(phase_valid),
      .s_ready(),
      .m_clk(clk),
      .m_rst(rst),
      .m_data(new_phase),
      .m_valid(phase_came),
      .m_ready(1'b1),
      .m_more()
  );
  always_ff @(posedge clk) begin
    if (head_came) {status.slip, status.head} <= {new_slip, new_head};
    if (trip_came) status.trip <= new_trip;
    if (phase_came) status.phase <= 8'(new_phase);
    if (rst) {status.slip, status.head, status.trip, status.phase} <= '0;
  end
endmodule
