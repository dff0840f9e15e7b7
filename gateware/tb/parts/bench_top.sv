// SPDX-License-Identifier: Apache-2.0
// Small modules that others are made of, side by side: one build for their benches. Their inputs are set from outside.
module bench_top #(
    parameter int PORTS = 5,
    parameter int NS_NUMERATOR = 32,
    parameter int NS_DENOMINATOR = 5,
    parameter int PATIENCE_CYCLES = 20
) (
    input logic clk,
    input logic rst
);
  if (1) begin : g_arbiter_rr
    logic [PORTS-1:0] request, grant;
    logic taken;
    arbiter_rr #(.PORTS(PORTS)) dut (.*);
  end

  if (1) begin : g_crc32_word
    logic [31:0] crc, crc_next;
    logic [63:0] data;
    crc32_word dut (.*);
  end

  if (1) begin : g_crc32_12
    logic [31:0] crc, crc_next;
    logic [95:0] data;
    crc32_wide #(.BYTES(12)) dut (.*);
  end

  if (1) begin : g_crc32_16
    logic [31:0] crc, crc_next;
    logic [127:0] data;
    crc32_wide #(.BYTES(16)) dut (.*);
  end

  if (1) begin : g_crc32_32
    logic [31:0] crc, crc_next;
    logic [255:0] data;
    crc32_wide #(.BYTES(32)) dut (.*);
  end

  if (1) begin : g_crc32_undo_32
    logic [31:0] crc, crc_before;
    logic [4:0] zero_bytes;
    crc32_undo #(.WORD_BYTES(32)) dut (.*);
  end

  if (1) begin : g_crc32_undo
    logic [31:0] crc, crc_before;
    logic [2:0] zero_bytes;
    crc32_undo dut (.*);
  end

  if (1) begin : g_timebase
    logic set;
    logic [63:0] set_ns, now_ns, now_cycles;
    timebase #(.NS_NUMERATOR(NS_NUMERATOR), .NS_DENOMINATOR(NS_DENOMINATOR)) dut (.*);
  end

  if (1) begin : g_write_arbiter
    logic clear, s0_valid, s0_ready, s0_last, s1_valid, s1_ready, s1_last, m_valid, m_ready, m_last, m_second, s0_cut, s1_cut;
    logic [42:0] s0_address, s1_address, m_address;
    logic [13:0] s0_bytes, s1_bytes, m_bytes;
    logic [127:0] s0_data, s1_data, m_data;
    logic [0:0] s0_tag, s1_tag, m_tag;
    wire m_cut = m_second ? s1_cut : s0_cut;  // as dma_write says of the word
    initial {s0_valid, s1_valid} = '0;  // in the benches of the other parts no one writes
    write_arbiter #(.PATIENCE_CYCLES(PATIENCE_CYCLES)) dut (.*);
  end
endmodule
