// SPDX-License-Identifier: Apache-2.0
// router under any well-formed packets: a word that an input gives away stands at its output in the next cycle, unchanged and with its
// source named, and a word that waits stays. The router's own assertions say that packets are not mixed.
module router_formal #(
    parameter int PORTS = 3,
    parameter int DATA_BITS = 8
) (
    input logic                          clk,
    input logic                          rst,
    input logic [  PORTS*DATA_BITS-1:0]  s_axis_tdata,
    input logic [PORTS*DATA_BITS/8-1:0]  s_axis_tkeep,
    input logic [            PORTS-1:0]  s_axis_tvalid,
    input logic [            PORTS-1:0]  s_axis_tlast,
    input logic [            PORTS-1:0]  s_axis_tuser,
    input logic [          8*PORTS-1:0]  s_meta_destination,
    input logic [            PORTS-1:0]  m_axis_tready
);
  logic [PORTS*DATA_BITS-1:0] m_axis_tdata;
  logic [PORTS*DATA_BITS/8-1:0] m_axis_tkeep;
  logic [PORTS-1:0] s_axis_tready, m_axis_tvalid, m_axis_tlast, m_axis_tuser, count_good, drop_destination;
  logic [8*PORTS-1:0] m_meta_source;

  router #(.PORTS(PORTS), .DATA_BITS(DATA_BITS)) dut (.*);

  initial assume (rst);

  logic [PORTS-1:0] s_waits, m_waits, s_gave;
  logic [PORTS*DATA_BITS-1:0] s_data, m_data;
  logic [PORTS-1:0] s_last, m_last;
  logic [8*PORTS-1:0] s_destination;
  logic before_valid;

  always_ff @(posedge clk) begin
    before_valid <= !rst;
    s_waits <= s_axis_tvalid & ~s_axis_tready;
    s_gave <= s_axis_tvalid & s_axis_tready;
    m_waits <= m_axis_tvalid & ~m_axis_tready;
    {s_data, s_last, s_destination} <= {s_axis_tdata, s_axis_tlast, s_meta_destination};
    {m_data, m_last} <= {m_axis_tdata, m_axis_tlast};
  end

  for (genvar p = 0; p < PORTS; p++) begin : g_port
    wire [7:0] destination = s_destination[8*p+:8];
    always_ff @(posedge clk) begin
      if (!rst && before_valid) begin
        // What senders promise: a waiting word stays.
        if (s_waits[p]) begin
          assume (s_axis_tvalid[p]);
          assume (s_axis_tdata[DATA_BITS*p+:DATA_BITS] == s_data[DATA_BITS*p+:DATA_BITS]);
          assume (s_axis_tlast[p] == s_last[p]);
          assume (s_meta_destination[8*p+:8] == destination);
        end
        // What the router promises.
        if (m_waits[p]) begin
          assert (m_axis_tvalid[p]);
          assert (m_axis_tdata[DATA_BITS*p+:DATA_BITS] == m_data[DATA_BITS*p+:DATA_BITS]);
          assert (m_axis_tlast[p] == m_last[p]);
        end
        for (int o = 0; o < PORTS; o++) begin
          if (s_gave[p] && destination == 8'(o)) begin
            assert (m_axis_tvalid[o]);
            assert (m_axis_tdata[DATA_BITS*o+:DATA_BITS] == s_data[DATA_BITS*p+:DATA_BITS]);
            assert (m_axis_tlast[o] == s_last[p]);
            assert (m_meta_source[8*o+:8] == 8'(p));
          end
        end
      end
    end
  end
endmodule
