// SPDX-License-Identifier: Apache-2.0
// What stands in for a GPS receiver: a pulse a second, and the second's number, which the host says beforehand.
//
// Contract
//   * clk is locked to the pulse. `pps` is a pin; its second begins PPS_CYCLES after an edge of clk at which it is seen to have risen.
//   * `set` keeps `second`: the next pulse begins it (gps_set, as of km3_shore). From then on each pulse begins one more, and `second` at the output says
//     which.
//   * error_period: a pulse that is not CYCLES_PER_S after the last one. error_silent: none came for so long and one cycle more, once until the next.
module km3_gps #(
    parameter int CYCLES_PER_S = 40000000
) (
    input logic clk,
    input logic rst,

    input logic        pps,
    input logic        set,
    input logic [31:0] second,

    output logic        gps_set,
    output logic [31:0] gps_second,
    output logic        known,
    output logic        count_pulse,
    output logic        error_period,
    output logic        error_silent
);
  localparam int PPS_CYCLES = 4;
  localparam int BITS = $clog2(CYCLES_PER_S + 2);
  if (CYCLES_PER_S < 8) begin : g_check
    $fatal(1, "CYCLES_PER_S must be at least 8 (instance %m)");
  end

  logic sampled, was, begins, waits, counts;
  logic [31:0] wanted;
  logic [BITS-1:0] cycles;  // since the last pulse
  wire rises = sampled && !was;
  sync_bits i_pps (
      .s_bits(pps),
      .m_clk (clk),
      .m_rst (rst),
      .m_bits(sampled)
  );
  always_ff @(posedge clk) begin
    was <= sampled;
    begins <= rises && !rst;
    {gps_set, count_pulse, error_period, error_silent} <= '0;
    if (int'(cycles) <= CYCLES_PER_S) cycles <= cycles + 1'b1;
    if (counts && int'(cycles) == CYCLES_PER_S && !begins) error_silent <= 1'b1;
    if (begins) begin
      cycles <= BITS'(1);
      counts <= 1'b1;
      count_pulse <= 1'b1;
      error_period <= counts && int'(cycles) != CYCLES_PER_S;
      gps_set <= waits;
      gps_second <= waits ? wanted : gps_second + 1'b1;
      known <= known || waits;
      waits <= 1'b0;
    end
    if (set) begin
      wanted <= second;
      waits  <= 1'b1;
    end
    if (rst) begin
      {gps_set, count_pulse, error_period, error_silent} <= '0;
      {was, begins, waits, counts, known} <= '0;
    end
  end

  // --- what must hold ---
  logic [PPS_CYCLES-3:0] risen;
  always_ff @(posedge clk) begin
    risen <= rst ? '0 : {risen[PPS_CYCLES-4:0], rises};
    if (!rst) assert (!gps_set || risen[PPS_CYCLES-3]);
  end
endmodule
