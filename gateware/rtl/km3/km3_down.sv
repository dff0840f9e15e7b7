// SPDX-License-Identifier: Apache-2.0
// Payloads to a floor: slow control, in words of two bytes, of the link's reference clock.
//
// Contract
//   * The input never waits: a payload that finds no room is dropped whole (full). What is taken goes to the floor in order, as fast as the link takes it,
//     and waits while there is none. An odd byte at a payload's end gets a zero beside it. Any number of payloads wait, in words of 8 bytes of which each
//     begins one.
//   * link_rst, a level of ref_clk: the link begins anew, and forgets what it was given. After it the first word is that of a payload that begins.
//   * took, took_last, frame_ends, frame_cut: as of km3_tx; `on`, that there is light.
//   * count: each payload, when the frame that has its last word has left, and all its words were in frames that left whole; cut: each of which a word was not.
//     Payloads = count + cut + full.
module km3_down #(
    parameter int DEPTH_WORDS = 256,  // [8 B]; a power of two
    parameter int LINK_WORDS = 1152   // that the link holds at most, with those of a frame
) (
    input logic clk,
    input logic rst,
    input logic ref_clk,
    input logic ref_rst,  // of reset_sync, from rst
    input logic link_rst,

    input logic [63:0] s_axis_tdata,
    input logic [ 7:0] s_axis_tkeep,
    input logic        s_axis_tvalid,
    input logic        s_axis_tlast,

    output logic        control_valid,
    input  logic        control_ready,
    output logic [15:0] control_data,
    output logic        control_last,

    input logic on,
    input logic took,
    input logic took_last,
    input logic frame_ends,
    input logic frame_cut,

    output logic count,
    output logic cut,
    output logic full
);
  logic [63:0] w_tdata;
  logic [7:0] w_tkeep;
  logic w_tvalid, w_tready, w_tlast, ready;
  frame_fifo #(
      .DEPTH_WORDS(DEPTH_WORDS),
      .PACKETS(DEPTH_WORDS)
  ) i_fifo (
      .clk,
      .rst,
      .s_axis_tdata,
      .s_axis_tkeep,
      .s_axis_tvalid,
      .s_axis_tlast,
      .s_axis_tuser(1'b0),
      .s_meta(1'b0),
      .m_axis_tdata(w_tdata),
      .m_axis_tkeep(w_tkeep),
      .m_axis_tvalid(w_tvalid),
      .m_axis_tready(w_tready),
      .m_axis_tlast(w_tlast),
      .m_meta(),
      .fill_words(),
      .count_good(),
      .count_bad(),
      .drop_full(full)
  );

  logic [1:0] place;  // of two bytes in a word
  logic last_place;
  logic [15:0] bytes;
  always_comb begin
    bytes = '0;
    last_place = 1'b0;
    for (int k = 0; k < 4; k++) begin
      if (int'(place) == k) begin
        bytes = {w_tkeep[2*k+1] ? w_tdata[16*k+8+:8] : 8'h00, w_tdata[16*k+:8]};
        last_place = k == 3 || !w_tkeep[k == 3 ? 7 : 2*k+2];
      end
    end
  end
  assign w_tready = ready && last_place;
  always_ff @(posedge clk) begin
    if (w_tvalid && ready) place <= last_place ? '0 : place + 1'b1;
    if (rst) place <= '0;
  end
  logic came, takes;
  async_fifo #(
      .WIDTH(17),
      .DEPTH(8)
  ) i_crossing (
      .s_clk(clk),
      .s_rst(rst),
      .s_data({w_tlast && last_place, bytes}),
      .s_valid(w_tvalid),
      .s_ready(ready),
      .m_clk(ref_clk),
      .m_rst(ref_rst),
      .m_data({control_last, control_data}),
      .m_valid(came),
      .m_ready(takes),
      .m_more()
  );

  // --- into the link; the rest of a payload whose beginning it forgot is thrown away ---
  logic midway, skips;
  assign control_valid = came && !link_rst && !skips;
  assign takes = skips || (control_ready && !link_rst);
  wire gives = control_valid && control_ready;
  always_ff @(posedge ref_clk) begin
    if (gives) midway <= !control_last;
    if (skips && came && control_last) skips <= 1'b0;
    if (link_rst) begin
      skips  <= midway || (skips && !(came && control_last));
      midway <= 1'b0;
    end
    if (ref_rst) {midway, skips} <= '0;
  end

  // --- what becomes of each: payloads in the link, those whose last word is in the frame that leaves, and whether one has words in it and goes on ---
  localparam int BITS = $clog2(LINK_WORDS + 2);
  logic [BITS-1:0] held, ending;  // held: with the one that is being given
  logic goes_on, spoiled, was_dark, forgets;  // spoiled: the next to end has lost words
  wire breaks = frame_cut || (frame_ends && (was_dark || !on));
  wire resolves = frame_ends || frame_cut;
  wire begins = gives && !midway;
  wire none_ends = ending == '0;
  logic [BITS-1:0] new_sent, new_cut;
  always_comb begin
    new_sent = resolves && !breaks ? ending - BITS'(spoiled && !none_ends) : '0;
    new_cut  = !resolves ? '0 : breaks ? ending : BITS'(spoiled && !none_ends);
    if (forgets) {new_sent, new_cut} = {BITS'(0), held};
  end
  always_ff @(posedge ref_clk) begin
    forgets <= link_rst;  // a frame whose last word was out before is none of those that it cuts
    held <= held + BITS'(begins) - (resolves ? ending : '0);
    ending <= (resolves ? '0 : ending) + BITS'(took_last);
    if (took) goes_on <= !took_last;
    else if (resolves) goes_on <= 1'b0;
    if (resolves) spoiled <= breaks ? goes_on || (spoiled && none_ends) : spoiled && none_ends;
    was_dark <= (took || goes_on || !none_ends) && (!on || was_dark) && !resolves;
    if (forgets) begin
      held <= BITS'(begins);
      {ending, goes_on, spoiled} <= '0;
    end
    if (ref_rst) {held, ending, goes_on, spoiled, was_dark, forgets} <= '0;
  end

  // --- one after the other to the core ---
  localparam int OWED_BITS = BITS + 2;
  logic [OWED_BITS-1:0] sent_owed, cut_owed;
  logic tells, told;
  logic [1:0] fates;
  always_ff @(posedge ref_clk) begin
    sent_owed <= sent_owed + OWED_BITS'(new_sent) - OWED_BITS'(tells && sent_owed != '0);
    cut_owed  <= cut_owed + OWED_BITS'(new_cut) - OWED_BITS'(tells && cut_owed != '0);
    if (ref_rst) {sent_owed, cut_owed} <= '0;
  end
  async_fifo #(
      .WIDTH(2),
      .DEPTH(4)
  ) i_fates (
      .s_clk(ref_clk),
      .s_rst(ref_rst),
      .s_data({cut_owed != '0, sent_owed != '0}),
      .s_valid({cut_owed, sent_owed} != '0),
      .s_ready(tells),
      .m_clk(clk),
      .m_rst(rst),
      .m_data(fates),
      .m_valid(told),
      .m_ready(1'b1),
      .m_more()
  );
  always_ff @(posedge clk) {cut, count} <= told && !rst ? fates : '0;

  // --- what must hold ---
  always_ff @(posedge ref_clk) begin
    if (!ref_rst) begin
      assert (ending <= held);
      assert (!midway || held != '0 || forgets);
      assert (!(frame_ends && frame_cut));
    end
  end
endmodule
