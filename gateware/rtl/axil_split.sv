// SPDX-License-Identifier: Apache-2.0
// Two windows of registers behind one AXI4-Lite: the top bit of the address says which. One write and one read at a time.
module axil_split #(
    parameter int ADDRESS_BITS = 12  // of each window
) (
    input logic clk,
    input logic rst,

    input  logic [ADDRESS_BITS:0] s_axil_awaddr,
    input  logic                  s_axil_awvalid,
    output logic                  s_axil_awready,
    input  logic                  s_axil_wvalid,
    output logic                  s_axil_wready,
    output logic [           1:0] s_axil_bresp,
    output logic                  s_axil_bvalid,
    input  logic                  s_axil_bready,
    input  logic [ADDRESS_BITS:0] s_axil_araddr,
    input  logic                  s_axil_arvalid,
    output logic                  s_axil_arready,
    output logic [          63:0] s_axil_rdata,
    output logic [           1:0] s_axil_rresp,
    output logic                  s_axil_rvalid,
    input  logic                  s_axil_rready,

    // A bit, or a lane, for each window; addresses and data written go to both as they are.
    output logic [  1:0] m_axil_awvalid,
    input  logic [  1:0] m_axil_awready,
    output logic [  1:0] m_axil_wvalid,
    input  logic [  1:0] m_axil_wready,
    input  logic [  3:0] m_axil_bresp,
    input  logic [  1:0] m_axil_bvalid,
    output logic [  1:0] m_axil_bready,
    output logic [  1:0] m_axil_arvalid,
    input  logic [  1:0] m_axil_arready,
    input  logic [127:0] m_axil_rdata,
    input  logic [  3:0] m_axil_rresp,
    input  logic [  1:0] m_axil_rvalid,
    output logic [  1:0] m_axil_rready
);
  // --- a write: its address says which window, its data follows it there ---
  logic writes, data_taken, write_window;
  wire address_taken = s_axil_awvalid && s_axil_awready;
  assign m_axil_awvalid = s_axil_awvalid && !writes ? 2'b01 << s_axil_awaddr[ADDRESS_BITS] : 2'b00;
  assign s_axil_awready = !writes && m_axil_awready[s_axil_awaddr[ADDRESS_BITS]];
  assign m_axil_wvalid = s_axil_wvalid && writes && !data_taken ? 2'b01 << write_window : 2'b00;
  assign s_axil_wready = writes && !data_taken && m_axil_wready[write_window];
  assign m_axil_bready = writes && s_axil_bready ? 2'b01 << write_window : 2'b00;
  assign s_axil_bvalid = writes && m_axil_bvalid[write_window];
  assign s_axil_bresp = m_axil_bresp[2*write_window+:2];

  // --- a read ---
  logic reads, read_window;
  assign m_axil_arvalid = s_axil_arvalid && !reads ? 2'b01 << s_axil_araddr[ADDRESS_BITS] : 2'b00;
  assign s_axil_arready = !reads && m_axil_arready[s_axil_araddr[ADDRESS_BITS]];
  assign m_axil_rready = reads && s_axil_rready ? 2'b01 << read_window : 2'b00;
  assign s_axil_rvalid = reads && m_axil_rvalid[read_window];
  assign s_axil_rdata = m_axil_rdata[64*read_window+:64];
  assign s_axil_rresp = m_axil_rresp[2*read_window+:2];

  always_ff @(posedge clk) begin
    if (address_taken) begin
      writes <= 1'b1;
      data_taken <= 1'b0;
      write_window <= s_axil_awaddr[ADDRESS_BITS];
    end
    if (s_axil_wvalid && s_axil_wready) data_taken <= 1'b1;
    if (s_axil_bvalid && s_axil_bready) writes <= 1'b0;
    if (s_axil_arvalid && s_axil_arready) begin
      reads <= 1'b1;
      read_window <= s_axil_araddr[ADDRESS_BITS];
    end
    if (s_axil_rvalid && s_axil_rready) reads <= 1'b0;
    if (rst) {writes, reads} <= '0;
  end
endmodule
