// SPDX-License-Identifier: Apache-2.0
// km3_node with the clock and the words of each of four links under names of their own. The serialisers' dividers take their words in the middle of the
// reference's
// cycles, as they should. Ports that the node has not are idle.
module bench_top #(
    parameter int PORTS = 2,
    parameter int LINE_MBPS = 800,
    parameter int FRAMES_PER_S = 50000,
    parameter int OPTICAL_WORDS = 90,
    parameter int CYCLES_PER_S = 3000
) (
    input logic clk,
    input logic rst,
    input logic ref_clk,
    input logic help_clk,
    input logic pps,
    input logic rx_clk_0,
    input logic rx_clk_1,
    input logic rx_clk_2,
    input logic rx_clk_3,

    input  logic [12:0] s_axil_awaddr,
    input  logic        s_axil_awvalid,
    output logic        s_axil_awready,
    input  logic [63:0] s_axil_wdata,
    input  logic        s_axil_wvalid,
    output logic        s_axil_wready,
    output logic [ 1:0] s_axil_bresp,
    output logic        s_axil_bvalid,
    input  logic [12:0] s_axil_araddr,
    input  logic        s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [63:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,

    input  logic [19:0] rx_bits_0,
    input  logic [19:0] rx_bits_1,
    input  logic [19:0] rx_bits_2,
    input  logic [19:0] rx_bits_3,
    output logic [19:0] tx_codes_0,
    output logic [19:0] tx_codes_1,
    output logic [19:0] tx_codes_2,
    output logic [19:0] tx_codes_3,

    output logic         mem_write_valid,
    input  logic         mem_write_ready,
    output logic         mem_write_first,
    output logic         mem_write_last,
    output logic [ 63:0] mem_write_address,
    output logic [  8:0] mem_write_bytes,
    output logic [127:0] mem_write_data,
    output logic [ 15:0] mem_write_keep,
    output logic         mem_read_valid,
    input  logic         mem_read_ready,
    output logic [ 63:0] mem_read_address,
    output logic [  9:0] mem_read_bytes,
    output logic [  4:0] mem_read_tag,
    input  logic         mem_answer_valid,
    input  logic [  4:0] mem_answer_tag,
    input  logic [127:0] mem_answer_data,
    input  logic         mem_answer_last
);
  logic [PORTS*20-1:0] tx_codes;
  assign {tx_codes_3, tx_codes_2, tx_codes_1, tx_codes_0} = 80'(tx_codes);
  km3_node #(
      .PORTS(PORTS),
      .LINE_MBPS(LINE_MBPS),
      .FRAMES_PER_S(FRAMES_PER_S),
      .OPTICAL_WORDS(OPTICAL_WORDS),
      .HYDROPHONE_WORDS(20),
      .INSTRUMENT_WORDS(18),
      .CONTROL_WORDS(40),
      .PACKET_WORDS(700),
      .BUFFER_WORDS(1024),
      .QUEUE_WORDS(256),
      .SEARCH_CYCLES(2000),
      .CYCLES_PER_S(CYCLES_PER_S)
  ) i_node (
      .s_axil_wstrb('1),
      .s_axil_bready(1'b1),
      .s_axil_rready(1'b1),
      .rx_clk(PORTS'({rx_clk_3, rx_clk_2, rx_clk_1, rx_clk_0})),
      .div_clk({PORTS{!ref_clk}}),
      .tx_codes,
      .tx_on(),
      .tx_slide(),
      .rx_bits((PORTS * 20)'({rx_bits_3, rx_bits_2, rx_bits_1, rx_bits_0})),
      .rx_slide(),
      .rx_restart(),
      .irq(),
      .mem_write_gpu(),
      .mem_read_gpu(),
      .mem_answer_error(1'b0),
      .*
  );
endmodule
