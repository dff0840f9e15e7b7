// SPDX-License-Identifier: Apache-2.0
// mac_cdc with the core's cycles and counts of its pulses, all in the core's clock: that costs the bench nothing in each cycle.
module bench_top #(
    parameter int LINE_GBPS = 10
) (
    input logic clk,
    input logic rx_clk,
    input logic tx_clk,
    input logic rst,

    input  logic [63:0] xgmii_rxd,
    input  logic [ 7:0] xgmii_rxc,
    output logic [63:0] xgmii_txd,
    output logic [ 7:0] xgmii_txc,
    input  logic [ 7:0] gmii_rxd,
    input  logic        gmii_rx_dv,
    input  logic        gmii_rx_er,
    output logic [ 7:0] gmii_txd,
    output logic        gmii_tx_en,
    output logic        gmii_tx_er,
    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,
    output logic [63:0] m_meta_start_cycle,
    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,

    input  logic [63:0] first_cycle,  // of now_cycles, in reset
    output logic [63:0] now_cycles,
    output logic [31:0] preamble, control, oversize, runt, fcs, cut, framed, aborted, underrun
);
  nic_counts_pkg::mac_drops_t drops;
  nic_counts_pkg::mac_ends_t ends;
  always_ff @(posedge clk) begin
    now_cycles <= rst ? first_cycle : now_cycles + 64'd1;
    preamble <= rst ? '0 : preamble + 32'(drops.preamble);
    control <= rst ? '0 : control + 32'(drops.control);
    oversize <= rst ? '0 : oversize + 32'(drops.oversize);
    runt <= rst ? '0 : runt + 32'(drops.runt);
    fcs <= rst ? '0 : fcs + 32'(drops.fcs);
    cut <= rst ? '0 : cut + 32'(drops.cut);
    framed <= rst ? '0 : framed + 32'(ends.framed);
    aborted <= rst ? '0 : aborted + 32'(ends.aborted);
    underrun <= rst ? '0 : underrun + 32'(ends.underrun);
  end

  mac_cdc #(
      .LINE_GBPS(LINE_GBPS),
      .OWN_CLOCKS(1'b1)
  ) dut (
      .*
  );
endmodule
