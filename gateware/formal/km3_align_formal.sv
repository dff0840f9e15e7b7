// SPDX-License-Identifier: Apache-2.0
// Any bits: words go through unchanged; while locked nothing is slid and the slip stays; the slip is what was slid since the last restart; a link is lost for four bad words, or eight commas elsewhere, at least,
// and for four bad words in a row always.
module km3_align_formal (
    input logic        clk,
    input logic        rst,
    input logic [19:0] s_bits,
    input logic        bad
);
  logic [19:0] m_codes;
  logic slide, restart, locked, lost, error_place;
  logic [4:0] slip, place;
  km3_align #(
      .GAP_CYCLES(6),
      .ATTEMPTS(2),
      .SEARCH_CYCLES(100)
  ) dut (
      .*
  );

  logic running, was_locked, was_slide, was_restart;
  logic [19:0] given;
  logic [4:0] slid, was_slip;
  logic [2:0] bads, row;         // while locked; row: without a good one between
  logic [3:0] elsewhere;  // commas that were told, while locked, without one in place between
  wire rises = slide && !was_slide;
  logic was_running;
  initial {running, was_running} = '0;
  always_ff @(posedge clk) was_running <= running;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    given <= s_bits;
    was_locked <= locked && !rst;
    was_slide <= slide && !rst;
    was_slip <= slip;
    was_restart <= restart;
    if (rst || !locked) {bads, row} <= '0;
    else begin
      if (bad && bads != 3'd4) bads <= bads + 1'b1;
      row <= !bad ? '0 : row == 3'd4 ? row : row + 1'b1;
    end
    if (rst || !locked) elsewhere <= '0;
    else if (dut.found) elsewhere <= place == '0 ? '0 : elsewhere == 4'd8 ? elsewhere : elsewhere + 1'b1;
  end
  always_ff @(posedge clk) begin
    if (running && !rst) begin
      assert (m_codes == given);
      if (was_locked && locked) assert (slip == was_slip);
      assert (!(locked && slide));
      if (was_running && rises) assert (slip == (was_slip == 5'd19 ? 5'd0 : was_slip + 5'd1));
      if (was_running && slip != was_slip && slip != '0) assert (rises);
      if (was_locked && !locked) assert (lost && (bads == 3'd4 || elsewhere == 4'd8));
      if (locked) assert (row < 3'd4 || dut.cost >= 5'd16);
      // For induction.
      assert (bads <= 3'd4 && row <= 3'd4 && elsewhere <= 4'd8);
      if (slide) assert (dut.state == 3'd2 && dut.waits >= 8'd5 && dut.waits <= 8'd6);
      if (dut.state == 3'd3) assert (dut.seen != '0 && dut.seen < 8'd8);
      if (locked) assert (dut.cost < 5'd20);
      if (locked && bads < 3'd4) assert (dut.cost <= {bads, 2'b00});
      if (locked && row < 3'd4) assert (dut.cost >= {row, 2'b00});
      if (locked) assert (dut.seen == {4'd0, elsewhere} && elsewhere < 4'd8 && dut.search == '0 && !restart);
    end
  end
endmodule
