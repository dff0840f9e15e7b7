// SPDX-License-Identifier: Apache-2.0
// Words and control words become words of the link: a control word stands after MAGIC and has its CRC, and so a word that is MAGIC itself becomes two.
// A word a cycle; one is offered in the cycle after it was taken.
module apelink_stuff (
    input logic clk,
    input logic rst,

    input  logic         s_valid,
    output logic         s_ready,
    input  logic         s_control,
    input  logic [127:0] s_word,     // of a control word the low 96 bits

    output logic         m_valid,
    input  logic         m_ready,
    output logic [127:0] m_data
);
  logic second;  // MAGIC is offered, and `control` comes after it
  logic [95:0] control;
  logic [31:0] crc;
  crc32_wide #(
      .BYTES(12)
  ) i_crc (
      .crc('1),
      .data(control),
      .crc_next(crc)
  );

  wire can_load = !m_valid || m_ready;
  wire is_magic = s_word == apenet_pkg::MAGIC;
  assign s_ready = can_load && !second;

  always_ff @(posedge clk) begin
    if (can_load) begin
      m_valid <= second || s_valid;
      m_data <= second ? {~crc, control} : s_control ? apenet_pkg::MAGIC : s_word;
      second <= !second && s_valid && (s_control || is_magic);
      control <= s_control ? s_word[95:0] : 96'(apenet_pkg::CONTROL_LITERAL);
    end
    if (rst) begin
      m_valid <= 1'b0;
      second <= 1'b0;
    end
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) assert (!second || (m_valid && m_data == apenet_pkg::MAGIC));
  end
endmodule
