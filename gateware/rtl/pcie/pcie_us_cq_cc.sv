// SPDX-License-Identifier: Apache-2.0
// Registers of the NIC behind BAR0: the completer request and completion (CQ, CC) interfaces of the UltraScale+ PCIe block, 128 bits, Dword-aligned,
// to AXI4-Lite of 64 bits.
//
// Contract
//   * A memory read or write of one Dword, or of two that make a register, goes to AXI4-Lite with its byte enables. A read sees every write before it.
//   * Answered with completer abort: a read of another size or place, or of no register (AXI4-Lite says error). Answered with unsupported request:
//     every other request that wants an answer. What wants none and cannot be done is thrown away: count_refused, a pulse each. Messages are not counted.
//   * Posted requests never wait for a completion to leave: the block gives one request that wants an answer at a time (pcie_cq_np_req).
module pcie_us_cq_cc #(
    parameter int ADDRESS_BITS = 12,  // of the registers
    parameter int BAR_BITS = 16       // of BAR0, as the block is configured: what lies above the registers is none
) (
    input logic clk,
    input logic rst,

    input  logic [127:0] s_axis_cq_tdata,
    input  logic [  3:0] s_axis_cq_tkeep,
    input  logic         s_axis_cq_tvalid,
    output logic         s_axis_cq_tready,
    input  logic         s_axis_cq_tlast,
    input  logic [ 87:0] s_axis_cq_tuser,
    output logic [  1:0] pcie_cq_np_req,

    output logic [127:0] m_axis_cc_tdata,
    output logic [  3:0] m_axis_cc_tkeep,
    output logic         m_axis_cc_tvalid,
    input  logic         m_axis_cc_tready,
    output logic         m_axis_cc_tlast,
    output logic [ 32:0] m_axis_cc_tuser,

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

    output logic count_refused
);
  localparam int DISCONTINUE = 41;  // of tuser: the block could not read its own memory, this packet is bad
  localparam logic [3:0] MEMORY_READ = 4'd0, MEMORY_WRITE = 4'd1, LOCKED_READ = 4'd7;
  localparam logic [2:0] SUCCESS = 3'b000, UNSUPPORTED = 3'b001, ABORT = 3'b100;

  if (ADDRESS_BITS < 4 || BAR_BITS < ADDRESS_BITS || BAR_BITS > 31) begin : g_check_bits
    $fatal(1, "BAR_BITS must be ADDRESS_BITS to 31 (instance %m)");
  end

  // --- the descriptor of a request ---
  wire [3:0] kind = s_axis_cq_tdata[78:75];
  wire [10:0] dwords = s_axis_cq_tdata[74:64];
  wire [2:0] bar = s_axis_cq_tdata[114:112];
  wire [3:0] first_enable = s_axis_cq_tuser[3:0];
  wire [3:0] last_enable = s_axis_cq_tuser[7:4];
  wire high = s_axis_cq_tdata[2];  // it begins in the upper half of a register
  wire is_register = bar == 3'd0 && (dwords == 11'd1 || (dwords == 11'd2 && !high)) &&
                s_axis_cq_tdata[BAR_BITS-1:0] >> ADDRESS_BITS == '0;
  wire wants_answer = kind <= LOCKED_READ && kind != MEMORY_WRITE;

  // --- CQ: a descriptor, then the data of a write, if any ---
  logic in_packet;
  logic writes;          // the packet in flight is a write to a register
  logic [7:0] strobes;
  logic [ADDRESS_BITS-1:0] write_address;
  logic write_high;
  logic write_busy;      // from the data to the response
  logic request_busy;    // a request that wants an answer is here
  wire at_head = !in_packet;
  assign s_axis_cq_tready = at_head ? !(wants_answer && request_busy) : !(writes && write_busy);
  wire take = s_axis_cq_tvalid && s_axis_cq_tready;
  wire discontinue = s_axis_cq_tuser[DISCONTINUE];
  wire takes_request = take && at_head && wants_answer;
  wire takes_write = take && at_head && kind == MEMORY_WRITE;
  wire begins_write = take && !at_head && writes && !discontinue;
  assign m_axil_bready = 1'b1;

  // A write may be refused here in the cycle in which the registers refuse the one before. That is then told a cycle later; before there can be
  // another of these, a write is taken, in a cycle in which none is refused here.
  wire refused_here = (takes_write && !is_register) || (take && !at_head && writes && discontinue);
  wire refused_there = m_axil_bvalid && m_axil_bresp != 2'b00;
  logic owes_refused;
  always_ff @(posedge clk) begin
    if (take) begin
      in_packet <= !s_axis_cq_tlast;
      writes <= takes_write && is_register;
    end
    if (takes_write) begin
      strobes <= {dwords == 11'd1 ? (high ? first_enable : 4'd0) : last_enable, high ? 4'd0 : first_enable};
      write_address <= {s_axis_cq_tdata[ADDRESS_BITS-1:3], 3'd0};
      write_high <= high;
    end

    if (m_axil_awready) m_axil_awvalid <= 1'b0;
    if (m_axil_wready) m_axil_wvalid <= 1'b0;
    if (m_axil_bvalid) write_busy <= 1'b0;
    if (begins_write) begin
      m_axil_awvalid <= 1'b1;
      m_axil_wvalid <= 1'b1;
      m_axil_awaddr <= write_address;
      m_axil_wdata <= write_high ? {s_axis_cq_tdata[31:0], 32'd0} : s_axis_cq_tdata[63:0];
      m_axil_wstrb <= strobes;
      write_busy <= 1'b1;
    end
    count_refused <= refused_here || refused_there || owes_refused;
    owes_refused <= refused_here ? refused_there || owes_refused : refused_there && owes_refused;
    if (rst) begin
      in_packet <= 1'b0;
      m_axil_awvalid <= 1'b0;
      m_axil_wvalid <= 1'b0;
      write_busy <= 1'b0;
      count_refused <= 1'b0;
      owes_refused <= 1'b0;
    end
  end

  // --- a request that wants an answer ---
  typedef enum logic [2:0] {IDLE, BEHIND, ASK, WAIT, ANSWER, DATA} state_t;
  state_t state;
  logic [127:0] request;
  logic [7:0] enables;
  logic [7:0] hints;  // of a transaction: only copied
  logic [2:0] hint_kind;
  logic [63:0] value;
  logic [2:0] status;
  assign request_busy = state != IDLE;

  wire is_read = request[78:75] == MEMORY_READ;
  wire [10:0] asked = request[74:64];
  wire [3:0] first = enables[3:0];
  wire [3:1] last = asked == 11'd1 ? first[3:1] : enables[7:5];
  wire [1:0] lead = first[0] ? 2'd0 : first[1] ? 2'd1 : first[2] ? 2'd2 : first[3] ? 2'd3 : 2'd0;
  wire [1:0] trail = last[3] ? 2'd0 : last[2] ? 2'd1 : last[1] ? 2'd2 : 2'd3;
  wire [12:0] bytes = {asked, 2'b00} - 13'(lead) - 13'(trail);  // from the first enabled to the last
  wire [12:0] byte_count = is_read ? bytes : 13'd4;
  wire [6:0] lower_address = is_read ? {request[6:2], lead} : 7'd0;
  wire good = status == SUCCESS;
  wire [31:0] first_dword = request[2] ? value[63:32] : value[31:0];
  wire cc_free = !m_axis_cc_tvalid || m_axis_cc_tready;
  wire [95:0] descriptor = {1'b0, request[126:121], 1'b0, 8'd0, request[111:104], request[103:96],
                            request[95:80], 2'b00, status, good ? asked : 11'd0,
                            3'b000, byte_count, 6'd0, is_read ? request[1:0] : 2'b00, 1'b0, lower_address};

  assign m_axil_araddr = {request[ADDRESS_BITS-1:3], 3'd0};
  assign m_axil_arvalid = state == ASK;
  assign m_axil_rready = state == WAIT;
  assign m_axis_cc_tuser = '0;

  logic granted;  // the block was told that there is room for one
  always_ff @(posedge clk) begin
    if (m_axis_cc_tready) m_axis_cc_tvalid <= 1'b0;
    if (takes_request) begin
      request <= s_axis_cq_tdata;
      enables <= s_axis_cq_tuser[7:0];
      hint_kind <= s_axis_cq_tuser[44:42];
      hints <= s_axis_cq_tuser[52:45];
      status <= kind != MEMORY_READ || bar != 3'd0 ? UNSUPPORTED : is_register ? SUCCESS : ABORT;
    end
    unique case (state)
      IDLE: if (takes_request) state <= BEHIND;
      BEHIND: if (!good) state <= ANSWER;
              else if (!write_busy) state <= ASK;
      ASK: if (m_axil_arready) state <= WAIT;
      WAIT: if (m_axil_rvalid) begin
        value <= m_axil_rdata;
        if (m_axil_rresp != 2'b00) status <= ABORT;
        state <= ANSWER;
      end
      ANSWER: if (cc_free) begin
        m_axis_cc_tvalid <= 1'b1;
        m_axis_cc_tdata <= {good ? first_dword : {13'd0, hints, hint_kind, enables}, descriptor};
        m_axis_cc_tkeep <= 4'hF;
        m_axis_cc_tlast <= good && asked == 11'd1;
        state <= good && asked == 11'd1 ? IDLE : DATA;
      end
      DATA: if (cc_free) begin
        m_axis_cc_tvalid <= 1'b1;
        m_axis_cc_tdata <= good ? {96'd0, value[63:32]} : request;
        m_axis_cc_tkeep <= good ? 4'h1 : 4'hF;
        m_axis_cc_tlast <= 1'b1;
        state <= IDLE;
      end
      default: state <= IDLE;
    endcase

    pcie_cq_np_req <= {1'b0, !granted && !takes_request && state == IDLE};
    if (state == IDLE) granted <= !takes_request;
    if (rst) begin
      state <= IDLE;
      m_axis_cc_tvalid <= 1'b0;
      granted <= 1'b0;
      pcie_cq_np_req <= '0;
    end
  end
  wire unused = &{1'b0, s_axis_cq_tkeep, s_axis_cq_tuser[87:53], s_axis_cq_tuser[40:8], request[127], request[120:112]};

  // --- what must hold ---
`ifndef SYNTHESIS
  logic in_completion;
  always_ff @(posedge clk) begin
    in_completion <= m_axis_cc_tvalid && !(m_axis_cc_tready && m_axis_cc_tlast);
    if (rst) in_completion <= 1'b0;
    else if (in_completion) a_no_pause : assert (m_axis_cc_tvalid);
  end
`endif
endmodule
