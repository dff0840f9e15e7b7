// SPDX-License-Identifier: Apache-2.0
// mac with its frames and counters in the core's clock. With OWN_CLOCKS each direction of the line has a clock of its own, of any phase and, within what
// carries the line, any ratio to `clk`; without, all is `clk` and not a cycle is added.
//
// Contract, with OWN_CLOCKS: that of mac, rx_crossing and tx_crossing, and
//   * Nothing is lost at line rate while `clk` has as many edges as there are words on the line: 15.7 MHz at 1 Gb/s, 156.25 MHz less 0.1 % at 10 Gb/s. Sending
//     at line rate wants the same.
//   * `rst` is a flip-flop's, of `clk`, and resets all three clocks' logic, also where a clock stands.
//   * m_meta_start_cycle is a cycle of `clk`. It is at most STAMP_LATE cycles of rx_clk and one of `clk` early, and never late: STAMP_LATE is 0 on XGMII, 1 on GMII.
//   * A clock may stand and return at any moment. That of the line received in mid-frame: drops.cut. That of the line sent: frames wait.
module mac_cdc #(
    parameter int LINE_GBPS = 10,
    parameter int FRAME_BYTES_MAX = 9022,
    parameter bit OWN_CLOCKS = 1'b0,
    parameter int DEPTH = 16  // words of eight bytes in each direction
) (
    input logic clk,
    input logic rst,
    input logic rx_clk,  // as of mac; with OWN_CLOCKS 0 not looked at
    input logic tx_clk,

    input logic [63:0] now_cycles,

    // --- wire, in rx_clk and tx_clk ---
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

    // --- frames that came, without check sequence ---
    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,
    output logic [63:0] m_meta_start_cycle,
    output nic_counts_pkg::mac_drops_t drops,

    // --- frames to send ---
    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,
    output nic_counts_pkg::mac_ends_t ends
);
  localparam int ENDS = nic_counts_pkg::MAC_ENDS;

  logic line_rx_clk, line_rx_rst, line_tx_clk, line_tx_rst;
  logic [63:0] line_cycles, rx_tdata, rx_start_cycle, tx_tdata;
  logic [7:0] rx_tkeep, tx_tkeep;
  logic rx_tvalid, rx_tlast, rx_tuser, tx_tvalid, tx_tready, tx_tlast, tx_tuser;
  nic_counts_pkg::mac_drops_t line_drops;
  nic_counts_pkg::mac_ends_t line_ends;

  mac #(
      .LINE_GBPS(LINE_GBPS),
      .FRAME_BYTES_MAX(FRAME_BYTES_MAX),
      .NOW_LATE(OWN_CLOCKS)  // by the two edges of rx_clk that the number takes to cross; on XGMII a start takes as many to be seen, on GMII one
  ) i_mac (
      .rx_clk(line_rx_clk),
      .rx_rst(line_rx_rst),
      .tx_clk(line_tx_clk),
      .tx_rst(line_tx_rst),
      .now_cycles(line_cycles),
      .xgmii_rxd,
      .xgmii_rxc,
      .xgmii_txd,
      .xgmii_txc,
      .gmii_rxd,
      .gmii_rx_dv,
      .gmii_rx_er,
      .gmii_txd,
      .gmii_tx_en,
      .gmii_tx_er,
      .m_axis_tdata(rx_tdata),
      .m_axis_tkeep(rx_tkeep),
      .m_axis_tvalid(rx_tvalid),
      .m_axis_tlast(rx_tlast),
      .m_axis_tuser(rx_tuser),
      .m_meta_start_cycle(rx_start_cycle),
      .drops(line_drops),
      .s_axis_tdata(tx_tdata),
      .s_axis_tkeep(tx_tkeep),
      .s_axis_tvalid(tx_tvalid),
      .s_axis_tready(tx_tready),
      .s_axis_tlast(tx_tlast),
      .s_axis_tuser(tx_tuser),
      .ends(line_ends)
  );

  if (OWN_CLOCKS) begin : g_clocks
    logic [15:0] halfway;  // to the number of the cycle: the MAC keeps it, rx_crossing goes on
    assign line_rx_clk = rx_clk;
    assign line_tx_clk = tx_clk;
    assign line_cycles = 64'(halfway);

    reset_sync rx_reset (
        .clk(rx_clk),
        .rst_async(rst),
        .rst(line_rx_rst)
    );
    reset_sync tx_reset (
        .clk(tx_clk),
        .rst_async(rst),
        .rst(line_tx_rst)
    );
    cycle_crossing #(
        .BITS(16)
    ) stamps (
        .s_clk(clk),
        .s_rst(rst),
        .s_cycles(now_cycles[15:0]),
        .m_clk(rx_clk),
        .m_rst(line_rx_rst),
        .m_halfway(halfway)
    );
    rx_crossing #(
        .DEPTH(DEPTH)
    ) receive (
        .s_clk(rx_clk),
        .s_rst(line_rx_rst),
        .s_axis_tdata(rx_tdata),
        .s_axis_tkeep(rx_tkeep),
        .s_axis_tvalid(rx_tvalid),
        .s_axis_tlast(rx_tlast),
        .s_axis_tuser(rx_tuser),
        .s_stamp(rx_start_cycle[15:0]),
        .s_drops(line_drops),
        .m_clk(clk),
        .m_rst(rst),
        .m_now_cycles(now_cycles),
        .m_axis_tdata,
        .m_axis_tkeep,
        .m_axis_tvalid,
        .m_axis_tlast,
        .m_axis_tuser,
        .m_start_cycle(m_meta_start_cycle),
        .m_drops(drops)
    );
    tx_crossing #(
        .DEPTH(DEPTH)
    ) send (
        .s_clk(clk),
        .s_rst(rst),
        .s_axis_tdata,
        .s_axis_tkeep,
        .s_axis_tvalid,
        .s_axis_tready,
        .s_axis_tlast,
        .s_axis_tuser,
        .m_clk(tx_clk),
        .m_rst(line_tx_rst),
        .m_axis_tdata(tx_tdata),
        .m_axis_tkeep(tx_tkeep),
        .m_axis_tvalid(tx_tvalid),
        .m_axis_tready(tx_tready),
        .m_axis_tlast(tx_tlast),
        .m_axis_tuser(tx_tuser)
    );
    for (genvar k = 0; k < ENDS; k++) begin : g_ends
      pulse_crossing one (
          .s_clk(tx_clk),
          .s_rst(line_tx_rst),
          .s_pulses({1'b0, line_ends[k]}),
          .m_clk(clk),
          .m_rst(rst),
          .m_pulse(ends[k]),
          .m_ready(1'b1)
      );
    end
    wire unused = &{1'b0, rx_start_cycle[63:16]};
  end else begin : g_clocks
    assign line_rx_clk = clk;
    assign line_tx_clk = clk;
    assign line_rx_rst = rst;
    assign line_tx_rst = rst;
    assign line_cycles = now_cycles;
    assign {m_axis_tdata, m_axis_tkeep, m_axis_tvalid, m_axis_tlast, m_axis_tuser} = {rx_tdata, rx_tkeep, rx_tvalid, rx_tlast, rx_tuser};
    assign m_meta_start_cycle = rx_start_cycle;
    assign drops = line_drops;
    assign {tx_tdata, tx_tkeep, tx_tvalid, tx_tlast, tx_tuser} = {s_axis_tdata, s_axis_tkeep, s_axis_tvalid, s_axis_tlast, s_axis_tuser};
    assign s_axis_tready = tx_tready;
    assign ends = line_ends;
    wire unused = &{1'b0, rx_clk, tx_clk};
  end
endmodule
