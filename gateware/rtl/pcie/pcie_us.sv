// SPDX-License-Identifier: Apache-2.0
// The NIC's memory requests, registers and interrupt on the four interfaces of the UltraScale+ PCIe block (PCIE4, PCIE4C), 128 bits, Dword-aligned,
// without straddling, tags by the user. Names of ports are the block's. docs/design/gateware-pcie.md says how the block must be configured.
module pcie_us #(
    parameter int WRITE_REQUEST_BYTES_MAX = 256,
    parameter int READ_REQUEST_BYTES_MAX = 128,
    parameter int READ_TAGS = 32,
    parameter int ADDRESS_BITS = 12,  // of the registers
    parameter int BAR_BITS = 16,
    localparam int TAG_BITS = $clog2(READ_TAGS)
) (
    input logic clk,  // the block's user_clk
    input logic rst,  // the block's user_reset

    // --- the NIC: as of dma_write, dma_read, nic_regs; irq as of pcie_us_msi ---
    input  logic                                         mem_write_valid,
    output logic                                         mem_write_ready,
    input  logic                                         mem_write_first,
    input  logic                                         mem_write_last,
    input  logic [                                 63:0] mem_write_address,
    input  logic [$clog2(WRITE_REQUEST_BYTES_MAX+1)-1:0] mem_write_bytes,
    input  logic [                                127:0] mem_write_data,
    input  logic                                         mem_read_valid,
    output logic                                         mem_read_ready,
    input  logic [                                 63:0] mem_read_address,
    input  logic [ $clog2(READ_REQUEST_BYTES_MAX+1)-1:0] mem_read_bytes,
    input  logic [                         TAG_BITS-1:0] mem_read_tag,
    output logic                                         mem_answer_valid,
    output logic [                         TAG_BITS-1:0] mem_answer_tag,
    output logic [                                127:0] mem_answer_data,
    output logic                                         mem_answer_last,
    output logic                                         mem_answer_error,
    input  logic                                         irq,

    output logic [ADDRESS_BITS-1:0] m_axil_awaddr,
    output logic                    m_axil_awvalid,
    input  logic                    m_axil_awready,
    output logic [            63:0] m_axil_wdata,
    output logic [             7:0] m_axil_wstrb,
    output logic                    m_axil_wvalid,
    input  logic                    m_axil_wready,
    input  logic [             1:0] m_axil_bresp,
    input  logic                    m_axil_bvalid,
    output logic                    m_axil_bready,
    output logic [ADDRESS_BITS-1:0] m_axil_araddr,
    output logic                    m_axil_arvalid,
    input  logic                    m_axil_arready,
    input  logic [            63:0] m_axil_rdata,
    input  logic [             1:0] m_axil_rresp,
    input  logic                    m_axil_rvalid,
    output logic                    m_axil_rready,

    // --- the PCIe block ---
    output logic [127:0] s_axis_rq_tdata,
    output logic [  3:0] s_axis_rq_tkeep,
    output logic         s_axis_rq_tvalid,
    input  logic         s_axis_rq_tready,
    output logic         s_axis_rq_tlast,
    output logic [ 61:0] s_axis_rq_tuser,
    input  logic [127:0] m_axis_rc_tdata,
    input  logic [  3:0] m_axis_rc_tkeep,
    input  logic         m_axis_rc_tvalid,
    output logic         m_axis_rc_tready,
    input  logic         m_axis_rc_tlast,
    input  logic [ 74:0] m_axis_rc_tuser,
    input  logic [127:0] m_axis_cq_tdata,
    input  logic [  3:0] m_axis_cq_tkeep,
    input  logic         m_axis_cq_tvalid,
    output logic         m_axis_cq_tready,
    input  logic         m_axis_cq_tlast,
    input  logic [ 87:0] m_axis_cq_tuser,
    output logic [127:0] s_axis_cc_tdata,
    output logic [  3:0] s_axis_cc_tkeep,
    output logic         s_axis_cc_tvalid,
    input  logic         s_axis_cc_tready,
    output logic         s_axis_cc_tlast,
    output logic [ 32:0] s_axis_cc_tuser,
    output logic [  1:0] pcie_cq_np_req,
    input  logic [  5:0] pcie_rq_seq_num0,
    input  logic         pcie_rq_seq_num_vld0,
    input  logic [  1:0] cfg_max_payload,
    input  logic [ 15:0] cfg_function_status,
    input  logic [  3:0] cfg_interrupt_msi_enable,
    output logic [ 31:0] cfg_interrupt_msi_int,
    input  logic         cfg_interrupt_msi_sent,
    input  logic         cfg_interrupt_msi_fail,

    // --- a pulse for each ---
    output logic count_unexpected,  // as of pcie_us_rc
    output logic count_refused      // as of pcie_us_cq_cc
);
  localparam int ANSWER_BITS = $clog2(READ_REQUEST_BYTES_MAX / 16 + 1);
  logic issued;
  logic [TAG_BITS-1:0] issued_tag;
  logic [ANSWER_BITS-1:0] issued_words;
  logic [5:0] written_pieces;

  pcie_us_rq #(
      .WRITE_REQUEST_BYTES_MAX(WRITE_REQUEST_BYTES_MAX),
      .READ_REQUEST_BYTES_MAX(READ_REQUEST_BYTES_MAX),
      .READ_TAGS(READ_TAGS)
  ) i_rq (
      .clk,
      .rst,
      .bus_master(cfg_function_status[2]),
      .max_payload(cfg_max_payload),
      .write_valid(mem_write_valid),
      .write_ready(mem_write_ready),
      .write_first(mem_write_first),
      .write_last(mem_write_last),
      .write_address(mem_write_address),
      .write_bytes(mem_write_bytes),
      .write_data(mem_write_data),
      .read_valid(mem_read_valid),
      .read_ready(mem_read_ready),
      .read_address(mem_read_address),
      .read_bytes(mem_read_bytes),
      .read_tag(mem_read_tag),
      .issued,
      .issued_tag,
      .issued_words,
      .written_pieces,
      .m_axis_rq_tdata(s_axis_rq_tdata),
      .m_axis_rq_tkeep(s_axis_rq_tkeep),
      .m_axis_rq_tvalid(s_axis_rq_tvalid),
      .m_axis_rq_tready(s_axis_rq_tready),
      .m_axis_rq_tlast(s_axis_rq_tlast),
      .m_axis_rq_tuser(s_axis_rq_tuser)
  );

  pcie_us_rc #(
      .READ_REQUEST_BYTES_MAX(READ_REQUEST_BYTES_MAX),
      .READ_TAGS(READ_TAGS)
  ) i_rc (
      .clk,
      .rst,
      .issued,
      .issued_tag,
      .issued_words,
      .s_axis_rc_tdata(m_axis_rc_tdata),
      .s_axis_rc_tkeep(m_axis_rc_tkeep),
      .s_axis_rc_tvalid(m_axis_rc_tvalid),
      .s_axis_rc_tready(m_axis_rc_tready),
      .s_axis_rc_tlast(m_axis_rc_tlast),
      .s_axis_rc_tuser(m_axis_rc_tuser),
      .answer_valid(mem_answer_valid),
      .answer_tag(mem_answer_tag),
      .answer_data(mem_answer_data),
      .answer_last(mem_answer_last),
      .answer_error(mem_answer_error),
      .count_unexpected
  );

  pcie_us_cq_cc #(
      .ADDRESS_BITS(ADDRESS_BITS),
      .BAR_BITS(BAR_BITS)
  ) i_cq_cc (
      .clk,
      .rst,
      .s_axis_cq_tdata(m_axis_cq_tdata),
      .s_axis_cq_tkeep(m_axis_cq_tkeep),
      .s_axis_cq_tvalid(m_axis_cq_tvalid),
      .s_axis_cq_tready(m_axis_cq_tready),
      .s_axis_cq_tlast(m_axis_cq_tlast),
      .s_axis_cq_tuser(m_axis_cq_tuser),
      .pcie_cq_np_req,
      .m_axis_cc_tdata(s_axis_cc_tdata),
      .m_axis_cc_tkeep(s_axis_cc_tkeep),
      .m_axis_cc_tvalid(s_axis_cc_tvalid),
      .m_axis_cc_tready(s_axis_cc_tready),
      .m_axis_cc_tlast(s_axis_cc_tlast),
      .m_axis_cc_tuser(s_axis_cc_tuser),
      .m_axil_awaddr,
      .m_axil_awvalid,
      .m_axil_awready,
      .m_axil_wdata,
      .m_axil_wstrb,
      .m_axil_wvalid,
      .m_axil_wready,
      .m_axil_bresp,
      .m_axil_bvalid,
      .m_axil_bready,
      .m_axil_araddr,
      .m_axil_arvalid,
      .m_axil_arready,
      .m_axil_rdata,
      .m_axil_rresp,
      .m_axil_rvalid,
      .m_axil_rready,
      .count_refused
  );

  pcie_us_msi i_msi (
      .clk,
      .rst,
      .irq,
      .written_pieces,
      .pcie_rq_seq_num0,
      .pcie_rq_seq_num_vld0,
      .cfg_interrupt_msi_enable(cfg_interrupt_msi_enable[0]),
      .cfg_interrupt_msi_int,
      .cfg_interrupt_msi_sent,
      .cfg_interrupt_msi_fail
  );
  wire unused = &{1'b0, cfg_function_status[15:3], cfg_function_status[1:0], cfg_interrupt_msi_enable[3:1]};
endmodule
