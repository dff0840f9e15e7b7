// SPDX-License-Identifier: Apache-2.0
// ape_counters behind its registers, for test_ape_counters.py: pulses in the order of counts.toml, first link, port and channel lowest.
module bench_top (
    input logic clk,
    input logic rst,
    input logic [28:0] ape_pulses,
    input logic [15:0] missed,
    input logic [59:0] link_pulses,
    input logic [59:0] lost,
    input logic [83:0] router_pulses,
    input  logic [11:0] s_axil_awaddr,
    input  logic s_axil_awvalid,
    output logic s_axil_awready,
    input  logic [63:0] s_axil_wdata,
    input  logic s_axil_wvalid,
    output logic s_axil_wready,
    output logic [1:0] s_axil_bresp,
    output logic s_axil_bvalid,
    input  logic [11:0] s_axil_araddr,
    input  logic s_axil_arvalid,
    output logic s_axil_arready,
    output logic [63:0] s_axil_rdata,
    output logic [1:0] s_axil_rresp,
    output logic s_axil_rvalid
);
  /* verilator lint_off UNDRIVEN */  // registers that are not counters
  ape_regs_pkg::ape_regs__in_t status;
  ape_regs_pkg::ape_regs__out_t set;
  /* verilator lint_on UNDRIVEN */
  ape_regs i_regs (
      .clk,
      .rst,
      .s_axil_awready,
      .s_axil_awvalid,
      .s_axil_awaddr,
      .s_axil_awprot('0),
      .s_axil_wready,
      .s_axil_wvalid,
      .s_axil_wdata,
      .s_axil_wstrb('1),
      .s_axil_bready(1'b1),
      .s_axil_bvalid,
      .s_axil_bresp,
      .s_axil_arready,
      .s_axil_arvalid,
      .s_axil_araddr,
      .s_axil_arprot('0),
      .s_axil_rready(1'b1),
      .s_axil_rvalid,
      .s_axil_rdata,
      .s_axil_rresp,
      .hwif_in(status),
      .hwif_out(set)
  );
  ape_counters i_counters (
      .clk,
      .rst,
      .ape_counts(ape_pulses),
      .missed,
      .link_counts(link_pulses),
      .lost,
      .router_counts(router_pulses),
      .ape_request(set.ape_count),
      .ape_answer(status.ape_count),
      .link_request(set.link_count),
      .link_answer(status.link_count),
      .router_request(set.router_count),
      .router_answer(status.router_count)
  );
endmodule
