// SPDX-License-Identifier: Apache-2.0
// What stands in for a GPS receiver: a pulse a second, and the second's number, which the host says beforehand.
//
// Contract
//   * clk is locked to the pulse. `pps` is a pin; its second begins PPS_CYCLES after an edge of clk at which it is seen to have risen.
//   * `set` keeps `second`: the next pulse begins it (gps_set, as of km3_shore). From then on a second begins each CYCLES_PER_S, as in km3_shore, whatever
//     the pulses do; gps_second is the one that is, and `begun` comes with each that began so.
//   * error_period: a pulse that does not begin a second; before one was set, that is not CYCLES_PER_S after the last one. error_silent: a second ended in
//     which none came, nor with its end; once until the next.
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
    output logic        begun,
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
  logic elsewhere, silent;  // a pulse came in this second; none for so long that it was told
  logic [31:0] wanted;
  logic [BITS-1:0] cycles;  // of the second; before one was set, since the last pulse
  wire rises = sampled && !was;
  wire ends = int'(cycles) == CYCLES_PER_S;
  sync_bits i_pps (
      .s_bits(pps),
      .m_clk (clk),
      .m_rst (rst),
      .m_bits(sampled)
  );
  always_ff @(posedge clk) begin
    was <= sampled;
    begins <= rises && !rst;
    {gps_set, begun, count_pulse, error_period, error_silent} <= '0;
    if (int'(cycles) <= CYCLES_PER_S) cycles <= cycles + 1'b1;
    if (ends && known) begin
      cycles <= BITS'(1);
      gps_second <= gps_second + 1'b1;
      begun <= 1'b1;
    end
    if (ends) elsewhere <= 1'b0;
    if (ends && counts && !begins && !elsewhere) begin
      error_silent <= !silent;
      silent <= 1'b1;
    end
    if (begins) begin
      counts <= 1'b1;
      silent <= 1'b0;
      count_pulse <= 1'b1;
      error_period <= counts && !ends;
      elsewhere <= known && !waits && !ends;
      if (waits || !known) cycles <= BITS'(1);
      gps_set <= waits;
      if (waits) gps_second <= wanted;
      known <= known || waits;
      waits <= 1'b0;
    end
    if (set) begin
      wanted <= second;
      waits  <= 1'b1;
    end
    if (rst) begin
      {gps_set, begun, count_pulse, error_period, error_silent} <= '0;
      {was, begins, waits, counts, known, elsewhere, silent} <= '0;
    end
  end

  // --- what must hold ---
  logic [PPS_CYCLES-3:0] risen;
  always_ff @(posedge clk) begin
    risen <= rst ? '0 : {risen[PPS_CYCLES-4:0], rises};
    if (!rst) assert (!gps_set || risen[PPS_CYCLES-3]);
  end
endmodule
