// SPDX-License-Identifier: Apache-2.0
// Full crossbar for packets: every input may send to every output, an output takes packets from those who want it in turn.
//
// Contract
//   * s_meta_destination stands beside a packet from its first word to its last. A destination of PORTS or more throws the packet away
//     (drop_destination).
//   * Packets are never mixed: an output stays with an input until tlast, and those between the same two ports stay in order.
//   * Each output takes a word a cycle, without a pause between packets; who waits is served after at most one packet of each other input.
//   * A word leaves one cycle after it was taken. m_axis_tready reaches s_axis_tready without a register.
//   * Ports stand side by side in each vector, port 0 lowest.
module router #(
    parameter int PORTS = 4,
    parameter int DATA_BITS = 64
) (
    input logic clk,
    input logic rst,

    input  logic [  PORTS*DATA_BITS-1:0] s_axis_tdata,
    input  logic [PORTS*DATA_BITS/8-1:0] s_axis_tkeep,
    input  logic [            PORTS-1:0] s_axis_tvalid,
    output logic [            PORTS-1:0] s_axis_tready,
    input  logic [            PORTS-1:0] s_axis_tlast,
    input  logic [            PORTS-1:0] s_axis_tuser,
    input  logic [          8*PORTS-1:0] s_meta_destination,

    output logic [          PORTS*DATA_BITS-1:0] m_axis_tdata,
    output logic [        PORTS*DATA_BITS/8-1:0] m_axis_tkeep,
    output logic [                    PORTS-1:0] m_axis_tvalid,
    input  logic [                    PORTS-1:0] m_axis_tready,
    output logic [                    PORTS-1:0] m_axis_tlast,
    output logic [                    PORTS-1:0] m_axis_tuser,
    output logic [                  8*PORTS-1:0] m_meta_source,     // the input that the packet came from

    output logic [PORTS-1:0] count_good,       // by input: packets that went through
    output logic [PORTS-1:0] drop_destination
);
  localparam int KEEP_BITS = DATA_BITS / 8;

  if (PORTS < 2 || PORTS > 64) begin : g_check_ports
    $fatal(1, "PORTS must be 2 to 64 (instance %m)");
  end
  if (DATA_BITS < 8 || DATA_BITS % 8 != 0) begin : g_check_data
    $fatal(1, "DATA_BITS must be a multiple of 8 (instance %m)");
  end

  logic [PORTS-1:0] lost;                // inputs whose packet has no destination
  logic [PORTS*PORTS-1:0] taken_by;      // bit PORTS*o+i: output o takes the word of input i

  for (genvar i = 0; i < PORTS; i++) begin : g_input
    wire [PORTS-1:0] takers;
    assign lost[i] = s_meta_destination[8*i+:8] >= 8'(PORTS);
    for (genvar o = 0; o < PORTS; o++) begin : g_taker
      assign takers[o] = taken_by[PORTS*o+i];
    end
    assign s_axis_tready[i] = takers != '0 || (lost[i] && s_axis_tvalid[i]);
  end

  for (genvar o = 0; o < PORTS; o++) begin : g_output
    logic [PORTS-1:0] request, grant, holder, chosen;
    logic holds;  // a packet of `holder` is in flight
    logic [DATA_BITS-1:0] tdata;
    logic [KEEP_BITS-1:0] tkeep;
    logic [7:0] source;
    wire can_load = !m_axis_tvalid[o] || m_axis_tready[o];
    wire [PORTS-1:0] takes = chosen & s_axis_tvalid & {PORTS{can_load}};
    wire last = (takes & s_axis_tlast) != '0;
    assign chosen = holds ? holder : grant;
    assign taken_by[PORTS*o+:PORTS] = takes;

    for (genvar i = 0; i < PORTS; i++) begin : g_request
      assign request[i] = s_axis_tvalid[i] && s_meta_destination[8*i+:8] == 8'(o);
    end

    arbiter_rr #(
        .PORTS(PORTS)
    ) turn (
        .clk,
        .rst,
        .request,
        .taken(!holds && takes != '0),
        .grant
    );

    always_comb begin
      tdata = '0;
      tkeep = '0;
      source = '0;
      for (int i = 0; i < PORTS; i++) begin
        tdata |= s_axis_tdata[DATA_BITS*i+:DATA_BITS] & {DATA_BITS{chosen[i]}};
        tkeep |= s_axis_tkeep[KEEP_BITS*i+:KEEP_BITS] & {KEEP_BITS{chosen[i]}};
        source |= i[7:0] & {8{chosen[i]}};
      end
    end

    always_ff @(posedge clk) begin
      if (can_load) begin
        m_axis_tvalid[o] <= takes != '0;
        m_axis_tdata[DATA_BITS*o+:DATA_BITS] <= tdata;
        m_axis_tkeep[KEEP_BITS*o+:KEEP_BITS] <= tkeep;
        m_axis_tlast[o] <= last;
        m_axis_tuser[o] <= (takes & s_axis_tuser) != '0;
        m_meta_source[8*o+:8] <= source;
      end
      if (takes != '0) begin
        holds <= !last;
        holder <= chosen;
      end
      if (rst) begin
        m_axis_tvalid[o] <= 1'b0;
        holds <= 1'b0;
      end
    end

    // --- what must hold ---
    logic m_inside;  // the word that left last was not the last of its packet
    logic [7:0] m_source;
    always_ff @(posedge clk) begin
      if (m_axis_tvalid[o] && m_axis_tready[o]) begin
        m_inside <= !m_axis_tlast[o];
        m_source <= m_meta_source[8*o+:8];
      end
      if (rst) m_inside <= 1'b0;
      if (!rst) begin
        assert (holds == (m_axis_tvalid[o] ? !m_axis_tlast[o] : m_inside));
        assert (!holds || ($onehot(holder) && holder == PORTS'(1) << m_meta_source[8*o+:8]));
`ifdef FORMAL
        assume (!holds || (request & holder) == (s_axis_tvalid & holder));  // the sender's promise: one destination a packet
`else
        assert (!holds || (request & holder) == (s_axis_tvalid & holder));
`endif
        assert (!m_inside || m_meta_source[8*o+:8] == m_source);  // packets are not mixed
      end
    end
  end

  always_ff @(posedge clk) begin
    count_good <= s_axis_tvalid & s_axis_tready & s_axis_tlast & ~lost & {PORTS{!rst}};
    drop_destination <= s_axis_tvalid & s_axis_tready & s_axis_tlast & lost & {PORTS{!rst}};
  end
endmodule
