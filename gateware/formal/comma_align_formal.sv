// SPDX-License-Identifier: Apache-2.0
// Any bits: words begin `slip` bits late, none is lost or doubled; while locked the slip stays, whatever commas come; a lane is lost for four bad words at least, and
// that for four in a row.
module comma_align_formal (
    input logic        clk,
    input logic        rst,
    input logic [19:0] s_bits,
    input logic        bad
);
  logic [19:0] m_codes;
  logic locked;
  logic [4:0] slip;
  comma_align #(
      .SYMBOLS(2)
  ) dut (
      .*
  );

  logic running, was_locked;
  logic [4:0] was_slip, old_slip;
  logic [3:0][19:0] given;  // the newest low
  logic [2:0] cycles;
  logic [2:0] bads, row;    // while locked; row: without a good one between
  wire [39:0] two = {given[2], given[3]};
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    was_locked <= locked && !rst;
    was_slip <= slip;
    old_slip <= was_slip;
    given <= {given[2:0], s_bits};
    if (rst) cycles <= '0;
    else if (cycles != '1) cycles <= cycles + 1'b1;
    if (rst || !locked) {bads, row} <= '0;
    else begin
      if (bad && bads != 3'd4) bads <= bads + 1'b1;
      row <= !bad ? '0 : row == 3'd4 ? row : row + 1'b1;
    end
  end
  always_ff @(posedge clk) begin
    if (running && !rst) begin
      if (was_locked && locked) assert (slip == was_slip);
      if (was_locked && !locked) assert (bads == 3'd4);
      if (locked) assert (row < 3'd4 || dut.cost >= 5'd16);
      if (cycles >= 3'd5 && was_slip == old_slip) assert (m_codes == two[was_slip+:20]);
      // For induction.
      assert (bads <= 3'd4 && row <= 3'd4);
      if (locked && bads < 3'd4) assert (dut.cost <= {bads, 2'b00});
      if (locked && row < 3'd4) assert (dut.cost >= {row, 2'b00});
      if (cycles >= 3'd2) assert (dut.window == {given[0], given[1]});
    end
  end
endmodule
