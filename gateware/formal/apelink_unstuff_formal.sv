// SPDX-License-Identifier: Apache-2.0
// Any words and control words, stuffed, over a wire with any pauses, and unstuffed: they come out as they went in, each once, in order, none is told as bad.
// Any function of the twelve bytes does for the CRC here, if both ends have the same: a simple one stands for it, which a solver is not lost in.
module apelink_unstuff_formal (
    input logic         clk,
    input logic         rst,
    input logic         s_valid,
    input logic         s_control,
    input logic [127:0] s_word,
    input logic         wire_ready
);
  logic s_ready, wire_valid, m_data, m_control, m_skip, m_bad;
  logic [127:0] wire_data, m_word;
  apelink_stuff i_stuff (
      .clk,
      .rst,
      .s_valid,
      .s_ready,
      .s_control,
      .s_word,
      .m_valid(wire_valid),
      .m_ready(wire_ready),
      .m_data(wire_data)
  );
  apelink_unstuff dut (
      .clk,
      .rst,
      .s_valid(wire_valid && wire_ready),
      .s_data(wire_data),
      .m_data,
      .m_control,
      .m_skip,
      .m_bad,
      .m_word
  );

  // The word that is on the wire, whole or in part, and the one that has to come out now.
  function automatic logic is_control(input logic [7:0] word_type);
    is_control = word_type == apenet_pkg::CONTROL_START || word_type == apenet_pkg::CONTROL_CREDIT || word_type == apenet_pkg::CONTROL_SKIP;
  endfunction
  logic running, on_wire, on_wire_control, due, due_control;
  logic [127:0] on_wire_word, due_word;
  wire takes = s_valid && s_ready;
  wire two = on_wire_control || on_wire_word == apenet_pkg::MAGIC;
  wire second = two && dut.escaped;  // its first half has gone over
  wire over = on_wire && wire_ready && (!two || second);
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    if (s_control) assume (is_control(s_word[7:0]));
    if (takes) begin
      on_wire_control <= s_control;
      on_wire_word <= s_word;
    end
    on_wire <= takes || (on_wire && !over);
    due <= over;
    due_control <= on_wire_control;
    due_word <= on_wire_word;
    if (rst) {on_wire, due} <= '0;
  end

  logic [31:0] crc;
  crc32_wide #(
      .BYTES(12)
  ) i_crc (
      .crc('1),
      .data(wire_data[95:0]),
      .crc_next(crc)
  );
  wire [95:0] low = on_wire_control ? on_wire_word[95:0] : 96'(apenet_pkg::CONTROL_LITERAL);
  always_ff @(posedge clk) begin
    if (running && !rst) begin
      assert (!m_bad);
      assert (m_data == (due && !due_control));
      assert ((m_control || m_skip) == (due && due_control));
      if (due && due_control) assert (m_skip == (due_word[7:0] == apenet_pkg::CONTROL_SKIP));
      if (due) assert (m_word[95:0] == due_word[95:0]);
      if (due && !due_control) assert (m_word == due_word);
      // For induction: what is on the wire.
      assert (wire_valid == on_wire);
      assert (!dut.escaped || (on_wire && two));
      if (on_wire && two && !second) assert (wire_data == apenet_pkg::MAGIC && i_stuff.second && i_stuff.control == low);
      if (on_wire && second) assert (wire_data[95:0] == low && wire_data[127:96] == ~crc);
      if (on_wire && !two) assert (wire_data == on_wire_word);
      if (!on_wire || !two || second) assert (!i_stuff.second);
      if (on_wire_control) assert (is_control(on_wire_word[7:0]) || !on_wire);
      assert (!m_control || !m_skip);
    end
  end
endmodule

module crc32_wide #(
    parameter int BYTES = 16
) (
    input  logic [       31:0] crc,
    input  logic [8*BYTES-1:0] data,
    output logic [       31:0] crc_next
);
  assign crc_next = crc ^ data[31:0] ^ data[8*BYTES-1-:32];
endmodule
