// SPDX-License-Identifier: Apache-2.0
// km3_align before a decoder that says which words are bad, km3_phase with km3_tx_align, and a km3_tx_align whose readings the bench makes, each by itself.
module bench_top #(
    parameter int SLIDE_BITS = 1
) (
    input logic clk,
    input logic rst,

    input  logic [19:0] s_bits,
    input  logic        says_bad,  // of a word, as if the decoder said so
    output logic [19:0] m_codes,
    output logic        slide,
    output logic        restart,
    output logic        locked,
    output logic [ 4:0] slip,
    output logic        lost,
    output logic        error_place,
    output logic [ 4:0] place,
    output logic [ 1:0] k,
    output logic [15:0] data,

    input  logic       a_toggle,
    input  logic       b_toggle,
    output logic       phase_valid,
    output logic [5:0] phase,
    output logic       tx_slide,
    output logic       aligned,
    output logic       error_phase,
    output logic       failed,
    output logic [5:0] moved,

    input  logic       read_valid,
    input  logic [5:0] read_phase,
    output logic       read_slide,
    output logic       read_aligned,
    output logic       read_error,
    output logic       read_failed,
    output logic [5:0] read_moved,

    input  logic        forget,
    input  logic        value_valid,
    input  logic [ 7:0] value,
    output logic        known,
    output logic [ 7:0] first,
    output logic        error_value,
    output logic [ 7:0] other
);
  logic [1:0] code_errors, disparity_errors;
  logic bad;
  always_ff @(posedge clk) bad <= ((code_errors | disparity_errors) != '0 || says_bad) && !rst;
  km3_align #(
      .SLIDE_BITS(SLIDE_BITS),
      .GAP_CYCLES(8),
      .ATTEMPTS(2),
      .SEARCH_CYCLES(300)
  ) i_align (
      .*
  );
  dec_8b10b #(
      .SYMBOLS(2)
  ) i_dec (
      .clk,
      .rst,
      .s_codes(m_codes),
      .m_k(k),
      .m_data(data),
      .code_error(code_errors),
      .disparity_error(disparity_errors)
  );
  km3_phase i_phase (
      .clk,
      .rst,
      .a_toggle,
      .b_toggle,
      .valid(phase_valid),
      .phase
  );
  km3_tx_align i_tx_align (
      .clk,
      .rst,
      .valid(phase_valid),
      .phase,
      .slide(tx_slide),
      .aligned,
      .error_phase,
      .failed,
      .moved
  );
  km3_tx_align i_read_align (
      .clk,
      .rst,
      .valid(read_valid),
      .phase(read_phase),
      .slide(read_slide),
      .aligned(read_aligned),
      .error_phase(read_error),
      .failed(read_failed),
      .moved(read_moved)
  );
  km3_monitor #(
      .BITS(8)
  ) i_monitor (
      .clk,
      .rst,
      .forget,
      .valid(value_valid),
      .value,
      .known,
      .first,
      .error(error_value),
      .other
  );
endmodule
