// SPDX-License-Identifier: Apache-2.0
// router under any well-formed packets: a word that an input gives away stands at its output in the next cycle, unchanged, whole and with its source
// named; nothing else ever stands there; a word that waits stays; an output that can take a word takes one if it is wanted, and of one packet
// until its end; every packet is counted once.
module router_formal #(
    parameter int PORTS = 3,
    parameter int DATA_BITS = 16
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
  localparam int KEEP_BITS = DATA_BITS / 8;
  localparam int WORD_BITS = DATA_BITS + KEEP_BITS + 2;
  logic [PORTS*DATA_BITS-1:0] m_axis_tdata;
  logic [PORTS*DATA_BITS/8-1:0] m_axis_tkeep;
  logic [PORTS-1:0] s_axis_tready, m_axis_tvalid, m_axis_tlast, m_axis_tuser, count_good, drop_destination;
  logic [8*PORTS-1:0] m_meta_source;

  router #(.PORTS(PORTS), .DATA_BITS(DATA_BITS)) dut (.*);

  logic running;
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
  end

  // A word with all that is beside it, as it is and as it was a cycle before.
  wire [PORTS*WORD_BITS-1:0] s_word, m_word;
  logic [PORTS*WORD_BITS-1:0] s_word_before, m_word_before;
  logic [8*PORTS-1:0] s_destination;
  logic [PORTS-1:0] s_waits, m_waits, s_gave, s_last;
  logic [8*PORTS-1:0] m_source_before;
  logic before_valid;
  for (genvar p = 0; p < PORTS; p++) begin : g_word
    assign s_word[WORD_BITS*p+:WORD_BITS] = {s_axis_tuser[p], s_axis_tlast[p], s_axis_tkeep[KEEP_BITS*p+:KEEP_BITS], s_axis_tdata[DATA_BITS*p+:DATA_BITS]};
    assign m_word[WORD_BITS*p+:WORD_BITS] = {m_axis_tuser[p], m_axis_tlast[p], m_axis_tkeep[KEEP_BITS*p+:KEEP_BITS], m_axis_tdata[DATA_BITS*p+:DATA_BITS]};
  end
  always_ff @(posedge clk) begin
    before_valid <= !rst;
    s_waits <= s_axis_tvalid & ~s_axis_tready;
    s_gave <= s_axis_tvalid & s_axis_tready;
    s_last <= s_axis_tlast;
    m_waits <= m_axis_tvalid & ~m_axis_tready;
    {s_word_before, m_word_before, s_destination, m_source_before} <= {s_word, m_word, s_meta_destination, m_meta_source};
  end

  // Of each output, whose packet it is in.
  logic [PORTS-1:0] in_packet;
  logic [8*PORTS-1:0] owner;

  for (genvar p = 0; p < PORTS; p++) begin : g_port
    wire [7:0] destination = s_destination[8*p+:8];
    wire [7:0] wanted = s_meta_destination[8*p+:8];
    always_ff @(posedge clk) begin
      if (!rst && before_valid) begin
        // What senders promise: a waiting word stays.
        if (s_waits[p]) begin
          assume (s_axis_tvalid[p]);
          assume (s_word[WORD_BITS*p+:WORD_BITS] == s_word_before[WORD_BITS*p+:WORD_BITS]);
          assume (wanted == destination);
        end
        // What the router promises.
        if (m_waits[p]) begin
          assert (m_axis_tvalid[p]);
          assert (m_word[WORD_BITS*p+:WORD_BITS] == m_word_before[WORD_BITS*p+:WORD_BITS]);
          assert (m_meta_source[8*p+:8] == m_source_before[8*p+:8]);
        end
        for (int o = 0; o < PORTS; o++) begin
          if (s_gave[p] && destination == 8'(o)) begin
            assert (m_axis_tvalid[o]);
            assert (m_word[WORD_BITS*o+:WORD_BITS] == s_word_before[WORD_BITS*p+:WORD_BITS]);
            assert (m_meta_source[8*o+:8] == 8'(p));
          end
        end
        assert (count_good[p] == (s_gave[p] && s_last[p] && destination < 8'(PORTS)));
        assert (drop_destination[p] == (s_gave[p] && s_last[p] && destination >= 8'(PORTS)));
      end
      if (!rst && s_axis_tvalid[p] && wanted >= 8'(PORTS)) assert (s_axis_tready[p]);
    end
  end

  for (genvar o = 0; o < PORTS; o++) begin : g_output
    wire [PORTS-1:0] gave, wants;
    wire can_take = !m_axis_tvalid[o] || m_axis_tready[o];
    for (genvar p = 0; p < PORTS; p++) begin : g_from
      assign gave[p] = s_gave[p] && s_destination[8*p+:8] == 8'(o);
      assign wants[p] = s_axis_tvalid[p] && s_meta_destination[8*p+:8] == 8'(o);
    end
    wire [PORTS-1:0] takes = wants & s_axis_tready;
    always_ff @(posedge clk) begin
      for (int p = 0; p < PORTS; p++) begin
        if (takes[p]) begin
          in_packet[o] <= !s_axis_tlast[p];
          owner[8*o+:8] <= 8'(p);
        end
      end
      if (rst) in_packet[o] <= 1'b0;
      else begin
        if (before_valid) assert (!m_axis_tvalid[o] || m_waits[o] || gave != '0);  // nothing but what was given, and once
        assert ((takes & (takes - 1'b1)) == '0);
        assert (takes == '0 || can_take);
        if (in_packet[o]) assert (takes == (can_take ? wants & (PORTS'(1) << owner[8*o+:8]) : '0));
        else assert ((takes != '0) == (can_take && wants != '0));
        assert (dut.g_output[o].holds == in_packet[o]);
        if (in_packet[o]) assert (dut.g_output[o].holder == PORTS'(1) << owner[8*o+:8] && owner[8*o+:8] < 8'(PORTS));
      end
    end
  end
endmodule
