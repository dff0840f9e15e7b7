// SPDX-License-Identifier: Apache-2.0
// What a virtual channel has received, a packet after the other: header, payload and footer, from the two memories they wait in. The payload words that
// a cut packet lacks are filled with zeros, so that every packet has the words that its header says.
module apelink_read (
    input logic clk,
    input logic rst,

    input  logic         header_valid,
    output logic         header_ready,
    input  logic [119:0] header,        // a header, then its footer: apelink_rx says which bits
    input  logic         data_valid,
    output logic         data_ready,
    input  logic [127:0] data,

    output logic [127:0] m_axis_tdata,
    output logic         m_axis_tvalid,
    input  logic         m_axis_tready,
    output logic         m_axis_tlast
);
  logic amid;             // the header has left
  logic [8:0] words_left;   // of the payload
  /* verilator lint_off UNUSEDSIGNAL */  // of its fields some are used
  apenet_pkg::header_t head;
  /* verilator lint_on UNUSEDSIGNAL */
  assign head = header;
  wire [31:0] crc = header[31:0];
  wire flagged = header[32];
  wire [8:0] missing = header[41:33];

  // The words of a packet are all in the memory, and the next one's are not, before its footer is: until that is here, what comes is its own.
  wire fills = header_valid && words_left <= missing;
  wire payload = amid && words_left != '0;
  assign m_axis_tvalid = payload ? data_valid || fills : header_valid;
  assign m_axis_tlast = amid && !payload;
  assign header_ready = m_axis_tready && !payload;
  assign data_ready = m_axis_tready && payload && !fills;
  always_comb begin
    m_axis_tdata = {8'd0, header};
    if (payload) m_axis_tdata = fills ? '0 : data;
    else if (amid) m_axis_tdata = {flagged ? apenet_pkg::FOOTER_FLAGGED : apenet_pkg::FOOTER_GOOD, crc};
  end

  always_ff @(posedge clk) begin
    if (m_axis_tvalid && m_axis_tready) begin
      amid <= !m_axis_tlast;
      words_left <= !amid ? 9'(apenet_pkg::payload_words(head.bytes)) : words_left - 9'(payload);
    end
    if (rst) amid <= 1'b0;
  end
endmodule
