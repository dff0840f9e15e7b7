// SPDX-License-Identifier: Apache-2.0
// event_gather under any pieces and any pauses: every half that counted leaves once, in order, in words without a hole; a word that is not full is the last
// of its packet, and no packet has more or fewer words than its halves need; the sideband of the last word is that of the piece that ended the packet.
module event_gather_formal #(
    parameter int HALVES = 4,
    localparam int BITS = $clog2(HALVES + 1)
) (
    input logic                 clk,
    input logic                 rst,
    input logic [16*HALVES-1:0] s_data,
    input logic [     BITS-1:0] s_halves,
    input logic                 s_last,
    input logic [          1:0] s_meta,
    input logic                 s_valid,
    input logic                 m_axis_tready
);
  logic s_ready, m_axis_tvalid, m_axis_tlast;
  logic [16*HALVES-1:0] m_axis_tdata;
  logic [2*HALVES-1:0] m_axis_tkeep;
  logic [1:0] m_meta;
  event_gather #(.HALVES(HALVES), .META_BITS(2)) dut (.*);

  typedef struct packed {
    logic        ends;  // its packet
    logic [1:0]  meta;  // with `ends`: of the piece that did
    logic [15:0] half;
  } item_t;

  // Those that came and have not left, the oldest first.
  localparam int ITEMS = 3 * HALVES;
  localparam int ITEM_BITS = $clog2(ITEMS + 1);
  item_t [ITEMS-1:0] items, kept, then;
  logic [ITEM_BITS-1:0] count;
  logic running, in_packet;  // in_packet: a half of a packet came whose end did not
  wire takes = s_valid && s_ready;
  wire leaves = m_axis_tvalid && m_axis_tready;
  logic [BITS-1:0] leaving;  // halves of the word that is offered
  always_comb begin
    leaving = '0;
    for (int half = 0; half < HALVES; half++) leaving += BITS'(m_axis_tkeep[2*half]);
  end
  wire [ITEM_BITS-1:0] count_kept = count - (leaves ? ITEM_BITS'(leaving) : '0);
  wire [ITEM_BITS-1:0] count_then = count_kept + (takes ? ITEM_BITS'(s_halves) : '0);
  always_comb begin
    kept = leaves ? items >> ($bits(item_t) * int'(leaving)) : items;
    then = kept;
    for (int k = 0; k < ITEMS; k++) begin
      for (int half = 0; half < HALVES; half++) begin
        if (takes && half < int'(s_halves) && k == int'(count_kept) + half) then[k] = '{1'b0, 2'b0, s_data[16*half+:16]};
      end
      if (takes && s_last && k == int'(count_then) - 1) {then[k].ends, then[k].meta} = {1'b1, s_meta};
    end
  end

  wire [BITS-1:0] offered = m_axis_tvalid ? leaving : '0;
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    assume (s_halves <= BITS'(HALVES));
    if (s_valid && s_last) assume (in_packet || s_halves != '0);
    if (takes) in_packet <= !s_last && (in_packet || s_halves != '0);
    items <= then;
    count <= count_then;
    if (rst) {in_packet, count} <= '0;
    else begin
      if (m_axis_tvalid) begin
        assert (leaving != '0 && ITEM_BITS'(leaving) <= count);
        assert (m_axis_tkeep == ~('1 << (2 * int'(leaving))));
        assert (m_axis_tlast || leaving == BITS'(HALVES));
        for (int half = 0; half < HALVES; half++) begin
          if (half < int'(leaving)) begin
            assert (m_axis_tdata[16*half+:16] == items[half].half);
            assert (items[half].ends == (m_axis_tlast && half == int'(leaving) - 1));
            if (items[half].ends) assert (items[half].meta == m_meta);
          end
        end
      end
      // For induction: after the word that is offered comes what is held.
      assert (count == ITEM_BITS'(offered) + ITEM_BITS'(dut.held_halves) && dut.held_halves <= BITS'(HALVES));
      assert (in_packet == (!dut.ends && dut.held_halves != '0) && (!dut.ends || dut.held_halves != '0));
      for (int half = 0; half < HALVES; half++) begin
        if (half < int'(dut.held_halves)) begin
          assert (dut.held[16*half+:16] == items[int'(offered)+half].half);
          assert (items[int'(offered)+half].ends == (dut.ends && half == int'(dut.held_halves) - 1));
          if (items[int'(offered)+half].ends) assert (items[int'(offered)+half].meta == dut.ends_meta);
        end else assert (dut.held[16*half+:16] == '0);
      end
    end
  end
endmodule
