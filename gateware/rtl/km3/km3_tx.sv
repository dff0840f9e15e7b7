// SPDX-License-Identifier: Apache-2.0
// The sender of a link with one latency: slots' FIFOs, km3_frame_tx, enc_8b10b; and beside the serialiser km3_phase and km3_tx_align, which give its divider one phase.
//
// Contract
//   * tx_codes are of clk; the serialiser takes them at the edges of div_clk, its divider's, half a cycle after those of clk. `on` is up once that is so: before it, no
//     light is sent. `hold` keeps it off and begins anew.
//   * From `start`, and from an express code that is taken, to tx_codes it is always LATENCY_CYCLES.
//   * s_last stands beside a word, and for those who count them comes back with it: `took`, when it is put into a frame, and took_last. What becomes of that
//     frame follows: `ends`, its last word is at tx_codes, or `cut`, there is no such word; or neither, by rst.
//   * moved, error_phase and failed are km3_tx_align's, of help_clk.
module km3_tx #(
    parameter int SLOTS = 2,
    parameter logic [SLOTS-1:0][15:0] SLOT_WORDS = {16'd8, 16'd8},
    parameter logic [7:0] KIND = km3_pkg::KIND_UP,
    parameter int FIFO_WORDS = 1024,
    parameter int PHASE_STEPS = 40,
    localparam int PHASE_BITS = $clog2(PHASE_STEPS)
) (
    input logic clk,
    input logic rst,
    input logic help_clk,
    input logic div_clk,
    input logic hold,

    input logic           start,
    input logic           starts_next,
    input km3_pkg::head_t head,

    input  logic [SLOTS-1:0]       s_valid,
    output logic [SLOTS-1:0]       s_ready,
    input  logic [SLOTS-1:0][15:0] s_data,
    input  logic [SLOTS-1:0]       s_last,
    output logic [SLOTS-1:0]       took,
    output logic [SLOTS-1:0]       took_last,
    input  logic                   express_valid,
    output logic                   express_ready,
    input  logic [            7:0] express,

    output logic [19:0] tx_codes,
    output logic        tx_on,
    output logic        tx_slide,
    output logic        ends,
    output logic        cut,

    output logic [PHASE_BITS-1:0] moved,
    output logic                  error_phase,
    output logic                  failed
);
  // verilator lint_off SYNCASYNCNET
  localparam int ENCODER_CYCLES = 2;
  logic [SLOTS-1:0][15:0] waiting, slot_data;
  logic [SLOTS-1:0] takes, slot_last;
  assign took = takes;
  assign took_last = takes & slot_last;
  for (genvar s = 0; s < SLOTS; s++) begin : g_slot
    km3_slot #(
        .WORDS(FIFO_WORDS),
        .WIDTH(17)
    ) i_slot (
        .clk,
        .rst,
        .s_valid(s_valid[s]),
        .s_ready(s_ready[s]),
        .s_data ({s_last[s], s_data[s]}),
        .waiting(waiting[s]),
        .m_take (takes[s]),
        .m_data ({slot_last[s], slot_data[s]})
    );
  end
  logic [1:0] k;
  logic [15:0] data;
  // In the order of the frames: `cut` comes as late as the end that the frame would have had.
  logic word_ends, word_cut;
  logic [ENCODER_CYCLES-1:0] ended;
  logic [ENCODER_CYCLES:0] was_cut;
  assign ends = ended[ENCODER_CYCLES-1];
  assign cut  = was_cut[ENCODER_CYCLES];
  always_ff @(posedge clk) begin
    ended   <= rst ? '0 : {ended[ENCODER_CYCLES-2:0], word_ends};
    was_cut <= rst ? '0 : {was_cut[ENCODER_CYCLES-1:0], word_cut};
  end
  km3_frame_tx #(
      .SLOTS(SLOTS),
      .SLOT_WORDS(SLOT_WORDS),
      .KIND(KIND)
  ) i_frames (
      .clk,
      .rst,
      .start,
      .starts_next,
      .head,
      .s_waiting(waiting),
      .s_take(takes),
      .s_data(slot_data),
      .express_valid,
      .express_ready,
      .express,
      .m_k(k),
      .m_data(data),
      .ends(word_ends),
      .cut(word_cut)
  );
  enc_8b10b #(
      .SYMBOLS(2)
  ) i_enc (
      .clk,
      .rst,
      .s_k(k),
      .s_data(data),
      .m_codes(tx_codes)
  );

  // --- the divider ---
  logic toggle, div_toggle, hold_kept, help_rst, div_rst;
  initial hold_kept = 1'b1;  // an FPGA begins so
  always_ff @(posedge clk) hold_kept <= hold || rst;
  reset_sync i_help_reset (
      .clk(help_clk),
      .rst_async(hold_kept),
      .rst(help_rst)
  );
  reset_sync i_div_reset (
      .clk(div_clk),
      .rst_async(hold_kept),
      .rst(div_rst)
  );
  always_ff @(posedge clk) toggle <= !toggle && !hold_kept;
  always_ff @(posedge div_clk) div_toggle <= !div_toggle && !div_rst;
  logic valid, aligned, told_aligned;
  logic [PHASE_BITS-1:0] phase;
  km3_phase #(
      .STEPS(PHASE_STEPS)
  ) i_phase (
      .clk(help_clk),
      .rst(help_rst),
      .a_toggle(toggle),
      .b_toggle(div_toggle),
      .valid,
      .phase
  );
  km3_tx_align #(
      .STEPS (PHASE_STEPS),
      .TARGET(PHASE_STEPS / 2)
  ) i_align (
      .clk(help_clk),
      .rst(help_rst),
      .valid,
      .phase,
      .slide(tx_slide),
      .aligned,
      .error_phase,
      .failed,
      .moved
  );
  always_ff @(posedge help_clk) told_aligned <= aligned && !help_rst;
  sync_bits i_on (
      .s_bits(told_aligned),
      .m_clk (clk),
      .m_rst (hold_kept),
      .m_bits(tx_on)
  );
endmodule
