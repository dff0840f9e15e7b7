// SPDX-License-Identifier: Apache-2.0
// Several streams of packets onto one, in turn: what makes frames shares the MAC through it.
//
// Contract
//   * Once the first word of a packet is offered the output stays with its input until tlast: packets are never mixed, and a packet that comes
//     without a gap leaves without one.
//   * Who waits is served after at most one packet of each other input. The output takes a word a cycle, without a pause between packets that
//     wait. When nothing was offered the turn is input 0's: a packet of another input then waits for a cycle.
//   * Nothing is stored: a word whose turn it is leaves in the cycle in which it is offered; m_axis_tready reaches s_axis_tready without a register.
//   * Inputs stand side by side in each vector, input 0 lowest.
module stream_mux #(
    parameter int INPUTS = 2,
    parameter int DATA_BITS = 64
) (
    input logic clk,
    input logic rst,

    input  logic [  INPUTS*DATA_BITS-1:0] s_axis_tdata,
    input  logic [INPUTS*DATA_BITS/8-1:0] s_axis_tkeep,
    input  logic [            INPUTS-1:0] s_axis_tvalid,
    output logic [            INPUTS-1:0] s_axis_tready,
    input  logic [            INPUTS-1:0] s_axis_tlast,
    input  logic [            INPUTS-1:0] s_axis_tuser,

    output logic [  DATA_BITS-1:0] m_axis_tdata,
    output logic [DATA_BITS/8-1:0] m_axis_tkeep,
    output logic                   m_axis_tvalid,
    input  logic                   m_axis_tready,
    output logic                   m_axis_tlast,
    output logic                   m_axis_tuser
);
  localparam int KEEP_BITS = DATA_BITS / 8;

  if (INPUTS < 2 || INPUTS > 64) begin : g_check_inputs
    $fatal(1, "INPUTS must be 2 to 64 (instance %m)");
  end
  if (DATA_BITS < 8 || DATA_BITS % 8 != 0) begin : g_check_data
    $fatal(1, "DATA_BITS must be a multiple of 8 (instance %m)");
  end

  logic in_packet;  // a packet has begun to leave
  logic [INPUTS-1:0] holder, grant;
  wire [INPUTS-1:0] others = s_axis_tvalid & ~holder;
  wire ends = m_axis_tvalid && m_axis_tready && m_axis_tlast;
  wire idle = !in_packet && !m_axis_tvalid;

  arbiter_rr #(
      .PORTS(INPUTS)
  ) turns (
      .clk,
      .rst,
      .request(others),
      .taken(ends || idle),
      .grant
  );

  always_comb begin
    m_axis_tdata = '0;
    m_axis_tkeep = '0;
    for (int i = 0; i < INPUTS; i++) begin
      m_axis_tdata |= s_axis_tdata[DATA_BITS*i+:DATA_BITS] & {DATA_BITS{holder[i]}};
      m_axis_tkeep |= s_axis_tkeep[KEEP_BITS*i+:KEEP_BITS] & {KEEP_BITS{holder[i]}};
    end
  end
  assign m_axis_tvalid = (holder & s_axis_tvalid) != '0;
  assign m_axis_tlast = (holder & s_axis_tlast) != '0;
  assign m_axis_tuser = (holder & s_axis_tuser) != '0;
  assign s_axis_tready = holder & {INPUTS{m_axis_tready}};

  always_ff @(posedge clk) begin
    if (m_axis_tvalid && m_axis_tready) in_packet <= !m_axis_tlast;
    if ((ends || idle) && others != '0) holder <= grant;
    else if (idle) holder <= INPUTS'(1);
    if (rst) begin
      in_packet <= 1'b0;
      holder <= INPUTS'(1);
    end
  end

  // --- what must hold ---
  logic waits;
  logic was_reset;  // a PCIe block lets some clock edges go by before its first reset
  logic [DATA_BITS+KEEP_BITS+1:0] waiting;
  initial was_reset = 1'b0;
  always_ff @(posedge clk) begin
    waits <= !rst && m_axis_tvalid && !m_axis_tready;
    waiting <= {m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser};
    if (rst) was_reset <= 1'b1;
    if (!rst && was_reset) begin
      assert ($onehot(holder));
      assert (!waits || (m_axis_tvalid && waiting == {m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser}));
    end
  end
endmodule
