// SPDX-License-Identifier: Apache-2.0
// write_arbiter under any two writers and any pauses of the port: what goes out is one writer's, whole, and requests are never mixed; the second begins for
// the reasons of the contract alone, and once he has waited PATIENCE_CYCLES as soon as a request ends; the first waits for one of his writes at most, for
// RUN within a long write of his own, and for none between writes if `clear` is true and the port does not pause.
module write_arbiter_formal (
    input logic clk,
    input logic rst,
    input logic clear,
    input logic s0_valid,
    input logic s0_last,
    input logic s0_cut,
    input logic [9:0] s0_bytes,
    input logic [7:0] s0_data,
    input logic s1_valid,
    input logic s1_last,
    input logic [7:0] s1_data,
    input logic m_ready
);
  localparam int PATIENCE_CYCLES = 5, SECOND_WORDS = 4, RUN = 3, LEFT_BYTES_MIN = 16 * (RUN * SECOND_WORDS + 4);
  logic s0_ready, s1_ready, m_valid, m_last, m_second;
  logic [42:0] m_address;
  logic [9:0] m_bytes;
  logic [127:0] m_data;
  logic [0:0] m_tag;
  wire m_cut = m_second ? s1_last : s0_cut;
  write_arbiter #(.BYTES_BITS(10), .SECOND_WORDS(SECOND_WORDS), .RUN(RUN), .PATIENCE_CYCLES(PATIENCE_CYCLES)) dut (
      .s0_address('0),
      .s0_data({120'd0, s0_data}),
      .s0_tag('0),
      .s1_address('1),
      .s1_bytes(10'd64),
      .s1_data({120'd1, s1_data}),
      .s1_tag('1),
      .*
  );

  logic running, in_request, owner;
  logic in_write, waits0, waits1;
  logic [9:0] bytes, left;  // of the first one's write; `left` of it
  logic [3:0] waited;
  logic [1:0] words, run;  // of the second: words of the write that goes, writes since the first one's last word
  logic [1:0] quiet;       // cycles in which the first will not offer anything, for it said `clear`
  logic held_up;           // the port has paused, or it was no `clear` that let the second begin
  logic [5:0] late, late_before;  // of the first one's word, and before this write of the second
  wire takes = m_valid && m_ready;
  wire begins = !in_request && m_second;
  wire has_left = left >= 10'(LEFT_BYTES_MIN);
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    // The writers.
    waits0 <= s0_valid && !s0_ready;
    waits1 <= s1_valid && (!s1_ready || !s1_last);
    if (running && waits0) assume (s0_valid);
    if (running && waits1) assume (s1_valid);
    assume (s0_bytes != '0 && s0_bytes < 10'd1000 && s0_bytes[3:0] == '0);
    if (in_write) assume (s0_bytes == bytes);
    if (s0_valid && (in_write ? left : s0_bytes) == 10'd16) assume (s0_last);  // or sooner
    if (s0_valid && s0_last) assume (s0_cut);
    if (s1_valid && words == 2'd3) assume (s1_last);
    if (quiet != '0) assume (!s0_valid);
    quiet <= clear && !s0_valid ? 2'd3 : quiet == '0 ? '0 : quiet - 2'd1;
    // What has happened.
    if (takes) begin
      in_request <= !m_cut;
      owner <= m_second;
      if (m_second) begin
        words <= s1_last ? '0 : words + 2'd1;
        if (s1_last && run != 2'(RUN)) run <= run + 2'd1;
      end else begin
        in_write <= !s0_last;
        bytes <= s0_bytes;
        left <= (in_write ? left : s0_bytes) - 10'd16;
        run <= '0;
      end
    end
    if (!s1_valid || m_second) waited <= '0;
    else if (waited != 4'(PATIENCE_CYCLES) && m_ready) waited <= waited + 4'd1;
    late <= !s0_valid || s0_ready ? '0 : late + 6'(m_ready);
    if (begins) late_before <= late;
    held_up <= (begins ? waited == 4'(PATIENCE_CYCLES) || in_write : held_up) || !m_ready;
    if (rst) {in_request, in_write, waited, words, run, quiet, late, waits0, waits1} <= '0;
    else begin
      assert (!in_request || m_second == owner);
      assert (m_valid == (m_second ? s1_valid : s0_valid));
      assert (s0_ready == (m_ready && !m_second) && s1_ready == (m_ready && m_second));
      assert (m_last == (m_second ? s1_last : s0_last));
      assert (m_data == (m_second ? {120'd1, s1_data} : {120'd0, s0_data}));
      assert (m_address == {43{m_second}} && m_bytes == (m_second ? 10'd64 : s0_bytes) && m_tag == m_second);
      if (begins) begin
        assert (s1_valid && (waited == 4'(PATIENCE_CYCLES) || (in_write ? has_left && (run == '0 ? !s0_valid : run < 2'(RUN)) : clear && !s0_valid)));
      end
      if (!in_request && s1_valid && waited == 4'(PATIENCE_CYCLES)) assert (m_second);
      assert (late <= (in_write && has_left ? 6'(RUN * SECOND_WORDS) : 6'(SECOND_WORDS)));
      if (m_second && s0_valid && !begins) assert (held_up);
      // For induction.
      assert (dut.open == in_request && (!in_request || dut.open_second == owner) && 4'(dut.waited) == waited && dut.in_write == in_write);
      assert (waited <= 4'(PATIENCE_CYCLES) && 6'(dut.late) == late);
      if (in_write) assert (dut.left == left && dut.enough_left == has_left && 2'(dut.run) == run && left != '0 && left < bytes && left[3:0] == '0);
      assert ((words != '0) == (in_request && owner));
      if (words != '0) begin
        assert (waits1 && waited == '0);
        assert (late <= late_before + 6'(words) && late_before <= (in_write && has_left ? 6'(SECOND_WORDS) * 6'(run) : 6'd0));
        if (late_before != '0) assert (run < 2'(RUN));
        if (!held_up) assert (quiet >= 2'd3 - (words - 2'd1) && !in_write && late == '0);
      end else if (late != '0) begin
        assert (waited == '0 && waits0);
        assert (late <= (in_write && has_left ? 6'(SECOND_WORDS) * 6'(run) : 6'(SECOND_WORDS)));
      end
      if (in_request && !owner) assert (late == '0);
    end
  end
endmodule
