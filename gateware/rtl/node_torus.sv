// SPDX-License-Identifier: Apache-2.0
// What stands between a node and its host where the node is one of a torus: node_ape with its window of registers, its share of the host's memory, and its interrupt
// on the one line.
//
// Contract
//   * Registers, links and memory as of nanet_node; what begins with host_ is host_port's and, of registers, node_regs'. payload_* as of node_ape.
//   * Without APE_LINKS it is wires: registers, memory and interrupt are the host's alone, links and payloads are 0 and not looked at.
module node_torus #(
    parameter int APE_LINKS = 6,            // 0; 3: x+, x-, y+; or 6
    parameter int PORTS = 4,                // Ethernet's, of the node
    parameter int WRITE_REQUEST_BYTES_MAX = 256,
    parameter int READ_REQUEST_BYTES_MAX = 512,
    parameter int READ_TAGS = 32,           // of the bus; half of them are the host's, where there is a torus
    localparam int TAG_BITS = $clog2(READ_TAGS),
    localparam int HOST_TAGS = APE_LINKS > 0 ? READ_TAGS / 2 : READ_TAGS,
    localparam int HOST_TAG_BITS = $clog2(HOST_TAGS),
    localparam int REGISTER_BITS = APE_LINKS > 0 ? 14 : 13  // of an address
) (
    /* verilator lint_off UNUSEDSIGNAL */  // without APE_LINKS
    input logic clk,
    input logic rst,
    input logic [63:0] now_ns,
    input logic [63:0] now_cycles,

    // --- registers: from the host, and those that are not of the torus ---
    input  logic [REGISTER_BITS-1:0] s_axil_awaddr,
    input  logic        s_axil_awvalid,
    output logic        s_axil_awready,
    input  logic [63:0] s_axil_wdata,
    input  logic [ 7:0] s_axil_wstrb,
    input  logic        s_axil_wvalid,
    output logic        s_axil_wready,
    output logic [ 1:0] s_axil_bresp,
    output logic        s_axil_bvalid,
    input  logic        s_axil_bready,
    input  logic [REGISTER_BITS-1:0] s_axil_araddr,
    input  logic        s_axil_arvalid,
    output logic        s_axil_arready,
    output logic [63:0] s_axil_rdata,
    output logic [ 1:0] s_axil_rresp,
    output logic        s_axil_rvalid,
    input  logic        s_axil_rready,
    output logic        host_awvalid,
    input  logic        host_awready,
    output logic        host_wvalid,
    input  logic        host_wready,
    input  logic [ 1:0] host_bresp,
    input  logic        host_bvalid,
    output logic        host_bready,
    output logic        host_arvalid,
    input  logic        host_arready,
    input  logic [63:0] host_rdata,
    input  logic [ 1:0] host_rresp,
    input  logic        host_rvalid,
    output logic        host_rready,

    input port_pkg::pages_t pages,  // the host port's page table

    input  logic [  5:0] ape_link_up,
    output logic [  5:0] ape_tx_valid,
    input  logic [  5:0] ape_tx_ready,
    output logic [767:0] ape_tx_data,
    input  logic [  5:0] ape_rx_valid,
    input  logic [767:0] ape_rx_data,

    output logic [127:0]       payload_tdata,
    output logic [ 15:0]       payload_tkeep,
    output logic               payload_tvalid,
    input  logic               payload_tready,
    output logic               payload_tlast,
    output port_pkg::payload_t payload_meta,
    output logic [  7:0]       payload_destination,
    input  logic               payload_forwarded,
    input  logic               payload_no_route,

    input  logic host_irq,
    output logic irq,

    // --- memory: of the host's port, and of both ---
    input  logic host_write_valid,
    output logic host_write_ready,
    input  logic host_write_first,
    input  logic host_write_last,
    input  logic host_write_gpu,
    input  logic [63:0] host_write_address,
    input  logic [$clog2(WRITE_REQUEST_BYTES_MAX+1)-1:0] host_write_bytes,
    input  logic [127:0] host_write_data,
    input  logic [15:0] host_write_keep,
    input  logic host_read_valid,
    output logic host_read_ready,
    input  logic [63:0] host_read_address,
    input  logic [$clog2(READ_REQUEST_BYTES_MAX+1)-1:0] host_read_bytes,
    input  logic [HOST_TAG_BITS-1:0] host_read_tag,
    input  logic host_read_gpu,
    output logic host_answer_valid,
    output logic [HOST_TAG_BITS-1:0] host_answer_tag,
    output logic mem_write_valid,
    input  logic mem_write_ready,
    output logic mem_write_first,
    output logic mem_write_last,
    output logic mem_write_gpu,
    output logic [63:0] mem_write_address,
    output logic [$clog2(WRITE_REQUEST_BYTES_MAX+1)-1:0] mem_write_bytes,
    output logic [127:0] mem_write_data,
    output logic [15:0] mem_write_keep,
    output logic mem_read_valid,
    input  logic mem_read_ready,
    output logic [63:0] mem_read_address,
    output logic [$clog2(READ_REQUEST_BYTES_MAX+1)-1:0] mem_read_bytes,
    output logic [TAG_BITS-1:0] mem_read_tag,
    output logic mem_read_gpu,
    input  logic mem_answer_valid,
    input  logic [TAG_BITS-1:0] mem_answer_tag,
    input  logic [127:0] mem_answer_data,
    input  logic mem_answer_last,
    input  logic mem_answer_error
    /* verilator lint_on UNUSEDSIGNAL */
);
  if (APE_LINKS > 0) begin : g_ape
    logic awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready;
    logic [1:0] bresp, rresp;
    logic [63:0] rdata;
    axil_split #(
        .ADDRESS_BITS(13)
    ) i_axil_split (
        .clk,
        .rst,
        .s_axil_awaddr,
        .s_axil_awvalid,
        .s_axil_awready,
        .s_axil_wvalid,
        .s_axil_wready,
        .s_axil_bresp,
        .s_axil_bvalid,
        .s_axil_bready,
        .s_axil_araddr,
        .s_axil_arvalid,
        .s_axil_arready,
        .s_axil_rdata,
        .s_axil_rresp,
        .s_axil_rvalid,
        .s_axil_rready,
        .m_axil_awvalid({awvalid, host_awvalid}),
        .m_axil_awready({awready, host_awready}),
        .m_axil_wvalid({wvalid, host_wvalid}),
        .m_axil_wready({wready, host_wready}),
        .m_axil_bresp({bresp, host_bresp}),
        .m_axil_bvalid({bvalid, host_bvalid}),
        .m_axil_bready({bready, host_bready}),
        .m_axil_arvalid({arvalid, host_arvalid}),
        .m_axil_arready({arready, host_arready}),
        .m_axil_rdata({rdata, host_rdata}),
        .m_axil_rresp({rresp, host_rresp}),
        .m_axil_rvalid({rvalid, host_rvalid}),
        .m_axil_rready({rready, host_rready})
    );

    logic write_valid, write_ready, write_first, write_last, write_gpu, read_valid, read_ready, read_gpu, answer_valid;
    logic [63:0] write_address, read_address;
    logic [$clog2(WRITE_REQUEST_BYTES_MAX+1)-1:0] write_bytes;
    logic [127:0] write_data;
    logic [15:0] write_keep;
    logic [$clog2(READ_REQUEST_BYTES_MAX+1)-1:0] read_bytes;
    logic [HOST_TAG_BITS-1:0] read_tag;
    logic ape_irq;

    node_ape #(
        .LINKS(2 ** APE_LINKS - 1),
        .PORTS(PORTS),
        .WRITE_REQUEST_BYTES_MAX(WRITE_REQUEST_BYTES_MAX),
        .READ_REQUEST_BYTES_MAX(READ_REQUEST_BYTES_MAX),
        .READ_TAGS(HOST_TAGS)
    ) i_ape (
        .s_axil_awaddr(s_axil_awaddr[11:0]),
        .s_axil_awvalid(awvalid),
        .s_axil_awready(awready),
        .s_axil_wdata,
        .s_axil_wstrb,
        .s_axil_wvalid(wvalid),
        .s_axil_wready(wready),
        .s_axil_bresp(bresp),
        .s_axil_bvalid(bvalid),
        .s_axil_bready(bready),
        .s_axil_araddr(s_axil_araddr[11:0]),
        .s_axil_arvalid(arvalid),
        .s_axil_arready(arready),
        .s_axil_rdata(rdata),
        .s_axil_rresp(rresp),
        .s_axil_rvalid(rvalid),
        .s_axil_rready(rready),
        .irq(ape_irq),
        .link_up(ape_link_up),
        .link_tx_valid(ape_tx_valid),
        .link_tx_ready(ape_tx_ready),
        .link_tx_data(ape_tx_data),
        .link_rx_valid(ape_rx_valid),
        .link_rx_data(ape_rx_data),
        .answer_data(mem_answer_data),
        .answer_last(mem_answer_last),
        .answer_error(mem_answer_error),
        .answer_tag(host_answer_tag),
        .*
    );

    bus_share #(
        .WRITE_BITS($clog2(WRITE_REQUEST_BYTES_MAX + 1)),
        .READ_BITS($clog2(READ_REQUEST_BYTES_MAX + 1)),
        .TAG_BITS(HOST_TAG_BITS)
    ) i_bus (
        .clk,
        .rst,
        .s_write_valid({write_valid, host_write_valid}),
        .s_write_ready({write_ready, host_write_ready}),
        .s_write_first({write_first, host_write_first}),
        .s_write_last({write_last, host_write_last}),
        .s_write_gpu({write_gpu, host_write_gpu}),
        .s_write_address({write_address, host_write_address}),
        .s_write_bytes({write_bytes, host_write_bytes}),
        .s_write_data({write_data, host_write_data}),
        .s_write_keep({write_keep, host_write_keep}),
        .s_read_valid({read_valid, host_read_valid}),
        .s_read_ready({read_ready, host_read_ready}),
        .s_read_address({read_address, host_read_address}),
        .s_read_bytes({read_bytes, host_read_bytes}),
        .s_read_tag({read_tag, host_read_tag}),
        .s_read_gpu({read_gpu, host_read_gpu}),
        .s_answer_valid({answer_valid, host_answer_valid}),
        .s_answer_tag(host_answer_tag),
        .m_write_valid(mem_write_valid),
        .m_write_ready(mem_write_ready),
        .m_write_first(mem_write_first),
        .m_write_last(mem_write_last),
        .m_write_gpu(mem_write_gpu),
        .m_write_address(mem_write_address),
        .m_write_bytes(mem_write_bytes),
        .m_write_data(mem_write_data),
        .m_write_keep(mem_write_keep),
        .m_read_valid(mem_read_valid),
        .m_read_ready(mem_read_ready),
        .m_read_address(mem_read_address),
        .m_read_bytes(mem_read_bytes),
        .m_read_tag(mem_read_tag),
        .m_read_gpu(mem_read_gpu),
        .m_answer_valid(mem_answer_valid),
        .m_answer_tag(mem_answer_tag)
    );

    irq_join i_irq (
        .clk,
        .rst,
        .levels({ape_irq, host_irq}),
        .irq
    );
  end else begin : g_ape
    assign irq = host_irq;
    assign {payload_tdata, payload_tkeep, payload_tvalid, payload_tlast, payload_meta, payload_destination} = '0;
    assign host_awvalid = s_axil_awvalid;
    assign s_axil_awready = host_awready;
    assign host_wvalid = s_axil_wvalid;
    assign s_axil_wready = host_wready;
    assign s_axil_bresp = host_bresp;
    assign s_axil_bvalid = host_bvalid;
    assign host_bready = s_axil_bready;
    assign host_arvalid = s_axil_arvalid;
    assign s_axil_arready = host_arready;
    assign s_axil_rdata = host_rdata;
    assign s_axil_rresp = host_rresp;
    assign s_axil_rvalid = host_rvalid;
    assign host_rready = s_axil_rready;
    assign {ape_tx_valid, ape_tx_data} = '0;
    assign mem_write_valid = host_write_valid;
    assign host_write_ready = mem_write_ready;
    assign mem_write_first = host_write_first;
    assign mem_write_last = host_write_last;
    assign mem_write_gpu = host_write_gpu;
    assign mem_write_address = host_write_address;
    assign mem_write_bytes = host_write_bytes;
    assign mem_write_data = host_write_data;
    assign mem_write_keep = host_write_keep;
    assign mem_read_valid = host_read_valid;
    assign host_read_ready = mem_read_ready;
    assign mem_read_address = host_read_address;
    assign mem_read_bytes = host_read_bytes;
    assign mem_read_tag = host_read_tag;
    assign mem_read_gpu = host_read_gpu;
    assign host_answer_valid = mem_answer_valid;
    assign host_answer_tag = mem_answer_tag;
  end
endmodule
