// SPDX-License-Identifier: Apache-2.0
// Widens a stream of bytes to words of eight: the first byte is the low one, the last word has what is left.
//
// Contract
//   * A word leaves LATENCY_CYCLES after the byte that completes it, or after the last one; there is no tready on either side.
//   * Sideband is taken with a packet's first byte and stands beside its words.
module bytes_to_words #(
    parameter int META_BITS = 1
) (
    input logic clk,
    input logic rst,

    input logic [          7:0] s_axis_tdata,
    input logic                 s_axis_tvalid,
    input logic                 s_axis_tlast,
    input logic                 s_axis_tuser,
    input logic [META_BITS-1:0] s_meta,

    output logic [         63:0] m_axis_tdata,
    output logic [          7:0] m_axis_tkeep,
    output logic                 m_axis_tvalid,
    output logic                 m_axis_tlast,
    output logic                 m_axis_tuser,
    output logic [META_BITS-1:0] m_meta
);
  localparam int LATENCY_CYCLES = 1;
  logic first;  // the next byte is a packet's first
  logic [2:0] lane;  // of the next byte

  // The word is built in place: what an earlier word left in the lanes above the last byte is not said by tkeep.
  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      for (int place = 0; place < 8; place++) if (lane == 3'(place)) m_axis_tdata[8*place+:8] <= s_axis_tdata;
      m_axis_tkeep <= ~(8'hFE << lane);
      lane <= s_axis_tlast ? '0 : lane + 1'b1;
      first <= s_axis_tlast;
      if (first) m_meta <= s_meta;
    end
    m_axis_tvalid <= s_axis_tvalid && (lane == '1 || s_axis_tlast);
    m_axis_tlast <= s_axis_tlast;
    m_axis_tuser <= s_axis_tlast && s_axis_tuser;
    if (rst) begin
      lane <= '0;
      first <= 1'b1;
      m_axis_tvalid <= 1'b0;
    end
  end

  // --- what must hold ---
  logic [LATENCY_CYCLES-1:0] completed;
  always_ff @(posedge clk) begin
    completed <= {s_axis_tvalid && (lane == '1 || s_axis_tlast)};
    if (!rst) begin
      assert (!m_axis_tvalid || completed[LATENCY_CYCLES-1]);
      assert (!m_axis_tvalid || m_axis_tlast || m_axis_tkeep == '1);
    end
  end
endmodule
