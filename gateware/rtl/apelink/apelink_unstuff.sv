// SPDX-License-Identifier: Apache-2.0
// Words of the link become words and control words again, one cycle later. What follows MAGIC and is no control word is told as bad.
module apelink_unstuff (
    input logic clk,
    input logic rst,

    input logic         s_valid,
    input logic [127:0] s_data,

    output logic         m_data,     // m_word is a word of a packet,
    output logic         m_control,  // or START or CREDIT,
    output logic         m_skip,     // or SKIP,
    output logic         m_bad,      // or a control word cannot be read
    output logic [127:0] m_word
);
  logic escaped;  // the last word was MAGIC
  logic [31:0] crc;
  crc32_wide #(
      .BYTES(12)
  ) i_crc (
      .crc('1),
      .data(s_data[95:0]),
      .crc_next(crc)
  );
  wire is_magic = s_data == apenet_pkg::MAGIC;
  wire sound = escaped && ~crc == s_data[127:96];
  wire counts = s_data[7:0] == apenet_pkg::CONTROL_START || s_data[7:0] == apenet_pkg::CONTROL_CREDIT;
  wire literal = s_data[7:0] == apenet_pkg::CONTROL_LITERAL;
  wire skip = s_data[7:0] == apenet_pkg::CONTROL_SKIP;

  always_ff @(posedge clk) begin
    m_data <= s_valid && (escaped ? sound && literal : !is_magic) && !rst;
    m_control <= s_valid && sound && counts && !rst;
    m_skip <= s_valid && sound && skip && !rst;
    m_bad <= s_valid && escaped && !(sound && (counts || literal || skip)) && !rst;
    m_word <= escaped && literal ? apenet_pkg::MAGIC : s_data;
    if (s_valid) escaped <= is_magic;
    if (rst) escaped <= 1'b0;
  end
endmodule
