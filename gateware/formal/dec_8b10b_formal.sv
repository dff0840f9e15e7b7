// SPDX-License-Identifier: Apache-2.0
// Any symbols through encoder and decoder, two a cycle: they come out as they went in, without an error. And any code into a decoder of its own: one that is told
// as good is the one that the symbol has after the running disparity, one told as of the wrong disparity that after the other, and one that is refused is no symbol's.
module dec_8b10b_formal (
    input logic        clk,
    input logic        rst,
    input logic [ 1:0] s_k,
    input logic [15:0] s_data,
    input logic [ 9:0] any_code,
    input logic        any_k,
    input logic [ 7:0] any_data,
    input logic        any_plus
);
  localparam int LATENCY_CYCLES = 4;
  localparam logic [7:0] STAYS = 8'h23;  // D3.1 does not turn the disparity

  logic running;
  logic [2:0] cycles;  // since reset
  logic [19:0] codes;
  logic [1:0] m_k, code_error, disparity_error;
  logic [15:0] m_data;
  enc_8b10b #(
      .SYMBOLS(2)
  ) i_enc (
      .clk,
      .rst,
      .s_k,
      .s_data,
      .m_codes(codes)
  );
  wire early = rst || cycles < 3'd4;  // what comes out of the encoder is of before its reset, and then balanced
  dec_8b10b #(
      .SYMBOLS(2)
  ) dut (
      .clk,
      .rst(early),
      .s_codes(codes),
      .m_k,
      .m_data,
      .code_error,
      .disparity_error
  );

  logic [LATENCY_CYCLES-1:0][17:0] given;
  logic [1:0] plus;    // before what stands in m_codes, and before what the decoder has
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    for (int s = 0; s < 2; s++) assume (!s_k[s] || code_8b10b_pkg::is_control(s_data[8*s+:8]));
    if (early) assume (s_k == '0 && s_data == {2{STAYS}});
    if (rst) cycles <= '0;
    else if (cycles != '1) cycles <= cycles + 1'b1;
    given <= {given[LATENCY_CYCLES-2:0], {s_k, s_data}};
    plus  <= {plus[0], i_enc.last_plus};
  end
  always_ff @(posedge clk) begin
    if (running && !rst && cycles < 3'd5) assert (!dut.last_plus && !i_enc.last_plus && i_enc.flips == '0);
    if (running && !rst && cycles >= 3'd5) begin
      assert (dut.last_plus == plus[1]);
      assert (code_error == '0 && disparity_error == '0);
      assert ({m_k, m_data} == given[LATENCY_CYCLES-1]);
    end
  end

  // --- any code ---
  logic own_k, own_error, own_disparity;
  logic [7:0] own_data;
  dec_8b10b #(
      .SYMBOLS(1)
  ) i_any (
      .clk,
      .rst,
      .s_codes(any_code),
      .m_k(own_k),
      .m_data(own_data),
      .code_error(own_error),
      .disparity_error(own_disparity)
  );
  logic [1:0][9:0] code;
  logic was_plus;
  logic [1:0] old;
  logic [9:0] some_code;
  wire [9:0] told_code = code_8b10b_pkg::wire_order(code_8b10b_pkg::encoded(own_k, own_data, was_plus ^ own_disparity));
  wire own_legal = !own_k || code_8b10b_pkg::is_control(own_data);
  always_ff @(posedge clk) begin
    assume (!any_k || code_8b10b_pkg::is_control(any_data));
    code <= {code[0], any_code};
    was_plus <= i_any.last_plus;
    old <= rst ? '0 : {old[0], 1'b1};
    some_code <= code_8b10b_pkg::wire_order(code_8b10b_pkg::encoded(any_k, any_data, any_plus));
    if (running && !rst && old == '1) begin
      if (!own_error) assert (told_code == code[1] && own_legal);
      if (own_error) assert (!own_disparity && !own_k);
      if (own_error) assert (code[1] != some_code);
    end
  end
endmodule
