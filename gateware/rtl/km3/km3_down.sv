// SPDX-License-Identifier: Apache-2.0
// Payloads to a floor: slow control, in words of two bytes, of the link's reference clock.
//
// Contract
//   * The input never waits: a payload that finds no room is dropped whole (full). What is taken goes to the floor in order, as fast as the link takes it,
//     and waits while there is none. An odd byte at a payload's end gets a zero beside it.
//   * count: each payload, when its last word has gone into the link.
module km3_down #(
    parameter int DEPTH_WORDS = 256  // [8 B]; a power of two
) (
    input logic clk,
    input logic rst,
    input logic ref_clk,
    input logic ref_rst,  // of reset_sync, from rst

    input logic [63:0] s_axis_tdata,
    input logic [ 7:0] s_axis_tkeep,
    input logic        s_axis_tvalid,
    input logic        s_axis_tlast,

    output logic        control_valid,
    input  logic        control_ready,
    output logic [15:0] control_data,

    output logic count,
    output logic full
);
  logic [63:0] w_tdata;
  logic [7:0] w_tkeep;
  logic w_tvalid, w_tready, w_tlast, ready;
  frame_fifo #(
      .DEPTH_WORDS(DEPTH_WORDS),
      .PACKETS(16)
  ) i_fifo (
      .clk,
      .rst,
      .s_axis_tdata,
      .s_axis_tkeep,
      .s_axis_tvalid,
      .s_axis_tlast,
      .s_axis_tuser(1'b0),
      .s_meta(1'b0),
      .m_axis_tdata(w_tdata),
      .m_axis_tkeep(w_tkeep),
      .m_axis_tvalid(w_tvalid),
      .m_axis_tready(w_tready),
      .m_axis_tlast(w_tlast),
      .m_meta(),
      .fill_words(),
      .count_good(),
      .count_bad(),
      .drop_full(full)
  );

  logic [1:0] place;  // of two bytes in a word
  logic last_place;
  logic [15:0] bytes;
  always_comb begin
    bytes = '0;
    last_place = 1'b0;
    for (int k = 0; k < 4; k++) begin
      if (int'(place) == k) begin
        bytes = {w_tkeep[2*k+1] ? w_tdata[16*k+8+:8] : 8'h00, w_tdata[16*k+:8]};
        last_place = k == 3 || !w_tkeep[k == 3 ? 7 : 2*k+2];
      end
    end
  end
  assign w_tready = ready && last_place;
  always_ff @(posedge clk) begin
    if (w_tvalid && ready) place <= last_place ? '0 : place + 1'b1;
    count <= w_tvalid && w_tready && w_tlast && !rst;
    if (rst) place <= '0;
  end
  async_fifo #(
      .WIDTH(16),
      .DEPTH(8)
  ) i_crossing (
      .s_clk(clk),
      .s_rst(rst),
      .s_data(bytes),
      .s_valid(w_tvalid),
      .s_ready(ready),
      .m_clk(ref_clk),
      .m_rst(ref_rst),
      .m_data(control_data),
      .m_valid(control_valid),
      .m_ready(control_ready),
      .m_more()
  );
endmodule
