// SPDX-License-Identifier: Apache-2.0
// Credits of one memory between its sender and its receiver: words and limits in flight as long as they like, words and whole packets lost, words taken for
// a packet's that are not, counts told or lost, and the reader as slow as it likes. The memory never holds more than it can, and the sender never sends
// into room that will not be there. Packets are of two words, which is all that the size of a packet does here.
module credit_giver_formal #(
    parameter int WORDS = 4
) (
    input logic clk,
    input logic rst,
    input logic wants,     // the sender to send a word
    input logic comes,     // the next word in flight
    input logic begins,    // and before it its packet's START
    input logic writes,    // the receiver a word into the packet's place, before or after its own have come
    input logic ends,      // the packet, for the receiver
    input logic counts,    // a CREDIT comes, from between two packets
    input logic limits,    // a limit comes back
    input logic [apenet_pkg::COUNT_BITS-1:0] told_limit,
    input logic reads
);
  localparam int COUNT_BITS = apenet_pkg::COUNT_BITS;
  typedef logic [COUNT_BITS-1:0] count_t;

  // The link delivers in order: what the receiver has seen is a place in the sender's own count.
  count_t sent, space, seen, written, read, limit;
  logic [1:0] may;  // so many words may be written into the packet's place
  logic started;    // the receiver has seen the START of the packet that comes
  wire sends = wants && (sent[0] || space >= count_t'(2));
  wire starts = begins && seen != sent && !seen[0] && !started;
  wire arrives = comes && seen != sent;
  wire enters = writes && may != '0 && !starts;
  wire takes = reads && read != written;
  credit_giver #(.WORDS(WORDS)) dut (
      .clk,
      .rst,
      .told(starts || (counts && !started && !seen[0] && may == '0)),
      .told_sent(seen),
      .written,
      .read,
      .limit
  );
  credit_taker i_taker (
      .clk,
      .rst,
      .sends,
      .told(limits),
      .told_limit,
      .sent,
      .space
  );
  wire [COUNT_BITS-1:0] known = space + sent;  // the limit that the sender knows

  logic running;
  initial running = 1'b0;
  always_ff @(posedge clk) begin
    running <= 1'b1;
    assume (rst == !running);
    // What comes is any limit that was told, and none comes before an older one.
    assume (!limits || count_t'(told_limit - known) <= count_t'(limit - known));
    if (arrives) seen <= seen + 1'b1;
    if (enters) written <= written + 1'b1;
    if (takes) read <= read + 1'b1;
    if (enters) may <= may - 1'b1;
    if (ends) may <= '0;
    if (arrives && seen[0]) started <= 1'b0;
    if (starts) begin
      may <= 2'd2;
      started <= 1'b1;
    end
    if (rst) {seen, written, read, may, started} <= '0;
  end

  wire [COUNT_BITS-1:0] held = written - read;
  wire [COUNT_BITS-1:0] promised = sent + count_t'(sent[0]);  // to be sent: a packet that has begun goes on
  wire [COUNT_BITS-1:0] placed = started ? seen + count_t'(2) - count_t'(seen[0]) : seen;  // what has its place in the memory, or is lost
  wire [COUNT_BITS-1:0] in_flight = promised - placed;
  wire [COUNT_BITS-1:0] room = limit - promised;
  always_ff @(posedge clk) begin
    if (running && !rst) begin
      assert (int'(held) <= WORDS);
      assert (!enters || int'(held) < WORDS);
      assert (count_t'(limit - sent) >= space);  // the sender believes in no more room than there is
      // For induction: room, what is in flight and what may still be written have their places.
      assert (int'(held) + int'(may) + int'(in_flight) + int'(room) <= WORDS);
      assert (int'(count_t'(known - promised)) <= int'(room));
      assert (int'(count_t'(sent - seen)) <= WORDS + 2);
      assert (!started || seen[0] || seen != sent);
    end
  end
endmodule
